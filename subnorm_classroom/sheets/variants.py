"""Sheets of the students' own: some exercises ask each student for another variant, drawn from the release's seed.

`hand_out` writes one sheet for each student, and a file for the grader with the seed and the class. A variant follows
from the seed, the student's line in the class list and the exercise, by a keyed hash. The grader draws it again:
a student's file cannot change what is asked for.
"""

import hashlib
import hmac
import re
import secrets
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subnorm_classroom.grading.cells import Cell
from subnorm_classroom.grading.submissions import file_names
from subnorm_classroom.reports.gradebook import letters
from subnorm_classroom.reports.results import Refused, as_markdown, read_json, write
from subnorm_classroom.reports.results import as_json as as_text
from subnorm_classroom.sheets import handout
from subnorm_classroom.sheets.release import ROOT, Notebook, SheetError, as_json, read, shown, source_of, student
from subnorm_lab.checks import SETS
from subnorm_lab.checks.exercise import Exercise

ASKED = re.compile(r'checks\.(\w+)\(\w+, variant="([^"\n]*)"\)')  # the check of a student's own sheet


@dataclass(frozen=True)
class Release:
    """A sheet that was handed out to a class.

    Args:
        name: of the set.
        seed: secret: it gives away the variant of every student.
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
        """The line of each student who handed in, with or without the platform's number; Refused if one has none.

        Names are compared by their letters and digits, because platforms drop other characters.
        """
        known = {letters(line): line for line in self.students}
        found = {who: known.get(letters(who)) or known.get(letters(re.sub(r"_\d+$", "", who))) for who in students}
        if lost := [who for who, line in found.items() if not line]:
            more = f", and {len(lost) - 20} more" if len(lost) > 20 else ""
            raise Refused(
                f"{len(lost)} of the students are not in the class list of the release: {', '.join(lost[:20])}{more}. "
                "Add a line for each, spelled like this, to the list, run release again, and give it as --release"
            )
        lines = {who: line for who, line in found.items() if line}
        if twice := [line for line, count in Counter(lines.values()).items() if count > 1]:
            both = " and ".join(who for who, line in lines.items() if line == twice[0])
            raise Refused(f"{both} would be one line of the class list; write their numbers into it, as they are here")
        return lines

    def as_dict(self) -> dict[str, Any]:
        labels = {ex.name: [one.label for one in ex.variants] for ex in SETS[self.name] if ex.variants}
        return {"set": self.name, "seed": self.seed, "students": list(self.students), "variants": labels}


def release_in(data: Any, name: str, where: Path) -> Release:
    """The release of a set, from the data of `Release.as_dict`; Refused if it is not one, or of another version."""
    kinds = {"set": str, "seed": int, "students": list, "variants": dict}
    if not isinstance(data, dict) or any(not isinstance(data.get(key), kind) for key, kind in kinds.items()):
        raise Refused(f"{where} is not the file that release writes with --variants, or it is damaged")
    if data["set"] != name:
        raise Refused(f"{where} is of {data['set']}, not of {name}")
    release = Release(name, data["seed"], tuple(data["students"]))
    if release.as_dict()["variants"] != data["variants"]:
        raise Refused(
            f"the sheets of {where} ask for other variants than this version of subnorm knows: grade them with the "
            "version that released them. To release anew, move the file away"
        )
    return release


def hand_out(name: str, class_list: Path) -> int:
    """Write a sheet for each student, a zip with what they install, and the grader's file; 1 if that is not possible.

    If that file exists, its seed is used again: students who were in the class list keep their sheets.
    """
    try:
        if not any(ex.variants for ex in SETS[name]):
            raise Refused(f"no exercise of {name} has variants; release it without --variants")
        students = read_class(class_list)
        folder = ROOT / "dist" / f"{name}-variants"
        kept = folder.with_suffix(".json")
        seed = release_in(read_json(kept), name, kept).seed if kept.exists() else secrets.randbits(128)
        release = Release(name, seed, students)
        path = source_of(name)
        sheets = Sheets(name, read(path))
        for line, stem in file_names(list(students)).items():
            write(folder / stem / path.name, as_json(sheets.own(line, release.exercises(line, SETS[name]))))
        install = handout.write(ROOT, name, path.name, "", SETS[name])
        write(kept, as_text(release.as_dict()))
    except (Refused, SheetError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print(f"{name}: {len(students)} sheets in {shown(folder)}, one folder for each student")
    print(f"  for everybody: {shown(install)}, which installs the course; it holds no sheet")
    print(f"  for the grader: {shown(kept)}; keep it secret, and give it to grade with --release")
    return 0


class Sheets:
    """The sheets of a class. The cells of each variant are made once.

    Args:
        name: of the set.
        source: its notebook.
    """

    def __init__(self, name: str, source: Notebook) -> None:
        self.name, self.plain = name, student(source, name)
        self.cells = {
            (ex.name, one.label): student(source, name, [ex.variant(one.label)])["cells"]
            for ex in SETS[name]
            for one in ex.variants
        }

    def own(self, line: str, exercises: Sequence[Exercise]) -> Notebook:
        """The sheet of a student."""
        cells = [dict(cell) for cell in self.plain["cells"]]
        for ex in exercises:
            if ex.chosen:
                ours = self.cells[ex.name, ex.chosen.label]
                numbered = f"{self.name}-{ex.number}-"
                cells = [b if b["id"].startswith(numbered) else a for a, b in zip(cells, ours, strict=True)]
        first = {**cells[0], "source": cells[0]["source"] + "\n\n" + own_sheet(line, exercises)}
        return {**self.plain, "cells": [first, *cells[1:]]}


def own_sheet(line: str, exercises: Sequence[Exercise]) -> str:
    """What a sheet says about itself."""
    names = ", ".join(f"`{ex.name}`" for ex in exercises if ex.chosen)
    return (
        f"**This sheet belongs to {as_markdown(line)}.** These exercises may ask you for something else than others:\n"
        f"{names}. If you work on the course's page of this sheet, add\n"
        f"`#variant={code(exercises)}` to its address: then its checks ask for the same as yours."
    )


def code(exercises: Sequence[Exercise]) -> str:
    """A student's variants as one digit for each exercise of the sheet, for the address of the sheet's page."""
    return "".join(str(list(ex.variants).index(ex.chosen)) if ex.chosen else "0" for ex in exercises)


def read_class(path: Path) -> tuple[str, ...]:
    """The students of a class list: a text file with one name on each line, as the platform spells it."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise Refused(f"the class list {path} cannot be read: {error.strerror}. Give the path of that file") from error
    except UnicodeDecodeError as error:
        raise Refused(f"the class list {path} must be a text file in UTF-8, with one student on each line") from error
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or any(set(';\t"') & set(line) or line.count(",") > 1 for line in lines):
        raise Refused(f"{path} must have one student on each line, and no other columns; copy the names out of a table")
    seen: dict[str, str] = {}
    for line in lines:
        key = letters(line)
        if not key or key in seen:
            what = f"{seen[key]!r} and {line!r}" if key else f"a line without a letter, {line!r}"
            raise Refused(f"{path} has {what}; to tell names that look alike apart, add the platform's numbers")
        seen[key] = line
    return tuple(lines)


def asks_for_variants(data: bytes) -> bool:
    """Whether a notebook looks like a student's own sheet."""
    return b', variant=\\"' in data


def foreign(cells: Sequence[Cell], exercises: Sequence[Exercise]) -> list[str]:
    """A flag if the checks in a notebook ask for other variants than the student's, as in somebody else's sheet."""
    own = {ex.name: ex.chosen.label for ex in exercises if ex.chosen}
    asked = [found for cell in cells for found in ASKED.findall(cell.source)]
    names = sorted({name for name, label in asked if own.get(name, label) != label})
    return [f"its checks ask for variants of another student: {', '.join(names)}"] if names else []
