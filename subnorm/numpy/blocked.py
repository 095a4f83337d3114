"""LayerNorm and RMSNorm on a few rows at a time, and if you like in place: forward, for arrays larger than a cache.

The plain functions of `subnorm.numpy.norms` write every intermediate result to memory and read it back: at 64 MB none
stays in the processor's cache, and the system has to find new pages for each. Here a block of rows goes through all
the steps in one small array, and the result may take the place of x.
"""

import numpy as np
import numpy.typing as npt

from subnorm import _rules
from subnorm.numpy.norms import Array, _float_array, _parameter

#: Entries of a block. In float32 that is 256 KB: the block, the rows of x and those of y stay in a second-level cache.
BLOCK = 2**16


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
        out: a contiguous array that y is written to, of the shape and dtype of x; x itself to work in place. It must
            not overlap x in any other way. None for a new array.

    Returns:
        y, shape (..., d), in the dtype of x; this is out where it was given.

    Raises:
        ValueError: out is not such an array. The other errors are those of the plain function.

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
    work = np.empty((num_rows, d), np.promote_types(x.dtype, np.float32))
    for start in range(0, len(rows), num_rows):
        part = rows[start : start + num_rows]
        xhat = work[: len(part)]  # the last block may be shorter
        np.subtract(part, part.mean(axis=-1, keepdims=True, dtype=work.dtype) if centred else 0, out=xhat)
        mean_square = np.einsum("nd,nd->n", xhat, xhat)[:, None] / d  # reads xhat once; (xhat * xhat) is not written
        xhat *= 1 / np.sqrt(mean_square + eps)
        if gamma is not None:
            xhat *= gamma
        if beta is not None:
            xhat += beta
        results[start : start + num_rows] = xhat
    return y
