"""Run one notebook in the sandbox, and collect the outcomes of its answers."""

import abc
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from subnorm_classroom.errors import Refusal
from subnorm_classroom.grading.cells import Cell
from subnorm_classroom.grading.sandbox import Limits, Sandbox
from subnorm_classroom.grading.verdict import CellError, choose, known_error
from subnorm_classroom.grading.wire import pack_case, unpack_outcome
from subnorm_lab.checks.collect import Case, Outcome
from subnorm_lab.checks.exercise import Exercise

Attempts = list[list[Outcome]]  # see `attempts` in `subnorm_lab.checks.collect`


@dataclass
class Work:
    """The results of running one notebook."""

    answers: dict[str, Attempts | str] = field(default_factory=dict)  # at its end, or the reason for having none
    checked: dict[str, Attempts] = field(default_factory=dict)  # as they were at their last checks
    errors: dict[int, CellError] = field(default_factory=dict)  # by cell
    lost: dict[int, str] = field(default_factory=dict)  # by cell that ended the process: how

    def candidates(self, ex: Exercise, cases: Sequence[Case]) -> list[list[Outcome] | str]:
        """What may count as an answer: as it was at its check, if it was checked; and at the end."""
        found = [*([self.checked[ex.name]] if ex.name in self.checked else []), self.answers[ex.name]]
        return [one if isinstance(one, str) else choose(ex, cases, one) for one in found]


#: What a process may say of the syntax of a cell.
NEWER = [f"3.{minor}" for minor in range(12, 30)]


class NotebookLost(Refusal):
    """One notebook cannot be run; others can."""


@dataclass(frozen=True)
class Question:
    """What a sandbox gets to know about an exercise: nothing that helps to judge an answer.

    Args:
        name: the name of the function that the student writes.
        way: how to call it, one of `WAYS` in `subnorm_lab.checks.collect`.
        cases: the calls.
    """

    name: str
    way: str
    cases: list[Case]

    def pack(self) -> list[Any]:
        """The question in a form that JSON can store."""
        return [self.name, self.way, [pack_case(case) for case in self.cases]]


class RemoteWorkers(abc.ABC):
    """Other machines that run notebooks in sandboxes of their own."""

    isolated = True
    limits: Limits
    jobs: int  # how many notebooks to give them at a time

    @abc.abstractmethod
    def work(self, cells: Sequence[Cell], questions: Sequence[Question]) -> Work:
        """Run a notebook; see `run_notebook`."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Give up everything that is not finished."""


def needs_torch(cells: Sequence[Cell], questions: Sequence[Question]) -> bool:
    return any(asked.way == "module" for asked in questions) or any(re.search(r"\btorch\b", c.source) for c in cells)


def run_notebook(box: Sandbox | RemoteWorkers, cells: Sequence[Cell], questions: Sequence[Question]) -> Work:
    """Run a notebook; if a cell or question ends or hangs the process, run it again without that."""
    if isinstance(box, RemoteWorkers):
        return box.work(cells, questions)
    work = Work()
    cases = {asked.name: len(asked.cases) for asked in questions}
    numbers = [cell.number for cell in cells]
    torch = needs_torch(cells, questions)
    until = time.monotonic() + box.limits.total
    for _ in range(box.limits.restarts + 1):
        todo = [asked for asked in questions if asked.name not in work.answers]
        job = {
            "torch": torch,
            "cells": [[c.number, c.tags, c.source] for c in cells if c.number not in work.lost],
            "questions": [asked.pack() for asked in todo],
        }
        how = "killed"
        if todo:
            ending = box.run(job, lambda message: hear(message, work, cases, numbers), until)
            how = ending.how
            if ending.at == "cell" and ending.which in numbers:
                work.lost[ending.which] = how
            elif ending.at == "question" and isinstance(ending.which, str) and ending.which in cases:
                work.answers.setdefault(ending.which, how)
            else:  # it finished, or did not start
                break
        if not todo or time.monotonic() > until:
            break
    for name in cases:
        work.answers.setdefault(name, "killed" if how == "end" else how)
    return work


def hear(message: dict[str, Any], work: Work, cases: Mapping[str, int], numbers: Sequence[int]) -> None:
    """Store a message from a student's process. It may be forged, but is only an answer, and the first one counts.

    Args:
        message: any JSON object.
        work: gets the answer or the error.
        cases: how many cases each question has, by its name.
        numbers: those of the cells.
    """
    name = message.get("answer", message.get("none", message.get("checked")))
    if isinstance(name, str) and name in cases and name not in work.answers:
        if "none" in message:
            work.answers[name] = "no_function" if message.get("found") is True else "missing"
        else:
            found: Attempts | str
            try:
                found = unpack_attempts(message["attempts"], cases[name])
            except Exception:  # the process may send anything
                found = "unreadable"
            if "answer" in message:
                work.answers[name] = found
            elif not isinstance(found, str):
                work.checked[name] = found
    number, error = message.get("cell_error"), message.get("error")
    if isinstance(number, int) and number in numbers and isinstance(error, str):
        newer = message.get("newer")
        about = str(message.get("module"))[:100], newer if newer in NEWER else ""
        work.errors.setdefault(number, CellError(known_error(error), *about))


def unpack_attempts(data: Any, many: int) -> Attempts:
    """Attempts from the student's side, each on so many cases.

    Raises:
        ValueError: the data is anything else.
    """
    found = [[unpack_outcome(outcome) for outcome in outcomes] for outcomes in data]
    if not 1 <= len(found) <= 2 or any(len(outcomes) != many for outcomes in found):
        raise ValueError("not as many outcomes as cases")
    return found
