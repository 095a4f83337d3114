"""The fused kernels against the readable functions in float64, and what the compiler makes of them.

Without a GPU Triton's interpreter runs them, in NumPy. It finds wrong numbers; it does not find a race, nor a read
past the end of an array, and it cuts a result in bfloat16 off where a GPU rounds it.
"""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from parts import need
from torch import Tensor

import subnorm.numpy as sn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # read once, by the first import of Triton

NORMS = ["layer_norm", "rms_norm"]
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
# One row, one feature, no rows; ragged; several tiles to a program, of one row and of two; a power of two; wide.
SHAPES = [(5,), (1, 1), (0, 8), (2, 3, 7), (9, 1000), (19, 300), (3, 64), (2, 4096)]


@pytest.fixture(scope="module")
def kernels() -> ModuleType:
    need("triton")
    from subnorm.torch import kernels

    return kernels


def wide(value: Tensor) -> np.ndarray:
    return value.detach().cpu().double().numpy()


def close(result: Tensor, exact: np.ndarray, amplified: float = 1.0) -> None:
    """One rounding to the dtype of the result, and before it some ten in its statistics' dtype, times `amplified`."""
    ulp = torch.finfo(result.dtype).eps
    rounding = ulp if DEVICE == "cpu" and result.dtype is torch.bfloat16 else ulp / 2
    before = min(ulp, 2.0**-23) / 2
    smallest = torch.finfo(result.dtype).smallest_normal * ulp
    assert tuple(result.shape) == exact.shape
    limit = rounding * np.abs(exact) + 16 * before * np.abs(exact).max(initial=0) * amplified + smallest
    assert (np.abs(wide(result) - exact) <= limit).all()


def draw(rng: np.random.Generator, shape: tuple[int, ...], mean: float, std: float, dtype: torch.dtype) -> Tensor:
    return torch.from_numpy(rng.normal(mean, std, shape)).to(dtype).to(DEVICE).requires_grad_()


def parameters(rng: np.random.Generator, name: str, d: int, dtype: torch.dtype) -> list[Tensor]:
    return [draw(rng, (d,), 1, 0.5, dtype), draw(rng, (d,), 0, 1, dtype)][: 2 if name == "layer_norm" else 1]


def forward(name: str, h: Tensor, gamma_beta: list[Tensor], eps: float) -> np.ndarray:
    return getattr(sn, name)(wide(h), *map(wide, gamma_beta), eps=eps)


def backward(name: str, dy: Tensor, h: Tensor, gamma: Tensor | None, eps: float) -> tuple[np.ndarray, ...]:
    return getattr(sn, f"{name}_backward")(wide(dy), wide(h), None if gamma is None else wide(gamma), eps)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NORMS)
def test_norm(kernels: ModuleType, name: str, dtype: torch.dtype, shape: tuple[int, ...], rng) -> None:
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
    for value, exact in zip([x, *params], backward(name, dy, x, params[0], 1e4), strict=True):
        assert value.grad.dtype == dtype
        close(value.grad, exact, 16 * (1 + len(x)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NORMS)
def test_sum_and_norm(kernels: ModuleType, name: str, dtype: torch.dtype, shape: tuple[int, ...], rng) -> None:
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
def test_constant_rows(kernels: ModuleType, name: str, eps: float, rng) -> None:
    """Under the root there is nothing but eps; of a row of zeros also in RMSNorm."""
    x = torch.tensor([[0.0] * 6, [3.0] * 6], dtype=torch.float64, device=DEVICE, requires_grad=True)
    dy, params = draw(rng, (2, 6), 0, 1, torch.float64), parameters(rng, name, 6, torch.float64)
    y = getattr(kernels, name)(x, *params, eps=eps)
    close(y, forward(name, x, params, eps))
    y.backward(dy)
    close(x.grad, backward(name, dy, x, params[0], eps)[0], 4)


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero):RuntimeWarning")  # the interpreter's
@pytest.mark.parametrize("name", NORMS)
def test_without_eps_a_row_of_zeros_is_nan_and_no_other(kernels: ModuleType, name: str, rng) -> None:
    x = draw(rng, (3, 5), 1, 1, torch.float64)
    x.data[1] = 0
    y = getattr(kernels, name)(x, eps=0)
    y.sum().backward()
    for value in (y, x.grad):
        assert value[1].isnan().all()
        assert value[[0, 2]].isfinite().all()
    close(y[::2], forward(name, x[::2], [], 0), 4)


