"""On a GPU, where there is one: the placements, the norms and the masks are the same functions as on a CPU."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import subnorm.numpy as sn
from subnorm import torch as st

DEVICE = "cuda"
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")

D, N, HEADS = 64, 3, 4


@pytest.fixture
def x() -> Tensor:
    return torch.randn(2, 7, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def build(name: str) -> nn.Module:
    """A stack in float64 whose parameters are away from their start, where many placements are the identity."""
    torch.manual_seed(1)
    stack = st.Stack(st.STACK_PLACEMENTS[name](D, N), HEADS).double().eval()
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return stack


def results(stack: nn.Module, x: Tensor, **context: torch.dtype) -> dict[str, Tensor]:
    """The output and all gradients, on the CPU in float64; a parameter that plays no part has none."""
    x = x.clone().requires_grad_()
    with torch.autocast(x.device.type, enabled=bool(context), **context):
        y = stack(x)
    y.double().square().sum().backward()
    found = {"y": y, "dx": x.grad} | {name: parameter.grad for name, parameter in stack.named_parameters()}
    return {name: value.detach().cpu().double() for name, value in found.items() if value is not None}


def distance(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> float:
    """The largest difference, in units of the largest entry of each tensor, or of 0.001 where it is 0."""
    assert found.keys() == wanted.keys()
    return max(float((found[k] - wanted[k]).abs().max() / wanted[k].abs().max().clamp_min(1e-3)) for k in wanted)


@pytest.mark.parametrize("name", st.STACK_PLACEMENTS)
def test_a_placement_is_the_same_function(name: str, x: Tensor) -> None:
    stack = build(name)
    there = copy.deepcopy(stack).to(DEVICE)
    wanted = results(stack, x)
    assert distance(results(there, x.to(DEVICE)), wanted) < 1e-9


@pytest.mark.parametrize("name", st.STACK_PLACEMENTS)
def test_a_placement_trains_inside_autocast(name: str, x: Tensor) -> None:
    """In bfloat16 the output is that of float64 to the roundings of its matrix products."""
    stack = build(name)
    there = copy.deepcopy(stack).float().to(DEVICE)
    wanted, found = results(stack, x), results(there, x.float().to(DEVICE), dtype=torch.bfloat16)
    assert found.keys() == wanted.keys()
    assert all(value.isfinite().all() for value in found.values())
    error = (found["y"] - wanted["y"]).square().mean().sqrt() / wanted["y"].square().mean().sqrt()
    assert error < 0.1


@pytest.mark.parametrize("name", ["pre", "ngpt", "mhc"])
def test_a_compiled_placement_is_the_same_function(name: str, x: Tensor) -> None:
    there, x = build(name).to(DEVICE), x.to(DEVICE)
    wanted = results(there, x)
    there.zero_grad()
    compiled = torch.compile(there, fullgraph=True)
    compiled(x).square().sum().backward()
    assert (compiled(x).cpu() - wanted["y"]).abs().max() < 1e-9 * wanted["y"].abs().max()
    gradients = {k: p.grad.cpu() for k, p in there.named_parameters() if p.grad is not None}
    assert distance(gradients, {k: wanted[k] for k in gradients}) < 1e-9


@pytest.mark.parametrize("function", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("d", [64, 4096, 65536])
@pytest.mark.parametrize("mean", [0.0, 300.0, 1e6])
def test_a_norm_of_rows_that_hardly_vary(function: str, d: int, mean: float) -> None:
    """The functions promise 4 machine epsilons, at the row's largest entry."""
    rows = torch.from_numpy(np.random.default_rng(0).normal(mean, 1, (8, d))).float()
    exact = getattr(sn, function)(rows.double().numpy())
    largest = np.abs(exact).max(axis=-1, keepdims=True) * np.finfo(np.float32).eps
    off = np.abs(getattr(st, function)(rows.to(DEVICE)).cpu().double().numpy() - exact) / largest
    assert off.max() <= 4


@pytest.mark.parametrize("kind", ["causal", "padding"])
def test_a_mask_hides_the_same_positions(kind: str, x: Tensor) -> None:
    mask = torch.ones(7, 7, dtype=torch.bool).tril() if kind == "causal" else (torch.arange(7) < 5).expand(7, 7)
    block = build("pre")
    there = copy.deepcopy(block).to(DEVICE)
    difference = there(x.to(DEVICE), mask.to(DEVICE)).cpu() - block(x, mask)
    assert difference.abs().max() < 1e-9
