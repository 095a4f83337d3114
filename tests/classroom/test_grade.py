"""From submissions to grades: layouts, points, messages, resumed runs, the self-test."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from classroom.hand_ins import (
    BRIEF,
    LAYER_NORM,
    MEAN_SQUARE,
    PATIENT,
    SET,
    cell,
    contents,
    grade_class,
    notebook,
    sheet,
    totals,
    write_zip,
)

from subnorm_classroom.errors import Refusal
from subnorm_classroom.files import write
from subnorm_classroom.grading import archives, grade, judging, submissions
from subnorm_classroom.grading import sandbox as sandboxes
from subnorm_classroom.grading.archives import clean
from subnorm_classroom.grading.assignments import draw
from subnorm_classroom.grading.cells import BrokenNotebook, Cell, cells_of, flags_of, solution_of
from subnorm_classroom.grading.layouts import NoSubmissions
from subnorm_classroom.grading.submissions import file_names, read_all
from subnorm_classroom.grading.verdict import verdict
from subnorm_lab.checks import SETS
from subnorm_lab.checks.collect import Case, Outcome
from subnorm_lab.checks.exercise import Exercise

DDOF = LAYER_NORM.replace("wide.var(-1,", "wide.var(-1, ddof=1,")
TODO = "def {}(*args):\n    raise NotImplementedError  # your code here\n"


@pytest.fixture
def room(tmp_path):
    """A small class."""
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "Ada.ipynb").write_bytes(sheet())
    (folder / "Bo.ipynb").write_bytes(sheet(DDOF, TODO.format("mean_square")))
    (folder / "Cy.ipynb").write_bytes(sheet("pass", "mean_square = 3"))
    return folder


def run(room, out, **options):
    return grade_class("quick", room, out, **{"limits": PATIENT, **options})


def rows(out):
    with (out / "grades.csv").open(encoding="utf-8") as file:
        return [tuple(row.values())[:5] for row in csv.DictReader(file)]


def test_the_round_trip(quick_set, room, tmp_path, capsys):
    assert run(room, tmp_path / "grades") == 0
    assert rows(tmp_path / "grades") == [
        ("Ada", "layer_norm", "1", "1", "right"),
        ("Ada", "mean_square", "2", "2", "right"),
        ("Bo", "layer_norm", "0", "1", "ddof1"),
        ("Bo", "mean_square", "0", "2", "not_done"),
        ("Cy", "layer_norm", "0", "1", "missing"),
        ("Cy", "mean_square", "0", "2", "no_function"),
    ]
    assert (tmp_path / "grades/answers/layer_norm/Bo/answer.py").read_text("utf-8") == f"{DDOF}\n"
    text = (tmp_path / "grades/feedback/Bo.md").read_text(encoding="utf-8")
    assert text == (
        "# Bo: quick\n\n0 of 3 points.\n\n## ✗ layer_norm: 0 of 1\n\n`ddof1`: on a (3, 8) batch, your variance is "
        "unbiased (divided by d - 1); LayerNorm divides by d.\n\n## ○ mean_square: 0 of 2\n\nnot done yet.\n"
    )
    assert capsys.readouterr().out.splitlines() == [
        f"3 submissions of quick: {tmp_path / 'grades/grades.csv'}",
        "  answers: right 2, a named mistake 1, not_done 1, missing 1, no_function 1",
        f"{tmp_path / 'grades/overview.html'}: quick, 3 hand-ins",
    ]
    assert totals(tmp_path / "grades", "points", "max_points") == {
        "Ada": ("3", "3"),
        "Bo": ("0", "3"),
        "Cy": ("0", "3"),
    }
    log = json.loads((tmp_path / "grades/log.json").read_text(encoding="utf-8"))
    assert log["finished"] is True
    assert log["isolated"] is True
    assert set(log["versions"]) == {"subnorm", "code", "python", "numpy"}
    assert len(log["students"]["Ada"]["sha256"]) == 64


def test_a_hand_in_without_a_notebook_is_named_once(quick_set, tmp_path, capsys):
    (tmp_path / "class/Al").mkdir(parents=True)
    (tmp_path / "class/Al/my_sheet.html").write_text("<html>")
    assert run(tmp_path / "class", tmp_path / "grades") == 0
    assert "1 without a notebook to grade: Al (no_notebook)" in capsys.readouterr().out
    assert (tmp_path / "grades/feedback/Al.md").read_text(encoding="utf-8") == (
        "# Al: quick\n\nNo points yet: the grader cannot grade this hand-in.\n\n`no_notebook`: no notebook was handed "
        "in; hand in the file whose name ends in .ipynb (a copy of it in a folder `.ipynb_checkpoints` does not count)."
        "\n\nHanded in: Al/my\\_sheet.html\n"
    )
    assert (tmp_path / "grades/totals.csv").read_text(encoding="utf-8").endswith("\nAl,0,3,no_notebook,,,\n")


def test_a_run_stopped_from_the_keyboard_says_how_to_go_on(quick_set, room, tmp_path, monkeypatch, capsys):
    def results(*asked):
        raise KeyboardInterrupt

    monkeypatch.setattr(judging, "judge", results)
    assert run(room, tmp_path / "grades", jobs=1) == 130
    assert "Run the same command again" in capsys.readouterr().err


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_and_a_secret_one_is_drawn(quick_set, room, tmp_path):
    for name, seed, jobs in [("a", 7, 1), ("b", 7, 3), ("c", None, None)]:
        assert run(room, tmp_path / name, seed=seed, jobs=jobs) == 0
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    seeds = [json.loads((tmp_path / name / "log.json").read_text())["seed"] for name in "ac"]
    assert seeds[0] == 7
    assert seeds[1] > 2**32
    assert rows(tmp_path / "a") == rows(tmp_path / "c")


@pytest.mark.slow
def test_a_run_that_was_cut_off_goes_on_where_it_stopped(quick_set, room, tmp_path, monkeypatch):
    out, real = tmp_path / "grades", judging.judge
    graded = []

    def results(*asked):
        if len(graded) == 2:
            raise KeyboardInterrupt
        graded.append(asked)
        return real(*asked)

    monkeypatch.setattr(judging, "judge", results)
    assert run(room, out, jobs=1) == 130
    before = json.loads((out / "log.json").read_text())
    assert before["finished"] is False
    assert not (out / "grades.csv").exists()
    graded.clear()
    assert run(room, out, jobs=1) == 0
    assert len(graded) == 1  # the other two are kept
    whole = tmp_path / "whole"
    monkeypatch.setattr(judging, "judge", real)
    assert run(room, whole, seed=before["seed"]) == 0
    assert contents(out) == contents(whole)


@pytest.mark.slow
def test_a_notebook_that_changed_or_came_late_is_graded_and_no_other(quick_set, room, tmp_path, judged):
    out = tmp_path / "grades"
    assert run(room, out) == 0
    judged.clear()
    (room / "Bo.ipynb").write_bytes(sheet())
    (room / "Di.ipynb").write_bytes(sheet())
    (out / "students/Ada.json").write_text("{")  # incomplete
    assert run(room, out) == 0
    assert len(judged) == 3
    assert ("Bo", "layer_norm", "1", "1", "right") in rows(out)
    assert run(room, out, seed=1) == 0
    assert len(judged) == 7


@pytest.mark.slow
def test_a_cell_that_cannot_be_left_out_again_and_again_ends(quick_set, tmp_path):
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "Eve.ipynb").write_bytes(sheet(LAYER_NORM, MEAN_SQUARE, *["import os\nos._exit(1)"] * 3))
    (folder / "Flo.ipynb").write_bytes(notebook(LAYER_NORM, MEAN_SQUARE, *["import os\nos._exit(1)"] * 9))
    assert run(folder, tmp_path / "grades") == 0
    assert [row[4] for row in rows(tmp_path / "grades")] == ["right", "right", "killed", "killed"]


# Refusals.


def test_a_set_or_a_place_that_is_not_there_is_refused(quick_set, room, tmp_path, capsys):
    assert grade_class("ex99", room, tmp_path / "grades") == 1
    assert run(tmp_path / "nothing", tmp_path / "grades") == 1
    assert run(room, room / "grades") == 1
    (tmp_path / "file").write_text("")
    assert run(room, tmp_path / "file") == 1
    errors = capsys.readouterr().err
    assert "a set is one of" in errors
    assert "there is no" in errors
    assert f"cannot be written to {tmp_path / 'file'}: " in errors
    assert "must not be inside the submissions" in errors


SMALL = """
import os, sys
sys.path[:0] = SEEN_FROM
from pathlib import Path
from classroom.hand_ins import PATIENT, SET, grade_class
from subnorm_lab.checks import SETS
SETS["quick"] = SET
sys.exit(grade_class("quick", Path(sys.argv[1]), Path(sys.argv[2]), limits=PATIENT, jobs=1))
"""


def small_run(course, *arguments, before=(), **environment):
    """The small class, graded by another process from the packages in a given folder."""
    seen = [str(course), str(Path(__file__).parents[1]), *sandboxes.installed_in()]
    return subprocess.run(
        [*before, sys.executable, "-c", SMALL.replace("SEEN_FROM", repr(seen)), *map(str, arguments)],
        env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def without_progress(said):
    return re.sub(r"^grade: \d+ of \d+ graded\n", "", said, flags=re.MULTILINE)


@pytest.mark.slow
def test_a_checkout_may_lie_anywhere(quick_set, room, tmp_path):
    there = tmp_path / "my subnorm é $HOME 'x'"
    for name in sandboxes.PACKAGES:
        shutil.copytree(sandboxes.COURSE / name, there / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.move(room, there / "class")
    (there / "scratch").mkdir()
    done = small_run(there, there / "class", there / "grades", TMPDIR=str(there / "scratch"))
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
    assert [row[4] for row in rows(there / "grades")] == [
        "right", "right", "ddof1", "not_done", "missing", "no_function",
    ]  # fmt: skip
    assert list((there / "scratch").iterdir()) == []


@pytest.mark.parametrize(("place", "size"), [("out", 64 << 10), ("scratch", 16 << 10)])
@pytest.mark.slow
def test_a_full_disk_is_a_sentence(place, size, quick_set, room, tmp_path):
    """A full disk for the grades or the scratch folder: a real file system of a few kB."""
    for name in ("out", "scratch"):
        (tmp_path / name).mkdir()
    for k in range(40):  # each student takes a page of memory or more
        (room / f"Student {k}.ipynb").write_bytes(b"")
    full = ["bwrap", "--dev-bind", "/", "/", "--size", str(size), "--tmpfs", str(tmp_path / place)]
    scratch = str(tmp_path / "scratch")
    done = small_run(sandboxes.COURSE, room, tmp_path / "out", before=full, TMPDIR=scratch)
    where = {"out": "the grades cannot be written to", "scratch": "the temporary folder"}[place]
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    said = without_progress(done.stderr)
    assert said.startswith(f"grade: {where} {tmp_path / place}")
    assert said.count("\n") == 1


def test_a_folder_for_the_grades_that_cannot_be_written_to_is_a_sentence(quick_set, room, tmp_path, capsys):
    (tmp_path / "grades").mkdir()
    (tmp_path / "grades/students").write_text("")  # also root may not make a folder of that name
    assert run(room, tmp_path / "grades") == 1
    said = capsys.readouterr().err
    assert said.startswith(f"grade: the grades cannot be written to {tmp_path / 'grades/students'}")
    assert "run the same command again to continue" in said


@pytest.mark.slow
def test_a_damaged_log_is_a_refusal_and_no_new_seed(quick_set, room, tmp_path, capsys):
    out = tmp_path / "grades"
    assert run(room, out, seed=7) == 0
    before = contents(out)
    for damaged in (b"", b"{", before["log.json"].replace(b'"seed": 7', b'"seed": "x"'), b"{}", b"\xff\xfe"):
        (out / "log.json").write_bytes(damaged)
        assert run(room, out) == 1
        assert "log.json is damaged" in capsys.readouterr().err
        assert contents(out) == {**before, "log.json": damaged}
    assert run(room, out, seed=7) == 0
    assert contents(out) == before


@pytest.mark.slow
def test_what_was_written_of_a_student_who_withdrew_is_removed(quick_set, room, tmp_path, capsys):
    out = tmp_path / "grades"
    assert run(room, out, seed=7) == 0
    (room / "Bo.ipynb").unlink()
    (out / "feedback/notes.md").write_text("mine")
    (out / "students/notes.json").write_text("{}")
    capsys.readouterr()
    assert run(room, out) == 0
    assert "removed, because they are no longer among the submissions: Bo\n" in capsys.readouterr().out
    names = {"Ada", "Cy", "notes"}
    assert {path.stem for folder in ("feedback", "students") for path in (out / folder).iterdir()} == names
    assert not any(re.search(rb"\bBo\b", content) for content in contents(out).values())


@pytest.mark.slow
def test_the_grades_of_another_set_are_not_overwritten(quick_set, room, tmp_path, capsys, monkeypatch):
    assert run(room, tmp_path / "grades") == 0
    before = contents(tmp_path / "grades")
    monkeypatch.setitem(grade.SETS, "other", SET)
    assert grade_class("other", room, tmp_path / "grades", limits=PATIENT) == 1
    assert "holds the grades of quick" in capsys.readouterr().err
    assert contents(tmp_path / "grades") == before


def test_the_canary_stops_a_grader_that_finds_right_answers_wrong(quick_set, room, tmp_path, capsys, monkeypatch):
    broken = replace(SET[1], reference=lambda x: (x * x).mean(-1) + 1)
    monkeypatch.setattr(
        grade, "solution_of", lambda name: [Cell(2, (), f"import numpy as np\n{LAYER_NORM}{MEAN_SQUARE}")]
    )
    monkeypatch.setitem(grade.SETS, "quick", [SET[0], broken])
    assert run(room, tmp_path / "grades") == 1
    assert "the solution of mean_square was judged value" in capsys.readouterr().err
    assert not (tmp_path / "grades/grades.csv").exists()


def test_the_canary_stops_a_grader_that_finds_wrong_answers_right(quick_set, room, tmp_path, capsys, monkeypatch):
    judge = Exercise.judge
    monkeypatch.setattr(
        Exercise, "judge", lambda self, *args, **named: replace(judge(self, *args, **named), tag="right")
    )
    assert run(room, tmp_path / "grades") == 1
    assert "a wrong answer of layer_norm was judged right" in capsys.readouterr().err
    assert not (tmp_path / "grades/grades.csv").exists()


IN_TORCH = """
import torch
def layer_norm(x, gamma, beta, eps):
    wide = x.float() if x.dtype == torch.float16 else x
    xhat = (wide - wide.mean(-1, keepdim=True)) * torch.rsqrt(wide.var(-1, keepdim=True, correction=0) + eps)
    return (gamma * xhat + beta).to(x.dtype)
