"""From source to sheet: each rule on a planted fault, and the real sheets."""

import copy
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import replace as replaced
from datetime import datetime
from pathlib import Path

import nbformat
import pytest

from subnorm_classroom import __main__ as command_line
from subnorm_classroom.arguments import moment
from subnorm_classroom.sheets import draft, packing, plain, release, student_sheet
from subnorm_classroom.sheets.student_sheet import ROOT, SheetError, student
from subnorm_lab import checks
from subnorm_lab.checks.exercise import Exercise

DOUBLE = '''def double(x):
    """Twice x."""
    ### BEGIN SOLUTION
    twice_as_large = x + x
    return twice_as_large
    ### END SOLUTION'''


def an_exercise(name, level):
    known = checks.layer_norm
    return Exercise(
        name, level, 10, "03-layer-normalization", f"write {name}", known.reference, known.cases, known.mistakes
    )


def cell(kind, name, source, tags=(), nbgrader=None):
    made = {"cell_type": kind, "id": name, "metadata": {"tags": list(tags)}, "source": source}
    if kind == "code":
        made |= {"execution_count": 1, "outputs": [{"output_type": "stream", "name": "stdout", "text": "seen\n"}]}
        made["metadata"]["collapsed"] = False
    if nbgrader is not None:
        made["metadata"]["nbgrader"] = {"schema_version": 3, "task": False, "grade_id": name, **nbgrader}
    return made


def exercise_cells(k, name, level, answer):
    task = f"""## {k} · Write {name}

Level {level} · 10 minutes · goes with [Layer normalization](../03-layer-normalization.ipynb): write {name}.

The LayerNorm of x, with eps = 0.5<!-- chosen -->.

<details><summary>Hint</summary>

Add it.

</details>"""
    solution = "<details><summary>Solution</summary>\n\nx plus x.\n\n</details>"
    ids = [f"ex90-{k}-{part}" for part in ("task", "answer", "check", "solution")]
    of_answer = {"solution": True, "grade": False, "locked": False}
    of_check = {"solution": False, "grade": True, "locked": True, "points": level}
    return [
        cell("markdown", ids[0], task),
        cell("code", ids[1], answer, ["answer", "hide-input"], of_answer),
        cell("code", ids[2], f"checks.{name}({name})", ["check"], of_check),
        cell("markdown", ids[3], solution, ["solution-only"]),
    ]


@pytest.fixture
def source(monkeypatch):
    monkeypatch.setitem(checks.SETS, "ex90", [an_exercise("double", 1), an_exercise("triple", 2)])
    triple = DOUBLE.replace("double", "triple").replace("twice_as_large", "three_times_as_large")
    cells = [
        cell("markdown", "top", "# A small sheet"),
        cell("code", "setup", "from subnorm_lab import checks", ["setup"]),
        *exercise_cells(1, "double", 1, DOUBLE),
        *exercise_cells(2, "triple", 2, triple),
        cell("code", "figure", "double(2)", ["solution-only"]),
    ]
    return {"cells": cells, "metadata": {"vscode": 1}, "nbformat": 4, "nbformat_minor": 5}


def named(book, name):
    return next(cell for cell in book["cells"] if cell["id"] == name)


