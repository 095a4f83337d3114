"""Instant feedback for the exercises: ``checks.layer_norm(layer_norm)`` says what your function does, and why.

Every name here is an :class:`Exercise`: call it with your function. Feedback never stops a notebook. The same code
judges in class and when a teacher grades; the inputs differ.
"""

from subnorm.checks import layer_norms
from subnorm.checks.exercise import Exercise, Mistake, Result, progress
from subnorm.checks.layer_norms import layer_norm

SETS = {"ex02": layer_norms.EXERCISES}

__all__ = ["SETS", "Exercise", "Mistake", "Result", "layer_norm", "progress"]
