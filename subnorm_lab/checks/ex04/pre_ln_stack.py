from subnorm_lab.checks.ex04 import ITSELF, SAME, branch, peaks_at_one, squash, stream
from subnorm_lab.checks.shared import Case, Sublayer, exercise


def cases(rng):
    def branches(kinds):
        return [branch(rng, kind) for kind in kinds.split()]

    return [
        Case("three sublayers, a (3, 6) batch", (stream(rng, 3), branches("tanh relu linear"), Sublayer("peak"))),
        Case("four sublayers, a (2, 4, 6) batch", (stream(rng, 2, 4), branches("relu tanh linear relu"), squash(rng))),
        Case("one sublayer, one token of shape (6,)", (stream(rng), branches("linear"), Sublayer("peak"))),
        Case("two sublayers, a (1, 6) batch", (stream(rng, 1), branches("tanh relu"), squash(rng)), edge=True),
        Case(f"sublayers and a norm {ITSELF}", (stream(rng, 3), 2 * [SAME], SAME), edge=True),
    ]


@exercise(
    number=4, level=2, minutes=13, chapter="05-pre-ln-or-post-ln",
    objective="build a Pre-LN stack, and say why it ends in one more norm",
    cases=cases,
    facts=[("the rows of the result are normalised", peaks_at_one)],
    mistakes=[
        ("no_final_norm", "return norm(h) -> return h",
         "the final norm is missing: nothing on the skip path was normalised, so the stack needs one more norm.",
         "marian-nmt/marian-dev/pull/719"),
        ("final_norm_first", ("h = x -> h = norm(x)", "return norm(h) -> return h"),
         "the final norm is at the bottom of the stack; it belongs after the last sublayer."),
        ("norm_in_loop", ("return norm(h) -> return h", "h + sublayer(norm(h)) -> norm(h + sublayer(norm(h)))"),
         "the final norm is inside the loop, after every sublayer; it comes once, after the last one."),
        ("post_ln", "h + sublayer(norm(h)) -> norm(h + sublayer(h))",
         "this is a Post-LN stack: each sum is normalised, and the sublayers read the raw stream."),
        ("normed_skip", "h + sublayer(norm(h)) -> (h := norm(h)) + sublayer(h)",
         "the skip paths carry norm(x); they must carry x itself, and only the sublayers read norm(x).",
         "tracel-ai/burn/issues/1056"),
        ("only_the_last", "in sublayers -> in sublayers[-1:]",
         "every step starts from the stack's input, so only the last one counts; the stream must go through all.",
         "Atcold/NYU-DLSP20/issues/270"),
        ("one_sublayer", "in sublayers -> in sublayers[:1] * len(sublayers)",
         "the first sublayer is used at every step; each step has its own sublayer.", "espnet/espnet/issues/1278"),
        ("last_left_out", "in sublayers -> in sublayers[:-1]",
         "the last sublayer adds nothing to the stream: go through all of them, and add the output of each.",
         "LukasHedegaard/continual-inference/pull/70"),
        ("from_the_bottom", "h + -> x +",
         "every sum starts from the stack's input; it must start from the current stream."),
        ("side_by_side", "sublayer(norm(h)) -> sublayer(norm(x))",
         "all sublayers read the stack's input; each must read the current stream."),
        ("no_residual", "h + ->", "nothing is added: the sublayers' outputs replace the stream."),
        ("no_branch_norms", "sublayer(norm(h)) -> sublayer(h)",
         "the sublayers read the raw stream; each must read norm(x), in addition to the final norm."),
    ],
)
def pre_ln_stack(x, sublayers, norm):
    h = x
    for sublayer in sublayers:
        h = h + sublayer(norm(h))
    return norm(h)
