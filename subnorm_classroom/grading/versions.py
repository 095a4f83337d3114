"""Which version of the grader gives the marks."""

import platform

import numpy as np

import subnorm
from subnorm_classroom.files import digest
from subnorm_classroom.grading.sandbox import COURSE

#: All code of ours that decides a mark: the definitions, the trained model, the checks, and the grader.
DECIDES = (
    "subnorm/__init__.py",
    "subnorm_lab/__init__.py",
    "subnorm_lab/_files.py",
    "subnorm/_rules.py",
    "subnorm/residual.py",
    "subnorm/numpy",
    "subnorm/torch",
    "subnorm_lab/stories",
    "subnorm_lab/checks",
    "subnorm_classroom",
)


def versions() -> dict[str, str]:
    """Everything that decides a mark, and the digest of our part of it."""
    return {
        "subnorm": subnorm.__version__,
        "code": code_digest(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def code_digest() -> str:
    """The digest of our code that decides a mark: a change of a figure must not invalidate the marks of a class."""
    paths = [path for name in DECIDES for path in sorted([COURSE / name, *(COURSE / name).rglob("*.py")])]
    return digest("".join(path.read_text(encoding="utf-8") for path in paths if path.is_file()))