@pytest.fixture
def checkout(tmp_path, monkeypatch, source):
    """A small checkout with one source notebook."""
    folder = tmp_path / "notebooks" / "exercises"
    folder.mkdir(parents=True)
    for name in ("pyproject.toml", "constraints.txt", "LICENSE", "LICENSE-text"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copy(ROOT / "notebooks" / "03-layer-normalization.ipynb", tmp_path / "notebooks")
    shutil.copytree(ROOT / "subnorm", tmp_path / "subnorm", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "ex90-small.ipynb").write_text(json.dumps(source), "utf-8")
    for module in (release, student_sheet):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    return tmp_path


def test_the_sheet_has_stubs_and_no_solutions(source):
    sheet = student(source, "ex90")
    assert named(sheet, "ex90-1-answer")["source"] == (
        'def double(x):\n    """Twice x."""\n    raise NotImplementedError  # your code here'
    )
    assert [cell["id"] for cell in sheet["cells"]] == [
        *("top", "setup", "ex90-1-task", "ex90-1-answer", "ex90-1-check"),
        *("ex90-2-task", "ex90-2-answer", "ex90-2-check"),
    ]


def test_the_sheet_holds_no_trace_of_a_run(source):
    sheet = student(source, "ex90")
    code = [cell for cell in sheet["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert all(set(cell["metadata"]) <= {"tags", "nbgrader"} for cell in sheet["cells"])
    assert named(sheet, "ex90-1-answer")["metadata"]["tags"] == ["answer"]
    assert set(sheet["metadata"]) == {"kernelspec", "language_info"}
    nbformat.validate(json.loads(student_sheet.as_notebook(sheet)))


def test_the_sheet_reads_without_the_book(source):
    text = named(student(source, "ex90"), "ex90-1-task")["source"]
    assert (
        text
        == """## 1 · Write double

Level 1 · 10 minutes · goes with [Layer normalization](../../03-layer-normalization.ipynb): write double.

The LayerNorm of x, with eps = 0.5.

<details><summary>Hint</summary>

Add it.

</details>"""
    )


def plant(book, name, change, key="source"):
    found = named(book, name)
    found[key] = change(found[key])


def drop(name):
    return lambda book: book["cells"].remove(named(book, name))


def replace(name, old, new):
    def change(text):
        assert old in text
        return text.replace(old, new)

    return lambda book: plant(book, name, change)


def meta(name, **changes):
    return lambda book: named(book, name)["metadata"].update(changes)


def swap(book):
    cells = book["cells"]
    k = cells.index(named(book, "ex90-1-task"))
    cells[k], cells[k + 1] = cells[k + 1], cells[k]


def twice(book):
    book["cells"].append(copy.deepcopy(named(book, "top")))


ANSWER, CHECK, TASK = "ex90-1-answer", "ex90-1-check", "ex90-1-task"
FAULTS = {
    "no markers": (replace(ANSWER, "### BEGIN SOLUTION", "#"), "one line ### BEGIN SOLUTION .* found ### END"),
    "two pairs": (
        replace(ANSWER, "    ### END", "    ### END SOLUTION\n    ### BEGIN SOLUTION\n    ### END"),
        "one line",
    ),
    "a marker spelled otherwise": (replace(ANSWER, "### BEGIN", "# begin"), "found # begin SOLUTION"),
    "markers the other way round": (
        replace(ANSWER, DOUBLE, re.sub("BEGIN|END", lambda m: "END" if m[0] == "BEGIN" else "BEGIN", DOUBLE)),
        "one line",
    ),
    "an empty solution": (
        replace(ANSWER, "    twice_as_large = x + x\n    return twice_as_large\n", ""),
        "nothing between the markers",
    ),
    "markers at two indents": (replace(ANSWER, "    ### END", "### END"), "different indents"),
    "another function": (replace(ANSWER, "def double", "def duble"), "must define double; it defines duble"),
    "no function": (replace(ANSWER, "def double(x):", "if True:"), "it defines nothing"),
    "no Python": (replace(ANSWER, "def double(x):", "def double(x:"), "ex90-1-answer: .*never closed|invalid syntax"),
    "a stub that is no Python": (replace(ANSWER, "x + x", "x + x)\n    ("), "ex90-1-answer: "),
    "no answer": (drop(ANSWER), "ex90-1-answer: there is no such cell, but exercise 1 of the set needs it"),
    "no check": (drop(CHECK), "ex90-1-check: there is no such cell"),
    "no task": (drop(TASK), "ex90-1-task: there is no such cell"),
    "no solution": (drop("ex90-1-solution"), "ex90-1-solution: there is no such cell"),
    "no setup": (drop("setup"), "one cell with id setup"),
    "an id twice": (twice, "'top' occurs 2 times"),
    "no id": (lambda book: named(book, "top").pop("id"), "'' occurs 1 times"),
    "another order": (swap, "in this order"),
    "a check of another function": (
        replace(CHECK, "checks.double(double)", "checks.triple(double)"),
        r"must contain only checks.double\(double\); it contains 'checks.triple\(double\)'",
    ),
    "a check that does more": (replace(CHECK, "checks", "double(1)\nchecks"), "contain only"),
    "an answer without its tag": (meta(ANSWER, tags=[]), "ex90-1-answer: it must be a code cell, tagged answer"),
    "a check without its tag": (meta(CHECK, tags=[]), "ex90-1-check: it must be a code cell, tagged check"),
    "a solution that would be handed out": (meta("ex90-1-solution", tags=[]), "tagged solution-only"),
    "an answer of no exercise": (meta("figure", tags=["answer"]), "figure: it is tagged .* no such exercise"),
    "a marker elsewhere": (replace("figure", "double(2)", "# BEGIN SOLUTION"), "figure: a solution must be in"),
    "other points": (meta(CHECK, nbgrader={"points": 5}), "its metadata for nbgrader must be .*\"points\": 1"),
    "no heading": (replace(TASK, "## 1 · ", "## "), "begin with its heading: ## 1"),
    "another level": (replace(TASK, "Level 1", "Level 2"), "this line is missing: Level 1 · 10 minutes · goes with"),
    "no hint": (replace(TASK, ">Hint<", ">Note<"), "the hint is missing"),
    "an open solution": (replace("ex90-1-solution", "<details>", ""), "the solution must be folded"),
    "a line of the solution in a cell": (
        replace("setup", "checks", "checks\ntwice_as_large = x + x"),
        "setup: the sheet contains a line of a solution: twice_as_large = x [+] x",
    ),
    "a line of the solution in the text": (replace(TASK, "Add it.", "twice_as_large = x + x"), "the sheet contains"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_source_that_breaks_a_rule_is_refused(source, fault):
    change, message = FAULTS[fault]
    change(source)
    with pytest.raises(SheetError, match=message):
        student(source, "ex90")


def test_a_line_of_twenty_characters_tells_of_a_solution():
    assert student_sheet.trivial("x" * 19)
    assert not student_sheet.trivial("x" * 20)


def test_all_faults_are_said_at_once(source):
    for name in ("no task", "no hint", "another function"):
        FAULTS[name][0](source) if name != "no task" else drop("ex90-2-task")(source)
    with pytest.raises(SheetError) as error:
        student(source, "ex90")
    assert len(str(error.value).split("\n")) == 4


@pytest.mark.parametrize("text", ["not json", "[]", "{}", '{"cells": [1]}'])
def test_a_file_that_is_no_notebook_is_named(tmp_path, text):
    path = tmp_path / "ex90-small.ipynb"
    path.write_text(text)
    with pytest.raises(SheetError, match=r"ex90-small.ipynb is not a notebook: \w+Error"):
        student_sheet.read_notebook(path)


def test_two_runs_write_the_same_bytes(checkout, capsys):
    paths = [checkout / "notebooks/exercises/student/ex90-small.ipynb", checkout / "dist/ex90.zip"]
    assert release.release(["ex90"]) == 0
    assert "ex90: written to notebooks/exercises/student/ex90-small.ipynb, dist/ex90.zip" in capsys.readouterr().out
    first = [path.read_bytes() for path in paths]
    assert release.release(["ex90"]) == 0
    assert [path.read_bytes() for path in paths] == first


def test_check_says_what_is_stale_and_writes_nothing(checkout, capsys):
    path = checkout / "notebooks/exercises/student/ex90-small.ipynb"
    fix = "student/ex90-small.ipynb is out of date; run: python -m subnorm_classroom release ex90"
    assert release.release(["ex90"], check=True) == 1
    assert fix in capsys.readouterr().err
    assert not path.exists()
    release.release(["ex90"])
    (checkout / "dist/ex90.zip").unlink()
    assert release.release(["ex90"], check=True) == 0
    path.write_bytes(path.read_bytes() + b"\n")
    capsys.readouterr()
    assert release.release(["ex90"], check=True) == 1
    assert fix in capsys.readouterr().err
    assert not (checkout / "dist/ex90.zip").exists()


def test_a_wrong_source_leaves_the_sheet_as_it_was(checkout, capsys):
    release.release(["ex90"])
    path = checkout / "notebooks/exercises/student/ex90-small.ipynb"
    before = path.read_bytes()
    source = checkout / "notebooks/exercises/ex90-small.ipynb"
    source.write_text(source.read_text("utf-8").replace("### END SOLUTION", ""), "utf-8")
    assert release.release(["ex90"]) == 1
    assert "ex90-2-answer: an answer cell must have one line" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_set_has_one_source(checkout, capsys):
    (checkout / "notebooks/exercises/ex90-other.ipynb").write_text("{}")
    assert release.release(["ex90"]) == 1
    assert "a set must have one notebook" in capsys.readouterr().err


def test_the_zip_holds_what_a_student_needs(checkout):
    release.release(["ex90"])
    with zipfile.ZipFile(checkout / "dist/ex90.zip") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    wheel = next(name for name in files if name.endswith(".whl"))
    names = ("ex90-small.ipynb", "HOW-TO.md", "requirements.txt", "constraints.txt")
    assert set(files) == {*(f"ex90/{name}" for name in names), wheel, "ex90/chapters/03-layer-normalization.ipynb"}
    sheet = (checkout / "notebooks/exercises/student/ex90-small.ipynb").read_bytes()
    assert files["ex90/ex90-small.ipynb"] == sheet.replace(b"](../../", b"](chapters/")
    assert b"2 exercises, 20 minutes, 3 points" in files["ex90/HOW-TO.md"]
    assert f"./{wheel.removeprefix('ex90/')}\n" in files["ex90/requirements.txt"].decode()


@pytest.mark.slow
def test_the_wheel_in_the_zip_installs(tmp_path):
    name, content = packing.wheel_of(ROOT)
    (tmp_path / name).write_bytes(content)
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "--target", tmp_path / "there", tmp_path / name], check=True, timeout=120)
    script = "import subnorm, importlib.metadata as m; print(subnorm.__file__, m.version('subnorm'))"
    options = {"cwd": tmp_path, "env": {"PYTHONPATH": str(tmp_path / "there")}, "check": True, "timeout": 60}
    command = [sys.executable, "-c", script + "; from subnorm_lab import checks"]
    done = subprocess.run(command, capture_output=True, text=True, **options)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert done.stdout.split() == [str(tmp_path / "there/subnorm/__init__.py"), version]


def test_the_files_of_a_set_can_be_named_on_the_command_line(checkout):
    assert command_line.main(["release", "ex90", "--check"]) == 1
    assert command_line.main(["release", "ex90"]) == 0
    assert command_line.main(["release", "ex90", "--check"]) == 0


def test_help_says_what_the_commands_do(capsys):
    with pytest.raises(SystemExit):
        command_line.main(["--help"])
    assert "release ex01 makes a student's sheet; grade ex01 work/" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["release", "ex77"], r"there is no set 'ex77'; the sets are ex.*ex90"),
        (["grade", "ex77", "in"], r"there is no set 'ex77'"),
        (["grade", "ex90", "in", "--jobs", "0"], "--jobs: must be a whole number, 1 or more; got 0"),
        (["grade", "ex90", "in", "--seed", "-1"], "--seed: must be a whole number, 0 or more; got -1"),
        (["grade", "ex90", "in", "--deadline", "Friday"], "a deadline is 2026-11-20 or 2026-11-20T18:00; got Friday"),
        (["handback", "in", "--to", "blackboard"], "choose from 'moodle', 'canvas', 'nbgrader'"),
        ([], "required: command"),
    ],
)
def test_a_wrong_command_says_what_is_there(source, arguments, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        command_line.main(arguments)
    assert stopped.value.code == 2
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("text", "time"), [("2026-11-20", (23, 59, 59)), ("2026-11-20T00:00", (0, 0, 0)), ("2026-11-20 18:30", (18, 30, 0))]
)
def test_the_deadline_of_a_day_is_its_end(text, time):
    assert moment(text) == datetime(2026, 11, 20, *time)


