"""A stack of transformer blocks at initialization, and measures of its stream at each depth.

All results depend on the initialization: Xavier-normal weights, zero biases, gain 1 and shift 0 in every norm.
Everything is in float64: training multiplies a rounding error by a million, and processors round differently.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from subnorm import _rules
from subnorm.torch import TransformerBlock, residual

#: torch's own norms: the same functions as ours, and its LayerNorm takes half the time.
BUILT_IN = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}


class Stack(nn.Module):
    """A stack of blocks with a causal mask. All placements but "post", whose blocks end in a norm, have a final norm.

    Args:
        num_blocks: depth L, in blocks; a block has two sublayers.
        placement: "pre", "post", or "branch" for ``x + norm(F(x))``.
        generator: draws the weights, the same for all placements and norms.
        d_model: number of features.
        num_heads: number of heads.
        norm: "layer" or "rms", for all norms.

    Raises:
        ValueError: an argument breaks its rule; the message says which.

    Source: Xiong et al. 2020, arXiv:2002.04745, table 1; for "branch", OLMo 2, arXiv:2501.00656, with RMSNorm.
    """

    def __init__(
        self,
        num_blocks: int,
        placement: str,
        generator: torch.Generator,
        d_model: int = 64,
        num_heads: int = 4,
        norm: str = "layer",
    ) -> None:
        super().__init__()
        _rules.size("num_blocks", num_blocks)
        known = "pre" if placement == "branch" else placement
        blocks = [TransformerBlock(d_model, num_heads, 4 * d_model, known, norm) for _ in range(num_blocks)]
        for block in blocks:
            block.norm1, block.norm2 = (BUILT_IN[norm](d_model, eps=1e-5) for _ in range(2))
            if placement == "branch":
                block.place = _norm_ends_the_branch
        self.blocks = nn.ModuleList(blocks)
        self.final_norm = nn.Identity() if placement == "post" else BUILT_IN[norm](d_model, eps=1e-5)
        draw_weights(self.double(), generator)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., T, d_model) to the same shape, normalised."""
        return self.final_norm(self.states(x)[-1])

    def states(self, x: Tensor) -> list[Tensor]:
        """The stream: x, then the output of every block, before the final norm."""
        mask = causal_mask(x.shape[-2])
        states = [x]
        for block in self.blocks:
            states.append(block(states[-1], mask))
        return states


def _norm_ends_the_branch(x: Tensor, sublayer: Callable[[Tensor], Tensor], norm: Callable[[Tensor], Tensor]) -> Tensor:
    return residual(x, lambda h: norm(sublayer(h)))


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
    unit = nn.functional.normalize(x, dim=-1)
    cosine = unit @ unit.transpose(-1, -2)  # (B, T, T), with ones on the diagonal
    tokens = x.shape[-2]
    return float((cosine.sum((-1, -2)) - tokens).mean() / (tokens * (tokens - 1)))