def test_a_large_mean_costs_no_more_than_its_own_rounding(kernels: ModuleType, rng) -> None:
    """Two passes, and no lane past the end of a row: either fault costs the square of the mean."""
    x = draw(rng, (4, 33), 1e4, 1, torch.float32)
    y = kernels.layer_norm(x)
    assert np.abs(wide(y) - forward("layer_norm", x, [], 1e-5)).max() < 4 * 1e4 * 2.0**-24


@pytest.mark.parametrize("name", NORMS)
def test_any_layout_in_memory(kernels: ModuleType, name: str, rng) -> None:
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
def test_only_the_gradients_that_are_asked_for(kernels: ModuleType, name: str, rng) -> None:
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
def test_mixed_dtypes(kernels: ModuleType, x: torch.dtype, f: torch.dtype, gamma: torch.dtype, rng) -> None:
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


@pytest.mark.parametrize("name", NORMS)
def test_there_is_no_second_derivative(kernels: ModuleType, name: str, rng) -> None:
    x = draw(rng, (2, 5), 0, 1, torch.float64)
    (dx,) = torch.autograd.grad(getattr(kernels, name)(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        dx.sum().backward()


def test_a_transform_of_functions_is_refused(kernels: ModuleType, rng) -> None:
    with pytest.raises(RuntimeError, match="functorch transforms"):
        torch.func.vmap(kernels.layer_norm)(draw(rng, (2, 3, 5), 0, 1, torch.float64))


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")  # PyTorch's, as it goes on after one
def test_a_compiled_model_may_call_a_kernel(kernels: ModuleType, rng) -> None:
    x, f = (draw(rng, (2, 5), 0, 1, torch.float64) for _ in range(2))

    def model(x: Tensor, f: Tensor) -> Tensor:
        y, h = kernels.add_layer_norm(2 * x, f)
        return (y * h).sum()

    expected = torch.autograd.grad(model(x, f), (x, f))
    gradients = torch.autograd.grad(torch.compile(model, backend="eager")(x, f), (x, f))
    assert all(map(torch.equal, gradients, expected))


def test_what_a_kernel_does_not_take(kernels: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr(sys.modules["triton"].knobs.runtime, "interpret", False)
    with pytest.raises(ValueError, match="on a CUDA GPU; got one on cpu"):
        kernels.layer_norm(x.cpu())


# What the compiler makes of them


@pytest.fixture(scope="module")
def programs(kernels: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment |= {
        "TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("triton")),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    script = Path(__file__).with_name("compile_kernels.py")
    run = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def test_memory_is_read_and_written_128_bits_at_a_time(programs: list[dict]) -> None:
    for program in programs:
        narrow = [kind for kind in program["loads"] + program["stores"] if not kind.startswith("v4.b32")]
        # Each row has one mean and one rstd, single numbers. One array read 16 bits at a time would be 8 more at least.
        assert len(narrow) < 8, program["case"]


def test_everything_fits_into_registers(programs: list[dict]) -> None:
    for program in programs:
        assert (program["STACK"], program["LOCAL"]) == (0, 0), program["case"]
        assert program["REG"] * program["threads"] <= 65536, program["case"]


def test_a_place_in_a_large_array_is_counted_in_64_bits(programs: list[dict]) -> None:
    """Beyond 2**31 numbers: no test computes so many. Only parameters and their shares are counted in 32 bits."""
    for program in programs:
        small = {"gamma", "beta", "dgamma", "dbeta"} & set(program["pointers"])
        assert program["offsets"].count("i32") == len(small), program["case"]
        assert program["offsets"].count("i64") == len(set(program["pointers"]) - small - {"mean", "rstd"})
