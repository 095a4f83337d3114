"""Half precision: statistics in at least float32, results in the dtype of x, both checked against float64."""

import numpy as np
import pytest
import torch

import subnorm.numpy as sn
import subnorm.torch as st

NORMS = ["layer_norm", "rms_norm", "batch_norm"]
NUMPY_DTYPES = [np.float16, np.float32, np.float64]
TORCH_DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def bound(eps: float, exact: np.ndarray, size: float, amplified: float = 1.0) -> np.ndarray:
    """Largest error to allow in a result of machine epsilon `eps`, whose statistics were taken in float32.

    One rounding to the result's dtype: eps / 2 of the result. Before it some ten float32 operations on numbers
    up to `size`, at 2**-24 each, times `amplified` where centring cancels digits. One rounding more in half
    precision (gamma applied after the cast, a mean rounded on its way) breaks the bound.
    """
    return eps / 2 * np.abs(exact) + 16 * 2.0**-24 * size * amplified


def norm_inputs(name: str, rng: np.random.Generator, mean: float, std: float) -> list[np.ndarray]:
    x = rng.normal(mean, std, (64, 33))
    parameters = [rng.normal(1, 0.5, 33), rng.normal(size=33)]
    return [x, *parameters[: 1 if name == "rms_norm" else 2]]


# Mean and deviation: plain; squares beyond float16's 65504; a mean that swamps the deviation in bfloat16's 8 bits.
SCALES = [(0.0, 1.0), (300.0, 100.0), (200.0, 4.0)]


@pytest.mark.parametrize(("mean", "std"), SCALES)
@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
@pytest.mark.parametrize("name", NORMS)
def test_numpy_norms(name: str, dtype: type, mean: float, std: float, rng: np.random.Generator) -> None:
    rounded = [a.astype(dtype) for a in norm_inputs(name, rng, mean, std)]
    exact = getattr(sn, name)(*(a.astype(np.float64) for a in rounded))
    y = getattr(sn, name)(*rounded)
    assert y.dtype == dtype
    limit = bound(float(np.finfo(dtype).eps), exact, np.abs(exact).max(), 1 + mean / std)
    assert (np.abs(y.astype(np.float64) - exact) <= limit).all()


@pytest.mark.parametrize(("mean", "std"), SCALES)
@pytest.mark.parametrize("dtype", TORCH_DTYPES, ids=str)
@pytest.mark.parametrize("name", NORMS)
def test_torch_norms(name: str, dtype: torch.dtype, mean: float, std: float, rng: np.random.Generator) -> None:
    rounded = [torch.from_numpy(a).to(dtype) for a in norm_inputs(name, rng, mean, std)]
    exact = getattr(sn, name)(*(a.double().numpy() for a in rounded))
    y = getattr(st, name)(*rounded)
    assert y.dtype == dtype
    limit = bound(torch.finfo(dtype).eps, exact, np.abs(exact).max(), 1 + mean / std)
    assert (np.abs(y.double().numpy() - exact) <= limit).all()


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_a_wider_gamma_does_not_widen_the_result(name: str, dtype: type, rng: np.random.Generator) -> None:
    x, *parameters = norm_inputs(name, rng, 0, 1)
    rounded = x.astype(dtype)
    exact = getattr(sn, name)(rounded.astype(np.float64), *parameters)
    y = getattr(sn, name)(rounded, *parameters)
    y_torch = getattr(st, name)(torch.from_numpy(rounded), *map(torch.from_numpy, parameters))
    assert y.dtype == dtype
    assert y_torch.numpy().dtype == dtype
    limit = bound(float(np.finfo(dtype).eps), exact, np.abs(exact).max())
    assert (np.abs(y - exact) <= limit).all()
    assert (np.abs(y_torch.numpy() - exact) <= limit).all()


