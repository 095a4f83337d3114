"""LayerNorm and RMSNorm forward, a block of rows at a time and optionally in place, for arrays larger than a cache.

The plain functions of `subnorm.numpy.norms` write every intermediate result to memory and read it back. At 64 MB none
stays in the processor's cache, and the system must allocate new pages for each. Here a block of rows goes through all
steps in two small work arrays, and the result may overwrite x.
"""

import numpy as np
import numpy.typing as npt

from subnorm import _rules
from subnorm.numpy.norms import Array, _float_array, _parameter

#: Entries in a block: the two work arrays take 256 KB in float64, and fit in a second-level cache with x and y.
BLOCK = 2**14


def layer_norm(
    x: npt.ArrayLike,
    gamma: npt.ArrayLike | None = None,
    beta: npt.ArrayLike | None = None,
    eps: float = 1e-5,
    out: Array | None = None,
) -> Array:
    """:func:`subnorm.numpy.layer_norm`, block by block.

    Args:
        x, gamma, beta, eps: as in the plain function.
        out: a contiguous array for y, of the shape and dtype of x. Pass x itself to work in place; any other overlap
            with x is not allowed. None for a new array.

    Returns:
        y, shape (..., d), in the dtype of x; this is out if it was given.

    Raises:
        ValueError: out has the wrong shape, dtype or layout. The other errors are those of the plain function.

    Source: loop tiling; chapter 08.

    Known mistake: working in place on an x that the backward pass still needs.
    """
    return _in_blocks(x, gamma, beta, eps, out, centred=True)


def rms_norm(
    x: npt.ArrayLike, gamma: npt.ArrayLike | None = None, eps: float = 1e-5, out: Array | None = None
) -> Array:
    """:func:`subnorm.numpy.rms_norm`, block by block. Arguments, result and errors: see :func:`layer_norm` here."""
    return _in_blocks(x, gamma, None, eps, out, centred=False)


def _in_blocks(
    x: npt.ArrayLike,
    gamma: npt.ArrayLike | None,
    beta: npt.ArrayLike | None,
    eps: float,
    out: Array | None,
    *,
    centred: bool,
) -> Array:
    x = _float_array("x", x)
    _rules.features(x.shape)
    _rules.small_constant(eps)
    d = x.shape[-1]
    gamma, beta = _parameter("gamma", gamma, d), _parameter("beta", beta, d)
    y = np.empty(x.shape, x.dtype) if out is None else out
    _rules.out(y.shape == x.shape and y.dtype == x.dtype and y.flags.c_contiguous, x.shape, x.dtype)

    rows, results = x.reshape(-1, d), y.reshape(-1, d)
    num_rows = max(1, BLOCK // d)
    work, squares = np.empty((2, num_rows, d), np.promote_types(x.dtype, np.float64))
    for start in range(0, len(rows), num_rows):
        part = rows[start : start + num_rows]
        xhat = work[: len(part)]  # the last block may be shorter
        xhat[...] = part
        if centred:
            xhat -= xhat.mean(axis=-1, keepdims=True)
            xhat -= xhat.mean(axis=-1, keepdims=True)  # as in norms.py: what rounding left of the mean
        mean_square = np.square(xhat, out=squares[: len(part)]).mean(axis=-1, keepdims=True)
        xhat *= 1 / np.sqrt(mean_square + eps)
        if gamma is not None:
            xhat *= gamma
        if beta is not None:
            xhat += beta
        results[start : start + num_rows] = xhat
    return y
