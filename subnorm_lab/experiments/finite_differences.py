"""Is a backward pass right? Two checks that need no second derivation."""

from collections.abc import Callable

import numpy as np

from subnorm.numpy.norms import Array


def finite_difference(f: Callable[[Array], Array], x: Array, dy: Array, h: float = 1e-6) -> Array:
    """The gradient of ``sum(dy * f(x))`` by central differences, one entry of x at a time.

    ``dx_i = sum(dy * (f(x + h e_i) - f(x - h e_i))) / 2h``, with an error of order h squared plus rounding / h.

    Args:
        f: the forward pass, from arrays to arrays.
        x: where to differentiate, any shape, float64.
        dy: the cotangent, in the shape of f(x). Take a random one: a constant hides mistakes.
        h: step.

    Returns:
        dx, in the shape of x.
    """
    dx = np.empty_like(x)
    for i in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i] = h
        dx[i] = (dy * (f(x + step) - f(x - step))).sum() / (2 * h)
    return dx


def adjoint_gap(f: Callable[[Array], Array], x: Array, v: Array, dy: Array, dx: Array, h: float = 1e-6) -> float:
    """How far a backward pass is from the forward pass's adjoint: the relative gap of ``<dy, J v>`` and ``<dx, v>``.

    J v takes one directional difference, so the cost does not grow with the number of entries.

    Args:
        f: the forward pass.
        x: where to differentiate.
        v: a random direction, in the shape of x.
        dy: a random cotangent, in the shape of f(x).
        dx: the result of the backward pass for dy.
        h: step.

    Returns:
        the gap, relative to the norms of dx and v; about 1e-9 for a correct backward pass.
    """
    forward = (dy * (f(x + h * v) - f(x - h * v))).sum() / (2 * h)
    backward = (dx * v).sum()
    return float(abs(forward - backward) / (np.linalg.norm(dx) * np.linalg.norm(v)))