@pytest.mark.parametrize("gamma_dtype", [None, *NUMPY_DTYPES])
@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
@pytest.mark.parametrize("name", NORMS)
def test_backward(name: str, dtype: type, gamma_dtype: type | None, rng: np.random.Generator) -> None:
    x, dy = (rng.normal(mean, std, (64, 33)).astype(dtype) for mean, std in ((300, 100), (0, 1)))
    gamma = None if gamma_dtype is None else rng.normal(1, 0.5, 33).astype(gamma_dtype)
    wide = [None if a is None else a.astype(np.float64) for a in (dy, x, gamma)]
    exact = getattr(sn, f"{name}_backward")(*wide)
    results = getattr(sn, f"{name}_backward")(dy, x, gamma)

    assert results[0].dtype == dtype
    assert all(r.dtype == (gamma_dtype or dtype) for r in results[1:])
    for result, expected in zip(results, exact, strict=True):
        terms = 1 if result.ndim == 2 else 64  # a sum over 64 rows gathers 64 such errors
        info = np.finfo(result.dtype)
        # Near its smallest numbers a dtype rounds to a fixed step.
        limit = bound(float(info.eps), expected, np.abs(expected).max(), 4 * terms) + float(info.smallest_subnormal)
        assert (np.abs(result - expected) <= limit).all()


def test_a_large_mean_in_float32_costs_no_more_than_its_own_rounding(norms, rng: np.random.Generator) -> None:
    """Two passes: the mean is off by 1e4 * 2**-24 or so, the result by as much. One pass would be off by its square."""
    x = rng.normal(1e4, 1, (16, 64)).astype(np.float32)
    for name in ("layer_norm", "batch_norm"):
        exact = getattr(sn, name)(x.astype(np.float64))
        assert np.abs(getattr(norms, name)(x) - exact).max() < 4 * 1e4 * 2.0**-24


def test_softmax_in_float16(rng: np.random.Generator) -> None:
    x = rng.normal(0, 3, (5, 100)).astype(np.float16)
    exact = sn.softmax(x.astype(np.float64))
    y = sn.softmax(x)
    assert y.dtype == np.float16
    limit = bound(2.0**-10, exact, 1.0) + 2.0**-25  # half of float16's smallest step
    assert (np.abs(y - exact) <= limit).all()


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_numpy_block_keeps_the_dtype_of_x(placement: str, norm: str, dtype: type, rng: np.random.Generator) -> None:
    """Also with parameters in float64: they widen the sums, not the result."""
    block = st.TransformerBlock(8, 2, 12, placement, norm).double()
    params = {name: p.numpy() for name, p in block.state_dict().items()}
    under = {
        part: {k.removeprefix(part): v for k, v in params.items() if k.startswith(part)}
        for part in ("self_attn.", "feed_forward.")
    }
    x = rng.normal(size=(2, 5, 8)).astype(dtype)
    for f in (
        lambda v: sn.transformer_block(v, params, 2, placement, norm),
        lambda v: sn.multi_head_attention(v, under["self_attn."], 2),
        lambda v: sn.feed_forward(v, under["feed_forward."]),
    ):
        y, exact = f(x), f(x.astype(np.float64))
        assert y.dtype == dtype
        # Some hundred roundings at most between input and result, none of them beyond size 10.
        assert np.abs(y - exact).max() < 10 * float(np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", TORCH_DTYPES, ids=str)
@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("kind", [st.TransformerBlock, st.DecoderBlock])
def test_torch_block_keeps_the_dtype_of_x(kind: type, placement: str, norm: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    block = kind(8, 2, 12, placement, norm).to(dtype)
    given = [torch.randn(2, 5, 8).to(dtype), torch.randn(2, 3, 8).to(dtype)][: 1 + (kind is st.DecoderBlock)]
    y = block(*given)
    assert y.dtype == dtype
    exact = block.double()(*(tensor.double() for tensor in given))
    assert (y.double() - exact).abs().max() < 10 * torch.finfo(dtype).eps


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_numpy_decoder_keeps_the_dtype_of_x(dtype: type, rng: np.random.Generator) -> None:
    """Also with a memory in float64, which widens the sums and not the result."""
    params = {name: p.numpy() for name, p in st.DecoderBlock(8, 2, 12, "post").double().state_dict().items()}
    x, memory = rng.normal(size=(2, 5, 8)).astype(dtype), rng.normal(size=(2, 3, 8))
    y = sn.decoder_block(x, memory, params, 2, "post")
    exact = sn.decoder_block(x.astype(np.float64), memory, params, 2, "post")
    assert y.dtype == dtype
    assert np.abs(y - exact).max() < 10 * float(np.finfo(dtype).eps)