def test_grade_gets_what_was_asked_for(monkeypatch, tmp_path):
    from subnorm_classroom.grading import grade

    seen = []
    monkeypatch.setattr(grade, "grade", lambda *given, **named: seen.append((given, named)) or 0)
    line = ["grade", "ex02", str(tmp_path), "-o", str(tmp_path / "out"), "--seed", "3", "--no-sandbox", "--jobs", "1"]
    line += ["--student", "Ada", "--accept", "--deadline", "2026-11-20T23:59", "--release", "ex02-variants.json"]
    line += ["--scheduler", "tcp://host:8786"]
    assert command_line.main(line) == 0
    named = {"seed": 3, "sandbox": False, "jobs": 1, "student": "Ada", "accept": True}
    named |= {"deadline": datetime(2026, 11, 20, 23, 59), "release": Path("ex02-variants.json")}
    assert seen == [(("ex02", tmp_path, tmp_path / "out"), {**named, "scheduler": "tcp://host:8786"})]


def triple(x):
    return 3 * x


def without(checkout, name):
    """The sheet of the checkout without the cells of an exercise; its path."""
    path = checkout / "notebooks/exercises/ex90-small.ipynb"
    book = json.loads(path.read_text("utf-8"))
    book["cells"] = [cell for cell in book["cells"] if not cell["id"].startswith(name)]
    path.write_text(json.dumps(book), "utf-8")
    return path


