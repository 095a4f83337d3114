"""The trained model of :mod:`subnorm_lab.stories` in PyTorch, on `subnorm.torch`: for its gradients."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from subnorm.torch import RMSNorm
from subnorm_lab import stories


class Stories(nn.Module):
    """The same weights, placements and forward pass as the given model, without the cache.

    Args:
        model: from :func:`subnorm_lab.stories.load`; its dtype is kept. Its norms must be RMSNorm.
    """

    def __init__(self, model: stories.Model) -> None:
        super().__init__()
        self.places = model.places
        self.embedding = _parameter(model.embedding)
        self.norms = nn.ModuleList(RMSNorm(len(gain)) for gain in model.gains)
        for norm, gain in zip(self.norms, model.gains, strict=True):
            norm.weight = _parameter(gain)
        self.branches = nn.ModuleList(
            SwiGLU(weights) if "gate" in weights else Attention(weights, model.heads) for weights in model.weights
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens, (..., T), to scores of the next token, (..., T, V)."""
        x = self.embedding[tokens]  # (..., T, d)
        for place, branch, norm in zip(self.places, self.branches, self.norms[:-1], strict=True):
            x = place(x, branch, norm)
        return self.norms[-1](x) @ self.embedding.T

    def loss(self, tokens: Tensor) -> Tensor:
        """Mean loss of the next token, in nats, over a text, shape (T,)."""
        return F.cross_entropy(self(tokens[:-1]), tokens[1:])


class SwiGLU(nn.Module):
    """The feed-forward branch: ``W_down (silu(W_gate h) * W_up h)``."""

    def __init__(self, weights: stories.Weights) -> None:
        super().__init__()
        self.gate, self.up, self.down = (_parameter(weights[name]) for name in ("gate", "up", "down"))

    def forward(self, h: Tensor) -> Tensor:
        return (F.silu(h @ self.gate.T) * (h @ self.up.T)) @ self.down.T


class Attention(nn.Module):
    """Causal attention with rotary positions; several heads of queries share one of keys and values."""

    def __init__(self, weights: stories.Weights, heads: int) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (_parameter(weights[name]) for name in "qkvo")
        self.width = len(self.q) // heads  # of a head

    def forward(self, h: Tensor) -> Tensor:
        q, k, v = ((h @ w.T).unflatten(-1, (-1, self.width)).transpose(-2, -3) for w in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(turn_pairs(q), turn_pairs(k), v, is_causal=True, enable_gqa=True)
        return y.transpose(-2, -3).flatten(-2) @ self.o.T  # (..., T, d)


def turn_pairs(x: Tensor) -> Tensor:
    """Rotary positions, as in NumPy: each pair of neighbours turns; x has shape (..., heads, T, width)."""
    rate = 10000.0 ** (-torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])
    angle = torch.outer(torch.arange(x.shape[-2]), rate)  # (T, width / 2)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], dim=-1).flatten(-2)


def _parameter(array: stories.Array) -> nn.Parameter:
    return nn.Parameter(torch.tensor(array))
