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


PRINTED = {"output_type": "stream", "name": "stdout", "text": ['[0.5 "1"]\\ {\n'] * 1000}
DRAWN = {"output_type": "display_data", "data": {"application/json": {"data": [{"y": [1, 2]}], "outputs": []}}}
SOURCE = 'f = {"outputs": [1], "attachments": {}}\nprint("\\"outputs\\": [")'


def test_what_jupyter_makes_does_not_count_as_code(monkeypatch):
    """12 MB of prints, a figure of plotly, a pasted picture, the state of widgets: the code has a few lines."""
    picture = {"cell_type": "markdown", "metadata": {}, "source": "![x](a)", "attachments": {"a": {"png": "x" * 9000}}}
    book = {
        "cells": [{**cell(SOURCE), "outputs": [PRINTED, DRAWN]}, picture, {**cell("y = 2"), "outputs": [DRAWN]}],
        "metadata": {"widgets": {"state": {"a": ["x" * 9000]}}},
    }
    for indent in (None, 1):
        data = json.dumps(book, indent=indent).encode()
        monkeypatch.setattr(cells, "MOST_CODE", 2000)
        assert [found.source for found in cells_of(data, "quick", ["f"])] == [SOURCE, "y = 2"]
        left = json.loads(cells.without_outputs(data))
        assert [one.get("outputs") for one in left["cells"]] == [[], None, []]
        assert (left["cells"][1]["attachments"], left["metadata"]) == ({}, {"widgets": {}})
        monkeypatch.setattr(cells, "MOST_CODE", 50)
        with pytest.raises(BrokenNotebook, match=r"^too_large$"):
            cells_of(data, "quick", ["f"])


def test_a_picture_in_a_text_is_no_code():
    """Colab pastes pictures into the text of a cell."""
    picture = {"cell_type": "markdown", "metadata": {}, "source": "![](data:image/png;base64," + "A" * (12 << 20)}
    assert [found.source for found in cells_of(notebook("f = 1", picture), "quick", ["f"])] == ["f = 1"]
    numbers = {**picture, "metadata": {"numbers": [0] * (cells.MOST_COMMAS + 1)}}
    with pytest.raises(BrokenNotebook, match=r"^too_large$"):
        cells_of(notebook("f = 1", numbers), "quick", ["f"])


@pytest.mark.parametrize("none", [{"metadata": None}, {"metadata": {"tags": None}}, {"metadata": {"nbgrader": None}}])
def test_a_cell_without_metadata_is_a_cell(none):
    data = notebook({**cell("f = 1"), **none}, {**cell(""), "source": None})
    assert cells_of(data, "quick", ["f"]) == [cells.Cell(1, (), "f = 1"), cells.Cell(2, (), "")]


@pytest.mark.parametrize(
    "data", [b'{"cells": [{"outputs": [{]', b'{"outputs": ["]}', b'{"outputs": [' + b"[" * 600_000]
)
def test_outputs_that_do_not_end_stay(data):
    assert cells.without_outputs(data) == data
