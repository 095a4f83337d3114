"""Where a stored measurement comes from: day, commit, load, machine and versions.

Importing this loads neither NumPy nor PyTorch, because the book's build and `course.py speed` use it too.
"""

import os
import platform
import re
import subprocess
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import subnorm


def today() -> str:
    """The day in UTC, as YYYY-MM-DD."""
    return datetime.now(UTC).date().isoformat()


def is_day(text: str) -> bool:
    """Whether a text is a day in the format of `today`."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def commit(file: Path, but: str = "") -> str | None:
    """The commit of the checkout that tracks `file`, with "-dirty" if any file differs; None if no checkout tracks it.

    Args:
        file: the file; a copy installed inside another checkout is not tracked there.
        but: a path from the root of the checkout that may differ: the record itself.
    """
    git = ["git", "-C", str(file.parent)]

    def said(*words: str) -> str:
        return subprocess.run([*git, *words], check=True, capture_output=True, text=True).stdout.strip()

    try:
        said("ls-files", "--error-unmatch", file.name)
        changed = said("status", "--porcelain", "--", ":/", *([f":(top,exclude){but}"] if but else []))
        return said("rev-parse", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def is_commit(text: str | None) -> bool:
    """Whether a text has the format of `commit`."""
    return text is None or re.fullmatch("[0-9a-f]{40}(-dirty)?", text) is not None


def load() -> float | None:
    """The load average of the last minute; None on Windows, which has none."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def made(record: dict[str, Any], version: str) -> str:
    """The date, commit and load of a record as text; the version replaces an unknown commit."""
    digits, _, dirty = (record["commit"] or "").partition("-")
    commit = f"commit {digits[:7]}" if digits else f"version {version}"
    changes = " with changes" if dirty else ""
    load = "" if record["load"] is None else f", load {record['load']:.1f}"
    return f"{record['date']}, {commit}{changes}{load}"


def cpu_model() -> str:
    """The CPU model as the operating system reports it, never the host name."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Versions of Python, PyTorch, NumPy and this package."""
    import numpy as np
    import torch

    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "subnorm": subnorm.__version__,
    }
