"""The example in each task is what the right answer returns."""

import doctest
import importlib
import json
import re

import numpy as np
import pytest

from subnorm_lab import checks
from subnorm_lab.checks.collect import Device
from tools import checkout

SHEETS = checkout.ROOT / "notebooks/exercises"
CASES = [(name, k) for name, exercises in checks.SETS.items() for k in range(1, len(exercises) + 1)]


def example(name, k):
    """The one Python listing in a task."""
    (path,) = SHEETS.glob(f"{name}-*.ipynb")
    cells = {cell["id"]: "".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"]}
    (listing,) = re.findall(r"^```python\n(>>> .*?)^```$", cells[f"{name}-{k}-task"], re.MULTILINE | re.DOTALL)
    return listing


def failed(listing, exercise, names):
    """How many statements of a listing print something else."""
    test = doctest.DocTestParser().get_doctest(listing, {**names, exercise.name: exercise.reference}, "task", None, 0)
    assert exercise.name in listing
    assert test.examples[-1].want
    with np.errstate(all="ignore"):  # as in a check
        return doctest.DocTestRunner(verbose=False).run(test).failed


@pytest.mark.parametrize(("name", "k"), CASES)
def test_the_example_of_a_task_is_right(name, k):
    exercise = checks.SETS[name][k - 1]
    names = {"np": np, "Device": Device}
    if exercise.way == "module":
        names["torch"] = importlib.import_module("torch")
    assert failed(example(name, k), exercise, names) == 0


def test_a_wrong_example_is_found():
    right = ">>> residual(np.array([1.0, 2.0]), lambda x: 10 * x)\narray([11., 22.])\n"
    assert failed(right, checks.residual, {"np": np}) == 0
    assert failed(right.replace("22", "23"), checks.residual, {"np": np}) == 1
