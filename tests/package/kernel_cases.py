"""The fused kernels against the readable functions in float64, on a GPU or in Triton's interpreter.

`test_kernels.py` runs this file in a process of its own, because Triton reads the variable once. One case by hand:

    TRITON_INTERPRET=1 python -m pytest tests/package/kernel_cases.py -k constant

Without the variable the cases run on the GPU. The interpreter runs a kernel in NumPy. It finds wrong numbers; it does
not find a race, nor a read past the end of an array, and it cuts a result in bfloat16 off where a GPU rounds it.
"""

import itertools

import numpy as np
import pytest
import torch
import triton
from torch import Tensor

import subnorm.numpy as sn
from subnorm.torch import kernels

DEVICE = "cpu" if triton.knobs.runtime.interpret else "cuda"

NORMS = ["layer_norm", "rms_norm"]
# One row, one feature, no rows; ragged; several tiles to a program, of two rows and of one; powers of two; wide.
SHAPES = [(5,), (1, 1), (0, 8), (2, 3, 7), (19, 300), (3, 5000), (3, 64), (2, 4096)]
CASES = [
    *((torch.float32, shape) for shape in SHAPES),
    *itertools.product([torch.float16, torch.bfloat16, torch.float64], [(2, 3, 7), (3, 5000)]),
]


def wide(value: Tensor) -> np.ndarray:
    return value.detach().cpu().double().numpy()


def close(result: Tensor, exact: np.ndarray, amplified: float = 1.0, terms: float = 0.0) -> None:
    """One rounding to the dtype of the result, and before it some ten in its statistics' dtype, times `amplified`.

    They are of the size of the largest entry, or of `terms` that cancel: a GPU rounds a product and a sum at once.
    """
    ulp = torch.finfo(result.dtype).eps
    rounding = ulp if DEVICE == "cpu" and result.dtype is torch.bfloat16 else ulp / 2
    before = min(ulp, 2.0**-23) / 2
    smallest = torch.finfo(result.dtype).smallest_normal * ulp
    assert tuple(result.shape) == exact.shape
    limit = rounding * np.abs(exact) + 16 * before * np.abs(exact).max(initial=terms) * amplified + smallest
    assert (np.abs(wide(result) - exact) <= limit).all()


def draw(rng: np.random.Generator, shape: tuple[int, ...], mean: float, std: float, dtype: torch.dtype) -> Tensor:
    return torch.from_numpy(rng.normal(mean, std, shape)).to(dtype).to(DEVICE).requires_grad_()


def parameters(rng: np.random.Generator, name: str, d: int, dtype: torch.dtype) -> list[Tensor]:
    return [draw(rng, (d,), 1, 0.5, dtype), draw(rng, (d,), 0, 1, dtype)][: 2 if name == "layer_norm" else 1]


def forward(name: str, h: Tensor, gamma_beta: list[Tensor], eps: float) -> np.ndarray:
    return getattr(sn, name)(wide(h), *map(wide, gamma_beta), eps=eps)


def backward(name: str, dy: Tensor, h: Tensor, gamma: Tensor | None, eps: float) -> tuple[np.ndarray, ...]:
    return getattr(sn, f"{name}_backward")(wide(dy), wide(h), None if gamma is None else wide(gamma), eps)


@pytest.mark.parametrize(("dtype", "shape"), CASES, ids=str)
@pytest.mark.parametrize("name", NORMS)
def test_norm(name: str, dtype: torch.dtype, shape: tuple[int, ...], rng) -> None:
    """Numbers whose squares are beyond float16; the variance of a row is of the size of eps."""
    x, dy, params = (
        draw(rng, shape, 300, 100, dtype),
        draw(rng, shape, 0, 1, dtype),
        parameters(rng, name, shape[-1], dtype),
    )
    y = getattr(kernels, name)(x, *params, eps=1e4)
    assert y.dtype == dtype
    close(y, forward(name, x, params, 1e4), 4)
    y.backward(dy)
    terms = np.abs(wide(dy) * wide(params[0])).max(initial=0) / 100  # rstd is at most 1 / sqrt(eps)
    for value, exact in zip([x, *params], backward(name, dy, x, params[0], 1e4), strict=True):
        assert value.grad.dtype == dtype
        close(value.grad, exact, 16 * (1 + len(x)), terms if value is x else 0)


