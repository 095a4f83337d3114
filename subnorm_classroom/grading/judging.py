"""Judge the answers of one notebook: run it, compare, and give points."""

import math
from collections.abc import Sequence

from subnorm_classroom.grading.assignments import Assignment
from subnorm_classroom.grading.behaviour import traces
from subnorm_classroom.grading.cells import Cell
from subnorm_classroom.grading.running import RemoteWorkers, Work, run_notebook
from subnorm_classroom.grading.sandbox import Sandbox
from subnorm_classroom.grading.verdict import SAYS, UNKNOWN, failed_imports, share, verdict, why_missing
from subnorm_classroom.reports.records import Record
from subnorm_lab.checks.exercise import Exercise

UNWRITTEN = ("not_done", "missing", "no_function")


def judge(box: Sandbox | RemoteWorkers, cells: Sequence[Cell], assignments: Sequence[Assignment]) -> list[Record]:
    """The results of a notebook, one for each exercise."""
    work = run_notebook(box, cells, [assignment.question for assignment in assignments])
    return [judge_one(work, cells, assignment) for assignment in assignments]


def judge_one(work: Work, cells: Sequence[Cell], assignment: Assignment) -> Record:
    """The better of two results: of the answer as it was at its check, and as it is when all cells have run.

    A later cell may give its name, or that of a helper, to something else; or an answer is written below its check.
    """
    ex, cases, results = assignment.exercise, assignment.cases, []
    for answer in work.candidates(ex, cases):
        if isinstance(answer, str):
            results.append(result(ex, *why_missing(ex.name, answer, cells, work.lost, work.errors)))
            continue
        diagnosis, says = verdict(ex, cases, answer, cells)
        if diagnosis == "error" and "raises NameError" in says:
            says += failed_imports(cells, work.errors)
        results.append(result(ex, diagnosis, says, share(ex, cases, answer, diagnosis)))
        if diagnosis in UNKNOWN:
            results[-1]["does"] = traces(answer)
    return max(results, key=lambda one: (one["points"], one["diagnosis"] not in UNWRITTEN))


def judge_nothing(problem: str, assignments: Sequence[Assignment]) -> list[Record]:
    """The results of a student without a notebook to grade."""
    return [result(assignment.exercise, problem, f"{SAYS[problem]}.") for assignment in assignments]


def result(ex: Exercise, diagnosis: str, says: str, part: float = 0) -> Record:
    """The result of one exercise.

    Args:
        ex: the exercise.
        diagnosis: "right", the tag of a mistake, or why there is no answer.
        says: the feedback to the student.
        part: the share of the inputs that are right, for which a wrong answer gets points.
    """
    points = ex.level if diagnosis == "right" else math.floor(100 * part * ex.level) / 100
    if points and diagnosis != "right":
        says += f" Partial credit: {part:.0%} of the inputs are right."
    variant = {"variant": ex.chosen.label} if ex.chosen else {}
    return {
        "exercise": ex.name, "points": points, "max_points": ex.level, "diagnosis": diagnosis, "says": says, **variant,
    }  # fmt: skip
