"""The built book, for tests that look at its pages."""

from filelock import FileLock

from tools import course


def up_to_date():
    """Builds what has changed; of several workers one builds, and the others wait for it."""
    folder = course.ROOT / ".pytest_cache"
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "book.lock"):
        return course.build()
