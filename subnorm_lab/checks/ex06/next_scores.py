import numpy as np

from subnorm_lab.checks.ex04 import D, stream
from subnorm_lab.checks.shared import Sublayer, case, drawn, exercise
from subnorm_lab.checks.speech import speech


def inputs(rng, tokens, vocabulary):
    gamma = rng.uniform(0.5, 2, D)
    return stream(rng, tokens), Sublayer("peak"), gamma, rng.normal(0.3, 1, (vocabulary, D))


@exercise(
    number=5, level=2, minutes=10, chapter="05-pre-ln-or-post-ln",
    objective="end a Pre-LN stack with its final norm, and read the scores of the next token",
    speaks=speech, cases=drawn(inputs,
        case("4 tokens, a vocabulary of 9", 4, 9),
        case("5 tokens, a vocabulary of 6, as many as features", 5, 6),
        case("2 tokens, a vocabulary of 3", 2, 3),
        case("one token, a vocabulary of 5", 1, 5),
    ),
    mistakes=[
        ("no_final_norm", "norm(x[-1], gamma) -> x[-1]",
         "the final norm is missing: you multiply the raw stream by the embedding.", "awslabs/keys_values/issues/139"),
        ("no_gain", ", gamma) -> )", "the final norm is called without its gain; write norm(x, gamma)."),
        ("gain_alone", "norm(x[-1], gamma) -> (gamma * x[-1])",
         "the stream is multiplied by gamma, but not normalised; write norm(x, gamma)."),
        ("norm_twice", "norm(x[-1], gamma) -> norm(norm(x[-1], gamma), gamma)",
         "the final norm is called twice, so the gain acts twice; call it once."),
        ("first_token", "x[-1] -> x[0]", "these are the scores after the first token; use the last one, x[-1].",
         "vllm-project/tpu-inference/pull/125"),
        ("mean_token", "x[-1] -> x.mean(0)", "you average the tokens first; use the last one, x[-1]."),
        ("all_tokens", "embedding @ norm(x[-1], gamma) -> norm(x, gamma) @ embedding.T",
         "there is a row of scores for each token; return those of the last token alone."),
        ("matrix_normed", "embedding @ norm(x[-1], gamma) -> norm(embedding, gamma) @ x[-1]",
         "the norm acts on the embedding; it must act on the stream."),
        ("norm_on_scores", "embedding @ norm(x[-1], gamma) -> norm(embedding @ (gamma * x[-1]))",
         "the norm acts on the scores; it must act on the stream, before the product."),
        ("not_transposed", "embedding @ norm(x[-1], gamma) -> norm(x[-1], gamma) @ embedding",
         "the embedding is used the wrong way round: a token's score is the product of its row with the stream."),
        ("softmax", lambda x, norm, gamma, m: (e := np.exp(m @ norm(x[-1], gamma))) / e.sum(),
         "these are probabilities, after the softmax; return the scores."),
        ("token", lambda x, norm, gamma, m: np.argmax(m @ norm(x[-1], gamma)),
         "this is the token with the largest score; return the scores of all tokens."),
    ],
)
def next_scores(x, norm, gamma, embedding):
    return embedding @ norm(x[-1], gamma)
