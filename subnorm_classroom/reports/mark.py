"""The command ``mark``: set marks by hand, and write the tables, the feedback and the overview again."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from subnorm_classroom.errors import Refusal
from subnorm_classroom.files import write
from subnorm_classroom.reports import overview
from subnorm_classroom.reports.marks import COLUMNS, marks_of, read_marks
from subnorm_classroom.reports.publication import publish
from subnorm_classroom.reports.records import points, read_grades
from subnorm_classroom.reports.tables import as_cell, as_csv
from subnorm_classroom.text import counted

HELP = "set marks by hand; grade keeps them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("grades", type=Path, help="the folder that grade wrote")
    parser.add_argument("student", nargs="?", help="a name in totals.csv")
    parser.add_argument("exercise", nargs="?", help="the name of the exercise, or all")
    parser.add_argument("points", nargs="?", help="from 0 to the maximum of the exercise")
    parser.add_argument("--reason", help="a sentence; the student reads it")
    parser.add_argument("--file", type=Path, help="many marks: a CSV file with student,exercise,points,reason")


def run_command(options: argparse.Namespace) -> int:
    row = [options.student, options.exercise, options.points, options.reason]
    if any(cell is not None for cell in row) if options.file else None in row:
        raise Refusal("give a student, an exercise, points and --reason; or only --file, with a row for each")
    return mark(options.grades, options.file or row)


def mark(out: Path, given: Sequence[str] | Path) -> int:
    """Set marks by hand, and write the tables, the feedback and the overview again; return 0.

    Args:
        out: the folder of the grades.
        given: student, exercise, points, reason; or a CSV file with these columns, for many marks.

    Raises:
        Refusal: one mark is wrong; then nothing is written.
    """
    path = out / "marks.csv"
    name, records = read_grades(out)
    if isinstance(given, Path):
        if not given.exists():
            raise Refusal(f"there is no file {given}; make one with the columns {', '.join(COLUMNS)}")
        new = read_marks(given, records.values())
    else:
        new = marks_of(given, {record["student"]: record for record in records.values()})
    gone: list[list[str]] = []
    marks = read_marks(path, records.values(), gone) | new
    rows = [[as_cell(student), ex, f"{value:g}", as_cell(why)] for (student, ex), (value, why) in marks.items()]
    write(path, as_csv([COLUMNS, *gone, *rows]))
    for record in publish(out, name, records, marks):
        if mine := [f"{ex} {value:g}" for (student, ex), (value, _) in new.items() if student == record["student"]]:
            total, most = points(record)
            print(f"{record['student']}: {', '.join(mine)}; now {total:g} of {most:g} points")
    print(f"{counted(len(new), 'mark')} set by hand in {path}")
    overview.renew(out, "mark")
    return 0
