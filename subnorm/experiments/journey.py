"""What becomes of one token on its way through an untrained stack: does it fade, does it blow up, does it arrive?

The stacks are those of :mod:`subnorm.experiments.signal`, which measures sizes; here is the hidden vector itself.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from subnorm import _rules
from subnorm.experiments.signal import WIRINGS, linear_last, weights

Array = npt.NDArray[np.float64]


def travel(
    wiring: str,
    init: str = "he",
    depth: int = 24,
    scale: float = 1.0,
    d: int = 128,
    seeds: Sequence[int] = range(8),
) -> Array:
    """The hidden vector of one token before each block and after the last, in a stack for each seed.

    Token and matrices depend on the seed only, so the stacks of one seed differ in nothing but their wiring. The
    features are sorted by their value at the input, from the largest to the smallest.

    Args:
        wiring: as in :func:`subnorm.experiments.signal.propagate`, but "batch" needs more than one token.
        init: "he", "xavier" or "torch".
        depth: number of blocks.
        scale: factor on every W.
        d: number of features.
        seeds: one token and one stack for each.

    Returns:
        shape (seeds, d, depth + 1).

    Raises:
        ValueError: an unknown wiring or init, or a size that is not a positive whole number.
    """
    _rules.choice("wiring", wiring, [name for name in WIRINGS if name != "batch"])
    matrices = weights(init, depth, d, seeds)
    draws = [torch.randn(1, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) for seed in seeds]
    stream = [torch.stack(draws)]  # (seeds, 1, d)
    for w in matrices:  # (seeds, d, d)
        stream.append(WIRINGS[wiring](stream[-1], partial(linear_last, w=scale * w)))
    vectors = torch.cat(stream, dim=1)  # (seeds, depth + 1, d)
    order = vectors[:, 0].argsort(dim=-1, descending=True)  # (seeds, d)
    return np.asarray(vectors.mT.gather(1, order[..., None].expand(-1, -1, depth + 1)))
