import numpy as np

from subnorm_lab.checks.ex04 import ITSELF, SAME, D, branch, squash, stream
from subnorm_lab.checks.shared import Case, Sublayer, exercise


def cases(rng):
    def case(placement, *shape, peak_at, edge=False):
        norms = [squash(rng) for _ in range(4)]
        norms[peak_at] = Sublayer("peak")
        args = stream(rng, *shape), branch(rng, "tanh"), branch(rng, "relu"), norms, placement
        what = f"a {(*shape, D)} batch" if shape else f"one token, {(D,)}"
        return Case(f'placement "{placement}" and {what}', args, edge)

    def unknown(name):
        args = case(name, 3, peak_at=0).args
        return Case(f'placement "{name}"', args, edge=True, raises="ValueError", names=name)

    def same(placement):
        """Adding to what these sublayers and norms return writes into x."""
        name = f'placement "{placement}", with sublayers and norms {ITSELF}'
        return Case(name, (stream(rng, 3), SAME, SAME, 4 * [SAME], placement), edge=True)

    return [
        case("pre", 3, peak_at=0),
        case("post", 2, 3, peak_at=1),
        case("sandwich", 3, peak_at=2),
        case("parallel", 2, 3, peak_at=0),
        *map(unknown, ("middle", "pre-ln", "sandwiched")),
        case("pre", peak_at=1, edge=True),
        case("post", 1, peak_at=0, edge=True),
        *map(same, ("pre", "post", "sandwich", "parallel")),
    ]


def is_right(placement):
    return lambda y, *args: args[-1] != placement or np.allclose(y, block.reference(*args), 1e-4, 1e-5)


def swapped(x, attention, feed_forward, norms, placement):
    other = {"pre": "post", "post": "pre"}.get(placement, placement)
    return block.reference(x, attention, feed_forward, norms, other)


@exercise(
    number=7, level=4, minutes=25, chapter="06-the-block-assembled",
    objective="build a block from a specification in words, in four placements",
    cases=cases,
    facts=[(f'placement "{name}"', is_right(name)) for name in ("pre", "post", "sandwich", "parallel")],
    mistakes=[
        ("pre_and_post_swapped", swapped,
         '"pre" and "post" are swapped: "pre" normalises the input of a sublayer, "post" normalises the sum.'),
        ("norm_twice", "f(n[1](x)) -> f(n[0](x))",
         'in "pre" the first norm serves both sublayers; each has its own.', "allenai/OLMo/issues/222"),
        ("post_norm_twice", "return n[1] -> return n[0]",
         'in "post" the first norm serves both sums; each has its own.', "ml-explore/mlx/issues/1636"),
        ("post_raw_skip", ("n[0](x + a(x)) -> x + a(x)", "n[1](x + f(x)) -> n[1](x + f(n[0](x)))"),
         'in "post" the second skip path carries the first sum before its norm; it must carry the output of the norm.',
         "NVIDIA-NeMo/Speech/pull/4350"),
        ("sandwich_on_sum", ("x + n[1](a(n[0](x))) -> n[1](x + a(n[0](x)))",
                             "x + n[3](f(n[2](x))) -> n[3](x + f(n[2](x)))"),
         'in "sandwich" the second norms act on the sums; both norms of a sublayer belong to its branch.',
         "wandb/senpai/pull/775"),
        ("sandwich_without_first", ("(a(n[0](x))) -> (a(x))", "(f(n[2](x))) -> (f(x))"),
         'in "sandwich" the norms before the sublayers are missing.'),
        ("sandwich_order", ("f(n[2] -> f(n[1]", "n[1](a -> n[2](a"),
         'in "sandwich" the third norm comes after attention; use the norms in the order of the data flow.'),
        ("parallel_in_a_row", "x + a(h) + f(h) -> (x := x + a(h)) + f(n[0](x))",
         'in "parallel" feed_forward reads the stream after attention; both must read the block\'s input.'),
        ("parallel_two_norms", "f(h) -> f(n[1](x))",
         'in "parallel" each sublayer has its own norm; here one norm serves both.', "EleutherAI/gpt-neox/pull/481"),
        ("parallel_two_skips", "x + a(h) -> 2 * x + a(h)",
         'in "parallel" x is added twice, once for each sublayer; add it once.'),
        ("parallel_normed_skip", "x + a(h) -> h + a(h)",
         'in "parallel" the skip path carries norm(x); it must carry x itself.'),
        ("unknown_is_none", 'raise ValueError(f"no such placement: {placement!r}") -> return None',
         "an unknown placement returns None; a ValueError tells the caller what is wrong."),
        ("unnamed", 'no such placement: {placement!r} -> no such placement',
         "the message of the ValueError does not name the placement that it got."),
        ("key_error", "ValueError -> KeyError",
         "an unknown placement raises a KeyError, as a dictionary does; the task asks for a ValueError."),
    ],
)
def block(x, attention, feed_forward, norms, placement):
    a, f, n = attention, feed_forward, norms
    if placement == "pre":
        x = x + a(n[0](x))
        return x + f(n[1](x))
    if placement == "post":
        x = n[0](x + a(x))
        return n[1](x + f(x))
    if placement == "sandwich":
        x = x + n[1](a(n[0](x)))
        return x + n[3](f(n[2](x)))
    if placement == "parallel":
        h = n[0](x)
        return x + a(h) + f(h)
    raise ValueError(f"no such placement: {placement!r}")