@pytest.mark.parametrize(("dtype", "shape"), CASES, ids=str)
@pytest.mark.parametrize("name", NORMS)
def test_sum_and_norm(name: str, dtype: torch.dtype, shape: tuple[int, ...], rng) -> None:
    x, f, dy, dh = (draw(rng, shape, mean, 1, dtype) for mean in (2, 1, 0, 0))
    params = parameters(rng, name, shape[-1], dtype)
    y, h = getattr(kernels, f"add_{name}")(x, f, *params, eps=0.1)
    assert (y.dtype, h.dtype) == (dtype, dtype)
    close(h, wide(x) + wide(f))
    close(y, forward(name, h, params, 0.1), 4)  # of h as it is rounded, which the backward pass will read
    torch.autograd.backward((y, h), (dy, dh))
    dx, *exact = backward(name, dy, h, params[0], 0.1)
    close(x.grad, dx + wide(dh), 16)
    assert torch.equal(x.grad, f.grad)
    for value, expected in zip(params, exact, strict=True):
        close(value.grad, expected, 16 * (1 + len(x)))


@pytest.mark.parametrize("eps", [1e-5, 0.1])
@pytest.mark.parametrize("name", NORMS)
def test_constant_rows(name: str, eps: float, rng) -> None:
    """Under the root there is nothing but eps; of a row of zeros also in RMSNorm."""
    x = torch.tensor([[0.0] * 6, [3.0] * 6], dtype=torch.float64, device=DEVICE, requires_grad=True)
    dy, params = draw(rng, (2, 6), 0, 1, torch.float64), parameters(rng, name, 6, torch.float64)
    y = getattr(kernels, name)(x, *params, eps=eps)
    close(y, forward(name, x, params, eps))
    y.backward(dy)
    close(x.grad, backward(name, dy, x, params[0], eps)[0], 4)


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero):RuntimeWarning")  # the interpreter's
@pytest.mark.parametrize("name", NORMS)
def test_without_eps_a_row_of_zeros_is_nan_and_no_other(name: str, rng) -> None:
    x = draw(rng, (3, 5), 1, 1, torch.float64)
    x.data[1] = 0
    y = getattr(kernels, name)(x, eps=0)
    y.sum().backward()
    for value in (y, x.grad):
        assert value[1].isnan().all()
        assert value[[0, 2]].isfinite().all()
    close(y[::2], forward(name, x[::2], [], 0), 4)


def test_a_large_mean_costs_no_more_than_its_own_rounding(rng) -> None:
    """Two passes, and no lane past the end of a row: either fault would cause an error of the squared mean."""
    x = draw(rng, (4, 33), 1e4, 1, torch.float32)
    y = kernels.layer_norm(x)
    assert np.abs(wide(y) - forward("layer_norm", x, [], 1e-5)).max() < 4 * 1e4 * 2.0**-24


@pytest.mark.parametrize("name", NORMS)
def test_any_layout_in_memory(name: str, rng) -> None:
    x, f = (draw(rng, (6, 10), 1, 2, torch.float64).t()[::2, 1:] for _ in range(2))
    gamma = draw(rng, (10,), 1, 0.5, torch.float64)[::2]
    for value in (x, f, gamma):
        value.retain_grad()
    y, h = getattr(kernels, f"add_{name}")(x, f, gamma)
    close(y, forward(name, h, [gamma], 1e-5), 4)
    (y.sum() + h[0].sum()).backward()  # gradients that are one number, shown at every place
    dx, dgamma, *_ = backward(name, torch.ones_like(h), h, gamma, 1e-5)
    close(x.grad, dx + np.eye(5)[:, :1], 16)
    close(gamma.grad, dgamma, 64)


@pytest.mark.parametrize("name", NORMS)
def test_only_the_gradients_that_are_asked_for(name: str, rng) -> None:
    x, f = (draw(rng, (3, 7), 0, 1, torch.float64) for _ in range(2))
    gamma = draw(rng, (7,), 1, 0.5, torch.float64)
    add = getattr(kernels, f"add_{name}")
    y, h = add(x, f.detach(), gamma.detach())
    (dx,) = torch.autograd.grad(y.sum(), x, retain_graph=True)  # nothing comes down the residual stream
    close(dx, backward(name, torch.ones_like(h), h, gamma, 1e-5)[0], 16)
    (dx,) = torch.autograd.grad(h.sum(), x)  # nothing comes through the norm
    close(dx, np.ones((3, 7)))

    with torch.no_grad():
        assert not add(x, f, gamma)[0].requires_grad
    (dgamma,) = torch.autograd.grad(getattr(kernels, name)(x.detach(), gamma).sum(), gamma)
    close(dgamma, backward(name, torch.ones_like(x), x, gamma, 1e-5)[1], 64)


