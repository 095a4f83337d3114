"""Instant feedback for the exercises: ``checks.layer_norm(layer_norm)`` tells you what your function gets wrong.

The folder of each sheet, such as ``ex02``, has one file for each exercise, which is imported when you first ask for it.
Each exercise is an attribute of this package, an :class:`Exercise` that you can call. Feedback never stops a notebook.
The grader uses the same code with other inputs.
"""

import pkgutil
from importlib import import_module
from typing import Any

from subnorm_lab.checks.exercise import Exercise, Mistake, Result, progress
from subnorm_lab.checks.speech import story

__all__ = ["SETS", "Exercise", "Mistake", "Result", "progress", "story"]

SETS: dict[str, list[Exercise]]  # the exercises of each sheet, in order; see __getattr__

# The file of each exercise: {its name: "ex02.layer_norm"}.
_FILES = {
    file.name: f"{folder.name}.{file.name}"
    for folder in pkgutil.iter_modules(__path__)
    if folder.ispkg
    for file in pkgutil.iter_modules([f"{path}/{folder.name}" for path in __path__])
}


def __getattr__(name: str) -> Any:
    """An exercise, or all of them: to import all takes several times as long as to import one."""
    if name == "SETS":
        found: dict[str, list[Exercise]] = {}
        for exercise, file in _FILES.items():
            found.setdefault(file.partition(".")[0], []).append(__getattr__(exercise))
        value: Any = {sheet: sorted(found[sheet], key=lambda one: one.number) for sheet in sorted(found)}
    elif name in _FILES:
        value = getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_FILES, "SETS"})
