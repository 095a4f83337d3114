"""The code cells of what was handed in, which may be anything."""

import json

import pytest
from classroom.hand_ins import cell, notebook

from subnorm_classroom.grading import cells
from subnorm_classroom.grading.cells import BrokenNotebook, cells_of

BROKEN = {
    "text": b"hello",
    "a list": b"[]",
    "no cells": b"{}",
    "a cell without a source": notebook({"cell_type": "code", "metadata": {}}),
    "metadata that is a text": notebook({**cell("x"), "metadata": "tags"}),
    "a list in a list, and so on": b"[" * 100_000,
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_what_is_no_notebook_is_named(data):
    with pytest.raises(BrokenNotebook, match=r"^broken_notebook$"):
        cells_of(data, "quick", ["f"])


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_a_notebook_that_takes_all_memory_is_named(error, monkeypatch):
    def loads(data):
        raise error

    monkeypatch.setattr(cells.json, "loads", loads)
    with pytest.raises(BrokenNotebook, match=r"^broken_notebook$"):
        cells_of(b"{}", "quick", ["f"])


@pytest.mark.parametrize(
    ("source", "named", "of_the_set"),
    [
        ("def f(): pass", {}, True),
        ("def fg(): pass", {}, False),
        ("def fg(): pass", {"id": "quick-1-answer"}, True),
        ("def fg(): pass", {"id": "quicker-1-answer"}, False),
        ("def fg(): pass", {"metadata": {"nbgrader": {"grade_id": "quick-1-check"}}}, True),
    ],
)
def test_a_notebook_of_another_set_is_known_by_its_names(source, named, of_the_set):
    data = json.dumps({"cells": [{**cell(source), **named}]}).encode()
    if of_the_set:
        assert [found.source for found in cells_of(data, "quick", ["f"])] == [source]
    else:
        with pytest.raises(BrokenNotebook, match=r"^wrong_notebook$"):
            cells_of(data, "quick", ["f"])
