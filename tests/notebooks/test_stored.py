"""Guards for the stored notebooks, which nbval takes for granted; each is tested on a planted fault."""

import ast
import copy
import itertools
import json
import re

import pytest

from tools import checkout, refresh
from tools.refresh import NOTEBOOKS, notebooks

LINES = 15  # of a code cell: one idea. Empty ones and nbgrader's marks of a solution are not read
BEGINNING = 8  # lines of a notebook's first cell: what it imports comes before what it is about
FUNCTION = 60  # lines of a chapter's function: it draws a figure
DESCRIBED = 20  # characters; fewer do not say what is seen
MARK = re.compile(r"\s*### (BEGIN|END) SOLUTION")
PLACES = r"/home/|/root/|/tmp/|/Users/|[A-Z]:\\Users"


def code_cells(book):
    """(number as nbval counts, cell, its tags, its outputs)"""
    cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    return [(n, cell, set(cell["metadata"].get("tags", [])), cell["outputs"]) for n, cell in enumerate(cells)]


def all_text(output):
    """All text in an output."""
    data = output.get("data", {})
    held = [output.get("text"), data.get("text/plain"), data.get("text/markdown"), output.get("traceback")]
    return "".join("".join(text) for text in held if text)


def run_in_order(book):
    counts = [cell["execution_count"] for _, cell, _, _ in code_cells(book)]
    if counts != list(range(1, len(counts) + 1)):
        yield f"execution counts are {counts}, not 1, 2, 3, ...: nbval compares nothing where one is missing"


def raises_where_tagged(book):
    for n, _, tags, outputs in code_cells(book):
        if ("raises-exception" in tags) != any(output["output_type"] == "error" for output in outputs):
            yield f"code cell {n}: an error is stored if and only if the cell is tagged raises-exception"


def no_stderr(book):
    for n, _, _, outputs in code_cells(book):
        if any(output.get("name") == "stderr" for output in outputs):
            yield f"code cell {n} writes to stderr: fix what it warns of"


def figures_are_described(book):
    for n, _, _, outputs in code_cells(book):
        for output in outputs:
            alt = "".join(output.get("data", {}).get("text/plain", ""))
            if "image/png" in output.get("data", {}) and (len(alt) < DESCRIBED or alt.startswith("<")):
                yield f"code cell {n}: a figure's text is {alt!r}; say what is seen (subnorm_lab.figures.show)"


def figures_show_where_nothing_is_trusted(book):
    for n, _, _, outputs in code_cells(book):
        if any("image/svg+xml" in output.get("data", {}) for output in outputs):
            yield f"code cell {n} stores an SVG, in whose place VS Code shows nothing: use subnorm_lab.figures.show"


def short(book):
    for n, cell, _, _ in code_cells(book):
        lines = sum(bool(line.strip()) and not MARK.match(line) for line in cell["source"])
        limit = LINES if n else BEGINNING
        if lines > limit:
            yield f"code cell {n} has {lines} lines, limit {limit}: split it, or move a figure to subnorm_lab.chapters"


def prose_between(book):
    cells = [cell for cell in book["cells"] if "remove-cell" not in cell["metadata"].get("tags", [])]
    for before, after in itertools.pairwise(cells):
        if before["cell_type"] == after["cell_type"] == "code" and not follows(after):
            yield f"no prose before the cell that begins {''.join(after['source'])[:60]!r}: say what to look for"


def follows(cell):
    """Whether the prose before the last cell has said what to look for: in a check of it, or a table of its results."""
    tags = cell["metadata"].get("tags", [])
    tabled = "hide-input" in tags and any("text/markdown" in output.get("data", {}) for output in cell["outputs"])
    return tabled or bool({"check", "checked"} & set(tags))


def something_is_compared(book):
    if not any("nbval-ignore-output" not in tags and any(map(all_text, outs)) for _, _, tags, outs in code_cells(book)):
        yield "no cell prints a text that nbval compares"


