"""Stored and fresh outputs are compared: nbval and the hook in the root's conftest.py fail on planted faults."""

import base64
import copy
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
from PIL import Image

from tools import checkout
from tools.refresh import NOTEBOOKS, refresh

FIGURE = """\
import io
from IPython.display import publish_display_data
from PIL import Image
png = io.BytesIO()
Image.linear_gradient("L").convert("RGB").save(png, format="png")
publish_display_data({"image/png": png.getvalue(), "text/plain": "a gradient from black to white"})"""
PLOT = """\
import matplotlib.pyplot as plt
from subnorm_lab import figures
fig, ax = plt.subplots(figsize=(4, 3))
ax.plot([0, 1, 2], [3, 4, 6])
figures.show(fig, "A line that rises, and then rises faster")"""
WIDE = PLOT.replace("(4, 3)", "(6, 3)")  # a phone gets another drawing
SAID = """\
publish_display_data({"text/plain": "slope = 0.72"}, metadata={"said": {"slope": "0.72"}})"""
TIMES = """\
import time
print(time.time())"""
LIVE = """\
from subnorm_lab import live
panel = live.Lines(live.Axis("x"), live.Axis("y"), {"line": live.Curve("a line")})
live.chart("lines", "A line through two points", [live.slider("k", "slope", [1, 2], 1)], [panel],
    lambda k: (f"It ends at {k}.", [{"line": ([0, 1], [0.5, k])}]), "A line that rises from left to right.")"""
SOURCES = {
    "prints": "print('mean 0.725')",
    "draws": FIGURE,
    "draws again": FIGURE,
    "plots": PLOT,
    "plots again": PLOT,
    "plots beside": PLOT,
    "plots alone": PLOT,
    "plots for a phone": WIDE,
    "says": SAID,
    "moves": LIVE,
    "moves again": LIVE,
    "raises": "raise ValueError('no')",
    "times": TIMES,
}
CELL = {name: n for n, name in enumerate(SOURCES)}


def repaint(output, rows, columns, by):
    """Darken a part of the stored figure."""
    pixels = np.array(Image.open(io.BytesIO(base64.b64decode(output["data"]["image/png"]))).convert("RGB"))
    pixels[rows, columns] -= np.minimum(pixels[rows, columns], by)
    png = io.BytesIO()
    Image.fromarray(pixels).save(png, format="png")
    output["data"]["image/png"] = base64.b64encode(png.getvalue()).decode()


def redraw(output, was, now):
    """Change one coordinate of a stored plot."""
    svg = output["metadata"]["wide"]
    assert svg.count(was) == 1
    output["metadata"]["wide"] = svg.replace(was, now)


def replace(output, was, now):
    """Change one row in the table of a live figure."""
    assert output["metadata"]["live"].count(was) == 1
    output["metadata"]["live"] = output["metadata"]["live"].replace(was, now)


