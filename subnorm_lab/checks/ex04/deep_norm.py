from subnorm_lab.checks.ex04 import ITSELF, SAME, D, branch, peaks_at_one, squash, stream
from subnorm_lab.checks.shared import Case, Sublayer, exercise


def cases(rng):
    def case(kind, norm, blocks, *shape, edge=False):
        name = f"{blocks} blocks and {'one token, (6,)' if not shape else f'a {(*shape, D)} batch'}"
        return Case(name, (stream(rng, *shape), branch(rng, kind), norm, blocks), edge)

    return [
        case("linear", Sublayer("peak"), int(rng.integers(5, 9)), 3),
        case("relu", squash(rng), int(rng.integers(20, 101)), 2, 4),
        case("tanh", squash(rng), int(rng.integers(2, 5))),
        case("tanh", squash(rng), 3, 1, edge=True),
        Case(f"a sublayer and a norm {ITSELF}", (stream(rng, 3), SAME, SAME, 8), edge=True),
    ]


@exercise(
    number=6, level=3, minutes=13, chapter="05a-gradients-by-placement",
    objective="say what DeepNorm changes, and write it",
    cases=cases,
    facts=[("the rows of the result are normalised", peaks_at_one)],
    parameter="sublayers", variants=[
        ("alpha = (2 N) ** 0.25", 2),
        ("alpha = (3 N) ** 0.25", 3,
         "a single stack (an encoder or a decoder) of -> a decoder that reads an encoder, of",
         "each block has two sublayers -> each block has three sublayers",
         "h / 3, 8) -> h / 3, 27)", "array([12.]) -> array([13.])"),
    ],
    mistakes=[
        ("alpha_on_branch", "alpha * x + sublayer(x) -> x + alpha * sublayer(x)",
         "alpha multiplies F(x); it must multiply x, so that the branch is the smaller part of the sum.",
         "labmlai/annotated_deep_learning_paper_implementations/issues/145"),
        ("no_norm", "return norm -> return",
         "the sum is not normalised; DeepNorm is a Post-LN, norm(alpha * x + F(x)).",
         "labmlai/annotated_deep_learning_paper_implementations/issues/145"),
        ("beta_on_branch", "+ sublayer(x) -> + sublayer(x) * (4 * sublayers * blocks) ** -0.25",
         "F(x) is multiplied by beta as well; beta scales weights when they are drawn, and is not in the formula.",
         "dhkim0225/1day_1paper/issues/106"),
        ("post_ln", "alpha * ->", "alpha is missing, or equals 1, which is plain Post-LN."),
        ("square_root", "0.25 -> 0.5", "alpha is a square root; take the fourth root: {sublayers}."),
        ("not_doubled", "sublayers * blocks -> blocks",
         "alpha is the fourth root of N, but each block has several sublayers: {sublayers}."),
        ("alpha_inverted", "0.25 -> -0.25", "your alpha is below 1, with a negative power; here {sublayers}, above 1."),
        ("beta_for_alpha", "(sublayers * blocks) ** 0.25 -> (4 * sublayers * blocks) ** -0.25",
         "x is multiplied by beta, which is below 1; multiply it by {sublayers}."),
        ("decoder_beside_encoder", "sublayers * blocks -> 3 * blocks",
         "alpha is (3 N) ** 0.25, for a decoder with an encoder; here it is a single stack, with {sublayers}."),
        ("pre_ln", "norm(alpha * x + sublayer(x)) -> alpha * x + sublayer(norm(x))",
         "the norm comes before the sublayer; in DeepNorm, as in Post-LN, it acts on the sum."),
        ("norm_before_sum", "norm(alpha * x + sublayer(x)) -> alpha * x + norm(sublayer(x))",
         "the norm acts on the branch, before the sum; it must act on the sum."),
    ],
)
def deep_norm(x, sublayer, norm, blocks, *, sublayers=2):
    alpha = (sublayers * blocks) ** 0.25
    return norm(alpha * x + sublayer(x))
