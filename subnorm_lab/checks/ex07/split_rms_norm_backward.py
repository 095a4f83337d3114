import numpy as np

from subnorm_lab.checks import ex07
from subnorm_lab.checks.shared import FIXED_EPS, drawn, exercise


def inputs(rng, *widths, rows=(3,), scale=1.0, eps=1e-5):
    xs = ex07.pieces(rng, widths, rows, scale)
    return [rng.normal(0.5, 1, x.shape) for x in xs], xs, ex07.gains(rng, widths), eps


def is_nearly_orthogonal(y, dys, pieces, gains, eps):
    """Whether x · dx is what eps leaves of it: without eps the output does not depend on a token's size."""
    x, dx = ex07.one_token(pieces), ex07.one_token(y)
    dxhat = ex07.one_token(gain * dy for gain, dy in zip(gains, dys, strict=True))
    rstd = (np.square(x).mean(-1) + eps) ** -0.5
    return np.allclose((x * dx).sum(-1), eps * rstd**3 * (x * dxhat).sum(-1), 1e-3, 1e-5)


def is_right(y, *case):
    wanted = split_rms_norm_backward.reference(*case)
    return np.allclose(ex07.one_token(y), ex07.one_token(wanted), rtol=1e-3)


SUM = "message = sum((g * xhat).sum(-1, keepdims=True) for g, xhat in zip(dxhats, xhats, strict=True)) ->"
OWN = "(g * xhat).sum(-1, keepdims=True)"


@exercise(
    number=2, level=3, minutes=30, chapter="10-norms-at-work",
    objective="derive what processes must send in the backward pass of a norm that is split by features",
    cases=drawn(inputs, *ex07.SPLITS),
    facts=[
        ("dx is orthogonal to x, up to eps", is_nearly_orthogonal),
        ("dx is right", is_right),
    ],
    mistakes=[
        ("no_message_back", (SUM, f"xhat * message -> xhat * {OWN}"),
         "backward, each process uses its own share of the sum; all outputs depend on rstd, so add up the shares."),
        ("own_mean", (SUM, f"xhat * message / d -> xhat * {OWN} / xhat.shape[-1]"),
         "backward, each piece is treated as a whole token; add up the shares of all, and divide by d."),
        ("mean_of_means", "(g * xhat).sum( -> (g * xhat).mean(",
         "the shares are means over a piece, divided once more by d; send sums."),
        ("averaged", "message / d -> message / d / len(pieces)",
         "the message is averaged over the processes; the processes send the shares of one sum, so add them up."),
        ("undivided", "message / d -> message", "the message is not divided by d; the term is a mean over features."),
        ("own_width", "message / d -> message / xhat.shape[-1]",
         "the sum over all features is divided by the width of one piece; divide it by d."),
        ("own_forward", ("rstd = 1 / np.sqrt(sum((x * x).sum(-1, keepdims=True) for x in pieces) / d + eps) -> "
                         "own = [1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps) for x in pieces]",
                         "[x * rstd for x in pieces] -> [x * r for x, r in zip(pieces, own, strict=True)]",
                         "[rstd * ( -> [r * (", "for g, xhat in zip(dxhats, xhats, strict=True)] -> "
                         "for g, xhat, r in zip(dxhats, xhats, own, strict=True)]"),
         "rstd is each process's own; forward and backward have to use that of the whole token."),
        ("constant_rstd", "(g - xhat * message / d) -> g",
         "rstd is treated as a constant; it depends on x, which adds a second term."),
        ("plus", "g - xhat -> g + xhat", "the second term is added; a larger x makes rstd smaller, so subtract."),
        ("message_alone", "xhat * message / d) -> message / d)",
         "the message itself is subtracted, as LayerNorm subtracts a mean; multiply it by xhat first."),
        ("x_for_xhat", "[x * rstd for -> [x for", "x is used for xhat; both factors of the second term are xhat."),
        ("no_rstd", "[rstd * ( -> [(", "the result is not multiplied by rstd, although xhat is x times rstd."),
        ("no_gain", "gain * dy -> dy", "the gains are not used: the gradient at xhat is gamma * dy."),
        ("gain_last", ("gain * dy -> dy",
                       "(g - xhat * message / d) for g, xhat in zip(dxhats, xhats, strict=True)] -> "
                       "gain * (g - xhat * message / d) for g, xhat, gain in zip(dxhats, xhats, gains, strict=True)]"),
         "the gains multiply the result; they multiply dy, before the message is summed."),
        ("no_eps", "+ eps ->", "the given eps is not used; rstd is 1 / sqrt(mean(x²) + eps)."),
        FIXED_EPS,
    ],
)
def split_rms_norm_backward(dys, pieces, gains, eps):
    d = sum(x.shape[-1] for x in pieces)
    rstd = 1 / np.sqrt(sum((x * x).sum(-1, keepdims=True) for x in pieces) / d + eps)
    xhats = [x * rstd for x in pieces]
    dxhats = [gain * dy for gain, dy in zip(gains, dys, strict=True)]
    message = sum((g * xhat).sum(-1, keepdims=True) for g, xhat in zip(dxhats, xhats, strict=True))
    return [rstd * (g - xhat * message / d) for g, xhat in zip(dxhats, xhats, strict=True)]
