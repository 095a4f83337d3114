"""A fast RMSNorm for the modules, built from PyTorch operations: the same function as in `subnorm.torch.norms`.

LayerNorm needs no such code: PyTorch has a kernel for each of its passes.

Memory limits a norm: reading it, writing it, and above all allocating it, page by page. So neither pass allocates a
full-size array other than its results, and the forward pass saves only x, gamma and one rstd per row.
Each step runs over the whole array. Cache-sized blocks of rows, which pay off in `subnorm.numpy.blocked`, do not pay
off here: PyTorch's backward kernel does the work of several steps while it waits for memory.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual
from torch.autograd.function import FunctionCtx
from torch.utils._python_dispatch import _get_current_dispatch_mode

#: From this many entries on, :class:`_RMSNorm` saves more time than its Python calls cost.
MANY = 2**16
#: In longer rows, the rounding errors of the backward pass would show: two of its sums do not add in pairs.
LONG = 2**14
#: A sum that does not add in pairs runs over so many numbers, and divides the width.
PIECE = 64

WIDE = (torch.float32, torch.float64)
WIDE_AND_HALF = (*WIDE, torch.float16, torch.bfloat16)


def covers(x: Tensor, width: int, *parameters: Tensor | None) -> bool:
    """Whether the fast passes and kernels agree with the readable functions on x, for a norm of this width.

    They do on the CPU and on CUDA if x has that many features, and the dtype of the parameters. Half precision on the
    CPU needs wider statistics, and mixed dtypes need a wider result: the readable functions handle both. CUDA's
    kernels widen by themselves. For any other input the readable functions raise the error.
    """
    return (
        isinstance(x, Tensor)
        and all(parameter is None or parameter.dtype is x.dtype for parameter in parameters)
        and is_dense(x)
        and (x.dtype in WIDE if x.is_cpu else x.is_cuda and x.dtype in WIDE_AND_HALF)
        and x.shape[-1:] == (width,)
    )


def is_dense(x: Tensor) -> bool:
    """Not sparse; and if nested, then of the layout that has a shape."""
    return x.layout is torch.jagged or (x.layout is torch.strided and not x.is_nested)


def rms_norm(x: Tensor, gamma: Tensor, eps: float) -> Tensor:
    """:func:`subnorm.torch.rms_norm`, with both passes written out on the CPU from 65,536 entries on.

    PyTorch has no CPU kernel for it: ``F.rms_norm`` runs seven operations forward and as many backward, most of which
    allocate an array.
    """
    d = len(gamma)
    if not x.is_cpu or _watched(x, gamma) or x.numel() < MANY or d > LONG or d % PIECE:
        return torch.rms_norm(x, gamma.shape, gamma, eps)
    if not (torch.is_grad_enabled() and (x.requires_grad or gamma.requires_grad)):
        return _forward(x, gamma, eps)[0]
    y: Tensor = _RMSNorm.apply(x, gamma, eps)  # type: ignore[no-untyped-call]
    return y


def has_values(x: Tensor) -> bool:
    """Whether x holds numbers that Python can read now, rather than stand for those of later calls."""
    plain = type(x) is Tensor and not x.is_meta  # a subclass may be fake, or lie on other machines
    return plain and not _traced() and _get_current_dispatch_mode() is None  # such a mode may record what it sees


def _traced() -> bool:
    """Whether a compiler or torch.func traces the call."""
    return (
        torch.compiler.is_compiling()
        or torch.jit.is_tracing()
        or torch._C._are_functorch_transforms_active()  # autograd.Function calls this too; it has no public name
    )


def _watched(*tensors: Tensor) -> bool:
    """Whether a compiler, torch.func or forward-mode autograd follows the call: they need operations that they know."""
    return _traced() or any(unpack_dual(t).tangent is not None for t in tensors)


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
    # One read of x; x * x would be stored first.
    rms = torch.linalg.vector_norm(x.unflatten(-1, (-1, PIECE)), dim=-1).div_(PIECE**0.5)  # (..., d / PIECE)
    rstd = rms.square_().mean(-1, keepdim=True).add_(eps).rsqrt_()  # (..., 1)
    return (x * rstd).mul_(gamma), rstd


def _backward(dy: Tensor, x: Tensor, gamma: Tensor, rstd: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """``dx = rstd * (dxhat - xhat * mean(dxhat * xhat))`` and ``dgamma = sum(dy * xhat)``, with ``dxhat = dy * gamma``.

    Given a mean of 0, LayerNorm's kernel computes this dx minus ``rstd * mean(dxhat)``, the term that comes from
    subtracting a mean. RMSNorm subtracts none, so we add the term back.
    """
    if torch.is_grad_enabled():  # for a second derivative, use operations that autograd can differentiate
        rstd = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)  # (..., 1)
        xhat, dxhat = x * rstd, dy * gamma
        dx = rstd * (dxhat - xhat * (dxhat * xhat).mean(dim=-1, keepdim=True))
        return dx, (dy * xhat).reshape(-1, x.shape[-1]).sum(dim=0)
    mean, d = torch.zeros_like(rstd), [x.shape[-1]]
    dx, dgamma, _dbeta = torch.ops.aten.native_layer_norm_backward(
        dy, x, d, mean, rstd, gamma, None, [True, True, False]
    )
    with torch.autocast("cpu", enabled=False):  # it would take this product in bfloat16
        sums = (dy @ gamma).unsqueeze(-1)  # (..., 1), sums of dxhat
    return dx.add_(sums.mul_(rstd), alpha=1 / x.shape[-1]), dgamma
