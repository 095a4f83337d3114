"""How learning platforms lay out what they let a teacher download, and whose each file is.

- Moodle: ``Ada Lovelace_1815_assignsubmission_file/any.ipynb``, or the same in one name
- Canvas: ``lovelaceada_LATE_1815_4711_any.ipynb``; a text without a file: ``lovelaceada_1815_text.html``
- nbgrader: ``submitted/ada/ex02/any.ipynb``
- plain: ``Ada.ipynb``, ``Ada/any.ipynb``, ``Ada.zip``

A download may lie in folders and zips of any name, several of them side by side, with the platform's tables.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePosixPath

from subnorm_classroom.errors import Refusal
from subnorm_classroom.grading.archives import NOTEBOOK, File, clean, files_of_zip, kept_open
from subnorm_classroom.sheets import chapters

MOODLE = re.compile(r"(?P<who>.+?_\d+)_assignsubmission_(?:file|onlinetext)(?:_.*)?$", re.DOTALL)
CANVAS = re.compile(r"(?P<who>[^_]+)(?P<late>_LATE)?_(?P<id>\d+)_(?P<file>\d+)_.+$", re.DOTALL)
CANVAS_TEXT = re.compile(r"(?P<who>[^_]+)(?P<late>_LATE)?_(?P<id>\d+)_(?:text|link)\.html$", re.DOTALL)
ANONYMOUS = re.compile(r"(?P<late>LATE_)?anon_[^_]+_\d+_.+$", re.DOTALL)  # Canvas, with anonymous grading
SHEET = re.compile(r"ex\d\d(?![A-Za-z0-9])")  # the beginning of a sheet's name
TABLES = (".csv", ".tsv", ".xls", ".xlsx", ".ods")  # of the teacher: a worksheet, a gradebook, a class list
DEEPEST = 4  # folders and zips around a class
IGNORED = {"__MACOSX", "__pycache__", "node_modules", "site-packages", "Thumbs.db", "desktop.ini"}
DAMAGED = "is a damaged zip: download it from the platform again"


class NoSubmissions(Refusal):
    """The given path is not a folder or a zip of submissions."""


def of_platform(top: str) -> bool:
    """Whether Moodle or Canvas made a name: it is one student's."""
    return any(form.match(top) for form in (MOODLE, CANVAS, CANVAS_TEXT, ANONYMOUS))


def hidden(part: str) -> bool:
    return part in IGNORED or part.startswith(".")


def ignored(path: PurePosixPath) -> bool:
    """Whether a file of a student is none that they wrote: a system or a program put it there."""
    return any(hidden(part) for part in path.parts)


def belongs_to_nobody(path: PurePosixPath) -> bool:
    """Whether what lies in the class's folder is no hand-in. Of a student's folder nothing is: see `ignored`."""
    top = path.parts[0]
    return hidden(top) and (top.startswith("._") or not MOODLE.match(top))


def student_of(path: PurePosixPath) -> str:
    """The name of a path's student, with the platform's number if there is one."""
    top = path.parts[0]
    if found := MOODLE.match(top):
        return found["who"]
    if len(path.parts) > 1:
        return top
    if found := CANVAS.match(top) or CANVAS_TEXT.match(top):
        return f"{found['who']}_{found['id']}"
    return PurePosixPath(top).stem if top.lower().endswith(".zip") else NOTEBOOK.sub("", top)


