"""How large are the signal and its gradient, layer by layer, in an untrained stack?

All stacks use the same kind of branch, ``F(x) = W relu(x)`` with its own square matrix W, and differ only in the
wiring. The branch's **gain** g is its output's mean square divided by its input's: ``g = d Var(W) / 2``, because the
ReLU removes half of a symmetric input's mean square. All seeds run in parallel as one batch of matrices.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from subnorm import _rules
from subnorm.torch import layer_norm, post_ln, pre_ln, residual

Array = npt.NDArray[np.float64]
Branch = Callable[[Tensor], Tensor]

#: Variance of the weights, times d. "torch" is nn.Linear's default, uniform between -1/sqrt(d) and 1/sqrt(d).
INITS = {"he": 2.0, "xavier": 1.0, "torch": 1 / 3}

#: One block, from its input and its branch to its output.
WIRINGS: dict[str, Callable[[Tensor, Branch], Tensor]] = {
    "plain": lambda x, branch: branch(x),
    "residual": residual,
    "batch": lambda x, branch: layer_norm(branch(x).mT).mT,  # on the transpose it is BatchNorm, separately per seed
    "pre": lambda x, branch: pre_ln(x, branch, layer_norm),
    "post": lambda x, branch: post_ln(x, branch, layer_norm),
}


def linear_last(x: Tensor, w: Tensor) -> Tensor:
    return torch.relu(x) @ w.mT  # (seeds, T, d)


def _rectified(x: Tensor, w: Tensor) -> Tensor:
    return torch.relu(x @ w.mT)  # (seeds, T, d)


@dataclass(frozen=True)
class Trace:
    """Measurements along a stack: one row for each seed, one column before each block and one after the last."""

    signal: Array  # (seeds, depth + 1), mean square of the stream
    mean: Array  # (seeds, depth + 1), its mean over tokens and features
    gradient: Array  # (seeds, depth + 1), norm of the gradient with respect to the stream; 1 at the last column


def gain(init: str) -> float:
    """The mean square of ``W relu(x)`` divided by that of x: ``g = d Var(W) / 2``."""
    _rules.choice("init", init, INITS)
    return INITS[init] / 2


def weights(init: str, depth: int, d: int, seeds: Sequence[int]) -> Tensor:
    """Random square matrices, shape (depth, seeds, d, d), float64. A seed's matrices do not depend on the others.

    Raises:
        ValueError: an unknown init, or a size that is not a positive whole number.
    """
    _rules.choice("init", init, INITS)
    _rules.size("depth", depth)
    _rules.size("d", d)
    bound = math.sqrt(3 * INITS[init] / d)  # a uniform variable on [-b, b] has variance b^2 / 3
    draws = []
    for seed in seeds:
        source = torch.Generator().manual_seed(seed)
        draws.append((2 * torch.rand(depth, d, d, generator=source, dtype=torch.float64) - 1) * bound)
    return torch.stack(draws, dim=1)


def propagate(
    wiring: str,
    init: str = "he",
    depth: int = 32,
    scale: float = 1.0,
    ends_in_relu: bool = False,
    d: int = 128,
    tokens: int = 64,
    seeds: Sequence[int] = range(8),
) -> Trace:
    """Send unit-variance noise through a stack, and a random gradient back.

    Args:
        wiring: "plain" ``F(x)``, "residual" ``x + F(x)``, "batch" ``BN(F(x))`` with the tokens as the batch,
            "pre" ``x + F(LN(x))`` or "post" ``LN(x + F(x))``.
        init: "he", "xavier" or "torch"; uniform weights of that variance, no biases.
        depth: number of blocks L.
        scale: factor on every W, for example ``1 / sqrt(depth)``.
        ends_in_relu: use the branch ``relu(W x)``, whose output has a mean above zero.
        d: number of features.
        tokens: number of rows, each an independent sample.
        seeds: one stack for each.

    Returns:
        signal, mean and gradient at every depth. The gradient is that of ``sum(c * x_L)`` with a random c of norm 1.

    Raises:
        ValueError: an unknown wiring or init, or a size that is not a positive whole number.
    """
    _rules.choice("wiring", wiring, WIRINGS)
    block = WIRINGS[wiring]
    matrices = weights(init, depth, d, seeds)
    source = torch.Generator().manual_seed(0)
    x = torch.randn(len(seeds), tokens, d, generator=source, dtype=torch.float64).requires_grad_()  # (seeds, T, d)
    c = torch.randn(len(seeds), tokens, d, generator=source, dtype=torch.float64)
    stream = [x]
    for w in matrices:  # (seeds, d, d)
        branch = partial(_rectified if ends_in_relu else linear_last, w=scale * w)
        stream.append(block(stream[-1], branch))
    c = c / c.norm(dim=(1, 2), keepdim=True)
    gradients = torch.autograd.grad((c * stream[-1]).sum(), stream)
    return Trace(
        signal=np.stack([h.detach().square().mean(dim=(1, 2)).numpy() for h in stream], axis=1),
        mean=np.stack([h.detach().mean(dim=(1, 2)).numpy() for h in stream], axis=1),
        gradient=np.stack([g.norm(dim=(1, 2)).numpy() for g in gradients], axis=1),
    )


def expected_signal(wiring: str, depth: int, gain: float) -> Array:
    """The mean square after 0, 1, …, depth blocks if the branches are independent, with mean zero and this gain.

    Plain: ``g^l``. Residual: ``(1 + g)^l``, because the variances of independent terms add. Pre-LN: ``1 + g l``,
    because every branch reads a normalised input. BatchNorm and Post-LN: 1. A branch scaled by s has gain ``s^2 g``.

    Returns:
        shape (depth + 1,).

    Raises:
        ValueError: an unknown wiring.
    """
    _rules.choice("wiring", wiring, WIRINGS)
    layers = np.arange(depth + 1, dtype=np.float64)
    laws: dict[str, Array] = {
        "plain": gain**layers,
        "residual": (1 + gain) ** layers,
        "pre": 1 + gain * layers,
        "batch": np.ones(depth + 1),
        "post": np.ones(depth + 1),
    }
    return laws[wiring]
