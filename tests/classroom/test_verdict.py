"""The words of a verdict, without a sandbox."""

import numpy as np
import pytest

from subnorm_classroom.grading.assignments import draw
from subnorm_classroom.grading.canary import CANARY
from subnorm_classroom.grading.cells import Cell
from subnorm_classroom.grading.verdict import verdict
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
