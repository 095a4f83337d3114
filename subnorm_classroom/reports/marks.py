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

from subnorm_classroom.reports.page import page
from subnorm_classroom.reports.results import (
    Record,
    Refused,
    as_cell,
    as_csv,
    as_lines,
    as_totals,
    counted,
    feedback,
    from_cell,
    points,
    read_json,
    write,
)

COLUMNS = ["student", "exercise", "points", "reason"]
Marks = dict[tuple[str, str], tuple[float, str]]  # (points, reason) by student and exercise


class NoStudent(Refused):
    """Nobody has this name."""


def mark(out: Path, given: Sequence[str] | Path) -> int:
    """Set marks by hand, and write the tables and feedback again; return 0 when done, 1 if refused.

    One wrong mark refuses all: then nothing is written.

    Args:
        out: folder of the grades.
        given: student, exercise, points, reason; or a CSV file with these columns, for many marks.
    """
    path = out / "marks.csv"
    try:
        name, records = finished(out)
        if isinstance(given, Path):
            if not given.exists():
                raise Refused(f"there is no file {given}; make one with the columns {', '.join(COLUMNS)}")
            new = marks_in(given, records.values())
        else:
            new = marks_of(given, by_name(records.values()))
        gone: list[list[str]] = []
        marks = marks_in(path, records.values(), gone) | new
        rows = [[as_cell(student), ex, f"{value:g}", as_cell(why)] for (student, ex), (value, why) in marks.items()]
        write(path, as_lines([COLUMNS, *gone, *rows]))
        final = publish(out, name, records, marks)
    except Refused as error:
        print(f"mark: {error}", file=sys.stderr)
        return 1
    for record in final:
        if mine := [f"{ex} {value:g}" for (student, ex), (value, _) in new.items() if student == record["student"]]:
            total, most = points(record)
            print(f"{record['student']}: {', '.join(mine)}; now {total:g} of {most:g} points")
    print(f"{counted(len(new), 'mark')} set by hand in {path}")
    return 0


def finished(out: Path) -> tuple[str, dict[str, Record]]:
    """(set, records by file name) of graded submissions; Refused if they are not graded."""
    log = read_json(out / "log.json")
    if not log.get("finished"):
        raise Refused(f"there are no finished grades in {out}; run grade first, with -o {out}")
    return str(log["set"]), records_in(out)


def records_in(out: Path) -> dict[str, Record]:
    """The records of a folder of grades, by file name, sorted by student."""
    found = {path.stem: read_json(path) for path in (out / "students").glob("*.json")}
    known = {stem: record for stem, record in found.items() if {"student", "key", "results"} <= set(record)}
    return dict(sorted(known.items(), key=lambda item: str(item[1]["student"])))


def publish(out: Path, set_name: str, records: dict[str, Record], marks: Marks) -> list[Record]:
    """Write the tables and the feedback, with the marks set by hand; return the records with these marks."""
    final = {stem: marked(record, marks) for stem, record in records.items()}
    for stem, record in final.items():
        write(out / "feedback" / f"{stem}.md", feedback(set_name, record))
        write(out / "feedback" / f"{stem}.html", page(set_name, record))
    ordered = list(final.values())
    write(out / "grades.csv", as_csv(ordered))
    write(out / "totals.csv", as_totals(ordered))
    return ordered


def marked(record: Record, marks: Marks) -> Record:
    """A record with the marks set by hand."""
    results = []
    for r in record["results"]:
        points, reason = marks.get((record["student"], r["exercise"]), (None, ""))
        results.append(r if points is None else {**r, "points": points, "by_hand": reason})
    return {**record, "results": results}


def read_marks(out: Path, records: Iterable[Record]) -> Marks:
    """The marks set by hand in a folder of grades; Refused with its row if one is wrong.

    A student who is not there is reported: they may have withdrawn.
    """
    return marks_in(out / "marks.csv", records, [])


