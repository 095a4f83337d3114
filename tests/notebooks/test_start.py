"""The start page of `course.py lab` leads to every notebook that a reader opens."""

import re

from tools.checkout import ROOT, chapters

PAGE = ROOT / "notebooks" / "README.md"
LINES = 25  # read before the first click


def test_the_start_page_names_every_chapter_and_sheet_once_in_order():
    links = re.findall(r"\]\(([^)]*)\)", PAGE.read_text("utf-8"))
    sheets = sorted((ROOT / "notebooks" / "exercises" / "student").glob("*.ipynb"))
    named = [path.relative_to(PAGE.parent).as_posix() for path in (*chapters(), *sheets)]
    assert links == [named[0], *named]


def test_the_start_page_is_short():
    assert len(PAGE.read_text("utf-8").splitlines()) <= LINES
