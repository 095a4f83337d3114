import numpy as np

from subnorm_lab.checks.ex04 import ITSELF, SAME, SKIPS_OF_A_BLOCK, D, branch, silent, silent_is_identity, stream
from subnorm_lab.checks.shared import Sublayer, case, drawn, exercise
from subnorm_lab.checks.speech import speech


def inputs(rng, tokens, zeros=False, same=False):
    if same:
        return stream(rng, tokens), SAME, SAME, SAME, np.ones((2, D))
    branches = (silent(), silent()) if zeros else (branch(rng, "tanh"), branch(rng, "relu"))
    gains = rng.normal(1, 0.3, (2, D)) * np.array([[2.0], [0.7]])
    return stream(rng, tokens), *branches, Sublayer("peak"), gains


@exercise(
    number=4, level=2, minutes=12, chapter="06-the-block-assembled",
    objective="carry a residual stream through a block whose norms share a formula, but not a gain",
    speaks=speech, cases=drawn(inputs,
        case("3 tokens, 6 features", 3),
        case("6 tokens, 6 features", 6),
        case("one token, 6 features", 1),
        case("sublayers that output zeros", 3, zeros=True),
        case(f"sublayers and a norm {ITSELF}", 3, same=True, edge=True),
    ),
    facts=[("if both sublayers output zeros, x comes out", silent_is_identity)],
    mistakes=[
        ("post_ln", lambda x, a, f, norm, gains: norm((h := norm(x + a(x), gains[0])) + f(h), gains[1]),
         "this is the Post-LN block, with the norms on the sums; this model was trained in Pre-LN.",
         "karpathy/nanoGPT/issues/278"),
        ("normed_skip", lambda x, a, f, norm, gains: (h := norm((h := norm(x, gains[0])) + a(h), gains[1])) + f(h),
         "both skip paths start after a norm; they must carry the raw stream, and only the sublayers read the norms.",
         "Howuhh/faster-trajectory-transformer/issues/3"),
        ("norm_after_branch", lambda x, a, f, norm, gains: (h := x + norm(a(x), gains[0])) + norm(f(h), gains[1]),
         "the norms act on the outputs of the sublayers; in Pre-LN they act on their inputs.",
         "harvardnlp/annotated-transformer/issues/110"),
        *SKIPS_OF_A_BLOCK,
        ("parallel", "norm(h, -> norm(x,",
         "both sublayers read the block's input; feed_forward must read the stream after attention."),
        ("one_gain", "gains[1] -> gains[0]", "both norms use gains[0]; the second has its own gain, gains[1].",
         "allenai/OLMo/issues/222"),
        ("gains_swapped", ("gains[1] -> gains[-2]", "gains[0] -> gains[1]"),
         "the gains are swapped: gains[0] belongs to attention, gains[1] to feed_forward."),
        ("no_gains", (", gains[0] ->", ", gains[1] ->"),
         "the gains are not used; write norm(x, gains[0]) and norm(x, gains[1])."),
        ("feed_forward_first", ("+ feed_forward( -> + attention(", "x + attention( -> x + feed_forward("),
         "feed_forward comes before attention; a block begins with attention.", "allenai/allennlp/issues/3334"),
        ("second_norm_missing", "norm(h, gains[1]) -> h",
         "feed_forward reads the raw stream; it must read norm(x, gains[1])."),
        ("no_norms", ("norm(x, gains[0]) -> x", "norm(h, gains[1]) -> h"),
         "the norms are not used; each sublayer must read the stream through its norm.",
         "iCog-Labs-Dev/PC-Transformers/issues/46"),
    ],
)
def story_block(x, attention, feed_forward, norm, gains):
    h = x + attention(norm(x, gains[0]))
    return h + feed_forward(norm(h, gains[1]))
