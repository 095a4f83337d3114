"""Bugs in blocks: the skip that is lost, doubled, normalised or overwritten."""

import numpy as np

from subnorm_lab.checks.collect import Case, Sublayer
from subnorm_lab.museum.exhibit import Function, exhibit


def unit(x):
    """A norm for the tests: RMSNorm without a gain."""
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def nothing(x):
    return 0 * x


def sublayer(rng: np.random.Generator, kind: str = "tanh") -> Sublayer:
    return Sublayer(kind, rng.normal(0, 0.5, (6, 6)))


def peak() -> Sublayer:
    return Sublayer("peak")


def two_branches(rng: np.random.Generator) -> list[Case]:
    def case(name: str, shape: tuple[int, ...]) -> Case:
        return Case(name, (rng.normal(0, 2, shape), sublayer(rng), sublayer(rng, "linear"), peak()))

    return [case("a (4, 6) batch", (4, 6)), case("a (2, 3, 6) batch of sequences", (2, 3, 6))]


def silent_branches_change_nothing(block: Function) -> bool:
    x = np.random.default_rng(0).normal(0, 1, (4, 6))
    return np.allclose(block(x, nothing, nothing, unit), x)


@exhibit(
    bug="x = x + a -> x = a + a",
    says="attention's output is added to itself, so the skip is lost and the branch doubled; add it to x.",
    report="kyegomez/BitNet/issues/32",
    year=2024,
    test=silent_branches_change_nothing,
    cases=two_branches,
    others=[("no_second_skip", "return x + f -> return f", "the second skip is missing.")],
)
def pre_ln_block(x, attention, feed_forward, norm):
    a = attention(norm(x))
    x = x + a
    f = feed_forward(norm(x))
    return x + f


def silent_feed_forward_keeps_attention(block: Function) -> bool:
    x = np.random.default_rng(0).normal(0, 1, (4, 6))
    after_attention = unit(x + np.ones(6))
    return np.allclose(block(x, np.ones_like, nothing, unit), unit(after_attention))


@exhibit(
    bug="norm(h + feed_forward(h)) -> norm(x + feed_forward(h))",
    says="the second skip starts at the block's input, so attention reaches the output only through the feed-forward.",
    report="strutive07/transformer-tensorflow2.0/issues/14",
    year=2021,
    test=silent_feed_forward_keeps_attention,
    cases=two_branches,
    others=[("reads_x", "feed_forward(h) -> feed_forward(x)", "the feed-forward reads the block's input; it reads h.")],
)
def post_ln_block(x, attention, feed_forward, norm):
    h = norm(x + attention(x))
    return norm(h + feed_forward(h))


def one_branch(rng: np.random.Generator) -> list[Case]:
    return [Case(f"x of size {size:g}", (rng.normal(0, size, (4, 6)), sublayer(rng), peak())) for size in (1.0, 10.0)]


def silent_branch_changes_nothing(connection: Function) -> bool:
    x = np.random.default_rng(0).normal(0, 10, (4, 6))
    return np.allclose(connection(x, nothing, unit), x)


@exhibit(
    bug="return x + branch -> return h + branch",
    says="the skip carries the normalised input; it carries x itself.",
    report="pytorch/pytorch/issues/61165",
    year=2021,
    test=silent_branch_changes_nothing,
    cases=one_branch,
    others=[("post", "sublayer(h) -> sublayer(x)", "the branch reads x; in Pre-LN it reads norm(x).")],
)
def norm_first(x, sublayer, norm):
    h = norm(x)
    branch = sublayer(h)
    return x + branch


def float_rows(rng: np.random.Generator) -> list[Case]:
    return [
        Case(f"x in {dtype}", (rng.normal(0, 3, (4, 6)).astype(dtype), sublayer(rng), 1e-5))
        for dtype in ("float64", "float32")
    ]


def the_input_is_left_alone(block: Function) -> bool:
    x = np.random.default_rng(0).normal(0, 3, (4, 6)).astype(np.float32)
    before = x.copy()
    block(x, nothing, 1e-5)
    return np.array_equal(x, before)


