"""Norms and placements on PyTorch tensors, under the same names as in NumPy, and the rest as modules."""

from subnorm.residual import PLACEMENTS, post_ln, pre_ln, residual
from subnorm.torch.attention import MultiHeadAttention
from subnorm.torch.finite import first_non_finite
from subnorm.torch.norms import NORMS, AddRMSNorm, LayerNorm, RMSNorm, batch_norm, layer_norm, rms_norm
from subnorm.torch.placements import STACK_PLACEMENTS, Placement, Stack
from subnorm.torch.transformer_blocks import AttentionSubLayer, DecoderBlock, FeedForward, TransformerBlock

__all__ = [
    "NORMS",
    "PLACEMENTS",
    "STACK_PLACEMENTS",
    "AddRMSNorm",
    "AttentionSubLayer",
    "DecoderBlock",
    "FeedForward",
    "LayerNorm",
    "MultiHeadAttention",
    "Placement",
    "RMSNorm",
    "Stack",
    "TransformerBlock",
    "batch_norm",
    "first_non_finite",
    "layer_norm",
    "post_ln",
    "pre_ln",
    "residual",
    "rms_norm",
]
