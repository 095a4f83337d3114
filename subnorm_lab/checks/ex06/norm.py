import numpy as np

from subnorm_lab.checks import ex03
from subnorm_lab.checks.shared import FIXED_EPS, NO_GAMMA, exercise
from subnorm_lab.checks.speech import speech


def cases(rng):
    return ex03.norm_cases(arrays=1)(rng)[:-1]  # the last is in half precision, which this sheet does not ask for


@exercise(
    number=1, level=1, minutes=8, chapter="04-rmsnorm",
    objective="write RMSNorm with its gain, and hear what a model says without it",
    cases=cases, speaks=speech,
    facts=[
        ("y / gamma has mean square s / (s + eps) in every row, where s is the mean square of x", ex03.has_its_size),
    ],
    mistakes=[
        NO_GAMMA, ex03.ONE_PLUS_GAMMA, (*ex03.EPS_OUTSIDE, "allenai/OLMo/issues/281"), ex03.NO_EPS, FIXED_EPS,
        (*ex03.CENTRED, "ggml-org/llama.cpp/issues/173"),
        ("axis0", "-1 -> 0",
         "the mean square is taken over the tokens, axis 0; take it over the features of each token, axis -1."),
        ("all_axes", "-1 -> None", "all tokens share one mean square; each token has its own, over axis -1.",
         "bkitano/llama-from-scratch/issues/4"),
        ex03.SUM, ex03.NO_ROOT,
        ("multiplied", "x / -> x *",
         "x is multiplied by the root; RMSNorm divides x by it.", "mosaicml/llm-foundry/issues/371"),
        ex03.KEEPDIMS,
    ],
)
def norm(x, gamma, eps):
    mean = (x * x).mean(-1, keepdims=True)
    return gamma * (x / np.sqrt(mean + eps))
