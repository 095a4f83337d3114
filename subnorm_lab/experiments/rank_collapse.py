"""Rank collapse: attention alone makes all tokens of a sequence equal, doubly exponentially fast.

Every result is at initialization: queries, keys, values and output have variance 1/d, the two feed-forward matrices
2/d and 1/d_ff, so each preserves the mean square of independent entries; no biases, no mask.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

import subnorm.numpy as sn
from subnorm import _rules
from subnorm.numpy.norms import Array

Layer = Mapping[str, Mapping[str, Array]]


def draw_layers(
    num_layers: int, seed: int, d_model: int = 64, num_heads: int = 4, qk_gain: float = 1.0
) -> tuple[list[Layer], int]:
    """Draw the weights of a stack, in the format of ``subnorm.numpy``.

    Args:
        num_layers: depth L; a layer is an attention sublayer and a feed-forward sublayer.
        seed: of the weights.
        d_model: number of features.
        num_heads: number of heads; divides d_model.
        qk_gain: factor of the query and key matrices; the scores grow with its square.

    Returns:
        the layers, each with "attention" and "feed_forward", and num_heads.

    Raises:
        ValueError: num_layers is not positive, or num_heads does not divide d_model.
    """
    _rules.size("num_layers", num_layers)
    _rules.heads(d_model, num_heads)
    source, d, d_ff = np.random.default_rng(seed), d_model, 4 * d_model
    gains = np.repeat([qk_gain, qk_gain, 1.0], d)[:, None]
    layers: list[Layer] = []
    for _ in range(num_layers):
        attention = {
            "in_proj_weight": gains * source.standard_normal((3 * d, d)) / np.sqrt(d),
            "in_proj_bias": np.zeros(3 * d),
            "out_proj.weight": source.standard_normal((d, d)) / np.sqrt(d),
            "out_proj.bias": np.zeros(d),
        }
        feed_forward = {
            "linear1.weight": source.standard_normal((d_ff, d)) * np.sqrt(2 / d),
            "linear1.bias": np.zeros(d_ff),
            "linear2.weight": source.standard_normal((d, d_ff)) / np.sqrt(d_ff),
            "linear2.bias": np.zeros(d),
        }
        layers.append({"attention": attention, "feed_forward": feed_forward})
    return layers, num_heads


def draw_tokens(seed: int, length: int = 16, d_model: int = 64) -> Array:
    """Independent tokens of unit variance, shape (T, d_model)."""
    return np.random.default_rng([seed, 1]).standard_normal((length, d_model))


def token_residual(x: npt.ArrayLike) -> Array:
    """How much the tokens differ: ``r = ||x - mean over tokens|| / ||x||``, between 0 and 1.

    Args:
        x: shape (..., T, d).

    Returns:
        r, shape (...): 0 if all tokens are equal, and near 1 if they have nothing in common.

    Source: Dong et al. 2021, arXiv:2103.03404.

    Known mistake: the mean over the features (the last axis), as in a norm. Here it runs over the tokens.
    """
    x = np.asarray(x)
    spread = x - x.mean(axis=-2, keepdims=True)
    return np.asarray(np.linalg.norm(spread, axis=(-2, -1)) / np.linalg.norm(x, axis=(-2, -1)))


def states(
    x: Array, stack: tuple[Sequence[Layer], int], feed_forward: bool = False, skip: bool = False, norm: str = ""
) -> list[Array]:
    """Run tokens through a stack in one of its wirings.

    Args:
        x: tokens, shape (T, d_model).
        stack: from :func:`draw_layers`.
        feed_forward: whether a feed-forward sublayer follows each attention sublayer.
        skip: whether each sublayer has a skip path.
        norm: "" for none, "pre" for LayerNorm on a sublayer's input, "post" for LayerNorm on its output (after the
            sum, if there is a skip path).

    Returns:
        x, and the stream after every layer: L + 1 arrays of x's shape.

    Raises:
        ValueError: an unknown norm.
    """
    if norm not in ("", "pre", "post"):
        raise ValueError(f'norm must be "", "pre" or "post"; got {norm!r}. Name one of the three.')
    layers, num_heads = stack

    def add_branch(x: Array, sublayer: Callable[[Array], Array]) -> Array:
        branch = sublayer(sn.layer_norm(x) if norm == "pre" else x)
        y = x + branch if skip else branch
        return sn.layer_norm(y) if norm == "post" else y

    found = [x]
    for layer in layers:
        x = add_branch(x, partial(sn.multi_head_attention, params=layer["attention"], num_heads=num_heads))
        if feed_forward:
            x = add_branch(x, partial(sn.feed_forward, params=layer["feed_forward"]))
        found.append(x)
    return found


def residual_by_layer(
    tokens: Sequence[Array],
    stacks: Sequence[tuple[Sequence[Layer], int]],
    feed_forward: bool = False,
    skip: bool = False,
    norm: str = "",
) -> Array:
    """The token residual at the input and after every layer, for a wiring of :func:`states`.

    Args:
        tokens: one input for each stack, shape (T, d_model).
        stacks: of the same depth L, from :func:`draw_layers`.
        feed_forward, skip, norm: the wiring.

    Returns:
        r, shape (stacks, L + 1), clipped at 1e-15, below which rounding dominates.
    """
    found = [
        token_residual(np.stack(states(x, stack, feed_forward, skip, norm)))
        for x, stack in zip(tokens, stacks, strict=True)
    ]
    return np.maximum(found, 1e-15)


def one_layer_exactly(mean: Array, spread: Array, layer: Layer, num_heads: int) -> tuple[Array, Array]:
    """One attention sublayer for tokens ``mean + spread``, which keeps mean and spread apart.

    A score that is the same for all keys drops out of the softmax. So all tokens share one row of weights ``a``,
    and only ``spread Wq Wk^T spread^T`` makes their rows differ from it. ``expm1`` gives the difference of the weights
    without subtracting nearly equal numbers, so a spread of 1e-100 is as accurate as a spread of 1.

    Args:
        mean: mean of the tokens, shape (1, d_model).
        spread: the tokens minus their mean, shape (T, d_model); it sums to 0 over the tokens.
        layer: from :func:`draw_layers`; its biases must be 0.
        num_heads: number of heads.

    Returns:
        the mean and the spread of the output, in the same shapes.

    Source: our derivation; Dong et al. 2021, arXiv:2103.03404, prove a bound.
    """
    weights = layer["attention"]
    d = mean.shape[-1]
    wq, wk, wv = (w.reshape(num_heads, d // num_heads, d) for w in np.split(weights["in_proj_weight"], 3))
    wo = weights["out_proj.weight"].reshape(d, num_heads, d // num_heads)
    new_mean, new_spread = np.zeros_like(mean), np.zeros_like(spread)
    for head in range(num_heads):
        key = spread @ wk[head].T / np.sqrt(d // num_heads)  # (T, d_head)
        shared = mean @ wq[head].T @ key.T  # (1, T): scores that all queries have in common
        own = spread @ wq[head].T @ key.T  # (T, T): the rest of the scores
        a = sn.softmax(shared)  # (1, T)
        large = np.abs(own).max(axis=-1, keepdims=True) > 1  # (T, 1): where plain subtraction is accurate
        lift = np.expm1(np.where(large, 0, own))
        z = (a * lift).sum(axis=-1, keepdims=True)  # (T, 1)
        differ = np.where(large, sn.softmax(shared + own) - a, a * (lift - z) / (1 + z))  # (T, T): each row minus a
        out = wo[:, head] @ wv[head]  # (d, d)
        new_mean += (mean + a @ spread) @ out.T
        new_spread += differ @ spread @ out.T
    shift = new_spread.mean(axis=0, keepdims=True)
    return new_mean + shift, new_spread - shift


def exact_residuals(x: Array, stack: tuple[Sequence[Layer], int]) -> Array:
    """The token residual through pure attention, not limited by rounding.

    Args:
        x: tokens, shape (T, d_model).
        stack: from :func:`draw_layers`.

    Returns:
        r, shape (L + 1,); 0 if it is below the smallest float.
    """
    layers, num_heads = stack
    mean = x.mean(axis=0, keepdims=True)
    spread, found = x - mean, []
    for layer in [*layers, None]:
        largest = np.abs(spread).max()  # scale first: the square of 1e-200 is 0
        size = largest * np.linalg.norm(spread / (largest or 1))
        found.append(size / np.hypot(size, np.sqrt(len(x)) * np.linalg.norm(mean)))
        if layer is not None:
            mean, spread = one_layer_exactly(mean, spread, layer, num_heads)
    return np.array(found)


def attention_paths(
    x: Array, stack: tuple[Sequence[Layer], int], skip: bool = False
) -> tuple[npt.NDArray[np.int64], Array]:
    """A stack of attention sublayers as a sum over paths: through one head in every layer, or past the layer.

    For given attention weights A, a path contributes ``A_L ... A_1 x W_1 ... W_L`` over its heads, where W is the
    product of a head's value and output matrices.

    Args:
        x: tokens, shape (T, d_model).
        stack: from :func:`draw_layers`; all its paths are stored, so keep it small.
        skip: whether each sublayer has a skip path.

    Returns:
        lengths, shape (paths,), the number of heads on each path; and terms, shape (paths, T, d_model). There are
        (H + 1)^L paths with skip, and H^L without. The terms sum to the network's output.

    Source: Dong et al. 2021, arXiv:2103.03404.
    """
    layers, num_heads = stack
    d = x.shape[-1]
    lengths, terms = np.zeros(1, dtype=np.intp), x[None]
    for layer in layers:
        h = terms.sum(axis=0)  # (T, d), the network's state at this layer
        weights = layer["attention"]
        wq, wk, wv = (w.reshape(num_heads, d // num_heads, d) for w in np.split(weights["in_proj_weight"], 3))
        wo = weights["out_proj.weight"].reshape(d, num_heads, d // num_heads)
        past = ([lengths], [terms]) if skip else ([], [])
        through = [
            sn.softmax(h @ wq[i].T @ (h @ wk[i].T).T / np.sqrt(d // num_heads)) @ terms @ (wo[:, i] @ wv[i]).T
            for i in range(num_heads)
        ]
        lengths = np.concatenate([*past[0], *[lengths + 1] * num_heads])
        terms = np.concatenate([*past[1], *through])
    return lengths, terms
