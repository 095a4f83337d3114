"""The modules where the context of a call reaches inside: autocast, export, torch.func, meta, fx, dynamic sizes."""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import subnorm.torch as st
from subnorm.torch import fast

D, HEADS, T = 8, 2, 5
CAUSAL = torch.ones(T, T, dtype=torch.bool).tril()
MANY_ROWS = fast.MANY // 512 + 1  # enough rows of 512 features for the passes of our own


class WithMask(nn.Module):
    """A layer that takes a mask, as a function of x and the mask."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = {
            "attention": lambda: st.MultiHeadAttention(D, HEADS),
            "sublayer": lambda: st.AttentionSubLayer(D, HEADS),
            "block": lambda: st.TransformerBlock(D, HEADS, 2 * D),
            "decoder": lambda: st.DecoderBlock(D, HEADS, 2 * D),
            "stack": lambda: st.Stack(st.STACK_PLACEMENTS["pre"](D, 2), HEADS),
        }[kind]()
        self.eval()

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if isinstance(self.layer, st.DecoderBlock):
            return self.layer(x, x, mask, mask)
        return self.layer(x, mask)


MASKED = ["attention", "sublayer", "block", "decoder", "stack"]


@pytest.fixture
def x() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(3, T, D)


@pytest.mark.filterwarnings("ignore:.torch.jit.trace:DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("kind", MASKED)
def test_a_mask_passes_through_every_kind_of_trace(kind: str, x: torch.Tensor) -> None:
    layer = WithMask(kind)
    expected = layer(x, CAUSAL)
    exported = torch.export.export(layer, (x, CAUSAL), strict=False).module()
    mapped = torch.func.vmap(layer, in_dims=(0, None))
    traced = torch.jit.trace(layer, (x, CAUSAL))
    fixed = make_fx(layer)(x, CAUSAL)
    for run in (exported, mapped, traced, fixed, torch.compile(layer, fullgraph=True, backend="eager")):
        torch.testing.assert_close(run(x, CAUSAL), expected)
    assert layer.to("meta")(x.to("meta"), CAUSAL.to("meta")).shape == x.shape
    with FakeTensorMode() as mode:
        assert WithMask(kind)(mode.from_tensor(x), mode.from_tensor(CAUSAL)).shape == x.shape


@pytest.mark.parametrize("kind", MASKED)
def test_every_kind_of_attention_checks_its_mask(kind: str, x: torch.Tensor) -> None:
    layer = WithMask(kind)
    with pytest.raises(TypeError, match="mask must be boolean"):
        layer(x, CAUSAL.float())
    with pytest.raises(ValueError, match="every query must see at least one key"):
        layer(x, torch.zeros(T, T, dtype=torch.bool))
    with pytest.raises(ValueError, match="mask must have a row for each query"):
        layer(x, CAUSAL[:, 1:])


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("kind", [st.LayerNorm, st.RMSNorm])
def test_export_with_a_dynamic_size(kind: type[nn.Module], strict: bool) -> None:
    """The size from which our own passes run must not become a limit of the exported program."""
    norm = kind(512)
    many, few = torch.randn(MANY_ROWS, 512), torch.randn(2, 512)
    batch = torch.export.Dim("batch", min=1, max=10_000)
    exported = torch.export.export(norm, (many,), dynamic_shapes=({0: batch},), strict=strict).module()
    for x in (many, few):
        torch.testing.assert_close(exported(x), norm(x))


@pytest.mark.filterwarnings("ignore:.torch.jit.trace:DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("size", [2, MANY_ROWS])
@pytest.mark.parametrize("kind", [st.LayerNorm, st.RMSNorm])
def test_jit_trace_and_fx(kind: type[nn.Module], size: int) -> None:
    norm, x = kind(512), torch.randn(size, 512)
    torch.testing.assert_close(torch.jit.trace(norm, (x,))(x), norm(x))
    torch.testing.assert_close(torch.fx.symbolic_trace(nn.Sequential(norm))(x), norm(x))


def test_fx_records_a_sum_and_its_norm() -> None:
    norm, x = st.AddRMSNorm(D), torch.randn(3, D)
    for ours, expected in zip(torch.fx.symbolic_trace(norm)(x, x), norm(x, x), strict=True):
        torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize("kind", [st.RMSNorm, st.AddRMSNorm])
def test_a_backward_pass_inside_autocast(kind: type[nn.Module]) -> None:
    """autocast turns matrix products into bfloat16, those of a backward pass as well if it is run inside."""
    torch.manual_seed(0)
    norm = kind(512)
    nn.init.normal_(norm.weight, 1, 0.5)
    inputs = [torch.randn(MANY_ROWS, 512, requires_grad=True) for _ in range(2 if kind is st.AddRMSNorm else 1)]
    dy = torch.randn(MANY_ROWS, 512)
    gradients = []
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            y = norm(*inputs)
            y = y if kind is st.RMSNorm else y[0]
            gradients.append(torch.autograd.grad(y, [*inputs, norm.weight], dy))
    for plain, cast in zip(*gradients, strict=True):
        assert torch.equal(plain, cast)


@pytest.mark.parametrize("d", [512, fast.LONG, fast.LONG + 1, 2**18])
def test_the_gradients_of_long_rows(d: int) -> None:
    torch.manual_seed(0)
    norm, rows = st.RMSNorm(d), max(1, 2**17 // d)
    nn.init.normal_(norm.weight, 1, 0.5)
    x, dy = torch.randn(rows, d, requires_grad=True), torch.randn(rows, d)
    dx, dgamma = torch.autograd.grad(norm(x), [x, norm.weight], dy)
    wide = [t.detach().double().requires_grad_() for t in (x, norm.weight)]
    exact = torch.autograd.grad(st.rms_norm(*wide), wide, dy.double())
    terms = (dy * st.rms_norm(wide[0])).abs().sum(0)  # those of dgamma cancel: its error is measured beside their sizes
    for ours, right, size in zip((dx, dgamma), exact, (exact[0].abs().max(), terms), strict=True):
        assert ((ours - right).abs() <= 4 * 2.0**-23 * size).all()
