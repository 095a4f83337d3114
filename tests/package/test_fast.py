"""The fast paths of the modules against the readable functions in float64, for values, gradients and errors."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import subnorm.torch as st
from subnorm.torch import fast

close = partial(torch.testing.assert_close, rtol=1e-12, atol=1e-12)


class Sum(nn.Module):
    """st.AddRMSNorm as a function of one argument, for the shared tests; or the readable equivalent."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.norm = st.AddRMSNorm(d_model, eps)

    def forward(self, x: Tensor) -> Tensor:
        y, stream = self.norm(x, x.sin())
        return y * stream.cos()


def readable(module: nn.Module) -> Callable[..., Tensor]:
    """The readable function of (x, *parameters) that a module implements."""

    def add(x: Tensor, weight: Tensor) -> Tensor:
        stream = x + x.sin()
        return st.rms_norm(stream, weight, module.norm.eps) * stream.cos()

    return {
        st.LayerNorm: lambda *a: st.layer_norm(*a, module.eps),
        st.RMSNorm: lambda *a: st.rms_norm(*a, module.eps),
        Sum: add,
    }[type(module)]


MODULES = [st.LayerNorm, st.RMSNorm, Sum]
# Below, at and above the size from which our own passes run; the last is one long row.
SHAPES = [(5,), (1, 1), (2, 3, 33), (0, 4), (128, 512), (3, 5, 7001), (66000, 1), (70001,)]


def module_and_input(
    kind: type[nn.Module], shape: tuple[int, ...], eps: float = 1e-5, mean: float = 1.0
) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(0)
    module = kind(shape[-1], eps).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter, 1, 0.5)
    return module, (mean + 2 * torch.randn(shape, dtype=torch.float64)).requires_grad_()


def gradients(f: Callable[..., Tensor], x: Tensor, *more: Tensor, wanted: list[Tensor]) -> list[Tensor]:
    y = f(x, *more)
    dy = torch.linspace(-1, 2, y.numel(), dtype=torch.float64).cos().view(y.shape).to(y.dtype)
    return [y, *torch.autograd.grad(y, wanted, dy)]


