"""The norms of the modules, as fast as a CPU takes them: the same functions as in `subnorm.torch.norms`.

What costs time in a norm is memory: reading and writing it, and above all asking the system for more of it, page by
page. So these functions make no array besides their results, and keep for the backward pass what is there anyway.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

#: From so many entries on, what :class:`_RMSNorm` saves is more than it costs autograd to call Python.
MANY = 2**16


def covers(x: Tensor, gamma: Tensor) -> bool:
    """Whether the functions here take these tensors: on the CPU, both float32 or both float64, one gain per feature.

    Half precision wants wider statistics, and mixed dtypes a wider result: the readable functions see to that. They
    also say what is wrong with any other input.
    """
    return (
        isinstance(x, Tensor)
        and x.is_cpu
        and x.dtype == gamma.dtype
        and x.dtype in (torch.float32, torch.float64)
        and x.shape[-1:] == gamma.shape
    )


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, eps: float) -> Tensor:
    """:func:`subnorm.torch.layer_norm` as PyTorch's own kernel, one for each direction: nothing to win over it."""
    return torch.layer_norm(x, gamma.shape, gamma, beta, eps)  # F.layer_norm asks about cuDNN first: a microsecond


def rms_norm(x: Tensor, gamma: Tensor, eps: float) -> Tensor:
    """:func:`subnorm.torch.rms_norm`, from 65,536 entries on with both passes written out.

    PyTorch has no kernel of it for the CPU: ``F.rms_norm`` is seven operations, and their backward passes as many
    again, most with an array of their own.
    """
    if not _many(x):
        return torch.rms_norm(x, gamma.shape, gamma, eps)
    if not _tracked(x, gamma):
        return _forward(x, gamma, eps)[0]
    y: Tensor = _RMSNorm.apply(x, gamma, eps)  # type: ignore[no-untyped-call]
    return y


def add_rms_norm(x: Tensor, branch: Tensor, gamma: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """``stream = x + branch`` and ``y = rms_norm(stream)``: returns y and the stream.

    Going back, the gradient that comes along the stream is added where dx already stands. Going forward both results
    have to be written, and an addition and a norm do no more.
    """
    if _many(x) and _tracked(x, branch, gamma):
        y, stream = _AddRMSNorm.apply(x, branch, gamma, eps)  # type: ignore[no-untyped-call]
        return y, stream
    stream = x + branch
    return rms_norm(stream, gamma, eps), stream


def _many(x: Tensor) -> bool:
    """Large, and nobody looks inside: compilers and the transforms of torch.func want operations that they know."""
    return (
        x.numel() >= MANY
        and not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
        and torch.autograd.forward_ad._current_level < 0
    )


def _tracked(*tensors: Tensor) -> bool:
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


class _RMSNorm(torch.autograd.Function):
    """``rstd = 1 / sqrt(mean(x**2) + eps)`` and ``y = gamma * x * rstd``."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, gamma: Tensor, eps: float) -> Tensor:
        y, rstd = _forward(x, gamma, eps)
        ctx.save_for_backward(x, gamma, rstd)
        ctx.eps = eps  # type: ignore[attr-defined]
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, None]:
        x, gamma, rstd = ctx.saved_tensors
        return *_backward(dy, x, gamma, rstd, ctx.eps), None


class _AddRMSNorm(torch.autograd.Function):
    """``stream = x + branch``, then as :class:`_RMSNorm`; x and branch have the same gradient."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, branch: Tensor, gamma: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        stream = x + branch
        y, rstd = _forward(stream, gamma, eps)
        ctx.save_for_backward(stream, gamma, rstd)
        ctx.eps = eps  # type: ignore[attr-defined]
        return y, stream

    @staticmethod
    def backward(ctx: Any, dy: Tensor, dstream: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        stream, gamma, rstd = ctx.saved_tensors
        dx, dgamma = _backward(dy, stream, gamma, rstd, ctx.eps)
        dx = dx + dstream if torch.is_grad_enabled() else dx.add_(dstream)
        return dx, dx, dgamma, None


def _forward(x: Tensor, gamma: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """y, and rstd of shape (..., 1)."""
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)  # reads x once, where x * x would be written first
    rstd = norm.square_().div_(x.shape[-1]).add_(eps).rsqrt_()  # (..., 1)
    return (x * rstd).mul_(gamma), rstd


def _backward(dy: Tensor, x: Tensor, gamma: Tensor, rstd: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """``dx = rstd * (dxhat - xhat * mean(dxhat * xhat))`` and ``dgamma = sum(dy * xhat)``, with ``dxhat = dy * gamma``.

    LayerNorm's kernel computes just that when it is told that the mean is 0, less ``rstd * mean(dxhat)``, the term
    that comes from subtracting a mean. RMSNorm subtracts none, so the term is added back.
    """
    if torch.is_grad_enabled():  # a second derivative is wanted: in operations that autograd can follow
        rstd = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)  # (..., 1)
        xhat, dxhat = x * rstd, dy * gamma
        dx = rstd * (dxhat - xhat * (dxhat * xhat).mean(dim=-1, keepdim=True))
        return dx, (dy * xhat).reshape(-1, x.shape[-1]).sum(dim=0)
    mean, d = torch.zeros_like(rstd), [x.shape[-1]]
    dx, dgamma, _dbeta = torch.ops.aten.native_layer_norm_backward(
        dy, x, d, mean, rstd, gamma, None, [True, True, False]
    )
    return dx.addcmul_((dy @ gamma).unsqueeze(-1), rstd, value=1 / x.shape[-1]), dgamma
