"""The RMSNorm of the modules, as fast as PyTorch takes it: the same function as in `subnorm.torch.norms`.

LayerNorm needs nothing here: PyTorch has a kernel of it for each direction.

What costs time in a norm is memory: reading and writing it, and above all asking the system for more of it, page by
page. So both passes make no array besides their results, and what they keep for going back is there anyway.
Each step goes over the whole array. Blocks of rows that stay in a cache, which pay in `subnorm.numpy.blocked`, do not
here: PyTorch's backward kernel does the work of several such steps while it waits for memory.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual
from torch.autograd.function import FunctionCtx

#: From so many entries on, what :class:`_RMSNorm` saves is more than it costs autograd to call Python.
MANY = 2**16

WIDE = (torch.float32, torch.float64)
WIDE_AND_HALF = (*WIDE, torch.float16, torch.bfloat16)


def covers(x: Tensor, dtype: torch.dtype, shape: torch.Size) -> bool:
    """Whether PyTorch's kernels and the passes here do for x what the readable functions do, with gains like these.

    They do on the CPU and on CUDA, where x has the dtype of the gains and one feature for each. Half precision on the
    CPU wants wider statistics, and mixed dtypes a wider result: the readable functions see to that. CUDA's kernels
    widen by themselves. The readable functions also say what is wrong with any other input.
    """
    return (
        isinstance(x, Tensor)
        and x.dtype is dtype
        and (dtype in WIDE if x.is_cpu else x.is_cuda and dtype in WIDE_AND_HALF)
        and x.shape[-1:] == shape
    )


def rms_norm(x: Tensor, gamma: Tensor, eps: float) -> Tensor:
    """:func:`subnorm.torch.rms_norm`, on the CPU from 65,536 entries on with both passes written out.

    PyTorch has no kernel of it for the CPU: ``F.rms_norm`` is seven operations, and their backward passes as many
    again, most with an array of their own.
    """
    if x.numel() < MANY or not x.is_cpu or _watched(x, gamma):
        return torch.rms_norm(x, gamma.shape, gamma, eps)
    if not (torch.is_grad_enabled() and (x.requires_grad or gamma.requires_grad)):
        return _forward(x, gamma, eps)[0]
    y: Tensor = _RMSNorm.apply(x, gamma, eps)  # type: ignore[no-untyped-call]
    return y


def _watched(*tensors: Tensor) -> bool:
    """Whether somebody looks inside: compilers, torch.func and forward derivatives want operations that they know."""
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()  # what autograd.Function itself asks; there is no public name
        or any(unpack_dual(t).tangent is not None for t in tensors)
    )


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
    sums = (dy @ gamma).unsqueeze(-1)  # (..., 1), of dxhat
    return dx.add_(sums.mul_(rstd), alpha=1 / x.shape[-1]), dgamma
