"""The command ``handback``: the files that a learning platform takes back.

These are the feedback in one zip, and the platform's gradebook with the points.
"""

import argparse
import json
import re
import sys
from pathlib import Path, PurePosixPath

from subnorm_classroom.errors import Refusal
from subnorm_classroom.files import write
from subnorm_classroom.grading.layouts import ANONYMOUS, CANVAS, MOODLE
from subnorm_classroom.grading.verdict import OURS
from subnorm_classroom.reports.feedback import markdown, page
from subnorm_classroom.reports.gradebook import PLATFORMS, Gradebook, UnmatchedStudent, as_number, first_name, top
from subnorm_classroom.reports.marks import marks_of_folder
from subnorm_classroom.reports.publication import publish
from subnorm_classroom.reports.records import Record, points, read_grades
from subnorm_classroom.sheets.packing import zipped

NEXT = {
    "moodle": "On Moodle's page of the submissions, use Upload grading worksheet and Upload multiple feedback files in "
    "a zip.\nThe preview must show everybody's points: some versions of Moodle do not take a 0 from a file.",
    "canvas": "Import the CSV under Grades, and upload the zip with Upload Submissions on the page of the assignment.",
    "nbgrader": "Unpack the zip in the course folder, and run: nbgrader release_feedback {name}",
}


HELP = "make the files that a learning platform takes back"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("grades", type=Path, help="the folder that grade wrote")
    parser.add_argument("--to", required=True, choices=list(FEEDBACK), help="the platform")
    parser.add_argument("--gradebook", type=Path, help="the CSV file of the platform, to put the points into")
    parser.add_argument("--column", help="the column for the points, if the name of the set is not in it")
    parser.add_argument("--scale", action="store_true", help="convert the points to the platform's maximum")


def run_command(options: argparse.Namespace) -> int:
    return hand_back(options.grades, options.to, options.gradebook, options.column, options.scale)


def hand_back(out: Path, to: str, gradebook: Path | None, column: str | None, scale: bool) -> int:
    """Write `out`/handback; return 0 if everything of everybody is in it, otherwise 1 with a list.

    Args:
        out: the folder of the grades.
        to: "moodle", "canvas" or "nbgrader".
        gradebook: the platform's CSV file, if its points are to be written; Moodle always needs it.
        column: title of the column for the points; None for the usual one.
        scale: convert the points if the platform's maximum is another.

    Raises:
        Refusal: the submissions are not graded, or the gradebook cannot be used.
    """
    name, records = read_grades(out)
    final = publish(out, name, records, marks_of_folder(out, records.values()))
    if to == "moodle" and gradebook is None:
        raise Refusal(
            "for Moodle, give the grading worksheet with --gradebook: without it, the number of a team looks like "
            "that of another student. Download it from the page of the submissions"
        )
    folder = out / "handback"
    if gradebook and gradebook.resolve().parent == folder.resolve():
        raise Refusal(f"{gradebook} would be overwritten; put the platform's file into another folder")
    book = PLATFORMS[to](gradebook, name, column) if gradebook else None
    problems: list[str] = []
    rows = rows_of(book, final, problems) if book else {}
    files: dict[str, bytes] = {}
    for record in final:
        if to != "moodle" or record["student"] in rows:
            returned, problem = FEEDBACK[to](name, record)
            files |= returned
            problems += [f"{record['student']}: {problem}"] if problem else []
    if book and gradebook:
        written = sum(put(book, rows[r["student"]], r, scale, problems) for r in final if r["student"] in rows)
        write(folder / gradebook.name, book.edited())
        print(f"{folder / gradebook.name}: points of {written} of {len(final)} students")
    archive = folder / f"feedback-{name}-{to}.zip"
    write(archive, zipped(files))
    print(f"{archive}: {len(files)} files, {archive.stat().st_size / 1000:.0f} kB")
    print(NEXT[to].format(name=name))
    if problems:
        print(f"handback: {len(problems)} to look after by hand:", file=sys.stderr)
        print(*(f"  {line}" for line in sorted(problems)), sep="\n", file=sys.stderr)
    return 1 if problems else 0


