"""Multi-head attention, from the softmax up, in evaluation mode: without dropout."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from subnorm import _rules
from subnorm.numpy.norms import Array, _features, _float_array

Mask = npt.NDArray[np.bool_]
Params = Mapping[str, Array]

ATTENTION_PARAMS = ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")


def softmax(x: npt.ArrayLike) -> Array:
    """Positive weights that sum to one over the last axis: ``exp(x) / sum(exp(x))``.

    Args:
        x: scores, shape (..., T), float16, float32 or float64. ``-inf`` gets weight 0.

    Returns:
        weights, shape (..., T), in the dtype of x; computed in float64.

    Raises:
        TypeError: x is not floating-point.
        ValueError: x has no last axis, or an empty one.

    Source: the definition; deep dive 01a. Subtracting the largest score first changes nothing, but keeps exp finite.

    Known mistake: a row with ``-inf`` everywhere, for which no weights sum to one; it gives NaN.
    """
    x, x_wide = _features(x)
    e = np.exp(x_wide - x_wide.max(axis=-1, keepdims=True))  # (..., T)
    return (e / e.sum(axis=-1, keepdims=True)).astype(x.dtype)


def attention(q: npt.ArrayLike, k: npt.ArrayLike, v: npt.ArrayLike, mask: Mask | None = None) -> Array:
    """Scaled dot-product attention: ``softmax(q k^T / sqrt(d_head)) v``, computed in at least float32.

    Args:
        q: queries, shape (..., T, d_head).
        k: keys, shape (..., S, d_head); S is T in self-attention.
        v: values, shape (..., S, d_value).
        mask: boolean, broadcasts to (..., T, S); True where a query (row) may look at a key (column). None for all.

    Returns:
        y, shape (..., T, d_value), in the dtype of q: for every query, a weighted mean of the values.

    Raises:
        TypeError: q, k or v is not floating-point, or the mask is not boolean.
        ValueError: the shapes do not fit together, the mask does not fit the scores, or a query sees no key.

    Source: Vaswani et al. 2017, arXiv:1706.03762, equation 1; deep dive 01a.

    Known mistake: the opposite mask convention. In torch.nn.MultiheadAttention True blocks; here True allows.
    """
    q, k, v = _float_array("q", q), _float_array("k", k), _float_array("v", v)
    _rules.queries_keys_values(q.shape, k.shape, v.shape)
    scores = _wide(q) @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])  # (..., T, S)
    if mask is not None:
        mask = np.asarray(mask)
        _rules.mask(mask.dtype == np.bool_, mask.dtype, mask.shape, scores.shape)
        _rules.sees_something(bool(mask.any(axis=-1).all()))
        scores = np.where(mask, scores, scores.dtype.type(-np.inf))
    return (softmax(scores) @ v).astype(q.dtype)  # (..., T, d_value)


def multi_head_attention(
    x: npt.ArrayLike, params: Params, num_heads: int, mask: Mask | None = None, memory: npt.ArrayLike | None = None
) -> Array:
    """Attention in several heads side by side, each on its own d_model / num_heads features.

    Queries come from x; keys and values come from x too (self-attention), or from a memory (cross-attention).

    Args:
        x: input, shape (..., T, d_model).
        params: ``in_proj_weight`` (3 d_model, d_model) with the rows of q, k and v on top of each other,
            ``in_proj_bias`` (3 d_model,), ``out_proj.weight`` (d_model, d_model), ``out_proj.bias`` (d_model,):
            the names and shapes of torch.nn.MultiheadAttention.
        num_heads: number of heads; divides d_model.
        mask: boolean, broadcasts to (..., num_heads, T, S); True where a query may look at a key. None for all.
        memory: the sequence to attend to, shape (..., S, d_model); None for x itself, with S = T.

    Returns:
        y, shape (..., T, d_model), in the dtype of x.

    Raises:
        TypeError: x or the memory is not floating-point, or the mask is not boolean.
        ValueError: x does not fit the parameters, the memory does not fit x, num_heads does not divide d_model,
            a parameter is missing or misshapen, the mask does not fit, or a query sees no key.

    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2; deep dive 01a.

    Known mistake: reshaping (T, d_model) to (heads, T, d_head) directly, without swapping axes, which mixes tokens.
    """
    x = _float_array("x", x)
    params = _arrays(params, ATTENTION_PARAMS)
    _rules.matrix("params['out_proj.weight']", params["out_proj.weight"].shape)
    d_model = params["out_proj.weight"].shape[0]
    shapes = ((3 * d_model, d_model), (3 * d_model,), (d_model, d_model), (d_model,))
    _rules.shapes("params", params, dict(zip(ATTENTION_PARAMS, shapes, strict=True)))
    _rules.heads(d_model, num_heads)
    _rules.sequence(x.shape, d_model)
    source = x if memory is None else _float_array("memory", memory)
    _rules.memory(source.shape, x.shape)
    weights, biases = (np.split(params[name], 3) for name in ("in_proj_weight", "in_proj_bias"))
    q, k, v = (  # (..., heads, T, d_head) and twice (..., heads, S, d_head)
        _split_heads(_wide(read) @ w.T + b, num_heads)
        for read, w, b in zip((x, source, source), weights, biases, strict=True)
    )
    y = _merge_heads(attention(q, k, v, mask))  # (..., T, d_model)
    return (y @ params["out_proj.weight"].T + params["out_proj.bias"]).astype(x.dtype)


def _arrays(params: Params, names: Sequence[str]) -> Params:
    """The named parameters as checked arrays; converts the tensors of a state_dict."""
    _rules.keys("params", params, names)
    return {name: _float_array(f"params[{name!r}]", params[name]) for name in names}


def _split_heads(x: Array, num_heads: int) -> Array:
    *lead, d_model = x.shape
    return np.swapaxes(x.reshape(*lead, num_heads, d_model // num_heads), -2, -3)  # (..., heads, T, d_head)


def _merge_heads(x: Array) -> Array:
    *lead, heads, tokens, d_head = x.shape
    return np.swapaxes(x, -2, -3).reshape(*lead, tokens, heads * d_head)  # (..., T, d_model)


def _wide(x: Array) -> Array:
    """x in at least float32, for matrix products."""
    return x.astype(np.promote_types(x.dtype, np.float32), copy=False)
