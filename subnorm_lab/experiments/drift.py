"""How do the mean and spread of the activations change, layer by layer, in an untrained plain stack?

Every layer is ``h = f(W h)`` with its own square W. Three numbers describe a layer: the mean and standard deviation of
all its activations, and the share of their mean square that all examples have in common.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from subnorm import _rules

Array = npt.NDArray[np.float64]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"linear": lambda h: h, "tanh": torch.tanh, "relu": torch.relu}


@dataclass(frozen=True)
class Drift:
    """One row for each seed, one column for the input and one for each layer: shape (seeds, depth + 1)."""

    mean: Array  # over all examples and features
    std: Array  # likewise
    common: Array  # mean square of the average example, over the mean square of the examples: 1 if all are alike


def follow(
    activation: str,
    variance: float,
    depth: int = 50,
    d: int = 128,
    examples: int = 64,
    seeds: Sequence[int] = range(8),
) -> Drift:
    """Send independent unit-variance examples through a plain stack, and measure every layer.

    Args:
        activation: "linear", "tanh" or "relu".
        variance: of the weights, times d: 2 for He's init, 1 for Xavier's. Uniform weights of mean zero, no biases.
        depth: number of layers.
        d: number of features.
        examples: number of rows. Independent rows of mean zero have about ``1 / examples`` in common.
        seeds: one stack and one set of examples for each.

    Raises:
        ValueError: an unknown activation, a negative variance, or a size that is not a positive whole number.
    """
    _rules.choice("activation", activation, ACTIVATIONS)
    for name, size in (("depth", depth), ("d", d), ("examples", examples)):
        _rules.size(name, size)
    if variance < 0:
        raise ValueError(f"variance must be at least 0; got {variance}. He's is 2, Xavier's is 1.")
    bound = math.sqrt(3 * variance / d)  # a uniform variable on [-b, b] has variance b^2 / 3
    rows = []
    for seed in seeds:
        source = torch.Generator().manual_seed(seed)
        h = torch.randn(examples, d, generator=source, dtype=torch.float64)  # (examples, d)
        layers = [describe(h)]
        for _ in range(depth):
            w = (2 * torch.rand(d, d, generator=source, dtype=torch.float64) - 1) * bound
            h = ACTIVATIONS[activation](h @ w.mT)
            layers.append(describe(h))
        rows.append(layers)
    return Drift(*np.array(rows).transpose(2, 0, 1))


def describe(h: Tensor) -> tuple[float, float, float]:
    """Mean, standard deviation and common share of one layer's activations, shape (examples, d)."""
    common = h.mean(dim=0).square().mean() / h.square().mean()
    return h.mean().item(), h.std(correction=0).item(), common.item()
