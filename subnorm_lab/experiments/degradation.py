"""Does a deeper network fit its training data worse? Plain and residual stacks at several depths.

The networks map 8 numbers to 1 through L blocks of width 32, ``F(h) = W relu(h) + b`` each: plain ``h = F(h)``,
residual ``h = h + F(h) / sqrt(L)``, or plain with BatchNorm, ``h = BN(W relu(h)) + b``. All seeds train in parallel:
every seed has its own weights, and Adam updates each entry separately, so seeds do not affect each other.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from subnorm import _rules
from subnorm_lab.experiments.signal import weights

Array = npt.NDArray[np.float64]

STACKS = ("plain", "residual", "batch")
FEATURES, WIDTH, EXAMPLES = 8, 32, 64


def batch(source: torch.Generator) -> tuple[Tensor, Tensor]:
    """New examples of the task: inputs (64, 8), standard normal, and targets (64, 1) of mean 0 and variance 1.

    ``y = sin(2 x_1) + x_2 x_3``, divided by its standard deviation: always answering 0 costs 1 on average.
    """
    x = torch.randn(EXAMPLES, FEATURES, generator=source, dtype=torch.float64)
    variance = (1 - math.exp(-8)) / 2 + 1  # of sin(2 x_1), and of x_2 x_3
    return x, (torch.sin(2 * x[:, :1]) + x[:, 1:2] * x[:, 2:3]) / math.sqrt(variance)


def train(
    stack: str, init: str, depth: int, steps: int = 250, lr: float = 1e-3, seeds: Sequence[int] = range(5)
) -> Array:
    """Fit new examples at every step with Adam, and record the loss. No example repeats, so there is no overfitting.

    It runs in float64, because training amplifies rounding: in float32 another processor would print other digits.

    Args:
        stack: "plain", "residual" or "batch". BatchNorm uses the statistics of each batch; it has a shift, b, but no
            gain, because the next W can absorb one.
        init: "he", "xavier" or "torch", the variance of the weights as in :mod:`subnorm_lab.experiments.signal`;
            biases start at 0.
        depth: number of blocks L.
        steps: number of updates.
        lr: learning rate, constant.
        seeds: one network for each.

    Returns:
        mean squared error on each step's examples, before its update, shape (seeds, steps).

    Raises:
        ValueError: an unknown stack or init, or a depth that is not a positive whole number.
    """
    return _fit(stack, init, depth, steps, lr, seeds)[0]


def leave_one_out(
    stack: str, init: str, depth: int, steps: int = 250, lr: float = 1e-3, seeds: Sequence[int] = range(5)
) -> tuple[Array, Array]:
    """Train as :func:`train` does, then leave out one block at a time, without further training.

    Args:
        as for :func:`train`.

    Returns:
        mean squared error on 1024 new examples: of the whole network, shape (seeds,); without each block, shape
        (depth, seeds), first block first. Without a block a residual stack keeps half of its paths, a plain one none.

    Raises:
        ValueError: as in :func:`train`.

    Source: Veit, Wilber, Belongie 2016, arXiv:1605.06431, section 4.1.
    """
    _, forward = _fit(stack, init, depth, steps, lr, seeds)
    source = torch.Generator().manual_seed(1)  # the training examples come from seed 0
    examples = [batch(source) for _ in range(16)]

    @torch.no_grad()
    def error(left_out: int | None) -> Array:
        return np.mean([(forward(x, left_out) - y).square().mean(dim=(1, 2)).numpy() for x, y in examples], axis=0)

    return error(None), np.stack([error(block) for block in range(depth)])


def _fit(
    stack: str, init: str, depth: int, steps: int, lr: float, seeds: Sequence[int]
) -> tuple[Array, Callable[..., Tensor]]:
    """The losses, shape (seeds, steps), and the trained network: ``forward(x, left_out)``."""
    _rules.choice("stack", stack, STACKS)
    inner = nn.Parameter(weights(init, depth, WIDTH, seeds))  # (L, seeds, d, d)
    bias = nn.Parameter(torch.zeros(depth, len(seeds), 1, WIDTH, dtype=torch.float64))
    first, last = (nn.Parameter(end) for end in _ends(seeds))  # (seeds, 8, d), (seeds, d, 1)
    scale = 1 / math.sqrt(depth) if stack == "residual" else 1.0

    def forward(x: Tensor, left_out: int | None = None) -> Tensor:
        h = x @ first  # (seeds, examples, d)
        for block, (w, b) in enumerate(zip(inner, bias, strict=True)):
            if block == left_out:
                continue
            if stack == "batch":  # LayerNorm over the examples, which is BatchNorm
                h = layer_norm(w.mT @ torch.relu(h).mT, (EXAMPLES,)).mT + b
                continue
            branch = torch.baddbmm(b, torch.relu(h), w, beta=scale, alpha=scale)  # scale (W relu(h) + b)
            h = h + branch if stack == "residual" else branch
        return h @ last  # (seeds, examples, 1)

    # fused makes one pass over the parameters instead of ten, which saves a third of a deep run
    optimizer = torch.optim.Adam([first, inner, bias, last], lr=lr, fused=True)
    source = torch.Generator().manual_seed(0)
    losses = []
    for _ in range(steps):
        x, y = batch(source)
        loss = (forward(x) - y).square().mean(dim=(1, 2))  # (seeds,)
        losses.append(loss.detach().numpy())
        optimizer.zero_grad()
        loss.sum().backward()
        optimizer.step()
    return np.stack(losses, axis=1), forward


def _ends(seeds: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The first and the last map. They are not part of the stack, so their variance is 1 / inputs for every init."""
    sources = [torch.Generator().manual_seed(1000 + seed) for seed in seeds]  # not the stream of the inner weights
    shapes = ((FEATURES, WIDTH), (WIDTH, 1))
    first, last = (
        torch.stack([torch.randn(*shape, generator=source, dtype=torch.float64) for source in sources])
        / math.sqrt(shape[0])
        for shape in shapes
    )
    return first, last
