"""The grader's self-test: on this machine, right answers must be judged right, and wrong ones wrong."""

import json
from collections.abc import Sequence
from dataclasses import replace

from subnorm_classroom.grading.cells import Cell
from subnorm_classroom.grading.running import Elsewhere, draw, run
from subnorm_classroom.grading.sandbox import Sandbox
from subnorm_classroom.grading.verdict import SAYS, verdict
from subnorm_classroom.grading.wire import pack_case, pack_outcome, unpack_case, unpack_outcome
from subnorm_classroom.reports.results import Refused
from subnorm_lab.checks.collect import Case, collect
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
    box: Sandbox | Elsewhere,
    exercises: Sequence[Exercise],
    cases: dict[str, list[Case]],
    seed: int,
    solved: Sequence[Cell] | None,
    in_torch: bool,
) -> None:
    """Raise Refused if a right answer is not judged right, or a wrong one is: then the marks would be meaningless.

    Args:
        box: the sandbox.
        exercises: of the sheet.
        cases: of each exercise, by its name.
        seed: of the cases.
        solved: the cells of the sheet with its solutions, if available.
        in_torch: whether to test PyTorch in the sandbox too.
    """
    for ex in exercises:
        check_reference(ex, cases[ex.name])
    tests = [*exercises, CANARY]
    cases = {**cases, CANARY.name: draw(CANARY, seed)}
    twice = Cell(10_001, (), "def canary(x):\n    return 2 * x")
    half = "".join(f"def {ex.name}(*args, **kwargs):\n    return 0.5\n" for ex in tests)
    for cells, wanted in ([*(solved or []), twice], "right"), ([Cell(1, (), half)], "wrong"):
        answers = run(box, cells, tests, cases).answers
        for ex in tests if solved or wanted == "wrong" else [CANARY]:
            answer = answers[ex.name]
            found = (answer, "nothing came back") if isinstance(answer, str) else verdict(ex, cases[ex.name], answer)
            demand(ex, wanted, found)
            if wanted == "wrong" and isinstance(answer, str):
                raise Refused(f"before grading, nothing came back of an answer to {ex.name}: {answer}")
    if in_torch:
        cases = {IN_TORCH.name: draw(IN_TORCH, seed)}
        answer = run(box, [Cell(1, (), TWICE_IN_TORCH)], [IN_TORCH], cases).answers[IN_TORCH.name]
        found = (answer, SAYS[answer]) if isinstance(answer, str) else verdict(IN_TORCH, cases[IN_TORCH.name], answer)
        demand(IN_TORCH, "right", found)


def check_reference(ex: Exercise, cases: Sequence[Case]) -> None:
    """Raise Refused if our own right answer is not judged right after its way through JSON."""
    sent = [unpack_case(json.loads(json.dumps(pack_case(case)))) for case in cases]
    there = [json.loads(json.dumps(pack_outcome(o))) for o in collect(ex.reference, sent, ex.way)]
    demand(ex, "right", verdict(ex, cases, [unpack_outcome(data) for data in there]))


def demand(ex: Exercise, wanted: str, found: tuple[str, str]) -> None:
    if (found[0] == "right") != (wanted == "right"):
        what = "the solution" if wanted == "right" else "a wrong answer"
        raise Refused(f"before grading, {what} of {ex.name} was judged {found[0]} ({found[1]}). Nothing was graded.")
