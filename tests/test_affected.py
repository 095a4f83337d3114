"""tools/affected.py, on a small repository."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools import affected, course

FILES = {
    "pyproject.toml": "",
    "conftest.py": "",
    "_toc.yml": "",
    "README.md": "",
    "subnorm/__init__.py": '"""Read `subnorm.torch` first."""',
    "subnorm/numpy/__init__.py": "from subnorm.numpy.norms import layer_norm\n",
    "subnorm/numpy/norms.py": "def layer_norm(): ...\n",
    "subnorm/torch.py": "def layer_norm(): ...\n",
    "subnorm/grade.py": 'COMMAND = ["-m", "subnorm.child"]\n',
    "subnorm/child.py": "",
    "subnorm/experiments/__init__.py": "",
    "subnorm/experiments/gap.py": "",
    "subnorm/experiments/records/gap.json": "{}",
    "subnorm/checks/__init__.py": "import pkgutil\n",
    "subnorm/checks/ex01/norm.py": "",
    "book/page.md": "",
    "book/subnorm_book/__init__.py": "",
    "book/subnorm_book/claims.py": "",
    "tools/serve.py": "",
    "tests/helpers/__init__.py": "",
    "tests/helpers/visit.py": "",
    "tests/book/test_claims.py": "from subnorm_book import claims\n",
    "tests/browser/conftest.py": "from helpers import visit\n",
    "tests/browser/test_keyboard.py": "",
    "tests/browser/test_every_page_on_a_desk.py": "",
    "tests/browser/test_every_page_on_a_phone.py": "",
    "tests/package/test_norms.py": "import subnorm.numpy\n",
    "tests/package/test_torch.py": "def test_it():\n    from subnorm import torch\n",
    "tests/test_grade.py": "from subnorm import grade\n",
    "tests/test_bank.py": "from subnorm import checks\n",
    "tests/test_gap.py": "import subnorm.experiments.gap as gap\n",
    "tests/test_project.py": 'PATH = "README.md"\n',
}
NOTEBOOK = {"cells": [{"cell_type": "code", "source": ["%matplotlib inline\n", "from subnorm.experiments import gap"]}]}
LOADED = """
import runpy, sys
sys.path[:0] = ["tests", "tests/checks", "book", "."]
runpy.run_path(sys.argv[1])
print(*(module.__file__ for name, module in sys.modules.items() if name.split(".")[0] == "subnorm"), sep="\\n")
"""
PAGES = ["tests/book", "tests/browser", "tests/notebooks"]
VISITS = ["tests/browser/test_every_page_on_a_desk.py", "tests/browser/test_every_page_on_a_phone.py"]
TEXTS = ["tests/book", *VISITS]


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "01-gap.ipynb").write_text(json.dumps(NOTEBOOK), "utf-8")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "tests"),
    {
        "README.md": ["tests/test_project.py"],  # a test that names it
        "tools/serve.py": [],
        "subnorm/numpy/norms.py": [*TEXTS, "tests/package/test_norms.py"],  # through the package
        "subnorm/torch.py": [*TEXTS, "tests/package/test_torch.py"],  # imported in a function; a docstring is no use
        "subnorm/child.py": [*TEXTS, "tests/test_grade.py"],  # a process of its own
        "subnorm/experiments/gap.py": ["notebooks/01-gap.ipynb", *TEXTS, "tests/test_gap.py"],
        "subnorm/experiments/records/gap.json": ["notebooks/01-gap.ipynb", "tests/test_gap.py"],
        "subnorm/checks/ex01/norm.py": [*TEXTS, "tests/test_bank.py"],  # found by the package, imported by no name
        "book/page.md": PAGES,
        "notebooks/01-gap.ipynb": ["notebooks/01-gap.ipynb", *PAGES],
        "book/subnorm_book/claims.py": PAGES,
        "tests/package/test_norms.py": ["tests/package/test_norms.py"],
        "tests/helpers/visit.py": [*VISITS, "tests/browser/test_keyboard.py"],  # conftest
        "pyproject.toml": None,
        "conftest.py": None,
    }.items(),
)
def test_a_change_reaches(root, file, tests):
    assert affected.reached([file], root) == tests


def test_a_change_of_the_package_itself_reaches_all_who_import_it(root):
    found = affected.reached(["subnorm/__init__.py"], root)
    assert {"tests/package/test_torch.py", "tests/test_grade.py", "notebooks/01-gap.ipynb"} <= set(found)


def test_changed_new_and_deleted_files_are_changes(root):
    assert affected.changed(root) == []
    (root / "README.md").write_text("more", "utf-8")
    (root / "tests" / "test é.py").write_text("", "utf-8")
    (root / "subnorm" / "child.py").unlink()
    assert affected.changed(root) == ["README.md", "subnorm/child.py", "tests/test é.py"]
    assert affected.reached(["subnorm/child.py"], root) == [*TEXTS, "tests/test_grade.py"]


def test_a_folder_without_git_is_told(tmp_path):
    with pytest.raises(SystemExit, match="a clone"):
        affected.changed(tmp_path)


def test_no_module_that_a_test_loads_is_overlooked():
    """For some of our own tests: a change of any package module that Python loads affects the test."""
    needed_by = affected.users(course.ROOT)
    for test in ("tests/checks/test_bank.py", "tests/experiments/test_parity.py", "tests/timing/test_traffic.py"):
        loaded = subprocess.run([sys.executable, "-c", LOADED, test], cwd=course.ROOT, capture_output=True, check=True)
        files = [Path(line).relative_to(course.ROOT).as_posix() for line in loaded.stdout.decode("utf-8").splitlines()]
        assert len(files) > 5
        assert [file for file in files if test not in affected.closure([file], needed_by)] == []
