"""An asserted comparison names both of its tolerances.

NumPy and PyTorch add an absolute tolerance of 1e-8 to the relative one that a cell names, and a relative one of 1e-5 to
the absolute one. So `np.isclose(a, b, rtol=1e-12)` passes numbers that agree in eight digits.
"""

import ast
import json
from pathlib import Path

import pytest

from tools import checkout
from tools.refresh import notebooks

MODULES = sorted(checkout.ROOT.glob("subnorm_lab/chapters/*.py"))


def loose(cell: str) -> list[str]:
    """The asserted comparisons of a cell that leave a tolerance to its default."""
    return [
        ast.unparse(call)
        for statement in ast.walk(ast.parse(cell))
        if isinstance(statement, ast.Assert)
        for call in ast.walk(statement)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("isclose", "allclose")
        and not {"rtol", "atol"} <= {keyword.arg for keyword in call.keywords}
    ]


@pytest.mark.parametrize("path", [*notebooks(), *MODULES], ids=lambda path: path.stem)
def test_no_tolerance_is_left_to_its_default(path: Path) -> None:
    text = path.read_text("utf-8")
    cells = json.loads(text)["cells"] if path.suffix == ".ipynb" else [{"cell_type": "code", "source": [text]}]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert [call for cell in code if not cell.startswith("%") for call in loose(cell)] == []


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("assert np.isclose(a, b)", 1),
        ("assert np.allclose(a, b, rtol=1e-12)", 1),
        ("for a in rows:\n    assert torch.allclose(a, b, atol=1e-12)", 1),
        ("assert (a > 0).all() and not np.allclose(a, b)", 1),
        ("assert np.allclose(a, b, rtol=1e-12, atol=0)", 0),
        ("np.testing.assert_allclose(a, b)", 0),  # 1e-7, and no absolute one
        ("print(np.allclose(a, b))", 0),
    ],
)
def test_a_planted_default_is_found(cell: str, found: int) -> None:
    assert len(loose(cell)) == found
