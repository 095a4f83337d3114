"""The teacher decides: no mark changes unasked, lateness is reported; and every error is a sentence."""

import json
import os
import signal
import subprocess
import sys
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

import pytest
from classroom.hand_ins import LAYER_NORM, MEAN_SQUARE, PATIENT, SET, contents, grade_class, sheet, totals

from subnorm_classroom import __main__ as command_line
from subnorm_classroom.grading import grade, judging, submissions, versions
from subnorm_classroom.grading.archives import File, local_time
from subnorm_classroom.grading.assignments import draw
from subnorm_classroom.grading.submissions import Submission, read_all
from subnorm_classroom.grading.summary import print_progress
from subnorm_classroom.grading.verdict import share
from subnorm_classroom.sheets import packing
from subnorm_lab.checks.collect import Outcome

WRONG = MEAN_SQUARE.replace("(-1)", "(0)")
STRICT = replace(SET[1], reference=lambda x: (x * x).mean(-1) + 1)  # a check that was changed


@pytest.fixture
def room(tmp_path):
    """A small class, of which one is wrong."""
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "Ada.ipynb").write_bytes(sheet())
    (folder / "Bo.ipynb").write_bytes(sheet(LAYER_NORM, WRONG))
    return folder


@pytest.fixture
def changed_check(monkeypatch):
    """Change the check of one exercise: what was right is now wrong."""

    def change():
        monkeypatch.setitem(grade.SETS, "quick", [SET[0], STRICT])
        monkeypatch.setattr(versions, "code_digest", lambda: "other code")

    return change


def run(room, out, **options):
    return grade_class("quick", room, out, **{"limits": PATIENT, "seed": 7, **options})


def test_a_changed_check_changes_no_mark_before_the_teacher_accepts(
    quick_set, room, tmp_path, capsys, changed_check, judged
):
    out = tmp_path / "grades"
    assert run(room, out) == 0
    before = contents(out)
    changed_check()
    for _ in range(2):
        capsys.readouterr()
        assert run(room, out) == 1
        said = capsys.readouterr().err
        assert "1 mark of notebooks that are as before would change:\n" in said
        assert "\n  Ada: mean_square 2 of 2 (right) → 0 of 2 (value)\n" in said
        assert "add --accept" in said
        now = contents(out)
        assert {name for name in before if now[name] != before[name]} == {"students/Bo.json"}  # same marks, new check
        assert set(now) == set(before)
    assert command_line.main(["mark", str(out), "Bo", "mean_square", "1", "--reason", "fair"]) == 0
    assert totals(out) == {"Ada": "3", "Bo": "2"}  # with the old marks
    judged.clear()
    assert run(room, out, accept=True) == 0
    assert judged == []  # they have been graded
    assert totals(out) == {"Ada": "1", "Bo": "2"}
    assert not (out / "new").exists()
    assert "1 mark of notebooks that are as before change:\n  Ada" in capsys.readouterr().err
    assert run(room, out) == 0


def test_a_changed_check_that_changes_no_mark_needs_nobody(quick_set, room, tmp_path, monkeypatch):
    assert run(room, tmp_path / "grades") == 0
    monkeypatch.setattr(versions, "code_digest", lambda: "other code")
    assert run(room, tmp_path / "grades") == 0
    log = json.loads((tmp_path / "grades/log.json").read_text("utf-8"))
    assert log["versions"]["code"] == "other code"


def test_a_new_notebook_gets_its_mark_from_a_changed_check_at_once(quick_set, room, tmp_path, changed_check):
    assert run(room, tmp_path / "grades") == 0
    (room / "Ada.ipynb").write_bytes(sheet(LAYER_NORM, f"{MEAN_SQUARE}\n\n"))
    changed_check()
    assert run(room, tmp_path / "grades") == 0
    assert totals(tmp_path / "grades") == {"Ada": "1", "Bo": "1"}


