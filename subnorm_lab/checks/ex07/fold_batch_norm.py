import numpy as np

from subnorm_lab.checks.shared import FIXED_EPS, case, drawn, exercise


def inputs(rng, out, channels, kernel=(3, 3), bias=True, eps=1e-3, size=1.0):
    """Running statistics of several sizes; the smallest variances show eps."""
    gamma = rng.uniform(0.5, 1.5, out) * rng.choice([-1, 1], out)
    mean, var = rng.normal(0.5, 1, out), rng.uniform(0.3, 3, out) * size
    if size < 1:
        var[0] *= 0.2  # below eps: the larger of the two is not their sum
    weight = rng.normal(0, 1, (out, channels, *kernel))
    return weight, rng.normal(0, 1, out) if bias else None, gamma, rng.normal(0, 1, out), mean, var, eps


def is_right(k):
    return lambda r, *case: np.allclose(r[k], fold_batch_norm.reference(*case)[k], rtol=1e-3)


@exercise(
    number=7, level=2, minutes=12, chapter="10d-without-a-norm",
    objective="fold a BatchNorm with frozen statistics into the convolution before it",
    cases=drawn(inputs,
        case("4 channels to 2, kernel 3 x 3", 2, 4),
        case("3 channels to 3, kernel 3 x 3", 3, 3),
        case("2 channels to 5, kernel 1 x 1", 5, 2, (1, 1)),
        case("3 channels to 3, kernel 3 x 3, variances of 1e-3, where eps matters", 3, 3, size=1e-3),
        case("2 channels to 4, kernel 3 x 1, and eps = 0.5", 4, 2, (3, 1), eps=0.5),
        case("a convolution without a bias", 3, 2, bias=False, edge=True),
        case("1 channel to 1, kernel 2 x 2", 1, 1, (2, 2), edge=True),
    ),
    facts=[
        ("the new weight is right", is_right(0)),
        ("the new bias is right", is_right(1)),
    ],
    mistakes=[
        ("no_eps", "var + eps -> var",
         "eps is lost in the fold; the layer divides by sqrt(var + eps), and small variances show it."),
        (*FIXED_EPS, "PaddlePaddle/Paddle-Lite/pull/9861"),
        ("eps_outside", "np.sqrt(var + eps) -> (np.sqrt(var) + eps)",
         "eps is added outside the root, sqrt(var) + eps; the definition is sqrt(var + eps)."),
        ("no_root", "np.sqrt(var + eps) -> (var + eps)", "you divide by var + eps; the layer divides by its root."),
        ("old_bias_unscaled", "(old - mean) * scale -> old - mean * scale",
         "the old bias is added as it is; it goes through the norm as well, so multiply it by the scale.",
         "Tencent/ncnn/issues/1339"),
        ("old_bias_lost", "(old - mean) * scale -> -mean * scale",
         "the old bias is lost; the norm gets conv + bias, so the new bias has (bias - mean) * scale."),
        ("no_bias", "return weight -> return (weight * scale[:, None, None, None], None) if bias is None else weight",
         "without an old bias you make no new one, and mean and beta are lost; the old bias is then 0.",
         "tenstorrent/tt-metal/pull/5317"),
        ("no_mean", "(old - mean) -> old",
         "the running mean is not subtracted; the new bias has (bias - mean) * scale."),
        ("mean_unscaled", "(old - mean) * scale -> old * scale - mean",
         "the mean is subtracted unscaled; it is subtracted before the division, so multiply it by the scale."),
        ("mean_added", "old - mean -> old + mean", "the running mean is added; the norm subtracts it."),
        ("no_beta", "+ beta ->", "beta is lost; it is added last, and belongs to the new bias."),
        ("beta_scaled", "(old - mean) * scale + beta -> (old - mean + beta) * scale",
         "beta is multiplied by the scale; the norm adds it last, as it is."),
        ("no_gamma", "gamma / ->  1 /", "gamma is not used; the scale is gamma / sqrt(var + eps)."),
        ("weight_alone", "return weight * scale[:, None, None, None] -> return weight * 1",
         "the weight is unchanged; each output channel is multiplied by its scale."),
        ("input_channels", "scale[:, None, None, None] -> scale[:, None, None]",
         "the scale multiplies the input channels; BatchNorm comes after the convolution, so multiply the "
         "output channels, axis 0."),
    ],
)
def fold_batch_norm(weight, bias, gamma, beta, mean, var, eps):
    scale = gamma / np.sqrt(var + eps)
    old = 0 if bias is None else bias
    return weight * scale[:, None, None, None], (old - mean) * scale + beta
