"""Answers with several mistakes at once."""

from subnorm_lab import checks
from subnorm_lab.checks.edited import Edited


def both(name, *tags):
    """The right answer to an exercise with the changes of all these mistakes."""
    exercise = getattr(checks, name)
    answers = {mistake.tag: mistake.answer for mistake in exercise.mistakes}
    return Edited(exercise.reference, *(change for tag in tags for change in answers[tag].changes))
