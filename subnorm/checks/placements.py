"""The exercises on where the norm stands: Pre-LN, Post-LN and their relatives, a stack, and the warm-up beside them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from subnorm import numpy as sn
from subnorm.checks.collect import Case, Sublayer
from subnorm.checks.exercise import Exercise, Mistake

Array = np.ndarray[Any, Any]
F = Callable[[Any], Any]  # a sublayer or a norm
D = 6  # features: few, so that nothing averages out


# What stands for sublayers and norms. Norms are of two kinds, so that no two of them are the same function


def _stream(rng: np.random.Generator, *shape: int) -> Array:
    """Tokens that a norm changes a lot."""
    return rng.normal(0, 3, (*shape, D))


def _branch(rng: np.random.Generator, kind: str) -> Sublayer:
    return Sublayer(kind, rng.normal(0, 1 / np.sqrt(D), (D, D)))


def _peak() -> Sublayer:
    return Sublayer("peak")


def _squash(rng: np.random.Generator) -> Sublayer:
    """A norm too: each feature times a gain of its own, then tanh."""
    return Sublayer("tanh", np.diag(rng.uniform(0.3, 0.8, D)))


def _peaks_at_one(y: Array, *args: Any) -> bool:
    """Whether rows are normalised, where the norm is one that shows it."""
    norms = [arg for arg in args if isinstance(arg, Sublayer)]
    return norms[-1].kind != "peak" or np.allclose(np.abs(y).max(-1), 1)


def _silent_is_identity(y: Array, x: Array, *parts: Any) -> bool:
    """Whether x comes out where the branches put out zeros."""
    branches = [part.weight for part in parts if isinstance(part, Sublayer) and part.kind == "linear"]
    silent = bool(branches) and not any(weight.any() for weight in branches)
    return not silent or np.allclose(y, x)


# One sublayer


def _sublayer_cases(rng: np.random.Generator) -> list[Case]:
    return [
        Case("a (3, 6) batch", (_stream(rng, 3), _branch(rng, "tanh"), _peak())),
        Case("a (2, 4, 6) batch of sequences", (_stream(rng, 2, 4), _branch(rng, "relu"), _squash(rng))),
        Case("one token, (6,)", (_stream(rng), _branch(rng, "tanh"), _peak())),
        Case("a sublayer that puts out zeros", (_stream(rng, 3), Sublayer("linear", np.zeros((D, D))), _squash(rng))),
    ]


pre_ln = Exercise(
    name="pre_ln",
    level=1,
    minutes=8,
    chapter="05-pre-ln-or-post-ln",
    objective="write the Pre-LN formula from memory, and say what the skip path carries in it",
    reference=sn.pre_ln,
    cases=_sublayer_cases,
    mistakes=[
        Mistake(
            "post_ln",
            "this is Post-LN, norm(x + F(x)); Pre-LN normalises only what the sublayer reads, x + F(norm(x)).",
            lambda x, f, norm: norm(x + f(x)),
            "https://github.com/harvardnlp/annotated-transformer/issues/13",
        ),
        Mistake(
            "normed_skip",
            "the skip path carries norm(x); in Pre-LN it carries x itself, and only the sublayer reads norm(x).",
            lambda x, f, norm: (h := norm(x)) + f(h),
            "https://github.com/pytorch/pytorch/issues/61165",
        ),
        Mistake(
            "norm_after_branch",
            "the norm acts on what the sublayer puts out, x + norm(F(x)); in Pre-LN on what the sublayer reads.",
            lambda x, f, norm: x + norm(f(x)),
            "https://github.com/harvardnlp/annotated-transformer/issues/110",
        ),
        Mistake(
            "no_residual",
            "x is not added: this is F(norm(x)), and Pre-LN is x + F(norm(x)).",
            lambda x, f, norm: f(norm(x)),
        ),
        Mistake(
            "doubled_branch",
            "the sublayer's output is added to itself: x was overwritten before the sum. Keep the x that came in.",
            lambda x, f, norm: (h := f(norm(x))) + h,
            "https://github.com/facebookresearch/multimodal/pull/305",
        ),
        Mistake(
            "no_norm",
            "the norm is not used: this is x + F(x), and in Pre-LN the sublayer reads norm(x).",
            lambda x, f, norm: x + f(x),
            "https://github.com/agentdr1/LA_MIL/issues/3",
        ),
        Mistake(
            "norm_on_both",
            "there are two norms, one in front of the sublayer and one on the sum; Pre-LN has only the first.",
            lambda x, f, norm: norm(x + f(norm(x))),
        ),
        Mistake(
            "sandwich",
            "the branch has a norm in front of the sublayer and one behind it; Pre-LN has only the one in front.",
            lambda x, f, norm: x + norm(f(norm(x))),
        ),
    ],
    facts=[("where the sublayer puts out zeros, x comes out", _silent_is_identity)],
)


post_ln = Exercise(
    name="post_ln",
    level=1,
    minutes=7,
    chapter="05-pre-ln-or-post-ln",
    objective="write the Post-LN formula from memory, and say what the skip path carries in it",
    reference=sn.post_ln,
    cases=_sublayer_cases,
    mistakes=[
        Mistake(
            "pre_ln",
            "this is Pre-LN, x + F(norm(x)); Post-LN normalises the sum, norm(x + F(x)).",
            lambda x, f, norm: x + f(norm(x)),
            "https://github.com/harvardnlp/annotated-transformer/issues/1",
        ),
        Mistake(
            "norm_before_sum",
            "the norm acts on the branch, before the sum: x + norm(F(x)). In Post-LN it acts on the sum.",
            lambda x, f, norm: x + norm(f(x)),
            "https://github.com/mashrurmorshed/Torch-KWT/issues/13",
        ),
        Mistake(
            "no_residual",
            "x is not added: this is norm(F(x)), and Post-LN is norm(x + F(x)).",
            lambda x, f, norm: norm(f(x)),
        ),
        Mistake(
            "doubled_branch",
            "the sublayer's output is added to itself: x was overwritten before the sum. Keep the x that came in.",
            lambda x, f, norm: norm((h := f(x)) + h),
            "https://github.com/kyegomez/BitNet/issues/32",
        ),
        Mistake(
            "no_norm",
            "the sum is not normalised: this is x + F(x), and Post-LN is norm(x + F(x)).",
            lambda x, f, norm: x + f(x),
        ),
        Mistake(
            "normed_input",
            "the norm stands in front of the fork, norm(x) + F(norm(x)); in Post-LN it stands behind the sum.",
            lambda x, f, norm: (h := norm(x)) + f(h),
        ),
        Mistake(
            "norm_on_both",
            "there are two norms, one in front of the sublayer and one on the sum; Post-LN has only the second.",
            lambda x, f, norm: norm(x + f(norm(x))),
        ),
        Mistake(
            "each_alone",
            "x and F(x) are normalised one by one and then added; Post-LN adds first, and normalises the sum.",
            lambda x, f, norm: norm(x) + norm(f(x)),
        ),
    ],
    facts=[("the rows of the result are normalised", _peaks_at_one)],
)


# A block


def _block_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, *shape: int, silent: bool = False, peak_first: bool = True) -> Case:
        sublayers = [_branch(rng, "tanh"), _branch(rng, "relu")]
        if silent:
            sublayers = [Sublayer("linear", np.zeros((D, D))) for _ in sublayers]
        norms = [_peak(), _squash(rng)]
        return Case(name, (_stream(rng, *shape), *sublayers, *(norms if peak_first else norms[::-1])))

    return [
        case("a (3, 6) batch", 3),
        case("a (2, 4, 6) batch of sequences", 2, 4, peak_first=False),
        case("one token, (6,)"),
        case("sublayers that put out zeros", 3, silent=True),
    ]


def _pre_ln_block(x: Array, attention: F, feed_forward: F, norm1: F, norm2: F) -> Array:
    x = sn.pre_ln(x, attention, norm1)
    return sn.pre_ln(x, feed_forward, norm2)


def _second_normed(x: Array, attention: F, feed_forward: F, norm1: F, norm2: F) -> Array:
    h = norm2(x + attention(norm1(x)))
    return h + feed_forward(h)  # type: ignore[no-any-return]


def _both_normed(x: Array, attention: F, feed_forward: F, norm1: F, norm2: F) -> Array:
    h = norm1(x)
    h = norm2(h + attention(h))
    return h + feed_forward(h)  # type: ignore[no-any-return]


pre_ln_block = Exercise(
    name="pre_ln_block",
    level=2,
    minutes=12,
    chapter="06-the-block-assembled",
    objective="write a Pre-LN transformer block in two lines",
    reference=_pre_ln_block,
    cases=_block_cases,
    mistakes=[
        Mistake(
            "post_ln",
            "this is the Post-LN block, with the norms on the sums; in Pre-LN each stands in front of its sublayer.",
            lambda x, a, f, norm1, norm2: norm2((h := norm1(x + a(x))) + f(h)),
            "https://github.com/karpathy/nanoGPT/issues/278",
        ),
        Mistake(
            "normed_skip",
            "both skip paths start behind a norm; they carry the raw stream, and only the sublayers read norm(x).",
            _both_normed,
            "https://github.com/Howuhh/faster-trajectory-transformer/issues/3",
        ),
        Mistake(
            "second_skip_normed",
            "the second skip path starts behind norm2; it carries the raw stream, and only feed_forward reads norm2's.",
            _second_normed,
            "https://github.com/Project-MONAI/MONAI/pull/9011",
        ),
        Mistake(
            "no_residual",
            "nothing is added: both residual connections are missing.",
            lambda x, a, f, norm1, norm2: f(norm2(a(norm1(x)))),
        ),
        Mistake(
            "one_residual",
            "the second residual connection is missing: the stream is added to what feed_forward puts out.",
            lambda x, a, f, norm1, norm2: f(norm2(x + a(norm1(x)))),
        ),
        Mistake(
            "residual_from_input",
            "the second skip path carries the block's input; it carries the stream with attention's part in it.",
            lambda x, a, f, norm1, norm2: x + f(norm2(x + a(norm1(x)))),
            "https://github.com/strutive07/transformer-tensorflow2.0/issues/14",
        ),
        Mistake(
            "parallel",
            "both sublayers read the block's input; feed_forward reads the stream that attention has added to.",
            lambda x, a, f, norm1, norm2: x + a(norm1(x)) + f(norm2(x)),
        ),
        Mistake(
            "norm1_twice",
            "norm1 serves both sublayers, and norm2 none; each sublayer has its own norm.",
            lambda x, a, f, norm1, norm2: (h := x + a(norm1(x))) + f(norm1(h)),
            "https://github.com/allenai/OLMo/issues/222",
        ),
        Mistake(
            "norms_swapped",
            "norm2 stands in front of attention, and norm1 in front of feed_forward; it is the other way round.",
            lambda x, a, f, norm1, norm2: (h := x + a(norm2(x))) + f(norm1(h)),
        ),
        Mistake(
            "feed_forward_first",
            "feed_forward comes before attention; a block begins with attention.",
            lambda x, a, f, norm1, norm2: (h := x + f(norm1(x))) + a(norm2(h)),
            "https://github.com/allenai/allennlp/issues/3334",
        ),
        Mistake(
            "second_norm_missing",
            "norm2 is not used: feed_forward reads the raw stream. Each sublayer reads through its own norm.",
            lambda x, a, f, norm1, norm2: (h := x + a(norm1(x))) + f(h),
        ),
        Mistake(
            "no_norms",
            "the norms are not used; each sublayer reads through its own norm.",
            lambda x, a, f, norm1, norm2: (h := x + a(x)) + f(h),
            "https://github.com/iCog-Labs-Dev/PC-Transformers/issues/46",
        ),
    ],
    facts=[("where both sublayers put out zeros, x comes out", _silent_is_identity)],
)


# A stack


def _stack_cases(rng: np.random.Generator) -> list[Case]:
    def sublayers(kinds: str) -> list[Sublayer]:
        return [_branch(rng, kind) for kind in kinds.split()]

    return [
        Case("three sublayers, a (3, 6) batch", (_stream(rng, 3), sublayers("tanh relu linear"), _peak())),
        Case(
            "four sublayers, a (2, 4, 6) batch",
            (_stream(rng, 2, 4), sublayers("relu tanh linear relu"), _squash(rng)),
        ),
        Case("one sublayer, one token of shape (6,)", (_stream(rng), sublayers("linear"), _peak())),
    ]


def _stack(
    x: Array, sublayers: Sequence[F], norm: F,
    step: Callable[[Array, F, F], Array] = sn.pre_ln, first: bool = False, last: bool = True,
) -> Array:  # fmt: skip
    """A stack of Pre-LN sublayers, with a norm of its own at its bottom or its top."""
    x = norm(x) if first else x
    for sublayer in sublayers:
        x = step(x, sublayer, norm)
    return norm(x) if last else x  # type: ignore[no-any-return]


def _from_the_bottom(x: Array, sublayers: Sequence[F], norm: F) -> Array:
    h = x
    for sublayer in sublayers:
        h = x + sublayer(norm(h))
    return norm(h)  # type: ignore[no-any-return]


pre_ln_stack = Exercise(
    name="pre_ln_stack",
    level=2,
    minutes=13,
    chapter="05-pre-ln-or-post-ln",
    objective="build a Pre-LN stack, and say why it ends in one more norm",
    reference=lambda x, sublayers, norm: _stack(x, sublayers, norm),
    cases=_stack_cases,
    mistakes=[
        Mistake(
            "no_final_norm",
            "the final norm is missing: nothing on the skip path was normalised, so the stack ends in one more norm.",
            partial(_stack, last=False),
            "https://github.com/marian-nmt/marian-dev/pull/719",
        ),
        Mistake(
            "final_norm_first",
            "the one more norm stands at the bottom of the stack; it belongs behind the last sublayer.",
            partial(_stack, first=True, last=False),
        ),
        Mistake(
            "norm_in_loop",
            "the final norm stands inside the loop, behind every sublayer; it comes once, behind the last one.",
            partial(_stack, step=lambda x, f, norm: norm(x + f(norm(x))), last=False),
        ),
        Mistake(
            "post_ln",
            "this is a Post-LN stack: each sum is normalised, and the sublayers read the raw stream.",
            partial(_stack, step=sn.post_ln),
        ),
        Mistake(
            "normed_skip",
            "the skip paths carry norm(x); they carry x itself, and only the sublayers read norm(x).",
            partial(_stack, step=lambda x, f, norm: (h := norm(x)) + f(h)),
            "https://github.com/tracel-ai/burn/issues/1056",
        ),
        Mistake(
            "only_the_last",
            "every step starts from the stack's input, so only the last one counts; the stream goes through all.",
            lambda x, sublayers, norm: _stack(x, sublayers[-1:], norm),
            "https://github.com/Atcold/NYU-DLSP20/issues/270",
        ),
        Mistake(
            "one_sublayer",
            "the first sublayer serves every time; a stack has sublayers of its own at each step.",
            lambda x, sublayers, norm: _stack(x, sublayers[:1] * len(sublayers), norm),
            "https://github.com/espnet/espnet/issues/1278",
        ),
        Mistake(
            "last_left_out",
            "the last sublayer is left out.",
            lambda x, sublayers, norm: _stack(x, sublayers[:-1], norm),
            "https://github.com/LukasHedegaard/continual-inference/pull/70",
        ),
        Mistake(
            "from_the_bottom",
            "every sum starts from the stack's input; it starts from the stream as the sublayer before has left it.",
            _from_the_bottom,
        ),
        Mistake(
            "side_by_side",
            "all sublayers read the stack's input, side by side; each reads the stream as the one before has left it.",
            lambda x, sublayers, norm: norm(x + sum(f(norm(x)) for f in sublayers)),
        ),
        Mistake(
            "no_residual",
            "nothing is added: the sublayers' outputs replace the stream.",
            partial(_stack, step=lambda x, f, norm: f(norm(x))),
        ),
        Mistake(
            "no_branch_norms",
            "the sublayers read the raw stream; each reads norm(x), and the final norm comes on top of that.",
            partial(_stack, step=lambda x, f, norm: x + f(x)),
        ),
    ],
    facts=[("the rows of the result are normalised", _peaks_at_one)],
)


# Warm-up


def _warm_up_cases(rng: np.random.Generator) -> list[Case]:
    def case(part: str, low: float, high: float) -> Case:
        d_model, steps = int(rng.integers(8, 65)), int(rng.integers(10, 41))
        step = max(1, round(steps * rng.uniform(low, high)))
        return Case(f"step {step} of a warm-up of {steps} with d_model = {d_model}, {part}", (step, d_model, steps))

    return [
        case("half-way up", 0.4, 0.6),
        case("the first step", 0, 0),
        case("the end of the warm-up", 1, 1),
        case("after the warm-up", 1.5, 2),
        case("long after the warm-up", 5, 10),
    ]


def _rate(
    step: int, d_model: int, steps: int,
    width: float = -0.5, rise: float = -1.5, fall: float = -0.5, least: Callable[..., float] = min,
) -> float:  # fmt: skip
    """The schedule of the first transformer, with its exponents to be changed: the defaults are right."""
    return float(d_model**width * least(step**fall, step * float(steps) ** rise))


def _rate_is_right(side: int, y: float, step: int, d_model: int, steps: int) -> bool:
    """Whether the rate is right before (1), at (0) or after (-1) the end of the warm-up."""
    return bool(np.sign(steps - step) != side or np.isclose(y, _rate(step, d_model, steps), 1e-4, 0))


warm_up = Exercise(
    name="warm_up",
    level=2,
    minutes=12,
    chapter="05b-warm-up",
    objective="say what warm-up changes, and write the schedule of the first transformer",
    reference=lambda step, d_model, steps: _rate(step, d_model, steps),
    cases=_warm_up_cases,
    mistakes=[
        Mistake(
            "max_for_min",
            "the larger of the two terms is taken; the rate is the smaller one.",
            partial(_rate, least=max),
        ),
        Mistake(
            "no_width",
            "d_model is not used: the rate is divided by its root.",
            partial(_rate, width=0),
        ),
        Mistake(
            "width_multiplied",
            "the rate is multiplied by the root of d_model; it is divided by it, d_model ** -0.5.",
            partial(_rate, width=0.5),
        ),
        Mistake(
            "width_without_root",
            "the rate is divided by d_model; it is divided by the root of d_model.",
            partial(_rate, width=-1),
        ),
        Mistake(
            "peak_of_one",
            "steps ** 0.5 stands in the place of d_model ** -0.5, which makes the largest rate 1 for every width.",
            lambda step, d_model, steps: _rate(step, d_model, steps, width=0) * steps**0.5,
            "https://github.com/Kyubyong/transformer/issues/89",
        ),
        Mistake(
            "no_decay",
            "the rate stays where the warm-up ended; from there it falls with step ** -0.5.",
            lambda step, d_model, steps: _rate(min(step, steps), d_model, steps),
        ),
        Mistake(
            "no_warm_up",
            "the rate falls from the first step on; for the first `steps` steps it rises in proportion to step.",
            lambda step, d_model, steps: (d_model * step) ** -0.5,
        ),
        Mistake(
            "one_step_ahead",
            "1 is added to step; here step counts from 1 already.",
            lambda step, d_model, steps: _rate(step + 1, d_model, steps),
        ),
        Mistake(
            "zero_based",
            "1 is taken from step, as if it counted from 0; it counts from 1, and 0 has no power -0.5.",
            lambda step, d_model, steps: _rate(step - 1, d_model, steps),
            "https://github.com/CUNY-CL/yoyodyne/pull/300",
        ),
        Mistake(
            "wrong_slope",
            "the rise is step * steps ** -0.5; with steps ** -1.5 the two terms meet at the end of the warm-up.",
            partial(_rate, rise=-0.5),
        ),
        Mistake(
            "fall_without_root",
            "after the warm-up the rate falls with 1 / step; it falls with 1 over the root of step.",
            partial(_rate, fall=-1),
        ),
    ],
    facts=[
        ("the rise", partial(_rate_is_right, 1)),
        ("the end of the warm-up", partial(_rate_is_right, 0)),
        ("the fall", partial(_rate_is_right, -1)),
    ],
)


# DeepNorm


def _deep_norm_cases(rng: np.random.Generator) -> list[Case]:
    def case(kind: str, norm: Sublayer, blocks: int, *shape: int) -> Case:
        name = f"{blocks} blocks and {'one token, (6,)' if not shape else f'a {(*shape, D)} batch'}"
        return Case(name, (_stream(rng, *shape), _branch(rng, kind), norm, blocks))

    return [
        case("linear", _peak(), int(rng.integers(5, 9)), 3),
        case("relu", _squash(rng), int(rng.integers(20, 101)), 2, 4),
        case("tanh", _squash(rng), int(rng.integers(2, 5))),
    ]


def _deep(
    x: Array, sublayer: F, norm: F, blocks: int,
    of: Callable[[int], float] = lambda n: (2 * n) ** 0.25, on_branch: bool = False, beta: float | None = None,
) -> Array:  # fmt: skip
    """DeepNorm with one thing changed: the defaults are right."""
    alpha, branch = of(blocks), sublayer(x)
    if beta is not None:
        branch = branch * (8 * blocks) ** beta
    return norm(x + alpha * branch if on_branch else alpha * x + branch)  # type: ignore[no-any-return]


deep_norm = Exercise(
    name="deep_norm",
    level=3,
    minutes=13,
    chapter="05a-gradients-by-placement",
    objective="say what DeepNorm changes, and write it",
    reference=lambda x, sublayer, norm, blocks: _deep(x, sublayer, norm, blocks),
    cases=_deep_norm_cases,
    mistakes=[
        Mistake(
            "alpha_on_branch",
            "alpha multiplies F(x); it multiplies x, so that the branch is the smaller part of the sum.",
            partial(_deep, on_branch=True),
            "https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/145",
        ),
        Mistake(
            "no_norm",
            "the sum is not normalised; DeepNorm is a Post-LN, norm(alpha * x + F(x)).",
            lambda x, f, norm, blocks: (2 * blocks) ** 0.25 * x + f(x),
            "https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/145",
        ),
        Mistake(
            "beta_on_branch",
            "F(x) is multiplied by beta as well; beta scales weights when they are drawn, and is not in the formula.",
            partial(_deep, beta=-0.25),
            "https://github.com/dhkim0225/1day_1paper/issues/106",
        ),
        Mistake(
            "post_ln",
            "alpha is missing, or comes out as 1, which leaves plain Post-LN.",
            partial(_deep, of=lambda n: 1.0),
        ),
        Mistake(
            "square_root",
            "alpha is the square root of 2 N; it is the fourth root.",
            partial(_deep, of=lambda n: (2 * n) ** 0.5),
        ),
        Mistake(
            "not_doubled",
            "alpha is the fourth root of N; it is that of 2 N, since each block has two sublayers.",
            partial(_deep, of=lambda n: n**0.25),
        ),
        Mistake(
            "alpha_inverted",
            "alpha is (2 N) ** -0.25, below 1; it is (2 N) ** 0.25, above 1.",
            partial(_deep, of=lambda n: (2 * n) ** -0.25),
        ),
        Mistake(
            "beta_for_alpha",
            "x is multiplied by beta, (8 N) ** -0.25; it is multiplied by alpha, (2 N) ** 0.25.",
            partial(_deep, of=lambda n: (8 * n) ** -0.25),
        ),
        Mistake(
            "decoder_beside_encoder",
            "alpha is (3 N) ** 0.25, that of a decoder beside an encoder; for a stack alone it is (2 N) ** 0.25.",
            partial(_deep, of=lambda n: (3 * n) ** 0.25),
        ),
        Mistake(
            "pre_ln",
            "the norm stands in front of the sublayer; DeepNorm keeps Post-LN's place, on the sum.",
            lambda x, f, norm, blocks: (2 * blocks) ** 0.25 * x + f(norm(x)),
        ),
        Mistake(
            "norm_before_sum",
            "the norm acts on the branch, before the sum; it acts on the sum.",
            lambda x, f, norm, blocks: (2 * blocks) ** 0.25 * x + norm(f(x)),
        ),
    ],
    facts=[("the rows of the result are normalised", lambda y, x, f, norm, blocks: _peaks_at_one(y, norm))],
)


# A block in any placement


def _all_placements(rng: np.random.Generator) -> list[Case]:
    def case(placement: str, *shape: int, peak_at: int, raises: str = "") -> Case:
        norms = [_squash(rng) for _ in range(4)]
        norms[peak_at] = _peak()
        args = (_stream(rng, *shape), _branch(rng, "tanh"), _branch(rng, "relu"), norms, placement)
        return Case(f'placement "{placement}" and a {(*shape, D)} batch', args, edge=bool(raises), raises=raises)

    return [
        case("pre", 3, peak_at=0),
        case("post", 2, 3, peak_at=1),
        case("sandwich", 3, peak_at=2),
        case("parallel", 2, 3, peak_at=0),
        case("middle", 3, peak_at=0, raises="ValueError"),
    ]


Form = Callable[[Any, F, F, Sequence[F]], Any]

#: Each placement as a formula: of x, attention, feed_forward and the norms in the order in which they are met.
FORMS: dict[str, Form] = {
    "pre": lambda x, a, f, n: (h := x + a(n[0](x))) + f(n[1](h)),
    "post": lambda x, a, f, n: n[1]((h := n[0](x + a(x))) + f(h)),
    "sandwich": lambda x, a, f, n: (h := x + n[1](a(n[0](x)))) + n[3](f(n[2](h))),
    "parallel": lambda x, a, f, n: x + a(h := n[0](x)) + f(h),
}


def _block(
    x: Any, attention: F, feed_forward: F, norms: Sequence[F], placement: str,
    forms: Mapping[str, Form] = FORMS, otherwise: type[Exception] | None = ValueError,
) -> Any:  # fmt: skip
    """A block in the placement that is named."""
    if placement in forms:
        return forms[placement](x, attention, feed_forward, norms)
    if otherwise:
        raise otherwise(f"placement must be one of {sorted(forms)}; got {placement!r}")
    return None


def _but(**forms: Form) -> Callable[..., Any]:
    """A block that has one placement, or two, in another form."""
    return partial(_block, forms={**FORMS, **forms})


def _is_right(placement: str, y: Any, *args: Any) -> bool:
    return args[-1] != placement or np.allclose(y, _block(*args), 1e-4, 1e-5)


block = Exercise(
    name="block",
    level=4,
    minutes=25,
    chapter="06-the-block-assembled",
    objective="build a block from a specification in words, in four placements",
    reference=lambda x, attention, feed_forward, norms, placement: _block(x, attention, feed_forward, norms, placement),
    cases=_all_placements,
    mistakes=[
        Mistake(
            "pre_and_post_swapped",
            '"pre" and "post" are exchanged: "pre" normalises what a sublayer reads, "post" normalises the sum.',
            _but(pre=FORMS["post"], post=FORMS["pre"]),
        ),
        Mistake(
            "norm_twice",
            'in "pre" the first norm serves both sublayers; each has its own.',
            _but(pre=lambda x, a, f, n: (h := x + a(n[0](x))) + f(n[0](h))),
            "https://github.com/allenai/OLMo/issues/222",
        ),
        Mistake(
            "post_norm_twice",
            'in "post" the first norm serves both sums; each has its own.',
            _but(post=lambda x, a, f, n: n[0]((h := n[0](x + a(x))) + f(h))),
            "https://github.com/ml-explore/mlx/issues/1636",
        ),
        Mistake(
            "post_raw_skip",
            'in "post" the second skip path carries the first sum before its norm; it carries what the norm puts out.',
            _but(post=lambda x, a, f, n: n[1]((h := x + a(x)) + f(n[0](h)))),
            "https://github.com/NVIDIA-NeMo/Speech/pull/4350",
        ),
        Mistake(
            "sandwich_on_sum",
            'in "sandwich" the second norms act on the sums; both norms of a sublayer stand on its branch.',
            _but(sandwich=lambda x, a, f, n: n[3]((h := n[1](x + a(n[0](x)))) + f(n[2](h)))),
            "https://github.com/wandb/senpai/pull/775",
        ),
        Mistake(
            "sandwich_without_first",
            'in "sandwich" the norms in front of the sublayers are missing.',
            _but(sandwich=lambda x, a, f, n: (h := x + n[1](a(x))) + n[3](f(h))),
        ),
        Mistake(
            "sandwich_order",
            'in "sandwich" the third norm stands behind attention; take them in the order that the data meets them.',
            _but(sandwich=lambda x, a, f, n: (h := x + n[2](a(n[0](x)))) + n[3](f(n[1](h)))),
        ),
        Mistake(
            "parallel_in_a_row",
            'in "parallel" feed_forward reads the stream behind attention; both read the block\'s input.',
            _but(parallel=lambda x, a, f, n: (h := x + a(n[0](x))) + f(n[0](h))),
        ),
        Mistake(
            "parallel_two_norms",
            'in "parallel" each sublayer has a norm of its own; here one norm serves both.',
            _but(parallel=lambda x, a, f, n: x + a(n[0](x)) + f(n[1](x))),
            "https://github.com/EleutherAI/gpt-neox/pull/481",
        ),
        Mistake(
            "parallel_two_skips",
            'in "parallel" x is added twice, once for each sublayer; it is added once.',
            _but(parallel=lambda x, a, f, n: 2 * x + a(h := n[0](x)) + f(h)),
        ),
        Mistake(
            "parallel_normed_skip",
            'in "parallel" the skip path carries norm(x); it carries x itself.',
            _but(parallel=lambda x, a, f, n: (h := n[0](x)) + a(h) + f(h)),
        ),
        Mistake(
            "unknown_is_none",
            "for a placement that does not exist None comes back; a ValueError tells the caller what is wrong.",
            partial(_block, otherwise=None),
        ),
        Mistake(
            "key_error",
            "a placement that does not exist gives a KeyError, as a dictionary does; the task asks for a ValueError.",
            partial(_block, otherwise=KeyError),
        ),
    ],
    facts=[(f'placement "{placement}"', partial(_is_right, placement)) for placement in FORMS],
)

EXERCISES = [pre_ln, post_ln, pre_ln_block, pre_ln_stack, warm_up, deep_norm, block]
