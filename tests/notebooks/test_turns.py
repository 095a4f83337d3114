"""Every chapter has numbers to turn, what it promises of them is tested, and no number breaks a later cell."""

import ast
import re

import matplotlib.pyplot as plt
import pytest
import torch
from helpers import turns

from tools.checkout import ROOT, chapters

CHAPTER, DEEP_DIVE = 5, 2  # turns, at least
TESTED = {
    tuple(one.value for one in call.args)
    for path in (ROOT / "tests" / "notebooks" / "turns").glob("*.py")
    for call in ast.walk(ast.parse(path.read_text("utf-8")))
    if isinstance(call, ast.Call) and getattr(call.func, "id", None) == "turned"
}


def faults(cells, stem, wanted):
    """What is wrong with the turns of a notebook, given all of its cells."""
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    found = [cell for cell in code if turns.turn_of(cell)]
    if len(found) < wanted:
        yield f"{len(found)} turns, {wanted} are wanted"
    if len({turns.turn_of(cell) for cell in found}) < len(found):
        yield "two turns have one name"
    for cell in found:
        name, text = turns.turn_of(cell), turns.source(cell)
        lines = turns.LINE.findall(text)
        if len(lines) != 1:
            yield f"{name}: one line like `depth = 32  # try 8, 128`, not {len(lines)}"
            continue
        if not cell["outputs"]:
            yield f"{name}: the cell shows nothing"
        if (stem, name) not in TESTED:
            yield f"{name}: no test in tests/notebooks/turns/ has turned({stem!r}, {name!r})"
        before = cells[cells.index(cell) - 1]
        said = turns.source(before).split("\n\n")[-1] if before["cell_type"] == "markdown" else ""
        if not said.startswith("**Try:**") or f"`{lines[0][0]}`" not in said:
            yield f"{name}: the paragraph above begins with **Try:** and names `{lines[0][0]}`"
        yield from (f"{name}: {fault}" for fault in clashes(code, code.index(cell)))


def clashes(code, k):
    """What breaks if a reader runs all cells, goes back to turn k, and then runs another cell."""
    turned, wanted = turns.bound_and_read(code[k])
    earlier = set().union(*(turns.bound_and_read(cell)[0] for cell in code[:k]))
    if spoiled := turned & earlier:
        yield f"it binds {sorted(spoiled)}, which an earlier cell has bound"
    for cell in code[k + 1 :]:
        binds, reads = turns.bound_and_read(cell)
        if spoiled := turned & reads:
            yield f"a later cell reads {sorted(spoiled)}, which a reader has turned"
        if spoiled := wanted & binds:
            yield f"a later cell binds {sorted(spoiled)} anew, which the turn reads"


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_the_turns_of_a_notebook(path):
    wanted = CHAPTER if re.match(r"\d\d-", path.name) else DEEP_DIVE
    assert list(faults(turns.cells(path), path.stem, wanted)) == []


def text(source):
    return {"cell_type": "markdown", "source": [source], "metadata": {}}


def code(source, *tags):
    return {"cell_type": "code", "source": [source], "metadata": {"tags": [*tags]}, "outputs": ["shown"]}


STEM, NAME = min(TESTED)
ASKS = text("So it is.\n\n**Try:** set `n` to 3. Does it grow?")
GOOD = [code("import numpy as np"), ASKS, code("n = 2  # try 3, 4\nprint(np.ones(n))", f"turn:{NAME}"), code("np.e")]


@pytest.mark.parametrize(
    ("at", "cell", "said"),
    [
        (3, code("n = 1\nprint(n)"), None),
        (2, code("print(np.ones(2))", f"turn:{NAME}"), "one line"),
        (2, code("n = 2  # try 3\nm = 3  # try 4", f"turn:{NAME}"), "one line"),
        (2, GOOD[2] | {"outputs": []}, "shows nothing"),
        (2, code("n = 2  # try 3", "turn:unknown"), "no test"),
        (1, text("**Try:** set it to 3."), "begins with **Try:**"),
        (1, text("**Try:** set `n` to 3.\n\nIt grows."), "begins with **Try:**"),
        (3, code("def f():\n    return n"), "a later cell reads ['n']"),
        (3, code("print(n)\nn = 2"), "a later cell reads ['n']"),
        (3, code("np = 3"), "binds ['np'] anew"),
        (0, code("import numpy as np\nn = 7"), "which an earlier cell has bound"),
    ],
)
def test_a_planted_fault_is_found(at, cell, said):
    assert list(faults(GOOD, STEM, 1)) == []
    found = list(faults([cell if k == at else one for k, one in enumerate(GOOD)], STEM, 1))
    assert (said is None and found == []) or (len(found) == 1 and said in found[0])


def test_a_cell_that_reads_a_turned_name_is_found_behind_one_that_binds_it():
    found = list(faults([*GOOD[:3], code("n = 5"), code("print(n)")], STEM, 1))
    assert found == [f"{NAME}: a later cell reads ['n'], which a reader has turned"]


def test_too_few_and_two_of_one_name_are_found():
    assert list(faults(GOOD, STEM, 2)) == ["1 turns, 2 are wanted"]
    twice = [*GOOD[:3], ASKS, GOOD[2]]
    assert "two turns have one name" in list(faults(twice, STEM, 2))


def test_a_turn_runs_what_it_needs_with_every_value():
    cells = [code("a = 1"), code("def f(x):\n    return a + x"), code("b = 9"), code("n = 2  # try 3, (4, 5)\nf(n)")]
    assert turns.needed(cells, 3) == cells[:2]
    assert turns.values(turns.source(cells[3])) == ["2", "3", "(4, 5)"]


def test_what_a_cell_changes_for_the_whole_process_is_put_back():
    before = torch.get_default_dtype(), torch.get_num_threads(), plt.rcParams["font.size"]
    with turns.kernel() as shell:
        turns.run(shell, "import torch, matplotlib\ntorch.set_default_dtype(torch.float64)\ntorch.set_num_threads(2)")
        turns.run(shell, "matplotlib.rcParams['font.size'] = 99")
        assert (torch.get_default_dtype(), torch.get_num_threads()) == (torch.float64, 2)
    assert (torch.get_default_dtype(), torch.get_num_threads(), plt.rcParams["font.size"]) == before
