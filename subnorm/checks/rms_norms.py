"""The exercises on RMSNorm."""

from functools import partial
from typing import Any

import numpy as np

from subnorm import numpy as sn
from subnorm.checks.collect import Case, Sublayer
from subnorm.checks.exercise import Exercise, Mistake
from subnorm.checks.shared import FIXED_EPS, NO_GAMMA

Array = np.ndarray[Any, Any]
Pair = tuple[Array, Array]


def _rows(rng: np.random.Generator, shape: tuple[int, ...], scale: float = 1) -> Array:
    """Rows with a mean that is not 0. Among three axes, the sequences are of different sizes."""
    x = rng.normal(0.5, 1, shape) * scale
    return x * np.array([1.0, 3.0])[:, None, None] if len(shape) == 3 else x


def _gains(rng: np.random.Generator, d: int) -> Array:
    return rng.normal(1.5, 0.3, d)


def _each(args: tuple[Any, ...], dtype: str) -> tuple[Any, ...]:
    """The same inputs, with every array in one dtype."""
    return tuple(a.astype(dtype) if isinstance(a, np.ndarray) else a for a in args)


# The norm itself, and its two orders in half precision


def _cases(rng: np.random.Generator) -> list[Case]:
    """Inputs on which each mistake shows in its own way. The rows are short, so that a forgotten d is plain to see."""

    def args(shape: tuple[int, ...], scale: float = 1) -> tuple[Any, ...]:
        return _rows(rng, shape, scale), _gains(rng, shape[-1]), 1e-5 if scale > 0.1 else 4e-6

    return [
        Case("a (3, 8) batch", args((3, 8))),
        Case("a square batch, (6, 6)", args((6, 6))),
        Case("a (2, 5, 8) batch of sequences", args((2, 5, 8))),
        Case("rows of size 2e-3, where eps matters", args((3, 8), 2e-3)),
        Case("one token, (8,)", args((8,))),
        Case("a float16 batch with entries near 400", _each(args((3, 8), 400), "float16"), edge=True),
    ]


def _half_cases(rng: np.random.Generator, offset: float) -> list[Case]:
    """Half-precision inputs. ``offset`` is what the function adds to the gains that it is given.

    Two gains of float32 show where the cast is: in the dtype of the result, and in its values where a row has one
    large entry. The others are then so small that float16 has few digits left for them; large gains bring that up.
    """

    def args(shape: tuple[int, ...], scale: float = 1, eps: float = 1e-5) -> tuple[Any, ...]:
        return *_each((_rows(rng, shape, scale), _gains(rng, shape[-1]) - offset), "float16"), eps

    x, gamma, eps = args((3, 8))
    spiked = rng.uniform(0.003, 0.009, (3, 8))
    spiked[:, 0] = 60000
    steep = rng.uniform(4e6, 6e6, 8)
    steep[0] = 1
    return [
        Case("a (3, 8) float16 batch", args((3, 8))),
        Case("a square float16 batch, (6, 6)", args((6, 6))),
        Case("a (2, 5, 8) float16 batch of sequences", args((2, 5, 8))),
        Case("float16 rows of size 0.1 and eps = 0.01", args((3, 8), 0.1, 0.01)),
        Case("a float16 batch with entries near 400", args((3, 8), 400), edge=True),
        Case("a float16 batch with float32 gains", (x, gamma.astype("float32"), eps), edge=True),
        Case(
            "float16 rows with one entry of 60000 and float32 gains in the millions",
            (spiked.astype("float16"), steep.astype("float32"), eps),
            edge=True,
        ),
    ]


def _wrong(
    x: Array, gamma: Array, eps: float,
    axis: Any = -1, keepdims: bool = True, centre: bool = False, of: str = "squares", root: str = "inside",
    gain: str = "gamma", wide: bool = True, cast: str = "last",
) -> Array:  # fmt: skip
    """RMSNorm with one thing changed: the defaults are right."""
    dtype, x = x.dtype, x.astype(np.float32) if wide and x.dtype == np.float16 else x
    axis = tuple(range(x.ndim))[-2:] if axis == "sequence" else axis
    x = x - x.mean(-1, keepdims=True) if centre else x
    mean = {
        "squares": lambda: (x * x).mean(axis, keepdims=keepdims),
        "sum": lambda: (x * x).sum(axis, keepdims=keepdims),
        "variance": lambda: x.var(axis, keepdims=keepdims),
        "sizes": lambda: np.abs(x).mean(axis, keepdims=keepdims) ** 2,
    }[of]()
    divisor = {
        "inside": lambda: np.sqrt(mean + eps),
        "outside": lambda: np.sqrt(mean) + eps,
        "none": lambda: np.sqrt(mean),
        "missing": lambda: mean + eps,
        "twice": lambda: np.sqrt(np.sqrt(mean) + eps),
        "fixed": lambda: np.sqrt(mean + 1e-6),
        "torch's": lambda: np.sqrt(mean + 1e-5),
        "shared": lambda: np.sqrt(mean + eps / x.shape[-1]),
        "reciprocal": lambda: 1 / np.sqrt(mean + eps),
        "by d": lambda: np.sqrt(mean) * x.shape[-1],
    }[root]()
    xhat = x / divisor
    wide_gamma = gamma.astype(np.promote_types(gamma.dtype, np.float32))
    by = {
        "gamma": wide_gamma if cast == "last" else gamma,
        "none": gamma.dtype.type(1),
        "one more": 1 + (wide_gamma if cast == "last" else gamma),
        "two more": 2 + wide_gamma,
    }[gain]
    if cast == "last":
        return (by * xhat).astype(dtype)
    if cast == "never":
        return by * xhat
    y = by * xhat.astype(dtype)
    return y.astype(dtype) if cast == "first and last" else y


