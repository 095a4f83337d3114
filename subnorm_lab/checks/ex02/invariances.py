import numpy as np

from subnorm_lab.checks.shared import Case, Norm, exercise


def cases(rng):
    """Norms in random order, on float64 batches; every property holds for some of them and fails for others.

    Some are there only so that the mean and size of an output do not reveal the norm's invariances.
    """

    def case(name, kind, gain=False, numbers=(0, 0)):
        n, d = rng.integers(4, 7), rng.integers(7, 10)
        weight = rng.uniform(0.5, 1.5, d) if gain else None
        norm = Norm(kind, weight, float(rng.uniform(*numbers)))
        return Case(f"{name}, a ({n}, {d}) batch", (norm, rng.normal(0.5, 1, (n, d))))

    cases = [
        case("LayerNorm", "layer"),
        case("LayerNorm with a gain", "layer", gain=True),
        case("RMSNorm", "rms"),
        case("RMSNorm with a gain", "rms", gain=True),
        case("BatchNorm", "batch"),
        case("a function that only subtracts the mean", "centring"),
        case("the squares divided by their mean", "squares"),
        case("a function that changes nothing", "nothing"),
        # each with a random number, which defeats a table of known outputs
        case("RMSNorm with another power than 2", "power", numbers=(2.5, 4)),
        case("LayerNorm of x + c x³", "bent", numbers=(0.2, 0.6)),
        case("a softmax divided by its mean", "soft", numbers=(0.7, 1.5)),
        case("each feature minus a part of the next", "neighbours", numbers=(0.4, 0.8)),
        case("RMSNorm down the batch", "batch rms", numbers=(0.2, 0.6)),
    ]
    return [cases[k] for k in rng.permutation(len(cases))]


def close(a, b):
    """np.allclose, five times as fast."""
    return bool(np.abs(a - b).max() < 1e-6)


@exercise(
    number=2, level=2, minutes=15, chapter="03-layer-normalization",
    objective="measure what a norm ignores in its input",
    cases=cases,
    mistakes=[
        ("whole_batch", ("shifted[0] -> shifted[:]", "scaled[0] -> scaled[:]"),
         "all tokens are shifted, and scaled, by the same number; change only one token."),
        ("negative_scale", "*= 3 -> *= -2",
         "your factor is negative, which flips the sign of a row; the question is about positive factors."),
        ("scaled_feature", "scaled[0] -> scaled[0, 0]",
         "you find that no output stays the same after a scaling: do you scale all features of a token by the same "
         "positive number, and compare with np.allclose?"),
        ("shifted_feature", "shifted[0] -> shifted[0, 0]",
         "you find that no output stays the same after a shift: do you shift all features of a token by the same "
         "number, and compare with np.allclose?"),
        ("scale_follows", "norm(scaled), y -> norm(scaled), np.vstack([3 * y[:1], y[1:]])",
         "you test whether the output is scaled with the input; the question is whether it stays the same."),
        ("shift_follows", "norm(shifted), y -> norm(shifted), np.vstack([5 + y[:1], y[1:]])",
         "you test whether the output is shifted with the input; the question is whether it stays the same."),
        ("not_permuted", "y[:, p] -> y",
         "norm(x[:, p]) is compared with norm(x); it should be compared with norm(x)[:, p], in the same order."),
        ("permuted_tokens", ("x.shape[1] -> len(x)", "x[:, p] -> x[p]", "y[:, p] -> y[p]"),
         "the tokens are permuted, axis 0; the question is about the features, axis 1."),
        ("watched_itself", "norm(touched)[1:], y[1:] -> norm(touched), y",
         "you also compare the token that was changed; the question is about the others."),
        ("exact", "y = norm(x) -> y, close = norm(x), lambda a, b: bool((a == b).all())",
         "outputs are compared with ==, and differ in the last digits; use np.allclose."),
        ("tiny", ("shifted[0] += 5 -> shifted[0] += 5e-9", "*= 3 -> *= 1 + 2e-9", "[0, 0] += 5 -> [0, 0] += 5e-9"),
         "your changes are smaller than the tolerance of the comparison; shift by 1 or more, scale by 2 or more."),
        ("alias", ("shifted = x.copy() -> shifted = x", "norm(shifted), y -> norm(shifted), norm(x)",
                   "scaled = x.copy() -> scaled = x", "norm(scaled), y -> norm(scaled), norm(x)",
                   "touched = x.copy() -> touched = x", "norm(touched)[1:], y[1:] -> norm(touched), norm(x)"),
         "x itself is changed, because z = x makes no copy, and then compared with itself; write z = x.copy()."),
        ("compared_with_x", "y = norm(x) -> y = x",
         "the norm of the changed input is compared with x; it should be compared with norm(x)."),
    ],
)
def invariances(norm, x):
    found = {}
    y = norm(x)
    shifted = x.copy()
    shifted[0] += 5
    found["shift"] = close(norm(shifted), y)
    scaled = x.copy()
    scaled[0] *= 3
    found["scale"] = close(norm(scaled), y)
    p = np.roll(np.arange(x.shape[1]), 1)
    found["permutation"] = close(norm(x[:, p]), y[:, p])
    touched = x.copy()
    touched[0, 0] += 5
    found["tokens"] = close(norm(touched)[1:], y[1:])
    return found
