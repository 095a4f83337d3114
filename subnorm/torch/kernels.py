"""Fused LayerNorm and RMSNorm for NVIDIA GPUs: one kernel forward and one backward, with or without a residual sum.

Optional: this file needs Triton (the extra ``gpu``, or ``pip install triton`` on Linux; CUDA builds of PyTorch include
it), and nothing else in the package imports it. Import it by name: ``from subnorm.torch import kernels``.

A norm does little arithmetic, so memory traffic sets its cost. In a chain of separate operations, each reads its
input from memory and writes its output back. Here a kernel reads a row once into registers, does all the arithmetic
there, and writes the result once:

======================  ==============================  ============================
pass                    must move, in arrays of x        with one kernel per step
======================  ==============================  ============================
norm, forward           2: x in, y out                  2
sum and norm, forward   4: x and f in, h and y out      3 + 2
norm, backward          3: dy and h in, dx out          3
sum and norm, backward  4: dy, dh and h in, dx out      3 + 3
======================  ==============================  ============================

Both norms share the same two kernels. For RMSNorm ``mean is None``: Triton compiles a separate kernel for every
argument that is None, and leaves out the lines that use it. The same holds for f, gamma, beta and dh.

Names, as in the book: x, mean, rstd, xhat, gamma, beta, eps, dy, dx; f is the sublayer's output, and h = x + f is the
residual stream, which the norm reads.
"""

# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-def, no-untyped-call, untyped-decorator"
# Triton has no types, and may be absent. Inside a kernel a tensor is a pointer to its first number.

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from subnorm import _rules
from subnorm.torch.norms import _float_tensor

#: The widest row that a kernel accepts. A row of up to 8192 features of at most 32 bits fits into the registers of one
#: program. With more, the backward pass spills registers to memory: still correct, but slower.
MAX_FEATURES = 16384

# Threads for each streaming multiprocessor in the backward pass. With 64 registers each, they fill its register file.
THREADS = 1024


# The kernels. D, BLOCK, ROWS, EPS and WIDE are constants: Triton compiles a kernel for each combination.


@triton.jit
def _forward(
    x, f, gamma, beta, h, y, mean, rstd, rows, D: tl.constexpr, EPS: tl.constexpr, BLOCK: tl.constexpr,
    ROWS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A tile of ROWS rows: h = x + f, then y = gamma * (h - mean) * rstd + beta."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]  # int64: row * D can pass 2**31
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < D)
    at = row * D + col

    value = tl.load(x + at, inside, 0).to(WIDE)
    if f is not None:
        # Round to the dtype of h before normalising: the backward pass reads this h.
        total = (value + tl.load(f + at, inside, 0).to(WIDE)).to(h.dtype.element_ty)
        tl.store(h + at, total, inside)
        value = total.to(WIDE)

    if mean is not None:
        middle = tl.sum(value, 1, keep_dims=True) / D
        tl.store(mean + row, middle, row < rows)
        value = tl.where(col < D, value - middle, 0)  # a lane past the row's end would add mean**2 to the variance
        value = tl.where(col < D, value - tl.sum(value, 1, keep_dims=True) / D, 0)  # what rounding left of the mean
    scale = tl.rsqrt(tl.sum(value * value, 1, keep_dims=True) / D + EPS)
    tl.store(rstd + row, scale, row < rows)

    result = value * scale
    if gamma is not None:
        result *= tl.load(gamma + col, col < D, 0).to(WIDE)
    if beta is not None:
        result += tl.load(beta + col, col < D, 0).to(WIDE)
    tl.store(y + at, result.to(y.dtype.element_ty), inside)


