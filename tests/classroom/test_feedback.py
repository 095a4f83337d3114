"""The feedback to a student: the same as the check in class, without any text or number chosen by the answer."""

import json

import pytest
from classroom.hand_ins import LAYER_NORM, MEAN_SQUARE, PATIENT, SET, SETUP, cell, grade_class, notebook, sheet
from helpers.parts import need

from subnorm_classroom.grading import grade
from subnorm_lab.checks.collect import UNSUPPORTED

BODY = "def layer_norm(x, gamma, beta, eps):\n    "
CHOSEN_LINE = """def layer_norm(x, gamma, beta, eps):
    lines = "\\n" * int(100 + 300 * abs(x.flat[0])) + "raise ValueError"
    exec(compile(lines, layer_norm.__code__.co_filename, "exec"))
"""
CHOSEN_MODULE = """def layer_norm(x, gamma, beta, eps):
    raise ModuleNotFoundError(name="m" + str(x.flat[0]).replace(".", "_").replace("-", "_"))
"""
RUNS = {  # more of them in test_sandbox.py, without a sandbox
    "a feature of the future": LAYER_NORM.replace("x, gamma", "x: Nobody, gamma"),
    "the shell object": "from IPython import get_ipython as get\nget().run_line_magic('autoreload', '2')\n"
    f"get_ipython().system('ls')\n{LAYER_NORM}",
}
SAYS = {  # the cell of layer_norm, its diagnosis, and the message
    "no return": (BODY + "y = x", "not_done", "not done yet. Your function returns None: if its body is"),
    "generator": (BODY + "yield x", "error", f"on a (3, 8) batch, {UNSUPPORTED['generator']}."),
    "class": (BODY + "return dict", "error", f"on a (3, 8) batch, {UNSUPPORTED['class']}."),
    "set": (BODY + "return {1, 2}", "error", f"on a (3, 8) batch, {UNSUPPORTED['set']}."),
    "bfloat16": (BODY + "import torch; return torch.ones(2).bfloat16()", "error", UNSUPPORTED["bfloat16"]),
    "module inside": (BODY + "import no_such", "error", "ModuleNotFoundError in line 2 of its cell: there is no"),
    "module in its cell": (f"import no_such.part as p\n{LAYER_NORM}", "cell_error", "it, which begins with `import "
                           "no_such.part as p`, raises ModuleNotFoundError: there is no module no_such here."),
    "a near name": (LAYER_NORM.replace("layer_norm", "LayerNorm"), "missing", "there is no function of this name; "
                    "rename `LayerNorm` if that is your answer."),
    "the course": ("from subnorm.numpy import layer_norm", "cell_error", "subnorm is not available when answers"),
    "the course, as a name": (f"from subnorm import numpy as sn\n{LAYER_NORM}", "cell_error", "is not available"),
    "the course, inside": (BODY + "from subnorm import numpy as sn", "error", ": subnorm is not available when"),
    "a line": (BODY + "return x @ 'a'", "error", " in line 2 of its cell."),
    "a chosen line": (CHOSEN_LINE, "error", "on a (3, 8) batch, it raises ValueError."),
    "a chosen module": (CHOSEN_MODULE, "error", "on a (3, 8) batch, it raises ModuleNotFoundError in line 2 of its "
                        "cell."),
    "a name that failed": (BODY + "return no_such.sum(x)", "error", "The cell that begins with `import numpy as np` "
                           "failed: there is no module no_such here."),
}  # fmt: skip


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    need("bwrap")
    folder, out = tmp_path_factory.mktemp("class"), tmp_path_factory.mktemp("desk") / "grades"
    future = cell("from __future__ import annotations")
    for name, source in RUNS.items():
        (folder / f"{name}.ipynb").write_bytes(notebook(cell(SETUP, "setup"), future, source, MEAN_SQUARE))
    for name, (source, *_) in SAYS.items():
        (folder / f"{name}.ipynb").write_bytes(sheet(source))
    setup = cell(f"{SETUP}\nimport no_such", "setup")
    (folder / "a name that failed.ipynb").write_bytes(notebook(setup, SAYS["a name that failed"][0], MEAN_SQUARE))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(grade.SETS, "quick", SET)
        assert grade_class("quick", folder, out, seed=5, limits=PATIENT) == 0
    return {path.stem: json.loads(path.read_text("utf-8"))["results"] for path in (out / "students").glob("*.json")}


@pytest.mark.parametrize("name", RUNS)
def test_what_runs_in_jupyter_runs_in_the_grader(name, graded):
    assert [result["diagnosis"] for result in graded[name]] == ["right", "right"], graded[name]


@pytest.mark.parametrize("name", SAYS)
def test_feedback_says_what_the_check_says_and_nothing_that_the_answer_chose(name, graded):
    _, diagnosis, says = SAYS[name]
    found = graded[name][0]
    assert found["diagnosis"] == diagnosis
    assert says in found["says"]
    if says.endswith(".") and says.startswith("on"):
        assert found["says"] == says
