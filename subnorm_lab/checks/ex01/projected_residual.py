import numpy as np

from subnorm_lab.checks.ex01 import random_sublayer
from subnorm_lab.checks.shared import case, drawn, exercise


def inputs(rng, shape, out, projected=True, kind="tanh"):
    d = shape[-1]
    weight = rng.normal(0, 1 / np.sqrt(d), (d, out)) if projected else None
    return rng.normal(0, 1, shape), random_sublayer(rng, d, kind, out), weight


@exercise(
    number=3, level=2, minutes=10, chapter="02-residual-connections",
    objective="write a residual connection, also where the width changes",
    cases=drawn(inputs,
        case("4 features in, 6 out", (3, 4), 6),
        case("8 features in, 5 out, in a batch of sequences", (2, 3, 8), 5),
        case("one feature in, 4 out", (5, 1), 4),
        case("4 features in, 4 out, with a weight all the same", (3, 4), 4),
        case("4 features in, 4 out, and weight=None", (3, 4), 4, projected=False),
        case("one token, (3,), and 5 features out", (3,), 5),
        case("one token, (4,), and weight=None", (4,), 4, projected=False),
        case("a batch of one token, (1, 4), and 6 features out", (1, 4), 6, edge=True),
        case("a sublayer that returns its input itself, not a copy", (3, 4), 4, kind="same", edge=True),
        case("such a sublayer, and weight=None", (3, 4), 4, projected=False, kind="same", edge=True),
    ),
    facts=[
        ("with weight=None it is x + F(x)",
         lambda y, x, sublayer, weight: weight is not None or np.allclose(y - x, sublayer(x))),
        ("with a weight the branch is in it once",
         lambda y, x, sublayer, weight: weight is None or np.allclose(y - sublayer(x), x @ weight)),
    ],
    mistakes=[
        ("no_projection", "x if weight is None else x @ weight -> x",
         "x is added as it is (a single feature is broadcast); with a weight, the skip path is x @ weight.",
         "AlexeyAB/darknet/issues/3809"),
        ("padded", "x @ weight -> x @ np.eye(*weight.shape)",
         "x is added to the first features only; with a weight, the skip path is x @ weight, as wide as the result.",
         "AlexeyAB/darknet/issues/3420"),
        ("by_width", "weight is None -> x.shape == sublayer(x).shape",
         "the weight is used only if the widths differ; use it whenever there is one."),
        ("branch_projected", "x @ weight -> branch @ weight",
         "the weight is applied to the branch, F(x) @ weight + F(x); it projects x, which the skip path carries.",
         "bytedance/1d-tokenizer/pull/119"),
        ("sum_projected", "skip + branch -> skip + branch if weight is None else (x + branch) @ weight",
         "the sum is projected, (x + F(x)) @ weight; project only the skip path."),
        ("reads_projected", "sublayer(x) -> sublayer(x if weight is None else x @ weight)",
         "the sublayer reads x @ weight; it must read x, and the projection belongs to the skip path alone."),
        ("transposed", "x @ weight -> x @ weight.T",
         "x is multiplied by weight.T; weight has shape (d_in, d_out), so the product is x @ weight."),
        ("relu_on_skip", "x @ weight -> np.maximum(x @ weight, 0)",
         "the projected x goes through a ReLU; a projection is linear: x @ weight."),
        ("no_skip", "skip + ->", "the result is the branch alone, F(x); add x @ weight, or x."),
        ("branch_lost", "skip + branch -> skip + skip",
         "the skip path is added to itself: the branch is lost; the other term is F(x).",
         "theislab/CellFlow/pull/296"),
        ("none_is_no_skip", "x if weight -> 0 if weight",
         "with weight=None nothing is added to the branch; then the skip path carries x itself.",
         "PetarV-/GAT/issues/11"),
        ("always_projected", "x if weight is None else ->",
         "x is always projected; with weight=None the skip path carries x itself.", "tflearn/tflearn/issues/13"),
    ],
)
def projected_residual(x, sublayer, weight):
    branch = sublayer(x)
    skip = x if weight is None else x @ weight
    return skip + branch
