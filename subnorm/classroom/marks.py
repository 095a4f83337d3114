"""Marks that a teacher sets by hand, in a file `marks.csv` beside the grades: student, exercise, points, reason.

The grader never writes to that file, so the marks survive every new run. Teachers may edit it in a spreadsheet.
"""

import csv
import difflib
import io
import math
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from subnorm.classroom.page import page
from subnorm.classroom.results import (
    Record,
    Refused,
    as_cell,
    as_csv,
    as_lines,
    as_totals,
    feedback,
    read_json,
    write,
)

COLUMNS = ["student", "exercise", "points", "reason"]
Marks = dict[tuple[str, str], tuple[float, str]]  # (points, reason) by student and exercise


def mark(out: Path, student: str, exercise: str, points: str, reason: str) -> int:
    """Set a mark by hand, and write the tables and feedback again; return 0 when done, 1 if refused.

    Args:
        out: folder of the grades.
        student: as in totals.csv; the platform's number may be left out.
        exercise: its name, or "all".
        points: from 0 to the maximum of the exercise.
        reason: a sentence for the student.
    """
    try:
        name, records = finished(out)
        student = one_of(student, [record["student"] for record in records.values()])
        results = next(record["results"] for record in records.values() if record["student"] == student)
        chosen = [r["exercise"] for r in results] if exercise == "all" else [exercise]
        new = {(student, ex): checked([student, ex, points, reason], records.values()) for ex in chosen}
        marks = read_marks(out, records.values())
        names = (student, as_cell(student))
        rows = [row for row in rows_of(out / "marks.csv") if row[0] not in names or row[1].strip() not in chosen]
        rows += [[as_cell(student), ex, f"{value:g}", as_cell(why)] for (_, ex), (value, why) in new.items()]
        write(out / "marks.csv", as_lines([COLUMNS, *rows]))
        publish(out, name, records, marks | new)
    except Refused as error:
        print(f"mark: {error}", file=sys.stderr)
        return 1
    for (_, ex), (value, _) in new.items():
        print(f"{student}: {ex} {value:g}, set by hand in {out / 'marks.csv'}")
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
    """The marks set by hand; Refused with its line if one is wrong. A student who is not there is reported.

    Args:
        out: folder of the grades.
        records: of all students.
    """
    path, records = out / "marks.csv", list(records)
    students = {
        name: record["student"] for record in records for name in (record["student"], as_cell(record["student"]))
    }
    marks: Marks = {}
    for number, row in enumerate(rows_of(path), 2):
        where = f"row {number} of {path}"
        if len(row) != len(COLUMNS):
            raise Refused(f"{where} must have {len(COLUMNS)} cells; it has {len(row)}")
        if row[0] not in students:
            print(f"{where}: there is no student {row[0]} here; the mark is not used", file=sys.stderr)
            continue
        student, exercise = students[row[0]], row[1].strip()
        if (student, exercise) in marks:
            raise Refused(f"{where} sets {exercise} of {student} a second time; remove one of the two")
        try:
            marks[student, exercise] = checked([student, exercise, *row[2:]], records)
        except Refused as error:
            raise Refused(f"{where}: {error}") from None
    return marks


def rows_of(path: Path) -> list[list[str]]:
    """The rows of a file of marks, as a spreadsheet may have saved it; none if there is no file."""
    if not path.exists():
        return []
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
    return [row for row in rows[1:] if any(cell.strip() for cell in row)]


def checked(row: Sequence[str], records: Iterable[Record]) -> tuple[float, str]:
    """(points, reason) of a mark; Refused if the exercise, the points or the reason is wrong."""
    student, exercise, points, reason = row
    results = next(record["results"] for record in records if record["student"] == student)
    most = {r["exercise"]: r["max_points"] for r in results}
    if exercise not in most:
        raise Refused(f"there is no exercise {exercise!r}; the exercises are {', '.join(most)}")
    try:
        value = float(points.replace(",", "."))
    except ValueError:
        value = math.nan
    if not 0 <= value <= most[exercise]:
        raise Refused(f"points of {exercise} must be a number from 0 to {most[exercise]}; got {points!r}")
    reason = " ".join(reason.split())
    if not reason:
        raise Refused("a mark set by hand needs a reason; the student reads it")
    return round(value, 2), reason.removeprefix("'") if as_cell(reason[1:]) == reason else reason


def one_of(name: str, students: Sequence[str]) -> str:
    """The student of a name, with or without the platform's number; Refused unless exactly one has it."""
    if name in students:
        return name
    found = [student for student in students if re.sub(r"_\d+$", "", student) == name]
    if len(found) == 1:
        return found[0]
    near = found or difflib.get_close_matches(name, students, 5, 0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "totals.csv lists the students"
    raise Refused(f"{'several students are' if found else 'there is no student'} called {name!r}; {hint}")


def changes(old: Record, new: Record, marks: Marks) -> list[str]:
    """One line for each exercise whose mark differs between two records of one notebook."""
    was: dict[str, Any] = {r["exercise"]: r for r in old["results"]}
    lines = []
    for r in new["results"]:
        before = was.pop(r["exercise"], None)
        if before and (before["points"], before["max_points"]) == (r["points"], r["max_points"]):
            continue
        old_mark = f"{before['points']:g} ({before['diagnosis']})" if before else "none"
        kept = ", but it is set by hand" if (new["student"], r["exercise"]) in marks else ""
        lines.append(f"{new['student']}: {r['exercise']} {old_mark} → {r['points']:g} ({r['diagnosis']}){kept}")
    return lines + [f"{new['student']}: {name} is no longer in the set" for name in was]
