"""When is RMSNorm as good as LayerNorm? Exactly: a Pre-LN stack is a Pre-RMSNorm stack with centred weights.

Everything that a Pre-LN sublayer reads has lost its mean, and everything that is written to the residual stream
can lose its mean beforehand. Then the stream has mean 0 everywhere, and LayerNorm has nothing left to subtract.

Source: Jiang et al. 2023, arXiv:2305.14858.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from subnorm.torch import NORMS, LayerNorm, RMSNorm, TransformerBlock


class PreNormModel(nn.Module):
    """A Pre-LN transformer: embedding, blocks, final norm, linear head. In float64, evaluation mode.

    Args:
        norm: "layer" or "rms", for all norms.
        depth: number of blocks.
        d_model: number of features.
        vocabulary: number of tokens known.
        seed: of the random weights. Gains, shifts and biases are random too, as they would be after training.
    """

    def __init__(self, norm: str, depth: int = 4, d_model: int = 32, vocabulary: int = 50, seed: int = 0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, d_model)
        self.blocks = nn.ModuleList(TransformerBlock(d_model, 4, 4 * d_model, "pre", norm) for _ in range(depth))
        self.norm = NORMS[norm](d_model)
        self.head = nn.Linear(d_model, vocabulary)
        self.double()
        random = torch.Generator().manual_seed(seed)
        for name, parameter in self.named_parameters():
            noise = torch.randn(parameter.shape, generator=random, dtype=torch.float64)
            is_gain = parameter.ndim == 1 and name.endswith("weight")
            with torch.no_grad():
                parameter.copy_(1 + 0.2 * noise if is_gain else noise * (parameter.shape[-1] ** -0.5))

    def stream(self, tokens: Tensor) -> Iterator[Tensor]:
        """The residual stream before the first block and after each, shape (..., T, d_model)."""
        x = self.embedding(tokens)
        yield x
        for block in self.blocks:
            x = block(x)
            yield x

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits, shape (..., T, vocabulary), for tokens of shape (..., T)."""
        *_, x = self.stream(tokens)
        return self.head(self.norm(x))


@torch.no_grad()
def centre_writers(model: PreNormModel) -> PreNormModel:
    """A copy whose every write to the residual stream has mean 0: ``C W`` and ``C b`` with ``C = I - 11^T / d``.

    Writers are the embedding, the output projection of attention, and the second layer of the feed-forward. Position
    embeddings would be one more; this model has none.
    """
    model = deepcopy(model)
    model.embedding.weight.sub_(model.embedding.weight.mean(dim=1, keepdim=True))  # one row for each token
    for block in _blocks(model):
        for linear in (block.self_attn.out_proj, block.feed_forward.linear2):
            linear.weight.sub_(linear.weight.mean(dim=0, keepdim=True))  # one column for each input
            linear.bias.sub_(linear.bias.mean())
    return model


@torch.no_grad()
def swap_norms(model: PreNormModel) -> PreNormModel:
    """A copy with RMSNorm for LayerNorm: gains and eps stay, shifts move into the bias of the layer that reads them.

    A reader ``W (gamma * xhat + beta) + b`` is ``W (gamma * xhat) + (b + W beta)``. Only the means are lost.
    """
    model = deepcopy(model)
    for block in _blocks(model):
        block.norm1 = _without_shift(block.norm1, block.self_attn.in_proj_weight, block.self_attn.in_proj_bias)
        block.norm2 = _without_shift(block.norm2, block.feed_forward.linear1.weight, block.feed_forward.linear1.bias)
    model.norm = _without_shift(model.norm, model.head.weight, model.head.bias)
    return model


def _blocks(model: PreNormModel) -> list[TransformerBlock]:
    return cast(list[TransformerBlock], list(model.blocks))


def _without_shift(norm: LayerNorm | RMSNorm, weight: Tensor, bias: Tensor) -> RMSNorm:
    if isinstance(norm, RMSNorm):  # has no shift
        return norm
    bias.add_(weight @ norm.bias)
    rms = RMSNorm(weight.shape[1], norm.eps)
    rms.weight = norm.weight
    return rms


def mean_share(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The share of a row's energy that its mean carries: ``d mean^2 / ||x||^2``, shape (...,) for x of (..., d).

    LayerNorm removes this share, RMSNorm leaves it in. For independent features of mean 0 it is 1/d on average.
    """
    return x.mean(axis=-1) ** 2 / (x * x).mean(axis=-1)