def test_a_mark_set_by_hand_survives_grading_and_is_named_where_the_check_changed(
    quick_set, room, tmp_path, capsys, changed_check
):
    out = tmp_path / "grades"
    assert run(room, out) == 0
    assert command_line.main(["mark", str(out), "Ada", "mean_square", "1.5", "--reason", "half"]) == 0
    (room / "Ada.ipynb").write_bytes(sheet(LAYER_NORM, f"{MEAN_SQUARE}\n"))
    (room / "Cy.ipynb").write_bytes(sheet())
    assert run(room, out) == 0
    assert totals(out) == {"Ada": "2.5", "Bo": "1", "Cy": "3"}
    assert "1 mark set by hand" in capsys.readouterr().out
    changed_check()
    assert run(room, out) == 1
    assert "Ada: mean_square 2 of 2 (right) → 0 of 2 (value), but it is set by hand" in capsys.readouterr().err
    assert run(room, out, accept=True) == 0
    assert totals(out) == {"Ada": "2.5", "Bo": "1", "Cy": "1"}
    assert "Set by hand: half" in (out / "feedback/Ada.md").read_text("utf-8")


def test_a_wrong_file_of_marks_loses_no_grading(quick_set, room, tmp_path, capsys, monkeypatch):
    out = tmp_path / "grades"
    out.mkdir()
    (out / "marks.csv").write_text("student,exercise,points,reason\nAda,mean_square,9,x\n", "utf-8")
    assert run(room, out) == 1
    assert "grade: row 2 of" in capsys.readouterr().err
    (out / "marks.csv").unlink()
    monkeypatch.setattr(judging, "judge", lambda *given: pytest.fail("it is graded"))
    assert run(room, out) == 0


def test_one_student_is_graded_again(quick_set, room, tmp_path, capsys, judged):
    out = tmp_path / "grades"
    assert run(room, out, student="Ada") == 1
    assert "grade the whole class first" in capsys.readouterr().err
    assert run(room, out) == 0
    before = contents(out)
    judged.clear()
    (room / "Cy.ipynb").write_bytes(sheet())  # not yet graded, and not asked for
    assert run(room, out, student="Ada") == 0
    assert len(judged) == 1
    assert contents(out) == before
    (room / "Bo.ipynb").write_bytes(sheet())
    capsys.readouterr()
    assert run(room, out, student="Bo") == 0
    assert capsys.readouterr().out == "Bo: layer_norm 1 of 1 (right), mean_square 2 of 2 (right)\n"
    assert totals(out) == {"Ada": "3", "Bo": "3"}
    assert run(room, out, student="Bo", seed=8) == 0
    assert json.loads((out / "log.json").read_text("utf-8"))["seed"] == 7  # that of the others
    assert run(room, out, student="Bob") == 1
    assert "no student called 'Bob'; did you mean Bo?" in capsys.readouterr().err


def test_another_mark_for_the_same_notebook_needs_the_teacher_for_one_student_too(
    quick_set, room, tmp_path, capsys, monkeypatch
):
    """As after a time limit on a busy machine."""
    out = tmp_path / "grades"
    monkeypatch.setattr(judging, "run_notebook", lambda *given: grade_nothing())
    monkeypatch.setattr(grade.canary, "check", lambda *given: None)
    assert run(room, out) == 0
    assert totals(out) == {"Ada": "0", "Bo": "0"}
    monkeypatch.undo()
    monkeypatch.setitem(grade.SETS, "quick", SET)
    monkeypatch.setattr(versions, "code_digest", lambda: "the code")
    assert run(room, out, student="Ada") == 1
    assert "Ada: layer_norm 0 of 1 (timeout) → 1 of 1 (right)" in capsys.readouterr().err
    assert totals(out) == {"Ada": "0", "Bo": "0"}
    assert run(room, out, student="Ada", accept=True) == 0
    assert totals(out) == {"Ada": "3", "Bo": "0"}


def grade_nothing():
    from subnorm_classroom.grading.running import Work

    return Work(answers={ex.name: "timeout" for ex in SET})


# Lateness

BY_FILE = "after the deadline, by the time of the file"
DEADLINE = datetime(2026, 11, 20, 23, 59).astimezone()


def handed_in(*names, time=None, **notes):
    files = [File(PurePosixPath(name), lambda: b"{}", time=time) for name in names]
    folder = PurePosixPath(names[0]).parent
    files += [File(folder / name.replace("_", "."), text.encode) for name, text in notes.items()]
    return Submission("Ada", files, files)


