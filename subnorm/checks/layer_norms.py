"""The exercises on LayerNorm: set ex02."""

import functools
import importlib
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from subnorm import numpy as sn
from subnorm.checks.collect import Case, Norm
from subnorm.checks.exercise import Exercise, Mistake

Array = np.ndarray[Any, Any]

GITHUB = "https://github.com/"
ALL = slice(None)

# What is said of the same mistake in several exercises
FIXED_EPS = "eps is 1e-5 whatever comes in; use the eps that the function is given."
XHAT = "this is xhat: neither gamma nor beta is used; the result is gamma * xhat + beta."
FLOAT16 = "float16 overflows in the squares; take the statistics in float32, and give the result the dtype of x."
EPS_OUTSIDE = "eps is added outside the root, sqrt(var) + eps; the definition is sqrt(var + eps)."
NO_EPS = "the eps that comes in is not used; the definition divides by sqrt(var + eps)."
DDOF1 = "your variance is unbiased (divided by d - 1); LayerNorm divides by d."
NO_GAMMA = "gamma is not used: it multiplies each feature."


def in_dtype(case: Case, dtype: str) -> Case:
    """The same case, with its arrays in another dtype."""
    return Case(case.name, tuple(a.astype(dtype) if isinstance(a, np.ndarray) else a for a in case.args), case.edge)


def divisor(var: Array, eps: float, root: str) -> Array:
    """What LayerNorm divides by, for root="inside", and what people divide by."""
    rules: dict[str, Callable[[], Array]] = {
        "inside": lambda: np.sqrt(var + eps),
        "outside": lambda: np.sqrt(var) + eps,
        "no_eps": lambda: np.sqrt(var),
        "fixed": lambda: np.sqrt(var + 1e-5),
        "no_root": lambda: var + eps,
        "square": lambda: (var + eps) ** 2,
        "rsqrt": lambda: 1 / np.sqrt(var + eps),
    }
    return rules[root]()


def equal(a: Array, b: Array) -> bool:
    """Whether two arrays agree, in their shapes as well."""
    return np.shape(a) == np.shape(b) and np.allclose(a, b)


def wide(x: Array) -> Array:
    return x.astype(np.float32) if x.dtype == np.float16 else x


# 1: the formula


def _layer_norm_cases(rng: np.random.Generator) -> list[Case]:
    """Inputs on which each mistake shows in its own way. The rows are short, so that d and d - 1 are far apart."""

    def case(name: str, shape: tuple[int, ...], scale: float = 1, mean: float = 0, edge: bool = False) -> Case:
        d = shape[-1]
        gamma, beta = rng.normal(1, 0.3, d), rng.normal(0, 0.5, d)
        eps = 1e-5 if scale > 0.1 else 3e-6
        return Case(name, (rng.normal(mean, scale, shape), gamma, beta, eps), edge)

    return [
        case("a (3, 8) batch", (3, 8)),
        case("a square batch, (6, 6)", (6, 6)),
        case("a (2, 5, 8) batch of sequences", (2, 5, 8)),
        case("rows of deviation 2e-3, where eps matters", (3, 8), scale=2e-3),
        case("one token, (8,)", (8,), edge=True),
        in_dtype(case("a float16 batch with entries near 400", (3, 8), scale=400, edge=True), "float16"),
        in_dtype(case("float32 rows of mean 4000 and deviation 1", (3, 8), mean=4000, edge=True), "float32"),
    ]


def _layer_norm(
    x: Array, gamma: Array, beta: Array, eps: float,
    axes: Any = -1, ddof: int = 0, keepdims: bool = True, widen: bool = True, mean: bool = True,
    root: str = "inside", gain: bool = True, shift: bool = True, one_pass: bool = False,
) -> Array:  # fmt: skip
    """LayerNorm with one thing changed: the defaults are right."""
    dtype, x = x.dtype, wide(x) if widen else x
    axis = axes(x.ndim) if callable(axes) else axes
    mu = x.mean(axis, keepdims=keepdims)
    var = (x * x).mean(axis, keepdims=keepdims) - mu * mu if one_pass else x.var(axis, ddof=ddof, keepdims=keepdims)
    xhat = (x - mu if mean else x) / divisor(var, eps, root)
    return ((gamma if gain else 1) * xhat + (beta if shift else 0)).astype(dtype)


