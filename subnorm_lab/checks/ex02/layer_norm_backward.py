import numpy as np

from subnorm_lab.checks.ex02 import DDOF1
from subnorm_lab.checks.shared import ONE_TOKEN, case, drawn, exercise, of_shapes


def inputs(rng, shape, scale=1, size=1, eps=1e-5):
    gamma = rng.uniform(0.5, 1.5, shape[-1])
    return rng.normal(0.5 * size, size, shape), rng.normal(0, scale, shape), gamma, eps


def is_right(k):
    """A test whether result k is right, including its shape."""

    def test(y, *args, gain=0):
        wanted = layer_norm_backward.reference(*args, gain=gain)[k]
        return np.shape(y[k]) == wanted.shape and np.allclose(y[k], wanted)

    return test


@exercise(
    number=6, level=3, minutes=25, chapter="03a-layer-norm-backward",
    objective="derive LayerNorm's backward pass, and write it in NumPy",
    cases=drawn(inputs,
        *of_shapes((3, 8), (6, 6), (2, 5, 8)),
        case("rows of deviation 2e-3, where eps matters", (3, 8), scale=2e-3),
        case("a (3, 8) batch and eps = 0.5", (3, 8), eps=0.5),
        case("one token, (8,)", (8,), edge=True),
        case("a float16 batch with entries near 400", (3, 8), scale=400, size=400, edge=True, dtype="float16"),
        ONE_TOKEN,
    ),
    facts=[
        ("every row of dx sums to 0", lambda y, dy, x, gamma, eps: np.allclose(y[0].sum(-1) * x.std(), 0, atol=1e-6)),
        ("dx is right", is_right(0)),
        ("dgamma is right", is_right(1)),
        ("dbeta is right", is_right(2)),
    ],
    parameter="gain", variants=[
        ("a gain of gamma", 0),
        ("a gain of 1 + gamma", 1, r"$y = \gamma -> $y = (1 + \gamma)",
         r"y \odot \gamma$ -> y \odot (1 + \gamma)$", "np.ones(4) -> np.zeros(4)",
         "a `gamma` other than 1 -> a `gamma` other than 0"),
    ],
    mistakes=[
        ("constants", "- shift - stretch ->",
         "mean and variance are treated as constants; they depend on x, and each subtracts a term from dxhat.",
         "facebookresearch/CrypTen/pull/143"),
        ("no_stretch", "- stretch ->", "the variance's term is missing: subtract xhat * mean(dxhat * xhat)."),
        ("no_shift", "- shift ->", "the mean's term is missing: subtract mean(dxhat), which only RMSNorm leaves out."),
        ("mean_twice", "- shift -> - 2 * shift", "mean(dxhat) is subtracted twice; subtract it once.",
         "tenstorrent/tt-metal/issues/53204"),
        ("no_gamma", "dy * (gain + gamma) -> dy",
         "gamma is missing from dx; the gradient at xhat is dy times the gain: you have {gain}.",
         "denizyuret/Knet.jl/issues/288"),
        ("gamma_after", ("dy * (gain + gamma) -> dy", "dx = rstd -> dx = (gain + gamma) * rstd"),
         "the gain multiplies dx at the end; it differs from feature to feature, so it has to come before the means."),
        ("no_rstd", "dx = rstd * -> dx =", "dx is not multiplied by rstd."),
        ("axis0", ("dxhat.mean(-1 -> dxhat.mean(0", "xhat).mean(-1 -> xhat).mean(0"),
         "the means in dx are taken over the batch, as in BatchNorm; LayerNorm takes them over the features."),
        ("dgamma_of_x", "(dy * xhat) -> (dy * x)",
         "dgamma is the sum of dy * x; gamma multiplies xhat in the forward pass, so sum dy * xhat."),
        ("dgamma_unscaled", "(dy * xhat) -> (dy * xhat / rstd)",
         "dgamma is the sum of dy * (x - mean), without rstd; gamma multiplies xhat in the forward pass."),
        ("gamma_in_dgamma", "(dy * xhat) -> (dy * (gain + gamma) * xhat)",
         "dgamma contains the gain; it is the sum of dy * xhat, with the original dy."),
        ("sum_of_features", "rows = tuple(range(x.ndim - 1)) -> rows = -1",
         "dgamma and dbeta are summed over the features; each feature has its own, summed over all tokens."),
        ("first_axis", "rows = tuple(range(x.ndim - 1)) -> rows = 0",
         "dgamma and dbeta are summed over axis 0 alone; sum over every axis but the last.",
         "flagos-ai/FlagGems/issues/5392"),
        ("mean_of_rows", ("xhat).sum -> xhat).mean", "dy.sum -> dy.mean"),
         "dgamma and dbeta are averaged over the tokens; every token contributes, so they are sums."),
        ("mean_of_sequence", ("xhat).sum(rows) -> xhat).sum(rows) / length",
                              "dy.sum(rows) -> dy.sum(rows) / length",
                              "rows = -> length = x.shape[-2] if x.ndim > 1 else 1; rows ="),
         "dgamma and dbeta are averaged over the sequence, axis -2; every token contributes, on whatever device it is, "
         "so they are sums.", "EleutherAI/gpt-neox/pull/1259"),
        ("swapped", "dgamma, dbeta = -> dbeta, dgamma =",
         "dgamma and dbeta are swapped; the order is dx, dgamma, dbeta.", "Oneflow-Inc/oneflow/pull/6149"),
        ("no_eps", "+ eps ->", "eps is not used in rstd: it is 1 / sqrt(var + eps)."),
        DDOF1,
        ("float16", "a.astype(np.promote_types(a.dtype, np.float32)) -> a",
         "float16 overflows in the squares; compute in float32, and give the results the dtype of the inputs."),
    ],
)
def layer_norm_backward(dy, x, gamma, eps, *, gain=0):
    dtype = x.dtype
    dy, x, gamma = (a.astype(np.promote_types(a.dtype, np.float32)) for a in (dy, x, gamma))
    rstd = 1 / np.sqrt(x.var(-1, keepdims=True) + eps)
    xhat = (x - x.mean(-1, keepdims=True)) * rstd
    dxhat = dy * (gain + gamma)
    shift = dxhat.mean(-1, keepdims=True)
    stretch = xhat * (dxhat * xhat).mean(-1, keepdims=True)
    dx = rstd * (dxhat - shift - stretch)
    rows = tuple(range(x.ndim - 1))
    dgamma, dbeta = (dy * xhat).sum(rows), dy.sum(rows)
    return dx.astype(dtype), dgamma.astype(dtype), dbeta.astype(dtype)
