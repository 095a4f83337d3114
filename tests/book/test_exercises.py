"""The lists of exercises come from the exercises' own data; an unknown sheet is a warning."""

import re
import subprocess
import sys

import pytest
from helpers.small_book import build, html, notebook, page

from subnorm_lab import checks
from subnorm_lab.checks.exercise import Exercise
from tools import checkout

GIVEN = {"chapter": "03-norms", "reference": None, "cases": None, "mistakes": []}
SETS = {
    "ex90": [
        Exercise(number=1, name="double", level=1, minutes=10, objective="add a number to itself", **GIVEN),
        Exercise(number=2, name="halve", level=2, minutes=25, objective="undo it", **GIVEN),
    ],
    "ex91": [Exercise(number=1, name="module", level=3, minutes=5, objective="wrap it", way="module", **GIVEN)],
}
TOC = "```{toctree}\nnotebooks/03-norms\nnotebooks/exercises/ex90-small\nnotebooks/exercises/ex91-large\n```\n\n"
LISTS = "".join(f"(sheet-{name})=\n## {name} · Sheet\n\n```{{exercises}} {name}\n```\n\n" for name in SETS)


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book with two sheets."""
    monkeypatch.setattr(checks, "SETS", SETS)
    (tmp_path / "notebooks/exercises/student").mkdir(parents=True)
    for name in ("03-norms", "exercises/ex90-small", "exercises/ex91-large"):
        notebook(tmp_path, name=name)
    for name in ("ex90-small", "ex91-large"):
        (tmp_path / f"notebooks/exercises/student/{name}.ipynb").write_text("a sheet")
    return tmp_path


def rows(text):
    return [
        [re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall(r"<td>(.*?)</td>", row, re.DOTALL)]
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", text, re.DOTALL)
        if "<td" in row
    ]


def test_the_lists_are_what_the_exercises_say(book):
    page(book, "```{exercises}\n```\n\nTake {exercises}`ex90`!\n\n" + LISTS + TOC)
    assert build(book) == ""
    shown = html(book)
    assert rows(shown) == [
        ["ex90 · Sheet", "35", "3", "2 exercises, after 03"],
        ["ex91 · Sheet", "5", "3", "1 exercises, after 03"],
        ["all", "40", "6", "3 exercises"],
        ["1", "10", "1 · double, 03: add a number to itself"],
        ["2", "25", "2 · halve, 03: undo it"],
        ["3", "5", "1 · module, 03: wrap it"],
    ]
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", shown))
    assert "Take 2 exercises, 35 minutes, 3 points!" in text
    assert "2 exercises, 35 minutes, 3 points. Needs NumPy. Work on the sheet" in text
    assert "1 exercises, 5 minutes, 3 points. Needs NumPy and PyTorch. Work on the sheet" in text
    assert {"notebooks/03-norms.html", "notebooks/exercises/ex90-small.html", "#sheet-ex90"} <= set(
        re.findall('href="([^"]*)"', shown)
    )
    assert re.search(r'href="_downloads/[^"]*/ex91-large.ipynb"', shown)


@pytest.mark.parametrize("text", ["```{exercises} ex92\n```", "Take {exercises}`ex92`."])
def test_a_sheet_that_does_not_exist_warns_in_every_build(book, text):
    page(book, text + "\n\n" + TOC)
    for _ in range(2):
        assert "index.md:3: WARNING: there is no sheet ex92; there are ex90, ex91" in build(book)


def test_a_sheet_without_its_heading_warns(book):
    page(book, "```{exercises}\n```\n\n" + LISTS.split("(sheet-ex91)=")[0] + TOC)
    assert "undefined label: 'sheet-ex91'" in build(book)


def test_the_lists_need_numpy_alone():
    code = "import sys; sys.modules.update(torch=None, matplotlib=None); import subnorm_book.teaching.exercises"
    path = {"PYTHONPATH": f"{checkout.ROOT / 'book'}"}
    subprocess.run([sys.executable, "-c", code], cwd=checkout.ROOT, env=path, check=True, timeout=300)
