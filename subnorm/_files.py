"""Files that are written whole or not at all, and the name of their contents."""

import contextlib
import hashlib
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Put a text in the place of a file at once: an interruption or a full disk leaves the old one."""
    # not the file's name with an ending: that may be as long as a name can be
    part = path.with_name(f".part-{hashlib.sha256(path.name.encode()).hexdigest()[:16]}")
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def digest(path: Path) -> str:
    """A short hash of what is in a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