def nothing_is_skipped(book):
    for n, cell, tags, _ in code_cells(book):
        if found := re.findall("NBVAL_[A-Z_]+|PYTEST_VALIDATE_[A-Z_]+", "".join(cell["source"])):
            yield f"code cell {n}: {found[0]} in a comment; tag a live measurement nbval-ignore-output instead"
        if {"nbval-skip", "skip-execution"} & tags:
            yield f"code cell {n} is skipped, so nothing proves it"


def sources_are_lists(book):
    if not all(isinstance(cell["source"], list) for cell in book["cells"]):
        yield "a cell's source is one string: store a list of lines, as refresh does"


def no_place_of_one_machine(book):
    for n, _, _, outputs in code_cells(book):
        if found := [place for output in outputs for place in re.findall(PLACES, all_text(output))]:
            yield f"code cell {n} prints a path of one machine: {found[0]}"


def no_address_of_one_run(book):
    for n, _, tags, outputs in code_cells(book):
        found = [place for output in outputs for place in re.findall(r"<[^<>]* at 0x[0-9a-f]+>", all_text(output))]
        if found and "nbval-ignore-output" not in tags:
            yield f"code cell {n} shows {found[0]}, which is elsewhere in memory in the next run: end with what to see"


GUARDS = [
    run_in_order,
    raises_where_tagged,
    no_stderr,
    figures_are_described,
    figures_show_where_nothing_is_trusted,
    short,
    prose_between,
    something_is_compared,
    nothing_is_skipped,
    sources_are_lists,
    no_place_of_one_machine,
    no_address_of_one_run,
]


@pytest.mark.parametrize("path", [path.relative_to(NOTEBOOKS).as_posix() for path in notebooks()])
def test_notebook_as_stored(path):
    book = json.loads((NOTEBOOKS / path).read_text("utf-8"))
    faults = [fault for guard in GUARDS for fault in guard(book)]
    assert not faults, "\n".join(faults)


def long(path):
    """The functions of a chapter's module that have more lines than one figure needs."""
    functions = [node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]
    return [node.name for node in functions if node.end_lineno - node.lineno > FUNCTION]


@pytest.mark.parametrize("path", sorted(checkout.ROOT.glob("subnorm_lab/chapters/*.py")), ids=lambda path: path.stem)
def test_a_function_is_no_longer_than_one_figure(path):
    assert long(path) == []


def test_a_long_function_is_found(tmp_path):
    for lines, found in ((FUNCTION, []), (FUNCTION + 1, ["prove"])):
        (tmp_path / "norms.py").write_text("def prove():\n" + "    x = 1\n" * lines, "utf-8")
        assert long(tmp_path / "norms.py") == found


def code(count, source, *outputs, tags=()):
    return {
        "cell_type": "code",
        "execution_count": count,
        "metadata": {"tags": list(tags)},
        "outputs": list(outputs),
        "source": source.splitlines(keepends=True),
    }


def display(**data):
    kinds = {"image_png": "image/png", "image_svg": "image/svg+xml", "text_plain": "text/plain"}
    return {"output_type": "display_data", "metadata": {}, "data": {kinds[key]: data[key] for key in data}}


PROSE = {"cell_type": "markdown", "metadata": {}, "source": ["Look at the sign."]}
STDOUT = {"output_type": "stream", "name": "stdout", "text": ["4\n"]}
ERROR = {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["ValueError: no"]}
GOOD = {
    "cells": [
        PROSE,
        code(1, "print(2 + 2)", STDOUT),
        PROSE,
        code(2, "show()", display(image_png="iVBORw0", text_plain=["A line that rises and then falls"])),
        PROSE,
        code(3, "raise ValueError('no')", ERROR, tags=["raises-exception"]),
    ]
}


def test_a_good_notebook_has_no_fault():
    assert not [fault for guard in GUARDS for fault in guard(GOOD)]