def _in_place(x: Array, gamma: Array, eps: float) -> Array:
    dtype = x.dtype
    x = x.astype(np.promote_types(dtype, np.float32), copy=False)
    x /= np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return (gamma * x).astype(dtype)


EPS_OUTSIDE = "eps is added outside the root, sqrt(mean) + eps; the definition is sqrt(mean + eps)."
NO_EPS = "the eps that comes in is not used; the definition divides by sqrt(mean(x²) + eps)."
AXIS_0 = "the mean square is taken over the batch; RMSNorm takes it over the features of each token, axis -1."
KEEPDIMS = "without keepdims=True the mean square loses its last axis, and divides along the wrong one."
CENTRED = "the mean is subtracted first: that is LayerNorm without beta. RMSNorm takes x as it is."
VARIANCE = "you divide by the root of the variance, which has the mean taken out; RMSNorm takes the mean of x² itself."
SUM = "the squares are added up; RMSNorm takes their mean."
FLOAT16 = "float16 overflows in the squares: square in float32."

rms_norm = Exercise(
    name="rms_norm",
    level=1,
    minutes=10,
    chapter="04-rmsnorm",
    objective="write RMSNorm from its formula, in NumPy",
    reference=sn.rms_norm,
    cases=_cases,
    mistakes=[
        Mistake(
            "layer_norm", CENTRED, partial(_wrong, centre=True), "https://github.com/ggml-org/llama.cpp/issues/173"
        ),
        Mistake(
            "variance",
            VARIANCE,
            partial(_wrong, of="variance"),
            "https://github.com/huggingface/pytorch-image-models/issues/2380",
        ),
        Mistake("sum", SUM, partial(_wrong, of="sum")),
        Mistake(
            "d_upside_down",
            "x divided by its length is then divided by sqrt(d); the length is sqrt(d) times the root mean square, so "
            "the factor is sqrt(d).",
            partial(_wrong, root="by d"),
            "https://github.com/kyegomez/zeta/issues/180",
        ),
        Mistake(
            "sizes",
            "you take the mean of |x|; RMSNorm takes the mean of x², then the root.",
            partial(_wrong, of="sizes"),
        ),
        Mistake("axis0", AXIS_0, partial(_wrong, axis=0)),
        Mistake(
            "sequence",
            "one mean square is taken of a whole sequence; each token has its own, over axis -1.",
            partial(_wrong, axis="sequence"),
            "https://github.com/bkitano/llama-from-scratch/issues/4",
        ),
        Mistake(
            "all_axes",
            "one mean square is taken of the whole array; each token has its own, over axis -1.",
            partial(_wrong, axis=None),
        ),
        Mistake("keepdims", KEEPDIMS, partial(_wrong, keepdims=False)),
        Mistake(
            "eps_outside",
            EPS_OUTSIDE,
            partial(_wrong, root="outside"),
            "https://github.com/allenai/OLMo/issues/281",
        ),
        Mistake("no_eps", NO_EPS, partial(_wrong, root="none")),
        Mistake(
            "fixed_eps",
            "eps is 1e-6 whatever comes in; use the eps that the function is given.",
            partial(_wrong, root="fixed"),
            "https://github.com/apache/tvm/pull/15856",
        ),
        Mistake(
            "fixed_eps_1e_5",
            FIXED_EPS,
            partial(_wrong, root="torch's"),
        ),
        Mistake(
            "one_plus_gamma",
            "the result is multiplied by 1 + gamma; that is Gemma's norm, and here gamma itself is the gain.",
            partial(_wrong, gain="one more"),
        ),
        Mistake(
            "eps_in_sum",
            "eps is added to the sum of the squares; it belongs to their mean, where it counts d times as much.",
            partial(_wrong, root="shared"),
            "https://github.com/patrick-kidger/equinox/pull/545",
        ),
        Mistake(
            "no_root",
            "you divide by mean(x²) + eps; the definition divides by its root.",
            partial(_wrong, root="missing"),
        ),
        Mistake(
            "two_roots",
            "the root is taken twice, sqrt(rms + eps); the definition has one, sqrt(mean(x²) + eps).",
            partial(_wrong, root="twice"),
            "https://github.com/pytorch/pytorch/issues/139274",
        ),
        Mistake(
            "multiplied",
            "x is multiplied by the root, or divided by its reciprocal (rsqrt); RMSNorm divides x by the root.",
            partial(_wrong, root="reciprocal"),
            "https://github.com/mosaicml/llm-foundry/issues/371",
        ),
        Mistake("no_gamma", NO_GAMMA, partial(_wrong, gain="none")),
        Mistake(
            "writes_to_x",
            "x itself is changed (an operator such as /= writes into it), and whoever else reads it gets the "
            "normalised one: make a new array.",
            _in_place,
            "https://github.com/GeeeekExplorer/nano-vllm/issues/170",
        ),
        Mistake(
            "float16",
            FLOAT16 + " The result has the dtype of x.",
            partial(_wrong, wide=False),
            "https://github.com/pytorch/pytorch/pull/133085",
        ),
    ],
    facts=[
        (
            "y / gamma has mean square s / (s + eps) in every row, with s that of x",
            lambda y, x, gamma, eps: np.allclose(((y / gamma) ** 2).mean(-1), 1 - eps / ((x * x).mean(-1) + eps)),
        ),
        (
            "each row of y / gamma is the row of x times one number",
            lambda y, x, gamma, eps: np.ptp(y / gamma / x, axis=-1).max() < 1e-6 * np.abs(y / gamma / x).max(),
        ),
    ],
)

