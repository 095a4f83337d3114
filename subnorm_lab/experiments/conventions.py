"""How public code differs in what it calls LayerNorm or RMSNorm: one norm with all the choices, and who made which.

:data:`CONVENTIONS` names each choice with the library and the file in which it was read, the settings of
:func:`norm` that make it, all else as PyTorch has it, and an input on which the difference shows.
:func:`pairs` compares the choices with one another, on the :data:`SAME_INPUTS`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal

import numpy as np

from subnorm.numpy.norms import Array
from subnorm_lab.experiments.precision import FORMATS, Format


def norm(
    x: Array,
    gain: Array | float = 1.0,
    *,
    centre: bool = True,
    power: Literal["same", "variance"] = "same",
    axes: int | tuple[int, ...] = -1,
    groups: tuple[int, Literal["blocks", "strided"]] = (1, "blocks"),
    first: float = 1.0,
    ddof: int = 0,
    one_pass: bool = False,
    prescale: float = 0.0,
    eps: float = 1e-5,
    eps_at: Literal["inside", "outside", "clamp"] = "inside",
    radius: Literal["root", "one"] = "root",
    gain_plus: float = 0.0,
    round_to: Format = FORMATS["float64"],
    round_first: bool = False,
) -> Array:
    """LayerNorm, RMSNorm, and their relatives in public code.

    ``y = (gain_plus + gain) * (x - mean) / divisor``, where the divisor is the root of a mean of squares.

    Args:
        x: input.
        gain: broadcast against x.
        centre: subtract the mean: LayerNorm, otherwise RMSNorm.
        power: "variance" divides by the standard deviation even if nothing is subtracted.
        axes: over which the statistics run.
        groups: the number of groups into which the last axis is split, each with statistics of its own; and whether
            group k is the k-th block of neighbours, or every g-th feature from k on ("strided").
        first: the share of the last axis, from its beginning, on which the statistics are computed.
        ddof: subtracted from the count in the mean of the squares.
        one_pass: the variance as the mean of the squares minus the square of the mean, clamped at 0.
        prescale: first scale the whole array so that its largest absolute value is this; 0 for no.
        eps: the small constant.
        eps_at: under the root, added to the root, or as the least divisor of the length ("clamp").
        radius: rows of length sqrt(d), or of length 1.
        gain_plus: added to the gain; 1 where the gain is stored less 1.
        round_to: the format of the result. With `one_pass` the statistics are rounded to it, too.
        round_first: round before the gain as well.

    Returns:
        y, in the shape of x.
    """
    if prescale:
        x = x * (prescale / np.abs(x).max())
    count, order = groups
    split = _split(x, count, order)
    used = split[..., : round(first * split.shape[-1])]
    over = axes if count == 1 else -1
    mean = used.mean(axis=over, keepdims=True)
    if one_pass:
        square = round_to((used * used).mean(axis=over, keepdims=True))
        mean = round_to(mean)
        squares = np.maximum(round_to(square - round_to(mean * mean)), 0.0)
    elif centre or power == "variance":
        squares = used.var(axis=over, keepdims=True, ddof=ddof)
    else:
        squares = (used * used).mean(axis=over, keepdims=True)
    size = np.sqrt(np.prod([used.shape[k] for k in np.atleast_1d(over)]))
    xhat = (split - mean if centre else split) / _divisor(squares, eps, eps_at, size)
    xhat = _join(xhat / size if radius == "one" else xhat, x.shape, order)
    return round_to((round_to(xhat) if round_first else xhat) * (gain_plus + gain))


def _divisor(squares: Array, eps: float, eps_at: str, size: float) -> Array:
    if eps_at == "inside":
        return np.sqrt(squares + eps)
    return np.sqrt(squares) + eps if eps_at == "outside" else np.maximum(np.sqrt(squares), eps / size)


def _split(x: Array, count: int, order: str) -> Array:
    if count == 1:
        return x
    if order == "blocks":
        return x.reshape(*x.shape[:-1], count, -1)
    return np.swapaxes(x.reshape(*x.shape[:-1], -1, count), -1, -2)


def _join(x: Array, shape: tuple[int, ...], order: str) -> Array:
    return (np.swapaxes(x, -1, -2) if x.ndim > len(shape) and order == "strided" else x).reshape(shape)


@dataclass(frozen=True)
class Convention:
    """One choice that public code makes.

    Args:
        question: what is chosen.
        library: whose code makes it.
        layer: the class or function that makes it.
        file: repository and path in which it was read, at the commit in :data:`COMMITS`.
        quote: from one line of that file, and shows it.
        settings: of :func:`norm`.
        usual: settings to compare it with; those of PyTorch's LayerNorm if empty.
        probe: an input on which the two differ.
        gain: for both; shape (d,) or 1.
    """

    question: str
    library: str
    layer: str
    file: str
    quote: str
    settings: dict[str, Any]
    probe: Callable[[np.random.Generator], Array]
    usual: dict[str, Any] = field(default_factory=dict)
    gain: Callable[[np.random.Generator], Array | float] = field(default=lambda rng: 1.0)

    @property
    def function(self) -> str:
        """The norm that makes the choice: a repository, and a class or function in it."""
        return f"{self.file.split(': ')[0]}: {self.layer}"

    @property
    def address(self) -> str:
        """The page of the file, as it was when it was read."""
        repository, path = self.file.split(": ")
        return f"https://github.com/{repository}/blob/{COMMITS[repository]}/{path}"


def difference(convention: Convention, seed: int) -> float:
    """The largest difference between a convention and the usual one, over the usual output's root mean square."""
    rng = np.random.default_rng(seed)
    x, gain = convention.probe(rng), convention.gain(rng)
    theirs, usual = norm(x, gain, **convention.settings), norm(x, gain, **convention.usual)
    return float(np.abs(theirs - usual).max() / np.sqrt((usual * usual).mean()))