layer_norm = Exercise(
    name="layer_norm",
    level=1,
    minutes=15,
    chapter="03-layer-normalization",
    objective="write LayerNorm from its formula, in NumPy",
    reference=sn.layer_norm,
    cases=_layer_norm_cases,
    mistakes=[
        Mistake(
            "ddof1",
            DDOF1,
            partial(_layer_norm, ddof=1),
            GITHUB + "harvardnlp/annotated-transformer/issues/122",
        ),
        Mistake(
            "axis0",
            "the statistics are taken over axis 0, the batch; LayerNorm takes them over the features, axis -1.",
            partial(_layer_norm, axes=0),
        ),
        Mistake(
            "axis1",
            "in a batch of sequences, axis 1 is the sequence; the features lie on the last axis, axis -1.",
            partial(_layer_norm, axes=1),
            GITHUB + "jadore801120/attention-is-all-you-need-pytorch/pull/17",
        ),
        Mistake(
            "batch_norm",
            "one mean and variance for each feature, over all tokens: that is BatchNorm; LayerNorm takes axis -1.",
            partial(_layer_norm, axes=lambda ndim: tuple(range(ndim - 1))),
            GITHUB + "Kyubyong/transformer/issues/40",
        ),
        Mistake(
            "whole_example",
            "all tokens of an example share a mean and a variance; each token has its own, over axis -1.",
            partial(_layer_norm, axes=lambda ndim: tuple(range(1, ndim)) or -1),
            GITHUB + "reczoo/FuxiCTR/issues/23",
        ),
        Mistake(
            "all_axes",
            "one mean and one variance are taken of the whole array; each token has its own, over axis -1.",
            partial(_layer_norm, axes=None),
        ),
        Mistake(
            "keepdims",
            "without keepdims=True the mean loses its last axis, and is subtracted along the wrong one.",
            partial(_layer_norm, keepdims=False),
            GITHUB + "jadore801120/attention-is-all-you-need-pytorch/pull/17",
        ),
        Mistake(
            "eps_outside",
            EPS_OUTSIDE,
            partial(_layer_norm, root="outside"),
            GITHUB + "codertimo/BERT-pytorch/issues/30",
        ),
        Mistake(
            "no_eps",
            NO_EPS,
            partial(_layer_norm, root="no_eps"),
            GITHUB + "torchcvnn/torchcvnn/issues/32",
        ),
        Mistake(
            "no_root",
            "you divide by var + eps; the definition divides by its root.",
            partial(_layer_norm, root="no_root"),
        ),
        Mistake(
            "square",
            "you divide by the square of var + eps; the definition divides by its root.",
            partial(_layer_norm, root="square"),
            GITHUB + "131250208/TPlinker-joint-extraction/issues/37",
        ),
        Mistake(
            "rsqrt",
            "you divide by 1 / sqrt(var + eps); multiply by it, or divide by the root.",
            partial(_layer_norm, root="rsqrt"),
            GITHUB + "szymanowiczs/viewset-diffusion/issues/1",
        ),
        Mistake(
            "no_mean",
            "the mean is not subtracted from x: that is a step of LayerNorm.",
            partial(_layer_norm, mean=False),
            GITHUB + "keras-team/keras/issues/21234",
        ),
        Mistake(
            "fixed_eps",
            FIXED_EPS,
            partial(_layer_norm, root="fixed"),
        ),
        Mistake(
            "no_gain_no_shift",
            XHAT,
            partial(_layer_norm, gain=False, shift=False),
        ),
        Mistake("no_gamma", NO_GAMMA, partial(_layer_norm, gain=False)),
        Mistake("no_beta", "beta is not used: it is added to each feature.", partial(_layer_norm, shift=False)),
        Mistake(
            "float16",
            FLOAT16,
            partial(_layer_norm, widen=False),
            GITHUB + "facebookresearch/ConvNeXt/issues/80",
        ),
        Mistake(
            "one_pass",
            "mean(x²) − mean(x)² loses its digits when the mean is large; subtract the mean first, then square.",
            partial(_layer_norm, one_pass=True),
            GITHUB + "tracel-ai/burn/issues/5607",
        ),
    ],
    facts=[
        (
            "(y - beta) / gamma has mean 0 in every row",
            lambda y, x, gamma, beta, eps: np.allclose(((y - beta) / gamma).mean(-1), 0, atol=1e-6),
        ),
        (
            "(y - beta) / gamma has variance var / (var + eps) in every row",
            lambda y, x, gamma, beta, eps: np.allclose(
                ((y - beta) / gamma).var(-1), x.var(-1) / (x.var(-1) + eps), atol=1e-6
            ),
        ),
    ],
)


# 2: what a norm ignores


