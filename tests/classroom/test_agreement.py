"""The class and the grader agree on every answer.

Every answer of the bank, NumPy and PyTorch, goes both ways: to the check, as in a notebook, and into the sandbox. All
answers to a set are graded as one notebook, whose first cell brings the files that the bank imports.
"""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from checks import test_bank as bank
from checks.test_bank import remembered  # noqa: F401, a fixture for each test: caches the outcomes of our own answers
from classroom.hand_ins import PATIENT
from helpers.parts import need

from subnorm_classroom.grading.assignments import draw
from subnorm_classroom.grading.cells import Cell
from subnorm_classroom.grading.running import Question, run_notebook
from subnorm_classroom.grading.sandbox import COURSE, Sandbox
from subnorm_classroom.grading.verdict import verdict
from subnorm_lab.checks import SETS
from subnorm_lab.checks.collect import attempts
from subnorm_lab.checks.exercise import CLASS_SEED

SEED = 11
UNPACK = """
import pathlib, sys

for name, text in {files!r}.items():
    path = pathlib.Path("/tmp", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
for name in [name for name in sys.modules if name.split(".")[0] in ("subnorm", "subnorm_lab")]:
    del sys.modules[name]
sys.meta_path.pop(0)  # it says that the package is absent
sys.path.insert(0, "/tmp")
from subnorm_lab.checks import SETS
"""


def bank_files():
    """{path: text} of every file that a bank imports."""
    folders = ("subnorm/numpy", "subnorm/torch", "subnorm_lab/checks", "subnorm_lab/stories")
    found = [path for folder in folders for path in (COURSE / folder).rglob("*.py")]
    found += [path for name in ("subnorm", "subnorm_lab") for path in (COURSE / name).glob("*.py")]
    found = {path.relative_to(COURSE): path for path in found}
    found |= {f"checks/{path.name}": path for path in Path(bank.__file__).parent.glob("*.py")}
    return {str(name): path.read_text("utf-8") for name, path in found.items()}


def answers_of(name):
    """(the exercise, an answer, the expression that gives this answer in the sandbox) of each answer to a set."""
    module = f"__import__('checks.bank_{name}').bank_{name}"
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


def judged(exercise, answer, cases):
    """As a check judges in class."""
    return exercise.judge(cases, exercise.choose(attempts(answer, cases, exercise.way), cases))


@pytest.mark.parametrize("name", SETS)
def test_class_and_grading_agree_on_every_answer_of_the_bank(name, box):
    torch.set_num_threads(1)
    cases = {exercise.name: draw(exercise, SEED).cases for exercise in SETS[name]}
    entries = list(answers_of(name))
    assert len(entries) > 60
    tests = [replace(exercise, name=f"answer_{k}") for k, (exercise, _, _) in enumerate(entries)]
    lines = [f"answer_{k} = {expression}" for k, (_, _, expression) in enumerate(entries)]
    cells = [
        Cell(1, (), UNPACK.format(files=bank_files())),
        Cell(2, (), "\n".join(lines)),
    ]
    asked = [
        Question(test.name, test.way, cases[exercise.name])
        for test, (exercise, _, _) in zip(tests, entries, strict=True)
    ]
    work = run_notebook(box, cells, asked)
    assert work.errors == {}
    differ, right = {}, 0
    for test, (exercise, answer, expression) in zip(tests, entries, strict=True):
        outcomes = work.candidates(test, cases[exercise.name])[-1]
        assert not isinstance(outcomes, str), (expression, outcomes)
        graded = verdict(exercise, cases[exercise.name], outcomes)
        here = judged(exercise, answer, cases[exercise.name])
        in_class = judged(exercise, answer, bank.cases_of(exercise.name, CLASS_SEED))
        right += bool(in_class)
        if graded[0] != here.tag or (graded[0] == "right") != bool(in_class):
            differ[expression] = graded, str(here), str(in_class)
    assert differ == {}
    assert right >= 3 * len(SETS[name])