def probe_rows(size: float = 1.0, mean: float = 0.0, d: int = 8) -> Callable[[np.random.Generator], Array]:
    """A probe of twenty random rows, shape (20, d)."""
    return lambda rng: rng.normal(mean, 1, (20, d)) * size


def images(rng: np.random.Generator) -> Array:
    """A probe of shape (3, 4, 5, 8); each position has a size of its own."""
    return rng.normal(0, 1, (3, 4, 5, 8)) * rng.uniform(0.5, 3, (3, 4, 5, 1))


def heads(rng: np.random.Generator) -> Array:
    """A probe of queries, shape (20, 32): four heads of eight features, each head with a size of its own."""
    return (rng.normal(0, 1, (20, 4, 8)) * rng.uniform(0.5, 3, (1, 4, 1))).reshape(20, 32)


def one_outlier(rng: np.random.Generator) -> Array:
    """A probe of rows of which one has a feature a thousand times as large as the rest."""
    x = rng.normal(0, 1, (20, 64))
    x[0, 0] = 1000.0
    return x


def wide_rows(rng: np.random.Generator) -> Array:
    """A probe of rows of bfloat16 numbers, shape (20, 64)."""
    return FORMATS["bfloat16"](rng.normal(0, 1, (20, 64)))


def half_gain(rng: np.random.Generator) -> Array:
    """A gain for :func:`wide_rows`."""
    return FORMATS["bfloat16"](rng.uniform(0.5, 1.5, 64))


RMS: dict[str, Any] = {"centre": False}
BFLOAT16: dict[str, Any] = {"centre": False, "round_to": FORMATS["bfloat16"]}

#: the commit at which each repository was read
COMMITS = {
    "harvardnlp/annotated-transformer": "debc9fd747bb2123160a98046ad1c2d4da44a567",
    "keras-team/keras": "3422977a5e38fb2f7709aaa9a08e47f0c43d0f60",
    "google/flax": "18f8f311c275d57f46d95e41b15aa97b454754c0",
    "bzhangGo/rmsnorm": "2e726f1a3f106bb719056422f4f9b6aca03d3ce6",
    "pytorch/pytorch": "cf30153c4c131c8164ee7798e5022d810682e2cb",
    "lucidrains/x-transformers": "9252ed7838021ee61e6c5be0930b3a9a88efdf06",
    "NVIDIA/ngpt": "ed19eb232380d41a9d71024b58d2403937d8f2c9",
    "google/gemma_pytorch": "014acb7ac4563a5f77c76d7ff98f31b568c16508",
    "meta-llama/llama": "689c7f261b9c5514636ecc3c5fefefcbb3e6eed7",
    "onnx/onnx": "f7546912001bc31e92a238b17068a21b373d882e",
    "facebookresearch/ConvNeXt": "048efcea897d999aed302f2639b6270aedf8d4c8",
    "ml-explore/mlx": "846d176227a0ac13d2667e58d2bb68b322109ab0",
    "THUDM/CogView": "189a12bbe87227d3d127fa74abe968dd795cad39",
}