def _invariances_cases(rng: np.random.Generator) -> list[Case]:
    """Norms in random order, on float64 batches: enough of them that every property holds of some and not of others.

    The mean and the size of an output do not tell what a norm ignores: some functions are there for that alone.
    """

    def case(name: str, kind: str, gain: bool = False, numbers: tuple[float, float] = (0, 0)) -> Case:
        n, d = rng.integers(4, 7), rng.integers(7, 10)
        weight = rng.uniform(0.5, 1.5, d) if gain else None
        norm = Norm(kind, weight, float(rng.uniform(*numbers)))
        return Case(f"{name}, a ({n}, {d}) batch", (norm, rng.normal(0.5, 1, (n, d))))

    cases = [
        case("LayerNorm", "layer"),
        case("LayerNorm with a gain", "layer", gain=True),
        case("RMSNorm", "rms"),
        case("RMSNorm with a gain", "rms", gain=True),
        case("BatchNorm", "batch"),
        case("subtracting the mean, and no more", "centring"),
        case("the squares over their mean", "squares"),
        case("a function that changes nothing", "nothing"),
        # each with a number of its own, so that no table of known outputs serves
        case("the features over the root of the mean of another power", "power", numbers=(2.5, 4)),
        case("LayerNorm of a curve", "bent", numbers=(0.2, 0.6)),
        case("a softmax over its mean", "soft", numbers=(0.7, 1.5)),
        case("the difference from the next feature", "neighbours", numbers=(0.4, 0.8)),
        case("each feature over its root mean square in the batch", "batch rms", numbers=(0.2, 0.6)),
    ]
    return [cases[k] for k in rng.permutation(len(cases))]


def close(a: Array, b: Array) -> bool:
    """np.allclose, in a fifth of the time."""
    return bool(np.abs(a - b).max() < 1e-6)


def _invariances(
    norm: Callable[[Array], Array], x: Array,
    same: Callable[[Array, Array], Any] = close, size: float = 1, rows: Any = 0, alias: bool = False,
    of: str = "output", shift_at: Any = ALL, scale_at: Any = ALL, factor: float = 3, follows: str = "",
    permute: str = "features", back: bool = True, watched: Any = slice(1, None),
) -> dict[str, bool]:  # fmt: skip
    """What a norm ignores, asked with one thing changed: the defaults are right."""

    def tried(change: Callable[[Array], Any], expected: Callable[[Array], Array], watched: Any = ALL) -> bool:
        z = x if alias else x.copy()
        change(z)
        y = norm(x) if of == "output" else x
        return bool(same(norm(z)[watched], expected(y)[watched]))

    def shift(z: Array) -> Array:
        z[rows, shift_at] += 5 * size
        return z

    def scale(z: Array) -> Array:
        z[rows, scale_at] *= 1 + (factor - 1) * size
        return z

    def touch(z: Array) -> None:
        z[0, 0] += 5 * size

    def kept(y: Array) -> Array:
        return y

    order = np.roll(np.arange(x.shape[1 if permute == "features" else 0]), 1)
    at = (ALL, order) if permute == "features" else (order,)
    y = norm(x) if of == "output" else x
    return {
        "shift": tried(shift, shift if follows == "shift" else kept),
        "scale": tried(scale, scale if follows == "scale" else kept),
        "permutation": bool(same(norm(x[at]), y[at] if back else y)),
        "tokens": tried(touch, kept, watched),
    }


invariances = Exercise(
    name="invariances",
    level=2,
    minutes=15,
    chapter="03-layer-normalization",
    objective="measure what a norm ignores in its input",
    reference=_invariances,
    cases=_invariances_cases,
    mistakes=[
        Mistake(
            "whole_batch",
            "all tokens are shifted, and scaled, by the same number; change one token, and leave the others.",
            partial(_invariances, rows=ALL),
        ),
        Mistake(
            "negative_scale",
            "your factor is negative, which turns the sign of a row; the question is about positive factors.",
            partial(_invariances, factor=-2),
        ),
        Mistake(
            "scaled_feature",
            "no output seems to stay as it was after a scaling: scale all features of the token by the same number, "
            "and compare with np.allclose, not with ==.",
            partial(_invariances, scale_at=0),
        ),
        Mistake(
            "shifted_feature",
            "no output seems to stay as it was after a shift: shift all features of the token by the same number, "
            "and compare with np.allclose, not with ==.",
            partial(_invariances, shift_at=0),
        ),
        Mistake(
            "scale_follows",
            "you ask whether the output is scaled with the input; the question is whether it stays as it was.",
            partial(_invariances, follows="scale"),
        ),
        Mistake(
            "shift_follows",
            "you ask whether the output is shifted with the input; the question is whether it stays as it was.",
            partial(_invariances, follows="shift"),
        ),
        Mistake(
            "not_permuted",
            "norm(x[:, p]) is compared with norm(x); it should be compared with norm(x)[:, p], in the same order.",
            partial(_invariances, back=False),
        ),
        Mistake(
            "permuted_tokens",
            "the tokens are permuted, axis 0; the question is about the features, axis 1.",
            partial(_invariances, permute="tokens"),
        ),
        Mistake(
            "watched_itself",
            "the token that was changed is among those that you compare; the question is about the others.",
            partial(_invariances, watched=ALL),
        ),
        Mistake(
            "exact",
            "outputs are compared with ==, and differ in the last digits; use np.allclose.",
            partial(_invariances, same=lambda a, b: (a == b).all()),
        ),
        Mistake(
            "tiny",
            "your changes are smaller than what the comparison lets pass; shift by 1 or more, scale by 2 or more.",
            partial(_invariances, size=1e-9),
        ),
        Mistake(
            "alias",
            "x itself is changed, because z = x makes no copy, and then compared with itself; write z = x.copy().",
            partial(_invariances, alias=True),
        ),
        Mistake(
            "compared_with_x",
            "norm of the changed input is compared with x; it should be compared with norm(x).",
            partial(_invariances, of="input"),
        ),
    ],
)


