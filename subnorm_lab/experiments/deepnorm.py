"""A Post-LN stack with DeepNorm's two constants, as a plain Post-LN stack with smaller weights.

DeepNorm is ``norm(alpha x + F(x))`` with the weights of F's value, output and feed-forward matrices multiplied by
beta at the start. A norm ignores a common factor, so this is ``norm(x + F(x) / alpha)``: the same function as a
Post-LN stack whose last matrix in each branch is divided by alpha as well (but for eps, which alpha scales too).
"""

import torch

from subnorm.torch import Stack
from subnorm_lab.experiments import stack as stacks


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
    alpha, beta = constants(stack.placement.num_blocks)
    factors = {"value": beta, "out": beta / alpha, "up": beta, "down": beta / alpha}
    for name, weight in stack.matrices():
        weight *= factors.get(name, 1.0)
    return stack


def untrained(kind: str, num_blocks: int, generator: torch.Generator) -> Stack:
    """:func:`~subnorm_lab.experiments.stack.untrained`, or for "deepnorm" its "post" with scaled weights."""
    if kind == "deepnorm":
        return deep_norm(stacks.untrained("post", num_blocks, generator))
    return stacks.untrained(kind, num_blocks, generator)
