import numpy as np

from subnorm_lab.checks.shared import Case, exercise


def cases(rng):
    """Rows of d = 8 whose sums of squares are far below or far above the limit of float16.

    No other statistic separates the two: "lone" and "pair" fit, though their largest entries exceed those of "crowd",
    which does not; "few" does not fit, though most of its entries are small; nor does "offset", whose variance fits.
    """

    def row(kind):
        all_alike = {"below": (66, 80), "crowd": (100, 140), "loud": (300, 400), "huge": (9000, 20000)}
        x = rng.uniform(*all_alike.get(kind, (1, 9)), 8)
        if kind == "offset":
            return rng.choice([-1, 1]) * rng.uniform(140, 160, 8)
        larger = {"spike": (1, 300, 400), "lone": (1, 190, 220), "pair": (2, 140, 165), "few": (3, 190, 230)}
        if kind in larger:
            count, low, high = larger[kind]
            x[rng.choice(8, count, replace=False)] = rng.uniform(low, high, count)
        return x if kind == "huge" else x * rng.choice([-1, 1], 8)

    def case(name, *kinds, shape=()):
        x = np.array([row(kind) for kind in rng.permutation(kinds)])
        return Case(name, (x.reshape(*shape, 8).astype(np.float16),))

    return [
        case("a (4, 8) batch", "calm", "crowd", "below", "spike", shape=(4,)),
        case("a square batch, (8, 8)", "calm", "below", "crowd", "huge", "loud", "spike", "lone", "pair", shape=(8,)),
        case("a (2, 3, 8) batch of sequences", "crowd", "lone", "huge", "few", "loud", "pair", shape=(2, 3)),
        case("one token, (8,), with one large entry that fits", "lone"),
        case("one token, (8,), without a large entry", "crowd"),
        case("one token, (8,), that fits", "below"),
        case("a batch of one token, (1, 8), with entries of one sign", "offset", shape=(1,)),
    ]


WIDE = "(x * x).sum(-1, dtype=np.float16) -> np.square(x, dtype=np.float32).sum(-1)"


@exercise(
    number=6, level=2, minutes=10, chapter="04-rmsnorm",
    objective="say which rows need the upcast before the square",
    cases=cases,
    facts=[("there is one answer for each row", lambda r, x: np.shape(r) == x.shape[:-1])],
    mistakes=[
        ("entries", "sum(-1, dtype=np.float16) -> max(-1)",
         "a row is found only if one of its squares overflows; but squares that fit can have a sum that "
         "overflows, because the sum is in float16 too."),
        ("no_overflow_seen", WIDE,
         "no row is found: take the sum of the squares in float16, where an overflow is inf, not NaN, or compare it "
         "with the largest float16."),
        ("mean", (WIDE, "np.isinf(total) -> total / x.shape[-1] > 65504"),
         "you test the mean of the squares; their sum comes before the division by d, and is larger."),
        ("not_squared", "(x * x) -> x", "you test the sum of x; the task asks for the sum of its squares."),
        ("limit_too_low", (WIDE, "np.isinf(total) -> total > 2**15"),
         "you compare with 2**15 = 32768; the largest float16 is about twice that, 65504.", "aopp-pred/rpe/issues/15"),
        ("axis0", "sum(-1 -> sum(0",
         "the squares are added over the batch; add them over the features of each token, axis -1."),
        ("all_axes", "np.isinf(total) -> np.isinf(total).any()",
         "there is one answer for the whole array; each row has its own."),
        ("keepdims", "sum(-1, -> sum(-1, keepdims=True,",
         "the last axis is still there, with length 1: the result must have one entry for each row, shape (...)."),
        ("turned_round", "np.isinf -> np.isfinite", "these are the rows that fit; find those that overflow."),
        ("places", "np.isinf(total) -> np.flatnonzero(np.isinf(total))",
         "these are the indices of the rows; the task asks for True or False for each row."),
    ],
)
def overflows(x):
    total = (x * x).sum(-1, dtype=np.float16)
    return np.isinf(total)
