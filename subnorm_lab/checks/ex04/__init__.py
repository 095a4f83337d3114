"""The exercises on the placement of the norm: Pre-LN, Post-LN and their relatives, a stack, and warm-up.

Several share sublayers and norms. The norms are of two kinds, so that no two are the same function. The rows have few
features, so that no effect averages out.
"""

import numpy as np

from subnorm_lab.checks.shared import Case, Row, Sublayer

D = 6
SAME = Sublayer("same")
ITSELF = "that return their input itself, not a copy"

# Mistakes of a block whose two lines begin with "x +" and "h +".
SKIPS_OF_A_BLOCK: list[Row] = [
    ("no_residual", ("x + ->", "h + ->"), "nothing is added: both residual connections are missing."),
    ("one_residual", "h + ->",
     "the second residual connection is missing: add the stream to the output of feed_forward."),
    ("feed_forward_lost", "h + -> h + 0 *",
     "the output of feed_forward is not added: the result is the stream after attention."),
    ("residual_from_input", "h + -> x +",
     "the second skip path carries the block's input; it must carry the stream after attention.",
     "strutive07/transformer-tensorflow2.0/issues/14"),
]


def stream(rng, *shape):
    """Tokens that a norm changes a lot."""
    return rng.normal(0, 3, (*shape, D))


def branch(rng, kind):
    return Sublayer(kind, rng.normal(0, 1 / np.sqrt(D), (D, D)))


def silent():
    return Sublayer("linear", np.zeros((D, D)))


def squash(rng):
    """Another norm: multiply each feature by its own gain, then take tanh."""
    return Sublayer("tanh", np.diag(rng.uniform(0.3, 0.8, D)))


def peaks_at_one(y, *args):
    """Whether rows are normalised, if the norm is of a kind that shows it."""
    norms = [arg for arg in args if isinstance(arg, Sublayer)]
    return norms[-1].kind != "peak" or np.allclose(np.abs(y).max(-1), 1)


def silent_is_identity(y, x, *parts):
    """Whether the output is x if the branches output zeros."""
    branches = [part.weight for part in parts if isinstance(part, Sublayer) and part.kind == "linear"]
    return not branches or any(weight.any() for weight in branches) or np.allclose(y, x)


def sublayer_cases(rng):
    return [
        Case("a (3, 6) batch", (stream(rng, 3), branch(rng, "tanh"), Sublayer("peak"))),
        Case("a (2, 4, 6) batch of sequences", (stream(rng, 2, 4), branch(rng, "relu"), squash(rng))),
        Case("one token, (6,)", (stream(rng), branch(rng, "tanh"), Sublayer("peak"))),
        Case("a sublayer that outputs zeros", (stream(rng, 3), silent(), squash(rng))),
        Case("a batch of one token, (1, 6)", (stream(rng, 1), branch(rng, "tanh"), squash(rng)), edge=True),
        Case(f"a sublayer and a norm {ITSELF}", (stream(rng, 3), SAME, SAME), edge=True),
    ]
