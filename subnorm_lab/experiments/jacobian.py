"""Which directions the backward pass of a norm keeps: the Jacobian for one token, and its singular values."""

from typing import Literal

import numpy as np

from subnorm.numpy import layer_norm_backward, rms_norm_backward
from subnorm.numpy.norms import Array

BACKWARD = {"layer": layer_norm_backward, "rms": rms_norm_backward}


def jacobian(norm: Literal["layer", "rms"], x: Array, eps: float) -> Array:
    """The matrix dxhat / dx: row i is the result of the backward pass for the unit vector e_i.

    Args:
        norm: LayerNorm or RMSNorm.
        x: one token, shape (d,), float64.
        eps: as in the forward pass.

    Returns:
        shape (d, d).

    Raises:
        ValueError: the norm is unknown, or x is not one token.
    """
    if norm not in BACKWARD:
        raise ValueError(f"norm is one of {list(BACKWARD)}; got {norm!r}.")
    if x.ndim != 1:
        raise ValueError(f"x is one token, shape (d,); got {x.shape}. Take the tokens one by one.")
    d = len(x)
    return BACKWARD[norm](np.eye(d), np.tile(x, (d, 1)), eps=eps)[0]


def singular_values(norm: Literal["layer", "rms"], x: Array, eps: float) -> Array:
    """The d singular values of :func:`jacobian`, largest first. Arguments and errors are the same."""
    return np.linalg.svd(jacobian(norm, x, eps), compute_uv=False)