def hand_ins(files: Iterable[File], stem: str, notes: list[str], level: int = 0) -> list[File]:
    """The hand-ins of a class, without the folders and zips around it.

    Tables of the teacher, and files whose names the platform did not make, are no hand-ins.

    Args:
        files: everything in a folder or zip.
        stem: its name.
        notes: gets a sentence on everything that is no hand-in, and on each folder or zip that is not one student's.
        level: how many folders and zips are around it.

    Raises:
        NoSubmissions: everything is in one zip, and that is damaged.
    """
    tops: dict[tuple[str, bool], list[File]] = {}  # a zip may have a file and a folder of one name
    for file in files:
        if file.path.parts and not belongs_to_nobody(file.path):
            tops.setdefault((file.path.parts[0], is_loose(file)), []).append(file)
    aside = {top for (top, _), own in tops.items() if is_table(own[0])}
    kept = [(top, own) for (top, _), own in tops.items() if not is_table(own[0])]
    found: list[File] = []
    for top, own in kept:
        found += inner_class(top, own, stem, notes, level, len(kept) == 1) or own
    if any(of_platform(file.path.parts[0]) for file in found):
        aside |= {str(file.path) for file in found if is_strange(file)}
        found = [file for file in found if not is_strange(file)]
    if aside:
        notes.append(f"not a hand-in: {', '.join(map(clean, sorted(aside)))}")
    return found


def inner_class(top: str, own: list[File], stem: str, notes: list[str], level: int, alone: bool) -> list[File]:
    """The hand-ins of a folder or zip, if it holds a class; empty if it is one student's.

    Args:
        top: its name.
        own: the files in the folder, or the zip.
        stem: the name of what it lies in.
        notes: as in `hand_ins`.
        level: how many folders and zips are around it.
        alone: whether nothing else lies there.
    """
    if of_platform(top) or level == DEEPEST:
        return []
    zipped, more = is_zip(own), list[str]()
    inside = contents(top, own, alone and level == 0)
    name = PurePosixPath(top).stem if zipped else top
    if not alone and clean(name) != "submitted" and not is_download(inside):
        return []
    usual = clean(name) in {"submitted", "submissions", clean(stem)}
    found = hand_ins(inside, name, more, level + 1) if inside else []
    students = {student_of(file.path) for file in found if file.is_notebook or file.is_archive}
    students = {who for who in students if not SHEET.match(who)}  # nbgrader makes a folder for each sheet
    students.discard(chapters.FOLDER)
    of_moodle = any(MOODLE.match(file.path.parts[0]) for file in found)
    if not usual and not of_moodle and len(students) < 2:
        return []
    if zipped or not usual:
        notes.append(f"{clean(top)}: treated as the download of a class, not as one student")
    notes += more
    return found


def contents(top: str, own: list[File], all_of_it: bool) -> list[File]:
    """What a folder or zip holds, by the paths in it; empty for a file of another kind, or a damaged zip.

    Raises:
        NoSubmissions: the zip is damaged, and is all that was handed in.
    """
    if not is_loose(own[0]):
        return [replace(file, path=file.path.relative_to(top)) for file in own]
    if not is_zip(own):
        return []
    try:
        return list(files_of_zip(kept_open(own[0])))
    except Exception as error:  # zipfile raises many kinds for a broken file, OSError included
        if all_of_it:
            raise NoSubmissions(f"{clean(top)} {DAMAGED}") from error
        return []


def is_download(files: Iterable[File]) -> bool:
    """Whether all names are those of a platform, and no student's zip could look like this by accident."""
    mine = [file for file in files if not belongs_to_nobody(file.path) and not is_table(file)]
    tops = {file.path.parts[0] for file in mine}
    if tops == {"submitted"}:
        return len({file.path.parts[1] for file in mine if not is_loose(file)}) > 1
    students = {student_of(file.path) for file in mine}
    return all(map(of_platform, tops)) and (len(students) > 1 or any(map(MOODLE.match, tops)))


def is_loose(file: File) -> bool:
    return len(file.path.parts) == 1


def is_zip(own: list[File]) -> bool:
    return len(own) == 1 and is_loose(own[0]) and own[0].is_archive and not own[0].problem


def is_table(file: File) -> bool:
    return is_loose(file) and not file.problem and file.shown.suffix.lower() in TABLES


def is_strange(file: File) -> bool:
    """Whether a file among those of a platform has neither a name of the platform nor the kind of a hand-in."""
    kind = file.is_notebook or file.is_archive or file.problem
    return is_loose(file) and not kind and not of_platform(str(file.path))
