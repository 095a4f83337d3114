"""Read a folder or zip of submissions from a learning platform: one notebook for each student.

Nothing is unpacked to disk, no link is followed, and declared sizes are not trusted. A faulty submission affects
only its student. These layouts are known:

- Moodle: ``Ada Lovelace_1815_assignsubmission_file/any.ipynb``, or the same in one name
- Canvas: ``lovelaceada_LATE_1815_4711_any.ipynb``
- nbgrader: ``submitted/ada/ex02/any.ipynb``
- plain: ``Ada.ipynb``, ``Ada/any.ipynb``, ``Ada.zip``
"""

import contextlib
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
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from subnorm_classroom.errors import Refusal

LARGEST = 100 << 20  # bytes of a notebook, most of them outputs; `cells_of` measures the rest
MOST_BYTES = 2 * LARGEST  # of all notebooks of one student, which are compared
MOST_OF_ONE = 1_000  # notebooks and archives of one student, and files in such an archive
MOST_ARCHIVES = 20  # of one student: the names in each are read before anything is graded
MOST_NAMES = 50  # of one student's files, in a record
RATIO = 200  # a higher compression ratio means a zip bomb, if there is more than we read

PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # with other methods zipfile may unpack more than the header says

MOODLE = re.compile(r"(?P<who>.+?_\d+)_assignsubmission_(?:file|onlinetext)(?:_.*)?$", re.DOTALL)
CANVAS = re.compile(r"(?P<who>[^_]+)(?P<late>_LATE)?_(?P<id>\d+)_(?P<file>\d+)_.+$", re.DOTALL)
ANONYMOUS = re.compile(r"(?P<late>LATE_)?anon_[^_]+_\d+_.+$", re.DOTALL)  # Canvas, with anonymous grading
SHEET = re.compile(r"ex\d\d(?![A-Za-z0-9])")  # the beginning of a sheet's name
READABLE = "Allow yourself to read it, and run the same command again"
IGNORED = {"__MACOSX", ".ipynb_checkpoints", "Thumbs.db", "desktop.ini"}


class NoSubmissions(Refusal):
    """The given path is not a folder or a zip of submissions."""


@dataclass
class File:
    """A file that may be a notebook: its original path inside the submission, and a function that reads it."""

    path: PurePosixPath
    read: Callable[[], bytes]
    problem: str = ""
    time: datetime | None = None  # of the last change, as the folder or zip has it

    @property
    def shown(self) -> PurePosixPath:
        """The path without invisible characters."""
        return PurePosixPath(clean(str(self.path)))

    def is_kind(self, *suffixes: str) -> bool:
        return self.shown.suffix.lower() in suffixes