_llama = partial(_wrong, cast="first")

llama_rms_norm = Exercise(
    name="llama_rms_norm",
    level=2,
    minutes=10,
    chapter="04-rmsnorm",
    objective="say where a half-precision RMSNorm widens and where it narrows",
    reference=_llama,
    cases=partial(_half_cases, offset=0),
    mistakes=[
        Mistake(
            "cast_last",
            "the gain is multiplied in float32, and the cast comes last; in this order xhat is cast to the dtype of x "
            "before the gain.",
            partial(_wrong, cast="last"),
            "https://github.com/vllm-project/vllm/issues/42325",
        ),
        Mistake(
            "never_cast",
            "the result is float32 where x and gamma are float16: cast xhat to the dtype of x before the gain, "
            "and leave gamma as it comes.",
            partial(_wrong, cast="never"),
        ),
        Mistake(
            "cast_twice",
            "the product is cast to the dtype of x once more; in this order only xhat is cast, and float32 gains give "
            "a float32 result.",
            partial(_wrong, cast="first and last"),
            "https://github.com/huggingface/transformers/issues/30236",
        ),
        Mistake(
            "one_more",
            "the result is multiplied by 1 + gamma; that is Gemma's norm, and here gamma itself is the gain.",
            partial(_llama, gain="one more"),
            "https://github.com/utensils/mold/pull/1078",
        ),
        Mistake("float16", FLOAT16, partial(_llama, wide=False), "https://github.com/jingyaogong/minimind/issues/301"),
        Mistake(
            "layer_norm", CENTRED, partial(_llama, centre=True), "https://github.com/mit-han-lab/omniserve/issues/32"
        ),
        Mistake(
            "variance", VARIANCE, partial(_llama, of="variance"), "https://github.com/keras-team/keras/issues/21234"
        ),
        Mistake("sum", SUM, partial(_llama, of="sum")),
        Mistake("eps_outside", EPS_OUTSIDE, partial(_llama, root="outside")),
        Mistake("no_eps", NO_EPS, partial(_llama, root="none")),
        Mistake("axis0", AXIS_0, partial(_llama, axis=0)),
        Mistake("keepdims", KEEPDIMS, partial(_llama, keepdims=False)),
        Mistake("no_gamma", NO_GAMMA, partial(_llama, gain="none")),
    ],
)

_gemma = partial(_wrong, gain="one more")

