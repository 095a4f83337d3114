"""LayerNorm, RMSNorm and BatchNorm: forward and backward, as pure functions.

All three take the same two steps: centre (subtract the mean), then divide by the root of the mean square.
LayerNorm takes both steps over the features, RMSNorm only the second; BatchNorm takes both over the rows.

Names, as in the book: x, mean, rstd (reciprocal standard deviation), xhat, gamma, beta, eps, dy, dx.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from subnorm import _rules

Array = npt.NDArray[np.floating[Any]]


# The two steps, over the features, or over the rows of a matrix with axis 0


def _sum(x: Array, axis: int) -> Array:
    """The sum over an axis, which stays with length 1. Adding in pairs keeps rounding errors small."""
    if axis == -1:
        return x.sum(axis=-1, keepdims=True)  # features are contiguous in memory: there NumPy adds in pairs
    while len(x) > 1:  # along rows it would add one after the other
        half = len(x) // 2
        pairs = x[:half] + x[half : 2 * half]  # (N // 2, d)
        pairs[: len(x) % 2] += x[2 * half :]
        x = pairs
    return x.sum(axis=0, keepdims=True)  # (1, d); no row sums to 0


def _mean(x: Array, axis: int = -1) -> Array:
    return _sum(x, axis) / x.shape[axis]


def _centre(x: Array, axis: int = -1) -> Array:
    x = x - _mean(x, axis)
    return x - _mean(x, axis)  # the mean was rounded; this subtracts what that left


def _unit_rms(x: Array, eps: float, axis: int = -1) -> tuple[Array, Array]:
    """x divided by the root of its mean square, and rstd."""
    rstd = 1 / np.sqrt(_mean(x * x, axis) + eps)
    return x * rstd, rstd


# LayerNorm


def layer_norm(
    x: npt.ArrayLike, gamma: npt.ArrayLike | None = None, beta: npt.ArrayLike | None = None, eps: float = 1e-5
) -> Array:
    """Give every row mean 0 and a variance of about 1, then scale and shift each feature.

    ``y = gamma * (x - mean) / sqrt(var + eps) + beta``, with mean and var over the last axis.

    The variance is the biased one (divided by d, not d - 1), and eps is inside the root, so the variance of
    the result before gamma is ``var / (var + eps)``: a little under 1. With ``eps=0`` a constant row gives NaN.

    Accuracy: everything is computed in float64, the mean is subtracted twice, and the result is rounded once to the
    dtype of x. So y is within 4 machine epsilons of the exact result, in units of the row's largest entry, whatever
    the mean and the number of features. A constant row has deviations of exactly 0. float64 entries above 1e154
    overflow when squared, and their row becomes 0.

    Args:
        x: input, shape (..., d), float16, float32 or float64.
        gamma: gain, shape (d,); None for 1.
        beta: shift, shape (d,); None for 0.
        eps: added to the variance, in units of x squared; at least 0.

    Returns:
        y, shape (..., d), in the dtype of x.

    Raises:
        TypeError: x, gamma or beta is not floating-point.
        ValueError: x has no features, gamma or beta does not have shape (d,), or eps is negative.

    Source: Ba, Kiros, Hinton 2016, arXiv:1607.06450; chapter 03.

    Known mistake: dividing by ``x.std(ddof=1) + eps``, the unbiased standard deviation with eps outside the root.
    """
    x, x_wide = _features(x)
    _rules.small_constant(eps)
    xhat, _rstd = _unit_rms(_centre(x_wide), eps)  # (..., d), (..., 1)
    return _affine(xhat, gamma, beta).astype(x.dtype)


def layer_norm_backward(
    dy: npt.ArrayLike, x: npt.ArrayLike, gamma: npt.ArrayLike | None = None, eps: float = 1e-5
) -> tuple[Array, Array, Array]:
    """Gradients of :func:`layer_norm`.

    ``dxhat = dy * gamma``, then ``dx = rstd * (dxhat - mean(dxhat) - xhat * mean(dxhat * xhat))``;
    ``dgamma = sum(dy * xhat)`` and ``dbeta = sum(dy)`` over all rows.

    Args:
        dy: gradient of the loss with respect to y, shape (..., d).
        x: the input of the forward pass, shape (..., d).
        gamma: the gain of the forward pass, shape (d,); None for 1.
        eps: as in the forward pass.

    Returns:
        dx, shape (..., d), in the dtype of x; dgamma and dbeta, shape (d,), in the dtype of gamma (of x without one).

    Raises:
        TypeError: an input is not floating-point.
        ValueError: dy does not have the shape of x, or an input breaks a rule of the forward pass.

    Source: the chain rule, line by line in deep dive 03a.

    Known mistake: testing it with ``y.sum()`` and gamma 1. The right dx is zero there, and so are many wrong ones.
    """
    dy, x, gamma, dtype = _backward_inputs(dy, x, gamma, eps)
    xhat, rstd = _unit_rms(_centre(x), eps)  # (..., d), (..., 1)
    dxhat = dy * gamma  # (..., d)
    dx = rstd * (dxhat - _mean(dxhat) - xhat * _mean(dxhat * xhat))  # (..., d)
    dgamma = _sum_over_rows(dy * xhat, gamma)  # (d,)
    dbeta = _sum_over_rows(dy, gamma)  # (d,)
    return dx.astype(dtype), dgamma, dbeta


class LayerNorm:
    """LayerNorm with its parameters: gamma starts at 1, beta at 0. See :func:`layer_norm`."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        _rules.size("d_model", d_model)
        _rules.small_constant(eps)
        self.gamma = np.ones(d_model)
        self.beta = np.zeros(d_model)
        self.eps = eps

    def __call__(self, x: npt.ArrayLike) -> Array:
        _rules.width(np.shape(x), len(self.gamma))
        return layer_norm(x, self.gamma, self.beta, self.eps)


