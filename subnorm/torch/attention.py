"""Multi-head attention as a module, with the parameter names of torch.nn.MultiheadAttention."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from subnorm import _rules
from subnorm.torch import fast
from subnorm.torch.norms import _float_tensor

Heads = tuple[Tensor, Tensor, Tensor]


class _ZeroBias(nn.Linear):
    """A linear layer whose bias starts at 0: a module resets its own parameters alone, in whatever order."""

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.zeros_(self.bias)


class MultiHeadAttention(nn.Module):
    """Multi-head attention as a module.

    See :func:`subnorm.numpy.multi_head_attention` for the formula, the shapes, the errors and the source.

    A state_dict of ``torch.nn.MultiheadAttention(d_model, num_heads)`` loads.

    Args:
        d_model: number of features.
        num_heads: number of heads; divides d_model.
    """

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        _rules.heads(d_model, num_heads)
        self.num_heads = num_heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * d_model, d_model))  # rows of q, k and v on top of each other
        self.in_proj_bias = nn.Parameter(torch.empty(3 * d_model))
        self.out_proj = _ZeroBias(d_model, d_model)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.in_proj_weight)
        nn.init.zeros_(self.in_proj_bias)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        change: Callable[[Tensor, Tensor, Tensor], Heads] | None = None,
    ) -> Tensor:
        """Map x, (..., T, d_model), to the same shape.

        Args:
            x, mask: as in NumPy. Rows of the mask that hide everything are refused where its values can be read, which
                is not so while a compiler or torch.func traces the call.
            memory: the sequence to attend to, (..., S, d_model); None for x itself.
            change: maps queries, keys and values, (..., heads, T or S, d_head), to those that attention uses.
        """
        d_model = self.out_proj.in_features
        _float_tensor("x", x)
        _rules.sequence(tuple(x.shape), d_model)
        if memory is None:
            q, k, v = F.linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, dim=-1)  # (..., T, d_model) each
        else:
            _float_tensor("memory", memory)
            _rules.memory(tuple(memory.shape), tuple(x.shape))
            q = F.linear(x, self.in_proj_weight[:d_model], self.in_proj_bias[:d_model])  # (..., T, d_model)
            kv = F.linear(memory, self.in_proj_weight[d_model:], self.in_proj_bias[d_model:])  # (..., S, 2 d_model)
            k, v = kv.chunk(2, dim=-1)
        q, k, v = (self._split_heads(part) for part in (q, k, v))  # (..., heads, T or S, d_head)
        if change is not None:
            q, k, v = change(q, k, v)
        if mask is not None:
            _rules.tensor("mask", isinstance(mask, Tensor), type(mask))
            _rules.mask(mask.dtype == torch.bool, mask.dtype, tuple(mask.shape), (*q.shape[:-1], k.shape[-2]))
            _rules.sees_something(not fast.has_values(mask) or bool(mask.any(dim=-1).all()))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # (..., heads, T, d_head)
        return self.out_proj(y.transpose(-2, -3).flatten(-2))  # (..., T, d_model)

    def _split_heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(-2, -3)  # (..., heads, T, d_head)