"""


@pytest.mark.slow
def test_an_answer_in_pytorch_is_right_in_half_precision_too(quick_set, tmp_path, monkeypatch):
    half = replace(SET[1], cases=lambda rng: [Case("float16", (rng.normal(size=(3, 5)).astype("float16"),))])
    monkeypatch.setitem(grade.SETS, "quick", [SET[0], half])
    (tmp_path / "class").mkdir()
    second = "def mean_square(x):\n    return x.float().square().mean(-1).half()\n"
    (tmp_path / "class/Ada.ipynb").write_bytes(sheet(IN_TORCH, second))
    limits = replace(PATIENT, memory=1 << 30)
    assert run(tmp_path / "class", tmp_path / "grades", seed=7, limits=limits) == 0
    assert [row[4] for row in rows(tmp_path / "grades")] == ["right", "right"]


@pytest.mark.slow
def test_the_canary_stops_a_grader_in_which_pytorch_cannot_convert(quick_set, room, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sandboxes, "CPU", [])
    assert run(room, tmp_path / "grades", limits=replace(PATIENT, memory=1 << 30)) == 0  # nobody uses it
    (room / "Di.ipynb").write_bytes(sheet(IN_TORCH))
    assert run(room, tmp_path / "more", limits=replace(PATIENT, memory=1 << 30)) == 1
    assert "canary_in_pytorch was judged error (on a float16 batch, it raises RuntimeError" in capsys.readouterr().err
    assert not (tmp_path / "more/grades.csv").exists()


@pytest.mark.slow
def test_without_bubblewrap_grading_is_refused_and_allowed_only_aloud(room, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(grade.SETS, "quick", SET)
    monkeypatch.setattr(sandboxes.shutil, "which", lambda name: None)
    assert run(room, tmp_path / "grades") == 1
    assert "apt install bubblewrap" in capsys.readouterr().err
    assert not (tmp_path / "grades/grades.csv").exists()
    (room / "Lu.ipynb").write_bytes(sheet("def layer_norm(*args):\n    __import__('time').sleep(3600)\n"))
    assert run(room, tmp_path / "grades", sandbox=False, limits=BRIEF) == 0
    said = capsys.readouterr().err
    assert "NO SANDBOX" in said
    assert "runs as you" in said
    assert rows(tmp_path / "grades")[:2] == [
        ("Ada", name, p, p, "right") for name, p in [("layer_norm", "1"), ("mean_square", "2")]
    ]
    assert [row[4] for row in rows(tmp_path / "grades")[-2:]] == ["timeout", "right"]
    assert json.loads((tmp_path / "grades/log.json").read_text())["isolated"] is False


# Layouts of learning platforms. The bytes do not matter here.

LAYOUTS = {
    "plain": ["Ada.ipynb", "Bo.ipynb"],
    "plain folders": ["Ada/x.ipynb", "Bo/ex02-layer-norm.ipynb"],
    "nbgrader": ["submitted/Ada/ex02/x.ipynb", "submitted/Bo/ex02/x.ipynb", "submitted/Bo/ex01/y.ipynb"],
    "nbgrader inside": ["Ada/ex02/x.ipynb", "Ada/ex01/y.ipynb", "Bo/ex02/x.ipynb", "Bo/ex02/timestamp.txt"],
    "Moodle folders": ["Ada_12_assignsubmission_file/x.ipynb", "Bo_13_assignsubmission_file/y.ipynb",
                       "Bo_13_assignsubmission_onlinetext/onlinetext.html"],
    "Moodle files": ["Ada_12_assignsubmission_file_x.ipynb", "Bo_13_assignsubmission_file_y.ipynb"],
    "Canvas": ["ada_LATE_12_99_x.ipynb", "bo_13_98_ex02-layer-norm-1.ipynb"],
    "a Mac": ["Ada.ipynb", "Bo.ipynb", "__MACOSX/._Ada.ipynb", ".DS_Store", "Bo/.ipynb_checkpoints/x-checkpoint.ipynb"],
}  # fmt: skip


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layouts_of_platforms(layout, zipped, tmp_path):
    place = tmp_path / "class.zip"
    if zipped:
        write_zip(place, [(name, name.encode()) for name in LAYOUTS[layout]])
    else:
        place = tmp_path / "class"
        for name in LAYOUTS[layout]:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(name.encode())
    found = read_all(place)
    assert [one.student.split("_")[0].lower() for one in found] == ["ada", "bo"]
    assert ["_" in one.student for one in found] == 2 * [layout.split()[0] in ("Moodle", "Canvas")]
    for one in found:
        path, data, problem = one.notebook("ex02")
        assert (problem, data.decode().endswith(path)) == ("", True)


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize(
    ("odd", "shown"),
    [
        ("Ada\u200b", "Ada [Ada\\u200b]"),  # zero-width space
        ("A\u00adda", "Ada [A\\xadda]"),  # soft hyphen
        ("\u202eAda", "Ada [\\u202eAda]"),  # right to left
        ("Ada\ufeff", "Ada [Ada\\ufeff]"),
    ],
)
def test_names_that_look_the_same_stay_two_students(odd, shown, zipped, tmp_path):
    names = ["Ada.ipynb", f"{odd}.ipynb", f"B{odd}/x.ipynb"]
    place = tmp_path / "class.zip"
    if zipped:
        write_zip(place, [(name, name.encode()) for name in names])
    else:
        place = tmp_path / "class"
        (place / f"B{odd}").mkdir(parents=True)
        for name in names:
            (place / name).write_bytes(name.encode())
    found = {one.student: one.notebook("ex02")[1:] for one in read_all(place)}
    assert found == {
        "Ada": (b"Ada.ipynb", ""), shown: (names[1].encode(), ""), clean(f"B{odd}"): (names[2].encode(), ""),
    }  # fmt: skip


def test_two_spellings_of_one_letter_and_names_that_were_made_to_collide_stay_apart():
    names = submissions.names_of(
        ["Zoë", "Zoe\u0308", "Ada", "Ada\u200b", "Ada [Ada\\u200b]", "\u200b", "Bo\udcff", "Bo\udcfe"]
    )
    assert len(set(names.values())) == 8
    assert (names["Zoë"], names["Zoe\u0308"], names["\u200b"]) == ("Zoë", "Zoë [Zoe\\u0308]", "[\\u200b]")
    assert submissions.names_of(["Zoe\u0308", "Al\u200d"]) == {"Zoe\u0308": "Zoë", "Al\u200d": "Al"}


@pytest.mark.slow
def test_very_many_files_of_one_student_are_this_student_s_problem(tmp_path):
    many = [(f"Eve/{k}.ipynb", b"1") for k in range(20_001)]
    write_zip(
        tmp_path / "a.zip",
        [("Ada.ipynb", b"1"), *many, *[(f"Bo/{k}.txt", b"") for k in range(2000)], ("Bo/x.ipynb", b"2")],
    )
    found = {one.student: one.notebook("ex02") for one in read_all(tmp_path / "a.zip")}
    assert {who: problem for who, (_, _, problem) in found.items()} == {"Ada": "", "Bo": "", "Eve": "too_many_files"}
    assert found["Bo"][1] == b"2"


@pytest.mark.parametrize(
    ("inside", "students"),
    [
        (["Ada.ipynb", "Bo.ipynb"], ["Ada", "Bo"]),
        (["Ada/x.ipynb", "Bo/x.ipynb", "readme.txt"], ["Ada", "Bo", "readme.txt"]),
        (["Ada_12_assignsubmission_file/x.ipynb", "Bo_13_assignsubmission_file/x.zip"], ["Ada_12", "Bo_13"]),
        (["x.ipynb", "data.csv"], ["Grades 2026"]),
        (["ex01/x.ipynb", "ex02/x.ipynb"], ["Grades 2026"]),
        (["ex01-tensors.ipynb", "ex02-layer-norm.ipynb"], ["Grades 2026"]),
    ],
)
def test_a_folder_around_the_whole_class_may_have_any_name(inside, students, tmp_path, capsys):
    write_zip(tmp_path / "download.zip", [(f"Grades 2026/{name}", b"1") for name in inside])
    assert [one.student for one in read_all(tmp_path / "download.zip")] == students
    said = "Grades 2026: treated as the download of a class, not as one student.\n"
    assert capsys.readouterr().err == said * (len(students) > 1)


def test_the_only_student_on_moodle_is_no_folder_of_a_class(tmp_path):
    write_zip(tmp_path / "a.zip", [(f"Ada_1_assignsubmission_file/{name}.ipynb", b"1") for name in "xy"])
    assert [one.student for one in read_all(tmp_path / "a.zip")] == ["Ada_1"]


def test_a_damaged_zip_of_a_class_is_a_sentence(tmp_path):
    write_zip(tmp_path / "whole.zip", [(f"{name}.ipynb", b"1" * 500) for name in ("Ada", "Bo")])
    whole = (tmp_path / "whole.zip").read_bytes()
    directory = whole.index(b"PK\1\2")
    for damaged in (whole[:-30], whole[:directory] + b"xx" + whole[directory + 2 :]):
        (tmp_path / "a.zip").write_bytes(damaged)
        with pytest.raises(NoSubmissions, match=r"a\.zip is a damaged zip: download it from the platform again"):
            read_all(tmp_path / "a.zip")
    (tmp_path / "a.zip").write_bytes(whole[:41] + b"?" + whole[42:])  # in the first member: the second is whole
    assert [one.notebook("ex02")[2] for one in read_all(tmp_path / "a.zip")] == ["unreadable_file", ""]


def test_a_path_that_climbs_out_of_the_class_is_nobody_s(tmp_path):
    write_zip(tmp_path / "a.zip", [("Ada/x.ipynb", b"1"), ("../Ada/y.ipynb", b"2"), ("Bo/../Ada/z.ipynb", b"3")])
    found = {one.student: one.notebook("ex02")[2] for one in read_all(tmp_path / "a.zip")}
    assert found.pop("Ada") == ""
    assert set(found.values()) == {"unsafe_archive"}
    assert len(found) == 2


def test_a_student_s_zip_is_opened_and_one_inside_it_is_not(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("sheet/x.ipynb", "1")
        archive.writestr("more.zip", "PK")
    write_zip(tmp_path / "a.zip", [("Ada_1_assignsubmission_file/x.zip", inner.getvalue()), ("Bo.zip", b"PK broken")])
    ada, bo = read_all(tmp_path / "a.zip")
    assert ada.notebook("ex02") == ("sheet/x.ipynb", b"1", "")
    assert bo.notebook("ex02")[2] == "unreadable_file"


def test_a_header_that_lies_about_its_size_unpacks_no_more_than_a_notebook(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "LARGEST", 1000)
    write_zip(tmp_path / "a.zip", [("Ada.ipynb", bytes(range(250)) * 20)])
    assert read_all(tmp_path / "a.zip")[0].notebook("ex02")[2] == "too_large"
    data = (tmp_path / "a.zip").read_bytes()
    lying = data.replace((5000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert lying != data
    (tmp_path / "a.zip").write_bytes(lying)
    assert read_all(tmp_path / "a.zip")[0].notebook("ex02") == ("Ada.ipynb", b"", "unreadable_file")


def test_an_encrypted_archive_is_reported(tmp_path):
    write_zip(tmp_path / "a.zip", [("Ada.ipynb", b"1")])
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "a.zip").write_bytes(data)
    assert read_all(tmp_path / "a.zip")[0].notebook("ex02")[2] == "unreadable_file"


def test_a_link_in_a_folder_is_not_followed(tmp_path):
    (tmp_path / "class/Ada").mkdir(parents=True)
    (tmp_path / "secret.ipynb").write_text("{}")
    (tmp_path / "class/Ada/x.ipynb").symlink_to(tmp_path / "secret.ipynb")
    (tmp_path / "class/Bo").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "class/Cy.ipynb")
    assert [one.notebook("ex02")[2] for one in read_all(tmp_path / "class")] == ["link"] * 3


def test_what_is_no_class_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.zip").write_text("not a zip")
    for place in ("empty", "text.zip", "absent"):
        with pytest.raises(NoSubmissions):
            read_all(tmp_path / place)
    (tmp_path / "empty/Ada").mkdir()
    assert [(one.student, one.notebook("ex02")[2]) for one in read_all(tmp_path / "empty")] == [("Ada", "no_notebook")]


def test_names_are_kept_in_one_spelling_and_good_for_every_system():
    assert clean("Zoe\u0308\u202e\n") == "Zoë"
    names = file_names(["Zoë", "ZOË", "a/b", "..", "x" * 400, "李小龍"])
    assert (names["Zoë"], names["a/b"], names[".."], names["李小龍"]) == ("Zoë", "a_b", "_", "李小龍")
    assert names["ZOË"].startswith("ZOË-")
    assert len({name.casefold() for name in names.values()}) == 6
    assert max(len(name) for name in names.values()) < 200
    assert PurePosixPath("../x").parts[0] == ".."


# Feedback.


def test_every_diagnosis_has_words_without_a_value():
    ex = SET[1]
    cases = draw(ex, 1).cases
    right = [ex.reference(*case.args) for case in cases]
    for answer, tag in [
        (right, "right"), ([2 * y for y in right], "value"), ([y.astype("float32") for y in right], "dtype"),
        ([y[..., None] for y in right], "shape"), (["a", "b"], "type"), ([None, None], "not_done"),
    ]:  # fmt: skip
        outcomes = [Outcome(value) for value in answer]
        diagnosis, says = verdict(ex, cases, outcomes)
        assert diagnosis == tag
        assert says.endswith(".")
        assert not re.search(r"\d\.\d", says)
    cells = [Cell(1, (), "def mean_square(x):\n\n    raise ValueError(x)")]
    assert verdict(ex, cases, [Outcome(error="ValueError", message="0.1", line=3)] * 2, cells) == (
        "error", "on a batch, it raises ValueError in line 3 of its cell.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("source", "flags"),
    [
        ("import numpy as np\nfrom subnorm_lab import checks", []),
        ("import os, sys", ["imports os", "imports sys"]),
        ("import subnorm.numpy as sn", ["imports more of subnorm than checks"]),
        ("from subnorm import numpy", ["imports more of subnorm than checks"]),
        ("y = F.layer_norm(x, (8,))", ["uses a ready-made norm"]),
        ("eval('1'); open('x')", ["opens files", "uses eval, exec or __import__"]),
        ("x = pos + cosine(import_os)", []),
        ("from subnorm_lab import checks\nfrom subnorm_lab.checks.collect import Device", []),
        ("from subnorm import  checks", []),
        ("from subnorm_lab.stories import load", ["imports more of subnorm than checks"]),
        ("name = 'layer' + '_norm'\ny = getattr(F, name)", ["computes the name of an attribute"]),
        ("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    frame = e.__traceback__", ["takes a function apart"]),
        ("frame = error.with_traceback(None).tb_frame.f_back", ["takes a function apart"]),
        ("frame = (0 for _ in ()).gi_frame", ["takes a function apart"]),
        ("run = __builtins__['ex' + 'ec']", ["takes a function apart"]),
        ("x = np.fromfile('/etc/passwd')", ["opens files"]),
        ("text = Path('a').read_text()", ["opens files"]),
        ("residual = checks.residual.reference", ["takes the course's own answer"]),
        ("from subnorm_lab.checks.ex01 import residual", ["takes the course's own answer"]),
        ("from subnorm_lab.checks import SETS", ["takes the course's own answer"]),
        ("right = checks . SETS['ex01'][0]", ["takes the course's own answer"]),
        ("import traceback", ["imports traceback"]),
        ("kind = getattr(x, 'dtype', None) or getattr(y, \"dtype\")", []),
    ],
)
def test_flags(source, flags):
    assert flags_of([Cell(1, (), source)]) == flags


@pytest.mark.parametrize(
    "source",
    [
        "y = torch.layer_norm(x, (8,))",
        "from torch.nn.functional import layer_norm as ln",
        "from torch.nn.functional import (\n    relu,\n    rms_norm as ln,\n)",
        "from torch.nn.functional import *",
        "from torch import nn as n\nnorm = n.LayerNorm(8)",
        "y = F.group_norm(x, 2)",
        "y = torch.native_layer_norm(x, (8,), None, None, 0.0)[0]",
        "y = torch.ops.aten.native_layer_norm(x, (8,), None, None, 0.0)[0]",
        "from torch.nn.modules.normalization import RMSNorm as R",
        "norm = torch.nn.InstanceNorm1d(8)",
        "y = F.batch_norm(x, None, None, training=True)",
        "y = getattr(F, 'layer_norm')(x, (8,))",
        "y = attrgetter('functional.layer_norm')(nn)(x, (8,))",
        "import subnorm\ny = subnorm.layer_norm(x)",
        "from transformers.models.llama.modeling_llama import LlamaRMSNorm",
        "from keras.layers import (\n    Dense,\n    LayerNormalization as L)",
    ],
)
def test_a_ready_made_norm_is_flagged_by_any_name(source):
    assert "uses a ready-made norm" in flags_of([Cell(1, (), source)])


@pytest.mark.parametrize(
    "source",
    [
        "def layer_norm(x):\n    return x\nchecks.layer_norm(layer_norm)",
        "class LayerNorm(torch.nn.Module):\n    def forward(self, x):\n        return self.rms_norm(x)",
        "from torch import nn\nprint('layer_norm is done')",
        "from torch.nn import functional as F  # not layer_norm\nnorm = group_norm(x, 2)",
    ],
)
def test_a_norm_of_ones_own_is_not_flagged(source):
    assert flags_of([Cell(1, (), source)]) == []


@pytest.mark.parametrize("name", SETS)
def test_a_sheet_has_nothing_that_a_flag_is_for(name):
    """What the sheet itself has is flagged for nobody, so the flag would be lost."""
    assert flags_of(solution_of(name)) == []


@pytest.mark.slow
def test_what_the_sheet_itself_has_is_not_flagged(quick_set, tmp_path, monkeypatch):
    given = [Cell(1, (), f"import os\nimport numpy as np\n{LAYER_NORM}{MEAN_SQUARE}")]
    monkeypatch.setattr(grade, "solution_of", lambda name: given)
    (tmp_path / "class").mkdir()
    (tmp_path / "class/Ada.ipynb").write_bytes(sheet(f"import os, sys\n{LAYER_NORM}"))
    assert run(tmp_path / "class", tmp_path / "grades") == 0
    assert json.loads((tmp_path / "grades/log.json").read_text())["students"]["Ada"]["flags"] == ["imports sys"]
    assert (tmp_path / "grades/totals.csv").read_text("utf-8").endswith("imports sys\n")


def test_the_cells_of_a_notebook():
    data = notebook(
        cell(["a = 1\n", "b = 2"], "setup"), {"cell_type": "markdown", "metadata": {}, "source": "#"}, "layer_norm"
    )
    assert cells_of(data, "quick", ["layer_norm"]) == [
        Cell(1, ("setup",), "a = 1\nb = 2"), Cell(3, (), "layer_norm"),
    ]  # fmt: skip
    with pytest.raises(BrokenNotebook, match="too_large"):
        cells_of(b"[" * 600_000, "quick", [])


def test_a_part_of_a_file_is_never_left_under_its_name(tmp_path, monkeypatch):
    write(tmp_path / "a/b.txt", "one")
    monkeypatch.setattr(type(tmp_path), "replace", lambda *args: (_ for _ in ()).throw(OSError))
    with pytest.raises(Refusal):
        write(tmp_path / "a/b.txt", "two")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.txt"]
    assert (tmp_path / "a/b.txt").read_text() == "one"
