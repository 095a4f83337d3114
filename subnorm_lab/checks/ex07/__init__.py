"""The exercises on norms that are split, moved, folded or capped, and what several of them share.

Several processes are a list: each has its piece of every array, and a message is a sum over the list.
"""

import numpy as np

#: Sizes of the pieces, so that a piece by itself has a clearly different mean square
LOUD = (1.0, 3.0, 0.5)


def pieces(rng, widths, rows=(3,), scale=1.0):
    """A token's features in pieces, one for each process."""
    return [rng.normal(0.4, 1, (*rows, w)) * loud * scale for w, loud in zip(widths, LOUD, strict=False)]


def gains(rng, widths):
    return [rng.normal(1.5, 0.3, w) for w in widths]


def one_token(parts):
    """The pieces of all processes, put together."""
    return np.concatenate([np.asarray(part) for part in parts], -1)