@dataclass
class Submission:
    """The files of one student; `handed_in` are those of the platform, before the student's own zips are opened."""

    student: str
    files: list[File] = field(default_factory=list)
    handed_in: list[File] = field(default_factory=list)

    def names(self, notebook: str) -> list[str]:
        """The platform's name of the graded notebook, or of everything that was handed in."""
        names = [str(file.shown) for file in self.handed_in if file.path.name != "nothing"]
        names.sort(key=lambda name: (not name.lower().endswith(".ipynb"), name))
        return [notebook] if notebook in names else names[:MOST_NAMES]

    def late(self, deadline: datetime | None) -> str:
        """How late the hand-in is, by Canvas's mark or by time; empty if it is not late, or nobody knows."""
        for file in self.handed_in:
            found = CANVAS.match(file.path.parts[0]) or ANONYMOUS.match(file.path.parts[0])
            if found and found["late"]:
                return "marked late by Canvas"
        time, told = self.told_time(), "by nbgrader's timestamp"
        if time is None:
            times = [file.time for file in self.handed_in if file.time and file.is_kind(".ipynb", ".zip")]
            time, told = max(times, default=None), "by the time of the file"
        if deadline is None or time is None or time <= deadline:
            return ""
        minutes = int((time - deadline).total_seconds() // 60)
        days, hours = minutes // (24 * 60), minutes // 60 % 24
        length = f"{days} d {hours} h" if days else f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"
        return f"{length} after the deadline, {told}"

    def told_time(self) -> datetime | None:
        """The time that nbgrader noted, such as 2015-02-02 15:58:23.948203 UTC."""
        try:
            return datetime.fromisoformat(self.noted("timestamp.txt").strip().removesuffix(" UTC")).replace(tzinfo=UTC)
        except ValueError:
            return None

    def noted(self, name: str) -> str:
        """The text of a file that nbgrader put beside the notebook; empty if there is none."""
        for file in self.handed_in:
            if len(file.path.parts) == 3 and file.path.name == name:
                with contextlib.suppress(Exception):  # an unreadable note is none
                    return file.read()[:200].decode()
        return ""

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
        try:
            os.scandir(source).close()  # os.walk would take a folder that it cannot read for an empty one
        except OSError as error:
            raise NoSubmissions(f"{source} cannot be read: {error.strerror}. {READABLE}") from error
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
    submissions = [Submission(names[who], opened(handed_in), handed_in) for who, handed_in in students.items()]
    return sorted(submissions, key=lambda submission: submission.student)


def files_of_class(source: Path) -> list[File]:
    """The files of a platform's zip."""
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
        raise NoSubmissions(f"{source} is a damaged zip: download it from the platform again") from error


def files_of_folder(folder: Path) -> Iterator[File]:
    """All files below a folder. A link or special file has a problem; an empty folder counts as a submission."""
    for root, folders, names in os.walk(folder, followlinks=False):
        here = Path(root)
        for name in sorted([*folders, *names]):
            path = here / name
            inside = PurePosixPath(path.relative_to(folder).as_posix())
            about = path.lstat()
            mode = about.st_mode
            if stat.S_ISDIR(mode):
                try:
                    if not any(path.iterdir()):
                        yield File(inside / "nothing", lambda: b"")
                except OSError:
                    yield File(inside / "nothing", lambda: b"", "unreadable_file")
            elif not stat.S_ISREG(mode):
                yield File(inside, lambda: b"", "link")
            else:
                time = local_time(lambda about=about: datetime.fromtimestamp(about.st_mtime))  # type: ignore[misc]
                yield File(inside, lambda path=path: read_file(path), time=time)  # type: ignore[misc]


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
        bomb = info.file_size > LARGEST and info.file_size > RATIO * max(info.compress_size, 1)
        bomb = bomb or info.header_offset in overlap
        if climbs or not path.parts:  # belongs to nobody: the path may name another student
            yield File(PurePosixPath(f"unsafe path {name.replace('/', '_')}"), lambda: b"", "unsafe_archive")
        elif kind not in (0, stat.S_IFREG, stat.S_IFDIR) or bomb or info.compress_type not in PACKED:
            yield File(path, lambda: b"", "unsafe_archive")
        elif not info.is_dir():
            # an archive without times says 1980
            time = local_time(lambda info=info: datetime(*info.date_time)) if info.date_time[0] > 1980 else None  # type: ignore[misc]
            yield File(path, lambda info=info: read_member(archive, info), time=time)  # type: ignore[misc]
        elif info.filename not in folders:
            yield File(path / "nothing", lambda: b"")


def local_time(make: Callable[[], datetime]) -> datetime | None:
    """A time of this machine's zone; None for one that no clock shows, which an archive may hold."""
    try:
        return make().astimezone()
    except (ValueError, OverflowError, OSError):
        return None


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
    inside = [replace(file, path=file.path.relative_to(top)) for file in deeper]
    if clean(top) in {"submitted", "submissions", clean(stem)}:
        return inside
    handed_in = {student_of(file.path) for file in inside if file.is_kind(".ipynb", ".zip") and not ignored(file.path)}
    students = [who for who in handed_in if not SHEET.match(who)]  # nbgrader makes a folder for each sheet
    if MOODLE.match(top) or len(students) < 2:
        return files
    print(
        f"All files are in the folder {clean(top)}: treated as the class, not as one student.",
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