def test_an_exercise_without_cells_gets_four(checkout, monkeypatch, capsys):
    exercises = checks.SETS["ex90"]
    monkeypatch.setitem(checks.SETS, "ex90", [exercises[0], replaced(exercises[1], reference=triple)])
    path = without(checkout, "ex90-2-")
    assert command_line.main(["draft", "ex90"]) == 0
    assert "ex90: four cells for triple in notebooks/exercises/ex90-small.ipynb" in capsys.readouterr().out
    ids = [cell["id"] for cell in student_sheet.read_notebook(path)["cells"]]
    assert ids[-5:] == [*(f"ex90-2-{part}" for part in ("task", "answer", "check", "solution")), "figure"]
    assert release.release(["ex90"]) == 1
    wrong = [line.strip() for line in capsys.readouterr().err.splitlines()[1:]]
    assert wrong == [f"ex90-2-{part}: something is still TODO" for part in ("task", "answer", "solution")]
    path.write_text(path.read_text("utf-8").replace("TODO", "A text."), "utf-8")
    assert release.release(["ex90"]) == 0
    sheet = student_sheet.read_notebook(path.parent / "student" / path.name)
    assert named(sheet, "ex90-2-answer")["source"].startswith('def triple(x):\n    """A text.: what it returns."""\n')
    before = path.read_bytes()
    assert command_line.main(["draft", "ex90"]) == 0
    assert path.read_bytes() == before


