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
from subnorm_classroom.grading.verdict import known_error
from subnorm_classroom.grading.wire import pack_case, unpack_outcome
from subnorm_lab.checks.collect import Case, Outcome


@dataclass
class Work:
    """The results of running one notebook."""

    answers: dict[str, list[Outcome] | str] = field(default_factory=dict)  # outcomes, or the reason for having none
    errors: dict[int, tuple[str, str]] = field(default_factory=dict)  # by cell: the error, and the missing module
    lost: dict[int, str] = field(default_factory=dict)  # by cell that ended the process: how


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
        """Run a notebook; see `run`."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Give up everything that is not finished."""


def needs_torch(cells: Sequence[Cell], questions: Sequence[Question]) -> bool:
    return any(asked.way == "module" for asked in questions) or any(re.search(r"\btorch\b", c.source) for c in cells)


def run(box: Sandbox | RemoteWorkers, cells: Sequence[Cell], questions: Sequence[Question]) -> Work:
    """Run a notebook; if a cell or question ends or hangs the process, run it again without that."""
    if isinstance(box, RemoteWorkers):
        return box.work(cells, questions)
    work = Work()
    cases = {asked.name: len(asked.cases) for asked in questions}
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
            ending = box.run(job, lambda message: hear(message, work, cases), until)
            how = ending.how
            if ending.at == "cell" and isinstance(ending.which, int):
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


def hear(message: dict[str, Any], work: Work, cases: Mapping[str, int]) -> None:
    """Store a message from a student's process. It may be forged, but is only an answer, and the first one counts.

    Args:
        message: any JSON object.
        work: gets the answer or the error.
        cases: how many cases each question has, by its name.
    """
    name = message.get("answer", message.get("none"))
    if isinstance(name, str) and name in cases and name not in work.answers:
        if "answer" in message:
            try:
                outcomes = [unpack_outcome(data) for data in message["outcomes"]]
                if len(outcomes) != cases[name]:
                    raise ValueError("not as many outcomes as cases")
                work.answers[name] = outcomes
            except Exception:  # the process may send anything
                work.answers[name] = "unreadable"
        else:
            work.answers[name] = "no_function" if message.get("found") is True else "missing"
    number, error = message.get("cell_error"), message.get("error")
    if isinstance(number, int) and isinstance(error, str) and len(work.errors) < 1000:
        work.errors.setdefault(number, (known_error(error), str(message.get("module"))[:100]))