CONVENTIONS: dict[str, Convention] = {
    "eps added to the deviation": Convention(
        "eps inside the root, or outside?",
        "The Annotated Transformer",
        "LayerNorm",
        "harvardnlp/annotated-transformer: the_annotated_transformer.py",
        "(x - mean) / (std + self.eps)",
        {"eps_at": "outside"},
        probe_rows(size=1e-3),
    ),
    "d - 1 in the variance": Convention(
        "which variance?",
        "The Annotated Transformer",
        "LayerNorm",
        "harvardnlp/annotated-transformer: the_annotated_transformer.py",
        "std = x.std(-1, keepdim=True)",
        {"ddof": 1},
        probe_rows(d=4),
    ),
    "eps = 0.001": Convention(
        "how large is eps?",
        "Keras",
        "LayerNormalization",
        "keras-team/keras: keras/src/layers/normalization/layer_normalization.py",
        "epsilon=1e-3",
        {"eps": 1e-3},
        probe_rows(size=0.02),
    ),
    "a variance in one pass": Convention(
        "one pass or two?",
        "Flax",
        "LayerNorm",
        "google/flax: flax/linen/normalization.py",
        "var = jnp.maximum(0.0, mu2 - _abs_sq(mu))",
        {"one_pass": True, "round_to": FORMATS["float32"]},
        lambda rng: FORMATS["float32"](rng.normal(1e4, 1, (20, 64))),
        usual={"round_to": FORMATS["float32"]},
    ),
    "a variance without centring": Convention(
        "what does RMS mean?",
        "Keras, rms_scaling=True",
        "LayerNormalization",
        "keras-team/keras: keras/src/ops/nn.py",
        "variance = backend.numpy.var(x, axis=axis, keepdims=True)",
        {"centre": False, "power": "variance"},
        probe_rows(mean=2.0),
        usual=RMS,
    ),
    "eps outside, in RMSNorm": Convention(
        "eps inside the root, or outside?",
        "the authors of RMSNorm",
        "RMSNorm",
        "bzhangGo/rmsnorm: rmsnorm_torch.py",
        "x_normed = x / (rms_x + self.eps)",
        {"centre": False, "eps_at": "outside", "eps": 1e-8},
        probe_rows(size=1e-4),
        usual={"centre": False, "eps": 1e-8},
    ),
    "a part of the features": Convention(
        "which features are counted?",
        "the authors of RMSNorm, p = 0.25",
        "RMSNorm",
        "bzhangGo/rmsnorm: rmsnorm_torch.py",
        "norm_x = partial_x.norm(2, dim=-1, keepdim=True)",
        {"centre": False, "first": 0.25},
        probe_rows(d=64),
        usual=RMS,
    ),
    "the machine's eps": Convention(
        "how large is eps?",
        "PyTorch, nn.RMSNorm(d)",
        "RMSNorm",
        "pytorch/pytorch: torch/nn/modules/normalization.py",
        "If not specified, uses the machine epsilon of the computation (opmath) type",
        {"centre": False, "eps": 2.0**-23},
        probe_rows(size=1e-3),
        usual=RMS,
    ),
    "a least length": Convention(
        "what replaces eps?",
        "x-transformers",
        "RMSNorm",
        "lucidrains/x-transformers: x_transformers/x_transformers.py",
        "F.normalize(x, dim = -1) * self.scale * gamma",
        {"centre": False, "eps": 1e-12, "eps_at": "clamp"},
        probe_rows(size=1e-5),
        usual={"centre": False, "eps": 1e-6},
    ),
    "length one": Convention(
        "how long is the result?",
        "nGPT",
        "Block.justnorm",
        "NVIDIA/ngpt: model.py",
        "res = x / x.norm(p=2, dim=-1, keepdim=True)",
        {"centre": False, "eps": 0.0, "radius": "one"},
        probe_rows(),
        usual=RMS,
    ),
    "a gain stored less 1": Convention(
        "gain w, or 1 + w?",
        "Gemma",
        "RMSNorm",
        "google/gemma_pytorch: gemma/model.py",
        "output = output * (1 + self.weight.float())",
        {"centre": False, "gain_plus": 1.0},
        probe_rows(),
        usual=RMS,
        gain=lambda rng: rng.normal(0, 0.1, 8),
    ),
    "rounded before the gain": Convention(
        "gain before the cast, or after it?",
        "Llama",
        "RMSNorm",
        "meta-llama/llama: llama/model.py",
        "output = self._norm(x.float()).type_as(x)",
        {**BFLOAT16, "round_first": True},
        wide_rows,
        usual=BFLOAT16,
        gain=half_gain,
    ),
    "all axes from here on": Convention(
        "which axes does `axis=1` name?",
        "ONNX",
        "LayerNormalization",
        "onnx/onnx: onnx/reference/ops/op_layer_normalization.py",
        "reduction_shape = X_shape[0:axis] + (1,) * unsqueezed_rank",
        {"axes": (1, 2, 3)},
        images,
        usual={"axes": 1},
    ),
    "channels first, each position": Convention(
        "which axes, on images?",
        "ConvNeXt",
        "LayerNorm",
        "facebookresearch/ConvNeXt: models/convnext.py",
        "u = x.mean(1, keepdim=True)",
        {"axes": 1, "eps": 1e-6},
        lambda rng: np.moveaxis(images(rng), -1, 1),
        usual={"axes": (1, 2, 3), "eps": 1e-6},
    ),
    "strided groups": Convention(
        "which features form a group?",
        "MLX",
        "GroupNorm",
        "ml-explore/mlx: python/mlx/nn/layers/normalization.py",
        "x = x.reshape(batch, -1, num_groups)",
        {"groups": (2, "strided")},
        lambda rng: rng.normal(0, 1, (20, 8)) * np.arange(1, 9),
        usual={"groups": (2, "blocks")},
    ),
    "each head apart": Convention(
        "how wide is QK-norm?",
        "Gemma 3",
        "RMSNorm",
        "google/gemma_pytorch: gemma/model.py",
        "RMSNorm(self.head_dim, eps=config.rms_norm_eps)",
        {"centre": False, "groups": (4, "blocks")},
        heads,
        usual=RMS,
    ),
    "scaled by the largest value": Convention(
        "what is eps measured against?",
        "CogView",
        "LayerNorm",
        "THUDM/CogView: mpu/sparse_transformer.py",
        "super().forward(x / (x.abs().max().detach()/8))",
        {"prescale": 8.0},
        one_outlier,
    ),
}

