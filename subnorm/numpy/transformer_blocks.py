"""The sublayers of a transformer, and the blocks built from them, in evaluation mode: without dropout.

Parameters come as a dictionary with the names of the PyTorch module's state_dict, for example
``{name: tensor.numpy() for name, tensor in subnorm.torch.TransformerBlock(64, 4, 256).state_dict().items()}``.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from subnorm import _rules
from subnorm.numpy.attention import Mask, Params, _arrays, _wide, multi_head_attention
from subnorm.numpy.norms import Array, _float_array, layer_norm, rms_norm
from subnorm.residual import PLACEMENTS

FEED_FORWARD_PARAMS = ("linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias")
NORM_PARAMS = {"layer": ("weight", "bias"), "rms": ("weight",)}


def feed_forward(x: npt.ArrayLike, params: Params) -> Array:
    """The same two-layer network at every token: ``relu(x W1^T + b1) W2^T + b2``.

    Args:
        x: input, shape (..., d_model).
        params: ``linear1.weight`` (d_ff, d_model), ``linear1.bias`` (d_ff,), ``linear2.weight`` (d_model, d_ff),
            ``linear2.bias`` (d_model,).

    Returns:
        y, shape (..., d_model), in the dtype of x.

    Raises:
        TypeError: x is not floating-point.
        ValueError: x does not fit the parameters, or one is missing or misshapen.

    Source: Vaswani et al. 2017, arXiv:1706.03762, equation 2; chapter 06.

    Known mistake: a ReLU after the second layer as well, so that the branch can never subtract.
    """
    x = _float_array("x", x)
    params = _arrays(params, FEED_FORWARD_PARAMS)
    _rules.matrix("params['linear1.weight']", params["linear1.weight"].shape)
    d_ff, d_model = params["linear1.weight"].shape
    _rules.shapes(
        "params", params, {"linear1.bias": (d_ff,), "linear2.weight": (d_model, d_ff), "linear2.bias": (d_model,)}
    )
    _rules.width(x.shape, d_model)
    h = np.maximum(_wide(x) @ params["linear1.weight"].T + params["linear1.bias"], 0)  # (..., d_ff)
    return (h @ params["linear2.weight"].T + params["linear2.bias"]).astype(x.dtype)  # (..., d_model)


def attention_sublayer(
    x: npt.ArrayLike,
    params: Params,
    num_heads: int,
    placement: str = "pre",
    norm: str = "layer",
    mask: Mask | None = None,
    eps: float = 1e-5,
) -> Array:
    """Attention with its residual connection and its norm: ``x + MHA(norm(x))`` or ``norm(x + MHA(x))``.

    Args:
        x: input, shape (..., T, d_model).
        params: ``self_attn.…`` as in :func:`multi_head_attention`, and ``norm.weight``, ``norm.bias``
            (no bias for RMSNorm).
        num_heads: number of heads; divides d_model.
        placement: "pre" or "post".
        norm: "layer" or "rms".
        mask: boolean, broadcasts to (..., num_heads, T, T); True where a query may look at a key.
        eps: of the norm.

    Returns:
        y, shape (..., T, d_model), in the dtype of x.

    Raises:
        TypeError: x is not floating-point, or the mask is not boolean.
        ValueError: an unknown placement or norm, a missing parameter, or a shape that does not fit.

    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.1; deep dive 06a.

    Known mistake: leaving out the final norm after a stack of "pre" sublayers.
    """
    x = _float_array("x", x)
    _rules.choice("placement", placement, PLACEMENTS)
    attend, norm1 = _attention("self_attn", params, num_heads, mask), _norm("norm", params, norm, eps)
    return x + attend(norm1(x)) if placement == "pre" else norm1(x + attend(x))


def transformer_block(
    x: npt.ArrayLike,
    params: Params,
    num_heads: int,
    placement: str = "pre",
    norm: str = "layer",
    mask: Mask | None = None,
    eps: float = 1e-5,
) -> Array:
    """One transformer block: an attention sublayer, then a feed-forward sublayer.

    Args:
        x: input, shape (..., T, d_model).
        params: ``self_attn.…`` as in :func:`multi_head_attention`, ``feed_forward.…`` as in :func:`feed_forward`,
            and ``norm1.weight``, ``norm1.bias``, ``norm2.weight``, ``norm2.bias`` (no biases for RMSNorm).
        num_heads, placement, norm, mask, eps: as in :func:`attention_sublayer`, as are the result and the errors.

    Source: Vaswani et al. 2017, arXiv:1706.03762; for "pre", Xiong et al. 2020, arXiv:2002.04745; chapter 06.

    Known mistake: using the first norm twice.
    """
    x = _float_array("x", x)
    _rules.choice("placement", placement, PLACEMENTS)
    norm1, norm2 = (_norm(name, params, norm, eps) for name in ("norm1", "norm2"))
    attend, feed = _attention("self_attn", params, num_heads, mask), _feed_forward(params)
    if placement == "pre":
        x = x + attend(norm1(x))
        return x + feed(norm2(x))
    x = norm1(x + attend(x))
    return norm2(x + feed(x))


def decoder_block(
    x: npt.ArrayLike,
    memory: npt.ArrayLike,
    params: Params,
    num_heads: int,
    placement: str = "pre",
    norm: str = "layer",
    mask: Mask | None = None,
    memory_mask: Mask | None = None,
    eps: float = 1e-5,
) -> Array:
    """One decoder block: self-attention, cross-attention to the memory, then feed-forward.

    An encoder block is :func:`transformer_block` without a mask; the memory is the encoder's output.

    Args:
        x: input, shape (..., T, d_model).
        memory: the encoder's output, shape (..., S, d_model). Keys and values read it without a norm.
        params: ``self_attn.…`` and ``multihead_attn.…`` (the cross-attention) as in :func:`multi_head_attention`,
            ``feed_forward.…`` as in :func:`feed_forward`, and ``weight`` and ``bias`` of ``norm1``, ``norm2`` and
            ``norm3`` (no biases for RMSNorm): the names of torch.nn.TransformerDecoderLayer.
        mask: as in :func:`attention_sublayer`; usually causal.
        memory_mask: the same for keys of the memory, (..., num_heads, T, S). None for all.
        num_heads, placement, norm, eps: as in :func:`attention_sublayer`, as are the result and the errors.

    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.1; chapter 06.

    Known mistake: a causal mask on the cross-attention, which hides most of the memory from early tokens.
    """
    x = _float_array("x", x)
    _rules.choice("placement", placement, PLACEMENTS)
    norm1, norm2, norm3 = (_norm(name, params, norm, eps) for name in ("norm1", "norm2", "norm3"))
    attend, feed = _attention("self_attn", params, num_heads, mask), _feed_forward(params)
    read = _attention("multihead_attn", params, num_heads, memory_mask, memory)
    if placement == "pre":
        x = x + attend(norm1(x))
        x = x + read(norm2(x))
        return x + feed(norm3(x))
    x = norm1(x + attend(x))
    x = norm2(x + read(x))
    return norm3(x + feed(x))


def _under(name: str, params: Params) -> Params:
    """The parameters under one prefix, without it: ``self_attn.in_proj_bias`` becomes ``in_proj_bias``."""
    return {key.removeprefix(f"{name}."): value for key, value in params.items() if key.startswith(f"{name}.")}


def _attention(
    name: str, params: Params, num_heads: int, mask: Mask | None, memory: npt.ArrayLike | None = None
) -> Callable[[Array], Array]:
    return lambda x: multi_head_attention(x, _under(name, params), num_heads, mask, memory)


def _feed_forward(params: Params) -> Callable[[Array], Array]:
    return lambda x: feed_forward(x, _under("feed_forward", params))


def _norm(name: str, params: Params, kind: str, eps: float) -> Callable[[Array], Array]:
    _rules.choice("norm", kind, NORM_PARAMS)
    gamma, *beta = _arrays(params, [f"{name}.{key}" for key in NORM_PARAMS[kind]]).values()
    if kind == "rms":
        _rules.absent("params", params, f"{name}.bias", "RMSNorm has no shift")
        return lambda x: rms_norm(x, gamma, eps)
    return lambda x: layer_norm(x, gamma, beta[0], eps)
