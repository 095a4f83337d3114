"""The grader's self-test: on this machine, right answers must be judged right, and wrong ones wrong."""

import json
from collections.abc import Sequence
from dataclasses import replace

from subnorm_classroom.errors import Refusal
from subnorm_classroom.grading.assignments import Assignment, draw
from subnorm_classroom.grading.cells import Cell
from subnorm_classroom.grading.running import RemoteWorkers, run_notebook
from subnorm_classroom.grading.sandbox import Sandbox
from subnorm_classroom.grading.verdict import SAYS, verdict
from subnorm_classroom.grading.wire import pack_case, pack_outcome, unpack_case, unpack_outcome
from subnorm_lab.checks.collect import Case, outcomes_of
from subnorm_lab.checks.exercise import Exercise

CANARY = Exercise(
    name="canary",
    level=1,
    minutes=1,
    chapter="",
    objective="",
    reference=lambda x: 2 * x,
    cases=lambda rng: [Case("a batch", (rng.normal(size=(3, 4)),))],
    mistakes=[],
)

IN_TORCH = replace(
    CANARY,
    name="canary_in_pytorch",
    cases=lambda rng: [
        Case(f"a {dtype} batch", (rng.normal(size=(3, 4)).astype(dtype),))
        for dtype in ("float16", "float32", "float64")
    ],
)

TWICE_IN_TORCH = """
import torch

def canary_in_pytorch(x):
    x = torch.as_tensor(x)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        torch.nn.functional.rms_norm(x.to(dtype), x.shape[-1:]).mean()
    return (2 * x.float()).to(x.dtype)
"""


def check(
    box: Sandbox | RemoteWorkers,
    assignments: Sequence[Assignment],
    seed: int,
    solved: Sequence[Cell] | None,
    in_torch: bool,
) -> None:
    """Test a sandbox and the checks of a sheet.

    Args:
        box: the sandbox.
        assignments: the exercises of the sheet, with their cases.
        seed: draws the cases of the canaries.
        solved: the cells of the sheet with its solutions, if available.
        in_torch: whether to test PyTorch in the sandbox too.

    Raises:
        Refusal: a right answer is not judged right, or a wrong one is: then the marks would be meaningless.
    """
    for assignment in assignments:
        check_reference(assignment)
    canary = draw(CANARY, seed)
    tests = [*assignments, canary]
    twice = Cell(10_001, (), "def canary(x):\n    return 2 * x")
    half = "".join(f"def {one.exercise.name}(*args, **kwargs):\n    return 0.5\n" for one in tests)
    check_answers(box, [*(solved or []), twice], tests, "right", tests if solved else [canary])
    check_answers(box, [Cell(1, (), half)], tests, "wrong", tests)
    if in_torch:
        in_pytorch = draw(IN_TORCH, seed)
        check_answers(box, [Cell(1, (), TWICE_IN_TORCH)], [in_pytorch], "right", [in_pytorch])


def check_answers(
    box: Sandbox | RemoteWorkers,
    cells: Sequence[Cell],
    asked: Sequence[Assignment],
    wanted: str,
    judged: Sequence[Assignment],
) -> None:
    """Run some cells, and raise Refusal unless all answers that are judged are "right" or all "wrong", as wanted."""
    work = run_notebook(box, cells, [one.question for one in asked])
    for one in judged:
        name = one.exercise.name
        answer = work.candidates(one.exercise, one.cases)[-1]
        if isinstance(answer, str) and wanted == "wrong":
            raise Refusal(f"before grading, nothing came back of an answer to {name}: {answer}")
        found = (answer, SAYS[answer]) if isinstance(answer, str) else verdict(one.exercise, one.cases, answer)
        demand(name, wanted, found)


def check_reference(assignment: Assignment) -> None:
    """Raise Refusal if our own right answer is not judged right after its way through JSON."""
    ex, cases = assignment.exercise, assignment.cases
    sent = [unpack_case(json.loads(json.dumps(pack_case(case)))) for case in cases]
    there = [json.loads(json.dumps(pack_outcome(o))) for o in outcomes_of(ex.reference, sent, ex.way)]
    demand(ex.name, "right", verdict(ex, cases, [unpack_outcome(data) for data in there]))


def demand(name: str, wanted: str, found: tuple[str, str]) -> None:
    if (found[0] == "right") != (wanted == "right"):
        what = "the solution" if wanted == "right" else "a wrong answer"
        raise Refusal(f"before grading, {what} of {name} was judged {found[0]} ({found[1]}). Nothing was graded.")
