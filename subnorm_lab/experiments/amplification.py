"""How much does the output of an untrained stack change when every weight changes by one per cent?"""

import numpy as np
import numpy.typing as npt
import torch

from subnorm_lab.experiments.deepnorm import untrained
from subnorm_lab.experiments.stack import mean_square, random_tokens, states

STEP = 0.01


@torch.no_grad()
def output_change(kind: str, depths: tuple[int, ...], seeds: range) -> npt.NDArray[np.float64]:
    """Relative squared change of the output over that of the weights: ``E|dy|^2 / (E|y|^2 step^2)``.

    Every weight matrix W becomes W + step * std(W) * noise. The output is normalised, so its size is fixed.

    Args:
        kind: "pre", "post" or "deepnorm".
        depths: numbers of blocks L. For "pre" and "post" a seed draws only the deepest stack, and the others are its
            lower parts; DeepNorm's weights depend on L, so a seed draws each stack.
        seeds: one draw of weights, tokens and noise for each.

    Returns:
        shape (seeds, depths).

    Source: Liu et al. 2020, arXiv:2004.08249, who trace the instability of Post-LN to this amplification.
    """
    change = np.zeros((len(seeds), len(depths)))
    for row, seed in enumerate(seeds):
        for columns in [[i] for i in range(len(depths))] if kind == "deepnorm" else [range(len(depths))]:
            generator = torch.Generator().manual_seed(seed)
            x = random_tokens(generator)
            stack = untrained(kind, max(depths[column] for column in columns), generator)
            before = states(stack, x)
            for parameter in stack.parameters():
                if parameter.ndim == 2:
                    noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
                    parameter.add_(STEP * parameter.std() * noise)
            after = states(stack, x)
            for column in columns:
                y, moved = (stack.placement.end(stream[depths[column]]) for stream in (before, after))
                change[row, column] = mean_square(moved - y) / (mean_square(y) * STEP**2)
    return change
