"""Make a sheet's Markdown stand alone: no notes for the build of the book, and no links that lead nowhere."""

import json
import re
from collections.abc import Callable
from pathlib import Path

COMMENT = re.compile(r"[ ]?<!-- .*? -->")
LINK = re.compile(r"\[([^][]+)\]\((?!https?:)([^()\s#]+\.(?:ipynb|md))(#[^()\s]*)?\)")  # to a page of the course
CHAPTER = re.compile(r"\.\./[\w.-]+\.ipynb")  # seen from a source of a sheet


def plain(text: str, chapters: bool = True) -> str:
    """The text of a Markdown cell as a student gets it. A link to a page that they do not have becomes its words.

    Args:
        text: the text in the source.
        chapters: whether they have the chapters. The sheet is one folder further from these than its source.
    """

    def new(page: str) -> str:
        return f"../{page}" if chapters and CHAPTER.fullmatch(page) else ""

    return relinked(COMMENT.sub("", text), new)


def relinked(text: str, new: Callable[[str], str]) -> str:
    """Markdown with a new path for each page of the course to which it links; a link without one becomes its words."""

    def link(found: re.Match[str]) -> str:
        words, page, section = found.groups("")
        return f"[{words}]({new(page)}{section})" if new(page) else f"*{words}*"

    return LINK.sub(link, text)


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
