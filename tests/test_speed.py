"""tools/speed.py, without the real measurements: the clock, and the table after an error."""

import json
import os
import re
import sys

import pytest

from tools import build, checkout, speed


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Three instant measures, a checkout of one file, and {measure: its cell} of the table in it."""

    def rows(_copy):
        return {"all": {"seconds": [1.0], "cpu": None}}

    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    monkeypatch.setattr(speed, "TABLE", tmp_path / "speed.md")
    monkeypatch.setattr(speed, "MEASURES", {"import": rows, "build": rows, "tests": rows})

    def measured():
        text = speed.TABLE.read_text("utf-8")
        return dict(re.findall(r"(?m)^\| ([\w-]+) \| (.*) \| \d{4}-\d\d-\d\d, [\d.]+ \|$", text))

    return measured


def test_a_clock_sees_the_work_of_a_process_and_of_its_own_processes(tmp_path):
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    work = f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {busy!r}]); time.sleep(0.3); print(7)"
    wall, cpu, said = speed.clock([sys.executable, "-c", work], tmp_path)
    assert said == "7\n"
    assert cpu >= 0.3 or os.name == "nt"
    assert wall >= 0.6


def test_a_command_is_run_in_its_folder_whose_modules_come_first(tmp_path):
    (tmp_path / "subnorm.py").write_text("print('the copy')")
    assert speed.clock([sys.executable, "-c", "import subnorm"], tmp_path)[2] == "the copy\n"


def test_the_time_of_an_error_is_not_taken(tmp_path):
    with pytest.raises(speed.CommandFailed, match=r"(?s)line 1.*SyntaxError.*failed"):
        speed.clock([sys.executable, "-c", "if"], tmp_path)


def test_a_row_holds_every_round():
    assert speed.as_row([(1.23456, 0.5), (2, 1)])["seconds"] == [1.23, 2]


def test_one_word_of_a_notebook_is_changed(tmp_path):
    path = tmp_path / "01.ipynb"
    cells = [{"cell_type": kind, "source": [source]} for kind, source in (("markdown", "a"), ("code", "b"))]
    path.write_text(json.dumps({"cells": cells}))
    speed.edit_page(path, "word")
    assert [cell["source"] for cell in json.loads(path.read_text())["cells"]] == [["a\n\nword"], ["b"]]


def test_notebooks_are_measured_in_a_folder_with_any_name(tmp_path, monkeypatch):
    copy = tmp_path / "Mein Kurs ü"
    paths = [copy / "notebooks" / name for name in ("01.ipynb", "exercises/ex01.ipynb")]
    said = "".join(f"{path}\n" for path in paths)
    ran = []
    monkeypatch.setattr(speed, "clock", lambda command, _: ran.append(command) or (1.0, 1.0, said))
    assert list(speed.time_notebooks(copy)) == ["01", "ex01"]
    assert [command[-1] for command in ran[1:]] == paths


def test_the_notebook_that_is_changed_is_there():
    assert (checkout.ROOT / speed.CHANGED).is_file()


def test_python_in_a_page_is_measured_in_the_browsers_that_are_here(monkeypatch, capsys):
    def times(browser, rounds):
        if browser == "firefox":
            raise speed.measure.BrowserNotFound("There is no Firefox.")
        return {"first result": {"seconds": [1.0] * rounds, "cpu": None}}

    monkeypatch.setattr(build, "build", lambda: True)
    monkeypatch.setattr(speed.measure, "times", times)
    assert list(speed.time_in_page(None)) == ["chromium: first result", "webkit: first result"]
    assert capsys.readouterr().out == "There is no Firefox.\n"
    monkeypatch.setattr(speed.measure, "BROWSERS", {"firefox": None})
    with pytest.raises(speed.CommandFailed, match="no browser"):
        speed.time_in_page(None)


def test_what_is_taken_is_in_the_table_in_the_order_of_the_measures(measured):
    assert speed.take(["tests", "import"])
    assert list(measured().items()) == [("import", "all: 1 s"), ("tests", "all: 1 s")]


def test_a_measure_taken_alone_leaves_the_others(measured, monkeypatch):
    speed.take(["import", "build"])
    monkeypatch.setitem(speed.MEASURES, "build", lambda _: {"all": {"seconds": [2.0], "cpu": None}})
    speed.take(["build"])
    assert measured() == {"import": "all: 1 s", "build": "all: 2 s"}


def test_what_another_machine_gave_is_dropped(measured, monkeypatch):
    speed.take(["import"])
    monkeypatch.setattr(speed, "machine", lambda: "An 8080, 2 cores, CP/M")
    speed.take(["build"])
    assert list(measured()) == ["build"]


def test_a_cell_has_medians_and_the_slowest_notebook():
    assert speed.value({"seconds": [0.0994, 3, 0.01]}) == "0.099 s"
    assert speed.value({"seconds": [772.0]}) == "12.9 min"
    assert speed.value({"seconds": [61.2], "bytes": 1_234_567_890}) == "61 s, 1200 MB"
    rows = {"a": {"seconds": [3], "bytes": 7e5}, "b": {"seconds": [50.4], "bytes": 2e5}}
    assert speed.cell_of("notebooks", rows) == ["the slowest, b: 50 s, 0.2 MB"]
    assert speed.cell_of("build", rows) == ["a: 3 s, 0.7 MB", "b: 50 s, 0.2 MB"]


def test_an_interruption_keeps_what_was_measured_and_says_how_to_go_on(measured, monkeypatch):
    def interrupted(_copy):
        raise KeyboardInterrupt

    monkeypatch.setitem(speed.MEASURES, "build", interrupted)
    with pytest.raises(SystemExit, match=r"the rest: python3 course\.py speed build tests$"):
        speed.take(["import", "build", "tests"])
    assert list(measured()) == ["import"]


def test_a_measure_that_fails_is_said_and_the_others_go_on(measured, monkeypatch, capsys):
    def failed(_copy):
        raise speed.CommandFailed("the book has errors")

    monkeypatch.setitem(speed.MEASURES, "build", failed)
    assert not speed.take(["build", "tests"])
    assert list(measured()) == ["tests"]
    said = capsys.readouterr().out
    assert "the book has errors" in said
    assert said.endswith("Not measured: build\n")


def test_a_copy_is_a_fresh_checkout(measured, monkeypatch):
    for name in ("_build", "subnorm/__pycache__", ".venv", "subnorm.egg-info"):
        (checkout.ROOT / name).mkdir(parents=True)
    (checkout.ROOT / "course.py").touch()
    seen = []
    monkeypatch.setitem(
        speed.MEASURES,
        "build",
        lambda copy: seen.extend(copy.rglob("*")) or {"all": {"seconds": [1.0], "cpu": None}},
    )
    speed.take(["build"])
    assert sorted(path.name for path in seen) == ["course.py", "subnorm"]


def test_an_unknown_measure_is_named():
    with pytest.raises(SystemExit, match="There is no measure buidl; the measures are install, import, build, "):
        speed.main(["buidl"])


@pytest.mark.parametrize("with_install", [False, True])
def test_the_install_is_measured_when_it_is_asked_for(monkeypatch, with_install):
    taken = []
    monkeypatch.setattr(speed, "take", taken.extend)
    speed.main(["--install"] if with_install else [])
    assert ("install" in taken) == with_install
    assert set(taken) | {"install"} == set(speed.MEASURES)


def test_the_stored_table_is_one_that_the_next_measure_extends():
    text = speed.TABLE.read_text("utf-8")
    assert text.startswith(speed.HEAD.partition("{machine}")[0])
    assert text.partition("| --- | --- | --- |\n")[2].startswith("| import |")


def test_a_stage_too_short_to_be_timed_has_no_row(monkeypatch, tmp_path):
    said = "build      ok         0.0 s  book\ntests      ok        12.5 s  3 passed\n"
    monkeypatch.setattr(build, "build", lambda: True)
    monkeypatch.setattr(speed, "clock", lambda *_, **__: (13.0, 14.0, said))
    assert speed.time_tests(tmp_path) == {
        "all": {"seconds": [13.0], "cpu": [14.0]},
        "tests": {"seconds": [12.5], "cpu": None},
    }
