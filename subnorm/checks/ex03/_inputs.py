"""Inputs that several exercises share. The rows are short, so that a forgotten d has a large effect."""

import numpy as np

from subnorm.checks.collect import Case
from subnorm.checks.shared import in_dtype


def rows(rng, shape, scale=1):
    """Rows with a nonzero mean. With three axes, the sequences have different sizes."""
    x = rng.normal(0.5, 1, shape) * scale
    return x * np.array([1.0, 3.0])[:, None, None] if len(shape) == 3 else x


def gains(rng, d):
    return rng.normal(1.5, 0.3, d)


def norm_cases(rng, arrays):
    """Inputs on which each mistake has its own effect: some arrays of rows, the gains, and eps."""

    def case(name, shape, scale=1, edge=False):
        inputs = [rows(rng, shape, scale) for _ in range(arrays)]
        return Case(name, (*inputs, gains(rng, shape[-1]), 1e-5 if scale > 0.1 else 4e-6), edge)

    return [
        case("a (3, 8) batch", (3, 8)),
        case("a square batch, (6, 6)", (6, 6)),
        case("a (2, 5, 8) batch of sequences", (2, 5, 8)),
        case("rows of size 2e-3, where eps matters", (3, 8), scale=2e-3),
        case("one token, (8,)", (8,)),
        in_dtype(case("a float16 batch with entries near 400", (3, 8), scale=400, edge=True), "float16"),
    ]


def half_cases(rng, offset):
    """Half-precision inputs. The answer adds `offset` to its gains.

    Two cases have float32 gains, which reveal where the cast is: one in the dtype of the result, the other in its
    values. There each row has one large entry, so float16 keeps few digits of the others; large gains show it.
    """

    def case(name, shape, scale=1, eps=1e-5, edge=False):
        return in_dtype(Case(name, (rows(rng, shape, scale), gains(rng, shape[-1]) - offset, eps), edge), "float16")

    x, gamma, eps = case("", (3, 8)).args
    spiked = rng.uniform(0.003, 0.009, (3, 8))
    spiked[:, 0] = 60000
    steep = rng.uniform(4e6, 6e6, 8)
    steep[0] = 1
    spiked, steep = spiked.astype("float16"), steep.astype("float32")
    return [
        case("a (3, 8) float16 batch", (3, 8)),
        case("a square float16 batch, (6, 6)", (6, 6)),
        case("a (2, 5, 8) float16 batch of sequences", (2, 5, 8)),
        case("float16 rows of size 0.1 and eps = 0.01", (3, 8), scale=0.1, eps=0.01),
        case("a float16 batch with entries near 400", (3, 8), scale=400, edge=True),
        Case("a float16 batch with float32 gains", (x, gamma.astype("float32"), eps), edge=True),
        Case("float16 rows with one entry of 60000 and float32 gains in the millions", (spiked, steep, eps), edge=True),
    ]
