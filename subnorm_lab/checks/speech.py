"""What the trained model of `subnorm_lab.stories` says with functions that a student wrote as its parts.

A check shows it below its verdict, and no verdict depends on it: a near tie between two tokens may turn a story.
"""

import functools
import itertools
import sys
import textwrap
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from subnorm_lab.checks.collect import Case, outcomes_of
from subnorm_lab.checks.exercise import is_unwritten

Function = Callable[..., Any]
EPS = 1e-5
TOKENS = 40  # of a sample
STORY = 105  # tokens of the story, which end with a sentence
LONGEST = 120  # characters of a sample


class SpeechError(Exception):
    """The model cannot speak; the message says why."""


def part(name: str, answer: Function) -> Function:
    """A student's function as a part of the model: arrays go in and come out, and nobody's inputs are written to."""

    def called(*args: Any) -> Any:
        given = tuple(for_tensors_too(arg) if callable(arg) else arg for arg in args)
        outcome = outcomes_of(answer, [Case(name, given)])[0]
        if outcome.error == "SpeechError":  # from another part, which this one called
            raise SpeechError(outcome.message)
        if is_unwritten(outcome):
            raise SpeechError(f"{name} is not done yet")
        if outcome.error:
            raise SpeechError(f"{name} raises {outcome.error}")
        return outcome.value

    return called


def for_tensors_too(function: Function) -> Function:
    """A function of arrays that answers tensors with tensors: an answer in PyTorch calls it so."""

    def called(*args: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is None or not any(isinstance(arg, torch.Tensor) for arg in args):
            return function(*args)
        return torch.as_tensor(function(*(arg.numpy() if isinstance(arg, torch.Tensor) else arg for arg in args)))

    return called


def in_pieces(function: Function, h: Any) -> Any:
    """A function of single tokens, applied to a few at a time.

    For a larger product NumPy starts threads. On a busy machine they wait for each other a hundred times as long as
    the product takes.
    """
    return np.concatenate([function(h[i : i + 16]) for i in range(0, len(h), 16)])


def attention(h: Any, w: dict[str, Any], head: Function) -> Any:
    """The attention of the model: eight heads side by side. Two of them share their keys and values."""
    from subnorm_lab.stories import rotate, split_heads

    q, k, v = (split_heads(in_pieces(lambda rows, m=w[name]: rows @ m.T, h), 8) for name in "qkv")  # (heads, T, 8)
    q, k = rotate(q, 0), rotate(k, 0)
    share = len(q) // len(k)
    heads = [head(q[i], k[i // share], v[i // share]) for i in range(len(q))]
    return in_pieces(lambda rows: rows @ w["o"].T, np.concatenate(heads, axis=1))


def scores(text: Sequence[int], model: Any, parts: dict[str, Function]) -> Any:
    """The scores of the token after a text. The model reads all of it, without a cache."""

    def norm(x: Any, gamma: Any = 1.0) -> Any:
        return parts["norm"](x, gamma, EPS)

    x = model.embedding[text]  # (T, d)
    for k in range(0, len(model.weights), 2):
        heads, ffn = model.weights[k : k + 2]
        x = parts["story_block"](
            x,
            lambda h, w=heads: attention(h, w, parts["head"]),
            lambda h, w=ffn: in_pieces(lambda rows: parts["swiglu"](rows, w["gate"], w["up"], w["down"]), h),
            norm,
            model.gains[k : k + 2],
        )
    return parts["next_scores"](x, norm, model.gains[-1], model.embedding)


def tell_story(answers: dict[str, Function], tokens: int) -> str:
    """The story of the model with these functions, and right ones for all others.

    Raises:
        SpeechError: a function raises, or returns what the model cannot use.
    """
    from subnorm_lab import (
        checks,  # not at the top: it imports this module
        stories,
    )

    model = stories.load()
    right = {exercise.name: exercise.reference for exercise in checks.SETS["ex06"]}
    parts = right | {name: part(name, answer) for name, answer in answers.items()}
    asked = 0

    def next_scores(text: Sequence[int]) -> Any:
        nonlocal asked
        asked += 1
        if asked > 2 * tokens:
            raise SpeechError("tell does not end")
        return scores(text, model, parts)

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            story = parts["tell"](next_scores, [stories.BOS], tokens, stories.BOS)
            return model.tokenizer.decode([stories.BOS, *map(int, story[: 2 * tokens])])
        except SpeechError:
            raise
        except Exception as error:
            raise SpeechError(f"it cannot use a result ({type(error).__name__})") from None


@functools.cache
def right_words(tokens: int) -> str:
    return tell_story({}, tokens)


def speech(name: str, answer: Function) -> str:
    """The beginning of what the model says with this answer, on one line."""
    try:
        text = tell_story({name: answer}, TOKENS)
    except SpeechError as why:
        return f"nothing, because {why}."
    shown = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if not shown:
        return "nothing."
    shown = f"“{shown[:LONGEST]}…”"
    return f"{shown} These are the right words: you cannot hear this mistake." if text == right_words(TOKENS) else shown


def story(
    norm: Function, head: Function, swiglu: Function, story_block: Function, next_scores: Function, tell: Function
) -> None:
    """Print what the trained model says when it consists of your functions. Never raises."""
    from subnorm_lab.stories import files as story_files

    yours = {"norm": norm, "head": head, "swiglu": swiglu}
    yours |= {"story_block": story_block, "next_scores": next_scores, "tell": tell}
    try:
        text = tell_story(yours, STORY)
    except SpeechError as why:
        print(f"○ story: the model says nothing yet, because {why}.")
        return
    print("\n".join(textwrap.fill(line, 79) for line in text.split("\n")))
    published = story_files.published()[0]
    if text == published[: len(text)] and text == right_words(STORY):
        print("\n✓ story: word for word what the author of the model published.")
    else:
        pairs = zip(text.split(), published.split(), strict=False)
        same = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))
        print(f"\n○ story: after {same} words it leaves the story that the author of the model published.")
