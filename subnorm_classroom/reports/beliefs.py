"""What students believe: the entries of the teacher's page `book/teaching.md`, each with the mistakes that it explains.

An entry is a belief in quotes, a section of a chapter that answers it, and the mistakes by which the checks catch it:

    **"Masked means zero."**
    : A score of 0 is a score like any other. Read "[](../notebooks/01a-….ipynb#a-mask-is-a-guarantee)".
      The belief returns as `no_mask` in ex07. Caught by `head`: `zero_mask`, `mask_after_softmax`.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from subnorm_classroom.errors import Refusal
from subnorm_classroom.grading.sandbox import COURSE

PAGE = "book/teaching.md"
ENTRY = re.compile(r"^\*\*(\".*\")\*\*.*\n: ((?:.*\n)(?:  .*\n)*)", re.MULTILINE)
SECTION = re.compile(r'Read\s+"\[\]\(\.\./(notebooks/[\w/-]+)\.ipynb#([^)\s]+)\)"')
RETURNS = re.compile(
    r"The\s+belief\s+returns\s+as\s+((?:`\w+`(?:,\s+|\s+and\s+)?)+)\s+in\s+(ex\d\d(?:(?:,\s+|\s+and\s+)ex\d\d)*)"
)
CAUGHT = re.compile(r"Caught\s+by\s+([^.]+)\.\s*\Z")


@dataclass(frozen=True)
class Belief:
    """An entry of the teacher's page.

    Args:
        sheet: of the lesson: "ex02".
        text: the belief, in quotes.
        page: of the section that answers it: "notebooks/03-layer-normalization".
        section: the heading of that section.
        catches: pairs of an exercise and a mistake, in this sheet.
        returns: pairs of another sheet and a mistake that shows the same belief there.
    """

    sheet: str
    text: str
    page: str
    section: str
    catches: frozenset[tuple[str, str]]
    returns: frozenset[tuple[str, str]]

    def behind(self, sheet: str, exercise: str, mistake: str) -> bool:
        """Whether it may be behind a mistake in an exercise of a sheet."""
        return (exercise, mistake) in self.catches or (sheet, mistake) in self.returns


def read_beliefs(course: Path = COURSE) -> list[Belief]:
    """All beliefs of the teacher's page, in its order.

    Raises:
        Refusal: without a checkout of the course, or if an entry cannot be read.
    """
    lessons = re.findall(r"^## (ex\d\d) · .*\n((?:(?!## ).*\n)*)", text_of(course / PAGE), re.MULTILINE)
    return [belief(sheet, text, body, course) for sheet, lesson in lessons for text, body in ENTRY.findall(lesson)]


def text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}. Run this in a checkout of the course") from error


def belief(sheet: str, text: str, body: str, course: Path) -> Belief:
    """One entry."""
    section, caught, returns = SECTION.search(body), CAUGHT.search(body), RETURNS.search(body)
    if not section or not caught:
        raise Refusal(f'on the teacher\'s page, {text} needs: Read "[](../notebooks/….ipynb#…)". Caught by `…`: `…`.')
    catches = set()
    for exercise, mistakes in re.findall(r"`(\w+)`:((?:[\s,]+`\w+`(?!:))+)", caught[1]):
        catches |= {(exercise, mistake) for mistake in re.findall(r"\w+", mistakes)}
    again = set()
    if returns:
        again = {(at, name) for name in re.findall(r"`(\w+)`", returns[1]) for at in re.findall(r"ex\d\d", returns[2])}
    page, slug = section.groups()
    return Belief(sheet, text, page, heading(course / f"{page}.ipynb", slug), frozenset(catches), frozenset(again))


def heading(notebook: Path, slug: str) -> str:
    """The heading to which a Markdown link with that slug goes."""
    if slug not in headings(notebook):
        raise Refusal(f"{notebook.name} has no section #{slug}, to which the teacher's page links")
    return headings(notebook)[slug]


@cache
def headings(notebook: Path) -> dict[str, str]:
    """All headings of a notebook, by slug."""
    cells = json.loads(text_of(notebook))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.strip().lower()).replace(" ", "-"): title for title in titles}


def anchor(title: str) -> str:
    """The id of a section or a belief on a built page: the id that docutils makes of a title."""
    return re.sub(r"^[0-9-]+|-+$", "", re.sub(r"[^a-z0-9]+", "-", title.lower()))
