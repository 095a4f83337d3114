"""Why scale residual weights if we normalise anyway? The stream of a Pre-LN stack with GPT-2's initialization.

All weight matrices are normal with standard deviation 0.02. "Scaled" divides the last matrix of each sublayer, which
writes to the stream, by ``sqrt(N)``, with N = 2 L sublayers.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from subnorm import _rules
from subnorm.torch import TransformerBlock
from subnorm_lab.experiments.stack import causal_mask, mean_square, random_tokens

STD = 0.02
WRITERS = ("out_proj.weight", "linear2.weight")


@torch.no_grad()
def written(
    num_blocks: int,
    scaled: bool,
    d_model: int = 64,
    length: int = 16,
    seeds: Sequence[int] = range(5),
    input_std: float = 1.0,
) -> npt.NDArray[np.float64]:
    """Mean square of the sum of all branches, ``x_L - x_0``.

    A Pre-LN branch reads a normalised input, so the size of its output does not depend on the stream. Unscaled, the
    mean square of the sum grows as L; scaling divides it by ``2 L``, which makes it independent of L.

    Args:
        num_blocks: depth L; a block has two sublayers.
        scaled: whether to divide the weights that write to the stream by ``sqrt(2 L)``.
        d_model: number of features; 4 heads, feed-forward of 4 d_model.
        length: tokens in a sequence, under a causal mask.
        seeds: one draw of weights and tokens for each.
        input_std: standard deviation of the input's entries.

    Returns:
        shape (seeds,).

    Raises:
        ValueError: a size that is not a positive whole number.

    Source: Radford et al. 2019, section 2.3: ``1 / sqrt(N)`` with N the number of residual layers.
    """
    _rules.size("num_blocks", num_blocks)
    results = []
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        x = start = input_std * random_tokens(generator, 2, length, d_model)  # (B, T, d)
        for _ in range(num_blocks):
            block = TransformerBlock(d_model, 4, 4 * d_model, "pre").double()
            for name, parameter in block.named_parameters():
                if parameter.ndim == 2:
                    writes = scaled and name.endswith(WRITERS)
                    std = STD / math.sqrt(2 * num_blocks) if writes else STD
                    nn.init.normal_(parameter, std=std, generator=generator)
                elif name.endswith("bias"):
                    nn.init.zeros_(parameter)
            x = block(x, causal_mask(length))
        results.append(mean_square(x - start))
    return np.array(results)
