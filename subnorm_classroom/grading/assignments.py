"""What each student is asked: the exercises of a sheet, with cases from the secret seed of a run."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from subnorm_classroom.grading.running import Question
from subnorm_classroom.sheets.variants import Release
from subnorm_lab.checks.collect import Case
from subnorm_lab.checks.exercise import Exercise


@dataclass(frozen=True)
class Assignment:
    """One exercise, with the cases on which its answer is judged."""

    exercise: Exercise
    cases: list[Case]

    @property
    def question(self) -> Question:
        """What the sandbox gets to know about it."""
        return Question(self.exercise.name, self.exercise.way, self.cases)


def draw(exercise: Exercise, seed: int) -> Assignment:
    """An exercise with its cases, from a random stream of its own."""
    stream = np.random.default_rng([seed, zlib.crc32(exercise.name.encode())])
    return Assignment(exercise, exercise.cases(stream))


class Assignments:
    """The assignments of a class: the same for all, or with variants of the students' own.

    Args:
        exercises: the exercises of the sheet.
        seed: draws the cases.
        release: the sheets that were handed out; None if all students have the same.
        students: everybody who handed in.

    Raises:
        Refusal: a student is not in the class list of the release.
    """

    def __init__(
        self, exercises: Sequence[Exercise], seed: int, release: Release | None, students: Sequence[str]
    ) -> None:
        self.common = [draw(ex, seed) for ex in exercises]
        self.release = release
        self.lines = release.lines_of(students) if release else {}
        self.variants = {
            (ex.name, variant.label): draw(ex.variant(variant.label), seed)
            for ex in exercises
            if release
            for variant in ex.variants
        }

    def of(self, student: str) -> list[Assignment]:
        """The assignments of one student."""
        if not self.release:
            return self.common
        line, release = self.lines[student], self.release
        exercises = [assignment.exercise for assignment in self.common]
        labels = [release.draw(line, ex) if ex.variants else "" for ex in exercises]
        return [
            self.variants[common.exercise.name, label] if label else common
            for common, label in zip(self.common, labels, strict=True)
        ]
