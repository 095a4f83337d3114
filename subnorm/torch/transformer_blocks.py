"""The sublayers of a transformer as modules, and the blocks they make."""

import torch
from torch import Tensor, nn

from subnorm import _rules
from subnorm.numpy.residual import PLACEMENTS
from subnorm.torch.attention import MultiHeadAttention
from subnorm.torch.norms import NORMS, _float_tensor


class FeedForward(nn.Module):
    """The same two-layer network at every token: ``relu(x W1^T + b1) W2^T + b2``.

    Args:
        d_model: number of features.
        d_ff: width of the hidden layer, often 4 d_model.

    Raises:
        ValueError: a size is not a positive whole number; in the forward pass, x does not have d_model features.
        TypeError: in the forward pass, x is not floating-point.

    Source: Vaswani et al. 2017, arXiv:1706.03762, equation 2.

    Known mistake: a ReLU after the second layer too, so that the branch can only add.
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        _rules.size("d_model", d_model)
        _rules.size("d_ff", d_ff)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        _float_tensor("x", x)
        _rules.width(tuple(x.shape), self.linear1.in_features)
        return self.linear2(torch.relu(self.linear1(x)))


class AttentionSubLayer(nn.Module):
    """Attention with dropout, residual connection and norm: ``x + MHA(norm(x))`` or ``norm(x + MHA(x))``.

    Args:
        d_model: number of features.
        num_heads: number of heads; divides d_model.
        dropout_p: share of the branch's output set to zero in training.
        placement: "pre" or "post".
        norm: "layer" or "rms".
        eps: of the norm.

    Raises:
        ValueError: an argument breaks its rule; the message says which.

    Source: Vaswani et al. 2017, arXiv:1706.03762, sections 3.1 and 5.4 (dropout on the branch, before the sum).

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
        self.place = PLACEMENTS[placement]
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.norm = NORMS[norm](d_model, eps)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(..., T, d_model) to the same shape; mask: boolean, True where a query (row) may look at a key (column)."""
        return self.place(x, lambda h: self.dropout(self.self_attn(h, mask)), self.norm)


class TransformerBlock(nn.Module):
    """One transformer block: an attention sublayer, then a feed-forward sublayer.

    "pre":  ``x = x + MHA(norm1(x))``, then ``x + FFN(norm2(x))``.
    "post": ``x = norm1(x + MHA(x))``, then ``norm2(x + FFN(x))``.

    The same function as ``torch.nn.TransformerEncoderLayer`` with ReLU, norm_first=True and False, in evaluation
    mode. Its state_dict loads after ``linear1`` and ``linear2`` have become ``feed_forward.linear1`` and so on.

    Args:
        d_model: number of features.
        num_heads: number of heads; divides d_model.
        d_ff: width of the feed-forward's hidden layer.
        placement: "pre" or "post".
        norm: "layer" or "rms".
        dropout_p: share of each branch's output set to zero in training.
        eps: of both norms.

    Raises:
        ValueError: an argument breaks its rule; the message says which.

    Source: Vaswani et al. 2017, arXiv:1706.03762; for "pre", Xiong et al. 2020, arXiv:2002.04745.

    Known mistake: a stack of "pre" blocks without one more norm at its end.
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
    ) -> None:
        super().__init__()
        _check_choices(dropout_p, placement, norm)
        self.place = PLACEMENTS[placement]
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.norm1 = NORMS[norm](d_model, eps)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm2 = NORMS[norm](d_model, eps)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(..., T, d_model) to the same shape; mask: boolean, True where a query (row) may look at a key (column)."""
        x = self.place(x, lambda h: self.dropout(self.self_attn(h, mask)), self.norm1)
        return self.place(x, lambda h: self.dropout(self.feed_forward(h)), self.norm2)


class DecoderBlock(nn.Module):
    """One decoder block: self-attention, cross-attention to a memory, then feed-forward.

    "pre":  ``x = x + MHA(norm1(x))``, ``x = x + MHA(norm2(x), memory)``, then ``x + FFN(norm3(x))``.
    "post": ``x = norm1(x + MHA(x))``, ``x = norm2(x + MHA(x, memory))``, then ``norm3(x + FFN(x))``.

    The same function as ``torch.nn.TransformerDecoderLayer`` with ReLU, norm_first=True and False, in evaluation
    mode. Its state_dict loads after ``linear1`` and ``linear2`` have become ``feed_forward.linear1`` and so on.
    An encoder block is a :class:`TransformerBlock` called without a mask.

    Args:
        d_model: number of features, of x and of the memory.
        num_heads: number of heads of both attentions; divides d_model.
        d_ff: width of the feed-forward's hidden layer.
        placement: "pre" or "post".
        norm: "layer" or "rms".
        dropout_p: share of each branch's output set to zero in training.
        eps: of the norms.

    Raises:
        ValueError: an argument breaks its rule; the message says which.

    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.1.

    Known mistake: a memory from "pre" encoder blocks without one more norm at their end.
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
    ) -> None:
        super().__init__()
        _check_choices(dropout_p, placement, norm)
        self.place = PLACEMENTS[placement]
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.norm1 = NORMS[norm](d_model, eps)
        self.multihead_attn = MultiHeadAttention(d_model, num_heads)  # torch.nn's name for the cross-attention
        self.norm2 = NORMS[norm](d_model, eps)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm3 = NORMS[norm](d_model, eps)
        self.dropout = nn.Dropout(dropout_p)

    def forward(
        self, x: Tensor, memory: Tensor, mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        """x, (..., T, d_model), to the same shape, reading the memory, (..., S, d_model).

        mask, (..., heads, T, T), and memory_mask, (..., heads, T, S): boolean, True where a query may look at a key.
        """
        x = self.place(x, lambda h: self.dropout(self.self_attn(h, mask)), self.norm1)
        x = self.place(x, lambda h: self.dropout(self.multihead_attn(h, memory_mask, memory)), self.norm2)
        return self.place(x, lambda h: self.dropout(self.feed_forward(h)), self.norm3)


def _check_choices(dropout_p: float, placement: str, norm: str) -> None:
    _rules.probability("dropout_p", dropout_p)
    _rules.choice("placement", placement, PLACEMENTS)
    _rules.choice("norm", norm, NORMS)
