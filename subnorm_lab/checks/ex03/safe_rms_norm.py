import numpy as np

from subnorm_lab.checks.ex03 import NO_EPS, SUM, gains, short_rows
from subnorm_lab.checks.shared import NO_GAMMA, Case, exercise


def cases(rng):
    def case(name, x, eps, edge=False):
        return Case(name, (x, gains(rng, x.shape[-1]), eps), edge)

    huge = 1e200
    sizes = np.array([[1], [huge], [0.1]])
    spike = huge * rng.uniform(1, 2) * np.eye(8)[[rng.integers(1, 7)]]
    return [
        case("a (3, 8) batch", short_rows(rng, (3, 8)), 1e-2),
        case("a square batch, (6, 6), with entries near 1e200", short_rows(rng, (6, 6), huge), 1e-2),
        case("a (2, 5, 8) batch with entries near 5 and eps = 0.5", short_rows(rng, (2, 5, 8), 5), 0.5),
        case("a batch of rows of size 1, 1e200 and 0.1", short_rows(rng, (3, 8)) * sizes, 1e-2),
        case("one token with entries near -1e200, (8,)", -huge * rng.uniform(1, 2, 8), 1e-2),
        case("a batch in which one row is 0", np.insert(short_rows(rng, (2, 8)), 1, 0, axis=0), 1e-2),
        case("a row of zeros but for one entry near 1e200, (1, 8)", spike, 1e-2, edge=True),
    ]


@exercise(
    number=8, level=3, minutes=15, chapter="04-rmsnorm",
    objective="compute RMSNorm of rows whose squares do not fit into any type at hand",
    cases=cases,
    facts=[("every entry is finite", lambda y, *args: np.isfinite(y).all())],
    mistakes=[
        ("overflow", "np.abs(x).max(-1, keepdims=True) -> 1",
         "the squares of large entries are infinite, and one over infinity is 0; divide each row by its largest "
         "|x| before you square.", "tenstorrent/tt-metal/issues/55159"),
        ("eps_grown", "eps / m / m -> eps",
         "eps is added to the mean square of the scaled row, which makes it m² times too large; add eps / m².",
         "apple/coremltools/issues/2821"),
        ("eps_by_m", "eps / m / m -> eps / m", "eps is divided by m; it is added to squares, so divide it by m²."),
        ("no_eps", "+ eps / m / m ->", NO_EPS[2]),
        ("zero_row", "np.where(m == 0, 1, m) -> m",
         "a row of zeros has a largest |x| of 0, and 0 / 0 is NaN; its result is 0.", "apple/coremltools/pull/2822"),
        ("one_maximum", "max(-1, keepdims=True) -> max()",
         "the whole array shares one largest |x|, so small rows vanish beside large ones; take one for each row."),
        ("signed_maximum", "np.abs(x) -> x",
         "the largest entry is taken with its sign; a row of large negative entries needs the largest |x|."),
        ("clipped", "m = np.abs -> x = np.clip(x, -1e150, 1e150); m = np.abs",
         "large entries are clipped, and all become equal. Scale the row instead."),
        ("root_of_scaled", "u / np -> x / np", "x itself is divided by the root; divide the scaled row."),
        ("scaled_twice", "u / np -> u / m / np",
         "the result is divided by m once more; m is in both numerator and root, and cancels."),
        SUM, NO_GAMMA,
    ],
)
def safe_rms_norm(x, gamma, eps):
    m = np.abs(x).max(-1, keepdims=True)
    m = np.where(m == 0, 1, m)
    u = x / m
    mean = (u * u).mean(-1, keepdims=True)
    return gamma * (u / np.sqrt(mean + eps / m / m))
