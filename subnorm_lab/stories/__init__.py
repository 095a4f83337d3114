"""A trained model, stories260K: a small LLaMA that tells children's stories, on this course's norms and placements.

Its stack is Pre-RMSNorm: five blocks of attention and SwiGLU, and a final norm. Sublayers count from 0 to 9,
attention at even numbers; norm k reads the stream for sublayer k, and norm 10 is the final one.

`subnorm_lab/stories/data/README.md` says where the model comes from.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from subnorm.numpy import attention, pre_ln, rms_norm
from subnorm.numpy.norms import Array
from subnorm_lab.stories import files as story_files
from subnorm_lab.stories.files import BOS, Tokenizer

Norm = Callable[..., Array]  # of the stream and gamma, like rms_norm
Weights = dict[str, Array]
Place = Callable[..., Any]  # like pre_ln and post_ln
Past = dict[int, tuple[Array, Array]]  # the keys and values that each attention has seen


@dataclass(frozen=True)
class Model:
    """Weights, and how they are wired. Weight matrices are (outputs, inputs).

    Attributes:
        embedding: one row for each token, shape (V, d); also the output matrix.
        gains: of the norms, shape (11, d).
        weights: of the sublayers: q, k, v and o, or gate, up and down.
        norms: eleven functions of the stream and gamma, like :func:`subnorm.numpy.rms_norm`.
        places: ten functions like :func:`subnorm.numpy.pre_ln`.
        tokenizer: text to tokens, and back.
    """

    embedding: Array
    gains: Array
    weights: tuple[Weights, ...]
    tokenizer: Tokenizer
    norms: tuple[Norm, ...] = field(default_factory=lambda: (rms_norm,) * 11)
    places: tuple[Place, ...] = field(default_factory=lambda: (pre_ln,) * 10)
    heads: int = 8
    context: int = 512


def load(dtype: npt.DTypeLike = np.float64) -> Model:
    """The trained model, with weights of the given dtype, in which it then computes."""
    w = {name: array.astype(dtype) for name, array in story_files.weights().items()}
    gains = np.stack([w["attention gain"], w["feed-forward gain"]], axis=1).reshape(-1, w["embedding"].shape[1])
    weights = tuple(
        {name: w[name][layer] for name in names}
        for layer in range(story_files.LAYERS)
        for names in ("qkvo", ("gate", "up", "down"))
    )
    return Model(w["embedding"], np.concatenate([gains, w["final gain"]]), weights, story_files.tokenizer())


def altered(
    model: Model, norm: Norm | None = None, place: Place | None = None, at: Iterable[int] | None = None
) -> Model:
    """The same weights with another norm, or another placement: everywhere, or at the given sublayers.

    For example ``altered(model, place=leave_out, at=[3])``, or ``altered(model, norm=layer_norm)``.
    """
    sites = range(11) if at is None else list(at)
    norms = tuple(norm if norm and k in sites else old for k, old in enumerate(model.norms))
    places = tuple(place if place and k in sites else old for k, old in enumerate(model.places))
    return replace(model, norms=norms, places=places)


def arranged(model: Model, blocks: Sequence[int]) -> Model:
    """The same weights with the blocks in another order: some left out, some several times.

    For example ``arranged(model, [1, 2, 4, 5])`` has no third block, and ``[1, 2, 3, 3, 4, 5]`` runs it twice.

    Args:
        blocks: numbers of blocks, from 1, in the order in which they run.

    Raises:
        ValueError: the model has no such block.
    """
    number = len(model.weights) // 2
    if unknown := [block for block in blocks if block not in range(1, number + 1)]:
        raise ValueError(f"the model's blocks are 1 to {number}; got {unknown}.")
    sublayers = [2 * block - half for block in blocks for half in (2, 1)]
    return replace(
        model,
        gains=model.gains[[*sublayers, -1]],
        weights=tuple(model.weights[k] for k in sublayers),
        norms=tuple(model.norms[k] for k in [*sublayers, -1]),
        places=tuple(model.places[k] for k in sublayers),
    )


def leave_out(x: Array, sublayer: Callable[[Array], Array], norm: Callable[[Array], Array]) -> Array:
    """A placement that takes the branch away: only the skip is left."""
    return x


def stream(model: Model, tokens: npt.ArrayLike, past: Past | None = None) -> Array:
    """The residual stream after the embedding and after each sublayer, before the final norm, shape (11, T, d).

    Args:
        tokens: shape (T,), with the past no more than the context holds.
        past: keys and values of earlier tokens; those of these tokens are added. None if the text begins here.

    Raises:
        ValueError: the text is longer than the context.
    """
    past = {} if past is None else past
    _fits(model, np.size(tokens) + max((key.shape[1] for key, _value in past.values()), default=0))
    states = [model.embedding[np.asarray(tokens)]]  # each (T, d)
    for k, place in enumerate(model.places):
        states.append(place(states[-1], _branch(model, k, past), partial(model.norms[k], gamma=model.gains[k])))
    return np.stack(states)


def logits(model: Model, x: Array) -> Array:
    """The final norm and the output matrix: scores of the next token, shape (..., V), for a stream at any depth."""
    return model.norms[-1](x, gamma=model.gains[-1]) @ model.embedding.T


def loss(model: Model, tokens: npt.ArrayLike) -> float:
    """Mean loss of the next token over a text that begins with BOS, in nats. Guessing costs log 512 = 6.24."""
    tokens = np.asarray(tokens)
    scores = logits(model, stream(model, tokens[:-1])[-1]).astype(np.float64)  # (T - 1, V)
    scores -= scores.max(axis=-1, keepdims=True)
    chosen = np.take_along_axis(scores, tokens[1:, None], axis=-1)[:, 0]  # (T - 1,)
    return float((np.log(np.exp(scores).sum(axis=-1)) - chosen).mean())


def losses(model: Model, texts: Iterable[npt.ArrayLike]) -> Array:
    """The :func:`loss` of each text, shape (N,)."""
    return np.array([loss(model, text) for text in texts])


def _fits(model: Model, length: int) -> None:
    if length > model.context:
        raise ValueError(f"the model reads at most {model.context} tokens; got {length}. Shorten the text.")


def _branch(model: Model, k: int, past: Past) -> Callable[[Array], Array]:
    w = model.weights[k]
    return partial(_swiglu, w=w) if "gate" in w else partial(_attention, w=w, heads=model.heads, past=past, k=k)


def _swiglu(h: Array, w: Weights) -> Array:
    gate = h @ w["gate"].T  # (T, 172)
    silu = gate * (1 + np.tanh(gate / 2)) / 2  # gate / (1 + exp(-gate)), which would overflow
    return (silu * (h @ w["up"].T)) @ w["down"].T


def _attention(h: Array, w: Weights, heads: int, past: Past, k: int) -> Array:
    q, key, value = (split_heads(h @ w[name].T, h.shape[-1] // heads) for name in "qkv")  # (heads, T, 8)
    start = past[k][0].shape[1] if k in past else 0
    q, key = rotate(q, start), rotate(key, start)
    if k in past:
        key, value = (np.concatenate(pair, axis=1) for pair in zip(past[k], (key, value), strict=True))  # (4, S, 8)
    past[k] = key, value
    share = heads // len(key)  # two heads of queries read the same keys and values
    sees = np.tri(len(h), key.shape[1], start, dtype=bool)  # no later key
    y = attention(q, key.repeat(share, axis=0), value.repeat(share, axis=0), sees)  # (heads, T, 8)
    return np.swapaxes(y, 0, 1).reshape(h.shape) @ w["o"].T


def split_heads(x: Array, width: int) -> Array:
    """A row for each token, (T, heads times width), cut into heads: (heads, T, width)."""
    return np.swapaxes(x.reshape(len(x), -1, width), 0, 1)


def rotate(x: Array, start: int) -> Array:
    """Rotary positions: turn each pair of neighbouring features by an angle that grows with the position."""
    position = start + np.arange(x.shape[-2])[:, None]  # (T, 1)
    angle = position * 10000.0 ** (-np.arange(0, x.shape[-1], 2) / x.shape[-1])  # (T, 4)
    cos, sin = np.cos(angle).astype(x.dtype), np.sin(angle).astype(x.dtype)
    even, odd = x[..., ::2], x[..., 1::2]
    turned: Array = np.stack([even * cos - odd * sin, odd * cos + even * sin], axis=-1)
    return turned.reshape(x.shape)


def sample(scores: Array, temperature: float, rng: np.random.Generator) -> int:
    """A token of softmax(scores / temperature): the largest of the scores plus temperature times Gumbel noise."""
    return int(np.argmax(scores + temperature * rng.gumbel(size=scores.shape)))


def continuation(model: Model, tokens: list[int], count: int, temperature: float = 0.0, seed: int = 0) -> list[int]:
    """Up to `count` tokens that follow the given ones, until the next story begins. See :func:`generate`."""
    if not (math.isfinite(temperature) and temperature >= 0):
        raise ValueError(f"temperature must be a finite number, at least 0; got {temperature}. 0 takes the best token.")
    _fits(model, len(tokens) + count - 1)
    rng = np.random.default_rng(seed)
    past: Past = {}
    new: list[int] = []
    for _ in range(count):
        scores = logits(model, stream(model, new[-1:] or tokens, past)[-1, -1])  # (V,)
        token = sample(scores, temperature, rng)
        if token == BOS:
            break
        new.append(token)
    return new


def generate(model: Model, prompt: str = "", tokens: int = 256, temperature: float = 0.0, seed: int = 0) -> str:
    """The prompt and the story that the model tells from there.

    Args:
        prompt: how the story begins; may be empty.
        tokens: number of new tokens, at most.
        temperature: 0 takes the most likely token; 1 samples from the model's probabilities.
        seed: of the sampling.

    Raises:
        TypeError: the prompt is not a str.
        ValueError: prompt and new tokens do not fit into the context, or the temperature is negative.
    """
    begin = model.tokenizer.encode(prompt)
    return model.tokenizer.decode(begin + continuation(model, begin, tokens, temperature, seed))


@cache  # the telling takes a second, and a chapter needs the texts for each change of the model that it tries
def texts() -> list[list[int]]:
    """Tokens of the four published stories, and of eight that the trained model tells, at most 120 tokens each."""
    model = load()
    told = [[BOS, *continuation(model, [BOS], 119, 1.0, seed)] for seed in range(8)]
    return [model.tokenizer.encode(text)[:120] for text in story_files.published()] + told


def beginnings() -> list[list[int]]:
    """The first 60 tokens of each of the twelve :func:`texts`, for what is measured on many models."""
    return [text[:60] for text in texts()]
