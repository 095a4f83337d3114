"""What the files of the exercises import: the decorator, the stand-ins, and a short way to write cases.

An exercise is one file in the folder of its sheet, such as ``ex01/residual.py``, and four cells in the sheet's
notebook. The file holds the right answer as a plain function. Above it, ``@exercise(...)`` gives its number in the
sheet (a new one gets the last, because students' files carry the numbers), its level, minutes, chapter and objective,
the cases, and the mistakes. `drawn` makes the cases: ``inputs(rng, ...)`` draws the arguments of one call. A mistake
is a row: a tag, a change of the answer's text, "old -> new" where old occurs exactly once, or a whole function where
that reads better, a sentence that says what was done and what the definition is, and a public thread in which somebody
made it, if you know one. What several exercises of a sheet share is in the ``__init__.py`` of its folder.

``python -m subnorm_classroom draft ex01`` puts the four cells into the sheet: task, answer, check, solution. Fill in
each TODO, refresh the sheet, and ``python -m subnorm_classroom release ex01`` writes the students' sheet, or says what
a cell lacks. The page of the sheet, its editors, the lists of exercises and the grader need nothing more. In the page
NumPy is 2.0.2, the default integer has 32 bits, and no floating-point error warns; only NumPy and the standard library
are there.

In the sheet's bank, such as ``tests/checks/bank_ex01.py``, add right answers written another way, and answers with two
mistakes at once: ``test_bank.py`` holds each mistake to its own name on many inputs, and calls no right answer wrong.
If people hold a belief behind a mistake, add it to the teacher's page (``subnorm_classroom/reports/beliefs.py``).

With ``variants``, each student's sheet asks for one of several values: see `Variant`, and ``ex04/warm_up.py``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from subnorm_lab.checks.collect import Case, Device, Norm, Scores, Sublayer
from subnorm_lab.checks.exercise import Row, exercise

__all__ = ["Case", "Device", "Norm", "Row", "Scores", "Sublayer"]
__all__ += ["ONE_TOKEN", "case", "drawn", "exercise", "in_dtype", "of_shapes"]

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


ONE_TOKEN = case("a batch of one token, (1, 8)", (1, 8), edge=True)  # an answer that squeezes axes loses this one


def in_dtype(case: Case, dtype: str) -> Case:
    """The case with its arrays in another dtype."""
    return Case(case.name, tuple(a.astype(dtype) if isinstance(a, np.ndarray) else a for a in case.args), case.edge)
