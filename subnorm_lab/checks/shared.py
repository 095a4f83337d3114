"""What the files of the exercises import: the decorator, the stand-ins, and a short way to write cases."""

from collections.abc import Callable
from typing import Any

import numpy as np

from subnorm_lab.checks.collect import Case, Device, Norm, Scores, Sublayer
from subnorm_lab.checks.exercise import Row, exercise

__all__ = ["Case", "Device", "Norm", "Row", "Scores", "Sublayer", "case", "drawn", "exercise", "in_dtype", "of_shapes"]

Inputs = Callable[..., tuple[Any, ...]]
Draw = Callable[[Inputs, np.random.Generator], Case]

# Rows of mistakes. One that adds a source to a row is (*NO_GAMMA, "owner/name/issues/1").
FIXED_EPS: Row = ("fixed_eps", "+ eps -> + 1e-5", "eps is always 1e-5; use the eps that the function is given.")
NO_GAMMA: Row = ("no_gamma", "gamma * ->", "gamma is not used: it multiplies each feature.")
NO_BETA: Row = ("no_beta", "+ beta ->", "beta is not used: it is added to each feature.")


def drawn(inputs: Inputs, *cases: Draw) -> Callable[[np.random.Generator], list[Case]]:
    """The cases of an exercise, which are drawn in this order.

    Args:
        inputs: ``inputs(rng, *args, **settings)`` draws the arguments of one call of the answer.
        cases: each made by `case`, or all by `of_shapes`.
    """
    return lambda rng: [draw(inputs, rng) for draw in cases]


def case(name: str, *args: Any, edge: bool = False, dtype: str = "", **settings: Any) -> Draw:
    """One case of `drawn`.

    Args:
        name: a description for the feedback, as of a `Case`.
        args: what ``inputs`` gets after the generator, as well as ``settings``.
        edge: as of a `Case`.
        dtype: the dtype to give all arrays, if not the one that ``inputs`` gives them.
    """

    def draw(inputs: Inputs, rng: np.random.Generator) -> Case:
        made = Case(name, inputs(rng, *args, **settings), edge)
        return in_dtype(made, dtype) if dtype else made

    return draw


def of_shapes(*shapes: tuple[int, ...]) -> list[Draw]:
    """Cases of `drawn` whose only argument is a shape, named after it: "a (3, 8) batch", "one token, (8,)"."""

    def name(shape: tuple[int, ...]) -> str:
        if len(shape) == 1:
            return f"one token, {shape}"
        if len(shape) == 3:
            return f"a {shape} batch of sequences"
        return f"a square batch, {shape}" if shape[0] == shape[1] else f"a {shape} batch"

    return [case(name(shape), shape) for shape in shapes]


def in_dtype(case: Case, dtype: str) -> Case:
    """The case with its arrays in another dtype."""
    return Case(case.name, tuple(a.astype(dtype) if isinstance(a, np.ndarray) else a for a in case.args), case.edge)
