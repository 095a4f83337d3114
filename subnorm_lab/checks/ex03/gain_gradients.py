import numpy as np

from subnorm_lab.checks.shared import FIXED_EPS, case, drawn, exercise


def inputs(rng, *tokens, d=4, scale=1.0, eps=1e-5):
    xs = [rng.normal(0, 1, (n, d)) * np.array([[1.0], [3.0], [0.5], [2.0], [0.3]])[:n] * scale for n in tokens]
    return [rng.normal(0.3, 1, x.shape) for x in xs], xs, eps


def is_right_as(change):
    """Whether each result, changed, is what one process with all tokens would have."""
    return lambda y, dys, xs, eps: np.allclose(
        [change(one) for one in y], [change(one) for one in gain_gradients.reference(dys, xs, eps)], rtol=1e-3
    )


@exercise(
    number=9, level=2, minutes=10, chapter="10-norms-at-work",
    objective="give every copy of a gain the gradient of all tokens, where each process holds some of them",
    cases=drawn(inputs,
        case("two processes with 3 tokens each", 3, 3),
        case("two processes with 5 and 2 tokens", 5, 2),
        case("three processes with 1, 3 and 2 tokens", 1, 3, 2),
        case("two processes with 4 tokens of 4 features each", 4, 4),
        case("tokens of size 2e-3, where eps matters", 3, 4, scale=2e-3, eps=4e-6),
        case("two processes with 2 and 3 tokens, and eps = 0.5", 2, 3, eps=0.5),
        case("a single process with 3 tokens", 3, edge=True),
        case("a process with 4 tokens, and one with none", 4, 0, edge=True),
    ),
    facts=[
        ("every process holds the same gradient", lambda y, dys, xs, eps: np.allclose(y, y[0])),
        ("the gradients point where one process's does",
         is_right_as(lambda g: np.asarray(g) / np.linalg.norm(g))),
        ("the gradients have the size of one process's", is_right_as(np.linalg.norm)),
    ],
    mistakes=[
        ("not_summed", "total for _ in own -> g * 1 for g in own",
         "each process keeps the gradient of its own tokens, so the copies of the gain drift apart; add them up.",
         "NVIDIA/Megatron-LM/issues/1446"),
        ("averaged", "total for -> total / len(own) for",
         "the gradients are averaged over the processes; the loss is one sum over all tokens, so add them up.",
         "EleutherAI/gpt-neox/pull/1259"),
        ("summed_twice", "total for -> total * len(own) for",
         "the gradients are added up twice, so each is larger by the number of processes; one sum is enough."),
        ("first_alone", "sum(own) -> own[0]", "all processes get the gradient of the first; add up those of all."),
        ("mean_over_tokens", ".sum(0) -> .mean(0)",
         "each process takes the mean over its tokens; a gain's gradient is the sum over them."),
        ("mean_over_all", "total for _ -> total / sum(len(x) for x in xs) for _",
         "the sum is divided by the number of all tokens; dy has that factor in it already, if the loss is a mean."),
        ("no_norm", "dy * xhat -> dy * x", "dy is multiplied by x; the gain multiplies xhat, the normalised x."),
        ("shift", "dy * xhat -> dy",
         "dy alone is added up, which is the gradient of a shift; a gain's is the sum of dy * xhat."),
        ("xhat_alone", "dy * xhat -> xhat", "xhat alone is added up; the gradient is the sum of dy * xhat."),
        ("divided", "dy * xhat -> dy / xhat", "dy is divided by xhat; y is gamma * xhat, so multiply."),
        ("axis0", ".mean(-1, -> .mean(0,",
         "the mean square is taken over the tokens; RMSNorm takes it over the features of each token."),
        ("mean_subtracted", "(x * x).mean(-1, keepdims=True) -> x.var(-1, keepdims=True)",
         "xhat is divided by the root of the variance, which subtracts the mean; RMSNorm uses the mean of x² itself."),
        ("eps_outside", "np.sqrt((x * x).mean(-1, keepdims=True) + eps) -> "
                        "(np.sqrt((x * x).mean(-1, keepdims=True)) + eps)",
         "eps is added outside the root, sqrt(mean) + eps; the definition is sqrt(mean + eps)."),
        ("no_eps", "+ eps ->", "the given eps is not used; the definition divides by sqrt(mean(x²) + eps)."),
        FIXED_EPS,
    ],
)
def gain_gradients(dys, xs, eps):
    own = []
    for dy, x in zip(dys, xs, strict=True):
        xhat = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
        own.append((dy * xhat).sum(0))
    total = sum(own)
    return [total for _ in own]
