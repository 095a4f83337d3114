"""What is right in class is right in grading, and what is wrong in class is wrong in grading.

Every answer of the bank, NumPy and PyTorch, goes both ways: to the check, as in a notebook, and into the sandbox. All
answers to a set are graded as one notebook, whose first cell brings the sources that the bank imports.
"""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from checks import test_bank as bank
from checks.test_bank import remembered  # noqa: F401, a fixture for each test: what our own answers give, once
from classroom.hand_ins import PATIENT
from helpers.parts import need

from subnorm.checks import SETS
from subnorm.checks.collect import collect
from subnorm.checks.exercise import CLASS_SEED
from subnorm.classroom.cells import Cell
from subnorm.classroom.running import draw, run
from subnorm.classroom.sandbox import PACKAGE, Sandbox
from subnorm.classroom.verdict import verdict

SEED = 11
IMPORTER = """
import importlib.abc, importlib.util, sys

SOURCES = {sources!r}

class Course(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self, is_package=SOURCES[name][0]) if name in SOURCES else None

    def exec_module(self, module):
        exec(compile(SOURCES[module.__name__][1], module.__name__, "exec", dont_inherit=True), module.__dict__)

for name in [name for name in sys.modules if name.split(".")[0] == "subnorm"]:
    del sys.modules[name]
sys.meta_path.insert(0, Course())
from subnorm.checks import SETS
"""


def sources():
    """(whether it is a package, its text) of every module that a bank imports, by its name."""
    paths = [path for folder in ("", "numpy", "torch", "checks") for path in sorted((PACKAGE / folder).glob("*.py"))]
    found = {}
    for path in paths:
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        packed = parts[-1] == "__init__"
        found[".".join(parts[:-1] if packed else parts)] = (packed, path.read_text("utf-8"))
    return found | {
        path.stem: (False, path.read_text("utf-8")) for path in Path(bank.__file__).parent.glob("bank_*.py")
    }


def answers_of(name):
    """(the exercise, an answer, the expression that gives this answer in the sandbox) of each answer to a set."""
    module = f"__import__('bank_{name}')"
    for k, exercise in enumerate(SETS[name]):
        yield exercise, exercise.reference, f"SETS[{name!r}][{k}].reference"
        for m, mistake in enumerate(exercise.mistakes):
            yield exercise, mistake.answer, f"SETS[{name!r}][{k}].mistakes[{m}].answer"
        for group in ("RIGHT", "COMBINED", "UNDESERVED"):
            for n, answer in enumerate(getattr(bank, group).get(exercise.name, [])):
                yield exercise, answer, f"{module}.{group}[{exercise.name!r}][{n}]"


@pytest.fixture(scope="module")
def box():
    need("bwrap")
    with Sandbox(limits=replace(PATIENT, memory=4 << 30, restarts=0)) as box:
        yield box


@pytest.mark.parametrize("name", SETS)
def test_class_and_grading_agree_on_every_answer_of_the_bank(name, box):
    torch.set_num_threads(1)
    cases = {exercise.name: draw(exercise, SEED) for exercise in SETS[name]}
    entries = list(answers_of(name))
    assert len(entries) > 60
    tests = [replace(exercise, name=f"answer_{k}") for k, (exercise, _, _) in enumerate(entries)]
    lines = [f"answer_{k} = {expression}" for k, (_, _, expression) in enumerate(entries)]
    cells = [
        Cell(1, (), IMPORTER.format(sources=sources())),
        Cell(2, (), "\n".join(lines)),
    ]
    asked = {test.name: cases[exercise.name] for test, (exercise, _, _) in zip(tests, entries, strict=True)}
    work = run(box, cells, tests, asked)
    assert work.errors == {}
    differ, right = {}, 0
    for test, (exercise, answer, expression) in zip(tests, entries, strict=True):
        outcomes = work.answers[test.name]
        assert not isinstance(outcomes, str), (expression, outcomes)
        graded = verdict(exercise, cases[exercise.name], outcomes)
        here = exercise.judge(cases[exercise.name], collect(answer, cases[exercise.name], exercise.way))
        known = bank.cases_of(exercise.name, CLASS_SEED)
        in_class = exercise.judge(known, collect(answer, known, exercise.way))
        right += bool(in_class)
        if graded[0] != here.tag or (graded[0] == "right") != bool(in_class):
            differ[expression] = graded, str(here), str(in_class)
    assert differ == {}
    assert right >= 3 * len(SETS[name])
