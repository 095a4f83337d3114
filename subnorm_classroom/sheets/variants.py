"""Variants of the students' own: some exercises ask each student for another one, drawn from the release's seed.

A variant follows from the seed, the student's line in the class list and the exercise, by a keyed hash. The grader
draws it again: a student's file cannot change the task.
"""

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subnorm_classroom.errors import Refusal
from subnorm_classroom.grading.cells import Cell
from subnorm_classroom.reports.gradebook import letters
from subnorm_lab.checks import SETS
from subnorm_lab.checks.exercise import Exercise

ASKED = re.compile(r'checks\.(\w+)\(\w+, variant="([^"\n]*)"\)')  # the check of a student's own sheet


@dataclass(frozen=True)
class Release:
    """A sheet that was handed out to a class.

    Args:
        name: the set.
        seed: draws the variants; secret.
        students: the lines of the class list.
    """

    name: str
    seed: int
    students: tuple[str, ...]

    def exercises(self, line: str, exercises: Sequence[Exercise]) -> list[Exercise]:
        """The exercises of a student, by the line in the class list."""
        return [ex.variant(self.draw(line, ex)) if ex.variants else ex for ex in exercises]

    def draw(self, line: str, ex: Exercise) -> str:
        """The label of a student's variant."""
        message = f"{self.name}\n{ex.name}\n{line}".encode()
        number = hmac.new(str(self.seed).encode(), message, hashlib.sha256).digest()
        return ex.variants[int.from_bytes(number, "big") % len(ex.variants)].label

    def lines_of(self, students: Sequence[str]) -> dict[str, str]:
        """The line of each student who handed in, with or without the platform's number; Refusal if one has none.

        Names are compared by their letters and digits, because platforms drop other characters.
        """
        known = {letters(line): line for line in self.students}
        found = {who: known.get(letters(who)) or known.get(letters(re.sub(r"_\d+$", "", who))) for who in students}
        if lost := [who for who, line in found.items() if not line]:
            more = f", and {len(lost) - 20} more" if len(lost) > 20 else ""
            raise Refusal(
                f"{len(lost)} of the students are not in the class list of the release: {', '.join(lost[:20])}{more}. "
                "Add a line for each, spelled like this, to the list, run release again, and give it as --release"
            )
        lines = {who: line for who, line in found.items() if line}
        if twice := [line for line, count in Counter(lines.values()).items() if count > 1]:
            both = " and ".join(who for who, line in lines.items() if line == twice[0])
            raise Refusal(f"{both} would be one line of the class list; write their numbers into it, as they are here")
        return lines

    def as_dict(self) -> dict[str, Any]:
        labels = {ex.name: [one.label for one in ex.variants] for ex in SETS[self.name] if ex.variants}
        return {"set": self.name, "seed": self.seed, "students": list(self.students), "variants": labels}


def read_release(data: Any, name: str, where: Path) -> Release:
    """The release of a set, from the data of `Release.as_dict`; Refusal if it is not one, or of another version."""
    kinds = {"set": str, "seed": int, "students": list, "variants": dict}
    if not isinstance(data, dict) or any(not isinstance(data.get(key), kind) for key, kind in kinds.items()):
        raise Refusal(f"{where} is not the file that release writes with --variants, or it is damaged")
    if data["set"] != name:
        raise Refusal(f"{where} is of {data['set']}, not of {name}")
    release = Release(name, data["seed"], tuple(data["students"]))
    if release.as_dict()["variants"] != data["variants"]:
        raise Refusal(
            f"the sheets of {where} ask for other variants than this version of subnorm knows: grade them with the "
            "version that released them. To release anew, move the file away"
        )
    return release


def asks_for_variants(data: bytes) -> bool:
    """Whether a notebook looks like a student's own sheet."""
    return b', variant=\\"' in data


def foreign(cells: Sequence[Cell], exercises: Sequence[Exercise]) -> list[str]:
    """A flag if the checks in a notebook ask for other variants than the student's, as in somebody else's sheet."""
    own = {ex.name: ex.chosen.label for ex in exercises if ex.chosen}
    asked = [found for cell in cells for found in ASKED.findall(cell.source)]
    names = sorted({name for name, label in asked if own.get(name, label) != label})
    return [f"its checks ask for variants of another student: {', '.join(names)}"] if names else []
