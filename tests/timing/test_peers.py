"""The adapters to other packages: Numba and Triton's interpreter if installed, fakes for the rest.

A fake takes exactly the arguments of the package's function, in that order, and computes in float64. So the tests find
a misplaced argument or a confused result, but not a change in the package. Every timing finds that: it compares a
rival with float64 before it starts the clock.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from helpers.parts import need

import subnorm.torch as st
from subnorm import timing
from subnorm.timing import cases, exact, peers
from subnorm.timing.exact import EPS, outputs_of

NORMS = ["layer", "rms"]


@pytest.mark.skipif(find_spec("numba") is None, reason="needs Numba: pip install -r requirements-peers.txt")
@pytest.mark.parametrize("norm", NORMS)
def test_numba_computes_the_norm(norm):
    inputs = timing.Inputs.draw((5, 33), torch.float32, "cpu", tracked=False)
    wanted = exact.expected(inputs, norm, residual=False, forward=True, backward=False)
    found = timing.build_cases("forward", inputs, ["numba", "numba_out"])
    for rival in ("numba", "numba_out"):
        assert exact.max_error(outputs_of(found[f"{norm}_{rival}"].prepare()()), wanted) < 1e-6


def numba_as_python(monkeypatch):
    numba = ModuleType("numba")
    numba.njit = lambda fastmath: lambda function: function
    monkeypatch.setitem(sys.modules, "numba", numba)
    monkeypatch.setattr(peers, "version", lambda package: "1" if package == "numba" else None)
    peers.numba_norm.cache_clear()


@pytest.mark.parametrize("norm", NORMS)
def test_what_numba_compiles_is_the_norm_in_python_too(norm, monkeypatch):
    numba_as_python(monkeypatch)
    inputs = timing.Inputs.draw((3, 7), torch.float32, "cpu", tracked=False)
    wanted = exact.expected(inputs, norm, residual=False, forward=True, backward=False)
    found = timing.build_cases("forward", inputs, ["numba", "numba_out"])
    for rival in ("numba", "numba_out"):
        result = found[f"{norm}_{rival}"].prepare()()
        assert result.dtype == np.float32
        assert exact.max_error((result,), wanted) < 1e-6
    peers.numba_norm.cache_clear()


def test_who_is_not_installed_does_not_take_part(monkeypatch):
    monkeypatch.setattr(peers.metadata, "version", lambda package: {"triton": "3.7.1"}[package])
    monkeypatch.setattr(peers.metadata, "PackageNotFoundError", KeyError)
    assert [peers.version(package) for package in peers.PACKAGES] == ["3.7.1", None, None, None]
    assert list(peers.on_gpu("rms", residual=False, autograd=False)) == ["triton"]


@pytest.mark.parametrize(
    ("norm", "residual", "autograd", "rivals"),
    [
        ("rms", False, False, ["liger", "quack", "triton"]),
        ("rms", True, False, ["liger", "quack", "triton"]),
        ("rms", False, True, ["liger", "quack", "triton"]),
        ("layer", False, False, ["liger", "quack", "triton"]),
        ("layer", False, True, ["liger", "triton"]),
        ("layer", True, False, ["triton"]),
    ],
)
def test_who_takes_part_in_what(norm, residual, autograd, rivals, monkeypatch):
    monkeypatch.setattr(peers, "version", lambda package: "1")
    assert list(peers.on_gpu(norm, residual=residual, autograd=autograd)) == rivals
    for rival in ("hand", "compile", *(["builtin"] if residual else [])):
        assert peers.backward(rival, norm, None, residual=residual) is None  # through autograd, then


# Stand-ins


def norm_and_sum(x, f, gamma, beta):
    """y and h, of RMSNorm if there is no beta."""
    h = x.double() if f is None else x.double() + f.double()
    if beta is None:
        return st.rms_norm(h, gamma.double(), EPS), h
    return st.layer_norm(h, gamma.double(), beta.double(), EPS), h


def gradients(dy, dh, h, gamma, beta):
    """Of h, gamma and beta."""
    arrays = [t.detach().double().requires_grad_() for t in (h, gamma, beta) if t is not None]
    y, _h = norm_and_sum(arrays[0], None, *arrays[1:], *([None] if beta is None else []))
    dx, *others = torch.autograd.grad(y, arrays, dy.double())
    return dx if dh is None else dx + dh.double(), *others


class Applied:
    """An `apply` method, as autograd's functions have."""

    def __init__(self, function):
        self.apply = function