gemma_rms_norm = Exercise(
    name="gemma_rms_norm",
    level=2,
    minutes=10,
    chapter="04-rmsnorm",
    objective="port a norm without changing its gain or its order of casts",
    reference=_gemma,
    cases=partial(_half_cases, offset=1),
    mistakes=[
        Mistake(
            "gamma_alone",
            "the result is multiplied by gamma; what is stored here is the gain less 1, so multiply by 1 + gamma.",
            partial(_wrong),
            "https://github.com/linkedin/Liger-Kernel/issues/74",
        ),
        Mistake(
            "two_more",
            "1 is added twice; multiply by 1 + gamma.",
            partial(_wrong, gain="two more"),
            "https://github.com/Blaizzy/mlx-vlm/pull/2114",
        ),
        Mistake(
            "cast_first",
            "xhat is cast before the gain, as in Llama's order; here the product is made in float32 and cast last.",
            partial(_gemma, cast="first"),
            "https://github.com/vllm-project/vllm/pull/3653",
        ),
        Mistake("never_cast", "nothing is cast back: the result has the dtype of x.", partial(_gemma, cast="never")),
        Mistake("no_gamma", "gamma is not used: multiply by 1 + gamma.", partial(_wrong, gain="none")),
        Mistake("float16", FLOAT16, partial(_gemma, wide=False)),
        Mistake("layer_norm", CENTRED, partial(_gemma, centre=True)),
        Mistake("variance", VARIANCE, partial(_gemma, of="variance")),
        Mistake("sum", SUM, partial(_gemma, of="sum")),
        Mistake("eps_outside", EPS_OUTSIDE, partial(_gemma, root="outside")),
        Mistake("no_eps", NO_EPS, partial(_gemma, root="none")),
        Mistake("keepdims", KEEPDIMS, partial(_gemma, keepdims=False)),
    ],
)


# From RMSNorm to LayerNorm and back


def _composed_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, shape: tuple[int, ...]) -> Case:
        d = shape[-1]
        return Case(name, (_rows(rng, shape), Sublayer("peak"), _gains(rng, d), rng.normal(0.5, 0.5, d)))

    return [
        case("a (3, 8) batch", (3, 8)),
        case("a square batch, (6, 6)", (6, 6)),
        case("a (2, 5, 8) batch of sequences", (2, 5, 8)),
        case("one token, (8,)", (8,)),
    ]


def _composed(
    x: Array, norm: Any, gamma: Array, beta: Array,
    axis: Any = -1, keepdims: bool = True, centre: str = "before", affine: str = "gamma, beta",
) -> Array:  # fmt: skip
    """LayerNorm from another norm, with one thing changed: the defaults are right."""

    def centred(x: Array, where: str) -> Array:
        return x - x.mean(axis, keepdims=keepdims) if where in centre else x

    x = centred(x, "before")
    xhat = centred(norm(gamma * x if affine == "gain first" else x), "after")
    y = {
        "gamma, beta": lambda: gamma * xhat + beta,
        "gamma": lambda: gamma * xhat,
        "beta": lambda: xhat + beta,
        "beta, gamma": lambda: gamma * (xhat + beta),
        "gain first": lambda: xhat + beta,
    }[affine]()
    return centred(y, "last")


def _composed_in_place(x: Array, norm: Any, gamma: Array, beta: Array) -> Array:
    x -= x.mean(-1, keepdims=True)
    return gamma * norm(x) + beta


layer_norm_from_rms = Exercise(
    name="layer_norm_from_rms",
    level=1,
    minutes=10,
    chapter="04-rmsnorm",
    objective="name the one difference between RMSNorm and LayerNorm, and turn one into the other",
    reference=_composed,
    cases=_composed_cases,
    mistakes=[
        Mistake(
            "no_centre",
            "the mean stays in: LayerNorm subtracts it before anything else. RMSNorm with beta is not LayerNorm.",
            partial(_composed, centre=""),
        ),
        Mistake(
            "centre_after",
            "the mean is subtracted after rms_norm; subtract it before, so that the mean square is the variance.",
            partial(_composed, centre="after"),
        ),
        Mistake(
            "centre_last",
            "the mean is subtracted from the finished result, and a part of beta goes with it; subtract it from x.",
            partial(_composed, centre="last"),
        ),
        Mistake(
            "axis0",
            "the mean is taken over the batch; LayerNorm takes that of each token, over axis -1.",
            partial(_composed, axis=0),
        ),
        Mistake(
            "all_axes",
            "one mean is taken of the whole array; each token has its own, over axis -1.",
            partial(_composed, axis=None),
        ),
        Mistake(
            "keepdims",
            "without keepdims=True the mean loses its last axis, and is subtracted along the wrong one.",
            partial(_composed, keepdims=False),
        ),
        Mistake("no_gamma", NO_GAMMA, partial(_composed, affine="beta")),
        Mistake("no_beta", "beta is not used: it is added to each feature.", partial(_composed, affine="gamma")),
        Mistake(
            "beta_first",
            "beta is added before the gain, and is multiplied by it; the definition is gamma * xhat + beta.",
            partial(_composed, affine="beta, gamma"),
        ),
        Mistake(
            "gain_first",
            "the gain is applied before rms_norm, which then measures other sizes; apply it to what rms_norm returns.",
            partial(_composed, affine="gain first"),
        ),
        Mistake(
            "own_norm",
            "this is LayerNorm, but not made from the norm that you were given: the check hands in one of its own.",
            lambda x, norm, gamma, beta: sn.layer_norm(x, gamma, beta),
        ),
        Mistake(
            "writes_to_x",
            "x itself is changed (an operator such as -= writes into it): make a new array.",
            _composed_in_place,
        ),
    ],
)


