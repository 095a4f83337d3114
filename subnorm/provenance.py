"""What a kept measurement says of its making: the day, the commit, the load, the machine, and the versions.

Importing this loads neither NumPy nor PyTorch: the build of the book and the measure of the course use it too.
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
    """Whether a text is a day as `today` writes it."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def commit(file: Path, but: str = "") -> str | None:
    """The commit of the checkout that has `file`, with "-dirty" if any file differs; None if no checkout has it.

    Args:
        file: one that the checkout tracks; a copy installed inside another checkout is not of it.
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
    """Whether a text is what `commit` gives."""
    return text is None or re.fullmatch("[0-9a-f]{40}(-dirty)?", text) is not None


def load() -> float | None:
    """Processes that wanted a core in the last minute, on average; None on Windows, which does not count them."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def made(record: dict[str, Any], version: str) -> str:
    """The date, commit and load of a record as text; the version stands for a commit that is not known."""
    digits, _, dirty = (record["commit"] or "").partition("-")
    commit = f"commit {digits[:7]}" if digits else f"version {version}"
    changes = " with changes" if dirty else ""
    load = "" if record["load"] is None else f", load {record['load']:.1f}"
    return f"{record['date']}, {commit}{changes}{load}"


def cpu_model() -> str:
    """The model as the operating system reports it, never the machine's own name."""
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