def liger_modules():
    def rms_norm(X, W, eps, offset=0.0, casting_mode="llama", in_place=True, row_mode=None):
        settings(eps, offset, casting_mode)
        assert not in_place  # a second backward pass with the same dy would find dx in it
        return norm_and_sum(X, None, W, None)[0]

    def rms_norm_forward(X, W, eps, offset, casting_mode, row_mode):
        settings(eps, offset, casting_mode)
        assert row_mode is None
        return "y", X, "rstd", "block", "warps", 2

    def rms_norm_backward(dY, X, W, RSTD, offset, casting_mode, BLOCK_SIZE, num_warps, in_place, row_mode):
        assert (RSTD, offset, casting_mode, BLOCK_SIZE, num_warps) == ("rstd", 0.0, 2, "block", "warps")
        assert (in_place, row_mode) == (True, None)
        dx, dgamma = gradients(dY, None, X, W, None)
        return dY.copy_(dx), dgamma

    def layer_norm(X, W, B, eps):
        assert eps == EPS
        return norm_and_sum(X, None, W, B)[0]

    def layer_norm_forward(X, W, B, eps):
        assert eps == EPS
        return "y", X, "mean", "rstd", "block", "warps"

    def layer_norm_backward(dY, X, W, B, Mean, RSTD):
        assert (Mean, RSTD) == ("mean", "rstd")
        return gradients(dY, None, X, W, B)

    def fused_add_rms_norm(X, R, W, eps, offset=0.0, casting_mode="llama", in_place=False):
        settings(eps, offset, casting_mode)
        assert not in_place
        return norm_and_sum(X, R, W, None)

    def fused_add_rms_norm_forward(X, R, W, eps, offset, casting_mode):
        settings(eps, offset, casting_mode)
        return "y", X + R, "rstd", "block", "warps", "stages", 2

    def fused_add_rms_norm_backward(
        dY, dS_out, S, W, RSTD, offset, casting_mode, BLOCK_SIZE, num_warps, num_stages, in_place
    ):  # fmt: skip
        assert (RSTD, offset, casting_mode, BLOCK_SIZE, num_warps) == ("rstd", 0.0, 2, "block", "warps")
        assert (num_stages, in_place) == ("stages", False)
        dx, dgamma = gradients(dY, dS_out, S, W, None)
        return dx, dx, dgamma

    return {
        "rms_norm": {
            "LigerRMSNormFunction": Applied(rms_norm),
            "rms_norm_forward": rms_norm_forward,
            "rms_norm_backward": rms_norm_backward,
        },
        "layer_norm": {
            "LigerLayerNormFunction": Applied(layer_norm),
            "layer_norm_forward": layer_norm_forward,
            "layer_norm_backward": layer_norm_backward,
        },
        "fused_add_rms_norm": {
            "LigerFusedAddRMSNormFunction": Applied(fused_add_rms_norm),
            "fused_add_rms_norm_forward": fused_add_rms_norm_forward,
            "fused_add_rms_norm_backward": fused_add_rms_norm_backward,
        },
    }


def settings(eps, offset, casting_mode):
    assert (eps, offset, casting_mode) == (EPS, 0.0, "gemma")
    assert isinstance(offset, float)  # it does not compile with an int


def quack_members():
    def rmsnorm(
        x, weight=None, bias=None, residual=None, out_dtype=None, residual_dtype=None, eps=1e-6, prenorm=False,
        weight_offset=0.0,
    ):  # fmt: skip
        assert (bias, out_dtype, residual_dtype, eps, weight_offset) == (None, None, None, EPS, 0.0)
        y, h = norm_and_sum(x, residual, weight, None)
        return (y, h) if prenorm else y

    def rmsnorm_fwd(x, weight=None, residual=None, eps=1e-6, store_rstd=False):
        assert eps == EPS
        return "y", x if residual is None else x + residual, "rstd" if store_rstd else None

    def rmsnorm_bwd(x, weight, dout, rstd, dresidual_out=None, has_residual=False):
        assert rstd == "rstd"
        dx, dgamma = gradients(dout, dresidual_out, x, weight, None)
        return dx, dgamma, None, dx if has_residual else None

    def layernorm_fwd(x, weight, bias=None, eps=1e-6, return_rstd=False, return_mean=False):
        assert weight.dtype == bias.dtype == torch.float32
        assert eps == EPS
        y, _h = norm_and_sum(x, None, weight, bias)
        return (y, "rstd", "mean") if return_rstd and return_mean else y

    def layernorm_bwd(x, weight, dout, rstd, mean, has_bias=False):
        assert weight.dtype == torch.float32
        assert (rstd, mean, has_bias) == ("rstd", "mean", True)
        return gradients(dout, None, x, weight, torch.zeros_like(weight))

    members = (rmsnorm, rmsnorm_fwd, rmsnorm_bwd, layernorm_fwd, layernorm_bwd)
    return {member.__name__: member for member in members}


