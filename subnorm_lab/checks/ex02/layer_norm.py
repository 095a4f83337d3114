import numpy as np

from subnorm_lab.checks.ex02 import DDOF1, EPS_OUTSIDE, FLOAT16, NO_EPS, XHAT
from subnorm_lab.checks.shared import FIXED_EPS, NO_BETA, ONE_TOKEN, case, drawn, exercise, of_shapes


def inputs(rng, shape, scale=1, mean=0, eps=None):
    """Rows on which each mistake has its own effect. They are short, so that d and d - 1 are far apart."""
    d = shape[-1]
    gamma, beta = rng.normal(1, 0.3, d), rng.normal(0, 0.5, d)
    eps = eps or (1e-5 if scale > 0.1 else 3e-6)
    return rng.normal(mean, scale, shape), gamma, beta, eps


def has_mean_0(y, x, gamma, beta, eps, *, gain=0):
    return np.allclose(((y - beta) / (gain + gamma)).mean(-1), 0, atol=1e-6)


def has_its_variance(y, x, gamma, beta, eps, *, gain=0):
    var = x.var(-1)
    return np.allclose(((y - beta) / (gain + gamma)).var(-1), var / (var + eps), atol=1e-6)


def over(axis):
    return f"mean(-1 -> mean({axis}", f"var(-1 -> var({axis}"


@exercise(
    number=1, level=1, minutes=15, chapter="03-layer-normalization",
    objective="write LayerNorm from its formula, in NumPy",
    cases=drawn(inputs,
        *of_shapes((3, 8), (6, 6), (2, 5, 8)),
        case("rows of deviation 2e-3, where eps matters", (3, 8), scale=2e-3),
        case("a (3, 8) batch and eps = 0.5", (3, 8), eps=0.5),
        case("one token, (8,)", (8,), edge=True),
        case("a float16 batch with entries near 400", (3, 8), scale=400, edge=True, dtype="float16"),
        case("float32 rows of mean 1000 and deviation 1", (3, 8), mean=1000, edge=True, dtype="float32"),
        ONE_TOKEN,
    ),
    facts=[
        ("(y - beta) / gain has mean 0 in every row", has_mean_0),
        ("(y - beta) / gain has variance var / (var + eps) in every row", has_its_variance),
    ],
    parameter="gain", variants=[
        ("a gain of gamma", 0),
        ("a gain of 1 + gamma", 1, r"y = \gamma -> y = (1 + \gamma)", "[-10.,  15.] -> [-11.,  16.]",
         "LayerNorm over the last axis; -> LayerNorm with the gain 1 + gamma;"),
    ],
    mistakes=[
        (*DDOF1, "harvardnlp/annotated-transformer/issues/122"),
        ("axis0", over(0),
         "the statistics are taken over axis 0, the batch; LayerNorm takes them over the features, axis -1."),
        ("axis1", over(1),
         "in a batch of sequences, axis 1 is the sequence; the features are on the last axis, axis -1.",
         "jadore801120/attention-is-all-you-need-pytorch/pull/17"),
        ("batch_norm", over("tuple(range(x.ndim - 1))"),
         "one mean and variance for each feature, over all tokens: that is BatchNorm; LayerNorm takes axis -1.",
         "Kyubyong/transformer/issues/40"),
        ("whole_example", over("tuple(range(1, x.ndim)) or -1"),
         "all tokens of an example share a mean and a variance; each token has its own, over axis -1.",
         "reczoo/FuxiCTR/issues/23"),
        ("all_axes", over("None"),
         "the whole array shares one mean and one variance; each token has its own, over axis -1."),
        ("all_axes_ddof1", ("mean(-1 -> mean(None", "var(-1 -> var(None, ddof=1"),
         "the whole array shares one mean and one variance, which is divided by its size - 1 as well, as x.std() of "
         "PyTorch does; each token has its own, over axis -1, divided by d."),
        ("keepdims", ("mean(-1, keepdims=True) -> mean(-1)", "var(-1, keepdims=True) -> var(-1)"),
         "without keepdims=True the mean loses its last axis, and is subtracted along the wrong one.",
         "jadore801120/attention-is-all-you-need-pytorch/pull/17"),
        (*EPS_OUTSIDE, "codertimo/BERT-pytorch/issues/30"),
        (*NO_EPS, "torchcvnn/torchcvnn/issues/32"),
        ("no_root", "np.sqrt(var + eps) -> (var + eps)",
         "you divide by var + eps; the definition divides by its root."),
        ("square", "np.sqrt(var + eps) -> (var + eps) ** 2",
         "you divide by the square of var + eps; the definition divides by its root.",
         "131250208/TPlinker-joint-extraction/issues/37"),
        ("rsqrt", "np.sqrt(var + eps) -> (1 / np.sqrt(var + eps))",
         "you divide by 1 / sqrt(var + eps); multiply by it, or divide by the root.",
         "szymanowiczs/viewset-diffusion/issues/1"),
        ("no_mean", "(x - mean) -> x", "the mean is not subtracted from x: that is a step of LayerNorm.",
         "keras-team/keras/issues/21234"),
        FIXED_EPS,
        ("no_gain_no_shift", "(gain + gamma) * xhat + beta -> xhat", XHAT),
        ("no_gamma", "(gain + gamma) * xhat -> xhat", "gamma is not used: it multiplies each feature."),
        NO_BETA,
        (*FLOAT16, "facebookresearch/ConvNeXt/issues/80"),
        ("one_pass", "x.var(-1, keepdims=True) -> (x * x).mean(-1, keepdims=True) - mean * mean",
         "mean(x²) − mean(x)² loses digits when the mean is large; subtract the mean first, then square.",
         "tracel-ai/burn/issues/5607"),
    ],
)
def layer_norm(x, gamma, beta, eps, *, gain=0):
    dtype, x = x.dtype, x.astype(np.promote_types(x.dtype, np.float32))
    mean = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True)
    xhat = (x - mean) / np.sqrt(var + eps)
    return ((gain + gamma) * xhat + beta).astype(dtype)