#: inputs that every choice can take, by name: four axes, and eight features that split into groups
SAME_INPUTS: dict[str, Callable[[np.random.Generator], Array]] = {
    "of size 1": lambda rng: rng.normal(0, 1, (3, 8, 4, 8)),
    "of size 0.001": lambda rng: rng.normal(0, 1e-3, (3, 8, 4, 8)),
    "of size 0.00001": lambda rng: rng.normal(0, 1e-5, (3, 8, 4, 8)),
    "of mean 1000": lambda rng: rng.normal(1000, 1, (3, 8, 4, 8)),
}


def pairs(draw: Callable[[np.random.Generator], Array], seed: int) -> dict[tuple[str, str], float]:
    """Every two choices on the same input with the same gain.

    Returns:
        For each pair of names the largest difference of the two outputs, over the root mean square of the smaller one.
    """
    rng = np.random.default_rng(seed)
    x, gain = draw(rng), rng.uniform(0.5, 1.5, 8)
    outputs = {name: norm(x, gain, **convention.settings) for name, convention in CONVENTIONS.items()}
    size = {name: np.sqrt((y * y).mean()) for name, y in outputs.items()}
    return {
        (one, other): float(np.abs(outputs[one] - outputs[other]).max() / min(size[one], size[other]))
        for one, other in combinations(CONVENTIONS, 2)
    }
