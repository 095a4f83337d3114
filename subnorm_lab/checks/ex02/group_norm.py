import numpy as np

from subnorm_lab.checks.ex02 import EPS_OUTSIDE, FLOAT16, NO_EPS, XHAT
from subnorm_lab.checks.shared import FIXED_EPS, case, drawn, exercise


def inputs(rng, shape, groups, scale=1, eps=None):
    gamma, beta = rng.normal(1, 0.3, shape[1]), rng.normal(0, 0.5, shape[1])
    eps = eps or (1e-5 if scale > 0.1 else 3e-6)
    x = rng.normal(0, scale, shape)
    if scale < 0.1:
        x[0] *= 0.4  # its variances are below eps: the larger of the two is not their sum
    return x, groups, gamma, beta, eps


def has_mean_0(y, x, groups, gamma, beta, eps):
    xhat = (y - beta[:, None]) / gamma[:, None]
    return np.allclose(xhat.reshape(len(x), groups, -1).mean(-1), 0, atol=1e-6)


def has_its_variance(y, x, groups, gamma, beta, eps):
    xhat = (y - beta[:, None]) / gamma[:, None]
    var = x.reshape(len(x), groups, -1).var(-1)
    return np.allclose(xhat.reshape(len(x), groups, -1).var(-1), var / (var + eps), atol=1e-6)


def over(axis):
    return f"mean((2, 3) -> mean({axis}", f"var((2, 3) -> var({axis}"


@exercise(
    number=4, level=2, minutes=15, chapter="03b-batch-group-instance",
    objective="write GroupNorm, and say which entries share a statistic",
    cases=drawn(inputs,
        case("2 examples of 6 channels and 4 positions, in 2 groups", (2, 6, 4), 2),
        case("as many positions as channels, (2, 6, 6), in 3 groups", (2, 6, 6), 3),
        case("one group", (2, 6, 4), 1),
        case("as many groups as channels", (3, 4, 5), 4),
        case("entries of deviation 2e-3, where eps matters", (2, 6, 4), 2, scale=2e-3),
        case("2 groups and eps = 0.5", (2, 6, 4), 2, eps=0.5),
        case("one example of 4 channels and one position, (1, 4, 1)", (1, 4, 1), 2, edge=True),
        case("a float16 input with entries near 400", (2, 6, 4), 2, scale=400, edge=True, dtype="float16"),
    ),
    facts=[
        ("(y - beta) / gamma has mean 0 in every group", has_mean_0),
        ("(y - beta) / gamma has variance var / (var + eps) in every group", has_its_variance),
    ],
    mistakes=[
        ("whole_example", over((1, 2, 3)), "all groups share one mean and one variance; each group has its own.",
         "brainpy/BrainPy/issues/765"),
        ("each_position", over(2),
         "each position has its own statistics; GroupNorm takes them over all positions as well."),
        ("each_channel", over(3),
         "each channel has its own statistics: that is InstanceNorm; the channels of a group share them."),
        ("batch_too", over((0, 2, 3)), "all examples share the statistics; each example has its own."),
        ("strided", ("groups, -1, length) -> -1, groups, length).swapaxes(1, 2)",
                     ".reshape(x.shape) -> .swapaxes(1, 2).reshape(x.shape)"),
         "the channels are dealt out to the groups in turn; a group is a block of consecutive channels.",
         "tenstorrent/tt-metal/pull/56202"),
        ("group_size", "groups, -1 -> -1, groups",
         "groups is used as the number of channels in a group; it is the number of groups."),
        ("reshaped", ("groups, -1, length) -> length, groups, -1).transpose(0, 2, 3, 1)",
                      ".reshape(x.shape) -> .transpose(0, 3, 1, 2).reshape(x.shape)"),
         "the reshape mixes channels and positions, as if channels came last; here they are axis 1.",
         "tensorflow/addons/issues/751"),
        ("along_positions", ("gamma[:, None] -> gamma", "beta[:, None] -> beta"),
         "gamma and beta run along the last axis, the positions; they belong to the channels: gamma[:, None]."),
        ("ddof1", "v.var((2, 3), -> v.var((2, 3), ddof=1,",
         "your variance is unbiased; divide by the number of entries in a group, not by one less."),
        EPS_OUTSIDE, NO_EPS, FIXED_EPS,
        ("no_gain_no_shift", "gamma[:, None] * xhat + beta[:, None] -> xhat", XHAT),
        ("no_gamma", "gamma[:, None] * xhat -> xhat", "gamma is not used: it multiplies each channel."),
        ("no_beta", "+ beta[:, None] ->", "beta is not used: it is added to each channel."),
        (*FLOAT16, "neuroneural/brainchop-cli/pull/56"),
    ],
)
def group_norm(x, groups, gamma, beta, eps):
    n, _, length = x.shape
    v = x.astype(np.promote_types(x.dtype, np.float32)).reshape(n, groups, -1, length)
    mean = v.mean((2, 3), keepdims=True)
    var = v.var((2, 3), keepdims=True)
    xhat = ((v - mean) / np.sqrt(var + eps)).reshape(x.shape)
    return (gamma[:, None] * xhat + beta[:, None]).astype(x.dtype)
