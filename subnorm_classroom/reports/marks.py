"""Marks that a teacher sets by hand, in a file `marks.csv` beside the grades: student, exercise, points, reason.

The grader never writes to that file, so the marks survive every new run. Teachers may edit it in a spreadsheet.
"""

import csv
import difflib
import io
import math
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from subnorm_classroom.errors import Refusal
from subnorm_classroom.reports.records import Record, worth
from subnorm_classroom.reports.tables import from_cell

COLUMNS = ["student", "exercise", "points", "reason"]
Marks = dict[tuple[str, str], tuple[float, str]]  # (points, reason) by student and exercise


class UnknownStudent(Refusal):
    """Nobody has this name."""


def with_marks(record: Record, marks: Marks) -> Record:
    """A record with the marks set by hand."""
    results = []
    for r in record["results"]:
        points, reason = marks.get((record["student"], r["exercise"]), (None, ""))
        results.append(r if points is None else {**r, "points": points, "by_hand": reason})
    return {**record, "results": results}


def marks_of_folder(out: Path, records: Iterable[Record]) -> Marks:
    """The marks set by hand in a folder of grades.

    A student who is not there is reported: they may have withdrawn.

    Raises:
        Refusal: a mark is wrong; the message names its row.
    """
    return read_marks(out / "marks.csv", records, [])


def read_marks(path: Path, records: Iterable[Record], gone: list[list[str]] | None = None) -> Marks:
    """The marks in a file.

    Args:
        path: the file; if there is none, there are no marks.
        records: the records of all students.
        gone: gets the rows of students who are not there, who are then reported; None refuses such a row.

    Raises:
        Refusal: a mark is wrong; the message names its row.
    """
    marks: Marks = {}
    students = {record["student"]: record for record in records}
    for number, row in read_rows(path, COLUMNS).items():
        where = f"row {number} of {path}"
        try:
            new = marks_of(row, students)
            if twice := [f"{ex} of {student}" for student, ex in new if (student, ex) in marks]:
                raise Refusal(f"it sets {twice[0]} a second time; remove one of the two")
        except UnknownStudent as error:
            if gone is None:
                raise Refusal(f"{where}: {error}") from None
            print(f"{where}: {error}. The mark is not used", file=sys.stderr)
            gone.append(row)
        except Refusal as error:
            raise Refusal(f"{where}: {error}") from None
        else:
            marks |= new
    return marks


def read_rows(path: Path, columns: Sequence[str]) -> dict[int, list[str]]:
    """The rows of a teacher's file, by the numbers that a spreadsheet shows; none if there is no file."""
    if not path.exists():
        return {}
    try:
        text = path.read_bytes().decode("utf-8-sig")
        first = text.split("\n")[0]
        rows = list(csv.reader(io.StringIO(text), delimiter=max(",;\t", key=first.count), strict=True))
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}. Allow yourself to read it") from error
    except (ValueError, csv.Error) as error:
        raise Refusal(f"{path} is not a CSV file in UTF-8: {error}. Save it as one") from error
    if not rows or [name.strip().lower() for name in rows[0]] != columns:
        raise Refusal(f"the first row of {path} must be {','.join(columns)}")
    return {number: row for number, row in enumerate(rows[1:], 2) if any(cell.strip() for cell in row)}


def marks_of(row: Sequence[str], students: dict[str, Record]) -> Marks:
    """The marks of one row.

    Args:
        row: student, exercise, points, reason. The student is as in totals.csv, where the platform's number may be
            left out; the exercise may be "all".
        students: the record of each student, by name.

    Raises:
        Refusal: the student, the exercise, the points or the reason is wrong.
    """
    if len(row) != len(COLUMNS):
        raise Refusal(f"it must have {len(COLUMNS)} cells; it has {len(row)}")
    student, exercise = find_student(from_cell(row[0]), students), row[1].strip()
    most = {r["exercise"]: r["max_points"] for r in students[student]["results"]}
    if exercise not in [*most, "all"]:
        raise Refusal(f"there is no exercise {exercise!r}; the exercises are {', '.join(most)}, or all of them: all")
    reason = from_cell(" ".join(row[3].split()))
    if not reason:
        raise Refusal("a mark set by hand needs a reason; the student reads it")
    return {(student, ex): (read_points(ex, row[2], most[ex]), reason) for ex in most if exercise in (ex, "all")}


def read_points(exercise: str, points: str, most: float) -> float:
    """The points of an exercise; Refusal if they are no number up to its maximum."""
    try:
        value = float(points.replace(",", "."))
    except ValueError:
        value = math.nan
    if not 0 <= value <= most:
        raise Refusal(f"points of {exercise} must be a number from 0 to {most}; got {points!r}")
    return round(value, 2)


def find_student(name: str, students: Collection[str]) -> str:
    """The student of a name, with or without the platform's number; Refusal unless exactly one has it."""
    if name in students:
        return name
    found = [student for student in students if re.sub(r"_\d+$", "", student) == name]
    if len(found) == 1:
        return found[0]
    near = found or difflib.get_close_matches(name, students, 5, 0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "totals.csv lists the students"
    if found:
        raise Refusal(f"several students are called {name!r}; {hint}")
    raise UnknownStudent(f"there is no student called {name!r}; {hint}")


def changes(old: Record, new: Record, marks: Marks) -> list[str]:
    """One line for each exercise whose mark differs between two records of one notebook."""
    was: dict[str, Any] = {r["exercise"]: r for r in old["results"]}
    lines = []
    for r in new["results"]:
        before = was.pop(r["exercise"], None)
        if before and (before["points"], before["max_points"]) == (r["points"], r["max_points"]):
            continue
        old_mark = worth(before) if before else "none"
        kept = ", but it is set by hand" if (new["student"], r["exercise"]) in marks else ""
        lines.append(f"{new['student']}: {r['exercise']} {old_mark} → {worth(r)}{kept}")
    return lines + [f"{new['student']}: {name} is no longer in the set" for name in was]