def put_module(monkeypatch, name, members=()):
    module = ModuleType(name)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)
    return module


@pytest.fixture
def stand_ins(monkeypatch):
    put_module(monkeypatch, "liger_kernel")
    put_module(monkeypatch, "liger_kernel.ops")
    for name, members in liger_modules().items():
        put_module(monkeypatch, f"liger_kernel.ops.{name}", members)
    rmsnorm = put_module(monkeypatch, "quack.rmsnorm", quack_members())
    put_module(monkeypatch, "quack", {"rmsnorm": rmsnorm.rmsnorm})  # the function hides the module of its name
    monkeypatch.setattr(peers, "version", lambda package: None if package == "triton" else "1")


@pytest.mark.parametrize("name", ["forward", "add_norm", "host_training", "backward", "add_norm_backward"])
def test_peers_are_called_as_they_are_written(name, stand_ins):
    """As on a GPU: forward and autograd through their public functions, backward through their own functions."""
    table = timing.TABLES[name]
    inputs = timing.Inputs.draw((5, 33), torch.bfloat16, "cpu", tracked=table.backward)
    asked = 0
    for norm in NORMS:
        wanted = exact.expected(inputs, norm, **vars(table))
        makers = peers.on_gpu(norm, residual=table.residual, autograd=table.forward and table.backward)
        for rival, make in makers.items():
            prepare = cases._prepare(table, inputs, norm, make)
            if not table.forward:
                prepare = peers.backward(rival, norm, inputs, residual=table.residual)
            first = outputs_of(prepare()())
            assert exact.max_error(first, wanted) < 8 * torch.finfo(torch.bfloat16).eps, (norm, rival)
            assert exact.max_error(outputs_of(prepare()()), wanted) < 8 * torch.finfo(torch.bfloat16).eps
            asked += 1
    assert asked == {"add_norm": 2, "add_norm_backward": 2, "host_training": 3}.get(name, 4)


def test_the_kernels_of_pytorch_go_back_without_autograd(monkeypatch):
    inputs = timing.Inputs.draw((5, 33), torch.float32, "cpu", tracked=True)
    wanted = exact.expected(inputs, "layer", residual=False, forward=False, backward=True)
    prepare = peers.backward("builtin", "layer", inputs, residual=False)
    assert exact.max_error(prepare()(), wanted) < 1e-6

    # PyTorch has the fused RMSNorm on a GPU alone.
    def forward(x, size, weight, eps):
        assert (size, eps) == ([33], EPS)
        return "y", "rstd"

    def backward(dy, x, size, rstd, weight, mask):
        assert (size, rstd, mask) == ([33], "rstd", [True, True])
        return gradients(dy, None, x, weight, None)

    fused = {"_fused_rms_norm": forward, "_fused_rms_norm_backward": backward}
    monkeypatch.setattr(torch.ops, "aten", type("aten", (), {k: staticmethod(v) for k, v in fused.items()}))
    wanted = exact.expected(inputs, "rms", residual=False, forward=False, backward=True)
    assert exact.max_error(peers.backward("builtin", "rms", inputs, residual=False)()(), wanted) < 1e-6


INTERPRETED = """
import torch
from subnorm import timing
from subnorm.timing import cases, exact, peers
from subnorm.timing.exact import outputs_of

for name in ("host_training", "add_norm_training", "backward", "add_norm_backward"):
    table = timing.TABLES[name]
    inputs = timing.Inputs.draw((5, 33), torch.float32, "cpu", tracked=True)
    for norm in cases.NORMS:
        wanted = exact.expected(inputs, norm, **vars(table))
        make = peers.on_gpu(norm, residual=table.residual, autograd=False)["triton"]
        prepare = cases._prepare(table, inputs, norm, make)
        if not table.forward:
            prepare = peers.backward("triton", norm, inputs, residual=table.residual)
        assert exact.max_error(outputs_of(prepare()()), wanted) < 1e-6, (name, norm)
print("right")
"""


def test_our_kernels_are_called_as_they_are_written():
    """In Triton's interpreter, which needs its own process."""
    need("triton")
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETED], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "right\n", done.stderr
