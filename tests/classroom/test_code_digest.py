"""A change of the grading code forces regrading: the digest covers every file that decides a mark, and no figure."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from subnorm_classroom.grading import sandbox, versions

LOADED = """
import subnorm_classroom.grading.grade, sys
print(*(module.__file__ for name, module in sys.modules.items() if name.split(".")[0] in PACKAGES), sep="\\n")
"""


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A copy of the packages, of which `code_digest` takes the digest."""
    for name in sandbox.PACKAGES:
        shutil.copytree(sandbox.COURSE / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setitem(versions.code_digest.__globals__, "COURSE", tmp_path)
    return tmp_path


def changes_digest(copy, path):
    """Whether one more line in a file changes the digest."""
    before, text = versions.code_digest(), (copy / path).read_text("utf-8")
    (copy / path).write_text(f"{text}# one more line\n", "utf-8")
    after = versions.code_digest()
    (copy / path).write_text(text, "utf-8")
    return before != after


def test_a_change_in_any_file_that_decides_marks_changes_the_digest(copy):
    code = LOADED.replace("PACKAGES", repr(sandbox.PACKAGES))
    done = subprocess.run([sys.executable, "-c", code], cwd=sandbox.COURSE, capture_output=True, text=True, check=True)
    deciding = {Path(line).relative_to(sandbox.COURSE) for line in done.stdout.splitlines()}
    deciding |= set(map(Path, sandbox.INSIDE))
    for name in (
        "subnorm/numpy/norms.py",
        "subnorm_lab/checks/ex02/layer_norm.py",
        "subnorm_classroom/grading/child.py",
    ):
        assert Path(name) in deciding
    assert [str(path) for path in sorted(deciding) if not changes_digest(copy, path)] == []


@pytest.mark.parametrize("name", ["live.py", "figures.py", "museum/gains.py", "experiments/drift.py"])
def test_what_no_mark_depends_on_changes_no_digest(name, copy):
    assert not changes_digest(copy, Path("subnorm_lab", name))
