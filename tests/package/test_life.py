"""The life of a module: built on the meta device, reset, copied after a training step, read for bad numbers."""

import copy
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import subnorm.torch as st
from subnorm.torch import placements

D, BLOCKS, HEADS = 8, 3, 2

SIZES = {"d_model": D, "num_blocks": BLOCKS, "num_heads": HEADS, "d_ff": D}
#: What no public class says by itself: options, and placements built with other norms.
OPTIONS: dict[str, Callable[[], nn.Module]] = {
    "LayerNorm without bias": lambda: st.LayerNorm(D, bias=False),
    "LayerNorm without gain": lambda: st.LayerNorm(D, elementwise_affine=False),
    "RMSNorm without gain": lambda: st.RMSNorm(D, elementwise_affine=False),
    **{name: lambda build=build: build(D, BLOCKS) for name, build in st.STACK_PLACEMENTS.items()},
}


def public_modules() -> dict[str, Callable[[], nn.Module]]:
    """Every module class of the public files of subnorm.torch, built with the sizes that it asks for."""
    found: dict[str, Callable[[], nn.Module]] = {}
    for file in pkgutil.iter_modules(st.__path__):
        for name, kind in vars(importlib.import_module(f"subnorm.torch.{file.name}")).items():
            if inspect.isclass(kind) and issubclass(kind, nn.Module) and kind.__module__.startswith("subnorm."):
                asked = inspect.signature(kind).parameters.values()
                if not name.startswith("_"):
                    found[name] = partial(kind, *(SIZES.get(one.name) for one in asked if one.default is one.empty))
    found["Stack"] = lambda: st.Stack(placements.AdaLNZero(D, BLOCKS), HEADS)
    return found


MODULES = {**public_modules(), **OPTIONS}
ORDERS: dict[str, Callable[[nn.Module], list[nn.Module]]] = {
    "inner modules first, as Module.apply": lambda module: list(module.modules())[::-1],
    "outer modules first, as FSDP": lambda module: list(module.modules()),
}


def built_on_meta(name: str) -> nn.Module:
    """A module as FSDP builds it: without memory, then with memory that holds anything, here NaN."""
    with torch.device("meta"):
        module = MODULES[name]()
    assert all(tensor.is_meta for tensor in (*module.parameters(), *module.buffers()))
    module.to_empty(device="cpu")
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(float("nan"))
    return module


def reset(module: nn.Module) -> None:
    if hasattr(module, "reset_parameters"):
        module.reset_parameters()


def test_the_public_modules_are_all_there() -> None:
    assert {name for name in st.__all__ if inspect.isclass(getattr(st, name))} <= set(MODULES)
    assert {"FeedForward", "DynamicErf", "ChannelsFirstLayerNorm", "HyperConnections"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_reset_after_meta_gives_the_bits_of_a_fresh_module(name: str) -> None:
    torch.manual_seed(0)
    expected = MODULES[name]()
    module = built_on_meta(name)
    torch.manual_seed(0)
    module.apply(reset)
    for (key, ours), theirs in zip(module.state_dict().items(), expected.state_dict().values(), strict=True):
        assert torch.equal(ours, theirs), key


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", MODULES)
def test_reset_in_any_order(name: str, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """FSDP wants each reset_parameters to touch its own module alone, and calls those with tensors of their own.

    Every draw becomes its upper bound, so that the order of the draws cannot matter.
    """
    monkeypatch.setattr(torch.Tensor, "uniform_", lambda self, _low=0, high=1, generator=None: self.fill_(high))
    expected = MODULES[name]()
    module = built_on_meta(name)
    for part in ORDERS[order](module):
        if any(True for _ in part.parameters(recurse=False)):
            part.reset_parameters()
    for (key, ours), theirs in zip(module.state_dict().items(), expected.state_dict().values(), strict=True):
        assert torch.equal(ours, theirs), key


@pytest.mark.parametrize("name", st.STACK_PLACEMENTS)
def test_a_copy_after_a_training_step(name: str) -> None:
    stack = st.Stack(st.STACK_PLACEMENTS[name](D, BLOCKS), 4)
    x = torch.randn(2, 5, D)
    before = set(vars(stack.placement))
    stack(x).sum().backward()
    assert set(vars(stack.placement)) == before  # nothing of a call is kept
    twin = copy.deepcopy(stack).eval()
    assert torch.equal(twin(x), stack.eval()(x))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("LayerNorm", {"bias": False}),
        ("LayerNorm", {"elementwise_affine": False}),
        ("RMSNorm", {"elementwise_affine": False}),
    ],
)
def test_absent_parameters_are_those_of_torch_nn(name: str, options: dict[str, bool]) -> None:
    ours, theirs = getattr(st, name)(D, **options), getattr(nn, name)(D, eps=1e-5, **options)
    ours.load_state_dict(theirs.state_dict())
    x, many = torch.randn(3, D), torch.randn(2**14, D)
    for rows in (x, x.double(), many):  # many: the size at which RMSNorm runs its own passes
        expected = (theirs.double() if rows.dtype is torch.float64 else theirs.float())(rows)
        torch.testing.assert_close(ours(rows), expected, check_dtype=False)
    assert ours(x.bfloat16()).dtype is torch.bfloat16


