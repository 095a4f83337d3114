"""An answer counts as it was at its check, or as it is at the end, whichever is better."""

import sys
from dataclasses import replace

import pytest
from classroom.hand_ins import MEAN_SQUARE, mean_square

from subnorm_classroom.grading import judging
from subnorm_classroom.grading.assignments import draw
from subnorm_classroom.grading.cells import Cell
from subnorm_lab.checks.collect import Case

SETUP = "import numpy as np\nfrom subnorm_lab import checks"
CHECK = "checks.mean_square(mean_square)"
UNDONE = "def mean_square(x):\n    raise NotImplementedError"
WRONG = "def mean_square(x):\n    return x"
HELPED = "def squares(x):\n    return x * x\ndef mean_square(x):\n    return np.mean(squares(x), -1)"
USES = "uses = []\ndef mean_square(x):\n    uses.append(x)\n    return (x * x).mean(-1) if len(uses) < 3 else 0"

#: The cells of a notebook after its first, and the diagnosis.
NOTEBOOKS = {
    "a later cell has another use for the name": ([MEAN_SQUARE, CHECK, "mean_square = 3"], "right"),
    "a scratch function has the same name": ([MEAN_SQUARE, CHECK, WRONG, "mean_square(np.ones(3))"], "right"),
    "a helper's name is used again": ([HELPED, CHECK, "def squares(n):\n    return n"], "right"),
    "a module's name is used again": ([HELPED, CHECK, "import math as np"], "right"),
    "the name is deleted": ([MEAN_SQUARE, CHECK, "del mean_square"], "right"),
    "everything is deleted": ([HELPED, CHECK, "%reset -f"], "right"),
    "a later cell changes the library": ([HELPED, CHECK, "np.mean = None"], "right"),
    "a later cell ends Python": ([MEAN_SQUARE, CHECK, *["import os; os._exit(1)"] * 9], "right"),
    "it is written below its check": ([UNDONE, CHECK, MEAN_SQUARE], "right"),
    "its helper is written below its check": ([HELPED[HELPED.index("def mean") :], CHECK, HELPED], "right"),
    "it is checked again when it is right": ([WRONG, CHECK, MEAN_SQUARE, CHECK], "right"),
    "it is right, and a trial is checked": ([MEAN_SQUARE, CHECK, "checks.mean_square(lambda x: x)"], "right"),
    "it is right, and then it is made wrong": ([MEAN_SQUARE, CHECK, WRONG, CHECK], "shape"),
    "its check is given another function": (
        [UNDONE, f"def mine{MEAN_SQUARE[15:]}", "checks.mean_square(mine)"], "right"
    ),
    "it has no check": ([MEAN_SQUARE], "right"),
    "it has no check and is undone": ([UNDONE], "not_done"),
    "it is checked and undone": ([UNDONE, CHECK], "not_done"),
    "it is undone at its check, and wrong below": ([UNDONE, CHECK, WRONG], "shape"),
    "it is checked by name": (
        ["import subnorm_lab.checks as c", MEAN_SQUARE, "c.mean_square(answer=mean_square)", WRONG], "right"
    ),
    "its check asserts": ([MEAN_SQUARE, f"assert {CHECK}\n{WRONG}"], "right"),
    "its check is in a cell that fails": ([MEAN_SQUARE, f"{CHECK}\n1 / 0", WRONG], "right"),
    "its check is timed": ([MEAN_SQUARE, f"%%time\n{CHECK}", WRONG], "right"),
    "at the end it ends Python": (
        [MEAN_SQUARE, CHECK, "def mean_square(x):\n    import os\n    os._exit(1)"], "right"
    ),
    "a class is checked and is no answer": (["class mean_square: pass", CHECK, "mean_square = 3"], "error"),
    "its state is used up": ([USES, CHECK], "right"),
}  # fmt: skip


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_later_cell_costs_no_answer_its_points(name, box):
    sources, wanted = NOTEBOOKS[name]
    cells = [Cell(k, (), source) for k, source in enumerate([SETUP, *sources], 1)]
    (found,) = judging.judge(box, cells, [draw(mean_square, 5)])
    assert (found["diagnosis"], found["points"]) == (wanted, 2 if wanted == "right" else 0)


def test_partial_credit_is_that_of_the_better_one(box):
    partial = replace(mean_square, partial=True)
    half = "def mean_square(x):\n    return (x * x).mean(-1) if x.ndim == 1 else 0"
    for sources in ([half, CHECK, WRONG], [WRONG, CHECK, half]):
        (found,) = judging.judge(
            box, [Cell(k, (), one) for k, one in enumerate([SETUP, *sources], 1)], [draw(partial, 5)]
        )
        assert found["points"] == 1


TENSORS = {
    "a method that arrays have, too": "x.reshape(x.shape[0], 2, -1).transpose(-3, -2)[0]",
    "a guard": "x if torch.is_tensor(x) else 1 / 0",
    "an error of its own": "x if hasattr(x, 'unsqueeze') else exec('raise type(\"E\", (Exception,), {})')",
    "an index": "x[..., None][:, 0].clamp(-9, 9) if x.sum() < x.sum() + 1 else x",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TENSORS)
def test_an_answer_in_pytorch_gets_tensors_whatever_arrays_raise(name, box):
    torch = pytest.importorskip("torch")

    body = TENSORS[name]
    exercise = replace(
        mean_square,
        reference=lambda x: eval(body, {"x": torch.as_tensor(x), "torch": torch}).numpy(),
        cases=lambda rng: [Case("a batch", (rng.normal(size=(3, 4)),)), Case("another", (rng.normal(size=(2, 6)),))],
    )
    cells = [Cell(1, (), "import torch"), Cell(2, (), f"def mean_square(x):\n    return {body}")]
    (found,) = judging.judge(box, cells, [draw(exercise, 5)])
    assert found["diagnosis"] == "right"


def test_syntax_of_a_newer_python_is_named(box):
    """The pages of the book run a newer Python than many a grader."""
    cells = [Cell(1, (), SETUP), Cell(2, (), f"{MEAN_SQUARE}try:\n    pass\nexcept ValueError, KeyError:\n    pass")]
    (found,) = judging.judge(box, cells, [draw(mean_square, 5)])
    if "SyntaxError" in found["says"]:  # before Python 3.14
        here = ".".join(map(str, sys.version_info[:2]))
        assert f"it looks like the syntax of Python 3.14, and answers are graded with Python {here}." in found["says"]
    else:
        assert found["diagnosis"] == "right"
