"""The exercises on residual connections."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from subnorm import numpy as sn
from subnorm.checks.collect import Case, Sublayer
from subnorm.checks.exercise import Exercise, Mistake

Array = np.ndarray[Any, Any]
Function = Callable[[Array], Array]


def _sublayer(rng: np.random.Generator, d: int, kind: str = "tanh", out: int = 0) -> Sublayer:
    """A sublayer whose branch is about as large as its input."""
    return Sublayer(kind, rng.normal(0, 1 / np.sqrt(d), (d, out or d)))


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


# ---------------------------------------------------------------- 1: one residual connection


def _residual_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, shape: tuple[int, ...], kind: str = "tanh") -> Case:
        return Case(name, (rng.normal(0, 1, shape), _sublayer(rng, shape[-1], kind)))

    return [
        case("a (3, 4) batch", (3, 4)),
        case("a (2, 5, 8) batch of sequences", (2, 5, 8)),
        case("one token, (6,), and a linear sublayer", (6,), "linear"),
        Case("a sublayer that puts out zeros", (rng.normal(0, 1, (3, 4)), Sublayer("linear", np.zeros((4, 4))))),
    ]


def _overwritten(x: Array, sublayer: Function) -> Array:
    x = sublayer(x)
    return x + sublayer(x)


residual = Exercise(
    name="residual",
    level=1,
    minutes=8,
    chapter="02-residual-connections",
    objective="write a residual connection, and say what its branch has to learn",
    reference=sn.residual,
    cases=_residual_cases,
    mistakes=[
        Mistake(
            "no_skip",
            "the result is the branch alone, F(x); a residual connection adds x to it.",
            lambda x, sublayer: sublayer(x),
            "https://github.com/znxlwm/UGATIT-pytorch/issues/32",
        ),
        Mistake(
            "branch_twice",
            "the branch is added to itself, F(x) + F(x); the other summand is x.",
            lambda x, sublayer: 2 * sublayer(x),
            "https://github.com/kyegomez/BitNet/issues/32",
        ),
        Mistake(
            "skip_twice",
            "x is added twice, x + x + F(x); the skip path brings it once.",
            lambda x, sublayer: x + x + sublayer(x),
            "https://github.com/yakhyo/darknet-pytorch/issues/2",
        ),
        Mistake(
            "overwritten",
            "x was replaced by F(x) before the sum, which gives F(x) + F(F(x)); keep x for the skip path.",
            _overwritten,
        ),
        Mistake(
            "skip_normed",
            "x is normalised before the fork, so the skip path carries norm(x); here it carries x.",
            lambda x, sublayer: sn.residual(sn.layer_norm(x), sublayer),
            "https://github.com/lbcb-sci/RiNALMo/issues/9",
        ),
        Mistake(
            "branch_normed",
            "the branch reads norm(x), which is Pre-LN; this residual connection has no norm.",
            lambda x, sublayer: sn.pre_ln(x, sublayer, sn.layer_norm),
        ),
        Mistake(
            "sum_normed",
            "the sum is normalised, which is Post-LN; this residual connection has no norm.",
            lambda x, sublayer: sn.post_ln(x, sublayer, sn.layer_norm),
        ),
        Mistake(
            "skip_relu",
            "the skip path carries relu(x), as it does after a ReLU that writes in place; it carries x itself.",
            lambda x, sublayer: _relu(x) + sublayer(x),
            "https://github.com/rosinality/vq-vae-2-pytorch/issues/60",
        ),
        Mistake(
            "sum_relu",
            "a ReLU follows the sum, as in the first ResNet; y = x + F(x) has nothing after the plus sign.",
            lambda x, sublayer: _relu(x + sublayer(x)),
            "https://github.com/vanhuyz/CycleGAN-TensorFlow/issues/56",
        ),
        Mistake(
            "branch_relu",
            "the branch goes through a ReLU before the sum, so it can only raise x; y = x + F(x) adds F(x) as it is.",
            lambda x, sublayer: x + _relu(sublayer(x)),
            "https://github.com/kuangliu/pytorch-cifar/issues/4",
        ),
        Mistake(
            "subtracted",
            "x is subtracted, F(x) - x; the branch learns y - x, so the block adds x back.",
            lambda x, sublayer: sublayer(x) - x,
            "https://github.com/mlpack/mlpack/pull/1594",
        ),
        Mistake(
            "concatenated",
            "x and F(x) are put side by side; a residual connection adds them, and the shape stays.",
            lambda x, sublayer: np.concatenate([x, sublayer(x)], axis=-1),
        ),
    ],
    facts=[
        ("the result has the shape of x", lambda y, x, sublayer: y.shape == x.shape),
        ("a sublayer of zeros changes nothing", lambda y, x, sublayer: sublayer(x).any() or np.allclose(y, x)),
    ],
)


# ---------------------------------------------------------------- 2: the stream


def _stream_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, shape: tuple[int, ...], kinds: Sequence[str], edge: bool = False) -> Case:
        return Case(name, (rng.normal(0, 1, shape), [_sublayer(rng, shape[-1], kind) for kind in kinds]), edge)

    return [
        case("three sublayers, a (3, 4) batch", (3, 4), ["tanh", "tanh", "tanh"]),
        case("four sublayers, a (2, 5, 8) batch of sequences", (2, 5, 8), ["tanh", "linear", "relu", "tanh"]),
        case("two sublayers, one token, (6,)", (6,), ["tanh", "linear"]),
        case("a stack without sublayers", (3, 4), [], edge=True),
    ]


def _stream(x: Array, sublayers: Sequence[Function], reads: int = -1, skips: int = -1) -> list[Array]:
    """The stream; ``reads`` and ``skips`` say which of its states a branch reads and the skip path carries."""
    states = [x]
    for sublayer in sublayers:
        states.append(states[skips] + sublayer(states[reads]))
    return states


def _no_skips(x: Array, sublayers: Sequence[Function]) -> list[Array]:
    states = [x]
    for sublayer in sublayers:
        states.append(sublayer(states[-1]))
    return states


def _same_array(x: Array, sublayers: Sequence[Function]) -> list[Array]:
    states = [x]
    for sublayer in sublayers:
        x += sublayer(x)
        states.append(x)
    return states


def _edits(x: Array, sublayers: Sequence[Function]) -> list[Array]:
    states = _stream(x, sublayers)
    return [x, *(after - before for before, after in pairwise(states))]


stream = Exercise(
    name="stream",
    level=1,
    minutes=10,
    chapter="02-residual-connections",
    objective="read a residual stack as one stream that every sublayer edits",
    reference=_stream,
    cases=_stream_cases,
    mistakes=[
        Mistake(
            "same_array",
            "x += writes into the array that is already in the list, so all entries are the last one; "
            "x = x + sublayer(x) makes a new array.",
            _same_array,
        ),
        Mistake(
            "no_first",
            "the list lacks its first entry: the stream starts with x, before any sublayer.",
            lambda x, sublayers: _stream(x, sublayers)[1:],
            "https://github.com/huggingface/transformers/pull/3602",
        ),
        Mistake(
            "no_last",
            "the list stops before the last sublayer: its edit belongs to the stream, too.",
            lambda x, sublayers: _stream(x, sublayers)[:-1],
            "https://github.com/meta-pytorch/torchtune/pull/2461",
        ),
        Mistake(
            "only_last",
            "only the end of the stream is returned; the list holds its state before and after every sublayer.",
            lambda x, sublayers: _stream(x, sublayers)[-1],
        ),
        Mistake(
            "edits",
            "the entries are the edits, what each sublayer put out; the stream is their running sum.",
            _edits,
        ),
        Mistake(
            "reads_first",
            "every sublayer reads the first x; each reads the stream as the sublayers before it left it.",
            partial(_stream, reads=0),
        ),
        Mistake(
            "skips_from_first",
            "the skip path carries the first x past every sublayer; each adds to the state that it has read.",
            partial(_stream, skips=0),
            "https://github.com/LianpoWang/SpeckleSRGAN/issues/16",
        ),
        Mistake(
            "not_updated",
            "x is not replaced by the sum, so that every sublayer starts again from the first x.",
            partial(_stream, reads=0, skips=0),
            "https://github.com/taki0112/ResNeXt-Tensorflow/issues/1",
        ),
        Mistake(
            "no_skip",
            "each sublayer replaces the stream, x = F(x); in a residual stack it adds to it.",
            _no_skips,
        ),
        Mistake(
            "last_normed",
            "the last entry is normalised: the final norm comes after the stream, and is no part of it.",
            lambda x, sublayers: [*(states := _stream(x, sublayers))[:-1], sn.layer_norm(states[-1])],
            "https://github.com/huggingface/transformers/issues/13102",
        ),
        Mistake(
            "backwards",
            "the sublayers are applied from the last to the first; the first in the list comes first.",
            lambda x, sublayers: _stream(x, sublayers[::-1]),
        ),
    ],
    facts=[
        ("the list starts with x", lambda states, x, sublayers: np.allclose(states[0], x)),
        ("it has one entry more than there are sublayers", lambda s, x, sublayers: len(s) == len(sublayers) + 1),
        (
            "each entry is the one before it plus what the sublayer makes of that",
            lambda s, x, sublayers: all(np.allclose(s[k + 1], s[k] + f(s[k])) for k, f in enumerate(sublayers)),
        ),
    ],
)


# ---------------------------------------------------------------- 3: when the widths differ


def _projected_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, shape: tuple[int, ...], out: int, projected: bool = True) -> Case:
        d = shape[-1]
        weight = rng.normal(0, 1 / np.sqrt(d), (d, out)) if projected else None
        return Case(name, (rng.normal(0, 1, shape), _sublayer(rng, d, out=out), weight))

    return [
        case("4 features in, 6 out", (3, 4), 6),
        case("8 features in, 5 out, in a batch of sequences", (2, 3, 8), 5),
        case("one feature in, 4 out", (5, 1), 4),
        case("4 features in, 4 out, with a weight all the same", (3, 4), 4),
        case("4 features in, 4 out, and weight=None", (3, 4), 4, projected=False),
    ]


def _projected(x: Array, sublayer: Function, weight: Array | None) -> Array:
    return (x if weight is None else x @ weight) + sublayer(x)


def _padded(x: Array, sublayer: Function, weight: Array | None) -> Array:
    if weight is None:
        return x + sublayer(x)
    y = sublayer(x)
    shared = min(x.shape[-1], y.shape[-1])
    y[..., :shared] += x[..., :shared]
    return y


def _if_projected(answer: Callable[[Array, Function, Array], Array]) -> Callable[..., Array]:
    """A wrong answer to the cases with a weight, right without."""
    return lambda x, sublayer, weight: x + sublayer(x) if weight is None else answer(x, sublayer, weight)


projected_residual = Exercise(
    name="projected_residual",
    level=2,
    minutes=10,
    chapter="02-residual-connections",
    objective="write a residual connection, also where the width changes",
    reference=_projected,
    cases=_projected_cases,
    mistakes=[
        Mistake(
            "no_projection",
            "x is added as it is (a single feature stretches over all); with a weight, the skip path is x @ weight.",
            lambda x, sublayer, weight: x + sublayer(x),
            "https://github.com/AlexeyAB/darknet/issues/3809",
        ),
        Mistake(
            "padded",
            "x is added to the first features only; with a weight, the skip path is x @ weight, as wide as the result.",
            _padded,
            "https://github.com/AlexeyAB/darknet/issues/3420",
        ),
        Mistake(
            "by_width",
            "the weight is used only where the widths differ; it is used wherever there is one.",
            lambda x, sublayer, weight: _projected(
                x, sublayer, weight if x.shape[-1] != sublayer(x).shape[-1] else None
            ),
        ),
        Mistake(
            "branch_projected",
            "the weight is applied to the branch, F(x) @ weight + F(x); it projects x, which the skip path carries.",
            _if_projected(lambda x, sublayer, weight: (y := sublayer(x)) @ weight + y),
            "https://github.com/bytedance/1d-tokenizer/pull/119",
        ),
        Mistake(
            "sum_projected",
            "the sum is projected, (x + F(x)) @ weight; only the skip path is.",
            _if_projected(lambda x, sublayer, weight: (x + sublayer(x)) @ weight),
        ),
        Mistake(
            "reads_projected",
            "the sublayer reads x @ weight; it reads x, and the projection lies on the skip path alone.",
            _if_projected(lambda x, sublayer, weight: (h := x @ weight) + sublayer(h)),
        ),
        Mistake(
            "transposed",
            "x is multiplied by weight.T; weight has shape (d_in, d_out), so the product is x @ weight.",
            _if_projected(lambda x, sublayer, weight: x @ weight.T + sublayer(x)),
        ),
        Mistake(
            "relu_on_skip",
            "the projected x goes through a ReLU; a projection is linear, x @ weight and no more.",
            _if_projected(lambda x, sublayer, weight: _relu(x @ weight) + sublayer(x)),
        ),
        Mistake(
            "no_skip",
            "the result is the branch alone, F(x); x @ weight, or x, is added to it.",
            lambda x, sublayer, weight: sublayer(x),
        ),
        Mistake(
            "none_is_no_skip",
            "with weight=None nothing is added to the branch; then the skip path carries x itself.",
            lambda x, sublayer, weight: sublayer(x) if weight is None else _projected(x, sublayer, weight),
            "https://github.com/PetarV-/GAT/issues/11",
        ),
        Mistake(
            "always_projected",
            "the projection is taken for granted; with weight=None the skip path carries x itself.",
            lambda x, sublayer, weight: x @ weight + sublayer(x),
            "https://github.com/tflearn/tflearn/issues/13",
        ),
    ],
)


# ---------------------------------------------------------------- 4: branches scaled by the depth


def _scaled_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, shape: tuple[int, ...], many: int) -> Case:
        return Case(name, (rng.normal(0, 1, shape), [_sublayer(rng, shape[-1]) for _ in range(many)]))

    x = rng.normal(0, 1, (3, 4)).astype("float32")
    half = [Sublayer("tanh", rng.normal(0, 0.5, (4, 4)).astype("float32")) for _ in range(3)]
    return [
        case("three sublayers, a (3, 4) batch", (3, 4), 3),
        case("five sublayers, a (2, 5, 8) batch of sequences", (2, 5, 8), 5),
        case("three sublayers, one token, (8,)", (8,), 3),
        Case("three sublayers in float32", (x, half), edge=True),
    ]


def _scaled(
    x: Array, sublayers: Sequence[Function],
    factor: Callable[[int, int, int], Any] = lambda n, k, d: n**-0.5, on: str = "branch", first: bool = False,
) -> Array:  # fmt: skip
    """The end of a stream with a factor of (n sublayers, k-th of them, d features) on one part of each sum."""
    start = x
    for k, sublayer in enumerate(sublayers):
        s = factor(len(sublayers), k, x.shape[-1])
        reads = start if first else x
        x = {
            "branch": lambda x, f, reads, s: x + s * f(reads),
            "input": lambda x, f, reads, s: x + f(s * reads),
            "skip": lambda x, f, reads, s: s * x + f(reads),
            "sum": lambda x, f, reads, s: s * (x + f(reads)),
        }[on](x, sublayer, reads, s)
    return x


scaled_stream = Exercise(
    name="scaled_stream",
    level=2,
    minutes=12,
    chapter="02-residual-connections",
    objective="predict how the signal grows with depth, and keep it bounded by scaling the branches",
    reference=_scaled,
    cases=_scaled_cases,
    mistakes=[
        Mistake(
            "no_scale",
            "the branches are added unscaled; each is multiplied by one over the root of their number.",
            partial(_scaled, factor=lambda n, k, d: 1),
            "https://github.com/huggingface/transformers/issues/2158",
        ),
        Mistake(
            "no_root",
            "each branch is divided by the number of sublayers; it is mean squares that add, so divide by its root.",
            partial(_scaled, factor=lambda n, k, d: 1 / n),
        ),
        Mistake(
            "times_root",
            "each branch is multiplied by the root of their number; divide by it.",
            partial(_scaled, factor=lambda n, k, d: n**0.5),
            "https://github.com/Biohub/esm/issues/338",
        ),
        Mistake(
            "two_for_each",
            "you divide by the root of 2 N; the list holds sublayers, so N branches are N. "
            "The 2 belongs to blocks, which have two sublayers each.",
            partial(_scaled, factor=lambda n, k, d: (2 * n) ** -0.5),
        ),
        Mistake(
            "by_position",
            "the k-th branch is divided by the root of k; all are divided by the same, the root of their number.",
            partial(_scaled, factor=lambda n, k, d: (k + 1) ** -0.5),
        ),
        Mistake(
            "by_width",
            "you divide by the root of the number of features; it is the number of sublayers.",
            partial(_scaled, factor=lambda n, k, d: d**-0.5),
        ),
        Mistake(
            "skip_scaled",
            "the factor stands on the skip path, which then shrinks with every sublayer; it belongs to the branch.",
            partial(_scaled, on="skip"),
            "https://github.com/fchollet/deep-learning-models/issues/99",
        ),
        Mistake(
            "sum_scaled",
            "the whole sum is scaled, skip path and all; only the branch is.",
            partial(_scaled, on="sum"),
        ),
        Mistake(
            "sum_over_root_two",
            "each sum is divided by the root of 2, so x fades with depth; only branches are scaled, by their number.",
            partial(_scaled, factor=lambda n, k, d: 2**-0.5, on="sum"),
            "https://github.com/lucidrains/stylegan2-pytorch/issues/88",
        ),
        Mistake(
            "input_scaled",
            "the factor stands on what the sublayer reads; it belongs to what the sublayer puts out.",
            partial(_scaled, on="input"),
        ),
        Mistake(
            "reads_first",
            "every sublayer reads the first x; each reads the stream as the sublayers before it left it.",
            partial(_scaled, first=True),
        ),
        Mistake(
            "float64",
            "np.sqrt of a plain number is a float64, and makes float32 arrays wide; math.sqrt(n) or n**0.5 does not.",
            partial(_scaled, factor=lambda n, k, d: 1 / np.sqrt(n)),
            "https://github.com/bh107/bohrium/issues/16",
        ),
    ],
)


# ---------------------------------------------------------------- 5: backward


def _backward_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, shape: tuple[int, ...]) -> Case:
        d = shape[-1]
        return Case(name, (rng.normal(0, 1, shape), rng.normal(0, 1, shape), rng.normal(0, 1 / np.sqrt(d), (d, d))))

    return [
        case("a (3, 6) batch", (3, 6)),
        case("a square batch, (6, 6)", (6, 6)),
        case("a (2, 5, 8) batch of sequences", (2, 5, 8)),
        case("one token, (8,)", (8,)),
    ]


residual_backward = Exercise(
    name="residual_backward",
    level=2,
    minutes=15,
    chapter="02-residual-connections",
    objective="say what the Jacobian I + J does to a gradient, and write it",
    reference=lambda dy, x, weight: dy + (dy @ weight.T) * (x > 0),
    cases=_backward_cases,
    mistakes=[
        Mistake(
            "no_identity",
            "the gradient of the skip path is missing: dy itself arrives there, and is added.",
            lambda dy, x, weight: (dy @ weight.T) * (x > 0),
            "https://github.com/paiml/entrenar/issues/313",
        ),
        Mistake(
            "skip_only",
            "the gradient of the branch is missing: dx is dy plus what comes back through the branch.",
            lambda dy, x, weight: dy.copy(),
        ),
        Mistake(
            "no_transpose",
            "the weight is not transposed: forward is relu(x) @ weight, so backward is dy @ weight.T.",
            lambda dy, x, weight: dy + (dy @ weight) * (x > 0),
            "https://github.com/d2l-ai/d2l-en/issues/2532",
        ),
        Mistake(
            "weight_first",
            "weight @ dy treats the rows of dy as columns; features lie on the last axis, so it is dy @ weight.T.",
            lambda dy, x, weight: dy + (weight @ dy) * (x > 0),
        ),
        Mistake(
            "no_mask",
            "the ReLU is not in the gradient: what comes back through the branch is kept only where x > 0.",
            lambda dy, x, weight: dy + dy @ weight.T,
        ),
        Mistake(
            "mask_first",
            "the mask is applied before weight.T; going back, the weight comes first and the ReLU after it.",
            lambda dy, x, weight: dy + (dy * (x > 0)) @ weight.T,
        ),
        Mistake(
            "mask_on_skip",
            "the mask is on the skip path, too; the ReLU lies in the branch, and dy goes past it unchanged.",
            lambda dy, x, weight: (dy + dy @ weight.T) * (x > 0),
        ),
        Mistake(
            "mask_of_gradient",
            "the mask is taken of the gradient; a ReLU lets through where its input was above 0, and that is x.",
            lambda dy, x, weight: dy + _relu(dy @ weight.T),
            "https://github.com/exacity/deeplearningbook-chinese/issues/127",
        ),
        Mistake(
            "relu_for_mask",
            "the gradient is multiplied by relu(x); the slope of a ReLU is 1 where x > 0, and 0 elsewhere.",
            lambda dy, x, weight: dy + (dy @ weight.T) * _relu(x),
        ),
        Mistake(
            "mask_for_gradient",
            "the slope of the ReLU stands in place of the gradient; they are multiplied.",
            lambda dy, x, weight: dy + (x > 0),
            "https://github.com/haifengl/smile/issues/528",
        ),
        Mistake(
            "one_for_dy",
            "1 is added where dy belongs: the slope of the skip path is 1, so its gradient is dy times 1.",
            lambda dy, x, weight: 1 + (dy @ weight.T) * (x > 0),
        ),
        Mistake(
            "adds_x",
            "x is added, as in the forward pass; what travels back over the skip path is dy.",
            lambda dy, x, weight: x + (dy @ weight.T) * (x > 0),
        ),
    ],
)


# ---------------------------------------------------------------- 6: all paths


def _paths_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, shape: tuple[int, ...], many: int) -> Case:
        d = shape[-1]
        weights = [rng.normal(0, 1 / np.sqrt(d), (d, d)) for _ in range(many)]
        return Case(name, (rng.normal(0, 1, shape), weights))

    return [
        case("three blocks, one token, (4,)", (4,), 3),
        case("two blocks, a (3, 4) batch", (3, 4), 2),
        case("four blocks, a (2, 3, 5) batch of sequences", (2, 3, 5), 4),
    ]


def _through(x: Array, weights: Sequence[Array], blocks: Sequence[int]) -> Array:
    """x on the path through the branches of these blocks, in the order given."""
    for k in blocks:
        x = x @ weights[k]
    return x


def _blocks(index: int, many: int) -> list[int]:
    """The blocks of a path: those whose bit in its number is 1, block 0 the lowest."""
    return [k for k in range(many) if index >> k & 1]


def _paths(x: Array, weights: Sequence[Array], order: Callable[[int], Sequence[Sequence[int]]] | None = None) -> Array:
    many = len(weights)
    chosen = order(many) if order else [_blocks(index, many) for index in range(2**many)]
    return np.stack([_through(x, weights, blocks) for blocks in chosen])


def _numbered(change: Callable[[list[int], int], Sequence[int]]) -> Callable[[int], list[Sequence[int]]]:
    """An order in which each path goes through other blocks than its number says."""
    return lambda many: [change(_blocks(index, many), many) for index in range(2**many)]


def _stack_output(x: Array, weights: Sequence[Array]) -> Array:
    for weight in weights:
        x = x + x @ weight
    return x


paths = Exercise(
    name="paths",
    level=3,
    minutes=15,
    chapter="02-residual-connections",
    objective="read a residual stack as 2^L paths",
    reference=_paths,
    cases=_paths_cases,
    mistakes=[
        Mistake(
            "bits_reversed",
            "the first block is the highest bit, as itertools.product counts; here block 0 is the lowest bit, "
            "so path 1 goes through block 0 alone.",
            partial(_paths, order=_numbered(lambda blocks, many: [many - 1 - k for k in blocks][::-1])),
        ),
        Mistake(
            "by_length",
            "the paths are sorted by their length; they stand in the order of binary numbers.",
            partial(
                _paths, order=lambda many: [c for size in range(many + 1) for c in combinations(range(many), size)]
            ),
        ),
        Mistake(
            "complement",
            "a bit that is 1 sends the path past the branch; it sends it through.",
            partial(_paths, order=_numbered(lambda blocks, many: [k for k in range(many) if k not in blocks])),
        ),
        Mistake(
            "last_block_first",
            "the weights of a path are multiplied from the last block to the first; x meets block 0 first.",
            partial(_paths, order=_numbered(lambda blocks, many: blocks[::-1])),
        ),
        Mistake(
            "no_straight_path",
            "the path past every branch is missing: it is path 0, and carries x.",
            lambda x, weights: _paths(x, weights)[1:],
        ),
        Mistake(
            "single_branches",
            "these are x and one path for each block; a path may go through any number of branches.",
            partial(_paths, order=lambda many: [[], *([k] for k in range(many))]),
        ),
        Mistake(
            "nested",
            "these are the paths through the first 0, 1, 2, … blocks; every choice of blocks is a path.",
            partial(_paths, order=lambda many: [range(k) for k in range(many + 1)]),
        ),
        Mistake(
            "edits",
            "these are x and the edits, what each branch adds to the stream; each edit is a sum of paths.",
            lambda x, weights: np.stack(_edits(x, [Sublayer("linear", weight) for weight in weights])),
        ),
        Mistake(
            "summed",
            "this is the sum of all paths, the output of the stack; give them one by one.",
            _stack_output,
        ),
        Mistake(
            "whole_block",
            "a path is multiplied by I + weight where it goes through a branch; that counts the way past it, too.",
            lambda x, weights: _paths(x, [np.eye(len(w)) + w for w in weights]),
        ),
        Mistake(
            "transposed",
            "the branch of a block is x @ weight; you multiply by weight.T.",
            lambda x, weights: _paths(x, [w.T for w in weights]),
        ),
    ],
    facts=[
        ("path 0 is x", lambda terms, x, weights: np.allclose(terms[0], x)),
        ("there are 2^L paths", lambda terms, x, weights: len(terms) == 2 ** len(weights)),
        (
            "the paths add up to the output of the stack",
            lambda terms, x, weights: np.allclose(sum(terms), _stack_output(x, weights)),
        ),
    ],
)


# ---------------------------------------------------------------- 7: who wrote the logit?


def _shares_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, shape: tuple[int, ...], many: int, eps: float = 1e-5) -> Case:
        d = shape[-1]
        # The mean of each part is far from 0, so that centring shows
        sublayers = [_sublayer(rng, d, kind) for kind in ["relu", "tanh", "linear"][:many]]
        return Case(name, (rng.normal(0.5, 1, shape), sublayers, rng.normal(0, 1, (d, 7)), eps))

    return [
        case("two sublayers, a (3, 4) batch", (3, 4), 2),
        case("three sublayers, a (2, 3, 8) batch of sequences", (2, 3, 8), 3),
        case("two sublayers, one token, (6,), and eps = 0.5", (6,), 2, eps=0.5),
    ]


def _shares(
    x: Array, sublayers: Sequence[Function], readout: Array, eps: float,
    reads: int = -1, centre: str = "own", rstd_of: str = "end", ddof: int = 0, use_eps: bool = True, start: bool = True,
) -> Array:  # fmt: skip
    """The share of x and of every edit in the logits, with one thing changed: the defaults are right."""
    states, edits = [x], [x]
    for sublayer in sublayers:
        edits.append(sublayer(states[reads]))
        states.append(states[-1] + edits[-1])

    def part(edit: Array) -> Array:
        means = {"own": edit, "end": states[-1] / len(edits), "whole": states[-1], "none": np.zeros_like(edit)}
        middle = edit - means[centre].mean(axis=-1, keepdims=True)
        of = {"end": states[-1], "start": x, "own": edit, "none": None, "square": states[-1]}[rstd_of]
        if of is None:
            return middle @ readout
        if rstd_of == "square":
            spread = (of**2).mean(axis=-1, keepdims=True)
        else:
            spread = of.var(axis=-1, ddof=ddof, keepdims=True)
        return middle / np.sqrt(spread + (eps if use_eps else 0)) @ readout

    return np.stack([part(edit) for edit in (edits if start else edits[1:])])


def _lens(x: Array, sublayers: Sequence[Function], readout: Array, eps: float) -> Array:
    """The logits of the stream after every sublayer, each through the final norm: the logit lens."""
    return np.stack([sn.layer_norm(state, eps=eps) @ readout for state in _stream(x, sublayers)])


def _lens_steps(x: Array, sublayers: Sequence[Function], readout: Array, eps: float) -> Array:
    lens = _lens(x, sublayers, readout, eps)
    return np.concatenate([lens[:1], np.diff(lens, axis=0)])


def _logits(x: Array, sublayers: Sequence[Function], readout: Array, eps: float) -> Array:
    return sn.layer_norm(_stream(x, sublayers)[-1], eps=eps) @ readout


logit_shares = Exercise(
    name="logit_shares",
    level=4,
    minutes=25,
    chapter="02-residual-connections",
    objective="take the stream apart, through the final norm, into what each sublayer wrote",
    reference=_shares,
    cases=_shares_cases,
    mistakes=[
        Mistake(
            "own_rstd",
            "each edit is divided by its own deviation, so that all count alike; there is one rstd, that of the sum.",
            partial(_shares, rstd_of="own"),
            "https://github.com/TransformerLensOrg/TransformerLens/issues/696",
        ),
        Mistake(
            "no_norm",
            "the edits are read out without the final norm; centre each, and multiply by the rstd of the sum.",
            partial(_shares, centre="none", rstd_of="none"),
            "https://github.com/TransformerLensOrg/TransformerLens/issues/179",
        ),
        Mistake(
            "no_rstd",
            "the edits are centred, but not scaled; the final norm multiplies by the rstd of the sum.",
            partial(_shares, rstd_of="none"),
        ),
        Mistake(
            "no_centre",
            "the edits are scaled, but not centred; the final norm subtracts the mean, and each edit brings its own.",
            partial(_shares, centre="none"),
        ),
        Mistake(
            "mean_of_sum",
            "the mean of the whole stream is subtracted from every edit, so it is counted too often; each has its own.",
            partial(_shares, centre="whole"),
        ),
        Mistake(
            "mean_split_evenly",
            "the mean of the whole stream is split evenly; the shares add up, but each edit brought its own mean.",
            partial(_shares, centre="end"),
        ),
        Mistake(
            "rstd_of_input",
            "the rstd is that of x, before the sublayers; the final norm sees the end of the stream.",
            partial(_shares, rstd_of="start"),
        ),
        Mistake(
            "rms",
            "you divide by the root mean square, as RMSNorm does; LayerNorm divides by the deviation from the mean.",
            partial(_shares, rstd_of="square"),
        ),
        Mistake("no_eps", "eps is not used; rstd is one over the root of var + eps.", partial(_shares, use_eps=False)),
        Mistake("ddof1", "your variance is divided by d - 1; LayerNorm divides by d.", partial(_shares, ddof=1)),
        Mistake(
            "no_input_share",
            "the share of x is missing: the stream starts with it, and it is the first entry.",
            partial(_shares, start=False),
        ),
        Mistake(
            "reads_first",
            "every sublayer reads the first x; each reads the stream as the sublayers before it left it.",
            partial(_shares, reads=0),
        ),
        Mistake(
            "lens",
            "these are the logits after each sublayer (the logit lens); a share is what one sublayer adds.",
            _lens,
        ),
        Mistake(
            "lens_steps",
            "these are the steps of the logits from sublayer to sublayer, each with an rstd of its own; "
            "they add up, but a step also holds the change of rstd.",
            _lens_steps,
        ),
    ],
    facts=[
        (
            "the shares add up to the logits",
            lambda shares, *args: np.allclose(sum(shares), _logits(*args)),
        ),
        (
            "there is one share for x and one for each sublayer",
            lambda shares, x, sublayers, *rest: len(shares) == len(sublayers) + 1,
        ),
    ],
)

EXERCISES = [residual, stream, projected_residual, scaled_stream, residual_backward, paths, logit_shares]
