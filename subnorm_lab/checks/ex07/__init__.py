"""The exercises on norms that are split, moved, folded or capped, and what several of them share.

Several processes are a list: each has its piece of every array, and a message is a sum over the list.
"""

import numpy as np

from subnorm_lab.checks.shared import case

#: Sizes of the pieces, so that a piece by itself has a clearly different mean square
LOUD = (1.0, 3.0, 0.5)
#: The cases of a norm that is split by features
SPLITS = (
    case("two processes with 4 features each", 4, 4),
    case("two processes with 3 and 5 features", 3, 5),
    case("three processes with 2, 6 and 3 features", 2, 6, 3),
    case("sequences, (2, 3) tokens, in halves of 4 features", 4, 4, rows=(2, 3)),
    case("pieces of size 2e-3, where eps matters", 4, 5, scale=2e-3, eps=4e-6),
    case("two processes with 5 and 3 features, and eps = 0.5", 5, 3, eps=0.5),
    case("a single process with 6 features", 6, edge=True),
    case("one token, in pieces of 3 and 4 features", 3, 4, rows=(), edge=True),
    case("a batch of one token, in pieces of 2 and 3 features", 2, 3, rows=(1,), edge=True),
)


def pieces(rng, widths, rows=(3,), scale=1.0):
    """A token's features in pieces, one for each process. The first of small tokens has a mean square below eps."""
    found = [rng.normal(0.4, 1, (*rows, w)) * loud * scale for w, loud in zip(widths, LOUD, strict=False)]
    for x in found if scale < 0.1 else []:
        x[0] *= 0.2
    return found


def gains(rng, widths):
    """The last gain of each process is below 0, as a trained one may be."""
    return [rng.normal(1.5, 0.3, w) * np.where(np.arange(w) == w - 1, -1, 1) for w in widths]


def one_token(parts):
    """The pieces of all processes, put together."""
    return np.concatenate([np.asarray(part) for part in parts], -1)
