"""The submissions of a class, from a folder or zip: one notebook for each student.

A faulty submission affects only its student, and everybody whose name is in the download is in the class: also
students who handed in nothing that can be read.
"""

import contextlib
import hashlib
import json
import os
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath

from subnorm_classroom.errors import Refusal
from subnorm_classroom.grading import lateness
from subnorm_classroom.grading.archives import (
    LARGEST,
    MOST_NAMES,
    File,
    TooLarge,
    clean,
    files_inside,
    files_of_folder,
    files_of_zip,
)
from subnorm_classroom.grading.cells import MOST_BRACKETS, MOST_CODE, without_outputs
from subnorm_classroom.grading.layouts import DAMAGED, NoSubmissions, hand_ins, ignored, student_of
from subnorm_classroom.reports.marks import find_student, read_rows
from subnorm_classroom.reports.tables import from_cell
from subnorm_classroom.sheets import chapters

MOST_BYTES = 2 * LARGEST  # of all notebooks of one student, which are compared
MOST_OF_ONE = 1_000  # notebooks of one student
MOST_ARCHIVES = 20  # of one student: the names in each are read before anything is graded
MOST_SHOWN = 50  # of one student's files, in a record
READABLE = "Allow yourself to read it, and run the same command again"
WHICH = "which.csv"  # the teacher's file beside the submissions
COLUMNS = ["student", "notebook"]


@dataclass
class Submission:
    """The files of one student; `handed_in` are those of the platform, before the student's own zips are opened."""

    student: str
    files: list[File] = field(default_factory=list)
    handed_in: list[File] = field(default_factory=list)
    counts: str = ""  # the notebook that the teacher chose, if there are several
    told: Callable[[], datetime | None] = lambda: None  # when it was handed in, as Moodle's worksheet says

    def names(self, notebook: str) -> list[str]:
        """The platform's name of the graded notebook, or of everything that was handed in."""
        kinds = {str(file.shown): not file.is_notebook for file in self.handed_in if file.path.name != "nothing"}
        names = sorted(kinds, key=lambda name: (kinds[name], name))
        return [notebook] if notebook in names else names[:MOST_SHOWN]

    def late(self, deadline: datetime | None) -> str:
        """How late the hand-in is; see `lateness.late`."""
        return lateness.late(self.handed_in, deadline, self.told, self.noted("timestamp.txt"))

    def noted(self, name: str) -> str:
        """The text of a file that nbgrader put beside the notebook; empty if there is none."""
        for file in self.handed_in:
            if len(file.path.parts) == 3 and file.path.name == name:
                with contextlib.suppress(Exception):  # an unreadable note is none
                    return file.read()[:200].decode()
        return ""

    def notebooks(self, set_name: str) -> list[File]:
        """The files that may be the notebook of a sheet: by their own names, or those of their folders, or all.

        The chapters that were handed out with the sheet count only if there is nothing else.
        """
        found = [file for file in self.files if file.is_notebook]
        found = [file for file in found if chapters.FOLDER not in file.path.parts[:-1]] or found
        found = found or [file for file in self.files if file.may_be_notebook and code_in(file)]
        of_set = re.compile(rf"(?<![A-Za-z0-9]){re.escape(set_name)}(?![A-Za-z0-9])")
        named = [file for file in found if of_set.search(file.shown.name)]
        return named or [file for file in found if of_set.search(str(file.shown))] or found

    def notebook(self, set_name: str) -> tuple[str, bytes, str]:
        """(path, bytes, problem) of the student's notebook; an empty problem means success."""
        for file in self.files:
            if file.problem:
                return str(file.shown), b"", file.problem
        found = self.notebooks(set_name)
        if self.counts:
            found = [file for file in self.files if str(file.shown) == self.counts]
        if not found:
            others = sorted(str(file.shown) for file in self.files or self.handed_in if file.path.name != "nothing")
            return ", ".join(others)[:500], b"", "no_notebook"
        name, left = str(found[0].shown), MOST_BYTES
        try:
            first = found[0].read()
            for file in found[1:]:
                data = file.read()
                if data != first and code_of(data) != code_of(first):
                    return ", ".join(sorted(str(file.shown) for file in found))[:500], b"", "two_files"
                left -= len(data)
                if left < 0:
                    raise TooLarge
            return name, first, "" if first.strip() else "empty"
        except TooLarge:
            return name, b"", "too_large"
        except Exception:  # zlib, struct and zipfile each raise their own errors for a broken file
            return name, b"", "unreadable_file"


def code_of(data: bytes) -> list[str] | bytes:
    """The code of a notebook, cell by cell, without empty cells; the bytes themselves if it is none."""
    small = without_outputs(data)
    if len(small) > MOST_CODE or small.count(b"[") + small.count(b"{") > MOST_BRACKETS:
        return data
    try:
        cells = json.loads(small)["cells"]
        texts = ["".join(cell["source"]).strip() for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, TypeError, KeyError, RecursionError, MemoryError):
        return data
    return [text for text in texts if text]


def code_in(file: File) -> bool:
    """Whether a file of any name holds a notebook."""
    try:
        data = file.read()
        return data.lstrip()[:1] == b"{" and isinstance(code_of(data), list)
    except Exception:  # one that cannot be read is none
        return False