@pytest.mark.parametrize(
    ("submission", "late"),
    [
        (handed_in("ada_LATE_12_99_x.ipynb"), "marked late by Canvas"),
        (handed_in("LATE_anon_x7Kp2_98765_x.ipynb"), "marked late by Canvas"),
        (handed_in("ada_12_99_LATE_x.ipynb"), ""),
        (handed_in("Ada/my_LATE_12_99_x.ipynb"), ""),  # a name that the student chose
        (handed_in("Ada.ipynb", time=DEADLINE), ""),
        (handed_in("Ada.ipynb", time=DEADLINE + timedelta(minutes=5)), f"5 min {BY_FILE}"),
        (handed_in("Ada.zip", time=DEADLINE + timedelta(hours=3)), f"3 h 0 min {BY_FILE}"),
        (handed_in("Ada.ipynb", time=DEADLINE + timedelta(days=2, hours=3)), f"2 d 3 h {BY_FILE}"),
        (handed_in("Ada.ipynb"), ""),
        (handed_in("ada/ex01/x.ipynb", time=DEADLINE + timedelta(days=9), timestamp_txt=str(DEADLINE.astimezone(UTC)
         .replace(tzinfo=None)) + ".500000 UTC\n"), "0 min after the deadline, by nbgrader's timestamp"),
        (handed_in("ada/ex01/x.ipynb", time=DEADLINE + timedelta(minutes=1), timestamp_txt="yesterday"),
         f"1 min {BY_FILE}"),
        (handed_in("ada_12_99_x.ipynb", time=DEADLINE + timedelta(days=9)), ""),  # when the zip was made
        (handed_in("ada_LATE_12_text.html"), "marked late by Canvas"),
    ],
)  # fmt: skip
def test_lateness_is_read(submission, late):
    assert submission.late(DEADLINE) == late
    assert submission.late(None) == (late if "Canvas" in late else "")


def test_only_a_notebook_or_archive_is_late():
    notebook = File(PurePosixPath("Ada/x.ipynb"), lambda: b"", time=DEADLINE)
    other = File(PurePosixPath("Ada/.DS_Store"), lambda: b"", time=DEADLINE + timedelta(days=1))
    assert Submission("Ada", [], [notebook, other]).late(DEADLINE) == ""


def test_files_and_archives_have_their_times_and_an_impossible_one_is_none(tmp_path):
    times = {"a": (2026, 11, 20, 23, 59, 58), "b": (1980, 1, 1, 0, 0, 0), "c": (2026, 0, 31, 0, 0, 0)}
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, time in times.items():
            info = zipfile.ZipInfo(f"{name}.ipynb")
            info.date_time = time
            archive.writestr(info, "{}")
    found = {one.student: one.handed_in[0].time for one in read_all(tmp_path / "a.zip")}
    assert found == {"a": datetime(2026, 11, 20, 23, 59, 58).astimezone(), "b": None, "c": None}
    (tmp_path / "class").mkdir()
    (tmp_path / "class/d.ipynb").write_text("{}")
    os.utime(tmp_path / "class/d.ipynb", (0, DEADLINE.timestamp()))
    assert [one.handed_in[0].time for one in read_all(tmp_path / "class")] == [DEADLINE]
    assert local_time(lambda: datetime.fromtimestamp(1e17)) is None


def test_lateness_is_reported_kept_and_costs_nothing(quick_set, room, tmp_path, capsys):
    out = tmp_path / "grades"
    for name, hours in (("Ada", -1), ("Bo", 26)):
        time = DEADLINE.timestamp() + 3600 * hours
        os.utime(room / f"{name}.ipynb", (time, time))
    assert run(room, out) == 0
    assert set(totals(out, "late").values()) == {""}
    assert run(room, out, deadline=DEADLINE) == 0
    assert totals(out, "late") == {"Ada": "", "Bo": "1 d 2 h after the deadline, by the time of the file"}
    assert "1 late: see late in" in capsys.readouterr().out
    assert run(room, out) == 0  # the deadline is in the log
    assert totals(out, "late")["Bo"] != ""
    assert totals(out) == {"Ada": "3", "Bo": "1"}


