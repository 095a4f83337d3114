"""course.py new: what it writes is whole, and goes where the next reader looks for it."""

import importlib.util
import json
import shutil

import pytest
import yaml

from subnorm_lab.checks import SETS
from tools import checkout, new

FILES = [
    "_toc.yml",
    "book/api/torch.md",
    "notebooks/exercises/ex01-residuals.ipynb",
    "subnorm/torch/placements.py",
    "subnorm_lab/checks/ex01/__init__.py",
    "tests/package/test_placements.py",
]


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A checkout of the files to which it adds."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(checkout.ROOT / name, tmp_path / name)
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    monkeypatch.setattr(new.refresh, "NOTEBOOKS", tmp_path / "notebooks")
    return tmp_path


def module(path):
    spec = importlib.util.spec_from_file_location("written", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_a_chapter_is_a_notebook_with_outputs_and_a_draft(copy):
    path, _toc = new.begin_chapter("10-my-chapter")
    parts = yaml.safe_load((copy / "_toc.yml").read_text("utf-8"))["parts"]
    assert parts[0]["chapters"][-1] == {"file": "notebooks/10-my-chapter", "title": "10 My chapter"}
    _, code = json.loads(path.read_text("utf-8"))["cells"]
    assert (code["execution_count"], len(code["outputs"])) == (1, 1)
    assert (checkout.notebooks(), checkout.chapters()) == ([path], [])
    path.write_text(path.read_text("utf-8").replace(checkout.DRAFT, ""), "utf-8")
    assert checkout.chapters() == [path]


def test_a_placement_is_a_class_a_row_a_formula_and_an_entry(copy):
    new.begin_placement("MyPlacement")
    build = module(copy / "subnorm/torch/placements.py").STACK_PLACEMENTS["my_placement"]
    assert build(8, 2).__class__.__name__ == "MyPlacement"
    assert callable(module(copy / "tests/package/test_placements.py").FORMULAS["my_placement"])
    assert ".. autoclass:: MyPlacement\n" in (copy / "book/api/torch.md").read_text("utf-8")


def test_an_exercise_is_the_last_of_its_sheet(copy, monkeypatch):
    ran = []
    monkeypatch.setattr(new.subprocess, "run", lambda command, **_: ran.append(command[1:]))
    path, sheet = new.begin_exercise("ex01/my_answer")
    exercise = module(path).my_answer
    assert (exercise.name, exercise.number) == ("my_answer", len(SETS["ex01"]) + 1)
    assert exercise(exercise.reference)
    assert exercise(exercise.mistakes[0].answer).tag == exercise.mistakes[0].tag
    assert ran == [["-m", "subnorm_classroom", "draft", "ex01"]]
    assert sheet == copy / "notebooks/exercises/ex01-residuals.ipynb"


@pytest.mark.parametrize(
    ("begin", "name", "message"),
    [
        (new.begin_chapter, "My chapter", "no name for this; one is 10-my-chapter"),
        (new.begin_exercise, "my_answer", "no name for this; one is ex01/my_answer"),
        (new.begin_exercise, "ex99/my_answer", "no sheet ex99; the sheets are ex01"),
        (new.begin_exercise, "ex01/__init__", "no name for this"),
        (new.begin_placement, "my_placement", "no name for this; one is MyPlacement"),
        (new.begin_placement, "Sandwich", "has a class Sandwich"),
    ],
)
def test_a_name_that_does_not_fit_changes_nothing(copy, begin, name, message):
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    with pytest.raises(SystemExit, match=message):
        begin(name)
    assert before == {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}


def test_what_exists_is_not_replaced(copy):
    (copy / "subnorm_lab/checks/ex01/mine.py").write_text("mine", "utf-8")
    with pytest.raises(SystemExit, match=r"ex01/mine\.py exists"):
        new.begin_exercise("ex01/mine")
