"""Files that a command writes: JSON for the next command, and every file whole or not at all."""

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from subnorm_classroom.errors import Refusal
from subnorm_lab import _files


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def read_json(path: Path) -> dict[str, Any]:
    """A file from an earlier run; empty if it is missing or incomplete."""
    with contextlib.suppress(OSError, ValueError):
        value = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(value, dict):
            return value
    return {}


def write(path: Path, content: str | bytes) -> None:
    """Write a file atomically, unless it already has this content."""
    data = content.encode() if isinstance(content, str) else content
    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            return
    with writes_to(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _files.write(path, data)


@contextlib.contextmanager
def writes_to(path: Path) -> Iterator[None]:
    """Raise Refusal instead of an OSError."""
    try:
        yield
    except OSError as error:
        raise Refusal(
            f"the grades cannot be written to {path}: {error.strerror}. Make room there, allow yourself to write, "
            "or choose another folder. What is finished is kept: run the same command again to continue"
        ) from error


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