# 3: gain and shift in the next layer


def _fold_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, out: int, d: int, bias: bool = True, edge: bool = False) -> Case:
        gamma, beta = rng.uniform(0.5, 1.5, d) * rng.choice([-1, 1], d), rng.normal(0, 1, d)
        return Case(name, (gamma, beta, rng.normal(0, 1, (out, d)), rng.normal(0, 1, out) if bias else None), edge)

    return [
        case("a layer from 8 features to 5", 5, 8),
        case("a layer from 3 features to 7", 7, 3),
        case("a square layer, (6, 6)", 6, 6),
        in_dtype(case("a layer in float32", 5, 8, edge=True), "float32"),
        case("a layer without a bias", 5, 8, bias=False, edge=True),
    ]


def _fold(
    gamma: Array, beta: Array, weight: Array, bias: Array | None,
    scaled: str = "columns", seen: str = "old", keep: bool = True, shift: bool = True, none: bool = False,
) -> tuple[Array, Array | None]:  # fmt: skip
    """Gain and shift folded into weight and bias, with one thing changed: the defaults are right."""
    weights: dict[str, Callable[[], Array]] = {
        "columns": lambda: weight * gamma,
        "rows": lambda: weight * gamma[:, None],
        "transposed": lambda: (weight * gamma).T,
        "divided": lambda: weight / gamma,
        "plus_one": lambda: weight * (1 + gamma),
        "unchanged": lambda: weight.copy(),
    }
    shifts: dict[str, Callable[[], Array]] = {
        "old": lambda: weight @ beta,
        "new": lambda: (weight * gamma) @ beta,
        "transposed": lambda: beta @ weight,
        "none": lambda: beta,
    }
    new = weights[scaled]()
    if not shift or (none and bias is None):
        return new, None if bias is None else bias.copy()
    return new, shifts[seen]() + (bias if bias is not None and keep else 0)


fold = Exercise(
    name="fold",
    level=2,
    minutes=10,
    chapter="03-layer-normalization",
    objective="say what gain and shift do, by moving them into the next layer",
    reference=_fold,
    cases=_fold_cases,
    mistakes=[
        Mistake(
            "rows",
            "gamma multiplies the rows of weight, its outputs; it belongs to the columns, the features of xhat.",
            partial(_fold, scaled="rows"),
        ),
        Mistake(
            "layout",
            "weight is taken for (d, out), in both results; here it is (out, d), and the layer is x @ weight.T + bias.",
            partial(_fold, scaled="rows", seen="transposed"),
            GITHUB + "TransformerLensOrg/TransformerLens/pull/1580",
        ),
        Mistake(
            "transposed",
            "the new weight comes back transposed; it has the shape of weight, (out, d).",
            partial(_fold, scaled="transposed"),
        ),
        Mistake(
            "gamma_twice",
            "beta goes through the new weight, so that gamma multiplies it; it goes through the old one.",
            partial(_fold, seen="new"),
        ),
        Mistake(
            "no_beta",
            "beta is lost; the layer sees it through weight, so weight @ beta belongs into the new bias.",
            partial(_fold, shift=False),
            GITHUB + "jiazhihao/TASO/pull/47",
        ),
        Mistake(
            "bias_lost",
            "the old bias is lost; the new one is bias + weight @ beta.",
            partial(_fold, keep=False),
        ),
        Mistake(
            "beta_unseen",
            "beta is added to the bias as it is; the layer sees it through weight, as weight @ beta.",
            partial(_fold, seen="none"),
        ),
        Mistake(
            "no_gamma",
            "the weight is as it was; its columns have to be multiplied by gamma.",
            partial(_fold, scaled="unchanged"),
        ),
        Mistake(
            "divided",
            "weight is divided by gamma: that would undo the gain; the new layer has to do it, weight * gamma.",
            partial(_fold, scaled="divided"),
        ),
        Mistake(
            "plus_one",
            "weight is multiplied by 1 + gamma; here the gain is gamma itself.",
            partial(_fold, scaled="plus_one"),
        ),
        Mistake(
            "no_bias",
            "without an old bias no new one is made, and beta is lost; it is then weight @ beta.",
            partial(_fold, none=True),
            GITHUB + "tenstorrent/tt-metal/pull/5317",
        ),
    ],
    facts=[
        ("the new weight is right", lambda y, gamma, beta, weight, bias: np.allclose(y[0], weight * gamma)),
        ("the new bias is right", lambda y, gamma, beta, weight, bias: np.allclose(y[1], bias + weight @ beta)),
    ],
)


