"""The built book, for tests that look at its pages."""

from tools import build


def up_to_date():
    """Build the book if anything has changed; one worker builds, and the others wait."""
    return build.build()
