import numpy as np

from subnorm_lab.checks.ex01 import READS_FIRST, random_sublayer
from subnorm_lab.checks.shared import Case, Sublayer, exercise


def cases(rng):
    def case(name, shape, many, kind="tanh", edge=False):
        return Case(name, (rng.normal(0, 1, shape), [random_sublayer(rng, shape[-1], kind) for _ in range(many)]), edge)

    x = rng.normal(0, 1, (3, 4)).astype(np.float32)
    half = [Sublayer("tanh", rng.normal(0, 0.5, (4, 4)).astype(np.float32)) for _ in range(3)]
    return [
        case("three sublayers, a (3, 4) batch", (3, 4), 3),
        case("five sublayers, a (2, 5, 8) batch of sequences", (2, 5, 8), 5),
        case("three sublayers, one token, (8,)", (8,), 3),
        Case("three sublayers in float32", (x, half), edge=True),
        case("one sublayer, a batch of one token, (1, 4)", (1, 4), 1, edge=True),
        case("two sublayers that return their input itself, not a copy", (3, 4), 2, "same", edge=True),
    ]


@exercise(
    number=4, level=2, minutes=12, chapter="02-residual-connections",
    objective="predict how the signal grows with depth, and keep it bounded by scaling the branches",
    cases=cases,
    parameter="scale", variants=[
        ("the factor 1 / sqrt(N)", 1),
        ("the factor 1 / sqrt(2 N)", 2, r"by the root of the number -> by the root of twice the number",
         r"\frac{1}{\sqrt N} -> \frac{1}{\sqrt{2N}}", "$1 + 1/N$ -> $1 + 1/(2N)$",
         "divided by the root of their number -> scaled",
         "array([16.]) -> array([8.49])", "4 * [lambda x: 2 * x]) -> 4 * [lambda x: 2 * x]).round(2)"),
        ("the factor 1 / sqrt(3 N)", 3, r"by the root of the number -> by the root of three times the number",
         r"\frac{1}{\sqrt N} -> \frac{1}{\sqrt{3N}}", "$1 + 1/N$ -> $1 + 1/(3N)$",
         "divided by the root of their number -> scaled",
         "array([16.]) -> array([6.19])", "4 * [lambda x: 2 * x]) -> 4 * [lambda x: 2 * x]).round(2)"),
    ],
    mistakes=[
        ("no_scale", "factor * ->", "the branches are added unscaled; multiply each by {scale}.",
         "huggingface/transformers/issues/2158"),
        ("no_root", "factor = (scale * n) ** -0.5 -> factor = 1 / n",
         "each branch is divided by the number of sublayers; mean squares add, so use {scale}."),
        ("times_root", "** -0.5 -> ** 0.5", "each branch is multiplied by the root of N; multiply it by {scale}.",
         "Biohub/esm/issues/338"),
        ("two_for_each", "scale * n -> 2 * n",
         "you divide by the root of 2 N, as for N blocks of two sublayers each; here N is the number of "
         "sublayers; use {scale}."),
        ("by_position", ("for sublayer in sublayers -> for n, sublayer in enumerate(sublayers, 1)",
                         "factor * -> (scale * n) ** -0.5 *"),
         "the factor changes from branch to branch; multiply all branches by the same one, {scale}."),
        ("by_width", "n = len(sublayers) -> n = x.shape[-1]",
         "your N is the number of features; use the number of sublayers."),
        ("skip_scaled", "x + factor * -> factor * x +",
         "the factor multiplies the skip path, which then shrinks with every sublayer; multiply the branch.",
         "fchollet/deep-learning-models/issues/99"),
        ("sum_scaled", "x + factor * sublayer(x) -> factor * (x + sublayer(x))",
         "the whole sum is scaled, skip path included; scale only the branch."),
        ("sum_over_root_two", "x + factor * sublayer(x) -> 2**-0.5 * (x + sublayer(x))",
         "each sum is divided by the root of 2, so x fades with depth; scale only the branches, by their number.",
         "lucidrains/stylegan2-pytorch/issues/88"),
        ("input_scaled", "factor * sublayer(x) -> sublayer(factor * x)",
         "the factor multiplies the sublayer's input; multiply its output."),
        ("reads_first", ("n = -> first = x; n =", "sublayer(x) -> sublayer(first)"), READS_FIRST),
        ("float64", "(scale * n) ** -0.5 -> 1 / np.sqrt(scale * n)",
         "np.sqrt of a plain number is a float64, and turns float32 arrays into float64; use math.sqrt(n) or n**0.5.",
         "bh107/bohrium/issues/16"),
    ],
)
def scaled_stream(x, sublayers, *, scale=1):
    n = len(sublayers)
    factor = (scale * n) ** -0.5
    for sublayer in sublayers:
        x = x + factor * sublayer(x)
    return x