def _writer_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, inputs: int, d: int) -> Case:
        return Case(name, (rng.normal(0.3, 1, (inputs, d)), rng.normal(0.5, 1, d)))

    return [
        case("a (5, 8) weight", 5, 8),
        case("a square weight, (6, 6)", 6, 6),
        case("a (12, 4) weight", 12, 4),
        case("a weight with one input, (1, 8)", 1, 8),
    ]


def _centred(weight: Array, bias: Array, axis: Any = -1, keepdims: bool = True, what: str = "both") -> Pair:
    """A writer without its mean, with one thing changed: the defaults are right."""
    mean, mean_bias = weight.mean(axis, keepdims=keepdims), bias.mean()
    d = weight.shape[-1]
    if what == "the mean":
        return np.broadcast_to(mean, weight.shape).copy(), np.full(bias.shape, mean_bias)
    if what == "sums":
        return weight - d * mean, bias - d * mean_bias
    if what == "scaled":
        return (weight - mean) / weight.std(axis, keepdims=True), (bias - mean_bias) / bias.std()
    if what == "no bias":
        return weight - mean, np.zeros_like(bias)
    return weight - mean if what != "bias" else weight, bias - mean_bias if what != "weight" else bias


def _centred_in_place(weight: Array, bias: Array) -> Pair:
    weight -= weight.mean(-1, keepdims=True)
    bias -= bias.mean()
    return weight, bias


centre_writer = Exercise(
    name="centre_writer",
    level=2,
    minutes=10,
    chapter="04-rmsnorm",
    objective="turn a Pre-LN transformer into a Pre-RMSNorm transformer that computes the same function",
    reference=_centred,
    cases=_writer_cases,
    mistakes=[
        Mistake(
            "inputs",
            "the mean is taken over the inputs of the layer (axis 0); what must sum to 0 is each row, over the "
            "features that the layer writes.",
            partial(_centred, axis=0),
            "https://github.com/spcl/QuaRot/issues/57",
        ),
        Mistake(
            "one_mean",
            "one mean is taken of the whole weight; each of its rows has its own.",
            partial(_centred, axis=None),
        ),
        Mistake(
            "keepdims",
            "without keepdims=True the means lie along the wrong axis when they are subtracted.",
            partial(_centred, keepdims=False),
        ),
        Mistake(
            "weight_alone",
            "the bias keeps its mean, and writes it into every token; centre it too.",
            partial(_centred, what="weight"),
        ),
        Mistake(
            "bias_alone",
            "the weight keeps its means; each of its rows is centred, as the bias is.",
            partial(_centred, what="bias"),
        ),
        Mistake(
            "bias_lost",
            "the bias is set to 0; take out its mean, and keep its deviations.",
            partial(_centred, what="no bias"),
        ),
        Mistake(
            "sums",
            "the sums are subtracted; C = I − 11ᵀ/d subtracts the means.",
            partial(_centred, what="sums"),
        ),
        Mistake(
            "scaled",
            "the weight is also divided by its deviation; centring only subtracts: the norm does the rest.",
            partial(_centred, what="scaled"),
        ),
        Mistake(
            "the_mean",
            "this is the part that must go, 11ᵀ/d; C = I − 11ᵀ/d keeps the rest.",
            partial(_centred, what="the mean"),
        ),
        Mistake(
            "writes_to_weight",
            "the weight itself is changed (an operator such as -= writes into it): make a new array.",
            _centred_in_place,
        ),
    ],
    facts=[
        ("each row of the weight sums to 0", lambda y, weight, bias: np.allclose(y[0].sum(-1), 0, atol=1e-9)),
        ("the bias sums to 0", lambda y, weight, bias: np.isclose(y[1].sum(), 0, atol=1e-9)),
    ],
)


# The fused pair


def _add_cases(rng: np.random.Generator) -> list[Case]:
    def args(shape: tuple[int, ...], scale: float = 1) -> tuple[Any, ...]:
        eps = 1e-5 if scale > 0.1 else 4e-6
        return _rows(rng, shape, scale), _rows(rng, shape, scale), _gains(rng, shape[-1]), eps

    return [
        Case("a (3, 8) batch", args((3, 8))),
        Case("a square batch, (6, 6)", args((6, 6))),
        Case("a (2, 5, 8) batch of sequences", args((2, 5, 8))),
        Case("rows of size 2e-3, where eps matters", args((3, 8), 2e-3)),
        Case("one token, (8,)", args((8,))),
        Case("a float16 batch with entries near 400", _each(args((3, 8), 400), "float16"), edge=True),
    ]