# Partial credit

HALF = [SET[0], replace(SET[1], partial=True)]


def test_partial_credit_is_off_unless_the_author_asks_for_it(quick_set, room, tmp_path, monkeypatch):
    (room / "Bo.ipynb").write_bytes(sheet(LAYER_NORM, "def mean_square(x):\n    return (x * x).mean()\n"))
    assert run(room, tmp_path / "without") == 0
    assert totals(tmp_path / "without") == {"Ada": "3", "Bo": "1"}
    monkeypatch.setitem(grade.SETS, "quick", HALF)
    assert run(room, tmp_path / "with") == 0
    assert totals(tmp_path / "with") == {"Ada": "3", "Bo": "2"}  # right on one token, not on a batch
    text = (tmp_path / "with/feedback/Bo.md").read_text("utf-8")
    assert "## ○ mean_square: 1 of 2\n\n`shape`: " in text
    assert text.endswith("Partial credit: 50% of the inputs are right.\n")


def test_no_exercise_of_the_course_gives_partial_credit_unasked():
    assert {ex.name: ex.partial for exercises in grade.SETS.values() for ex in exercises if ex.partial} == {}
    assert "there is no\npartial credit" in packing.credit(SET)
    assert "a wrong `mean_square` earns its share of right inputs" in packing.credit(HALF)


def test_the_share_counts_right_cases_and_garbage_is_none():
    ex = HALF[1]
    cases = draw(ex, 1).cases
    right = [Outcome(ex.reference(*case.args)) for case in cases]
    assert share(ex, cases, right, "right") == 1
    assert share(ex, cases, [right[0], Outcome(0.5)], "shape") == 0.5
    assert share(ex, cases, [Outcome(None), Outcome(error="ValueError")], "error") == 0
    assert share(ex, cases, right[:1], "unreadable") == 0  # not as many as asked
    assert share(SET[1], cases, right, "right") == 0
    assert share(ex, cases, right, "needs_library") == 0


# Progress, interruption, permission


def test_progress_shows_where_output_is_no_terminal(capsys):
    for done in range(1, 201):
        print_progress(done, 200)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"grade: {20 * k} of 200 graded" for k in range(1, 11)]
    print_progress(1, 1)
    assert capsys.readouterr().err == "grade: 1 of 1 graded\n"


def test_progress_counts_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for done in (1, 2):
        print_progress(done, 2)
    assert capsys.readouterr().err == "\r1/2 graded\r2/2 graded\n"


STOPPED = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts a background job without it
from subnorm_classroom.sheets import release
def wait(*given):
    print("ready", flush=True)
    import time
    time.sleep(600)
release.release = wait
sys.argv = ["classroom", "release", "ex01"]
runpy.run_module("subnorm_classroom", run_name="__main__")
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_stopped_says_how_to_go_on(how):
    root = Path(grade.__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(how)
    _, said = process.communicate(timeout=600)
    assert (process.returncode, said) == (130, "\nrelease: stopped. Run the same command again to continue.\n")


@pytest.mark.parametrize(
    "command", ["release ex01", "draft ex01", "mark grades Ada a 1 --reason x", "handback g --to canvas"]
)
def test_an_error_of_the_disk_is_a_sentence_in_every_command(command, monkeypatch, capsys):
    from subnorm_classroom.reports import handback, mark
    from subnorm_classroom.sheets import draft, release

    def full(*given):
        raise OSError(30, "Read-only file system", "/there/file")

    for module, name in (
        (release, "source_of"),
        (draft, "source_of"),
        (mark, "read_grades"),
        (handback, "read_grades"),
    ):
        monkeypatch.setattr(module, name, full)
    assert command_line.main(command.split()) == 1
    name = command.split()[0]
    said = (
        f"{name}: /there/file: Read-only file system. Make room there or allow yourself to use it, then run the same "
    )
    assert capsys.readouterr().err == f"{said}command again\n"


def test_a_folder_that_cannot_be_read_is_a_sentence(tmp_path, monkeypatch):
    def closed(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(submissions.os, "scandir", closed)
    with pytest.raises(submissions.NoSubmissions, match="cannot be read: Permission denied"):
        read_all(tmp_path)
