"""nbgrader releases and grades the sheets, with the commands that a teacher would type."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from helpers import parts

from subnorm_classroom.sheets import packing, student_sheet
from subnorm_lab import checks

# a sheet without PyTorch, which would take time to import in the kernels of three students
SET = next(name for name in checks.SETS if "import torch" not in student_sheet.source_of(name).read_text("utf-8"))
POINTS = [exercise.level for exercise in checks.SETS[SET]]


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The sheet released by nbgrader, (points, maximum) of three students, and the feedback to two before."""
    program = Path(parts.need("nbgrader"))
    folder = tmp_path_factory.mktemp("course")
    source = student_sheet.read_notebook(student_sheet.source_of(SET))
    name = student_sheet.source_of(SET).name
    packing.write_nbgrader(folder, SET, name, student_sheet.as_notebook(student_sheet.for_nbgrader(source, SET)))
    env = {key: value for key, value in os.environ.items() if key != "SUBNORM_CHECKS"}
    env |= {
        "PATH": f"{program.parent}{os.pathsep}{env['PATH']}",  # nbgrader calls alembic by its name
        "PYTHONPATH": str(student_sheet.ROOT),
        **{key: str(folder / "home") for key in ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")},
    }

    def call(*words):
        done = subprocess.run([program, *words], cwd=folder, env=env, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def hand_in(student, book):
        path = folder / "submitted" / student / SET / name
        path.parent.mkdir(parents=True)
        path.write_text(student_sheet.as_notebook(book), "utf-8")

    call("generate_assignment", SET)
    sheet = student_sheet.read_notebook(folder / "release" / SET / name)
    one = json.loads(json.dumps(sheet))  # the first exercise is done; the check of the second one is deleted
    one["cells"] = [cell for cell in one["cells"] if cell["id"] != f"{SET}-2-check"]
    cell_of(one, "1-answer")["source"] = cell_of(source, "1-answer")["source"]
    hand_in("empty", sheet)
    hand_in("one", one)
    hand_in("solved", source)
    said = {student: call("validate", f"submitted/{student}/{SET}/{name}") for student in ("empty", "solved")}
    call("autograde", SET)
    call("export", "--to", "grades.csv")
    lines = (folder / "grades.csv").read_text("utf-8").splitlines()
    columns = lines[0].split(",")
    rows = [dict(zip(columns, line.split(","), strict=True)) for line in lines[1:]]
    scores = {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in rows}
    return sheet, scores, said


def cell_of(book, part):
    return next(cell for cell in book["cells"] if cell["id"] == f"{SET}-{part}")


def test_nbgrader_releases_the_same_sheet(course):
    sheet = course[0]
    ours = student_sheet.student(student_sheet.read_notebook(student_sheet.source_of(SET)), SET)
    assert [(cell["id"], cell["source"]) for cell in sheet["cells"]] == [
        (cell["id"], re.sub(r"\[([^]]+)\]\(\.\./[^)]+\)", r"*\1*", cell["source"])) for cell in ours["cells"]
    ]  # nbgrader hands out no other notebook


def test_nbgrader_validates_what_is_right(course):
    assert "Success! Your notebook passes all the tests." in course[2]["solved"]
    assert f"VALIDATION FAILED ON {len(POINTS)} CELL(S)" in course[2]["empty"]


def test_nbgrader_gives_the_points_of_what_is_right(course):
    assert course[1] == {
        "empty": (0, sum(POINTS)),
        "one": (POINTS[0], sum(POINTS)),
        "solved": (sum(POINTS), sum(POINTS)),
    }