def _added(
    x: Array, branch: Array, gamma: Array, eps: float,
    stream: str = "x + branch", normed: str = "x + branch", gain: str = "gamma",
    root: str = "inside", wide: bool = True,
) -> Pair:  # fmt: skip
    """The sum and its norm, with one thing changed: the defaults are right."""
    norm = partial(_wrong, eps=eps, root=root, wide=wide)
    sums = {"x + branch": x + branch, "x": x, "branch": branch, "twice": x + branch + branch}
    y = norm(sums[normed], gamma, gain=gain)
    ends = {
        **sums,
        "y": y,
        "xhat": norm(sums["x + branch"], gamma, gain="none"),
        "x + y": x + y,
        "branch + y": branch + y,
    }
    return y, ends[stream]


def _added_in_place(x: Array, branch: Array, gamma: Array, eps: float) -> Pair:
    x += branch
    return sn.rms_norm(x, gamma, eps), x


add_rms_norm = Exercise(
    name="add_rms_norm",
    level=2,
    minutes=10,
    chapter="04-rmsnorm",
    objective="add a branch and normalise the sum in one step, as fused kernels do, and keep both results",
    reference=_added,
    cases=_add_cases,
    mistakes=[
        Mistake(
            "old_stream",
            "the stream comes back without the branch: the second result is x + branch.",
            partial(_added, stream="x"),
            "https://github.com/UbiquitousLearning/mllm/pull/670",
        ),
        Mistake(
            "normed_stream",
            "the stream comes back normalised; the second result is x + branch before the norm, for the next addition.",
            partial(_added, stream="y"),
            "https://github.com/GeeeekExplorer/nano-vllm/issues/170",
        ),
        Mistake(
            "overwritten_stream",
            "the stream was divided in place on the way to y; keep x + branch, and write xhat to a new array.",
            partial(_added, stream="xhat"),
        ),
        Mistake(
            "norm_of_x",
            "y is the norm of x alone; normalise the sum.",
            partial(_added, normed="x"),
        ),
        Mistake(
            "norm_of_branch",
            "y is the norm of the branch alone; normalise the sum.",
            partial(_added, normed="branch"),
        ),
        Mistake(
            "added_twice",
            "the branch is added twice before the norm; y is the norm of x + branch.",
            partial(_added, normed="twice"),
        ),
        Mistake(
            "norm_first",
            "the branch is normalised, then added: that is another block. Add first, then normalise the sum.",
            partial(_added, normed="branch", stream="x + y"),
        ),
        Mistake(
            "swapped",
            "the two results are the right ones in the wrong order: first y, then the stream.",
            lambda x, branch, gamma, eps: _added(x, branch, gamma, eps)[::-1],
        ),
        Mistake("no_gamma", "gamma is not used: it multiplies each feature of y.", partial(_added, gain="none")),
        Mistake("eps_outside", EPS_OUTSIDE, partial(_added, root="outside")),
        Mistake("no_eps", NO_EPS, partial(_added, root="none")),
        Mistake(
            "writes_to_x",
            "x itself is changed (an operator such as += writes into it); whoever still holds x gets another stream.",
            _added_in_place,
        ),
        Mistake("float16", FLOAT16 + " Both results have the dtype of x.", partial(_added, wide=False)),
    ],
)


# The backward pass


def _backward_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, shape: tuple[int, ...], scale: float = 1) -> Case:
        return Case(name, (rng.normal(0.5, 1, shape), _rows(rng, shape, scale), _gains(rng, shape[-1]), 1e-5))

    return [
        case("a (3, 8) batch", (3, 8)),
        case("a square batch, (6, 6)", (6, 6)),
        case("a (2, 5, 8) batch of sequences", (2, 5, 8)),
        case("rows of size 2e-3, where eps matters", (3, 8), 2e-3),
        case("one token, (8,)", (8,)),
    ]


def _wrong_backward(
    dy: Array, x: Array, gamma: Array, eps: float,
    stretch: str = "mean", sign: int = -1, outer: bool = True, gain: bool = True, twice: bool = False,
    centre: bool = False, root: bool = True, keepdims: bool = True, of: str = "dy * xhat", over: str = "rows",
) -> Pair:  # fmt: skip
    """RMSNorm's backward pass with one thing changed: the defaults are right."""
    r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + (eps if root else 0))
    xhat = x * r
    dxhat = dy * gamma if gain else dy
    along = {
        "mean": lambda: (dxhat * xhat).mean(-1, keepdims=keepdims),
        "sum": lambda: (dxhat * xhat).sum(-1, keepdims=True),
        "none": lambda: np.zeros_like(r),
        "of x": lambda: (dxhat * x).mean(-1, keepdims=True),
    }[stretch]()
    dx = dxhat + sign * xhat * along * (gamma if twice else 1)
    dx = dx - dxhat.mean(-1, keepdims=True) if centre else dx
    dx = r * dx if outer else dx
    one, other = of.split(" * ")
    names = {"dy": dy, "dx": dx, "dxhat": dxhat, "x": x, "xhat": xhat}
    each = names[one] * names[other]
    rows = tuple(range(x.ndim - 1))
    return dx, {
        "rows": lambda: each.sum(rows),
        "first axis": lambda: each.sum(0) if x.ndim > 1 else each,
        "nothing": lambda: each,
        "mean": lambda: each.mean(rows),
    }[over]()


