"""How far the norms are from the exact result: rows whose mean is far from 0, long rows, many rows, huge numbers.

The exact result is computed with 70 decimal digits. The unit of an error is the machine epsilon of the input's dtype,
times the largest entry of the exact row.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm.numpy import blocked
from subnorm_lab.experiments.accuracy import EPS, error

LIMIT = 4  # machine epsilons, as the docstring promises

Rows = np.ndarray
Norm = Callable[[Rows], Rows]


def on_tensors(f: Callable[[torch.Tensor], torch.Tensor]) -> Norm:
    return lambda x: f(torch.from_numpy(x)).detach().numpy()


def transposed(norm: Norm) -> Norm:
    """A norm over the rows of a matrix, as one over its features."""
    return lambda x: norm(np.ascontiguousarray(x.T)).T


CENTRED = {
    "sn": sn.layer_norm,
    "sn, transposed in memory": lambda x: sn.layer_norm(np.asfortranarray(x)),
    "blocked": blocked.layer_norm,
    "st": on_tensors(st.layer_norm),
    "sn.batch_norm": transposed(sn.batch_norm),
    "st.batch_norm": transposed(on_tensors(st.batch_norm)),
}
UNCENTRED = {
    "sn": sn.rms_norm,
    "blocked": blocked.rms_norm,
    "st": on_tensors(st.rms_norm),
    "module": on_tensors(lambda x: st.RMSNorm(x.shape[-1]).to(x.dtype)(x)),
}


# the names vary fastest, so that the exact result is computed once for all
@pytest.mark.parametrize("name", CENTRED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mean", [0.0, 1.0, -1e3, 1e6])
@pytest.mark.parametrize("d", [3, 768, 20_000])
def test_any_mean(name: str, d: int, mean: float, dtype: type, rng: np.random.Generator) -> None:
    x = (mean + rng.standard_normal((2, d))).astype(dtype)
    assert error(CENTRED[name], x, centred=True) < LIMIT


@pytest.mark.parametrize("name", UNCENTRED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [3, 768, 2**14, 2**14 + 1, 2**18])
def test_any_number_of_features(name: str, d: int, dtype: type, rng: np.random.Generator) -> None:
    x = rng.standard_normal((1 + 2**16 // d, d)).astype(dtype)[: 1 if d > 768 else None]
    assert error(UNCENTRED[name], x, centred=False) < LIMIT


@pytest.mark.parametrize("name", UNCENTRED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [768, 8192])
def test_rows_whose_squares_hardly_vary(name: str, d: int, dtype: type, rng: np.random.Generator) -> None:
    """Every rounding of such a sum can go the same way."""
    rows = 1 + 2**16 // d
    x = np.concatenate([np.full((rows, d), 1 / 3), 1e6 + rng.standard_normal((rows, d))]).astype(dtype)
    assert error(UNCENTRED[name], x, centred=False) < LIMIT


def test_the_promise_is_more_than_pytorch_keeps(rng: np.random.Generator) -> None:
    """PyTorch's kernel subtracts the mean once. If that changes, the docstring of st.LayerNorm has to."""
    x = (1e6 + rng.standard_normal((2, 768))).astype(np.float32)
    kernel = error(on_tensors(lambda x: F.layer_norm(x, (768,), eps=EPS)), x, centred=True)
    module = error(on_tensors(st.LayerNorm(768)), x, centred=True)
    assert module == kernel
    assert 1_000 < kernel < 1e6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [3, 7, 768, 1000])
@pytest.mark.parametrize("name", CENTRED)
def test_a_constant_row_has_no_deviations(name: str, d: int, dtype: type, rng: np.random.Generator) -> None:
    constants = (rng.uniform(-1, 1, (96, 1)) * 10.0 ** rng.integers(-3, 6, (96, 1))).astype(dtype)
    assert (CENTRED[name](np.repeat(constants, d, axis=1)) == 0).all()


@pytest.mark.parametrize("name", ["layer_norm", "batch_norm"])
def test_the_gradients_of_a_constant_row(name: str, rng: np.random.Generator) -> None:
    """xhat is 0: dgamma is 0, and dx is dxhat less its mean, over the root of eps."""
    constants = rng.uniform(-1e5, 1e5, 96).astype(np.float32)
    x = np.repeat(constants[:, None], 768, axis=1)
    x = x.T if name == "batch_norm" else x
    dy = rng.standard_normal(x.shape).astype(np.float32)
    dx, dgamma, dbeta = getattr(sn, f"{name}_backward")(dy, x, eps=EPS)
    wide = dy.astype(np.float64)
    axis = 0 if name == "batch_norm" else -1
    np.testing.assert_allclose(dx, (wide - wide.mean(axis, keepdims=True)) / EPS**0.5, rtol=1e-6, atol=1e-4)
    assert (dgamma == 0).all()
    np.testing.assert_allclose(dbeta, wide.sum(0), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_over_a_million_rows(dtype: type, rng: np.random.Generator) -> None:
    """dgamma and dbeta are sums over all rows. Added one after the other, they lose three digits."""
    x, dy = (rng.uniform(0, 1, (1_000_000, 2)).astype(dtype) for _ in range(2))
    _, dgamma, dbeta = sn.layer_norm_backward(dy, x)
    xhat = sn.layer_norm(x.astype(np.float64))
    exact_dgamma, exact_dbeta = ([math.fsum(column.tolist()) for column in terms.T] for terms in (dy * xhat, dy))
    eps = np.finfo(dtype).eps
    scale = np.abs(dy * xhat).sum(0)  # dgamma's terms cancel: its error is measured beside their sizes
    assert (np.abs(dgamma - exact_dgamma) <= LIMIT * eps * scale).all()
    assert (np.abs(dbeta - exact_dbeta) <= LIMIT * eps * np.abs(exact_dbeta)).all()


def test_sizes_near_overflow_and_underflow() -> None:
    """In float32 a square overflows above 1.8e19 and is 0 below 1e-23; float64 holds both."""
    for size in (1e-25, 1e25, 1e38):
        x = size * np.array([1, 2, 3], np.float32)
        np.testing.assert_allclose(sn.layer_norm(x, eps=0), np.array([-1, 0, 1]) * 1.5**0.5, atol=1e-6)
        np.testing.assert_allclose(sn.rms_norm(x, eps=0), np.array([1, 2, 3]) / (14 / 3) ** 0.5, rtol=1e-6)
        dx, _, _ = sn.layer_norm_backward(np.array([1, 0, 0], np.float32), x, eps=0)
        np.testing.assert_allclose(dx * size, np.array([1, -2, 1]) / 6 * 1.5**0.5, rtol=1e-5)


def test_where_the_libraries_differ_near_overflow() -> None:
    """As the docstrings say: the function on tensors gives 0, PyTorch's kernel NaN."""
    x = torch.tensor([1e20, 2e20, 3e20])
    assert (st.layer_norm(x) == 0).all()
    assert st.LayerNorm(3)(x).isnan().all()
