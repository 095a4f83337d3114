"""What a reader sees of the code: ideas. What proves is in cells tagged `checked`, which the page folds."""

import json
import re

import pytest
from helpers import small_book
from subnorm_book.evidence.chapter_code import ChapterCode

from tools import checkout
from tools.refresh import NOTEBOOKS

FOLDED = {"hide-input", "checked"}
LINES = 120  # of code that a main chapter shows, without blank ones
PROOF = re.compile(r"^\s*(assert\b|say\()", re.MULTILINE)


def visible(book):
    cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    return ["".join(c["source"]) for c in cells if not FOLDED & set(c["metadata"].get("tags", []))]


def faults_of(book, main):
    code, behind = visible(book), ChapterCode(book["cells"], checkout.ROOT)
    proofs = [source for source in code if PROOF.search(behind.expanded(source))]
    yield from (f"a proof in a visible cell: {source[:60]!r}" for source in proofs)
    lines = sum(bool(line.strip()) for source in code for line in source.splitlines())
    if main and lines > LINES:
        yield f"{lines} visible lines of code, limit {LINES}"


@pytest.mark.parametrize("path", sorted(path.name for path in NOTEBOOKS.glob("*.ipynb")))
def test_a_chapter_shows_ideas(path):
    book = json.loads((NOTEBOOKS / path).read_text("utf-8"))
    assert list(faults_of(book, main=path[2] == "-")) == []


def cell(source, *tags):
    return {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": source.splitlines(keepends=True)}


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([cell("x = 1\n" * LINES), cell("assert x == 1", "checked"), cell("say('x', 1)", "hide-input")], 0),
        ([cell("x = 1\n\n" * LINES)], 0),
        ([cell("x = 1\n" * LINES), cell("y = 2")], 1),
        ([cell("for x in range(3):\n    assert x < 3")], 1),
        ([cell('say("x", 1)', "claim:03-x")], 1),
        ([cell("# assert nothing\nassertion = 1")], 0),
    ],
)
def test_the_test(cells, expected):
    assert len(list(faults_of({"cells": cells}, main=True))) == expected


def test_a_visible_call_of_a_proof_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    imports = small_book.module(tmp_path, "def prove(x):\n    assert x == 1")
    assert len(list(faults_of({"cells": [imports, cell("chapter.prove(1)")]}, main=True))) == 1
    assert list(faults_of({"cells": [imports, cell("chapter.prove(1)", "checked")]}, main=True)) == []