@exhibit(
    bug="x.astype(np.float32) -> x.astype(np.float32, copy=False)",
    says="for float32 the cast makes no copy, so the division in place overwrites the skip; make a new array.",
    report="GeeeekExplorer/nano-vllm/issues/170",
    year=2026,
    test=the_input_is_left_alone,
    cases=float_rows,
    others=[("skip_normed", "return x + branch -> return h + branch", "the skip carries h; it carries x.")],
)
def rms_block(x, sublayer, eps):
    h = x.astype(np.float32)
    h /= np.sqrt((h * h).mean(-1, keepdims=True) + eps)
    branch = sublayer(h.astype(x.dtype))
    return x + branch


def alpha_is_on_the_skip(deep_norm: Function) -> bool:
    x = np.random.default_rng(0).normal(0, 1, (4, 6))
    return np.allclose(deep_norm(x, nothing, lambda y: y, 3.0), 3 * x)


def scaled(rng: np.random.Generator) -> list[Case]:
    return [
        Case(f"alpha = {alpha:g}", (rng.normal(0, 1, (4, 6)), sublayer(rng), peak(), alpha)) for alpha in (1.0, 2.63)
    ]


@exhibit(
    bug="alpha * x + sublayer(x) -> x + alpha * sublayer(x)",
    says="alpha multiplies the branch; in DeepNorm it multiplies the skip.",
    report="labmlai/annotated_deep_learning_paper_implementations/issues/145",
    year=2022,
    test=alpha_is_on_the_skip,
    cases=scaled,
    others=[
        (
            "outside",
            "norm(alpha * x + sublayer(x)) -> alpha * x + norm(sublayer(x))",
            "the norm covers the branch alone; it covers the sum.",
        )
    ],
)
def deep_norm(x, sublayer, norm, alpha):
    return norm(alpha * x + sublayer(x))


def size_of_the_stream_is_ignored(scores: Function) -> bool:
    stream, output = (np.random.default_rng(k).normal(0, 1, (5, 6)) for k in (0, 1))
    return np.allclose(scores(stream, unit, output), scores(100 * stream, unit, output), rtol=1e-3)


def streams(rng: np.random.Generator) -> list[Case]:
    return [
        Case(f"a stream of size {size:g}", (rng.normal(0, size, (5, 6)), peak(), rng.normal(0, 1, (9, 6))))
        for size in (1.0, 20.0)
    ]


@exhibit(
    bug="final_norm(stream[-1]) -> stream[-1]",
    says="the output matrix reads the raw stream; it reads the stream after the final norm.",
    report="NVIDIA/Model-Optimizer/pull/1846",
    year=2026,
    test=size_of_the_stream_is_ignored,
    cases=streams,
    others=[("first_token", "stream[-1] -> stream[0]", "these are the scores after the first token; take the last.")],
)
def next_scores(stream, final_norm, output):
    last = final_norm(stream[-1])  # of the last token
    return output @ last


def every_mask_together_is_the_evaluation(drop_path: Function) -> bool:
    branch = np.ones((4, 2, 3))
    masks = [np.eye(4)[k].reshape(4, 1, 1) for k in range(4)]  # each keeps one sample of four
    trained = np.mean([drop_path(branch, 0.25, kept, True) for kept in masks], axis=0)
    return np.allclose(trained, drop_path(branch, 0.25, masks[0], False))


def masks(rng: np.random.Generator) -> list[Case]:
    kept = np.array([1.0, 0.0, 1.0]).reshape(3, 1, 1)
    return [
        Case(f"training = {training}", (rng.normal(0, 1, (3, 2, 4)), keep, kept, training))
        for keep, training in ((0.5, True), (0.8, True), (0.5, False))
    ]


@exhibit(
    bug="branch * kept / keep -> branch * kept",
    says="a kept branch is not divided by the share that is kept, so training and evaluation differ in size.",
    report="mosaicml/composer/issues/372",
    year=2022,
    test=every_mask_together_is_the_evaluation,
    cases=masks,
    others=[
        (
            "twice",
            "training:\n        return branch -> training:\n        return branch * keep",
            "the size is corrected in training and again here.",
        )
    ],
)
def drop_path(branch, keep, kept, training):
    if not training:
        return branch
    return branch * kept / keep  # kept is 0 or 1 for each sample