# 4: groups of channels


def _group_norm_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, shape: tuple[int, int, int], groups: int, scale: float = 1, edge: bool = False) -> Case:
        gamma, beta = rng.normal(1, 0.3, shape[1]), rng.normal(0, 0.5, shape[1])
        eps = 1e-5 if scale > 0.1 else 3e-6
        return Case(name, (rng.normal(0, scale, shape), groups, gamma, beta, eps), edge)

    return [
        case("2 examples of 6 channels and 4 positions, in 2 groups", (2, 6, 4), 2),
        case("as many positions as channels, (2, 6, 6), in 3 groups", (2, 6, 6), 3),
        case("one group", (2, 6, 4), 1),
        case("as many groups as channels", (3, 4, 5), 4),
        case("entries of deviation 2e-3, where eps matters", (2, 6, 4), 2, scale=2e-3),
        in_dtype(case("a float16 input with entries near 400", (2, 6, 4), 2, scale=400, edge=True), "float16"),
    ]


def _group_norm(
    x: Array, groups: int, gamma: Array, beta: Array, eps: float,
    layout: str = "blocks", axis: Any = (2, 3), ddof: int = 0, root: str = "inside",
    along: str = "channels", gain: bool = True, shift: bool = True, widen: bool = True,
) -> Array:  # fmt: skip
    """GroupNorm with one thing changed: the defaults are right."""
    n, c, length = x.shape
    each = c // groups
    place = np.arange(c * length)
    orders: dict[str, Callable[[], Array]] = {  # where the entries of (group, channel, position) lie in an example
        "blocks": lambda: place.reshape(groups, each, length),
        "strided": lambda: place.reshape(each, groups, length).swapaxes(0, 1),
        "sizes": lambda: place.reshape(each, groups, length),
        "reshaped": lambda: place.reshape(length, groups, each).transpose(1, 2, 0),
    }
    order = orders[layout]()
    v = (wide(x) if widen else x).reshape(n, -1)[:, order]  # (n, group, channel, position)
    mean, var = v.mean(axis, keepdims=True), v.var(axis, ddof=ddof, keepdims=True)
    xhat = np.empty((n, c * length), v.dtype)
    xhat[:, order.ravel()] = ((v - mean) / divisor(var, eps, root)).reshape(n, -1)
    to = (ALL, None) if along == "channels" else (None, ALL)
    y = xhat.reshape(x.shape) * (gamma[to] if gain else 1) + (beta[to] if shift else 0)
    return np.asarray(y.astype(x.dtype))


def _grouped(x: Array, groups: int) -> Array:
    return x.reshape(len(x), groups, -1)


group_norm = Exercise(
    name="group_norm",
    level=2,
    minutes=15,
    chapter="03b-batch-group-instance",
    objective="write GroupNorm, and say which entries share a statistic",
    reference=_group_norm,
    cases=_group_norm_cases,
    mistakes=[
        Mistake(
            "whole_example",
            "all groups share one mean and one variance; each group has its own.",
            partial(_group_norm, axis=(1, 2, 3)),
            GITHUB + "brainpy/BrainPy/issues/765",
        ),
        Mistake(
            "each_position",
            "each position has statistics of its own; GroupNorm takes them over all positions as well.",
            partial(_group_norm, axis=2),
        ),
        Mistake(
            "each_channel",
            "each channel has statistics of its own: that is InstanceNorm; the channels of a group share them.",
            partial(_group_norm, axis=3),
        ),
        Mistake(
            "batch_too",
            "all examples share the statistics; each example has its own.",
            partial(_group_norm, axis=(0, 2, 3)),
        ),
        Mistake(
            "strided",
            "the channels are dealt out to the groups in turn; a group is a block of channels that follow each other.",
            partial(_group_norm, layout="strided"),
            GITHUB + "tenstorrent/tt-metal/pull/56202",
        ),
        Mistake(
            "group_size",
            "groups is taken for the number of channels in a group; it is the number of groups.",
            partial(_group_norm, layout="sizes"),
            GITHUB + "IAmSuyogJadhav/3d-mri-brain-tumor-segmentation-using-autoencoder-regularization/issues/12",
        ),
        Mistake(
            "reshaped",
            "the reshape mixes channels and positions, as if channels came last; here they are axis 1.",
            partial(_group_norm, layout="reshaped"),
            GITHUB + "tensorflow/addons/issues/751",
        ),
        Mistake(
            "along_positions",
            "gamma and beta lie along the last axis, the positions; they belong to the channels: gamma[:, None].",
            partial(_group_norm, along="positions"),
        ),
        Mistake(
            "ddof1",
            "your variance is unbiased; divide by the number of entries of a group, not by one less.",
            partial(_group_norm, ddof=1),
        ),
        Mistake(
            "eps_outside",
            EPS_OUTSIDE,
            partial(_group_norm, root="outside"),
        ),
        Mistake(
            "no_eps",
            NO_EPS,
            partial(_group_norm, root="no_eps"),
        ),
        Mistake(
            "fixed_eps",
            FIXED_EPS,
            partial(_group_norm, root="fixed"),
        ),
        Mistake(
            "no_gain_no_shift",
            XHAT,
            partial(_group_norm, gain=False, shift=False),
        ),
        Mistake("no_gamma", "gamma is not used: it multiplies each channel.", partial(_group_norm, gain=False)),
        Mistake("no_beta", "beta is not used: it is added to each channel.", partial(_group_norm, shift=False)),
        Mistake(
            "float16",
            FLOAT16,
            partial(_group_norm, widen=False),
            GITHUB + "neuroneural/brainchop-cli/pull/56",
        ),
    ],
    facts=[
        (
            "(y - beta) / gamma has mean 0 in every group",
            lambda y, x, groups, gamma, beta, eps: np.allclose(
                _grouped((y - beta[:, None]) / gamma[:, None], groups).mean(-1), 0, atol=1e-6
            ),
        ),
        (
            "(y - beta) / gamma has variance var / (var + eps) in every group",
            lambda y, x, groups, gamma, beta, eps: np.allclose(
                _grouped((y - beta[:, None]) / gamma[:, None], groups).var(-1),
                _grouped(x, groups).var(-1) / (_grouped(x, groups).var(-1) + eps),
                atol=1e-6,
            ),
        ),
    ],
)