rms_norm_backward = Exercise(
    name="rms_norm_backward",
    level=3,
    minutes=20,
    chapter="04-rmsnorm",
    objective="derive the backward pass, and see which directions of the gradient the norm blocks",
    reference=sn.rms_norm_backward,
    cases=_backward_cases,
    mistakes=[
        Mistake(
            "root_constant",
            "dx has one term only, as if the root did not depend on x; the mean square moves with every feature.",
            partial(_wrong_backward, stretch="none"),
        ),
        Mistake(
            "layer_norm",
            "dx subtracts mean(dxhat): that is LayerNorm's term, and comes from subtracting the mean. Leave it out.",
            partial(_wrong_backward, centre=True),
        ),
        Mistake(
            "no_gamma",
            "gamma is missing from dx: the gradient passes the gain first, dxhat = dy * gamma.",
            partial(_wrong_backward, gain=False),
            "https://github.com/karpathy/llm.c/pull/763",
        ),
        Mistake(
            "gamma_twice",
            "the second term of dx has gamma twice: it is in dxhat already.",
            partial(_wrong_backward, twice=True),
            "https://github.com/NVIDIA/Megatron-LM/pull/6859",
        ),
        Mistake(
            "sum",
            "the second term of dx has the sum of dxhat * xhat; the formula has its mean.",
            partial(_wrong_backward, stretch="sum"),
        ),
        Mistake(
            "sign",
            "the second term of dx is added; it is subtracted, since a larger x makes a larger root.",
            partial(_wrong_backward, sign=1),
        ),
        Mistake(
            "x_for_xhat",
            "the mean in dx is that of dxhat * x; it is that of dxhat * xhat.",
            partial(_wrong_backward, stretch="of x"),
        ),
        Mistake(
            "no_rstd",
            "dx lacks the factor 1 / sqrt(mean(x²) + eps) in front.",
            partial(_wrong_backward, outer=False),
        ),
        Mistake(
            "keepdims",
            "without keepdims=True the mean in dx loses its last axis, and each row gets the numbers of other rows.",
            partial(_wrong_backward, keepdims=False),
            "https://github.com/BobMcDear/attorch/issues/17",
        ),
        Mistake(
            "no_eps",
            "eps is not used; the forward pass divides by sqrt(mean(x²) + eps).",
            partial(_wrong_backward, root=False),
        ),
        Mistake(
            "dgamma_not_summed",
            "dgamma has a value for every token; gamma is shared by all, so add them up over every axis but the last.",
            partial(_wrong_backward, over="nothing"),
        ),
        Mistake(
            "dgamma_first_axis",
            "dgamma is summed over the first axis only; add over every axis but the last.",
            partial(_wrong_backward, over="first axis"),
        ),
        Mistake(
            "dgamma_mean",
            "dgamma is a mean over the tokens; gradients of a shared parameter add up.",
            partial(_wrong_backward, over="mean"),
        ),
        Mistake(
            "dgamma_of_x",
            "dgamma is summed from dy * x; gamma multiplies xhat, so it is dy * xhat.",
            partial(_wrong_backward, of="dy * x"),
        ),
        Mistake(
            "dgamma_of_dx",
            "dgamma is summed from dx * xhat: dy was overwritten by dx. It is dy * xhat.",
            partial(_wrong_backward, of="dx * xhat"),
            "https://github.com/unslothai/unsloth/pull/4550",
        ),
        Mistake(
            "dgamma_of_dxhat",
            "dgamma is summed from dxhat * xhat, with the gain in it; it is dy * xhat.",
            partial(_wrong_backward, of="dxhat * xhat"),
        ),
    ],
    facts=[
        (
            "dx is at right angles to x, but for eps",
            lambda y, dy, x, gamma, eps: (
                (np.abs((y[0] * x).sum(-1)) <= 1e-3 * np.linalg.norm(y[0], axis=-1) * np.linalg.norm(x, axis=-1)).all()
                or (x * x).mean() < 1e-3
            ),
        ),
        (
            "dgamma is right",
            lambda y, dy, x, gamma, eps: (
                np.shape(y[1]) == gamma.shape and np.allclose(y[1], sn.rms_norm_backward(dy, x, gamma, eps)[1])
            ),
        ),
    ],
)