@triton.jit
def _backward(
    dy, dh, h, gamma, mean, rstd, dx, dgamma, dbeta, rows, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """dx = rstd * (dxhat - mean(dxhat) - xhat * mean(dxhat * xhat)) + dh, with dxhat = dy * gamma.

    A few programs share all tiles, so each can sum its part of dgamma and dbeta in registers. It writes the sums
    once, as one row of a small array that is added up afterwards in a fixed order, unlike atomic additions.
    """
    program = tl.program_id(0)
    col = tl.arange(0, BLOCK)[None, :]
    dgamma_sum = tl.zeros((ROWS, BLOCK), WIDE)
    dbeta_sum = tl.zeros((ROWS, BLOCK), WIDE)
    if gamma is not None:
        gain = tl.load(gamma + col, col < D, 0).to(WIDE)

    for tile in range(program, tl.cdiv(rows, ROWS), tl.num_programs(0)):
        row = (tile * ROWS + tl.arange(0, ROWS)).to(tl.int64)
        inside = (row < rows)[:, None] & (col < D)
        at = row[:, None] * D + col

        # Past the end dy is 0, and every sum below has dy as a factor: nothing else needs a mask.
        grad = tl.load(dy + at, inside, 0).to(WIDE)
        xhat = tl.load(h + at, inside, 0).to(WIDE)
        scale = tl.load(rstd + row, row < rows, 0)[:, None]
        if mean is not None:
            xhat = tl.where(inside, xhat - tl.load(mean + row, row < rows, 0)[:, None], 0)
            xhat = tl.where(inside, xhat - tl.sum(xhat, 1, keep_dims=True) / D, 0)
        xhat *= scale

        dgamma_sum += grad * xhat
        if dbeta is not None:
            dbeta_sum += grad

        if gamma is not None:
            grad *= gain
        result = grad - xhat * (tl.sum(grad * xhat, 1, keep_dims=True) / D)
        if mean is not None:
            result -= tl.sum(grad, 1, keep_dims=True) / D
        result *= scale
        if dh is not None:
            result += tl.load(dh + at, inside, 0).to(WIDE)
        tl.store(dx + at, result.to(dx.dtype.element_ty), inside)

    share = program * D + col
    tl.store(dgamma + share, tl.sum(dgamma_sum, 0, keep_dims=True), col < D)
    if dbeta is not None:
        tl.store(dbeta + share, tl.sum(dbeta_sum, 0, keep_dims=True), col < D)


# Tile sizes, chosen so that no registers spill, according to the compiler. They ran on an H200 and an H100, untuned.


def forward_tile(d: int) -> tuple[int, int, int]:
    """BLOCK, ROWS and warps: about 4096 numbers per program, 8 to 32 of them per thread."""
    block = triton.next_power_of_2(d)
    return block, max(1, 4096 // block), max(4, block // 1024)


def backward_tile(d: int) -> tuple[int, int, int]:
    """BLOCK, ROWS and warps: 8 numbers per thread, which holds up to six such arrays in registers."""
    block = triton.next_power_of_2(d)
    return block, max(1, 1024 // block), min(32, max(4, block // 256))


@cache
def _processors(device: torch.device) -> int:
    """Streaming multiprocessors of the GPU; 1 for Triton's interpreter on a CPU."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


# The passes, as functions on tensors


def add_norm_forward(
    x: Tensor, f: Tensor | None, gamma: Tensor | None, beta: Tensor | None, eps: float, *, centred: bool
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """LayerNorm (centred) or RMSNorm of h = x + f, in one kernel.

    ``y = gamma * (h - mean) * rstd + beta``, with ``rstd = 1 / sqrt(mean((h - mean)**2) + eps)``; RMSNorm uses 0
    for the mean.

    Statistics are computed in at least float32, and the mean is subtracted twice (in registers, not in
    memory). h is rounded to its dtype before it is normalised. With ``eps=0`` a constant row gives NaN.

    Args:
        x: the residual stream, shape (..., d), float16, bfloat16, float32 or float64, on a GPU.
        f: the sublayer's output, shape (..., d); None for 0, and then h is x.
        gamma, beta, eps: as in :func:`subnorm.numpy.layer_norm`.
        centred: True for LayerNorm, False for RMSNorm.

    Returns:
        y and h, shape (..., d), in the dtype of x + f; and, for the backward pass, mean (None for RMSNorm) and rstd,
        one entry for each row, in float32 (float64 for float64).

    Raises:
        TypeError: an input is not a floating-point tensor.
        ValueError: a shape does not fit, d is above `MAX_FEATURES`, eps is negative, or x is not on a GPU.

    Source: the layout is that of Triton's tutorial 05 and of Liger-Kernel, arXiv:2410.10989.

    Known mistake: normalising the sum before rounding it, so that the backward pass reads a different h.
    """
    _check(x, f, gamma, beta, eps)
    d = x.shape[-1]
    x = x.contiguous()
    y = torch.empty_like(x, dtype=x.dtype if f is None else torch.promote_types(x.dtype, f.dtype))
    h = x if f is None else torch.empty_like(y)
    rows = x.numel() // d
    wide = torch.promote_types(y.dtype, torch.float32)
    mean = torch.empty(rows, dtype=wide, device=x.device) if centred else None
    rstd = torch.empty(rows, dtype=wide, device=x.device)
    block, tile, warps = forward_tile(d)
    with torch.cuda.device_of(x):  # Triton launches on the current GPU, which may not be the one that holds x
        _forward[(triton.cdiv(rows, tile),)](
            x, _packed(f), _packed(gamma), _packed(beta), None if f is None else h, y, mean, rstd, rows,
            D=d, EPS=float(eps), BLOCK=block, ROWS=tile, WIDE=TYPES[wide], num_warps=warps,
        )  # fmt: skip
    return y, h, mean, rstd


def add_norm_backward(
    dy: Tensor, dh: Tensor | None, h: Tensor, gamma: Tensor | None, mean: Tensor | None, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Gradients of :func:`add_norm_forward`, in one kernel and one small sum.

    ``dxhat = dy * gamma``, then ``dx = rstd * (dxhat - mean(dxhat) - xhat * mean(dxhat * xhat)) + dh``, where RMSNorm
    has no mean(dxhat); ``dgamma = sum(dy * xhat)`` and ``dbeta = sum(dy)`` over all rows, in a fixed order, so every
    run gives the same numbers.

    Args:
        dy: gradient of the loss with respect to y, shape (..., d).
        dh: gradient with respect to h from the rest of the residual stream, shape (..., d); None for 0.
        h: as the forward pass returned it.
        gamma: the gain of the forward pass, shape (d,); None for 1.
        mean: as the forward pass returned it, None for RMSNorm.
        rstd: as the forward pass returned it.

    Returns:
        dx, which is also the gradient with respect to f, shape (..., d), in the dtype of h; dgamma and dbeta (None
        for RMSNorm), shape (d,), in the dtype of gamma (of h without one).

    Source: the chain rule, line by line in deep dive 03a.

    Known mistake: forgetting dh. The stream h feeds both the norm and the next sum, so both send a gradient back.
    """
    d = h.shape[-1]
    dx = torch.empty_like(h)
    rows = h.numel() // d
    block, tile, warps = backward_tile(d)
    programs = min(triton.cdiv(rows, tile), _processors(h.device) * (THREADS // (32 * warps)))
    shares = torch.empty((1 if mean is None else 2, programs, d), dtype=rstd.dtype, device=h.device)
    with torch.cuda.device_of(h):
        _backward[(programs,)](
            dy.contiguous(), _packed(dh), h, _packed(gamma), mean, rstd, dx, shares[0],
            None if mean is None else shares[1], rows, D=d, BLOCK=block, ROWS=tile, WIDE=TYPES[rstd.dtype],
            num_warps=warps,
        )  # fmt: skip
    sums = shares.sum(1).to(h.dtype if gamma is None else gamma.dtype)
    return dx, sums[0], None if mean is None else sums[1]


class AddNorm(torch.autograd.Function):
    """The two passes joined for autograd: ``AddNorm.apply(x, f, gamma, beta, eps, centred)`` gives y and h.

    It raises an error for a second derivative.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, f: Tensor | None, gamma: Tensor | None, beta: Tensor | None, eps: float, centred: bool
    ) -> tuple[Tensor, Tensor]:
        y, h, mean, rstd = add_norm_forward(x, f, gamma, beta, eps, centred=centred)
        ctx.save_for_backward(h, gamma, mean, rstd)
        ctx.set_materialize_grads(False)  # a missing gradient stays None, so no zeros are read from memory
        return y, h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor | None, dh: Tensor | None) -> tuple[Tensor | None, ...]:
        h, gamma, mean, rstd = ctx.saved_tensors
        dx, dgamma, dbeta = add_norm_backward(torch.zeros_like(h) if dy is None else dy, dh, h, gamma, mean, rstd)
        gradients = (dx, dx, dgamma, dbeta, None, None)
        return tuple(g if needed else None for g, needed in zip(gradients, ctx.needs_input_grad, strict=True))


def _add_norm(*arguments: Any) -> tuple[Tensor, Tensor]:
    y, h = AddNorm.apply(*arguments)
    return y, h


# Functions for models. torch.compile skips them: it makes its own kernels from the readable functions.


@torch.compiler.disable
def layer_norm(x: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """:func:`subnorm.torch.layer_norm` as one kernel per pass. See :func:`add_norm_forward`."""
    y, _h = _add_norm(x, None, gamma, beta, eps, True)
    return y


@torch.compiler.disable
def rms_norm(x: Tensor, gamma: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """:func:`subnorm.torch.rms_norm` as one kernel per pass. See :func:`add_norm_forward`."""
    y, _h = _add_norm(x, None, gamma, None, eps, False)
    return y


@torch.compiler.disable
def add_layer_norm(
    x: Tensor, f: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor]:
    """``h = x + f; y = layer_norm(h, gamma, beta, eps)`` as one kernel per pass; returns y and h.

    Post-LN continues with y. Pre-LN feeds y to the next sublayer and adds its output to h.
    """
    return _add_norm(x, f, gamma, beta, eps, True)


@torch.compiler.disable
def add_rms_norm(x: Tensor, f: Tensor, gamma: Tensor | None = None, eps: float = 1e-5) -> tuple[Tensor, Tensor]:
    """``h = x + f; y = rms_norm(h, gamma, eps)`` as one kernel per pass; returns y and h."""
    return _add_norm(x, f, gamma, None, eps, False)


# Input checks that they share

TYPES = {torch.float32: tl.float32, torch.float64: tl.float64}


def _packed(value: Tensor | None) -> Tensor | None:
    """The tensor with its rows contiguous in memory, as the kernels assume."""
    return None if value is None else value.contiguous()


def _check(x: Tensor, f: Tensor | None, gamma: Tensor | None, beta: Tensor | None, eps: float) -> None:
    for name, value in (("x", x), ("f", f), ("gamma", gamma), ("beta", beta)):
        if value is not None:
            _float_tensor(name, value)
    _rules.features(tuple(x.shape))
    if f is not None:
        _rules.same_shape("f", tuple(f.shape), "x", tuple(x.shape))
    for name, parameter in (("gamma", gamma), ("beta", beta)):
        if parameter is not None:
            _rules.vector(name, tuple(parameter.shape), x.shape[-1])
    _rules.small_constant(eps)
    if (d := x.shape[-1]) > MAX_FEATURES:
        raise ValueError(
            f"a fused kernel takes at most {MAX_FEATURES} features, so that a row fits into registers; got {d}. "
            f"Use the function of the same name in subnorm.torch."
        )
    if not (x.is_cuda or triton.knobs.runtime.interpret):
        raise ValueError(
            f"a Triton kernel takes tensors on a CUDA GPU; got one on {x.device}. Move it to the GPU, or use the "
            f"function of the same name in subnorm.torch. To try the kernel on a CPU, set TRITON_INTERPRET=1 before "
            f"Python starts."
        )
