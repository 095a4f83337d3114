"""Rivals from other packages, each called as its authors call it: Numba on a CPU; Liger-Kernel and quack on a GPU.

All are optional: those that are installed take part. ``requirements-peers.txt`` has the versions that we wrote this
for. All have run: Liger-Kernel on an H200 and an H100, quack on the H100.
"""

# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-def, untyped-decorator"
# These packages may be absent.

import math
from collections.abc import Callable
from functools import cache, partial
from importlib import metadata
from typing import Any

import numpy as np
import torch
from torch import Tensor

from subnorm.timing.exact import EPS, Inputs, Results

#: The packages whose versions a record names; Triton compiles GPU kernels and times them.
PACKAGES = ("triton", "numba", "liger-kernel", "quack-kernels")


def version(package: str) -> str | None:
    """The installed version; None if not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def numba_norm(norm: str) -> Callable[..., np.ndarray[Any, Any]]:
    """The norm in float32 as two or three loops over each row, compiled by Numba for this processor.

    The row stays in the first-level cache between the loops, so memory is read once. Numba may reorder sums, as
    PyTorch and NumPy do; NaN and infinity keep their meaning.
    """
    import numba

    sqrt, one, eps = math.sqrt, np.float32(1), np.float32(EPS)

    @numba.njit(fastmath={"reassoc", "contract"})
    def rms(x, gamma, y):
        rows, d = x.shape
        for i in range(rows):
            square = np.float32(0)
            for j in range(d):
                square += x[i, j] * x[i, j]
            rstd = one / np.float32(sqrt(square / np.float32(d) + eps))
            for j in range(d):
                y[i, j] = x[i, j] * rstd * gamma[j]

    @numba.njit(fastmath={"reassoc", "contract"})
    def layer(x, gamma, beta, y):
        rows, d = x.shape
        for i in range(rows):
            total = np.float32(0)
            for j in range(d):
                total += x[i, j]
            mean = total / np.float32(d)
            square = np.float32(0)
            for j in range(d):
                square += (x[i, j] - mean) * (x[i, j] - mean)
            rstd = one / np.float32(sqrt(square / np.float32(d) + eps))
            for j in range(d):
                y[i, j] = (x[i, j] - mean) * rstd * gamma[j] + beta[j]

    loops = {"layer": layer, "rms": rms}[norm]

    def call(x, *parameters, out=None):
        y = np.empty_like(x) if out is None else out
        loops(x, *parameters, y)
        return y

    return call


def on_gpu(norm: str, *, residual: bool, autograd: bool) -> dict[str, Callable[..., Callable[..., Any]]]:
    """The rivals on a GPU, each of which makes a function of x, or of x and f, from a norm and its parameters.

    Neither Liger-Kernel nor quack has LayerNorm with a residual sum; quack's LayerNorm has no autograd.
    """
    found: dict[str, Callable[..., Callable[..., Any]]] = {}
    if version("liger-kernel") and (norm == "rms" or not residual):
        found["liger"] = _liger_sum if residual else _liger
    if version("quack-kernels") and (norm == "rms" or not (residual or autograd)):
        found["quack"] = _quack_sum if residual else _quack
    if version("triton"):
        found["triton"] = _triton_sum if residual else _triton
    return found


def _liger(norm: str, *parameters: Tensor) -> Callable[..., Any]:
    if norm == "layer":
        from liger_kernel.ops.layer_norm import LigerLayerNormFunction

        return lambda x: LigerLayerNormFunction.apply(x, *parameters, EPS)
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction

    # The offset must be a float; "gemma" rounds once, after the gain. The default, in place, would overwrite dy by dx.
    return lambda x: LigerRMSNormFunction.apply(x, *parameters, EPS, 0.0, "gemma", False)


def _liger_sum(norm: str, gamma: Tensor) -> Callable[..., Any]:
    from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction

    return lambda x, f: LigerFusedAddRMSNormFunction.apply(x, f, gamma, EPS, 0.0, "gemma", False)


def _quack(norm: str, *parameters: Tensor) -> Callable[..., Any]:
    from quack.rmsnorm import layernorm_fwd, rmsnorm

    if norm == "layer":
        wide = [p.float() for p in parameters]  # it requires float32
        return lambda x: layernorm_fwd(x, *wide, eps=EPS)
    return lambda x: rmsnorm(x, *parameters, eps=EPS)


def _quack_sum(norm: str, gamma: Tensor) -> Callable[..., Any]:
    from quack.rmsnorm import rmsnorm

    return lambda x, f: rmsnorm(x, gamma, residual=f, eps=EPS, prenorm=True)


def _triton(norm: str, *parameters: Tensor) -> Callable[..., Any]:
    from subnorm.torch import kernels

    return partial({"layer": kernels.layer_norm, "rms": kernels.rms_norm}[norm], **_named(parameters))


def _triton_sum(norm: str, *parameters: Tensor) -> Callable[..., Any]:
    from subnorm.torch import kernels

    return partial({"layer": kernels.add_layer_norm, "rms": kernels.add_rms_norm}[norm], **_named(parameters))


def _named(parameters: tuple[Tensor, ...]) -> dict[str, Any]:
    return {"eps": EPS, **dict(zip(("gamma", "beta"), parameters, strict=False))}


# Backward passes without autograd: run the forward pass, save its results, and return the call to time.


def backward(rival: str, norm: str, inputs: Inputs, *, residual: bool) -> Callable[[], Callable[[], Results]] | None:
    """A function that runs the forward pass and returns the backward call; None if the rival has no such function."""
    back = {"builtin": _builtin_back, "liger": _liger_back, "quack": _quack_back, "triton": _triton_back}.get(rival)
    if back is None or (rival, residual) == ("builtin", True):  # PyTorch has none for sum and norm
        return None
    return partial(back, norm, inputs.detach(), residual)


def _builtin_back(norm: str, inputs: Inputs, residual: bool) -> Callable[[], Results]:
    aten, x, dy, size = torch.ops.aten, inputs.x, inputs.dy, list(inputs.gamma.shape)
    if norm == "layer":
        _y, mean, rstd = aten.native_layer_norm(x, size, inputs.gamma, inputs.beta, EPS)
        kept = (mean, rstd, inputs.gamma, inputs.beta)
        return lambda: aten.native_layer_norm_backward(dy, x, size, *kept, [True, True, True])
    _y, rstd = aten._fused_rms_norm(x, size, inputs.gamma, EPS)
    return lambda: aten._fused_rms_norm_backward(dy, x, size, rstd, inputs.gamma, [True, True])


def _liger_back(norm: str, inputs: Inputs, residual: bool) -> Callable[[], Results]:
    x, dy, gamma, beta = inputs.x, inputs.dy, inputs.gamma, inputs.beta
    if norm == "layer":
        from liger_kernel.ops.layer_norm import layer_norm_backward, layer_norm_forward

        _y, rows, mean, rstd, *_ = layer_norm_forward(x, gamma, beta, EPS)
        return lambda: layer_norm_backward(dy, rows, gamma, beta, mean, rstd)
    if residual:
        from liger_kernel.ops.fused_add_rms_norm import fused_add_rms_norm_backward, fused_add_rms_norm_forward

        _y, h, rstd, block, warps, stages, mode = fused_add_rms_norm_forward(x, inputs.f, gamma, EPS, 0.0, "gemma")
        return lambda: fused_add_rms_norm_backward(
            dy, inputs.dh, h, gamma, rstd, 0.0, mode, block, warps, stages, False
        )
    from liger_kernel.ops.rms_norm import rms_norm_backward, rms_norm_forward

    _y, rows, rstd, block, warps, mode = rms_norm_forward(x, gamma, EPS, 0.0, "gemma", None)
    own = dy.clone()  # work in place: otherwise it would write dx twice, first as zeros
    return lambda: rms_norm_backward(own, rows, gamma, rstd, 0.0, mode, block, warps, True, None)


def _quack_back(norm: str, inputs: Inputs, residual: bool) -> Callable[[], Results]:
    from quack.rmsnorm import layernorm_bwd, layernorm_fwd, rmsnorm_bwd, rmsnorm_fwd

    x, dy, gamma = inputs.x, inputs.dy, inputs.gamma
    if norm == "layer":
        wide = gamma.float()
        _y, rstd, mean = layernorm_fwd(x, wide, inputs.beta.float(), eps=EPS, return_rstd=True, return_mean=True)
        return lambda: layernorm_bwd(x, wide, dy, rstd, mean, has_bias=True)
    if residual:
        _y, h, rstd = rmsnorm_fwd(x, gamma, residual=inputs.f, eps=EPS, store_rstd=True)

        def call() -> Results:
            dx, dgamma, _dbeta, df = rmsnorm_bwd(h, gamma, dy, rstd, dresidual_out=inputs.dh, has_residual=True)
            return dx, df, dgamma

        return call
    _y, _x, rstd = rmsnorm_fwd(x, gamma, eps=EPS, store_rstd=True)
    return lambda: rmsnorm_bwd(x, gamma, dy, rstd)[:2]


def _triton_back(norm: str, inputs: Inputs, residual: bool) -> Callable[[], Results]:
    from subnorm.torch import kernels

    f, dh = (inputs.f, inputs.dh) if residual else (None, None)
    beta = inputs.beta if norm == "layer" else None
    _y, h, mean, rstd = kernels.add_norm_forward(inputs.x, f, inputs.gamma, beta, EPS, centred=norm == "layer")

    def call() -> Results:
        dx, dgamma, dbeta = kernels.add_norm_backward(inputs.dy, dh, h, inputs.gamma, mean, rstd)
        return *((dx, dx) if residual else (dx,)), dgamma, *(() if dbeta is None else (dbeta,))

    return call