# 5: a module of PyTorch


def _module_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, shape: tuple[int, ...], eps: float) -> Case:
        d = shape[-1]
        state = {"weight": rng.normal(1, 0.3, d).astype("float32"), "bias": rng.normal(0, 0.5, d).astype("float32")}
        x, dy = (rng.normal(0, 1, shape).astype("float32") for _ in range(2))
        return Case(name, (d, eps, state, x, dy))

    return [
        case("d = 8 and eps = 0.5, a (3, 8) batch", (3, 8), 0.5),
        case("d = 6 and eps = 1e-5, a square batch", (6, 6), 1e-5),
        case("d = 8 and eps = 1e-5, a (2, 5, 8) batch of sequences", (2, 5, 8), 1e-5),
    ]


@functools.cache
def _module() -> type:
    """A module with LayerNorm in it, with one thing changed: the defaults are right. PyTorch is not loaded before."""
    import torch

    class LayerNorm(torch.nn.Module):
        def __init__(
            self, d: int, eps: float,
            names: tuple[str, str] = ("weight", "bias"), kind: str = "parameter", shape: tuple[int, ...] = (),
            gain: float = 1, unbiased: bool = False, root: str = "inside", axis: int = -1, detach: bool = False,
            bias: bool = True, mean: bool = True,
        ) -> None:  # fmt: skip
            super().__init__()
            self.eps, self.unbiased, self.root, self.axis = eps, unbiased, root, axis
            self.detach, self.mean, self.names = detach, mean, names if bias else names[:1]
            for name, start in zip(self.names, (gain, 0.0), strict=False):
                value = torch.full((*shape, d), float(start))
                if kind != "plain":
                    value = torch.nn.Parameter(value, requires_grad=kind == "parameter")
                setattr(self, name, value)

        def forward(self, x: Any) -> Any:
            mean = x.mean(self.axis, keepdim=True)
            var = x.var(self.axis, unbiased=self.unbiased, keepdim=True)
            if self.detach:
                mean, var = mean.detach(), var.detach()
            root = (var + self.eps).sqrt() if self.root == "inside" else var.sqrt() + self.eps
            xhat = (x - mean if self.mean else x) / root
            gain, *shift = (getattr(self, name) for name in self.names)
            return gain * xhat + shift[0] if shift else gain * xhat

    return LayerNorm


def _make_layer_norm(d: int, eps: float, wrap: bool = False, fixed_eps: float | None = None, **changes: Any) -> Any:
    module = _module()(d, eps if fixed_eps is None else fixed_eps, **changes)
    return importlib.import_module("torch").nn.Sequential(OrderedDict(norm=module)) if wrap else module


