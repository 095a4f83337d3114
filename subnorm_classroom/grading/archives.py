"""The files of a folder or a zip, and of the zips in it.

Nothing is unpacked to disk, no link is followed, and declared sizes are not trusted.
"""

import contextlib
import io
import os
import re
import stat
import sys
import tempfile
import unicodedata
import weakref
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

LARGEST = 100 << 20  # bytes of a notebook, most of them outputs; `cells_of` measures the rest
LARGEST_ARCHIVE = 1 << 30  # bytes of a zip in a zip: a student may pack a whole environment
IN_MEMORY = 16 << 20  # bytes of such a zip that are not put into a temporary file
MOST_NAMES = 100_000  # in the zips of one student; an environment with JupyterLab and PyTorch has half of that
RATIO = 200  # a higher compression ratio means a zip bomb, if there is more than we read

PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # with other methods zipfile may unpack more than the header says
IN_UTF8 = 0x800  # the flag of a member whose name is in UTF-8

#: Browsers and systems add a suffix.
NOTEBOOK = re.compile(r"\.ipynb(?:\.(?:txt|json|download))?(?: ?\(\d+\))?$", re.IGNORECASE)
ELSE = (".json", ".txt", "")  # suffixes of files that may be a notebook, by their content


class TooLarge(Exception):
    """A file is too large for a notebook, or an archive for a hand-in."""


@dataclass
class File:
    """A file that may be a notebook or an archive.

    Args:
        path: its path inside the submissions.
        read: returns its bytes, up to `LARGEST`.
        problem: why nobody should read it.
        time: of the last change, as the folder or zip has it.
        stream: opens it at any size; None for a file that only `read` reads.
    """

    path: PurePosixPath
    read: Callable[[], bytes]
    problem: str = ""
    time: datetime | None = None
    stream: Callable[[], IO[bytes]] | None = None

    @property
    def shown(self) -> PurePosixPath:
        """The path without invisible characters."""
        return PurePosixPath(clean(str(self.path)))

    @property
    def is_notebook(self) -> bool:
        return bool(NOTEBOOK.search(self.shown.name))

    @property
    def is_archive(self) -> bool:
        return self.shown.suffix.lower() == ".zip"

    @property
    def may_be_notebook(self) -> bool:
        """Whether only the content tells."""
        return self.shown.suffix.lower() in ELSE and self.path.name != "nothing"

    def open(self) -> IO[bytes]:
        return self.stream() if self.stream else io.BytesIO(self.read())


def clean(name: str) -> str:
    """A name in Unicode's composed form, without invisible characters or marks that reverse the text."""
    name = unicodedata.normalize("NFC", name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return "".join(c for c in name if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp"))


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
                yield File(inside, partial(read_file, path), "", time, partial(open_file, path))


def open_file(path: Path) -> IO[bytes]:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    return os.fdopen(descriptor, "rb")


def read_file(path: Path) -> bytes:
    with open_file(path) as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise TooLarge
    return data


Opened = Callable[[], AbstractContextManager[zipfile.ZipFile]]


def files_of_zip(archive: zipfile.ZipFile, opened: Opened | None = None) -> Iterator[File]:
    """All files of an archive. A link, a zip bomb or a path that leaves the archive has a problem.

    Args:
        archive: the archive.
        opened: opens it again to read a member; None reads from `archive` itself, which then has to stay open.
    """
    again = opened or (lambda: nullcontext(archive))
    overlap = overlapping(archive)
    folders = {str(parent) + "/" for name in archive.namelist() for parent in PurePosixPath(name).parents}
    for info in archive.infolist():
        path = PurePosixPath(name_of(info).replace("\\", "/"))
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
            read, stream = (partial(from_zip, again, info, how) for how in (read_member, unpacked))
            yield File(path, read, "", time, stream)
        elif info.filename not in folders:
            yield File(path / "nothing", lambda: b"")


def name_of(info: zipfile.ZipInfo) -> str:
    """The name of a member. macOS writes UTF-8 without the flag that says so, which zipfile takes for code page 437."""
    if not info.flag_bits & IN_UTF8:
        try:
            return info.filename.encode("cp437").decode("utf-8")
        except UnicodeError:
            pass
    return info.filename


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


def from_zip(opened: Opened, info: zipfile.ZipInfo, read: Callable[[zipfile.ZipFile, zipfile.ZipInfo], Any]) -> Any:
    with opened() as archive:
        return read(archive, info)


def read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The bytes of a member. For `PACKED`, zipfile unpacks no more than the header says; a lie fails the checksum."""
    if info.file_size > LARGEST:
        raise TooLarge
    return archive.read(info)


def unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    """A member as a file without a name, which ends when it is closed."""
    if info.file_size > LARGEST_ARCHIVE:
        raise TooLarge
    copy = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115, the caller closes it
    with archive.open(info) as member:
        while data := member.read(1 << 20):
            copy.write(data)
    copy.seek(0)
    return copy  # type: ignore[return-value]


def files_inside(file: File, most: int = MOST_NAMES) -> list[File]:
    """The files of a zip. Each is read by opening the zip again, so no archive stays open.

    Raises:
        TooLarge: it is larger than `LARGEST_ARCHIVE`, or holds more than `most` names.
        Exception: it is damaged; zlib, struct and zipfile each raise errors of their own.
    """

    @contextlib.contextmanager
    def opened() -> Iterator[zipfile.ZipFile]:
        with file.open() as stream, zipfile.ZipFile(stream) as archive:
            yield archive

    with opened() as archive:
        if len(archive.infolist()) > most:
            raise TooLarge
        return list(files_of_zip(archive, opened))


def kept_open(file: File) -> zipfile.ZipFile:
    """A zip of a class. It stays open as long as somebody may read a file in it."""
    stream = file.open()
    try:
        archive = zipfile.ZipFile(stream)
    except BaseException:
        stream.close()
        raise
    weakref.finalize(archive, stream.close)
    return archive
