"""The checkout: where its files are, and how the tools of course.py read, run and lock it. Standard library only."""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import BinaryIO

ROOT = pathlib.Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
BUILD = ROOT / "_build"
PAGES = BUILD / "html"  # the last build without errors
LOCK = BUILD / "lock"
DRAFT = "**Draft.**"  # in a notebook that is not finished
# A copy of the checkout without these is as fresh as a clone: its first build finds no cache.
GENERATED = shutil.ignore_patterns(
    ".*", "_build", "_pack", "dist", "venv", "grades", "submissions", "__pycache__", "*.egg-info"
)


def call(command: list, **options) -> int:
    """Exit status of a command, run at the root."""
    sys.stdout.flush()  # print our own lines first
    return subprocess.run([str(word) for word in command], **{"cwd": ROOT, **options}).returncode


def digest_of_files(paths: list) -> str:
    """One hash of the names and contents of files."""
    result = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        result.update(f"{path.relative_to(ROOT).as_posix()} {len(content)}\n".encode() + content)
    return result.hexdigest()


def read_json(path: pathlib.Path) -> dict:
    """The JSON in a file; {} if the file is missing or incomplete."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def notebooks() -> list[pathlib.Path]:
    """The notebooks of chapters and deep dives."""
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def is_draft(notebook: pathlib.Path) -> bool:
    """Whether a notebook says that it is not finished."""
    return DRAFT in notebook.read_text("utf-8")


def chapters() -> list[pathlib.Path]:
    """The chapters and deep dives, without drafts."""
    return [path for path in notebooks() if not is_draft(path)]


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Let one process at a time change .venv and the pages; the others wait. A lock ends with its process."""
    BUILD.mkdir(exist_ok=True)
    with LOCK.open("wb") as file:
        if not take_lock(file):
            print("Another course.py is installing or building in this checkout: waiting for it to finish", flush=True)
            while not take_lock(file):
                time.sleep(0.1)
        yield


def take_lock(file: BinaryIO) -> bool:
    """Whether the lock on a file was free and is now ours, until the file is closed."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