def read_all(source: Path) -> list[Submission]:
    """The submissions of a class, sorted by student.

    A file `which.csv` beside them says which of several notebooks counts, and a grading worksheet of Moodle when each
    was handed in. Beside means: in the folder, or in the folder that the zip is in.

    Args:
        source: a folder or a zip file.

    Raises:
        NoSubmissions: it is neither, or it is empty.
        Refusal: `which.csv` has a wrong row.
    """
    notes: list[str] = []
    students: dict[str, list[File]] = {}
    for file in hand_ins(all_files(source), source.stem, notes):
        students.setdefault(student_of(file.path), []).append(file)
    if notes:
        print(*(f"{note}." for note in notes), sep="\n", file=sys.stderr)
    if not students:
        raise NoSubmissions(f"nothing was handed in: {source} holds no files")
    names = names_of(list(students))
    submissions = [submission(names[who], handed_in) for who, handed_in in students.items()]
    beside = source if source.is_dir() else source.parent
    choose(beside / WHICH, submissions)
    times = lateness.Worksheets(beside)
    for one in submissions:
        one.told = partial(times.of, one.handed_in)
    return sorted(submissions, key=lambda one: one.student)


def all_files(source: Path) -> list[File]:
    """The files of a folder or of a platform's zip."""
    if source.is_dir():
        try:
            os.scandir(source).close()  # os.walk would take a folder that it cannot read for an empty one
        except OSError as error:
            raise NoSubmissions(f"{source} cannot be read: {error.strerror}. {READABLE}") from error
        return [file for file in files_of_folder(source) if str(file.path) != WHICH]
    if not source.is_file():
        raise NoSubmissions(f"submissions must be a folder or a zip file; got {source}")
    begins = b""
    try:
        with source.open("rb") as file:
            begins = file.read(2)
        return list(files_of_zip(zipfile.ZipFile(source)))
    except PermissionError as error:
        raise NoSubmissions(f"{source} cannot be read: {error.strerror}. {READABLE}") from error
    except Exception as error:  # zipfile raises many kinds for a broken file, OSError included
        if begins != b"PK":
            raise NoSubmissions(f"submissions must be a folder or a zip file; got {source}") from error
        raise NoSubmissions(f"{source} {DAMAGED}") from error


def submission(student: str, files: list[File]) -> Submission:
    """One student's submission. What a system put there is left out, but the student is not."""
    handed_in = [file for file in files if not ignored(PurePosixPath(*file.path.parts[1:]))]
    return Submission(student, opened(handed_in), handed_in or files)


def opened(files: list[File]) -> list[File]:
    """The files of one student, with those in their archives; too many files are a problem."""
    found: list[File] = []
    left = MOST_NAMES
    too_many = sum(file.is_archive for file in files) > MOST_ARCHIVES
    for file in files if not too_many else ():
        inner = with_inner_archive(file, left)
        left -= len(inner)
        found += inner
    if too_many or sum(file.is_notebook for file in found) > MOST_OF_ONE:
        return [File(files[0].path, files[0].read, "too_many_files")]
    return found


def with_inner_archive(file: File, most: int, again: bool = True) -> list[File]:
    """The file, or the contents of a student's zip. An archive inside it is opened only if it is all that is there."""
    if file.problem or not file.is_archive:
        return [file]
    try:
        found = [inner for inner in files_inside(file, most) if not ignored(inner.path)]
    except TooLarge:
        return [File(file.path, file.read, "too_large")]
    except Exception:  # as above
        return [File(file.path, file.read, "unreadable_file")]
    return with_inner_archive(found[0], most - 1, again=False) if again and len(found) == 1 else found


def choose(path: Path, submissions: Sequence[Submission]) -> None:
    """Note which of a student's notebooks counts, from the teacher's file: student, notebook.

    Raises:
        Refusal: a row names no student or no notebook of theirs; the message names the row.
    """
    known = {one.student: one for one in submissions}
    for number, row in read_rows(path, COLUMNS).items():
        where = f"row {number} of {path}"
        if len(row) != len(COLUMNS):
            raise Refusal(f"{where} must have {len(COLUMNS)} cells, {' and '.join(COLUMNS)}; it has {len(row)}")
        try:
            one = known[find_student(from_cell(row[0]), known)]
        except Refusal as error:
            raise Refusal(f"{where}: {error}") from None
        wanted = clean(from_cell(row[1]).strip())
        paths = {str(file.shown): file.shown.name for file in one.files if file.is_notebook or file.may_be_notebook}
        fits = [name for name in paths if name == wanted] or [name for name in paths if paths[name] == wanted]
        if len(fits) != 1:
            said = f"handed in {'no' if not fits else 'more than one'} {wanted!r}"
            raise Refusal(f"{where}: {one.student} {said}; their files are {', '.join(paths) or 'no notebooks'}")
        if one.counts and one.counts != fits[0]:
            raise Refusal(f"{where}: {one.student} has a row already; remove one of the two")
        one.counts = fits[0]


def names_of(students: list[str]) -> dict[str, str]:
    """The visible names of students. If two look the same, one also shows its escaped spelling."""
    names = {who: clean(who) for who in students}
    alike = Counter(names.values())
    odd = [who for who in sorted(students) if who != names[who] and (alike[names[who]] > 1 or not names[who])]
    taken = {name for who, name in names.items() if who not in odd}
    for who in odd:
        name = f"{names[who]} [{who.encode('unicode_escape').decode()}]".strip()
        while name in taken:
            name += "'"
        taken.add(name)
        names[who] = name
    return names


def file_names(students: list[str]) -> dict[str, str]:
    """A file name for each student that is valid on every system: the student's own name if possible."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for student in students:
        name = re.sub(r'[<>:"/\\|?*]', "_", student).strip(" .") or "_"
        short, longer = name.encode()[:100].decode(errors="ignore"), student
        while len(name.encode()) > 150 or name.casefold() in taken:
            longer = hashlib.sha256(longer.encode()).hexdigest()
            name = f"{short}-{longer[:12]}"
        taken.add(name.casefold())
        names[student] = name
    return names