# RMSNorm


def rms_norm(x: npt.ArrayLike, gamma: npt.ArrayLike | None = None, eps: float = 1e-5) -> Array:
    """Give every row root mean square 1, then scale each feature. The mean is not subtracted.

    ``y = gamma * x / sqrt(mean(x**2) + eps)``, with the mean over the last axis.

    Accuracy as in :func:`layer_norm`: computed in float64, gamma included, and rounded once to the dtype of x.
    With ``eps=0`` a row of zeros gives NaN.

    Args:
        x: input, shape (..., d), float16, float32 or float64.
        gamma: gain, shape (d,); None for 1.
        eps: added to the mean square, in units of x squared; at least 0.

    Returns:
        y, shape (..., d), in the dtype of x.

    Raises:
        TypeError: x or gamma is not floating-point.
        ValueError: x has no features, gamma does not have shape (d,), or eps is negative.

    Source: Zhang and Sennrich 2019, arXiv:1910.07467; chapter 04.

    Known mistake: calling it "LayerNorm without beta". RMSNorm drops the mean.
    """
    x, x_wide = _features(x)
    _rules.small_constant(eps)
    xhat, _rstd = _unit_rms(x_wide, eps)  # (..., d), (..., 1)
    return _affine(xhat, gamma, None).astype(x.dtype)


def rms_norm_backward(
    dy: npt.ArrayLike, x: npt.ArrayLike, gamma: npt.ArrayLike | None = None, eps: float = 1e-5
) -> tuple[Array, Array]:
    """Gradients of :func:`rms_norm`.

    ``dxhat = dy * gamma``, then ``dx = rstd * (dxhat - xhat * mean(dxhat * xhat))``;
    ``dgamma = sum(dy * xhat)`` over all rows.

    Arguments, results and errors are those of :func:`layer_norm_backward`, without dbeta.

    Source: the chain rule, line by line in chapter 04.

    Known mistake: keeping LayerNorm's mean(dxhat) term.
    """
    dy, x, gamma, dtype = _backward_inputs(dy, x, gamma, eps)
    xhat, rstd = _unit_rms(x, eps)  # (..., d), (..., 1)
    dxhat = dy * gamma  # (..., d)
    dx = rstd * (dxhat - xhat * _mean(dxhat * xhat))  # (..., d)
    dgamma = _sum_over_rows(dy * xhat, gamma)  # (d,)
    return dx.astype(dtype), dgamma


