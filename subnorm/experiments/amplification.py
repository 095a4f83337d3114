"""How much does the output of an untrained stack move when every weight moves by one per cent?"""

import numpy as np
import numpy.typing as npt
import torch

from subnorm.experiments.stack import Stack, mean_square, random_tokens

STEP = 0.01


@torch.no_grad()
def output_change(placement: str, depths: tuple[int, ...], seeds: range) -> npt.NDArray[np.float64]:
    """Squared change of the output in multiples of the squared change of the weights: ``E|dy|^2 / (E|y|^2 step^2)``.

    Every weight matrix W becomes W + step * std(W) * noise. The output is normalised, so its own size is fixed.

    Args:
        placement: "pre" or "post".
        depths: numbers of blocks L.
        seeds: one draw of weights, tokens and noise for each.

    Returns:
        shape (seeds, depths).

    Source: Liu et al. 2020, arXiv:2004.08249, trace the instability of Post-LN to such an amplification.
    """
    change = np.zeros((len(seeds), len(depths)))
    for row, seed in enumerate(seeds):
        for column, depth in enumerate(depths):
            generator = torch.Generator().manual_seed(seed)
            x = random_tokens(generator)
            stack = Stack(depth, placement, generator)
            y = stack(x)
            for parameter in stack.parameters():
                if parameter.ndim == 2:
                    noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
                    parameter.add_(STEP * parameter.std() * noise)
            change[row, column] = mean_square(stack(x) - y) / (mean_square(y) * STEP**2)
    return change
