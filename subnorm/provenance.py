"""What a kept measurement says of its making: the day, the machine, and the versions that it depends on.

Importing this loads neither NumPy nor PyTorch: the build of the book and the measure of the course use it too.
"""

import platform
from datetime import UTC, date, datetime
from pathlib import Path

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
