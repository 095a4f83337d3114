"""Hand out a sheet of each student's own, and a file for the grader with the seed and the class."""

import secrets
from collections.abc import Sequence
from pathlib import Path

from subnorm_classroom.errors import Refusal
from subnorm_classroom.files import as_json, read_json, write
from subnorm_classroom.grading.submissions import file_names
from subnorm_classroom.reports.gradebook import letters
from subnorm_classroom.sheets import packing
from subnorm_classroom.sheets.chapters import beside_chapters, chapters_of
from subnorm_classroom.sheets.student_sheet import (
    ROOT,
    Notebook,
    as_notebook,
    read_notebook,
    relative_path,
    source_of,
    student,
)
from subnorm_classroom.sheets.variants import Release, read_release
from subnorm_classroom.text import as_markdown
from subnorm_lab.checks import SETS
from subnorm_lab.checks.exercise import Exercise


def hand_out(name: str, class_list: Path) -> int:
    """Write a sheet for each student, a zip with what they install, and the grader's file; return 0.

    If that file exists, its seed is used again: students who were in the class list keep their sheets.

    Raises:
        Refusal: the set has no variants, or the class list or the source notebook has faults.
    """
    if not any(ex.variants for ex in SETS[name]):
        raise Refusal(f"no exercise of {name} has variants; release it without --variants")
    students = read_class(class_list)
    folder = ROOT / "dist" / f"{name}-variants"
    kept = folder.with_suffix(".json")
    seed = read_release(read_json(kept), name, kept).seed if kept.exists() else secrets.randbits(128)
    release = Release(name, seed, students)
    path = source_of(name)
    sheets = Sheets(name, read_notebook(path))
    for line, stem in file_names(list(students)).items():
        own = as_notebook(sheets.own(line, release.exercises(line, SETS[name])))
        write(folder / stem / path.name, beside_chapters(own))
    install = packing.write_zip(ROOT, name, path.name, chapters_of(ROOT, as_notebook(sheets.plain)), SETS[name])
    write(kept, as_json(release.as_dict()))
    print(f"{name}: {len(students)} sheets in {relative_path(folder)}, one folder for each student")
    print(f"  for everybody: {relative_path(install)}, which installs the course; it holds no sheet")
    print(f"  for the grader: {relative_path(kept)}; keep it secret, and give it to grade with --release")
    return 0


class Sheets:
    """The sheets of a class. The cells of each variant are made once.

    Args:
        name: the set.
        source: the source notebook of the set.
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
        f"`#variant={variants_code(exercises)}` to its address: then its checks ask for the same as yours."
    )


def variants_code(exercises: Sequence[Exercise]) -> str:
    """A student's variants as one digit for each exercise of the sheet, for the address of the sheet's page."""
    return "".join(str(list(ex.variants).index(ex.chosen)) if ex.chosen else "0" for ex in exercises)


def read_class(path: Path) -> tuple[str, ...]:
    """The students of a class list: a text file with one name on each line, as the platform spells it."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise Refusal(f"the class list {path} cannot be read: {error.strerror}. Give the path of that file") from error
    except UnicodeDecodeError as error:
        raise Refusal(f"the class list {path} must be a text file in UTF-8, with one student on each line") from error
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or any(set(';\t"') & set(line) or line.count(",") > 1 for line in lines):
        raise Refusal(f"{path} must have one student on each line, and no other columns; copy the names out of a table")
    seen: dict[str, str] = {}
    for line in lines:
        key = letters(line)
        if not key or key in seen:
            what = f"{seen[key]!r} and {line!r}" if key else f"a line without a letter, {line!r}"
            raise Refusal(f"{path} has {what}; to tell names that look alike apart, add the platform's numbers")
        seen[key] = line
    return tuple(lines)
