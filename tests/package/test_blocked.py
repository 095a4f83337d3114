"""The blocked norms against the plain ones: every shape and dtype, in place and with out=."""

import tracemalloc

import numpy as np
import pytest

import subnorm.numpy as sn
from subnorm.numpy import blocked

NORMS = ["layer_norm", "rms_norm"]
# (rows, features): one row, fewer rows than a block, an incomplete last block, rows longer than a block.
SHAPES = [(5,), (1, 1), (2, 3, 33), (40, 1000), (64, 4096), (131, 1000), (3, 70001), (0, 4), (2, 0, 4)]


def inputs(name: str, shape: tuple[int, ...], rng: np.random.Generator, mean: float = 1.0) -> list[np.ndarray]:
    parameters = [rng.normal(1, 0.5, shape[-1]), rng.normal(size=shape[-1])]
    return [rng.normal(mean, 2, shape), *parameters[: 1 if name == "rms_norm" else 2]]


@pytest.mark.parametrize("eps", [1e-5, 0.1])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", NORMS)
def test_the_same_as_plain(name: str, shape: tuple[int, ...], eps: float, rng: np.random.Generator) -> None:
    x, *parameters = inputs(name, shape, rng)
    before, expected = x.copy(), getattr(sn, name)(x, *parameters, eps)
    y = getattr(blocked, name)(x, *parameters, eps)
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12, strict=True)
    np.testing.assert_array_equal(x, before)

    assert getattr(blocked, name)(x, *parameters, eps, out=x) is x  # in place
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("mean", [0.0, 200.0])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", NORMS)
def test_dtypes_and_a_large_mean(name: str, dtype: type, mean: float, rng: np.random.Generator) -> None:
    """Against float64; as in test_dtypes: one rounding to the dtype, and float32 statistics before it."""
    rounded = [a.astype(dtype) for a in inputs(name, (150, 1000), rng, mean)]
    exact = getattr(sn, name)(*(a.astype(np.float64) for a in rounded))
    y = getattr(blocked, name)(*rounded)
    assert y.dtype == dtype
    limit = np.finfo(dtype).eps / 2 * np.abs(exact) + 16 * 2.0**-24 * np.abs(exact).max() * (1 + mean / 2)
    assert (np.abs(y.astype(np.float64) - exact) <= limit).all()


@pytest.mark.parametrize("name", NORMS)
def test_without_parameters_lists_strides_and_no_eps(name: str, rng: np.random.Generator) -> None:
    plain, fast = getattr(sn, name), getattr(blocked, name)
    x = rng.normal(size=(6, 100, 40)).transpose(1, 2, 0)[::2]  # neither contiguous nor ordered
    np.testing.assert_allclose(fast(x, eps=0), plain(x, eps=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fast(x), plain(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fast([[1.0, 2.0, 4.0]], [1.0, 2.0, 3.0]), plain([[1.0, 2.0, 4.0]], [1.0, 2.0, 3.0]))
    with np.errstate(all="ignore"):
        assert np.isnan(fast(np.zeros((2, 3)), eps=0)).all()


def test_a_constant_row_becomes_beta() -> None:
    np.testing.assert_array_equal(blocked.layer_norm(np.full((3, 5), 7.5), None, np.arange(5.0)), [np.arange(5.0)] * 3)
    np.testing.assert_array_equal(blocked.rms_norm(np.zeros((3, 5))), np.zeros((3, 5)))


@pytest.mark.parametrize(
    "out",
    [
        np.empty((4, 3), np.float32),
        np.empty((3, 3), np.float32),
        np.empty((3, 4), np.float16),
        np.empty((3, 4), np.float64),
        np.empty((4, 3), np.float32).T,
    ],
    ids=["more rows", "fewer features", "narrower", "wider", "strided"],
)
def test_out_must_take_the_result_as_it_is(out: np.ndarray) -> None:
    for norm in (blocked.layer_norm, blocked.rms_norm):
        with pytest.raises(ValueError, match="out must be a contiguous array of the shape and dtype of x"):
            norm(np.ones((3, 4), np.float32), out=out)


@pytest.mark.parametrize(("shape", "kilobytes"), [((8192, 64), 256), ((6, 70_000), 1094)], ids=["rows", "one row"])
def test_a_block_and_nothing_else_is_kept(shape: tuple[int, int], kilobytes: int) -> None:
    """Two arrays of float64, 256 KB together, as the module says; a row that is longer is a block."""
    x = np.ones(shape, np.float32)
    tracemalloc.start()
    try:
        blocked.layer_norm(x, out=x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kilobytes <= peak / 1024 < 1.5 * kilobytes


@pytest.mark.parametrize("name", NORMS)
def test_inputs_keep_the_rules_of_the_plain_norms(name: str) -> None:
    norm, x = getattr(blocked, name), np.ones((3, 4))
    with pytest.raises(TypeError, match="x must hold real floating-point numbers"):
        norm(np.ones((3, 4), int))
    with pytest.raises(ValueError, match="with d at least 1"):
        norm(np.ones((3, 0)))
    with pytest.raises(ValueError, match="eps must be a finite number"):
        norm(x, eps=-1.0)
    with pytest.raises(ValueError, match=r"gamma must have shape \(4,\)"):
        norm(x, np.ones(3))
    with pytest.raises(ValueError, match=r"beta must have shape \(4,\)"):
        blocked.layer_norm(x, None, np.ones(3))
