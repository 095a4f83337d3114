"""Answers with several mistakes at once."""

from subnorm import checks
from subnorm.checks.variant import Variant


def both(name, *tags):
    """The right answer to an exercise with the changes of all these mistakes."""
    exercise = getattr(checks, name)
    answers = {mistake.tag: mistake.answer for mistake in exercise.mistakes}
    return Variant(exercise.reference, *(change for tag in tags for change in answers[tag].changes))
