from subnorm_lab.checks.ex03 import gains, short_rows
from subnorm_lab.checks.shared import NO_BETA, NO_GAMMA, ONE_TOKEN, Sublayer, drawn, exercise, of_shapes


def inputs(rng, shape):
    d = shape[-1]
    return short_rows(rng, shape), Sublayer("peak"), gains(rng, d), rng.normal(0.5, 0.5, d)


def centred(x):
    return x - x.mean(-1, keepdims=True)


@exercise(
    number=2, level=1, minutes=10, chapter="04-rmsnorm",
    objective="name the one difference between RMSNorm and LayerNorm, and turn one into the other",
    cases=drawn(inputs, *of_shapes((3, 8), (6, 6), (2, 5, 8), (8,)), ONE_TOKEN),
    mistakes=[
        ("no_centre", "norm(centred) -> norm(x)",
         "the mean is not subtracted, which is LayerNorm's first step. RMSNorm with beta is not LayerNorm."),
        ("centre_after", lambda x, norm, gamma, beta: gamma * centred(norm(x)) + beta,
         "the mean is subtracted after rms_norm; subtract it before, so that the mean square is the variance."),
        ("centre_last", lambda x, norm, gamma, beta: centred(gamma * norm(x) + beta),
         "the mean is subtracted from the finished result, together with a part of beta; subtract it from x."),
        ("axis0", "-1 -> 0", "the mean is taken over the batch; LayerNorm takes that of each token, over axis -1."),
        ("all_axes", "-1 -> None", "the whole array shares one mean; each token has its own, over axis -1."),
        ("keepdims", ", keepdims=True ->",
         "without keepdims=True the mean loses its last axis, and is subtracted along the wrong one."),
        NO_GAMMA, NO_BETA,
        ("beta_first", "xhat + beta -> (xhat + beta)",
         "beta is added before the gain, which multiplies it; the definition is gamma * xhat + beta."),
        ("gain_first", ("gamma * ->", "norm(centred) -> norm(gamma * centred)"),
         "the gain is applied before rms_norm, which changes its statistics; apply it to the result of rms_norm."),
        ("own_norm", "norm(centred) -> centred / (x.var(-1, keepdims=True) + 1e-5) ** 0.5",
         "this is LayerNorm, but it does not use the given norm: the check passes its own."),
        ("writes_to_input", "centred = x - -> centred = x; centred -=",
         "an input itself is changed (an operator such as -= writes into it): make a new array."),
    ],
)
def layer_norm_from_rms(x, norm, gamma, beta):
    centred = x - x.mean(-1, keepdims=True)
    xhat = norm(centred)
    return gamma * xhat + beta