# Rows of any size


def _safe_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, x: Array, eps: float) -> Case:
        return Case(name, (x, _gains(rng, x.shape[-1]), eps))

    huge = 1e200
    sizes = np.array([[1], [huge], [0.1]])
    return [
        case("a (3, 8) batch", _rows(rng, (3, 8)), 1e-2),
        case("a square batch, (6, 6), with entries near 1e200", _rows(rng, (6, 6), huge), 1e-2),
        case("a (2, 5, 8) batch with entries near 5 and eps = 0.5", _rows(rng, (2, 5, 8), 5), 0.5),
        case("a batch of rows of size 1, 1e200 and 0.1", _rows(rng, (3, 8)) * sizes, 1e-2),
        case("one token with entries near -1e200, (8,)", -huge * rng.uniform(1, 2, 8), 1e-2),
        case("a batch in which one row is 0", np.insert(_rows(rng, (2, 8)), 1, 0, axis=0), 1e-2),
    ]


def _safe(
    x: Array, gamma: Array, eps: float,
    largest: str = "of row", floor: float = 1, eps_by: int = 2, back: int = 0, mean: bool = True, gain: bool = True,
) -> Array:  # fmt: skip
    """RMSNorm of rows of any size, with one thing changed: the defaults are right."""
    m = {
        "of row": lambda: np.abs(x).max(-1, keepdims=True),
        "of array": lambda: np.abs(x).max(),
        "signed": lambda: x.max(-1, keepdims=True),
        "one": lambda: np.ones(()),
    }[largest]()
    m = np.where(m == 0, floor, m)
    u = x / m
    squares = u * u
    statistic = squares.mean(-1, keepdims=True) if mean else squares.sum(-1, keepdims=True)
    scaled_eps = {0: eps, 1: eps / m, 2: eps / m / m, 3: np.zeros(())}[eps_by]
    y = u * m**back / np.sqrt(statistic + scaled_eps)
    return gamma * y if gain else y


def _clipped(x: Array, gamma: Array, eps: float) -> Array:
    return sn.rms_norm(np.clip(x, -1e150, 1e150), gamma, eps)


safe_rms_norm = Exercise(
    name="safe_rms_norm",
    level=3,
    minutes=15,
    chapter="04-rmsnorm",
    objective="compute RMSNorm of rows whose squares do not fit into any type at hand",
    reference=_safe,
    cases=_safe_cases,
    mistakes=[
        Mistake(
            "overflow",
            "the squares of large entries are infinite, and one over infinity is 0; divide each row by its largest "
            "size before you square.",
            partial(_safe, largest="one"),
            "https://github.com/tenstorrent/tt-metal/issues/55159",
        ),
        Mistake(
            "eps_grown",
            "eps is added to the mean square of the scaled row, which makes it m² times too large; add eps / m².",
            partial(_safe, eps_by=0),
            "https://github.com/apple/coremltools/issues/2821",
        ),
        Mistake(
            "eps_by_m",
            "eps is divided by m; it stands beside squares, so divide it by m².",
            partial(_safe, eps_by=1),
        ),
        Mistake("no_eps", NO_EPS, partial(_safe, eps_by=3)),
        Mistake(
            "zero_row",
            "a row of zeros has the largest size 0, and 0 / 0 is NaN; its result is 0.",
            partial(_safe, floor=0),
            "https://github.com/apple/coremltools/pull/2822",
        ),
        Mistake(
            "one_maximum",
            "one largest size is taken of the whole array, and small rows vanish beside large ones; take one for each.",
            partial(_safe, largest="of array"),
        ),
        Mistake(
            "signed_maximum",
            "the largest entry is taken with its sign; a row of large negative entries needs the largest |x|.",
            partial(_safe, largest="signed"),
        ),
        Mistake(
            "clipped",
            "large entries are cut off: they all become equal, and what set them apart is lost. Scale the row instead.",
            _clipped,
        ),
        Mistake(
            "root_of_scaled",
            "x itself is divided by the root of the scaled row; divide the scaled row by it.",
            partial(_safe, back=1),
        ),
        Mistake(
            "scaled_twice",
            "the result is divided by m once more; m is in the numerator and in the root, and cancels.",
            partial(_safe, back=-1),
        ),
        Mistake("sum", SUM, partial(_safe, mean=False)),
        Mistake("no_gamma", NO_GAMMA, partial(_safe, gain=False)),
    ],
    facts=[("every entry is finite", lambda y, *args: np.isfinite(y).all())],
)

EXERCISES = [
    rms_norm,
    layer_norm_from_rms,
    add_rms_norm,
    llama_rms_norm,
    gemma_rms_norm,
    centre_writer,
    rms_norm_backward,
    safe_rms_norm,
]
