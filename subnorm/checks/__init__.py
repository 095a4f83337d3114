"""Instant feedback for the exercises: ``checks.layer_norm(layer_norm)`` says what your function does, and why.

The folder of each sheet, as ``ex02``, has one file for each exercise. The exercises are found, and each can be called
by its name here: it is an :class:`Exercise`. Feedback never stops a notebook. The same code judges in class and when
a teacher grades; the inputs differ.
"""

import pkgutil
from importlib import import_module

from subnorm.checks.exercise import Exercise, Mistake, Result, progress

__all__ = ["SETS", "Exercise", "Mistake", "Result", "progress"]


def found(sheet: str) -> list[Exercise]:
    """The exercises of a sheet, in their order. A file whose name begins with _ is none."""
    folder = import_module(f"{__name__}.{sheet}")
    names = [module.name for module in pkgutil.iter_modules(folder.__path__) if not module.name.startswith("_")]
    exercises = [getattr(import_module(f"{folder.__name__}.{name}"), name) for name in names]
    return sorted(exercises, key=lambda exercise: exercise.number)


SETS = {folder.name: found(folder.name) for folder in pkgutil.iter_modules(__path__) if folder.ispkg}
globals().update({exercise.name: exercise for exercises in SETS.values() for exercise in exercises})