@pytest.mark.parametrize(("x", "f", "gamma"), [*itertools.permutations([torch.float16, torch.float32, torch.float64])])
def test_mixed_dtypes(x: torch.dtype, f: torch.dtype, gamma: torch.dtype, rng) -> None:
    """The sum is as wide as the wider of x and f, and so are the results; a gradient is as wide as its tensor."""
    values = [draw(rng, (4, 6), 2, 1, x), draw(rng, (4, 6), 2, 1, f), draw(rng, (6,), 1, 0.5, gamma)]
    y, h = kernels.add_layer_norm(*values)
    assert y.dtype == h.dtype == torch.promote_types(x, f)
    close(y, forward("layer_norm", h, values[2:], 1e-5), 16)
    y.backward(dy := draw(rng, (4, 6), 0, 1, y.dtype))
    dx, dgamma, _dbeta = backward("layer_norm", dy, h, values[2], 1e-5)
    for value, exact in zip(values, (dx, dx, dgamma), strict=True):
        assert value.grad.dtype == value.dtype
        error = max(torch.finfo(dtype).eps for dtype in (value.dtype, h.dtype))
        np.testing.assert_allclose(wide(value.grad), exact, rtol=2 * error, atol=16 * error)


def test_a_gain_wider_than_the_stream_keeps_its_dtype(rng) -> None:
    """On the pass itself: autograd would widen a rounded gradient."""
    h, gamma = draw(rng, (4, 6), 2, 1, torch.float16), draw(rng, (6,), 1, 0.5, torch.float32)
    y, _h, mean, rstd = kernels.add_norm_forward(h, None, gamma, None, 1e-5, centred=True)
    _dx, *gradients = kernels.add_norm_backward(torch.ones_like(y), None, h, gamma, mean, rstd)
    for result, exact in zip(gradients, backward("layer_norm", torch.ones_like(h), h, gamma, 1e-5)[1:], strict=True):
        assert result.dtype is torch.float32
        close(result, exact, 64)


@pytest.mark.parametrize("name", NORMS)
def test_there_is_no_second_derivative(name: str, rng) -> None:
    x = draw(rng, (2, 5), 0, 1, torch.float64)
    (dx,) = torch.autograd.grad(getattr(kernels, name)(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        dx.sum().backward()


def test_a_transform_of_functions_is_refused(rng) -> None:
    with pytest.raises(RuntimeError, match="functorch transforms"):
        torch.func.vmap(kernels.layer_norm)(draw(rng, (2, 3, 5), 0, 1, torch.float64))


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")  # PyTorch's, as it goes on after one
def test_a_compiled_model_may_call_a_kernel(rng) -> None:
    x, f = (draw(rng, (2, 5), 0, 1, torch.float64) for _ in range(2))

    def model(x: Tensor, f: Tensor) -> Tensor:
        y, h = kernels.add_layer_norm(2 * x, f)
        return (y * h).sum()

    expected = torch.autograd.grad(model(x, f), (x, f))
    gradients = torch.autograd.grad(torch.compile(model, backend="eager")(x, f), (x, f))
    assert all(map(torch.equal, gradients, expected))


def test_what_a_kernel_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(2, 4, device=DEVICE)
    with pytest.raises(TypeError, match="torch tensors"):
        kernels.layer_norm(np.ones((2, 4)))
    with pytest.raises(TypeError, match="floating-point"):
        kernels.rms_norm(x.long())
    with pytest.raises(ValueError, match=r"shape \(\.\.\., d\)"):
        kernels.layer_norm(x[0, 0])
    with pytest.raises(ValueError, match="f must have the shape of x"):
        kernels.add_rms_norm(x, x[0])
    with pytest.raises(ValueError, match=r"beta must have shape \(4,\)"):
        kernels.layer_norm(x, x[0], x)
    with pytest.raises(ValueError, match="eps must be"):
        kernels.rms_norm(x, eps=-1)
    with pytest.raises(ValueError, match="at most 16384 features"):
        kernels.rms_norm(torch.ones(1, 16385, device=DEVICE))
    monkeypatch.setattr(triton.knobs.runtime, "interpret", False)
    with pytest.raises(ValueError, match="on a CUDA GPU; got one on cpu"):
        kernels.layer_norm(x.cpu())
