"""The sublayers of a transformer as modules, and the blocks built from them."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from subnorm import _rules
from subnorm.residual import PLACEMENTS
from subnorm.torch.attention import MultiHeadAttention
from subnorm.torch.norms import NORMS, _float_tensor


class FeedForward(nn.Module):
    """The feed-forward sublayer as a module.

    See :func:`subnorm.numpy.feed_forward` for the formula, the shapes, the errors and the source.

    Args:
        d_model: number of features.
        d_ff: width of the hidden layer, often 4 d_model.
        activation: the function between the matrices, ReLU by default; ``torch.nn.functional.gelu`` in BERT.
    """

    def __init__(self, d_model: int, d_ff: int, activation: Callable[[Tensor], Tensor] = torch.relu) -> None:
        super().__init__()
        _rules.size("d_model", d_model)
        _rules.size("d_ff", d_ff)
        _rules.function("activation", callable(activation), activation)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        _float_tensor("x", x)
        _rules.width(tuple(x.shape), self.linear1.in_features)
        return self.linear2(self.activation(self.linear1(x)))


class AttentionSubLayer(nn.Module):
    """The attention sublayer as a module, with dropout on the branch, before the sum.

    See :func:`subnorm.numpy.attention_sublayer` for the formula, the shapes, the errors and the source.

    Args:
        d_model: number of features.
        num_heads: number of heads; divides d_model.
        dropout_p: fraction of the branch's output set to zero in training.
        placement: "pre" or "post".
        norm: "layer" or "rms".
        eps: of the norm.

    Source: Vaswani et al. 2017, arXiv:1706.03762, section 5.4, for the dropout.

    Known mistake: dropout on the sum, which drops the skip path too.
    """

    def __init__(
        self,
        d_model: int = 512,
        num_heads: int = 8,
        dropout_p: float = 0.1,
        placement: str = "pre",
        norm: str = "layer",
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        _check_choices(dropout_p, placement, norm)
        self.placement = placement
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.norm = NORMS[norm](d_model, eps)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map x, (..., T, d_model), to the same shape; the mask as in NumPy."""
        if self.placement == "pre":
            return x + self.dropout(self.self_attn(self.norm(x), mask))
        return self.norm(x + self.dropout(self.self_attn(x, mask)))


class TransformerBlock(nn.Module):
    """One transformer block as a module.

    See :func:`subnorm.numpy.transformer_block` for the formula, the shapes, the errors and the source.

    "pre":  ``x = x + MHA(norm1(x))``, then ``x + FFN(norm2(x))``.
    "post": ``x = norm1(x + MHA(x))``, then ``norm2(x + FFN(x))``.

    In evaluation mode, the same function as ``torch.nn.TransformerEncoderLayer`` with norm_first=True ("pre") or False
    ("post"). Its state_dict loads after renaming ``linear1`` to ``feed_forward.linear1``, and so on.

    Args:
        d_model, num_heads, placement, norm, eps: as in :class:`AttentionSubLayer`.
        d_ff: width of the feed-forward's hidden layer.
        dropout_p: fraction of each branch's output set to zero in training.
        activation: as in :class:`FeedForward`.

    Known mistake: a stack of "pre" blocks without a final norm.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        placement: str = "pre",
        norm: str = "layer",
        dropout_p: float = 0.0,
        eps: float = 1e-5,
        activation: Callable[[Tensor], Tensor] = torch.relu,
    ) -> None:
        super().__init__()
        _check_choices(dropout_p, placement, norm)
        self.placement = placement
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.norm1 = NORMS[norm](d_model, eps)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm2 = NORMS[norm](d_model, eps)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map x, (..., T, d_model), to the same shape; the mask as in NumPy."""
        if self.placement == "pre":
            x = x + self.dropout(self.self_attn(self.norm1(x), mask))
            return x + self.dropout(self.feed_forward(self.norm2(x)))
        x = self.norm1(x + self.dropout(self.self_attn(x, mask)))
        return self.norm2(x + self.dropout(self.feed_forward(x)))


class DecoderBlock(TransformerBlock):
    """One decoder block as a module.

    See :func:`subnorm.numpy.decoder_block` for the formula, the shapes, the errors and the source.

    "pre":  ``x = x + MHA(norm1(x))``, ``x = x + MHA(norm2(x), memory)``, then ``x + FFN(norm3(x))``.
    "post": ``x = norm1(x + MHA(x))``, ``x = norm2(x + MHA(x, memory))``, then ``norm3(x + FFN(x))``.

    Arguments are those of :class:`TransformerBlock`, which without a mask is an encoder block. The same function
    as ``torch.nn.TransformerDecoderLayer`` under the same conditions; its state_dict loads after the same renaming.

    Known mistake: a memory from a stack of "pre" encoder blocks without a final norm.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        placement: str = "pre",
        norm: str = "layer",
        dropout_p: float = 0.0,
        eps: float = 1e-5,
        activation: Callable[[Tensor], Tensor] = torch.relu,
    ) -> None:
        super().__init__(d_model, num_heads, d_ff, placement, norm, dropout_p, eps, activation)
        self.multihead_attn = MultiHeadAttention(d_model, num_heads)  # torch.nn's name for the cross-attention
        self.norm3 = NORMS[norm](d_model, eps)

    def forward(  # type: ignore[override]
        self, x: Tensor, memory: Tensor, mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        """Map x, (..., T, d_model), to the same shape; read the memory, (..., S, d_model); masks as in NumPy."""
        if self.placement == "pre":
            x = x + self.dropout(self.self_attn(self.norm1(x), mask))
            x = x + self.dropout(self.multihead_attn(self.norm2(x), memory_mask, memory))
            return x + self.dropout(self.feed_forward(self.norm3(x)))
        x = self.norm1(x + self.dropout(self.self_attn(x, mask)))
        x = self.norm2(x + self.dropout(self.multihead_attn(x, memory_mask, memory)))
        return self.norm3(x + self.dropout(self.feed_forward(x)))


def _check_choices(dropout_p: float, placement: str, norm: str) -> None:
    _rules.probability("dropout_p", dropout_p)
    _rules.choice("placement", placement, PLACEMENTS)
    _rules.choice("norm", norm, NORMS)
