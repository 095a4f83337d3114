import numpy as np

from subnorm_lab.checks.shared import case, drawn, exercise
from subnorm_lab.checks.speech import speech


def inputs(rng, tokens, width, scale=1.5):
    """Scores large enough that the weights differ a lot, and values far from mean 0."""
    q, k = (rng.normal(0, scale, (tokens, width)) for _ in range(2))
    return q, k, rng.normal(1, 1, (tokens, width))


def later_change_nothing(y, q, k, v):
    return np.allclose(y[:2], head.reference(q[:2], k[:2], v[:2]))


@exercise(
    number=2, level=3, minutes=18, chapter="01a-attention-in-twenty-lines",
    objective="write a causal attention head, and say what a forgotten mask does to a trained model",
    speaks=speech, cases=drawn(inputs,
        case("5 tokens, 3 features", 5, 3),
        case("4 tokens, 4 features", 4, 4),
        case("3 tokens, 8 features", 3, 8, scale=1),
        case("one token, 4 features", 1, 4),
        case("6 tokens with scores in the thousands", 6, 4, scale=60, edge=True),
    ),
    facts=[
        ("the first token sees itself alone, so its value comes out", lambda y, q, k, v: np.allclose(y[0], v[0])),
        ("no entry is outside the values of its feature",
         lambda y, q, k, v: np.all(y <= v.max(0) + 1e-9) and np.all(y >= v.min(0) - 1e-9)),
        ("the first two tokens do not depend on later ones", later_change_nothing),
    ],
    mistakes=[
        ("no_mask", "np.where(sees, scores, -np.inf) -> scores",
         "there is no causal mask: each token sees later ones, too; it may see itself and earlier ones only.",
         "meta-pytorch/torchtune/issues/959"),
        ("mask_upside_down", "dtype=bool) -> dtype=bool).T",
         "each token sees itself and later tokens; it may see itself and earlier ones."),
        ("sees_next", "np.tri(len(q), -> np.tri(len(q), k=1,",
         "each token also sees the next one; it may see itself and earlier ones only."),
        ("not_itself", "np.tri(len(q), -> np.tri(len(q), k=-1,",
         "no token sees itself, so the first one sees nothing, and its result is nan; keep the diagonal."),
        ("zero_mask", "-np.inf -> 0.0",
         "hidden scores become 0, and the softmax still gives those tokens weight; they must become minus infinity.",
         "georg-wolflein/good-features/pull/1"),
        ("mask_after_softmax", ("np.where(sees, scores, -np.inf) -> scores", "weights @ v -> (weights * sees) @ v"),
         "you mask after the softmax, so the weights of a token no longer add up to 1; mask the scores.",
         "huggingface/pytorch-image-models/pull/2236"),
        ("over_queries", "weights.sum(-1, -> weights.sum(0,",
         "the softmax runs over the queries; it must run over the keys, axis -1: a query's weights add up to 1.",
         "labmlai/annotated_deep_learning_paper_implementations/issues/146"),
        ("no_scale", "/ np.sqrt(q.shape[-1]) ->",
         "the scores are not divided by the root of the number of features.", "PAIR-code/tiny-transformers/issues/71"),
        ("scale_without_root", "np.sqrt(q.shape[-1]) -> q.shape[-1]",
         "the scores are divided by the number of features; divide by its root."),
        ("scale_multiplied", "/ np.sqrt -> * np.sqrt",
         "the scores are multiplied by the root of the number of features; divide by it.",
         "esceptico/perceiver-io/issues/9"),
        ("keys_by_queries", "q @ k.T -> k @ q.T",
         "each row of your scores belongs to a key; it must belong to a query."),
        ("keys_for_values", "weights @ v -> weights @ k", "the weights mix the keys; they must mix the values, v."),
        ("no_softmax", "weights = np.exp(scores) -> weights = np.where(sees, q @ k.T / np.sqrt(q.shape[-1]), 0.0); "
                       "return weights @ v",
         "the scores themselves are the weights; take their softmax first."),
        ("overflow", "scores - scores.max(-1, keepdims=True) -> scores",
         "exp overflows for large scores, and the result is nan; subtract each row's largest score first."),
    ],
)
def head(q, k, v):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    sees = np.tri(len(q), dtype=bool)
    scores = np.where(sees, scores, -np.inf)
    scores = scores - scores.max(-1, keepdims=True)
    weights = np.exp(scores)
    weights = weights / weights.sum(-1, keepdims=True)
    return weights @ v