class RMSNorm:
    """RMSNorm with its parameter: gamma starts at 1. See :func:`rms_norm`."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        _rules.size("d_model", d_model)
        _rules.small_constant(eps)
        self.gamma = np.ones(d_model)
        self.eps = eps

    def __call__(self, x: npt.ArrayLike) -> Array:
        _rules.width(np.shape(x), len(self.gamma))
        return rms_norm(x, self.gamma, self.eps)


# BatchNorm


def batch_norm(
    x: npt.ArrayLike, gamma: npt.ArrayLike | None = None, beta: npt.ArrayLike | None = None, eps: float = 1e-5
) -> Array:
    """Give every feature mean 0 and a variance of about 1 over the rows of the batch (BatchNorm in training).

    ``y = gamma * (x - mean) / sqrt(var + eps) + beta``, with mean and var over every axis but the last.

    A row's result depends on the other rows. With a single row the variance is 0 and y is beta for every x
    (NaN with ``eps=0``).

    Arguments, result and errors are those of :func:`layer_norm`, plus a ValueError if x has no rows.

    Source: Ioffe and Szegedy 2015, arXiv:1502.03167; deep dive 03b.

    Known mistake: using these batch statistics in evaluation, instead of running averages.
    """
    x, x_wide = _features(x)
    _rules.at_least_one_row(x.shape)
    _rules.small_constant(eps)
    rows = _rows(x_wide)  # (N, d)
    xhat, _rstd = _unit_rms(_centre(rows, 0), eps, 0)  # (N, d), (1, d)
    return _affine(xhat, gamma, beta).astype(x.dtype).reshape(x.shape)


def batch_norm_backward(
    dy: npt.ArrayLike, x: npt.ArrayLike, gamma: npt.ArrayLike | None = None, eps: float = 1e-5
) -> tuple[Array, Array, Array]:
    """Gradients of :func:`batch_norm`: those of LayerNorm, with the means over the rows.

    ``dxhat = dy * gamma``, then ``dx = rstd * (dxhat - mean(dxhat) - xhat * mean(dxhat * xhat))``;
    ``dgamma = sum(dy * xhat)`` and ``dbeta = sum(dy)`` over all rows.

    Arguments, results and errors are those of :func:`layer_norm_backward`.

    Source: Ioffe and Szegedy 2015, arXiv:1502.03167; deep dive 03b.

    Known mistake: treating mean and var as constants, which drops the last two terms of dx.
    """
    dy, x, gamma, dtype = _backward_inputs(dy, x, gamma, eps)
    _rules.at_least_one_row(x.shape)
    shape, dy, x = x.shape, _rows(dy), _rows(x)  # (N, d)
    xhat, rstd = _unit_rms(_centre(x, 0), eps, 0)  # (N, d), (1, d)
    dxhat = dy * gamma  # (N, d)
    dx = rstd * (dxhat - _mean(dxhat, 0) - xhat * _mean(dxhat * xhat, 0))  # (N, d)
    dgamma = _sum_over_rows(dy * xhat, gamma)  # (d,)
    dbeta = _sum_over_rows(dy, gamma)  # (d,)
    return dx.astype(dtype).reshape(shape), dgamma, dbeta


# Input checks and final steps that they share


def _features(x: npt.ArrayLike) -> tuple[Array, Array]:
    """x, checked, and x in at least float64, its features contiguous in memory."""
    x = _float_array("x", x)
    _rules.features(x.shape)
    return x, np.ascontiguousarray(x, np.promote_types(x.dtype, np.float64))


def _float_array(name: str, value: npt.ArrayLike) -> Array:
    _rules.unmasked(name, not isinstance(value, np.ma.MaskedArray))
    try:
        value = np.asarray(value)
    except (TypeError, ValueError) as error:  # a ragged list, or a bfloat16 tensor, which NumPy has no type for
        raise _rules.no_array(name, type(value), error) from error
    _rules.floating(name, np.issubdtype(value.dtype, np.floating), value.dtype, _rules.NUMPY_TYPES)
    return value


def _parameter(name: str, value: npt.ArrayLike | None, d: int) -> Array | None:
    if value is None:
        return None
    value = _float_array(name, value)
    _rules.vector(name, value.shape, d)
    return value


def _affine(xhat: Array, gamma: npt.ArrayLike | None, beta: npt.ArrayLike | None) -> Array:
    """gamma * xhat + beta; None leaves that parameter out."""
    gamma = _parameter("gamma", gamma, xhat.shape[-1])
    beta = _parameter("beta", beta, xhat.shape[-1])
    y = xhat if gamma is None else gamma * xhat
    return y if beta is None else y + beta


def _backward_inputs(
    dy: npt.ArrayLike, x: npt.ArrayLike, gamma: npt.ArrayLike | None, eps: float
) -> tuple[Array, Array, Array, np.dtype[np.floating[Any]]]:
    """dy and x in at least float64, gamma (ones for None), and the dtype of x, all checked."""
    x, x_wide = _features(x)
    dy = _float_array("dy", dy)
    _rules.same_shape("dy", dy.shape, "x", x.shape)
    _rules.small_constant(eps)
    gamma = _parameter("gamma", gamma, x.shape[-1])
    ones = np.ones(x.shape[-1], x.dtype)
    return dy.astype(x_wide.dtype, copy=False), x_wide, ones if gamma is None else gamma, x.dtype


def _rows(x: Array) -> Array:
    """x as a matrix of rows, (N, d)."""
    return x.reshape(-1, x.shape[-1])


def _sum_over_rows(x: Array, gamma: Array) -> Array:
    """The gradient of a parameter, in the dtype of gamma."""
    return _sum(_rows(x), 0)[0].astype(gamma.dtype)
