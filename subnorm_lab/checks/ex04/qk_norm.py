import numpy as np

from subnorm_lab.checks.ex03 import NO_EPS
from subnorm_lab.checks.shared import FIXED_EPS, case, drawn, exercise


def inputs(rng, queries, keys, heads, width, batch=(), scale=1, eps=1e-5):
    """The heads of a token are of different sizes, so that it shows which of them share a norm."""
    sizes = np.repeat(rng.permutation(np.geomspace(0.4, 2.5, heads)), width) * scale
    q, k = (rng.normal(0.4, 1, (*batch, n, heads * width)) * sizes for n in (queries, keys))
    return q, k, heads, rng.normal(1, 0.3, width), rng.normal(1.5, 0.3, width), eps


def has_its_shape(y, q, k, heads, gamma_q, gamma_k, eps, *, axes=-3):
    return np.moveaxis(y, axes, -3).shape == (*q.shape[:-2], heads, q.shape[-2], k.shape[-2])


@exercise(
    number=8, level=2, minutes=15, chapter="06a-attention-sublayer",
    objective="put a norm on queries and keys, head by head, and say what bounds the scores then",
    cases=drawn(inputs,
        case("5 tokens, 2 heads of 3 features", 5, 5, 2, 3),
        case("3 queries and 5 keys, 2 heads of 4 features", 3, 5, 2, 4),
        case("4 tokens, 4 heads of 4 features", 4, 4, 4, 4),
        case("a batch of 2, 3 tokens, 3 heads of 2 features", 3, 3, 3, 2, batch=(2,)),
        case("rows of size 2e-3, where eps matters", 4, 4, 2, 3, scale=2e-3, eps=4e-6),
        case("3 tokens, 2 heads of 4 features, and eps = 0.5", 3, 3, 2, 4, eps=0.5),
        case("a single head of 5 features", 3, 4, 1, 5, edge=True),
        case("one query and 3 keys, 2 heads of 3 features", 1, 3, 2, 3, edge=True),
    ),
    facts=[
        ("there is one score for each head, query and key", has_its_shape),
        ("no score is above sqrt(d_head) times the largest gamma_q * gamma_k",
         lambda y, q, k, heads, g, h, eps: np.abs(y).max() <= np.sqrt(len(g)) * np.abs(g * h).max()),
    ],
    parameter="axes", variants=[
        ("scores of shape (..., heads, n, m)", -3),
        ("scores of shape (..., n, heads, m)", -2, "`(..., heads, n, m)` -> `(..., n, heads, m)`"),
    ],
    mistakes=[
        ("no_norm", "q, k = norm(q, gamma_q), norm(k, gamma_k) ->",
         "these are the plain scores: neither queries nor keys are normalised.", "Cerebras/modelzoo/pull/85"),
        ("keys_only", "norm(q, gamma_q) -> q", "only the keys are normalised; normalise the queries, too.",
         "kyegomez/MegaVIT/issues/17"),
        ("queries_only", "norm(k, gamma_k) -> k", "only the queries are normalised; normalise the keys, too."),
        ("all_heads", ".mean(-1, -> .mean((-3, -1),",
         "one mean square is taken over all heads of a token; each head has its own.", "vllm-project/vllm/pull/16311"),
        ("over_heads", ".mean(-1, -> .mean(-3,",
         "the mean square is taken over the heads; take it over the features of each head."),
        ("over_tokens", ".mean(-1, -> .mean(-2,",
         "the mean square is taken over the tokens; take it over the features of each head."),
        ("one_gain", "gamma_k) -> gamma_q)", "the keys get the gain of the queries; give them their own, gamma_k.",
         "Emmi-AI/noether/pull/214"),
        ("no_gain", "gamma * ->", "neither gain is used; gamma_q and gamma_k multiply each feature.",
         "lucidrains/x-transformers/issues/352"),
        ("one_plus_gain", "gamma * -> (1 + gamma) *", "you multiply by 1 + gamma; here gamma itself is the gain."),
        ("length", ".mean( -> .sum(",
         "queries and keys are divided by their length; RMSNorm divides by length / sqrt(d_head)."),
        ("layer_norm", ("= norm(q, -> = norm(q - q.mean(-1, keepdims=True),",
                        ", norm(k, -> , norm(k - k.mean(-1, keepdims=True),"),
         "the mean is subtracted first: that is LayerNorm without beta; RMSNorm uses x as it is."),
        ("no_scale", "/ np.sqrt(q.shape[-1]) ->",
         "the scores are not divided by sqrt(d_head); after its norm a head has length sqrt(d_head), so they grow.",
         "microsoft/MInference/issues/69"),
        ("scale_of_width", "np.sqrt(q.shape[-1]) -> np.sqrt(q.shape[-1] * heads)",
         "the scores are divided by sqrt(d); each is a sum over the d_head features of one head."),
        ("cosine", "np.sqrt(q.shape[-1]) -> q.shape[-1]",
         "the scores are divided by d_head, which makes them cosines; divide by its root."),
        ("no_transpose", "x.reshape(*x.shape[:-1], heads, -1).swapaxes(-3, -2) -> "
                         "x.reshape(*x.shape[:-2], heads, x.shape[-2], -1)",
         "reshaped straight to (heads, tokens, d_head), a head gets other tokens' features; reshape, then swap axes.",
         "reczoo/FuxiCTR/issues/30"),
        ("every_other_feature", "heads, -1).swapaxes(-3, -2) -> -1, heads).swapaxes(-3, -2).swapaxes(-3, -1)",
         "a head gets features that are `heads` apart; its features are side by side."),
        ("heads_compared", ".swapaxes(-3, -2) ->",
         "the axes of tokens and heads are not swapped, so each token's heads are compared with each other."),
        ("keys_by_queries", "q @ k.swapaxes(-2, -1) -> k @ q.swapaxes(-2, -1)",
         "each row of your scores belongs to a key; it must belong to a query."),
        ("softmax", "moveaxis(scores -> moveaxis((e := np.exp(scores)) / e.sum(-1, keepdims=True)",
         "these are the weights, after the softmax; return the scores, before it."),
        ("eps_outside", "np.sqrt((x * x).mean(-1, keepdims=True) + eps) -> "
                        "(np.sqrt((x * x).mean(-1, keepdims=True)) + eps)",
         "eps is added outside the root, sqrt(mean) + eps; the definition is sqrt(mean + eps)."),
        NO_EPS,
        (*FIXED_EPS, "Wenyueh/MinivLLM/pull/82"),
    ],
)
def qk_norm(q, k, heads, gamma_q, gamma_k, eps, *, axes=-3):
    def split(x):
        return x.reshape(*x.shape[:-1], heads, -1).swapaxes(-3, -2)

    def norm(x, gamma):
        return gamma * (x / np.sqrt((x * x).mean(-1, keepdims=True) + eps))

    q, k = split(q), split(k)  # (..., heads, tokens, d_head)
    q, k = norm(q, gamma_q), norm(k, gamma_k)
    scores = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    return np.moveaxis(scores, -3, axes)
