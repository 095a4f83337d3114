"""Instant feedback for the exercises: ``checks.layer_norm(layer_norm)`` says what your function does, and why.

Every name here is an :class:`Exercise`: call it with your function. Feedback never stops a notebook. The same code
judges in class and when a teacher grades; the inputs differ.
"""

from subnorm.checks import layer_norms, precision
from subnorm.checks.exercise import Exercise, Mistake, Result, progress
from subnorm.checks.layer_norms import layer_norm
from subnorm.checks.precision import (
    bytes_moved,
    faults,
    median_and_spread,
    merge_moments,
    overflows,
    share_of_copy,
    time_rounds,
)

SETS = {"ex02": layer_norms.EXERCISES, "ex05": precision.EXERCISES}

__all__ = [
    "SETS",
    "Exercise",
    "Mistake",
    "Result",
    "bytes_moved",
    "faults",
    "layer_norm",
    "median_and_spread",
    "merge_moments",
    "overflows",
    "progress",
    "share_of_copy",
    "time_rounds",
]
