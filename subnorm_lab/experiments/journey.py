"""One token on its way through an untrained stack: does it fade, blow up, or arrive?

The stacks are those of :mod:`subnorm_lab.experiments.signal`. That module measures sizes, this one keeps the hidden
vector.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from subnorm import _rules
from subnorm_lab.experiments.signal import WIRINGS, linear_last, weights

Array = npt.NDArray[np.float64]


def travel(
    wiring: str,
    gain: float = 1.0,
    depth: int = 24,
    d: int = 128,
    seeds: Sequence[int] = range(8),
) -> Array:
    """The hidden vector of one token before each block and after the last, in a stack for each seed.

    Token and matrices depend only on the seed, so stacks of the same seed differ only in their wiring. The features
    are sorted by their value at the input, from largest to smallest.

    Args:
        wiring: as in :func:`subnorm_lab.experiments.signal.propagate`, but "batch" needs more than one token.
        gain: mean square out of ``W relu(x)`` for each unit of mean square in; 1 is He's init.
        depth: number of blocks.
        d: number of features.
        seeds: one token and one stack for each.

    Returns:
        shape (seeds, d, depth + 1).

    Raises:
        ValueError: an unknown wiring, a negative gain, or a size that is not a positive whole number.
    """
    _rules.choice("wiring", wiring, [name for name in WIRINGS if name != "batch"])
    if gain < 0:
        raise ValueError(f"gain must be at least 0; got {gain}. He's init has 1, Xavier's 0.5.")
    matrices = math.sqrt(gain) * weights("he", depth, d, seeds)
    draws = [torch.randn(1, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) for seed in seeds]
    stream = [torch.stack(draws)]  # (seeds, 1, d)
    for w in matrices:  # (seeds, d, d)
        stream.append(WIRINGS[wiring](stream[-1], partial(linear_last, w=w)))
    vectors = torch.cat(stream, dim=1)  # (seeds, depth + 1, d)
    order = vectors[:, 0].argsort(dim=-1, descending=True)  # (seeds, d)
    return np.asarray(vectors.mT.gather(1, order[..., None].expand(-1, -1, depth + 1)))