make_layer_norm = Exercise(
    name="make_layer_norm",
    level=2,
    minutes=15,
    chapter="03-layer-normalization",
    objective="write LayerNorm as a module, and check it against PyTorch's to the last digits",
    reference=_make_layer_norm,
    cases=_module_cases,
    way="module",
    mistakes=[
        Mistake(
            "names",
            "your parameters are called gamma and beta; a torch.nn.LayerNorm saves weight and bias.",
            partial(_make_layer_norm, names=("gamma", "beta")),
            GITHUB + "huggingface/candle/pull/1888",
        ),
        Mistake(
            "plain_tensors",
            "your module has no parameters: a plain tensor is not registered; wrap it in torch.nn.Parameter.",
            partial(_make_layer_norm, kind="plain"),
            GITHUB + "SimonThomine/RememberingNormality/issues/7",
        ),
        Mistake(
            "no_gradient",
            "weight and bias get no gradient, so they would never be trained; make both a torch.nn.Parameter.",
            partial(_make_layer_norm, kind="fixed"),
            GITHUB + "harvard-edge/cs249r_book/pull/1504",
        ),
        Mistake(
            "wrapped",
            "your parameters belong to a module inside your module, and are saved under its name, as norm.weight.",
            partial(_make_layer_norm, wrap=True),
        ),
        Mistake(
            "one_row",
            "your parameters have shape (1, d); those of torch.nn.LayerNorm have shape (d,).",
            partial(_make_layer_norm, shape=(1,)),
        ),
        Mistake("bias_missing", "your module has no bias, the shift beta.", partial(_make_layer_norm, bias=False)),
        Mistake(
            "starts_at_zero",
            "the gain starts at 0, so that all outputs are 0 at first; it starts at 1.",
            partial(_make_layer_norm, gain=0),
        ),
        Mistake(
            "unbiased",
            "x.var() and x.std() divide by d - 1 unless told otherwise; LayerNorm divides by d: unbiased=False.",
            partial(_make_layer_norm, unbiased=True),
            GITHUB + "harvardnlp/annotated-transformer/pull/119",
        ),
        Mistake(
            "eps_outside",
            "eps is added outside the root; the definition is sqrt(var + eps).",
            partial(_make_layer_norm, root="outside"),
            GITHUB + "hyunwoongko/transformer/issues/7",
        ),
        Mistake(
            "eps_ignored",
            "your module does not use the eps that it is given: it adds 1e-5 whatever comes, or none.",
            partial(_make_layer_norm, fixed_eps=1e-5),
            GITHUB + "NVIDIA-NeMo/Megatron-Bridge/pull/5712",
        ),
        Mistake(
            "axis0",
            "the statistics are taken over axis 0, the batch; LayerNorm takes them over the features, dim=-1.",
            partial(_make_layer_norm, axis=0),
        ),
        Mistake("no_mean", "the mean is not subtracted from x.", partial(_make_layer_norm, mean=False)),
        Mistake(
            "detached",
            "no gradient flows through mean and variance: they depend on x, so leave out detach() and no_grad().",
            partial(_make_layer_norm, detach=True),
            GITHUB + "abhiskk/ladder/issues/2",
        ),
    ],
)


# 6: the backward pass


def _backward_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, shape: tuple[int, ...], scale: float = 1, size: float = 1, edge: bool = False) -> Case:
        gamma = rng.uniform(0.5, 1.5, shape[-1])
        return Case(name, (rng.normal(0.5 * size, size, shape), rng.normal(0, scale, shape), gamma, 1e-5), edge)

    return [
        case("a (3, 8) batch", (3, 8)),
        case("a square batch, (6, 6)", (6, 6)),
        case("a (2, 5, 8) batch of sequences", (2, 5, 8)),
        case("rows of deviation 2e-3, where eps matters", (3, 8), scale=2e-3),
        case("one token, (8,)", (8,), edge=True),
        in_dtype(case("a float16 batch with entries near 400", (3, 8), scale=400, size=400, edge=True), "float16"),
    ]


