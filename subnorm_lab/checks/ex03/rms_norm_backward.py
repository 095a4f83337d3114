import numpy as np

from subnorm_lab.checks.ex03 import gains, short_rows
from subnorm_lab.checks.shared import ONE_TOKEN, case, drawn, exercise, of_shapes


def inputs(rng, shape, scale=1, eps=1e-5):
    return rng.normal(0.5, 1, shape), short_rows(rng, shape, scale), gains(rng, shape[-1]), eps


def is_at_right_angles(y, dy, x, gamma, eps):
    sizes = np.linalg.norm(y[0], axis=-1) * np.linalg.norm(x, axis=-1)
    return (np.abs((y[0] * x).sum(-1)) <= 1e-3 * sizes).all() or eps > 1e-3 * (x * x).mean()


def has_dx(y, dy, x, gamma, eps):
    wanted = rms_norm_backward.reference(dy, x, gamma, eps)[0]
    return np.shape(y[0]) == wanted.shape and np.allclose(y[0], wanted, 1e-4, 1e-5)


def has_dgamma(y, dy, x, gamma, eps):
    return np.shape(y[1]) == gamma.shape and np.allclose(y[1], rms_norm_backward.reference(dy, x, gamma, eps)[1])


@exercise(
    number=7, level=3, minutes=20, chapter="04-rmsnorm",
    objective="derive the backward pass, and see which directions of the gradient the norm blocks",
    cases=drawn(inputs,
        *of_shapes((3, 8), (6, 6), (2, 5, 8)),
        case("rows of size 2e-3, where eps matters", (3, 8), scale=2e-3),
        case("a (3, 8) batch and eps = 0.5", (3, 8), eps=0.5),
        case("one token, (8,)", (8,)),
        ONE_TOKEN,
    ),
    facts=[
        ("dx is orthogonal to x, up to eps", is_at_right_angles),
        ("dx is right", has_dx),
        ("dgamma is right", has_dgamma),
    ],
    mistakes=[
        ("root_constant", "- stretch ->",
         "dx has only one term, as if the root did not depend on x; every feature changes the mean square."),
        ("layer_norm", "- stretch -> - stretch - dxhat.mean(-1, keepdims=True)",
         "dx subtracts mean(dxhat): that is LayerNorm's term, from subtracting the mean. Leave it out."),
        ("no_gamma", "dxhat = dy * gamma -> dxhat = dy",
         "gamma is missing from dx: the gradient passes the gain first, dxhat = dy * gamma.",
         "karpathy/llm.c/pull/763"),
        ("gamma_twice", "- stretch -> - gamma * stretch",
         "the second term of dx has gamma twice: dxhat already contains it.", "NVIDIA/Megatron-LM/pull/6859"),
        ("sum", "xhat).mean( -> xhat).sum(",
         "the second term of dx has the sum of dxhat * xhat; the formula has its mean."),
        ("sign", "- stretch -> + stretch",
         "the second term of dx is added; subtract it, because a larger x makes a larger root."),
        ("x_for_xhat", "dxhat * xhat -> dxhat * x", "the mean in dx is that of dxhat * x; take that of dxhat * xhat."),
        ("no_rstd", "dx = rstd * -> dx =", "dx lacks the factor 1 / sqrt(mean(x²) + eps) in front."),
        ("keepdims", "xhat).mean(-1, keepdims=True) -> xhat).mean(-1)",
         "without keepdims=True the mean in dx loses its last axis, and each row gets the means of other rows.",
         "BobMcDear/attorch/issues/17"),
        ("no_eps", "+ eps ->", "eps is not used; the forward pass divides by sqrt(mean(x²) + eps)."),
        ("dgamma_not_summed", ".sum(rows) ->",
         "dgamma has a value for every token; all tokens share gamma, so sum over every axis but the last."),
        ("dgamma_first_axis", ".sum(rows) -> .sum(rows[:1])",
         "dgamma is summed over the first axis only; sum over every axis but the last."),
        ("dgamma_mean", ".sum(rows) -> .mean(rows)",
         "dgamma is a mean over the tokens; gradients of a shared parameter add up."),
        ("dgamma_mean_of_sequence", ".sum(rows) -> .sum(rows) / (x.shape[-2] if x.ndim > 1 else 1)",
         "dgamma is averaged over the sequence, axis -2; every token contributes, on whatever device it is, so it is a "
         "sum.", "EleutherAI/gpt-neox/pull/1259"),
        ("dgamma_of_x", "dy * xhat -> dy * x", "dgamma is the sum of dy * x; gamma multiplies xhat, so sum dy * xhat."),
        ("dgamma_of_dx", "dy * xhat -> dx * xhat",
         "dgamma is the sum of dx * xhat: dx overwrote dy. Sum dy * xhat.", "unslothai/unsloth/pull/4550"),
        ("dgamma_of_dxhat", "dy * xhat -> dxhat * xhat",
         "dgamma is the sum of dxhat * xhat, which contains the gain; sum dy * xhat."),
    ],
)
def rms_norm_backward(dy, x, gamma, eps):
    rstd = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    xhat = x * rstd
    dxhat = dy * gamma
    stretch = xhat * (dxhat * xhat).mean(-1, keepdims=True)
    dx = rstd * (dxhat - stretch)
    rows = tuple(range(x.ndim - 1))
    return dx, (dy * xhat).sum(rows)