def both(module: nn.Module, x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """y, dx and the parameters' gradients, of the module and of the readable function."""
    parameters = list(module.parameters())
    wanted = [x, *parameters]
    return gradients(module, x, wanted=wanted), gradients(readable(module), x, *parameters, wanted=wanted)


@pytest.mark.parametrize("eps", [0.0, 1e-5, 0.1])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", MODULES)
def test_the_same_as_readable(kind: type[nn.Module], shape: tuple[int, ...], eps: float) -> None:
    if shape[-1] == 1 and eps == 0:
        pytest.skip("one number over itself: dx is 0, and its rounding is in units of 1 / x, or there is no answer")
    for ours, theirs in zip(*both(*module_and_input(kind, shape, eps)), strict=True):
        close(
            ours, theirs, rtol=1e-12, atol=1e-12 * max(1.0, float(theirs.detach().abs().max()) if theirs.numel() else 0)
        )


@pytest.mark.parametrize("mean", [0.0, 200.0])
@pytest.mark.parametrize("kind", MODULES)
def test_float32_and_a_large_mean(kind: type[nn.Module], mean: float) -> None:
    """Against float64: sums of up to 1000 entries, each rounded, times what centring cancels."""
    module, x = module_and_input(kind, (150, 1000), mean=mean)
    module, x = module.float(), x.detach().float().requires_grad_()
    rounded = [t.detach().double().requires_grad_() for t in (x, *module.parameters())]
    exact = gradients(readable(module), *rounded, wanted=rounded)
    for ours, theirs in zip(gradients(module, x, wanted=[x, *module.parameters()]), exact, strict=True):
        assert ours.dtype == torch.float32
        limit = 2.0**-23 * theirs.abs() + 16 * 2.0**-24 * theirs.abs().max() * (1 + mean / 2)
        assert bool(((ours.double() - theirs).abs() <= limit).all())


@pytest.mark.parametrize(
    ("x_dtype", "dtype"),
    [(torch.float16, torch.float16), (torch.bfloat16, torch.bfloat16), (torch.bfloat16, torch.float32),
     (torch.float32, torch.float64), (torch.float64, torch.float32)],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("kind", MODULES)
def test_half_precision_and_mixed_dtypes_stay_readable(
    kind: type[nn.Module], x_dtype: torch.dtype, dtype: torch.dtype
) -> None:
    module, x = module_and_input(kind, (150, 500))
    module, x = module.to(dtype), x.detach().to(x_dtype).requires_grad_()
    for ours, theirs in zip(*both(module, x), strict=True):
        assert ours.dtype == theirs.dtype
        assert torch.equal(ours, theirs)


def test_a_gain_and_a_shift_of_two_dtypes_stay_readable() -> None:
    module, x = module_and_input(st.LayerNorm, (3, 5))
    module.weight.data = module.weight.data.float()
    x = x.detach().float()
    assert torch.equal(module(x), st.layer_norm(x, module.weight, module.bias))


@pytest.mark.parametrize("value", [0.0, 7.5])
@pytest.mark.parametrize("eps", [1e-5, 0.1])
@pytest.mark.parametrize("kind", MODULES)
def test_constant_rows(kind: type[nn.Module], eps: float, value: float) -> None:
    module, x = module_and_input(kind, (130, 512), eps)
    with torch.no_grad():
        x[::2] = value
    for ours, theirs in zip(*both(module, x), strict=True):
        close(ours, theirs, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("kind", MODULES)
def test_strides_and_broadcast_gradients(kind: type[nn.Module]) -> None:
    module, base = module_and_input(kind, (8, 512, 96))
    x = base.transpose(0, 1)[::2]  # (256, 8, 96)
    for ours, theirs in zip(*both(module, x), strict=True):
        close(ours, theirs)
    # The gradient of a sum comes with strides of 0.
    sums = [f.sum() for f in (module(x), readable(module)(x, *module.parameters()))]
    close(*(torch.autograd.grad(total, base)[0] for total in sums), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("shape", [(2, 3, 33), (128, 512)], ids=str)
@pytest.mark.parametrize("kind", MODULES)
def test_a_second_derivative(kind: type[nn.Module], shape: tuple[int, ...]) -> None:
    module, x = module_and_input(kind, shape)
    wanted = [x, *module.parameters()]

    def second(f: Callable[..., Tensor], *args: Tensor) -> list[Tensor]:
        dx, *dparameters = torch.autograd.grad(f(*args).square().sum(), wanted, create_graph=True)
        total = dx.sin().sum() + sum(d.sin().sum() for d in dparameters)
        return [dx, *dparameters, *torch.autograd.grad(total, wanted, allow_unused=True, materialize_grads=True)]

    for ours, theirs in zip(second(module, x), second(readable(module), *wanted), strict=True):
        close(ours, theirs, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("kind", MODULES)
def test_frozen_parameters_or_input(kind: type[nn.Module]) -> None:
    module, x = module_and_input(kind, (128, 512))
    for create_graph in (False, True):
        expected = torch.autograd.grad(module(x).sin().sum(), x)[0]
        frozen = copy.deepcopy(module).requires_grad_(False)
        close(torch.autograd.grad(frozen(x).sin().sum(), x, create_graph=create_graph)[0], expected)
        of_weight = [torch.autograd.grad(module(v).sin().sum(), list(module.parameters())) for v in (x, x.detach())]
        for with_dx, without in zip(*of_weight, strict=True):
            close(with_dx, without)


@pytest.mark.parametrize("kind", MODULES)
def test_without_gradients_and_with_changed_inputs(kind: type[nn.Module]) -> None:
    module, x = module_and_input(kind, (128, 512))
    before, tracked = x.detach().clone(), module(x)
    for context in (torch.no_grad(), torch.inference_mode()):
        with context:
            y = module(x)
            assert not y.requires_grad
            close(y, tracked.detach())
    assert torch.equal(x, before)
    # What was saved for the backward pass must not change unseen.
    z = x.clone()
    y = module(z)
    z.mul_(2)
    if kind is not Sum:  # there the sum is saved, which nobody outside holds
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # torch's own, in jvp
@pytest.mark.parametrize("shape", [(4, 33), (128, 512)], ids=str)
@pytest.mark.parametrize("kind", MODULES)
def test_the_transforms_of_torch_func(kind: type[nn.Module], shape: tuple[int, ...]) -> None:
    module, x = module_and_input(kind, shape)
    parameters, plain = dict(module.named_parameters()), readable(module)
    x = x.detach()

    def f(p: dict[str, Tensor], x: Tensor) -> Tensor:
        return torch.func.functional_call(module, p, x)

    def g(p: dict[str, Tensor], x: Tensor) -> Tensor:
        return plain(x, *p.values())

    many = torch.stack([x, x + 1])
    models = {name: torch.stack([p, 2 * p]) for name, p in parameters.items()}
    direction = torch.ones_like(x)
    for ours, theirs in [
        [torch.func.grad(lambda p, x, h=h: h(p, x).sin().sum())(parameters, x) for h in (f, g)],
        [torch.func.vmap(h, (None, 0))(parameters, many) for h in (f, g)],
        [torch.func.vmap(h)(models, many) for h in (f, g)],
        [torch.func.jvp(lambda x, h=h: h(parameters, x), (x,), (direction,))[1] for h in (f, g)],
        [torch.func.vmap(torch.func.grad(lambda x, h=h: h(parameters, x).sin().sum()))(many) for h in (f, g)],
    ]:
        close(ours, theirs, rtol=1e-10, atol=1e-10)

    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, direction)
        ours, theirs = (torch.autograd.forward_ad.unpack_dual(h(parameters, dual)).tangent for h in (f, g))
    close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", [(4, 33), (128, 512)], ids=str)
@pytest.mark.parametrize("kind", MODULES)
def test_torch_compile_sees_one_graph(kind: type[nn.Module], shape: tuple[int, ...]) -> None:
    module, x = module_and_input(kind, shape)
    torch._dynamo.reset()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    wanted = [x, *module.parameters()]
    results = [gradients(f, x, wanted=wanted) for f in (compiled, module)]
    for ours, theirs in zip(*results, strict=True):
        close(ours, theirs)


def test_the_hand_written_backward_pass_is_taken_from_the_size_it_says() -> None:
    def node(module: nn.Module, rows: int) -> str:
        return str(module(torch.ones(rows, 64, requires_grad=True)).grad_fn)

    norm = st.RMSNorm(64)
    assert "_RMSNormBackward" in node(norm, fast.MANY // 64)
    assert "_RMSNormBackward" not in node(norm, fast.MANY // 64 - 1)
    assert f" {fast.MANY:,} entries" in str(fast.rms_norm.__doc__)
    assert "NativeLayerNorm" in node(st.LayerNorm(64), 1)
    assert "NativeLayerNorm" not in str(st.LayerNorm(64).half()(torch.ones(1, 64).half()).grad_fn)


@pytest.mark.parametrize("shape", [(5,), (1, 3), (2, 3, 7), (0, 4)], ids=str)
def test_its_derivatives_by_differences(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The first and second derivative by finite differences, which only a small input allows."""
    monkeypatch.setattr(fast, "MANY", 0)
    monkeypatch.setattr(fast, "PIECE", 1)
    module, x = module_and_input(st.RMSNorm, shape)
    assert "_RMSNormBackward" in str(module(x).grad_fn)
    for ours, theirs in zip(*both(module, x), strict=True):
        close(ours, theirs)

    def f(x: Tensor, gamma: Tensor) -> Tensor:
        return fast.rms_norm(x, gamma, 0.1)

    assert torch.autograd.gradcheck(f, (x, module.weight))
    assert torch.autograd.gradgradcheck(f, (x, module.weight))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("wanted", ["x", "weight"])
def test_forward_derivatives_by_either_input(wanted: str) -> None:
    module, x = module_and_input(st.RMSNorm, (128, 512))
    inputs = {"x": x, "weight": module.weight}  # they require gradients as well, which asks for the passes of our own
    with torch.autograd.forward_ad.dual_level():
        inputs[wanted] = torch.autograd.forward_ad.make_dual(inputs[wanted], torch.ones_like(inputs[wanted]))
        tangents = [
            torch.autograd.forward_ad.unpack_dual(f(inputs["x"], inputs["weight"], module.eps)).tangent
            for f in (fast.rms_norm, st.rms_norm)
        ]
    close(*tangents, rtol=1e-10, atol=1e-10)


class Operations(TorchDispatchMode):
    """The names of the operations that PyTorch runs."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("device", "x_dtype", "dtype", "covered"),
    [("cuda", torch.float32, torch.float32, True), ("cuda", torch.float64, torch.float64, True),
     ("cuda", torch.float16, torch.float16, True), ("cuda", torch.bfloat16, torch.bfloat16, True),
     ("cuda", torch.bfloat16, torch.float32, False), ("meta", torch.float32, torch.float32, False),
     ("cpu", torch.float32, torch.float32, True), ("cpu", torch.bfloat16, torch.bfloat16, False)],
    ids=str,
)  # fmt: skip
def test_what_is_dispatched_on_each_device(
    device: str, x_dtype: torch.dtype, dtype: torch.dtype, covered: bool
) -> None:
    """With meta tensors, which have a device, a shape and a dtype but no data: the choice needs no GPU."""
    with FakeTensorMode(), torch.no_grad(), Operations() as run:
        x = torch.ones(fast.MANY // 64, 64, dtype=x_dtype, device=device)
        layer, rms, add = st.LayerNorm(64), st.RMSNorm(64), st.AddRMSNorm(64)
        for module in (layer, rms, add):
            for name, _ in list(module.named_parameters()):
                setattr(module, name, nn.Parameter(torch.ones(64, dtype=dtype, device=device), requires_grad=False))
        run.names.clear()
        y = layer(x)
        assert ("native_layer_norm" in run.names) == covered
        run.names.clear()
        results = [y, rms(x), *add(x, x)]
        assert "native_layer_norm" not in run.names
        assert ("linalg_vector_norm" in run.names) == (covered and device == "cpu")
    assert all(result.dtype == x_dtype and result.shape == x.shape for result in results)


# Sum and norm


@pytest.mark.parametrize("shape", [(5,), (2, 3, 33), (128, 512)], ids=str)
def test_add_rms_norm_is_add_then_norm(shape: tuple[int, ...]) -> None:
    module, x = module_and_input(st.AddRMSNorm, shape, eps=0.1)
    branch = torch.randn_like(x, requires_grad=True)
    wanted = [x, branch, module.weight]
    dy, dstream = torch.randn_like(x), torch.randn_like(x)

    def plain(x: Tensor, branch: Tensor) -> tuple[Tensor, Tensor]:
        stream = x + branch
        return st.rms_norm(stream, module.weight, 0.1), stream

    for grad_y, grad_stream in [(dy, dstream), (dy, None), (None, dstream)]:
        results = []
        for f in (module, plain):
            used = [(t, g) for t, g in zip(f(x, branch), (grad_y, grad_stream), strict=True) if g is not None]
            outputs, cotangents = zip(*used, strict=True)
            grads = torch.autograd.grad(outputs, wanted, cotangents, allow_unused=True, materialize_grads=True)
            results.append([*outputs, *grads])
        for ours, theirs in zip(*results, strict=True):
            close(ours, theirs)


def test_x_and_branch_get_gradients_of_their_own() -> None:
    """Scaling one, as gradient clipping does, must not scale the other; nor the caller's cotangents."""
    module, x = module_and_input(st.AddRMSNorm, (128, 512))
    branch = torch.randn_like(x, requires_grad=True)
    dy, dstream = torch.randn_like(x), torch.randn_like(x)
    before = dy.clone(), dstream.clone()
    torch.autograd.backward(module(x, branch), (dy, dstream))
    assert x.grad.data_ptr() != branch.grad.data_ptr()
    close(x.grad, branch.grad)
    assert torch.equal(dy, before[0])
    assert torch.equal(dstream, before[1])


def test_add_rms_norm_keeps_the_rules() -> None:
    module = st.AddRMSNorm(4)
    with pytest.raises(ValueError, match="branch must have the shape of x"):
        module(torch.ones(2, 4), torch.ones(1, 4))
    with pytest.raises(ValueError, match="must have d_model = 4 features"):
        module(torch.ones(2, 5), torch.ones(2, 5))
    with pytest.raises(TypeError, match="branch must hold real floating-point numbers"):
        module(torch.ones(2, 4), torch.ones(2, 4, dtype=torch.int64))
    with pytest.raises(TypeError, match="and x must be one; got list"):
        module([1.0], torch.ones(1))
    y, stream = module(torch.ones(2, 4), torch.ones(2, 4, dtype=torch.float64))  # mixed: the readable lines
    assert y.dtype == stream.dtype == torch.float64
    assert list(module.state_dict()) == list(nn.RMSNorm(4).state_dict())
