"""The backward pass of a residual connection with a norm, in both placements, and the gradient on its skip path.

Each function takes the backward passes of its parts: ``sublayer_back(dh)`` and ``norm_back(dh)`` turn the gradient at
a part's output into the gradient at its input. With J_F and J_N for the Jacobians of sublayer and norm:

    Pre-LN:   dx = dy + J_N^T J_F^T dy
    Post-LN:  dx = (I + J_F)^T J_N^T dy
"""

from collections.abc import Callable

import numpy as np

from subnorm import _rules
from subnorm.numpy import PLACEMENTS, layer_norm, layer_norm_backward
from subnorm.numpy.norms import Array

Back = Callable[[Array], Array]


def pre_ln_back(dy: Array, sublayer_back: Back, norm_back: Back) -> Array:
    """Backward of ``y = x + F(norm(x))``: ``dx = dy + J_N^T J_F^T dy``.

    Args:
        dy: gradient at the output, any shape.
        sublayer_back: multiplies by the transposed Jacobian of F, taken at norm(x).
        norm_back: multiplies by the transposed Jacobian of the norm, taken at x.

    Returns:
        dx, in the shape of dy.
    """
    return dy + norm_back(sublayer_back(dy))


def post_ln_back(dy: Array, sublayer_back: Back, norm_back: Back) -> Array:
    """Backward of ``y = norm(x + F(x))``: ``dx = (I + J_F)^T J_N^T dy``.

    Args:
        dy: gradient at the output, any shape.
        sublayer_back: multiplies by the transposed Jacobian of F, taken at x.
        norm_back: multiplies by the transposed Jacobian of the norm, taken at the sum.

    Returns:
        dx, in the shape of dy.
    """
    dsum = norm_back(dy)
    return dsum + sublayer_back(dsum)


BACK = {"pre": pre_ln_back, "post": post_ln_back}


def gradient_sizes(placement: str, depth: int, seeds: range, d: int = 64, tokens: int = 32) -> dict[str, Array]:
    """Size of the gradient along a stack of sublayers: of the whole, and of the part on the skip path.

    The branch is ``W2 relu(W1 h)`` with Var(W1) = 2/d and Var(W2) = 1/d, so its output has the mean square of its
    input. The part on the skip path comes from the same backward pass without the branches' gradients.

    Args:
        placement: "pre" or "post".
        depth: number of sublayers.
        seeds: one draw of weights, tokens and gradient for each.
        d: number of features.
        tokens: number of rows.

    Returns:
        "whole" and "skip", each of shape (seeds, depth + 1): the norm of the gradient before each sublayer, divided by
        its norm at the end of the stack.

    Raises:
        ValueError: an unknown placement.
    """
    _rules.choice("placement", placement, PLACEMENTS)
    sizes: dict[str, Array] = {name: np.empty((len(seeds), depth + 1)) for name in ("whole", "skip")}
    for row, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((tokens, d))  # (T, d)
        inner = rng.standard_normal((depth, d, d)) * np.sqrt(2 / d)  # W1 of each sublayer
        outer = rng.standard_normal((depth, d, d)) * np.sqrt(1 / d)  # W2
        stream = [x]
        for w1, w2 in zip(inner, outer, strict=True):
            stream.append(PLACEMENTS[placement](stream[-1], _branch(w1, w2), layer_norm))
        dy = rng.standard_normal((tokens, d))
        for name in sizes:
            dx: Array = dy
            sizes[name][row, depth] = 1
            for layer in reversed(range(depth)):
                dx = _back(placement, dx, stream[layer], inner[layer], outer[layer], name == "skip")
                sizes[name][row, layer] = np.linalg.norm(dx) / np.linalg.norm(dy)
    return sizes


def _branch(w1: Array, w2: Array) -> Callable[[Array], Array]:
    return lambda h: np.maximum(h @ w1.T, 0) @ w2.T


def _back(placement: str, dy: Array, x: Array, w1: Array, w2: Array, skip_only: bool) -> Array:
    read = layer_norm(x) if placement == "pre" else x
    normed = x if placement == "pre" else x + _branch(w1, w2)(x)

    def sublayer_back(dh: Array) -> Array:
        return 0 * dh if skip_only else ((dh @ w2) * (read @ w1.T > 0)) @ w1

    return BACK[placement](dy, sublayer_back, lambda dh: layer_norm_backward(dh, normed)[0])
