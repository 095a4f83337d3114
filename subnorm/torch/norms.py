"""LayerNorm, RMSNorm and BatchNorm as readable functions on tensors, and the modules.

The code mirrors `subnorm.numpy.norms`; autograd supplies the backward passes. The modules compute the same functions,
through `subnorm.torch.fast` where it covers their input. They never use the Triton kernels of `subnorm.torch.kernels`:
import those yourself.
"""

import torch
from torch import Tensor, nn

from subnorm import _rules
from subnorm.torch import fast


def _centre(x: Tensor, axis: int) -> Tensor:
    x = x - x.mean(dim=axis, keepdim=True)
    return x - x.mean(dim=axis, keepdim=True)  # the mean was rounded; this subtracts what that left


def _unit_rms(x: Tensor, axis: int, eps: float) -> Tensor:
    """x divided by the root of its mean square."""
    rstd = torch.rsqrt((x * x).mean(dim=axis, keepdim=True) + eps)
    return x * rstd


def layer_norm(x: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """LayerNorm on tensors, bfloat16 included.

    See :func:`subnorm.numpy.layer_norm` for the formula, the arguments, the errors and the source.
    ``torch.nn.functional.layer_norm`` is the same function, but subtracts the mean once.

    Accuracy: computed in at least float32, the mean subtracted twice, and rounded to the dtype of x: within 4 machine
    epsilons of the exact result, in units of the row's largest entry, at any mean and size. In float32, a row with an
    entry above 1.8e19 overflows when squared and becomes 0; the NumPy function, in float64, is right there, too.

    Known mistake: ``x.std()``, which torch divides by d - 1.
    """
    x_wide = _features(x)
    _rules.small_constant(eps)
    xhat = _unit_rms(_centre(x_wide, -1), -1, eps)  # (..., d)
    return _affine(xhat, gamma, beta).to(x.dtype)


def rms_norm(x: Tensor, gamma: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """RMSNorm on tensors, bfloat16 included.

    See :func:`subnorm.numpy.rms_norm` for the formula, the arguments, the errors and the source.
    ``torch.nn.functional.rms_norm`` with the same eps is the same function. Accuracy as in :func:`layer_norm`.

    Known mistake: squaring in float16, which overflows above 255.
    """
    x_wide = _features(x)
    _rules.small_constant(eps)
    xhat = _unit_rms(x_wide, -1, eps)  # (..., d)
    return _affine(xhat, gamma, None).to(x.dtype)


def batch_norm(x: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """BatchNorm in training on tensors, bfloat16 included.

    See :func:`subnorm.numpy.batch_norm` for the formula, the arguments, the errors and the source.
    Accuracy as in :func:`layer_norm`.

    Known mistake: feeding (B, T, d) to torch.nn.BatchNorm1d, which expects the features on the second axis.
    """
    x_wide = _features(x)
    _rules.at_least_one_row(tuple(x.shape))
    _rules.small_constant(eps)
    # Flatten to rows first: for x of shape (d,) torch would read an empty tuple of axes as all axes.
    rows = x_wide.reshape(-1, x.shape[-1])  # (N, d)
    xhat = _unit_rms(_centre(rows, 0), 0, eps).reshape(x.shape)  # (..., d)
    return _affine(xhat, gamma, beta).to(x.dtype)


class LayerNorm(nn.Module):
    """LayerNorm with its parameters: weight (gamma) starts at 1, bias (beta) at 0. See :func:`layer_norm`.

    The names are those of ``torch.nn.LayerNorm``, so its state_dict loads. With ``bias=False`` there is no beta, with
    ``elementwise_affine=False`` no gamma either, as in OLMo 1 (olmo/model.py, ``layer_norm_with_affine``).
    It runs PyTorch's kernel, ``F.layer_norm``, where x and the parameters share a dtype: float32 or float64 on the
    CPU, these or half precision on CUDA. Otherwise it calls :func:`layer_norm`.

    Accuracy: that kernel subtracts the mean once. If the mean is m standard deviations from 0, its error can reach
    m machine epsilons; the function's does not.
    """

    def __init__(self, d_model: int, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True) -> None:
        super().__init__()
        _rules.size("d_model", d_model)
        _rules.small_constant(eps)
        self.d_model, self.eps = d_model, eps
        self.weight = nn.Parameter(torch.empty(d_model)) if elementwise_affine else None
        self.bias = nn.Parameter(torch.empty(d_model)) if elementwise_affine and bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight is not None:
            nn.init.ones_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return _layer_norm(x, self.d_model, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        absent = ", elementwise_affine=False" if self.weight is None else ", bias=False" if self.bias is None else ""
        return f"{self.d_model}, eps={self.eps}{absent}"


class RMSNorm(nn.Module):
    """RMSNorm with its parameter: weight (gamma) starts at 1. See :func:`rms_norm`.

    The name is that of ``torch.nn.RMSNorm``, so its state_dict loads. But that module's default eps is None, the
    machine epsilon of the dtype that it computes in: float32's for half precision as well. With
    ``elementwise_affine=False`` there is no gamma. It runs ``F.rms_norm`` where x and the weight share a dtype: float32
    or float64 on the CPU, these or half precision on CUDA. On the CPU, from 65,536 entries on and for a multiple of 64
    features, it runs its own passes if it has a weight. Otherwise it calls :func:`rms_norm`.

    Accuracy as in :func:`rms_norm`. Only CUDA's kernel is less exact on long rows: 13 machine epsilons at 4 million
    features, on an H200.
    """

    def __init__(self, d_model: int, eps: float = 1e-5, elementwise_affine: bool = True) -> None:
        super().__init__()
        _rules.size("d_model", d_model)
        _rules.small_constant(eps)
        self.d_model, self.eps = d_model, eps
        self.weight = nn.Parameter(torch.empty(d_model)) if elementwise_affine else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight is not None:
            nn.init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return _rms_norm(x, self.d_model, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.d_model}, eps={self.eps}" + (", elementwise_affine=False" if self.weight is None else "")


# What the modules call: one function each, so that torch.fx can record it as one node.


@torch.fx.wrap
def _layer_norm(x: Tensor, width: int, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    if fast.covers(x, width, weight, bias):
        return torch.layer_norm(x, (width,), weight, bias, eps)  # F.layer_norm calls this
    _float_tensor("x", x)
    _rules.width(tuple(x.shape), width)
    return layer_norm(x, weight, bias, eps)


@torch.fx.wrap
def _rms_norm(x: Tensor, width: int, weight: Tensor | None, eps: float) -> Tensor:
    if fast.covers(x, width, weight):
        return torch.rms_norm(x, (width,), None, eps) if weight is None else fast.rms_norm(x, weight, eps)
    _float_tensor("x", x)
    _rules.width(tuple(x.shape), width)
    return rms_norm(x, weight, eps)


class AddRMSNorm(RMSNorm):
    """The residual sum and the norm that reads it: ``stream = x + branch``, ``y = rms_norm(stream)``.

    In a stack of Pre-LN blocks every sum feeds a norm and the next sum, so the module returns both results.
    Parameter and computation are those of :class:`RMSNorm`. To do both in one pass over memory takes a fused kernel:
    :func:`subnorm.torch.kernels.add_rms_norm`.

    Args:
        x: the stream so far, shape (..., d_model).
        branch: the sublayer's output, of the same shape.

    Returns:
        y and the stream, both (..., d_model).

    Raises:
        TypeError: x or branch is not floating-point.
        ValueError: x does not have d_model features, or branch does not have the shape of x.

    Source: the fused layer norms of FlashAttention's repository, Dao et al., which return the stream too; chapter 08.

    Known mistake: passing y on as the stream, which makes the block Post-LN.
    """

    def forward(self, x: Tensor, branch: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        stream = _add(x, branch)
        return super().forward(stream), stream


@torch.fx.wrap
def _add(x: Tensor, branch: Tensor) -> Tensor:
    _float_tensor("x", x)
    _float_tensor("branch", branch)
    _rules.same_shape("branch", tuple(branch.shape), "x", tuple(x.shape))
    return x + branch


#: The norms that a block can be built with, by name.
NORMS: dict[str, type[LayerNorm] | type[RMSNorm]] = {"layer": LayerNorm, "rms": RMSNorm}


def _features(x: Tensor) -> Tensor:
    """x, checked, in at least float32 for the statistics."""
    _float_tensor("x", x)
    _rules.features(tuple(x.shape))
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _float_tensor(name: str, value: Tensor) -> None:
    _rules.tensor(name, isinstance(value, Tensor), type(value))
    _rules.floating(name, value.dtype in fast.WIDE_AND_HALF, value.dtype, _rules.TORCH_TYPES)
    _rules.dense(name, fast.is_dense(value), value.is_nested, value.layout)


def _affine(xhat: Tensor, gamma: Tensor | None, beta: Tensor | None) -> Tensor:
    """gamma * xhat + beta; None leaves that parameter out."""
    for name, parameter in (("gamma", gamma), ("beta", beta)):
        if parameter is not None:
            _float_tensor(name, parameter)
            _rules.vector(name, tuple(parameter.shape), xhat.shape[-1])
    y = xhat if gamma is None else gamma * xhat
    return y if beta is None else y + beta
