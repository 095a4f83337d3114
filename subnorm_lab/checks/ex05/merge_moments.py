import numpy as np

from subnorm_lab.checks.shared import Case, exercise


def cases(rng):
    """Two pieces of every row, with different lengths and distant means: the count, mean and m2 of each."""

    def piece(count, dtype, rows=5):
        x = rng.normal(rng.normal(0, 2, (rows, 1)), 1, (rows, count))
        means = x.mean(-1)
        return count, means.astype(dtype), np.square(x - means[:, None]).sum(-1).astype(dtype)

    def near_400():
        """Means around whole numbers, which makes every right formula exact in float16."""
        mean, half = rng.integers(380, 420, 5), rng.integers(1, 4, 5)
        means = (mean - half, mean + half)
        return tuple((8, m.astype(np.float16), rng.uniform(4, 12, 5).astype(np.float16)) for m in means)

    def case(name, counts, dtype="float64", **settings):
        return Case(name, tuple(piece(count, dtype, **settings) for count in counts), edge="rows" in settings)

    return [
        case("pieces of 3 and 8 numbers", (3, 8)),
        case("pieces of 12 and 5 numbers, in float32", (12, 5), dtype="float32"),
        case("a piece of 7 and a single number", (7, 1)),
        case("two pieces of 6", (6, 6)),
        case("pieces of 4 and 9 numbers of a single row", (4, 9), rows=1),
        Case("two pieces of 8 numbers near 400, with moments in float16", near_400(), edge=True),
    ]


def is_right(k):
    return lambda r, one, other: np.allclose(r[k], merge_moments.reference(one, other)[k], rtol=1e-3)


@exercise(
    number=7, level=3, minutes=20, chapter="03-layer-normalization",
    objective="take mean and variance of a row that comes in pieces, in one pass",
    cases=cases,
    facts=[
        ("the counts add up", lambda r, one, other: r[0] == one[0] + other[0]),
        ("the mean is right", is_right(1)),
        ("m2 is right", is_right(2)),
    ],
    mistakes=[
        ("sum_alone", "+ between ->",
         "the two m2 are only added; the distance between the two means contributes delta² n m / (n + m)."),
        ("mean_of_means", "(m / (n + m)) -> 0.5",
         "the mean is halfway between the two means, which is right only for equal counts; weight them by n and m.",
         "oracle/tribuo/pull/215"),
        ("weights_swapped", "(m / (n + m)) -> (n / (n + m))",
         "the mean moves by the share of the first piece; "
         "it must move towards the second by the second's share, m / (n + m)."),
        ("not_squared", "delta * delta -> delta", "delta enters m2 unsquared; it is delta² n m / (n + m)."),
        ("undivided", "(n * m / (n + m)) -> (n * m)", "delta² n m is not divided; the term is delta² n m / (n + m)."),
        ("one_count", "n * m / -> m /",
         "the term is delta² times the second count's share; the first count is missing: delta² n m / (n + m)."),
        ("full_weight", "n * m / (n + m) -> n + m",
         "delta² is multiplied by the whole count n + m; the term is delta² n m / (n + m)."),
        ("averaged", "m2 + other_m2 -> (m2 + other_m2) / 2",
         "the two m2 are averaged; they are sums of squares, so they add."),
        ("variances_for_m2", "m2 + other_m2 -> m2 / n + other_m2 / m",
         "each m2 is divided by its count first; m2 is the sum of the squared deviations, and sums add.",
         "Oneflow-Inc/oneflow/issues/7471"),
        ("variance", "m2 + other_m2 + between -> (m2 + other_m2 + between) / (n + m)",
         "the third result is divided by the count: that is the variance; "
         "the task asks for m2, the sum, which can be merged again."),
        ("raw_squares", "+ between -> + n * mean**2 + m * other_mean**2 - (n + m) * merged**2",
         "m2 is a difference of raw squares, n * mean**2; if the mean is large, they overflow or lose the digits "
         "of m2. Take the difference of the means first, then square.", "Eventual-Inc/Daft/pull/7486"),
    ],
)
def merge_moments(one, other):
    (n, mean, m2), (m, other_mean, other_m2) = one, other
    delta = other_mean - mean
    merged = mean + delta * (m / (n + m))
    between = delta * delta * (n * m / (n + m))
    return n + m, merged, m2 + other_m2 + between
