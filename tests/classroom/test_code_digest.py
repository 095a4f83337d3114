"""A change of the grading code forces regrading: the digest covers every file that decides a mark."""

import shutil
import subprocess
import sys
from pathlib import Path

from subnorm.classroom import grade, sandbox

LOADED = """
import subnorm.classroom.grade, sys
print(*(module.__file__ for name, module in sys.modules.items() if name.split(".")[0] == "subnorm"), sep="\\n")
"""


def test_a_change_in_any_file_that_decides_marks_changes_the_digest(tmp_path, monkeypatch):
    package = sandbox.PACKAGE
    done = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=package.parent, capture_output=True, text=True, check=True
    )
    deciding = {Path(line).relative_to(package) for line in done.stdout.splitlines()} | set(map(Path, sandbox.INSIDE))
    assert {Path("__init__.py"), Path("checks/ex02/layer_norm.py"), Path("classroom/child.py")} <= deciding
    copy = tmp_path / "subnorm"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setitem(grade.code_digest.__globals__, "PACKAGE", copy)
    before = grade.code_digest()
    unseen = []
    for path in sorted(deciding):
        text = (copy / path).read_text("utf-8")
        (copy / path).write_text(f"{text}# one more line\n", "utf-8")
        if grade.code_digest() == before:
            unseen.append(str(path))
        (copy / path).write_text(text, "utf-8")
    assert unseen == []
