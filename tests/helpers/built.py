"""The built book, for tests that look at its pages."""

from filelock import FileLock

from tools import course


def up_to_date():
    """Build the book if anything has changed; one worker builds, and the others wait."""
    folder = course.ROOT / ".pytest_cache"
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "book.lock"):
        return course.build()