def test_what_is_no_code_makes_no_cell_long():
    source = ["    ### BEGIN SOLUTION\n", *["    x = 1\n"] * LINES, "\n", "    ### END SOLUTION"]
    assert not list(short({"cells": [code(1, "x = 1"), code(2, "".join(source))]}))


def planted(n, **changes):
    """Plant `changes` in cell n of the good notebook."""
    return lambda cells: cells[n].update(changes)


PLANTED = {
    "stripped": (run_in_order, planted(1, execution_count=None, outputs=[])),
    "run out of order": (run_in_order, planted(3, execution_count=7)),
    "tagged, but did not raise": (raises_where_tagged, planted(5, outputs=[STDOUT])),
    "raised, but not tagged": (raises_where_tagged, planted(5, metadata={})),
    "stderr": (no_stderr, planted(1, outputs=[STDOUT, {**STDOUT, "name": "stderr"}])),
    "figure as matplotlib names it": (
        figures_are_described,
        planted(3, outputs=[display(image_png="iVBORw0", text_plain="<Figure size 640x480 with 1 Axes>")]),
    ),
    "figure without a text": (figures_are_described, planted(3, outputs=[display(image_png="iVBORw0")])),
    "figure as SVG": (
        figures_show_where_nothing_is_trusted,
        planted(3, outputs=[display(image_png="iVBORw0", image_svg="<svg></svg>", text_plain="A line that rises")]),
    ),
    "figure with a word": (
        figures_are_described,
        planted(3, outputs=[display(image_png="iVBORw0", text_plain="plot")]),
    ),
    "long cell": (short, planted(3, source=["x = 1\n"] * (LINES + 1))),
    "long beginning": (short, planted(1, source=["import x\n"] * (BEGINNING + 1))),
    "long folded cell": (short, planted(3, source=["x = 1\n"] * (LINES + 1), metadata={"tags": ["hide-input"]})),
    "long solution": (short, planted(3, source=["    ### BEGIN SOLUTION\n", *["    x = 1\n"] * (LINES + 1)])),
    "no prose between": (prose_between, lambda cells: cells.pop(2)),
    "nothing compared": (something_is_compared, lambda cells: cells.__delitem__(slice(1, None))),
    "only live output": (
        something_is_compared,
        lambda cells: [c.update(metadata={"tags": ["nbval-ignore-output"]}) for c in cells[1::2]],
    ),
    "skipped by a tag": (nothing_is_skipped, planted(1, metadata={"tags": ["nbval-skip"]})),
    "not compared by a comment": (nothing_is_skipped, planted(1, source=["# NBVAL_IGNORE_OUTPUT\n", "print(4)"])),
    "source in one string": (sources_are_lists, planted(0, source="Look at the sign.")),
    "path of one machine": (
        no_place_of_one_machine,
        planted(1, outputs=[{**STDOUT, "text": ["/home/ada/x.py\n"]}]),
    ),
    "address of an object": (
        no_address_of_one_run,
        planted(1, outputs=[{**STDOUT, "text": ["<torch._C.Generator at 0x7fbb615a47f0>\n"]}]),
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault):
    guard, plant = PLANTED[fault]
    book = copy.deepcopy(GOOD)
    plant(book["cells"])
    assert list(guard(book))


def test_every_guard_has_a_planted_fault():
    assert {guard for guard, _ in PLANTED.values()} == set(GUARDS)


def test_chapters_are_all_notebooks_but_student_sheets_and_checkpoints(tmp_path, monkeypatch):
    for name in ("01.ipynb", "exercises/a.ipynb", "exercises/student/a.ipynb", ".ipynb_checkpoints/01.ipynb", "a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(refresh, "NOTEBOOKS", tmp_path)
    assert refresh.notebooks() == [tmp_path / "01.ipynb", tmp_path / "exercises/a.ipynb"]
