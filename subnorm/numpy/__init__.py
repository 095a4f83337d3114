"""The operations of the course as pure functions on NumPy arrays, each written as its equation."""

from subnorm.numpy.attention import attention, multi_head_attention, softmax
from subnorm.numpy.norms import (
    LayerNorm,
    RMSNorm,
    batch_norm,
    batch_norm_backward,
    layer_norm,
    layer_norm_backward,
    rms_norm,
    rms_norm_backward,
)
from subnorm.numpy.transformer_blocks import attention_sublayer, decoder_block, feed_forward, transformer_block
from subnorm.residual import PLACEMENTS, post_ln, pre_ln, residual

__all__ = [
    "PLACEMENTS",
    "LayerNorm",
    "RMSNorm",
    "attention",
    "attention_sublayer",
    "batch_norm",
    "batch_norm_backward",
    "decoder_block",
    "feed_forward",
    "layer_norm",
    "layer_norm_backward",
    "multi_head_attention",
    "post_ln",
    "pre_ln",
    "residual",
    "rms_norm",
    "rms_norm_backward",
    "softmax",
    "transformer_block",
]
