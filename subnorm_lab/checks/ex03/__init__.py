"""The exercises on RMSNorm, and what several of them share."""

import numpy as np

from subnorm_lab.checks.shared import ONE_TOKEN, Case, Row, case, drawn, in_dtype, of_shapes

# Mistakes of an answer that computes mean = (x * x).mean(-1, keepdims=True) and x / np.sqrt(mean + eps)
AXIS_0: Row = ("axis0", "-1 -> 0",
    "the mean square is taken over the batch; RMSNorm takes it over the features of each token, axis -1.")
CENTRED: Row = ("layer_norm", "mean = -> x = x - x.mean(-1, keepdims=True); mean =",
    "the mean is subtracted first: that is LayerNorm without beta. RMSNorm uses x as it is.")
EPS_OUTSIDE: Row = ("eps_outside", "np.sqrt(mean + eps) -> (np.sqrt(mean) + eps)",
    "eps is added outside the root, sqrt(mean) + eps; the definition is sqrt(mean + eps).")
FLOAT16: Row = ("float16", "x.astype(np.promote_types(x.dtype, np.float32)) -> x",
    "float16 overflows in the squares: square in float32.")
KEEPDIMS: Row = ("keepdims", ", keepdims=True ->",
    "without keepdims=True the mean square loses its last axis, and divides along the wrong one.")
NO_EPS: Row = ("no_eps", "+ eps ->", "the given eps is not used; the definition divides by sqrt(mean(x²) + eps).")
NO_ROOT: Row = ("no_root", "np.sqrt ->", "you divide by mean(x²) + eps; the definition divides by its root.")
ONE_PLUS_GAMMA: Row = ("one_plus_gamma", "gamma * -> (1 + gamma) *",
    "the result is multiplied by 1 + gamma; that is Gemma's norm, and here gamma itself is the gain.")
SUM: Row = ("sum", ".mean( -> .sum(", "the squares are added up; RMSNorm takes their mean.")
VARIANCE: Row = ("variance", "(x * x).mean( -> x.var(",
    "you divide by the root of the variance, which subtracts the mean; RMSNorm uses the mean of x² itself.")


def short_rows(rng, shape, scale=1):
    """Short rows, on which a forgotten d has a large effect. With three axes, the sequences have different sizes.

    Of small rows, the mean square of the first is below eps: the larger of the two is not their sum.
    """
    x = rng.normal(0.5, 1, shape) * scale
    if scale < 0.1:
        x[0] *= 0.3
    return x * np.array([1.0, 3.0])[:, None, None] if len(shape) == 3 else x


def gains(rng, d):
    """One gain is below 0, as a trained one may be."""
    found = rng.normal(1.5, 0.3, d)
    found[rng.integers(d)] *= -1
    return found


def norm_cases(arrays):
    """Cases on which each mistake has its own effect: some arrays of rows, the gains, and eps."""

    def inputs(rng, shape, scale=1, eps=None):
        eps = eps or (1e-5 if scale > 0.1 else 4e-6)
        return *(short_rows(rng, shape, scale) for _ in range(arrays)), gains(rng, shape[-1]), eps

    return drawn(
        inputs,
        *of_shapes((3, 8), (6, 6), (2, 5, 8)),
        case("rows of size 2e-3, where eps matters", (3, 8), scale=2e-3),
        case("a (3, 8) batch and eps = 0.5", (3, 8), eps=0.5),
        case("one token, (8,)", (8,)),
        ONE_TOKEN,
        case("a float16 batch with entries near 400", (3, 8), scale=400, edge=True, dtype="float16"),
    )


def has_its_size(y, x, gamma, eps):
    """Whether y / gamma has the mean square of an RMSNorm."""
    return np.allclose(((y / gamma) ** 2).mean(-1), 1 - eps / ((x * x).mean(-1) + eps))


def half_cases(rng, offset):
    """Half-precision inputs. The answer adds `offset` to its gains.

    Two cases have float32 gains, which reveal where the cast is: one in the dtype of the result, the other in its
    values. There each row has one large entry, so float16 keeps few digits of the others; large gains show it.
    """

    def half(name, shape, scale=1, eps=1e-5, edge=False):
        given = short_rows(rng, shape, scale), gains(rng, shape[-1]) - offset, eps
        return in_dtype(Case(name, given, edge), "float16")

    x, gamma, eps = half("", (3, 8)).args
    spiked = rng.uniform(0.003, 0.009, (3, 8))
    spiked[:, 0] = 60000
    steep = rng.uniform(4e6, 6e6, 8)
    steep[0] = 1
    spiked, steep = spiked.astype("float16"), steep.astype("float32")
    return [
        half("a (3, 8) float16 batch", (3, 8)),
        half("a square float16 batch, (6, 6)", (6, 6)),
        half("a (2, 5, 8) float16 batch of sequences", (2, 5, 8)),
        half("a (3, 8) float16 batch and eps = 0.5", (3, 8), eps=0.5),
        half("a float16 batch with entries near 400", (3, 8), scale=400, edge=True),
        half("one float16 token, (8,)", (8,), edge=True),
        half("a float16 batch of one token, (1, 8)", (1, 8), edge=True),
        Case("a float16 batch with float32 gains", (x, gamma.astype("float32"), eps), edge=True),
        Case("float16 rows with one entry of 60000 and float32 gains in the millions", (spiked, steep, eps), edge=True),
    ]
