from subnorm_lab.checks.ex04 import ITSELF, SAME, SKIPS_OF_A_BLOCK, branch, silent, silent_is_identity, squash, stream
from subnorm_lab.checks.shared import Sublayer, case, drawn, exercise


def inputs(rng, *shape, zeros=False, order=1, same=False):
    if same:
        return stream(rng, *shape), SAME, SAME, SAME, SAME
    branches = branch(rng, "tanh"), branch(rng, "relu")
    norms = [Sublayer("peak"), squash(rng)][::order]
    return stream(rng, *shape), *((silent(), silent()) if zeros else branches), *norms


@exercise(
    number=3, level=2, minutes=12, chapter="06-the-block-assembled",
    objective="write a Pre-LN transformer block in two lines",
    cases=drawn(inputs,
        case("a (3, 6) batch", 3),
        case("a (2, 4, 6) batch of sequences", 2, 4, order=-1),
        case("one token, (6,)"),
        case("sublayers that output zeros", 3, zeros=True),
        case("a batch of one token, (1, 6)", 1, edge=True),
        case(f"sublayers and norms {ITSELF}", 3, same=True, edge=True),
    ),
    facts=[("if both sublayers output zeros, x comes out", silent_is_identity)],
    mistakes=[
        ("post_ln", lambda x, a, f, norm1, norm2: norm2((h := norm1(x + a(x))) + f(h)),
         "this is the Post-LN block, with the norms on the sums; in Pre-LN each comes before its sublayer.",
         "karpathy/nanoGPT/issues/278"),
        ("normed_skip", lambda x, a, f, norm1, norm2: (h := norm2((h := norm1(x)) + a(h))) + f(h),
         "both skip paths start after a norm; they must carry the raw stream, and only the sublayers read norm(x).",
         "Howuhh/faster-trajectory-transformer/issues/3"),
        ("second_skip_normed", lambda x, a, f, norm1, norm2: (h := norm2(x + a(norm1(x)))) + f(h),
         "the second skip path starts after norm2; it must carry the raw stream, and only feed_forward reads norm2's "
         "output.", "Project-MONAI/MONAI/pull/9011"),
        *SKIPS_OF_A_BLOCK,
        ("parallel", "norm2(h) -> norm2(x)",
         "both sublayers read the block's input; feed_forward must read the stream after attention."),
        ("norm1_twice", "norm2(h) -> norm1(h)",
         "norm1 serves both sublayers, and norm2 is not used; each sublayer has its own norm.",
         "allenai/OLMo/issues/222"),
        ("norms_swapped", ("norm2(h) -> norm1(h)", "norm1(x) -> norm2(x)"),
         "norm2 comes before attention, and norm1 before feed_forward; swap them."),
        ("feed_forward_first", ("+ feed_forward( -> + attention(", "x + attention( -> x + feed_forward("),
         "feed_forward comes before attention; a block begins with attention.", "allenai/allennlp/issues/3334"),
        ("second_norm_missing", "norm2(h) -> h",
         "norm2 is not used: feed_forward reads the raw stream. Each sublayer reads through its own norm."),
        ("no_norms", ("norm1(x) -> x", "norm2(h) -> h"),
         "the norms are not used; each sublayer reads through its own norm.",
         "iCog-Labs-Dev/PC-Transformers/issues/46"),
    ],
)
def pre_ln_block(x, attention, feed_forward, norm1, norm2):
    h = x + attention(norm1(x))
    return h + feed_forward(norm2(h))
