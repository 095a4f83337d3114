"""The command ``overview``: a page on what the class has not understood, without names."""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from subnorm_classroom.errors import Refusal
from subnorm_classroom.files import read_json, write
from subnorm_classroom.grading.sandbox import COURSE
from subnorm_classroom.reports import beliefs
from subnorm_classroom.reports.counts import Questions, Sheet, questions_of, returning, topics
from subnorm_classroom.reports.gradebook import PLATFORMS, Gradebook, UnmatchedStudent
from subnorm_classroom.reports.marks import marks_of_folder, with_marks
from subnorm_classroom.reports.overview_page import page
from subnorm_classroom.reports.records import Record, read_grades
from subnorm_classroom.text import counted
from subnorm_lab.checks import SETS

HELP = "write a page on what the class has not understood, without names"
SHOWN = 2  # unknown answers to an exercise whose files the command names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("grades", type=Path, nargs="+", help="folders that grade wrote, of one or more sheets")
    parser.add_argument("-o", "--out", type=Path, help="the page (default: overview… in the last of these folders)")
    parser.add_argument(
        "--gradebook", type=Path, action="append", default=[], help="a platform's CSV file, to count who is missing"
    )
    parser.add_argument("--column", help="the gradebook's column for the points, if the name of the set is not in it")
    parser.add_argument("--book", help="address or folder of the built book, for links (default: the one built here)")


def run_command(options: argparse.Namespace) -> int:
    return overview(options.grades, options.out, options.gradebook, options.column, options.book)


def overview(
    graded: Sequence[Path],
    out: Path | None = None,
    gradebooks: Sequence[Path] = (),
    column: str | None = None,
    book: str | None = None,
) -> int:
    """Write the page, and print where it is and what to look at; return 0. The arguments are those of `write_page`."""
    out, questions, many = write_page(graded, out, gradebooks, column, book)
    print(f"{out}: {', '.join(questions)}, {counted(many, 'hand-in')}")
    for name, found in questions.items():
        for question in found:
            for k, answers in enumerate(question.of("unknown")[:SHOWN], 1):
                print(f"  {name} {question.exercise.name}, unknown {k}: one is {answers.example}")
    return 0


def write_page(
    graded: Sequence[Path],
    out: Path | None = None,
    gradebooks: Sequence[Path] = (),
    column: str | None = None,
    book: str | None = None,
) -> tuple[Path, Questions, int]:
    """Write the page; return its path, the exercises on it, and the number of hand-ins.

    Args:
        graded: folders that `grade` wrote; those of one sheet count as one class.
        out: the page; None for one in the last folder, where git ignores it.
        gradebooks: the platform's CSV files, one for all folders or one for each; they tell who did not hand in.
        column: title of the gradebook's column for the points; None for the usual one.
        book: address or folder of the built book, for the links; None for that of this checkout.

    Raises:
        Refusal: a folder, a gradebook or the book cannot be used.
    """
    if len(gradebooks) not in (0, 1, len(graded)):
        raise Refusal(f"give --gradebook once, or once for each folder; got {len(gradebooks)} for {len(graded)}")
    sheets: dict[str, Sheet] = {}
    for k, folder in enumerate(graded):
        gradebook = gradebooks[k if len(gradebooks) > 1 else 0] if gradebooks else None
        add(folder, gradebook, column, sheets)
    ordered = [sheets[name] for name in sorted(sheets)]
    questions = {sheet.name: questions_of(sheet) for sheet in ordered}
    out = out or graded[-1] / f"overview{'-'.join(['', *questions]) if len(questions) > 1 else ''}.html"
    known = beliefs.read_beliefs()
    to_teach, again = topics(questions, known), returning(questions, known)
    write(out, page(ordered, questions, to_teach, again, link_base(book, out)))
    return out, questions, sum(len(sheet.records) for sheet in ordered)


def renew(folder: Path, command: str, tell: bool = False) -> None:
    """Write the overview of one folder of grades for another command, which goes on if that is not possible.

    Without a checkout of the course there is none: its page for teachers knows the beliefs.
    """
    if (COURSE / beliefs.PAGE).is_file():
        try:
            (overview if tell else write_page)([folder])
        except Refusal as error:
            print(f"{command}: the overview is as before: {error}", file=sys.stderr)


def add(folder: Path, gradebook: Path | None, column: str | None, sheets: dict[str, Sheet]) -> None:
    """Read a folder of grades."""
    name, records = read_grades(folder)
    if name not in SETS:
        raise Refusal(f"{folder} holds grades of {name}; this version of the course has {', '.join(SETS)}")
    for path in sorted((folder / "students").glob("*.json")):
        if path.stem not in records:
            raise Refusal(f"{path} cannot be read, so its student would be missing; run grade again, with -o {folder}")
    if not records:
        raise Refusal(f"there are no hand-ins in {folder}; run grade with the folder of the submissions")
    log = read_json(folder / "log.json")
    versions, marks = log.get("versions", {}), marks_of_folder(folder, records.values())
    final = [(with_marks(record, marks), int(log["seed"])) for record in records.values()]
    sheet = sheets.setdefault(name, Sheet(name, versions))
    exercises = [[(r["exercise"], r["max_points"]) for r in record["results"]] for record, _ in sheet.records + final]
    if any(one != exercises[0] for one in exercises) or sheet.versions.get("code") != versions.get("code"):
        raise Refusal(f"the grades of {name} are of two releases of the course; grade all of them again with one")
    sheet.records += final
    if gradebook:
        match_gradebook(sheet, name, [record for record, _ in final], gradebook, column)


def match_gradebook(sheet: Sheet, name: str, records: list[Record], path: Path, column: str | None) -> None:
    """Find the rows of a gradebook with a hand-in, in any of its folders, and count the hand-ins without a row."""
    if path not in sheet.books:
        sheet.books[path] = open_gradebook(path, name, column), set()
    book, rows = sheet.books[path]
    for record in records:
        try:
            rows.add(book.find(record))
        except UnmatchedStudent:
            sheet.strangers += 1


def open_gradebook(path: Path, name: str, column: str | None) -> Gradebook:
    """A gradebook of whichever platform it is."""
    reasons = []
    for platform, kind in PLATFORMS.items():
        try:
            return kind(path, name, column)
        except Refusal as error:
            reasons.append(f"{platform}: {error}")
    raise Refusal("no platform's gradebook:\n  " + "\n  ".join(reasons))


def link_base(book: str | None, out: Path) -> str:
    """What to write before the path of a page of the book; empty for no links."""
    if book and re.match(r"https?://", book):
        return book.rstrip("/") + "/"
    folder = Path(book) if book else COURSE / "_build/html"
    if not (folder / "book/teaching.html").is_file():
        if book:
            raise Refusal(
                f"--book is the address or the folder of the built book; there is no book/teaching.html in {book}"
            )
        return ""
    try:
        path = Path(os.path.relpath(folder.resolve(), out.resolve().parent)).as_posix()
    except ValueError:  # on another drive
        return folder.resolve().as_uri() + "/"
    return quote(path) + "/"
