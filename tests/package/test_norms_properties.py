"""Properties of the norms for every input, in either library, with examples drawn by hypothesis."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import subnorm.numpy as sn

# With eps at least 1e-3, rstd is at most 32; times rounding (1e-16) of sums of entries up to 100: under 1e-10.
close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10, strict=True)

shapes = array_shapes(min_dims=1, max_dims=3, max_side=5)
any_eps = st.floats(1e-3, 10)
#: Any input, including rows that are constant, zero, or equal to one another.
any_x = arrays(np.float64, shapes, elements=st.floats(-100, 100))
seeds = st.integers(0, 2**32 - 1)

NORMS = ["layer_norm", "rms_norm", "batch_norm"]
ROW_NORMS = ["layer_norm", "rms_norm"]


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(1, 2, shape)


@pytest.mark.parametrize("name", NORMS)
@given(x=any_x, eps=any_eps)
def test_shape_and_dtype_are_kept(name: str, norms: SimpleNamespace, x: np.ndarray, eps: float) -> None:
    for dtype in (np.float32, np.float64):
        y = getattr(norms, name)(x.astype(dtype), None, *([] if name == "rms_norm" else [None]), eps)
        assert y.shape == x.shape
        assert y.dtype == dtype
        assert np.isfinite(y).all()


@given(x=any_x, eps=any_eps)
def test_layer_norm_has_mean_0_and_variance_just_under_1(norms: SimpleNamespace, x: np.ndarray, eps: float) -> None:
    y, var = norms.layer_norm(x, None, None, eps), x.var(axis=-1)
    close(y.mean(axis=-1), np.zeros(x.shape[:-1])[()])
    close(y.var(axis=-1), var / (var + eps))


@given(x=any_x, eps=any_eps)
def test_batch_norm_has_mean_0_and_variance_just_under_1(norms: SimpleNamespace, x: np.ndarray, eps: float) -> None:
    rows, var = tuple(range(x.ndim - 1)), x.var(axis=tuple(range(x.ndim - 1)))
    y = norms.batch_norm(x, None, None, eps)
    close(y.mean(axis=rows), np.zeros(x.shape[-1]))
    close(y.var(axis=rows), var / (var + eps))


@given(x=any_x, eps=any_eps)
def test_rms_norm_has_mean_square_just_under_1(norms: SimpleNamespace, x: np.ndarray, eps: float) -> None:
    mean_square = (x * x).mean(axis=-1)
    close((norms.rms_norm(x, None, eps) ** 2).mean(axis=-1), mean_square / (mean_square + eps))


@given(x=any_x, eps=any_eps, shift=st.floats(-100, 100))
def test_layer_norm_forgets_a_shift(norms: SimpleNamespace, x: np.ndarray, eps: float, shift: float) -> None:
    close(norms.layer_norm(x + shift, None, None, eps), norms.layer_norm(x, None, None, eps))


@given(x=any_x, eps=any_eps, shift=arrays(np.float64, 5, elements=st.floats(-100, 100)))
def test_batch_norm_forgets_a_shift_of_each_feature(
    norms: SimpleNamespace, x: np.ndarray, eps: float, shift: np.ndarray
) -> None:
    close(norms.batch_norm(x + shift[: x.shape[-1]], None, None, eps), norms.batch_norm(x, None, None, eps))


@pytest.mark.parametrize("name", NORMS)
@given(x=any_x, eps=any_eps, scale=st.floats(0.1, 10), sign=st.sampled_from([-1, 1]))
def test_a_norm_forgets_a_scale_that_eps_shares(
    name: str, norms: SimpleNamespace, x: np.ndarray, eps: float, scale: float, sign: int
) -> None:
    """f(a x, a² eps) = sign(a) f(x, eps): eps is in units of x squared, inside the root."""
    none = [None] if name == "rms_norm" else [None, None]
    f = getattr(norms, name)
    close(f(sign * scale * x, *none, scale**2 * eps), sign * f(x, *none, eps))


@pytest.mark.parametrize("name", ROW_NORMS)
@given(seed=seeds, scales=arrays(np.float64, (3, 1), elements=st.floats(0.01, 100)))
def test_without_eps_every_row_forgets_its_own_scale(
    name: str, norms: SimpleNamespace, seed: int, scales: np.ndarray
) -> None:
    x, none = normal(seed, 3, 8), [None] if name == "rms_norm" else [None, None]
    close(getattr(norms, name)(scales * x, *none, 0.0), getattr(norms, name)(x, *none, 0.0))


@pytest.mark.parametrize("name", ROW_NORMS)
@given(x=any_x, seed=seeds)
def test_a_row_does_not_depend_on_the_others(name: str, norms: SimpleNamespace, x: np.ndarray, seed: int) -> None:
    x = np.atleast_2d(x)
    others = x.copy()
    others[1:] = normal(seed, *x[1:].shape)
    close(getattr(norms, name)(others)[0], getattr(norms, name)(x)[0])
    close(getattr(norms, name)(x[0]), getattr(norms, name)(x)[0])


# Backward passes


@pytest.mark.parametrize("name", NORMS)
@given(x=any_x, eps=any_eps, seed=seeds)
def test_backward_is_linear_and_keeps_shapes(name: str, x: np.ndarray, eps: float, seed: int) -> None:
    backward = getattr(sn, f"{name}_backward")
    gamma = normal(seed, x.shape[-1])
    dy, other = normal(seed + 1, 2, *x.shape)
    results = [backward(v, x, gamma, eps) for v in (dy, other, dy - 2 * other)]
    for first, second, both in zip(*results, strict=True):
        close(both, first - 2 * second, rtol=1e-8, atol=1e-8)
    assert [r.shape for r in results[0]] == [x.shape, *[gamma.shape] * (len(results[0]) - 1)]
