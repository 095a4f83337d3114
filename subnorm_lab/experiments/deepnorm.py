"""A Post-LN stack with DeepNorm's two constants, as a plain Post-LN stack with smaller weights.

DeepNorm is ``norm(alpha x + F(x))`` with the weights of F's value, output and feed-forward matrices multiplied by
beta at the start. A norm ignores a common factor, so this is ``norm(x + F(x) / alpha)``: the same function as a
Post-LN stack whose last matrix in each branch is divided by alpha as well (but for eps, which alpha scales too).
"""

import torch

from subnorm.torch import TransformerBlock
from subnorm_lab.experiments.stack import Stack


def constants(num_blocks: int) -> tuple[float, float]:
    """alpha and beta for a stack of N blocks that is only an encoder or only a decoder.

    ``alpha = (2 N)^(1/4)``, ``beta = (8 N)^(-1/4)``.

    Source: Wang et al. 2022, arXiv:2203.00555.

    Known mistake: ``norm(x + alpha F(x))``, with alpha on the wrong term.
    """
    return (2 * num_blocks) ** 0.25, (8 * num_blocks) ** -0.25


@torch.no_grad()
def deep_norm(stack: Stack) -> Stack:
    """Scale the weights of an untrained Post-LN stack in place, which makes it DeepNorm's stack at initialization.

    Args:
        stack: untrained Post-LN.

    Returns:
        the same stack.
    """
    alpha, beta = constants(len(stack.blocks))
    for block in stack.blocks:
        assert isinstance(block, TransformerBlock)
        query_key_value = block.self_attn.in_proj_weight  # (3 d, d)
        query_key_value[-query_key_value.shape[1] :] *= beta
        block.self_attn.out_proj.weight *= beta / alpha
        block.feed_forward.linear1.weight *= beta
        block.feed_forward.linear2.weight *= beta / alpha
    return stack


def untrained(kind: str, num_blocks: int, generator: torch.Generator) -> Stack:
    """An untrained stack by name: a placement of :class:`Stack`, or "deepnorm", which is "post" with scaled weights."""
    if kind == "deepnorm":
        return deep_norm(Stack(num_blocks, "post", generator))
    return Stack(num_blocks, kind, generator)
