"""Make a sheet's Markdown stand alone: no notes for the build of the book, and no links to files beside it."""

import json
import re
from pathlib import Path

COMMENT = re.compile(r"[ ]?<!-- .*? -->")
LINK = re.compile(r"\[([^][]+)\]\((?!https?:)[^()\s]+\)")


def plain(text: str) -> str:
    """The text of a Markdown cell as a student gets it: a link to a page of the course becomes its words."""
    return LINK.sub(r"*\1*", COMMENT.sub("", text))


def title_of(path: Path) -> str:
    """The first heading of a notebook.

    Raises:
        ValueError: its first cell is no heading.
    """
    cells = json.loads(path.read_text("utf-8"))["cells"]
    found = re.search(r"^# (.+)$", "".join(cells[0]["source"]), re.MULTILINE)
    if not found:
        raise ValueError(f"{path.name} must begin with a heading, such as # Residual connections")
    return found[1]
