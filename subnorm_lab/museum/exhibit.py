"""An exhibit: a bug, the function without it, and the test that tells them apart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from subnorm_lab.checks.collect import Case
from subnorm_lab.checks.edited import Edited
from subnorm_lab.checks.exercise import Exercise, Mistake, Result, mistake

Function = Callable[..., Any]


@dataclass(frozen=True)
class Exhibit:
    """A bug from a public report. Call it with your fix to check that.

    Attributes:
        bug: the function with the bug; ``bug.text`` is its code.
        fixed: the function without it.
        test: takes such a function, and returns whether it passes: False for the bug, True for the fix.
        year: of the report.
        report: its address.
        check: the check of a fix.
    """

    bug: Edited
    fixed: Function
    test: Callable[[Function], bool]
    year: int
    report: str
    check: Exercise

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.check.name

    def __call__(self, answer: Function) -> Result:
        """Check a fix: print the result, with advice, and return it. See :class:`subnorm_lab.checks.Exercise`."""
        return self.check(answer)


def exhibit(
    bug: str,
    says: str,
    report: str,
    year: int,
    test: Callable[[Function], bool],
    cases: Callable[[np.random.Generator], list[Case]],
    others: Sequence[tuple[str, str, str]] = (),
) -> Callable[[Function], Exhibit]:
    """A decorator that makes an exhibit from the function without the bug.

    Args:
        bug: the change that brings the bug back, "old -> new", as in a mistake of an exercise.
        says: what the bug does, and what is right: the advice for an answer that still has it.
        report: address of the public report on GitHub, from the owner on.
        year: of the report.
        test: see :class:`Exhibit`.
        cases: draws the inputs on which a fix is compared with ours.
        others: further mistakes that a fix may make, each (tag, change, advice).
    """

    def made(fixed: Function) -> Exhibit:
        mistakes: list[Mistake] = [mistake(fixed, tag, change, advice) for tag, change, advice in others]
        check = Exercise(
            name=fixed.__name__,
            level=1,
            minutes=5,
            chapter="09a-the-bug-museum",
            objective="find a bug, and fix it",
            reference=fixed,
            cases=cases,
            mistakes=[mistake(fixed, "still_there", bug, says, report), *mistakes],
        )
        return Exhibit(Edited(fixed, bug), fixed, test, year, f"https://github.com/{report}", check)

    return made
