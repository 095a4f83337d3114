"""Run one notebook in the sandbox, and collect the outcomes of its answers."""

import abc
import re
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from subnorm_classroom.grading.cells import Cell
from subnorm_classroom.grading.sandbox import Limits, Sandbox
from subnorm_classroom.grading.verdict import known_error
from subnorm_classroom.grading.wire import pack_case, unpack_outcome
from subnorm_classroom.reports.results import Refused
from subnorm_lab.checks.collect import Case, Outcome
from subnorm_lab.checks.exercise import Exercise


@dataclass
class Work:
    """The results of running one notebook."""

    answers: dict[str, list[Outcome] | str] = field(default_factory=dict)  # outcomes, or the reason for having none
    errors: dict[int, tuple[str, str]] = field(default_factory=dict)  # by cell: the error, and the missing module
    lost: dict[int, str] = field(default_factory=dict)  # by cell that ended the process: how


class Lost(Refused):
    """One notebook cannot be run; others can."""


class Asked(Protocol):
    """What a sandbox needs to know of an exercise."""

    @property
    def name(self) -> str: ...
    @property
    def way(self) -> str: ...


class Elsewhere(abc.ABC):
    """Other machines that run notebooks in sandboxes of their own."""

    isolated = True
    limits: Limits
    jobs: int  # how many notebooks to give them at a time

    @abc.abstractmethod
    def work(self, cells: Sequence[Cell], exercises: Sequence[Asked], cases: dict[str, list[Case]]) -> Work:
        """Run a notebook; see `run`."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Give up everything that is not finished."""


def draw(ex: Exercise, seed: int) -> list[Case]:
    """The cases of an exercise, from a random stream of its own."""
    return ex.cases(np.random.default_rng([seed, zlib.crc32(ex.name.encode())]))


def needs_torch(cells: Sequence[Cell], exercises: Sequence[Asked]) -> bool:
    return any(ex.way == "module" for ex in exercises) or any(re.search(r"\btorch\b", c.source) for c in cells)


def run(
    box: Sandbox | Elsewhere, cells: Sequence[Cell], exercises: Sequence[Asked], cases: dict[str, list[Case]]
) -> Work:
    """Run a notebook; if a cell or question ends or hangs the process, run it again without that."""
    if isinstance(box, Elsewhere):
        return box.work(cells, exercises, cases)
    work = Work()
    names = {ex.name for ex in exercises}
    torch = needs_torch(cells, exercises)
    until = time.monotonic() + box.limits.total
    for _ in range(box.limits.restarts + 1):
        todo = [ex for ex in exercises if ex.name not in work.answers]
        job = {
            "torch": torch,
            "cells": [[c.number, c.tags, c.source] for c in cells if c.number not in work.lost],
            "questions": [[ex.name, ex.way, [pack_case(case) for case in cases[ex.name]]] for ex in todo],
        }
        how = "killed"
        if todo:
            ending = box.run(job, lambda message: hear(message, work, names, cases), until)
            how = ending.how
            if ending.at == "cell" and isinstance(ending.which, int):
                work.lost[ending.which] = how
            elif ending.at == "question" and isinstance(ending.which, str) and ending.which in names:
                work.answers.setdefault(ending.which, how)
            else:  # it finished, or did not start
                break
        if not todo or time.monotonic() > until:
            break
    for name in names:
        work.answers.setdefault(name, "killed" if how == "end" else how)
    return work


def hear(message: Any, work: Work, names: Iterable[str], cases: dict[str, list[Case]]) -> None:
    """Store a message from a student's process. It may be forged, but is only an answer, and the first one counts."""
    name = message.get("answer", message.get("none"))
    if isinstance(name, str) and name in names and name not in work.answers:
        if "answer" in message:
            try:
                outcomes = [unpack_outcome(data) for data in message["outcomes"]]
                if len(outcomes) != len(cases[name]):
                    raise ValueError("not as many outcomes as cases")
                work.answers[name] = outcomes
            except Exception:  # the process may send anything
                work.answers[name] = "unreadable"
        else:
            work.answers[name] = "no_function" if message.get("found") is True else "missing"
    number, error = message.get("cell_error"), message.get("error")
    if isinstance(number, int) and isinstance(error, str) and len(work.errors) < 1000:
        work.errors.setdefault(number, (known_error(error), str(message.get("module"))[:100]))