def _backward(
    dy: Array, x: Array, gamma: Array, eps: float,
    gain: str = "before", mean: float = 1, stretch: bool = True, scale: bool = True, root: str = "inside",
    axis: Any = -1, rows: str = "all", total: str = "sum", factor: str = "xhat", swap: bool = False,
    ddof: int = 0, widen: bool = True,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The gradients of LayerNorm, with one thing changed: the defaults are right."""
    dtype = x.dtype
    if widen:
        dy, x, gamma = wide(dy), wide(x), wide(gamma)
    rstd = 1 / divisor(x.var(-1, ddof=ddof, keepdims=True), eps, root)
    xhat = (x - x.mean(-1, keepdims=True)) * rstd
    dxhat = dy * gamma if gain in ("before", "both") else dy
    dx = dxhat - mean * dxhat.mean(axis, keepdims=True)
    if stretch:
        dx = dx - xhat * (dxhat * xhat).mean(axis, keepdims=True)
    if scale:
        dx = dx * rstd
    if gain == "after":
        dx = dx * gamma
    axes: dict[str, Any] = {"all": tuple(range(x.ndim - 1)), "first": 0, "features": -1}
    collect = np.mean if total == "mean" else np.sum
    terms = {"xhat": dy * xhat, "x": dy * x, "centred": dy * xhat / rstd, "gamma": dy * gamma * xhat}
    dgamma, dbeta = collect(terms[factor], axis=axes[rows]), collect(dy, axis=axes[rows])
    if swap:
        dgamma, dbeta = dbeta, dgamma
    return dx.astype(dtype), dgamma.astype(dtype), dbeta.astype(dtype)


layer_norm_backward = Exercise(
    name="layer_norm_backward",
    level=3,
    minutes=25,
    chapter="03a-layer-norm-backward",
    objective="derive LayerNorm's backward pass, and write it in NumPy",
    reference=sn.layer_norm_backward,
    cases=_backward_cases,
    mistakes=[
        Mistake(
            "constants",
            "mean and variance are treated as constants; they depend on x, and each takes a term away from dxhat.",
            partial(_backward, mean=0, stretch=False),
            GITHUB + "facebookresearch/CrypTen/pull/143",
        ),
        Mistake(
            "no_stretch",
            "the term of the variance is missing: xhat * mean(dxhat * xhat) has to be subtracted.",
            partial(_backward, stretch=False),
        ),
        Mistake(
            "no_shift",
            "the term of the mean is missing: mean(dxhat) has to be subtracted, as RMSNorm alone need not.",
            partial(_backward, mean=0),
        ),
        Mistake(
            "mean_twice",
            "mean(dxhat) is subtracted twice; it is subtracted once.",
            partial(_backward, mean=2),
            GITHUB + "tenstorrent/tt-metal/issues/53204",
        ),
        Mistake(
            "no_gamma",
            "gamma does not reach dx; the gradient that arrives at xhat is dy * gamma.",
            partial(_backward, gain="never"),
            GITHUB + "denizyuret/Knet.jl/issues/288",
        ),
        Mistake(
            "gamma_after",
            "gamma multiplies dx at the end; it differs from feature to feature, so it has to come before the means.",
            partial(_backward, gain="after"),
        ),
        Mistake("no_rstd", "dx is not multiplied by rstd.", partial(_backward, scale=False)),
        Mistake(
            "axis0",
            "the means in dx are taken over the batch, as in BatchNorm; LayerNorm takes them over the features.",
            partial(_backward, axis=0),
        ),
        Mistake(
            "dgamma_of_x",
            "dgamma is the sum of dy * x; gamma multiplies xhat in the forward pass, so it is that of dy * xhat.",
            partial(_backward, factor="x"),
        ),
        Mistake(
            "dgamma_unscaled",
            "dgamma is the sum of dy * (x - mean), without rstd; gamma multiplies xhat in the forward pass.",
            partial(_backward, factor="centred"),
        ),
        Mistake(
            "gamma_in_dgamma",
            "dgamma contains gamma; it is the sum of dy * xhat, with dy as it arrived.",
            partial(_backward, factor="gamma"),
        ),
        Mistake(
            "sum_of_features",
            "dgamma and dbeta are summed over the features; each feature has its own, summed over all tokens.",
            partial(_backward, rows="features"),
        ),
        Mistake(
            "first_axis",
            "dgamma and dbeta are summed over axis 0 alone; sum over every axis but the last.",
            partial(_backward, rows="first"),
            GITHUB + "flagos-ai/FlagGems/issues/5392",
        ),
        Mistake(
            "mean_of_rows",
            "dgamma and dbeta are averaged over the tokens; every token adds its part, so they are sums.",
            partial(_backward, total="mean"),
        ),
        Mistake(
            "swapped",
            "dgamma and dbeta have changed places; the order is dx, dgamma, dbeta.",
            partial(_backward, swap=True),
            GITHUB + "Oneflow-Inc/oneflow/pull/6149",
        ),
        Mistake("no_eps", "eps is not used in rstd: it is 1 / sqrt(var + eps).", partial(_backward, root="no_eps")),
        Mistake(
            "ddof1",
            DDOF1,
            partial(_backward, ddof=1),
        ),
        Mistake(
            "float16",
            "float16 overflows in the squares; compute in float32, and give the results the dtype of the inputs.",
            partial(_backward, widen=False),
        ),
    ],
    facts=[
        ("every row of dx sums to 0", lambda y, dy, x, gamma, eps: np.allclose(y[0].sum(-1) * x.std(), 0, atol=1e-6)),
        ("dx is right", lambda y, dy, x, gamma, eps: equal(y[0], _backward(dy, x, gamma, eps)[0])),
        ("dgamma is right", lambda y, dy, x, gamma, eps: equal(y[1], _backward(dy, x, gamma, eps)[1])),
        ("dbeta is right", lambda y, dy, x, gamma, eps: equal(y[2], _backward(dy, x, gamma, eps)[2])),
    ],
)

EXERCISES = [layer_norm, invariances, fold, group_norm, make_layer_norm, layer_norm_backward]
