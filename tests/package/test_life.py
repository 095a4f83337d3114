"""The life of a module: built on the meta device, reset, copied after a training step, read for bad numbers."""

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import nn

import subnorm.torch as st
from subnorm.torch import placements

D, BLOCKS, HEADS = 8, 3, 2

MODULES: dict[str, Callable[[], nn.Module]] = {
    "LayerNorm": lambda: st.LayerNorm(D),
    "LayerNorm without bias": lambda: st.LayerNorm(D, bias=False),
    "RMSNorm": lambda: st.RMSNorm(D),
    "AddRMSNorm": lambda: st.AddRMSNorm(D),
    "ChannelsFirstLayerNorm": lambda: placements.ChannelsFirstLayerNorm(D),
    "MultiHeadAttention": lambda: st.MultiHeadAttention(D, HEADS),
    "DecoderBlock": lambda: st.DecoderBlock(D, HEADS, D),
    **{name: lambda build=build: build(D, BLOCKS) for name, build in st.STACK_PLACEMENTS.items()},
}


@pytest.mark.parametrize("name", MODULES)
def test_built_on_meta_and_reset(name: str) -> None:
    """As FSDP builds a model: without memory, then filled by reset_parameters, inner modules first."""
    torch.manual_seed(0)
    expected = MODULES[name]()
    with torch.device("meta"):
        module = MODULES[name]()
    module.to_empty(device="cpu")
    for parameter in module.parameters():
        nn.init.constant_(parameter, float("nan"))
    module.apply(lambda part: part.reset_parameters() if hasattr(part, "reset_parameters") else None)
    random = ("in_proj_weight", "out_proj", "linear", "modulation")
    for (key, ours), theirs in zip(module.state_dict().items(), expected.state_dict().values(), strict=True):
        assert not ours.isnan().any(), key
        if not any(part in key for part in random) or not theirs.any():
            assert torch.equal(ours, theirs), key


def test_every_module_with_parameters_of_its_own_can_be_reset() -> None:
    own = [
        type(part)
        for build in MODULES.values()
        for part in build().modules()
        if any(True for _ in part.parameters(recurse=False))
    ]
    assert len(set(own)) > 12
    assert [kind for kind in own if not hasattr(kind, "reset_parameters")] == []


@pytest.mark.parametrize("name", st.STACK_PLACEMENTS)
def test_a_copy_after_a_training_step(name: str) -> None:
    stack = st.Stack(st.STACK_PLACEMENTS[name](D, BLOCKS), 4)
    x = torch.randn(2, 5, D)
    before = set(vars(stack.placement))
    stack(x).sum().backward()
    assert set(vars(stack.placement)) == before  # nothing of a call is kept
    twin = copy.deepcopy(stack).eval()
    assert torch.equal(twin(x), stack.eval()(x))


def test_a_layer_norm_without_bias_is_that_of_torch_nn() -> None:
    ours, theirs = st.LayerNorm(D, bias=False), nn.LayerNorm(D, bias=False)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(3, D)
    torch.testing.assert_close(ours(x), theirs(x))
    torch.testing.assert_close(ours(x.double()), theirs.double()(x.double()).float().double(), atol=1e-5, rtol=1e-5)
    assert repr(ours) == "LayerNorm(8, eps=1e-05, bias=False)"


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
