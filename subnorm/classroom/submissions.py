"""A folder or a zip of submissions, as learning platforms give it, as one notebook for each student.

Nothing is unpacked to the disk, no link is followed, and no size is believed before the bytes are read. What is wrong
with a submission is said of that student alone. These layouts are known:

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
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

LARGEST = 10 << 20  # bytes of a notebook; one with its pictures has a few million
MOST_FILES = 20_000  # in an archive of a class
MOST_OF_ONE = 1_000  # in the archive of one student
RATIO = 200  # a larger compression is that of a bomb; a notebook reaches ten

PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # of the others zipfile unpacks all, whatever the header says

MOODLE = re.compile(r"(?P<who>.+?_\d+)_assignsubmission_(?:file|onlinetext)(?:_.*)?$", re.DOTALL)
CANVAS = re.compile(r"(?P<who>[^_]+)(?:_LATE)?_(?P<id>\d+)_\d+_.+$", re.DOTALL)
IGNORED = {"__MACOSX", ".ipynb_checkpoints", "Thumbs.db", "desktop.ini"}


class NoSubmissions(Exception):
    """What was given is not a folder or a zip of submissions; the message says the rule and what came."""


@dataclass
class File:
    """One file that may be a notebook: its path inside the hand-in, and how to get its bytes."""

    path: PurePosixPath
    read: Callable[[], bytes]
    problem: str = ""


@dataclass
class Submission:
    """What one student handed in."""

    student: str
    files: list[File] = field(default_factory=list)

    def notebook(self, set_name: str) -> tuple[str, bytes, str]:
        """(path, bytes, problem) of the one notebook; the problem is empty if there is none."""
        for file in self.files:
            if file.problem:
                return str(file.path), b"", file.problem
        found = [file for file in self.files if file.path.suffix.lower() == ".ipynb"]
        of_set = re.compile(rf"(?<![A-Za-z0-9]){re.escape(set_name)}(?![A-Za-z0-9])")
        found = [file for file in found if of_set.search(str(file.path))] or found
        if not found:
            others = sorted(str(file.path) for file in self.files if file.path.name != "nothing")
            return ", ".join(others)[:500], b"", "no_notebook"
        try:
            first = found[0].read()
            if any(file.read() != first for file in found[1:]):
                return ", ".join(sorted(str(file.path) for file in found))[:500], b"", "two_files"
            return str(found[0].path), first, "" if first.strip() else "empty"
        except TooLarge:
            return str(found[0].path), b"", "too_large"
        except Exception:  # zlib, struct and zipfile have errors of their own for what is broken
            return str(found[0].path), b"", "unreadable_file"


class TooLarge(Exception):
    """More bytes than a notebook has."""


def read_all(source: Path) -> list[Submission]:
    """The submissions of a class, sorted by student.

    Args:
        source: a folder or a zip file.

    Raises:
        NoSubmissions: it is neither, or nothing is in it.
    """
    if source.is_dir():
        files = list(files_of_folder(source))
    elif source.is_file() and zipfile.is_zipfile(source):
        archive = zipfile.ZipFile(source)
        if len(archive.infolist()) > MOST_FILES:
            raise NoSubmissions(f"{source} has {len(archive.infolist())} files; a class has {MOST_FILES} at most")
        files = list(files_of_zip(archive))
    else:
        raise NoSubmissions(f"submissions are a folder or a zip file; got {source}")
    students: dict[str, Submission] = {}
    for file in without_common_folder(files, source.stem):
        if file.path.parts and not ignored(file.path):
            who = student_of(file.path)
            students.setdefault(who, Submission(who)).files += with_inner_archive(file)
    if not students:
        raise NoSubmissions(f"nothing was handed in: {source} holds no files")
    return [students[who] for who in sorted(students)]


def files_of_folder(folder: Path) -> Iterator[File]:
    """All files below a folder; a link, or anything that is no plain file, has a problem. An empty folder counts."""
    for root, folders, names in os.walk(folder, followlinks=False):
        here = Path(root)
        for name in sorted([*folders, *names]):
            path = here / name
            inside = PurePosixPath(clean(path.relative_to(folder).as_posix()))
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
    """All files of an archive. One whose path climbs out, that is a link, or that is a bomb, has a problem."""
    folders = {str(parent) + "/" for name in archive.namelist() for parent in PurePosixPath(name).parents}
    for info in archive.infolist():
        name = clean(info.filename.replace("\\", "/"))
        path = PurePosixPath(name)
        kind = stat.S_IFMT(info.external_attr >> 16)
        climbs = path.is_absolute() or ".." in path.parts or re.match(r"[A-Za-z]:", name)
        bomb = info.file_size > 1 << 20 and info.file_size > RATIO * max(info.compress_size, 1)
        if climbs or not path.parts:  # it belongs to nobody: the path may name another student
            yield File(PurePosixPath(f"unsafe path {name.replace('/', '_')}"), lambda: b"", "unsafe_archive")
        elif kind not in (0, stat.S_IFREG, stat.S_IFDIR) or bomb or info.compress_type not in PACKED:
            yield File(path, lambda: b"", "unsafe_archive")
        elif not info.is_dir():
            yield File(path, lambda info=info: read_member(archive, info))  # type: ignore[misc]
        elif info.filename not in folders:
            yield File(path / "nothing", lambda: b"")


def read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The bytes of a member. Of `PACKED`, zipfile unpacks no more than the header says; a lie fails the checksum."""
    if info.file_size > LARGEST:
        raise TooLarge
    return archive.read(info)


def with_inner_archive(file: File) -> list[File]:
    """A file, or what is in it if a student handed in a zip. An archive in that archive is not opened."""
    if file.problem or file.path.suffix.lower() != ".zip":
        return [file]
    try:
        archive = zipfile.ZipFile(io.BytesIO(file.read()))
        if len(archive.infolist()) > MOST_OF_ONE:
            return [File(file.path, file.read, "unsafe_archive")]
        return [inner for inner in files_of_zip(archive) if inner.problem or not ignored(inner.path)]
    except TooLarge:
        return [File(file.path, file.read, "too_large")]
    except Exception:  # as above
        return [File(file.path, file.read, "unreadable_file")]


def without_common_folder(files: list[File], stem: str) -> list[File]:
    """The files, without a first folder that holds the whole class and no student."""
    tops = {file.path.parts[0] for file in files if file.path.parts and not ignored(file.path)}
    if len(tops) == 1 and (tops & {"submitted", "submissions", clean(stem)}):
        top = tops.pop()
        deeper = [file for file in files if file.path.parts and file.path.parts[0] == top and len(file.path.parts) > 1]
        return [File(file.path.relative_to(top), file.read, file.problem) for file in deeper]
    return files


def ignored(path: PurePosixPath) -> bool:
    return any(part in IGNORED or part.startswith(".") for part in path.parts)


def student_of(path: PurePosixPath) -> str:
    """The name of the student to whom a path belongs, with the platform's number where it gives one."""
    top = path.parts[0]
    if found := MOODLE.match(top):
        return found["who"]
    if len(path.parts) > 1:
        return top
    if found := CANVAS.match(top):
        return f"{found['who']}_{found['id']}"
    return PurePosixPath(top).stem if PurePosixPath(top).suffix.lower() in (".ipynb", ".zip") else top


def clean(name: str) -> str:
    """A name in one spelling, without characters that are not seen or that turn a line round."""
    name = unicodedata.normalize("NFC", name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return "".join(c for c in name if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp"))


def file_names(students: list[str]) -> dict[str, str]:
    """A name for each student's files, good on every system: the student's own as far as it can be used."""
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
