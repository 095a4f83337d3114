"""What a kept measurement says of its making: the day, and the versions that it depends on."""

import platform
from datetime import UTC, datetime

import numpy as np
import torch

import subnorm


def today() -> str:
    """The day in UTC, as YYYY-MM-DD."""
    return datetime.now(UTC).date().isoformat()


def versions() -> dict[str, str]:
    """Versions of Python, PyTorch, NumPy and this package."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "subnorm": subnorm.__version__,
    }