def test_absent_parameters_in_print() -> None:
    assert repr(st.LayerNorm(D, bias=False)) == "LayerNorm(8, eps=1e-05, bias=False)"
    assert repr(st.LayerNorm(D, elementwise_affine=False)) == "LayerNorm(8, eps=1e-05, elementwise_affine=False)"
    assert repr(st.RMSNorm(D, elementwise_affine=False)) == "RMSNorm(8, eps=1e-05, elementwise_affine=False)"
    assert repr(st.RMSNorm(D)) == "RMSNorm(8, eps=1e-05)"


@pytest.mark.parametrize("name", ["LayerNorm", "RMSNorm"])
def test_a_norm_without_gain_checks_its_input(name: str) -> None:
    norm = getattr(st, name)(D, elementwise_affine=False)
    with pytest.raises(ValueError, match="d_model = 8"):
        norm(torch.zeros(3, D + 1))
    with pytest.raises(TypeError, match="real floating-point"):
        norm(torch.zeros(3, D, dtype=torch.int64))


def test_the_activation_of_a_block() -> None:
    x = torch.randn(2, 5, D)
    theirs = nn.TransformerEncoderLayer(D, HEADS, D, 0.0, F.gelu, batch_first=True).eval()
    ours = st.TransformerBlock(D, HEADS, D, "post", activation=F.gelu)
    renamed = {
        key if key.startswith(("self_attn", "norm")) else f"feed_forward.{key}": weight
        for key, weight in theirs.state_dict().items()
    }
    ours.load_state_dict(renamed)
    torch.testing.assert_close(ours(x), theirs(x))
    assert st.DecoderBlock(D, HEADS, D, activation=F.gelu).feed_forward.activation is F.gelu
    with pytest.raises(TypeError, match="must be a function of a tensor; got 'gelu'"):
        st.FeedForward(D, D, "gelu")


def test_the_eps_of_a_placement_reaches_all_its_norms() -> None:
    for build in (placements.QKNorm, placements.Olmo2):
        assert "eps" in inspect.signature(build).parameters
    olmo2 = placements.Olmo2(D, BLOCKS, HEADS, eps=1e-3)
    assert {part.eps for part in olmo2.modules() if isinstance(part, st.RMSNorm)} == {1e-3}
    qk = placements.QKNorm(D, BLOCKS, num_heads=HEADS, eps=1e-3)
    assert {part.eps for part in (*qk.q_norms, *qk.k_norms)} == {1e-3}
    assert placements.ChannelsFirstLayerNorm(D).eps == 1e-6


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_sinkhorn_with_entries_far_apart(dtype: torch.dtype) -> None:
    scores = torch.tensor([[0.0, 200.0], [0.0, 200.0]], dtype=dtype)  # one column takes all
    matrix = placements.sinkhorn(scores)
    torch.testing.assert_close(matrix, torch.full((2, 2), 0.5, dtype=dtype))


# first_non_finite


@dataclass
class Output:
    hidden: torch.Tensor
    more: tuple[torch.Tensor, ...] = ()


class Splits(nn.Module):
    def __init__(self, inner: bool) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> Output:
        return Output(x, (x / scale,)) if self.inner else Output(x / scale)


@pytest.mark.parametrize("inner", [False, True])
def test_a_bad_number_in_a_dataclass(inner: bool) -> None:
    assert st.first_non_finite(Splits(inner), torch.ones(2), scale=torch.zeros(2)) == "output of "
    assert st.first_non_finite(Splits(inner), torch.ones(2), scale=torch.ones(2)) is None
    assert st.first_non_finite(Splits(inner), torch.ones(2), scale=torch.full((2,), float("inf"))) == "input of "


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_a_bad_number_in_a_nested_tensor(layout: torch.layout) -> None:
    parts = [torch.ones(2, D), torch.ones(3, D)]
    assert st.first_non_finite(nn.Identity(), torch.nested.nested_tensor(parts, layout=layout)) is None
    parts[1][2, 0] = float("nan")
    assert st.first_non_finite(nn.Identity(), torch.nested.nested_tensor(parts, layout=layout)) == "input of "


# Which tensors decay


def test_a_gain_can_have_two_axes_and_a_matrix_has_an_owner() -> None:
    """Chapter 09d chooses the tensors that decay by the module that owns them; the number of axes misleads."""
    owned, others = set(), set()
    for build in st.STACK_PLACEMENTS.values():
        for part in st.Stack(build(D, BLOCKS), HEADS).modules():
            for name, parameter in part.named_parameters(recurse=False):
                if parameter.ndim > 1:
                    (owned if isinstance(part, nn.Linear | st.MultiHeadAttention) else others).add(name)
    assert owned == {"weight", "in_proj_weight"}
    assert others == {"omega", "gates", "mix", "read", "write", "queries", "alpha", "qk_scale"}
