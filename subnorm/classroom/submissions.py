"""Read a folder or zip of submissions from a learning platform: one notebook for each student.

Nothing is unpacked to disk, no link is followed, and declared sizes are not trusted. A faulty submission affects
only its student. These layouts are known:

- Moodle: ``Ada Lovelace_1815_assignsubmission_file/any.ipynb``, or the same in one name
- Canvas: ``lovelaceada_LATE_1815_4711_any.ipynb``
- nbgrader: ``submitted/ada/ex02/any.ipynb``
- plain: ``Ada.ipynb``, ``Ada/any.ipynb``, ``Ada.zip``
"""

import hashlib
import io
import os
import re
import stat
import sys
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

LARGEST = 10 << 20  # bytes of a notebook; one with pictures has a few million
MOST_BYTES = 10 * LARGEST  # of all notebooks of one student, which are compared
MOST_OF_ONE = 1_000  # notebooks and archives of one student, and files in such an archive
MOST_ARCHIVES = 20  # of one student: the names in each are read before anything is graded
RATIO = 200  # a higher compression ratio means a zip bomb; a notebook reaches ten

PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # with other methods zipfile may unpack more than the header says

MOODLE = re.compile(r"(?P<who>.+?_\d+)_assignsubmission_(?:file|onlinetext)(?:_.*)?$", re.DOTALL)
CANVAS = re.compile(r"(?P<who>[^_]+)(?:_LATE)?_(?P<id>\d+)_\d+_.+$", re.DOTALL)
SHEET = re.compile(r"ex\d\d(?![A-Za-z0-9])")  # the beginning of a sheet's name
IGNORED = {"__MACOSX", ".ipynb_checkpoints", "Thumbs.db", "desktop.ini"}


class NoSubmissions(Exception):
    """The given path is not a folder or a zip of submissions."""


@dataclass
class File:
    """A file that may be a notebook: its original path inside the submission, and a function that reads it."""

    path: PurePosixPath
    read: Callable[[], bytes]
    problem: str = ""

    @property
    def shown(self) -> PurePosixPath:
        """The path without invisible characters."""
        return PurePosixPath(clean(str(self.path)))

    def is_kind(self, *suffixes: str) -> bool:
        return self.shown.suffix.lower() in suffixes


@dataclass
class Submission:
    """The files of one student."""

    student: str
    files: list[File] = field(default_factory=list)

    def notebook(self, set_name: str) -> tuple[str, bytes, str]:
        """(path, bytes, problem) of the student's notebook; an empty problem means success."""
        for file in self.files:
            if file.problem:
                return str(file.shown), b"", file.problem
        found = [file for file in self.files if file.is_kind(".ipynb")]
        of_set = re.compile(rf"(?<![A-Za-z0-9]){re.escape(set_name)}(?![A-Za-z0-9])")
        found = [file for file in found if of_set.search(str(file.shown))] or found
        if not found:
            others = sorted(str(file.shown) for file in self.files if file.path.name != "nothing")
            return ", ".join(others)[:500], b"", "no_notebook"
        name, left = str(found[0].shown), MOST_BYTES
        try:
            first = found[0].read()
            for file in found[1:]:
                if (data := file.read()) != first:
                    return ", ".join(sorted(str(file.shown) for file in found))[:500], b"", "two_files"
                left -= len(data)
                if left < 0:
                    raise TooLarge
            return name, first, "" if first.strip() else "empty"
        except TooLarge:
            return name, b"", "too_large"
        except Exception:  # zlib, struct and zipfile each raise their own errors for a broken file
            return name, b"", "unreadable_file"


class TooLarge(Exception):
    """A file is too large for a notebook."""


def read_all(source: Path) -> list[Submission]:
    """The submissions of a class, sorted by student.

    Args:
        source: a folder or a zip file.

    Raises:
        NoSubmissions: it is neither, or it is empty.
    """
    if source.is_dir():
        files = list(files_of_folder(source))
    elif source.is_file():
        files = files_of_class(source)
    else:
        raise NoSubmissions(f"submissions must be a folder or a zip file; got {source}")
    students: dict[str, list[File]] = {}
    for file in without_common_folder(files, source.stem):
        if file.path.parts and not ignored(file.path):
            students.setdefault(student_of(file.path), []).append(file)
    if not students:
        raise NoSubmissions(f"nothing was handed in: {source} holds no files")
    names = names_of(list(students))
    submissions = [Submission(names[who], opened(handed_in)) for who, handed_in in students.items()]
    return sorted(submissions, key=lambda submission: submission.student)


def files_of_class(source: Path) -> list[File]:
    """The files of a platform's zip."""
    begins = b""
    try:
        with source.open("rb") as file:
            begins = file.read(2)
        return list(files_of_zip(zipfile.ZipFile(source)))
    except PermissionError as error:
        raise NoSubmissions(f"{source} cannot be read: {error.strerror}") from error
    except Exception as error:  # zipfile raises many kinds for a broken file, OSError included
        if begins != b"PK":
            raise NoSubmissions(f"submissions must be a folder or a zip file; got {source}") from error
        raise NoSubmissions(f"{source} is a damaged zip: download it from the platform again") from error


