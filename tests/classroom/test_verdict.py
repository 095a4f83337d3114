"""The words of a verdict, without a sandbox."""

import numpy as np
import pytest

from subnorm_classroom.grading.assignments import draw
from subnorm_classroom.grading.canary import CANARY
from subnorm_classroom.grading.cells import Cell
from subnorm_classroom.grading.verdict import begins, near_name, verdict, why_missing
from subnorm_lab.checks.collect import Case, Outcome


@pytest.mark.parametrize(
    ("error", "told"), [("ModuleNotFoundError", True), ("ImportError", False), ("ValueError", False)]
)
def test_a_module_is_missing_only_if_the_error_says_so(error, told):
    cells = [Cell(1, (), "import einops\ndef canary(x):\n    return 2 * x")]
    diagnosis, says = verdict(CANARY, draw(CANARY, 1).cases, [Outcome(error=error, about="einops")], cells)
    assert diagnosis == "error"
    assert ("there is no module einops here" in says) == told


def test_an_error_is_that_of_its_own_case():
    cases = [Case(name, (np.ones(3),)) for name in ("a batch", "a batch, twice")]
    outcomes = [Outcome(2 * np.ones(3)), Outcome(error="KeyError")]
    assert verdict(CANARY, cases, outcomes) == ("error", "on a batch, twice, it raises KeyError.")


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("\n  # My answer\ndef f(x):\n    return x", "`# My answer`"),
        ("x" * 100, f"`{'x' * 60}…`"),
        ("print(`1`, '\u202e\ud800\x1b[0m')", "`print(1, '[0m')`"),
        (" \n", "``"),
    ],
)
def test_a_cell_is_called_by_its_first_line(source, shown):
    assert begins(Cell(5, (), source)) == shown


@pytest.mark.parametrize(
    ("source", "near"),
    [
        ("def layernorm(x): ...", "layernorm"),
        ("LayerNorm = None", "LayerNorm"),
        ("async def layer_nrom(x): ...", "layer_nrom"),
        ("class Layer_norm: ...", "Layer_norm"),
        ("def make_layer_norm(x): ...", ""),  # another exercise
        ("def norm(x): ...\nx == 3\n    layernorm = 3", ""),
        ("# layernorm", ""),
    ],
)
def test_a_near_name_is_proposed(source, near):
    cells = [Cell(1, (), "import numpy as np"), Cell(2, (), source)]
    assert near_name("layer_norm", cells) == near
    diagnosis, says = why_missing("layer_norm", "missing", cells, {}, {})
    assert diagnosis == "missing"
    assert says.endswith(f"; rename `{near}` if that is your answer." if near else "no function of this name.")


def test_no_name_is_proposed_where_the_right_one_is_used():
    cells = [Cell(1, (), "def layer_norm(x): ..."), Cell(2, (), "layernorm = layer_norm\ndel layer_norm")]
    assert "rename" not in why_missing("layer_norm", "missing", cells, {}, {})[1]
