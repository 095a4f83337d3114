"""Can RMSNorm replace LayerNorm exactly? Yes: a Pre-LN stack equals a Pre-RMSNorm stack with centred weights.

LayerNorm subtracts the mean before a Pre-LN sublayer reads, so every layer that writes to the residual stream may
subtract its mean first. Then the stream has mean 0 everywhere, and LayerNorm has nothing left to subtract.

Source: Jiang et al. 2023, arXiv:2305.14858.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from subnorm_lab.experiments.language_model import LanguageModel, untrained


def random_model(
    norm: str = "layer", num_blocks: int = 4, d_model: int = 32, vocabulary: int = 50, length: int = 16, seed: int = 0
) -> LanguageModel:
    """A Pre-LN language model whose gains, shifts and biases are random, as they would be after training.

    Args:
        norm: "layer" or "rms", for all norms.
        num_blocks: depth L, in blocks.
        d_model: number of features.
        vocabulary: number of different tokens.
        length: longest sequence, T.
        seed: draws all weights.
    """
    random = torch.Generator().manual_seed(seed)
    model = untrained(vocabulary, length, "pre", random, num_blocks, d_model, norm)
    in_turn = [part for pair in zip(model.stack.sublayers, model.stack.placement.norms, strict=True) for part in pair]
    for parameter in nn.ModuleList([*in_turn, model.stack.placement.final_norm, model.head]).parameters():
        if parameter.ndim == 1:
            noise = 0.2 * torch.randn(parameter.shape, generator=random, dtype=torch.float64)
            with torch.no_grad():
                parameter.add_(noise)  # gains were 1, shifts and biases 0
    return model


def writers(model: LanguageModel) -> Iterator[tuple[str, Tensor, int]]:
    """The parameters that write to the residual stream: name, parameter, and its feature axis.

    They are the embeddings of tokens and positions, and in every block the output projection of attention and the
    second layer of the feed-forward, each with its bias.
    """
    yield "tokens", model.tokens, 1
    yield "positions", model.positions, 1
    blocks: Any = zip(model.stack.attention, model.stack.feed_forward, strict=True)
    for number, (attention, feed_forward) in enumerate(blocks):
        for name, linear in (("attention", attention.out_proj), ("feed-forward", feed_forward.linear2)):
            yield f"{name} {number}, weight", linear.weight, 0
            yield f"{name} {number}, bias", linear.bias, 0


def tie_head(model: LanguageModel) -> LanguageModel:
    """A copy whose head and token embedding are one matrix, as in GPT-2."""
    model = deepcopy(model)
    model.head.weight = model.tokens
    return model


def untie_head(model: LanguageModel) -> LanguageModel:
    """A copy that computes the same function, with a separate matrix for the head."""
    model = deepcopy(model)
    model.head.weight = nn.Parameter(model.head.weight.detach().clone())
    return model


@torch.no_grad()
def centre_writers(model: LanguageModel) -> LanguageModel:
    """A copy in which every write to the residual stream has mean 0: ``C W`` and ``C b`` with ``C = I - 11^T / d``.

    Untie the head first (:func:`untie_head`): centring the embedding would also centre a tied head, which reads the
    stream, and change the logits.
    """
    model = deepcopy(model)
    for _, parameter, axis in writers(model):
        parameter.sub_(parameter.mean(dim=axis, keepdim=True))
    return model


@torch.no_grad()
def swap_norms(model: LanguageModel) -> LanguageModel:
    """A copy with RMSNorm for LayerNorm: gains and eps stay, shifts move into the bias of the layer that reads them.

    A reader ``W (gamma * xhat + beta) + b`` equals ``W (gamma * xhat) + (b + W beta)``. The copy differs only in that
    it keeps the means.
    """
    model = deepcopy(model)
    placement = model.stack.placement
    reader: Any
    for k, reader in enumerate(model.stack.sublayers):
        first = [reader.in_proj_weight, reader.in_proj_bias] if k % 2 == 0 else reader.linear1.parameters()
        placement.norms[k] = _without_shift(placement.norms[k], *first)
    placement.final_norm = _without_shift(placement.final_norm, model.head.weight, model.head.bias)
    return model


def _without_shift(norm: nn.Module, weight: Tensor, bias: Tensor) -> nn.RMSNorm:
    if isinstance(norm, nn.RMSNorm):  # has no shift
        return norm
    assert isinstance(norm, nn.LayerNorm)
    bias.add_(weight @ norm.bias)
    rms = nn.RMSNorm(weight.shape[1], norm.eps)
    rms.weight = norm.weight
    return rms


def mean_share(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The mean's share of a row's energy: ``d mean^2 / ||x||^2``, shape (...,) for x of shape (..., d).

    LayerNorm removes this share, RMSNorm leaves it in. For independent features of mean 0 it is 1/d on average.
    """
    return x.mean(axis=-1) ** 2 / (x * x).mean(axis=-1)


def mean_gradients(model: LanguageModel) -> dict[str, float]:
    """The part of each writer's gradient that would change the means it writes, relative to the whole gradient.

    Call it after a backward pass. Under LayerNorm the result is 0: no reader depends on the mean, so the loss does not
    either.

    Returns:
        for each name of :func:`writers`, a number from 0 (none of the gradient) to 1 (all of it).
    """
    parts = {}
    for name, parameter, axis in writers(model):
        gradient = parameter.grad
        assert gradient is not None, "mean_gradients needs a backward pass first"
        mean = gradient.mean(dim=axis, keepdim=True).expand_as(gradient)
        parts[name] = float(mean.norm() / gradient.norm())
    return parts