def rows_of(book: Gradebook, records: list[Record], problems: list[str]) -> dict[str, int]:
    """The row of each student that has exactly one, which nobody else has; the others become problems."""
    rows: dict[str, int] = {}
    for record in records:
        try:
            rows[record["student"]] = book.find(record)
        except UnmatchedStudent as error:
            problems.append(f"{record['student']}: {error}")
    for row in {row for row in rows.values() if list(rows.values()).count(row) > 1}:
        both = [student for student in rows if rows[student] == row]
        problems.append(f"{' and '.join(both)}: submissions of one number; only one can be right")
        for student in both:
            del rows[student]
    return rows


def put(book: Gradebook, row: int, record: Record, scale: bool, problems: list[str]) -> bool:
    """Put a student's points into the gradebook; False with a problem if they must not be written."""
    untouched = [r for r in record["results"] if "by_hand" not in r]
    ours = [r["exercise"] for r in untouched if r["diagnosis"] in OURS]
    reason = book.closed(row)
    if record["problem"] and len(untouched) == len(record["results"]):
        reason = f"no points, because of {record['problem']}; set marks by hand, or ask for the file"
    elif ours:
        reason = f"no points, because the grader could not judge {', '.join(ours)}; repair it, and grade again"
    if reason:
        problems.append(f"{record['student']}: {reason}")
        return False
    total, most = points(record)
    maximum = as_number(book.maximum(row))
    if maximum is None:
        raise Refusal(f"the maximum of {record['student']} is {book.maximum(row)!r}, not a number; grade with points")
    if maximum != most:
        if not scale:
            raise Refusal(
                f"the maximum in the gradebook is {maximum:g}, that of the sheet {most:g}: change the platform's to "
                f"{most:g}, or add --scale to convert the points"
            )
        total = round(total * maximum / most, 2)
    book.put(row, total)
    return True


Returned = tuple[dict[str, bytes], str]  # files by name in the zip, and a problem


def for_moodle(name: str, record: Record) -> Returned:
    """One folder for each participant. Moodle reads the number and the plugin in its name, and no more."""
    found = MOODLE.match(top(record))
    assert found  # it has a row
    participant = found["who"].rsplit("_", 1)[1]
    return {f"Participant_{participant}_assignfeedback_file/feedback.html": page(name, record).encode()}, ""


def for_canvas(name: str, record: Record) -> Returned:
    """A file of the name that Canvas gave: it reads the two numbers, and shows the student's own file name.

    So the feedback has to be of the kind that the student handed in.
    """
    given = first_name(record)
    if re.search(r"[/\\]", given) or not (CANVAS.match(given) or ANONYMOUS.match(given)):
        return {}, "the submission has no name of Canvas's, so Canvas takes no feedback; send the page from feedback/"
    kind = PurePosixPath(given).suffix.lower()
    text = markdown(name, record)
    cell = {"cell_type": "markdown", "id": "feedback", "metadata": {}, "source": text}
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    made = {
        ".ipynb": json.dumps(book).encode(),
        ".zip": zipped({"feedback.html": page(name, record).encode()}),
        ".html": page(name, record).encode(),
        ".txt": text.encode(),
    }
    if kind not in made:
        return {}, f"Canvas would show the feedback as a file {kind}; send the page from feedback/"
    return {given: made[kind]}, ""


def for_nbgrader(name: str, record: Record) -> Returned:
    """The page of each notebook, beside the two notes without which nbgrader cannot release it."""
    paths = [PurePosixPath(given) for given in record.get("handed_in", ())]
    books = [path for path in paths if len(path.parts) == 3 and path.suffix.lower() == ".ipynb"]
    if not books:
        return {}, "there is no file .ipynb where nbgrader looks for it; send the page from feedback/"
    folder = PurePosixPath("feedback", *books[0].parts[:2])
    files = {f"{folder}/{path.stem}.html": page(name, record).encode() for path in books}
    files |= {f"{folder}/{note}": text.encode() for note, text in record["notes"].items()}
    lacking = " and ".join(sorted({"timestamp.txt", "submission_secret.txt"} - set(record["notes"])))
    return files, f"nbgrader cannot release the feedback, because the submission has no {lacking}" if lacking else ""


FEEDBACK = {"moodle": for_moodle, "canvas": for_canvas, "nbgrader": for_nbgrader}
