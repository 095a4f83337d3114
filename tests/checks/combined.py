"""Answers with several mistakes at once."""

from subnorm_lab import checks
from subnorm_lab.checks.edited import Edited


def both(name, mistakes):
    """The right answer to an exercise with the changes of two or more of its mistakes: "one other, one third"."""
    exercise = getattr(checks, name)
    changes = {
        mistake.tag: mistake.answer.changes for mistake in exercise.mistakes if isinstance(mistake.answer, Edited)
    }
    groups = [tags.split() for tags in mistakes.split(",")]
    return [Edited(exercise.reference, *(change for tag in tags for change in changes[tag])) for tags in groups]


def at_least_eps(name, variance):
    """The right answer to an exercise with eps as the least variance, instead of added to it."""
    return Edited(getattr(checks, name).reference, f"{variance} + eps -> np.maximum({variance}, eps)")
