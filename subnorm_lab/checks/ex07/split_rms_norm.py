import numpy as np

from subnorm_lab.checks import ex07
from subnorm_lab.checks.shared import FIXED_EPS, drawn, exercise


def inputs(rng, *widths, rows=(3,), scale=1.0, eps=1e-5):
    return ex07.pieces(rng, widths, rows, scale), ex07.gains(rng, widths), eps


def divisors(y, pieces, gains, eps):
    """What each piece was divided by, (..., d)."""
    return ex07.one_token(g * x / part for part, x, g in zip(y, pieces, gains, strict=True))


def has_its_size(y, pieces, gains, eps):
    xhat = ex07.one_token(part / gain for part, gain in zip(y, gains, strict=True))
    mean = np.square(ex07.one_token(pieces)).mean(-1)
    return np.allclose(np.square(xhat).mean(-1), mean / (mean + eps))


@exercise(
    number=1, level=2, minutes=12, chapter="10-norms-at-work",
    objective="normalise a token whose features are split over processes, with one number for a message",
    cases=drawn(inputs, *ex07.SPLITS),
    facts=[
        ("all pieces of a token are divided by the same number",
         lambda *case: np.allclose(divisors(*case), divisors(*case)[..., :1])),
        ("each whole token has mean square ms / (ms + eps), before the gains", has_its_size),
    ],
    mistakes=[
        ("own_mean_square", ("rms = np.sqrt(total / d + eps) ->",
                             "* x / rms -> * x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)"),
         "each process divides by the mean square of its own piece; add up the squares of all pieces first.",
         "ml-explore/mlx-lm/pull/898"),
        ("own_width", ("rms = np.sqrt(total / d + eps) ->",
                       "* x / rms -> * x / np.sqrt(total / x.shape[-1] + eps)"),
         "the sum over all pieces is divided by the width of one; divide it by the width of the whole token."),
        ("mean_of_means", (".sum(-1, keepdims -> .mean(-1, keepdims", "total / d -> total / len(pieces)"),
         "the mean squares of the pieces are averaged, which is right only for equal widths; send sums."),
        ("means_added", (".sum(-1, keepdims -> .mean(-1, keepdims", "total / d -> total"),
         "the mean squares of the pieces are added up, and nothing divides their sum; send sums, and divide by d."),
        ("first_alone", "keepdims=True) for x in pieces -> keepdims=True) for x in pieces[:1]",
         "only the squares of the first process count; each process has to send its own."),
        ("roots", ("(x * x).sum(-1, keepdims=True) for -> np.sqrt((x * x).sum(-1, keepdims=True)) for",
                   "total / d -> total**2 / d"),
         "each process sends the root of its sum; roots do not add up, so send the squares and take one root."),
        ("length", "total / d -> total", "a token is divided by its length; the mean square is the sum divided by d."),
        ("own_variance", "(x * x).sum( -> np.square(x - x.mean(-1, keepdims=True)).sum(",
         "each process subtracts the mean of its piece first; RMSNorm squares x as it is."),
        ("all_tokens", ("(-1, keepdims=True) -> ()", "x.shape[-1] -> x.size"),
         "one mean square is taken over all tokens; each token has its own."),
        ("eps_for_each", ("keepdims=True) for -> keepdims=True) + eps for", "/ d + eps -> / d"),
         "every process adds eps to the sum that it sends; add it once, to the mean square."),
        ("eps_outside", "np.sqrt(total / d + eps) -> (np.sqrt(total / d) + eps)",
         "eps is added outside the root, sqrt(mean) + eps; the definition is sqrt(mean + eps)."),
        ("no_eps", "+ eps ->", "the given eps is not used; the definition divides by sqrt(mean(x²) + eps)."),
        FIXED_EPS,
        ("no_root", "np.sqrt ->", "you divide by mean(x²) + eps; the definition divides by its root."),
        ("no_gain", "gain * ->", "the gains are not used: each process multiplies by its own."),
    ],
)
def split_rms_norm(pieces, gains, eps):
    total = sum((x * x).sum(-1, keepdims=True) for x in pieces)
    d = sum(x.shape[-1] for x in pieces)
    rms = np.sqrt(total / d + eps)
    return [gain * x / rms for x, gain in zip(pieces, gains, strict=True)]