def marks_in(path: Path, records: Iterable[Record], gone: list[list[str]] | None = None) -> Marks:
    """The marks in a file; Refused with its row if one is wrong.

    Args:
        path: of the file; none has no marks.
        records: of all students.
        gone: gets the rows of students who are not there, who are then reported; None refuses such a row.
    """
    marks: Marks = {}
    students = by_name(records)
    for number, row in rows_of(path).items():
        where = f"row {number} of {path}"
        try:
            new = marks_of(row, students)
            if twice := [f"{ex} of {student}" for student, ex in new if (student, ex) in marks]:
                raise Refused(f"it sets {twice[0]} a second time; remove one of the two")
        except NoStudent as error:
            if gone is None:
                raise Refused(f"{where}: {error}") from None
            print(f"{where}: {error}. The mark is not used", file=sys.stderr)
            gone.append(row)
        except Refused as error:
            raise Refused(f"{where}: {error}") from None
        else:
            marks |= new
    return marks


def rows_of(path: Path) -> dict[int, list[str]]:
    """The rows of a file of marks, by the numbers that a spreadsheet shows; none if there is no file."""
    if not path.exists():
        return {}
    try:
        text = path.read_bytes().decode("utf-8-sig")
        first = text.split("\n")[0]
        rows = list(csv.reader(io.StringIO(text), delimiter=max(",;\t", key=first.count), strict=True))
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}. Allow yourself to read it") from error
    except (ValueError, csv.Error) as error:
        raise Refused(f"{path} is not a CSV file in UTF-8: {error}. Save it as one") from error
    if not rows or [name.strip().lower() for name in rows[0]] != COLUMNS:
        raise Refused(f"the first row of {path} must be {','.join(COLUMNS)}")
    return {number: row for number, row in enumerate(rows[1:], 2) if any(cell.strip() for cell in row)}


def by_name(records: Iterable[Record]) -> dict[str, Record]:
    return {record["student"]: record for record in records}


def marks_of(row: Sequence[str], students: dict[str, Record]) -> Marks:
    """The marks of one row; Refused if the student, the exercise, the points or the reason is wrong.

    Args:
        row: student, exercise, points, reason. The student is as in totals.csv, where the platform's number may be
            left out; the exercise may be "all".
        students: the record of each.
    """
    if len(row) != len(COLUMNS):
        raise Refused(f"it must have {len(COLUMNS)} cells; it has {len(row)}")
    student, exercise = one_of(from_cell(row[0]), students), row[1].strip()
    most = {r["exercise"]: r["max_points"] for r in students[student]["results"]}
    if exercise not in [*most, "all"]:
        raise Refused(f"there is no exercise {exercise!r}; the exercises are {', '.join(most)}, or all of them: all")
    reason = from_cell(" ".join(row[3].split()))
    if not reason:
        raise Refused("a mark set by hand needs a reason; the student reads it")
    return {(student, ex): (checked(ex, row[2], most[ex]), reason) for ex in most if exercise in (ex, "all")}


def checked(exercise: str, points: str, most: float) -> float:
    """The points of an exercise; Refused if they are no number up to its maximum."""
    try:
        value = float(points.replace(",", "."))
    except ValueError:
        value = math.nan
    if not 0 <= value <= most:
        raise Refused(f"points of {exercise} must be a number from 0 to {most}; got {points!r}")
    return round(value, 2)


def one_of(name: str, students: Collection[str]) -> str:
    """The student of a name, with or without the platform's number; Refused unless exactly one has it."""
    if name in students:
        return name
    found = [student for student in students if re.sub(r"_\d+$", "", student) == name]
    if len(found) == 1:
        return found[0]
    near = found or difflib.get_close_matches(name, students, 5, 0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "totals.csv lists the students"
    if found:
        raise Refused(f"several students are called {name!r}; {hint}")
    raise NoStudent(f"there is no student called {name!r}; {hint}")


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


def worth(r: Record) -> str:
    """The mark of a result, and the reason for it."""
    return f"{r['points']:g} of {r['max_points']:g} ({'by hand' if 'by_hand' in r else r['diagnosis']})"