# cell: (the fault planted in its output, the expected message)
PLANTED = {
    "prints": (lambda output: output.update(text=["mean 0.726\n"]), "Cell outputs differ"),
    "draws": (
        lambda output: repaint(output, slice(200, 208), slice(100, 108), 60),
        "a stored figure is not the one now drawn: a block differs by",
    ),
    "draws again": (lambda output: output["data"].pop("image/png"), "a figure is stored that the cell does not draw"),
    "plots": (
        lambda output: redraw(output, "L 147.6 134.28", "L 147.6 132.6"),  # 3.97 in the place of 4
        "a stored figure is not the one now drawn: a block differs by",
    ),
    "plots again": (lambda output: redraw(output, ">1.5</text>", ">1.6</text>"), "a stored figure is not the one"),
    "plots beside": (
        lambda output: repaint(output, slice(200, 208), slice(100, 108), 60),
        "a stored figure is not the one now drawn: a block differs by",
    ),
    "plots alone": (lambda output: output["data"].pop("image/png"), "a figure is stored that the cell does not draw"),
    "plots for a phone": (
        lambda output: output["metadata"].update(
            narrow=output["metadata"]["narrow"].replace(">1.5</text>", ">1.6</text>")
        ),
        "a stored figure is not the one now drawn",
    ),
    "says": (lambda output: output["metadata"]["said"].update(slope="0.73"), "the stored numbers are"),
    "moves": (lambda output: replace(output, '"y":[0.5,2]', '"y":[0.501,2]'), "with other data than"),
    "moves again": (lambda output: replace(output, "It ends at 2.", "It ends at 3."), "with other data than"),
    "raises": (lambda output: output.update(evalue="yes"), "Cell outputs differ"),
}
UNSEEN = {
    "draws": lambda output: repaint(output, slice(None), slice(None), 1),  # the noise of another CPU
    "plots": lambda output: redraw(output, "L 147.6 134.28", "L 147.6 134.3"),  # the same
    "moves": lambda output: replace(output, '"y":[0.5,2]', '"y":[0.50005,2]'),  # the last digit, on another CPU
    "times": lambda output: output.update(text=["0.0\n"]),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A small notebook with outputs, run by refresh."""
    v4 = nbformat.v4
    book = v4.new_notebook(cells=[v4.new_code_cell(source) for source in SOURCES.values()])
    book.cells[CELL["raises"]].metadata["tags"] = ["raises-exception"]
    book.cells[CELL["times"]].metadata["tags"] = ["nbval-ignore-output"]
    path = tmp_path_factory.mktemp("stored") / "small.ipynb"
    nbformat.write(book, path)
    assert refresh(path)
    return path


@pytest.fixture(scope="module")
def report(stored):
    """Run pytest on three copies: {(copy, cell): message} for the cells that failed."""
    book = json.loads(stored.read_text("utf-8"))
    copies = {name: copy.deepcopy(book["cells"]) for name in ("planted", "unseen", "stripped")}
    for cell, (plant, _) in PLANTED.items():
        plant(copies["planted"][CELL[cell]]["outputs"][0])
    for cell, plant in UNSEEN.items():
        plant(copies["unseen"][CELL[cell]]["outputs"][0])
    for cell in copies["stripped"]:
        cell.update(outputs=[], execution_count=None)
    for name, cells in copies.items():
        stored.with_name(f"{name}.ipynb").write_text(json.dumps({**book, "cells": cells}), "utf-8")
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-p", "conftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--color=no", "--rootdir", stored.parent, *(f"{stored.parent / name}.ipynb" for name in copies)],
        cwd=NOTEBOOKS.parent,
        capture_output=True,
        text=True,
    )
    assert f"{len(copies) * len(CELL)} items" in done.stdout, done.stdout + done.stderr
    heads = list(re.finditer(r"^_+ .*\b(\w+)\.ipynb::Cell (\d+) _+$", done.stdout, re.MULTILINE))
    ends = [head.start() for head in heads[1:]] + [len(done.stdout)]
    names = list(CELL)
    return {
        (head[1], names[int(head[2])]): done.stdout[head.end() : end] for head, end in zip(heads, ends, strict=True)
    }


@pytest.mark.parametrize("cell", PLANTED)
def test_what_is_stale_fails(report, cell):
    _, message = PLANTED[cell]
    assert message in report["planted", cell]
    if message != "Cell outputs differ":  # nbval's own words
        assert "; run: python3 course.py refresh" in report["planted", cell]


def test_only_what_is_stale_fails(report):
    assert {cell for copied, cell in report if copied == "planted"} == set(PLANTED)


def test_noise_and_live_output_pass(report):
    assert not [cell for copied, cell in report if copied == "unseen"]


def test_stripped_outputs_fail_in_every_cell(report):
    assert {cell for copied, cell in report if copied == "stripped"} == set(CELL)
    assert "no outputs are stored; run: python3 course.py refresh" in report["stripped", "prints"]


def test_a_second_refresh_changes_no_byte(stored):
    before = stored.read_bytes()
    assert refresh(stored)
    assert stored.read_bytes() == before  # also of the live cell, whose clock went on


def test_refresh_stores_no_path_of_the_machine(stored):
    cells = json.loads(stored.read_text("utf-8"))["cells"]
    assert cells[CELL["raises"]]["outputs"][0]["traceback"] == ["ValueError: no"]


def test_a_notebook_that_raises_is_not_written(tmp_path, capsys):
    path = tmp_path / "raises.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")]), path)
    before = path.read_bytes()
    assert not refresh(path)
    assert path.read_bytes() == before
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_write_cut_off_leaves_the_notebook(stored, monkeypatch):
    before, write_bytes = stored.read_bytes(), Path.write_bytes

    def cut_off(path, *_, **__):
        write_bytes(path, b"{")
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", cut_off)
    with pytest.raises(KeyboardInterrupt):
        refresh(stored)
    assert stored.read_bytes() == before


@pytest.mark.parametrize("name", ["nope.ipynb", "ruff.toml"])
def test_what_is_no_notebook_is_named(name):
    command = [sys.executable, "-P", checkout.ROOT / "tools" / "refresh.py", NOTEBOOKS / name]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{NOTEBOOKS / name} is not a notebook. Name files in ")