def files_of_folder(folder: Path) -> Iterator[File]:
    """All files below a folder. A link or special file has a problem; an empty folder counts as a submission."""
    for root, folders, names in os.walk(folder, followlinks=False):
        here = Path(root)
        for name in sorted([*folders, *names]):
            path = here / name
            inside = PurePosixPath(path.relative_to(folder).as_posix())
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                try:
                    if not any(path.iterdir()):
                        yield File(inside / "nothing", lambda: b"")
                except OSError:
                    yield File(inside / "nothing", lambda: b"", "unreadable_file")
            elif not stat.S_ISREG(mode):
                yield File(inside, lambda: b"", "link")
            else:
                yield File(inside, lambda path=path: read_file(path))  # type: ignore[misc]


def read_file(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise TooLarge
    return data


def files_of_zip(archive: zipfile.ZipFile) -> Iterator[File]:
    """All files of an archive. A link, a zip bomb or a path that leaves the archive has a problem."""
    overlap = overlapping(archive)
    folders = {str(parent) + "/" for name in archive.namelist() for parent in PurePosixPath(name).parents}
    for info in archive.infolist():
        path = PurePosixPath(info.filename.replace("\\", "/"))
        name = clean(str(path))
        kind = stat.S_IFMT(info.external_attr >> 16)
        climbs = name.startswith("/") or ".." in name.split("/") or re.match(r"[A-Za-z]:", name)
        bomb = info.file_size > 1 << 20 and info.file_size > RATIO * max(info.compress_size, 1)
        bomb = bomb or info.header_offset in overlap
        if climbs or not path.parts:  # belongs to nobody: the path may name another student
            yield File(PurePosixPath(f"unsafe path {name.replace('/', '_')}"), lambda: b"", "unsafe_archive")
        elif kind not in (0, stat.S_IFREG, stat.S_IFDIR) or bomb or info.compress_type not in PACKED:
            yield File(path, lambda: b"", "unsafe_archive")
        elif not info.is_dir():
            yield File(path, lambda info=info: read_member(archive, info))  # type: ignore[misc]
        elif info.filename not in folders:
            yield File(path / "nothing", lambda: b"")


def overlapping(archive: zipfile.ZipFile) -> set[int]:
    """The offsets of members that share bytes: a zip bomb lists the same bytes many times."""
    found, last, end = set(), 0, -sys.maxsize
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        if info.header_offset < end:
            found |= {last, info.header_offset}
        if info.header_offset + 30 + info.compress_size > end:  # a header has at least 30 bytes
            last, end = info.header_offset, info.header_offset + 30 + info.compress_size
    return found


def read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The bytes of a member. For `PACKED`, zipfile unpacks no more than the header says; a lie fails the checksum."""
    if info.file_size > LARGEST:
        raise TooLarge
    return archive.read(info)


def opened(files: list[File]) -> list[File]:
    """The files of one student, with those in their archives; too many files are a problem."""
    archives = sum(file.is_kind(".zip") for file in files)
    if archives > MOST_ARCHIVES or archives + sum(file.is_kind(".ipynb") for file in files) > MOST_OF_ONE:
        return [File(files[0].path, files[0].read, "too_many_files")]
    return [inner for file in files for inner in with_inner_archive(file)]


def with_inner_archive(file: File) -> list[File]:
    """The file, or the contents of a student's zip. Archives inside it are not opened."""
    if file.problem or not file.is_kind(".zip"):
        return [file]
    try:
        archive = zipfile.ZipFile(io.BytesIO(file.read()))
        if len(archive.infolist()) > MOST_OF_ONE:
            return [File(file.path, file.read, "too_many_files")]
        return [inner for inner in files_of_zip(archive) if inner.problem or not ignored(inner.path)]
    except TooLarge:
        return [File(file.path, file.read, "too_large")]
    except Exception:  # as above
        return [File(file.path, file.read, "unreadable_file")]


def without_common_folder(files: list[File], stem: str) -> list[File]:
    """The files, without a top folder that holds the whole class."""
    tops = {file.path.parts[0] for file in files if file.path.parts and not ignored(file.path)}
    if len(tops) != 1:
        return files
    top = tops.pop()
    deeper = [file for file in files if file.path.parts[:1] == (top,) and len(file.path.parts) > 1]
    inside = [File(file.path.relative_to(top), file.read, file.problem) for file in deeper]
    if clean(top) in {"submitted", "submissions", clean(stem)}:
        return inside
    handed_in = {student_of(file.path) for file in inside if file.is_kind(".ipynb", ".zip") and not ignored(file.path)}
    students = [who for who in handed_in if not SHEET.match(who)]  # nbgrader makes a folder for each sheet
    if MOODLE.match(top) or len(students) < 2:
        return files
    print(
        f"grade: all files are in the folder {clean(top)}: treated as the class, not as one student",
        file=sys.stderr,
    )
    return inside


def ignored(path: PurePosixPath) -> bool:
    return any(part in IGNORED or part.startswith(".") for part in path.parts)


def student_of(path: PurePosixPath) -> str:
    """The name of a path's student, with the platform's number if there is one."""
    top = path.parts[0]
    if found := MOODLE.match(top):
        return found["who"]
    if len(path.parts) > 1:
        return top
    if found := CANVAS.match(top):
        return f"{found['who']}_{found['id']}"
    return PurePosixPath(top).stem if PurePosixPath(top).suffix.lower() in (".ipynb", ".zip") else top


def clean(name: str) -> str:
    """A name in Unicode's composed form, without invisible characters or marks that reverse the text."""
    name = unicodedata.normalize("NFC", name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return "".join(c for c in name if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp"))


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