def test_cells_with_another_number_are_not_doubled(checkout, monkeypatch, capsys):
    path = without(checkout, "ex90-1-")
    before = path.read_bytes()
    monkeypatch.setitem(checks.SETS, "ex90", checks.SETS["ex90"][::-1])
    with pytest.raises(SheetError, match="triple is number 1, but its cells are not"):
        draft.draft("ex90")
    assert path.read_bytes() == before


PLAIN = {
    "a note for the book": ("x<!-- chosen -->, y <!-- claim: a b -->.", "x, y."),
    "a link to a chapter": ("See [chapter 03](../03-a.ipynb#a-b).", "See [chapter 03](../../03-a.ipynb#a-b)."),
    "a link to another page": ("See [the myths](../../book/myths.md#a-b).", "See *the myths*."),
    "a link in the sheet": ("See [exercise 2](#2--b).", "See [exercise 2](#2--b)."),
    "code that looks like a link": ("`norms[0](x)`", "`norms[0](x)`"),
    "a link out of it": ("[He et al. (2016)](https://a.b/c)", "[He et al. (2016)](https://a.b/c)"),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_markdown(name):
    text, wanted = PLAIN[name]
    assert plain.plain(text) == wanted


# The sheets of the course.

each_set = pytest.mark.parametrize("name", list(checks.SETS))


@each_set
def test_the_student_notebook_is_what_release_gives(name):
    path = student_sheet.source_of(name)
    text = student_sheet.as_notebook(student(student_sheet.read_notebook(path), name))
    assert (path.parent / "student" / path.name).read_bytes() == text.encode()


def test_every_sheet_has_a_source():
    folder = ROOT / "notebooks" / "exercises"
    sources = sorted(path.name for path in folder.glob("*.ipynb"))
    assert sources == sorted(path.name for path in (folder / "student").glob("*.ipynb"))
    assert sources == sorted(student_sheet.source_of(name).name for name in checks.SETS)
