"""A stack of transformer blocks at initialization, and measures of its stream at each depth.

All results depend on the initialization: Xavier-normal weights, zero biases, gain 1 and shift 0 in every norm.
Everything is in float64: training multiplies a rounding error by a million, and processors round differently.
"""

from functools import partial

import torch
from torch import Tensor, nn

from subnorm import _rules
from subnorm.torch import Placement, Stack
from subnorm.torch.placements import Norm, NormAfterBranch, PostLN

#: torch's own norms: the same functions as ours, and its LayerNorm takes half the time.
BUILT_IN: dict[str, Norm] = {"layer": partial(nn.LayerNorm, eps=1e-5), "rms": partial(nn.RMSNorm, eps=1e-5)}

#: The placements with one norm a sublayer: they differ in its place alone.
ONE_NORM: dict[str, type[Placement]] = {"pre": Placement, "post": PostLN, "after_branch": NormAfterBranch}


def untrained(
    placement: str,
    num_blocks: int,
    generator: torch.Generator,
    d_model: int = 64,
    num_heads: int = 4,
    norm: str = "layer",
) -> Stack:
    """An untrained stack of a placement with one norm a sublayer.

    Args:
        placement: "pre", "post", or "after_branch" for ``x + norm(F(x))``.
        num_blocks: depth L, in blocks; a block has two sublayers.
        generator: draws the weights, the same for all placements and norms.
        d_model: number of features.
        num_heads: number of heads; divides d_model.
        norm: "layer" or "rms", for all norms.

    Raises:
        ValueError: an argument breaks its rule; the message says which.

    Source: Xiong et al. 2020, arXiv:2002.04745, table 1; for "after_branch", OLMo 2, arXiv:2501.00656, with RMSNorm.
    """
    _rules.choice("placement", placement, ONE_NORM)
    _rules.choice("norm", norm, BUILT_IN)
    return draw(ONE_NORM[placement](d_model, num_blocks, BUILT_IN[norm]), num_heads, generator)


def draw(placement: Placement, num_heads: int, generator: torch.Generator) -> Stack:
    """A stack in float64 whose sublayers have Xavier-normal weights and zero biases, drawn from the bottom up."""
    stack = Stack(placement, num_heads).double()
    draw_weights(stack.sublayers, generator)
    return stack


def states(stack: Stack, x: Tensor) -> list[Tensor]:
    """The stream under a causal mask: x, then after every block, before the final norm; each (..., T, d_model)."""
    placement = stack.placement
    return [placement.stream(s) for s in placement.states(x, stack.branches(causal_mask(x.shape[-2])))[::2]]


def causal_mask(length: int) -> Tensor:
    """True where a token (row) may look at another (column): itself and earlier tokens, shape (T, T)."""
    return torch.ones(length, length, dtype=torch.bool).tril()


def draw_weights(module: nn.Module, generator: torch.Generator) -> None:
    """Redraw every weight matrix by Xavier's rule, variance ``2 / (fan_in + fan_out)``, and zero every bias."""
    for name, parameter in module.named_parameters():
        if parameter.ndim == 2:
            nn.init.xavier_normal_(parameter, generator=generator)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)


def random_tokens(generator: torch.Generator, batch_size: int = 4, length: int = 32, d_model: int = 64) -> Tensor:
    """Independent tokens of unit variance, shape (B, T, d_model)."""
    return torch.randn(batch_size, length, d_model, generator=generator, dtype=torch.float64)


def mean_square(x: Tensor) -> float:
    """The mean of x squared, over all entries."""
    return float(x.square().mean())


def token_cosine(x: Tensor) -> float:
    """Mean cosine similarity of two different tokens in a sequence: 1 if all tokens point the same way.

    Args:
        x: shape (B, T, d), T at least 2.
    """
    unit = nn.functional.normalize(x, dim=-1, eps=torch.finfo(x.dtype).tiny)  # a deep stack can shrink tokens to 1e-20
    cosine = unit @ unit.transpose(-1, -2)  # (B, T, T), with ones on the diagonal
    tokens = x.shape[-2]
    return float((cosine.sum((-1, -2)) - tokens).mean() / (tokens * (tokens - 1)))
