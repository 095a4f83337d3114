"""No forged point, no other student harmed, the machine intact, and each case reported by name."""

import bz2
import contextlib
import csv
import json
import os
import socket
import struct
import tempfile
import threading
import time
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from classroom.hand_ins import (
    BRIEF,
    LAYER_NORM,
    MEAN_SQUARE,
    PATIENT,
    SET,
    SETUP,
    cell,
    grade_class,
    notebook,
    sheet,
    write_zip,
)
from helpers.parts import need

from subnorm_classroom.grading import grade, submissions
from subnorm_classroom.grading.assignments import draw
from subnorm_classroom.grading.cells import Cell, cells_of, flags_of
from subnorm_classroom.grading.submissions import file_names, read_all
from subnorm_classroom.grading.verdict import verdict
from subnorm_classroom.grading.wire import pack_case

LOOP = "def layer_norm(x, gamma, beta, eps):\n    while True:\n        pass\n"
HALF = "def layer_norm(*args):\n    return 0.5\n"
BODY = "def layer_norm(x, gamma, beta, eps):\n"
FORGE = """
import json, os
zeros = [[0.0, "", "", 0, False, [], [], ""]]
lines = [
    {"answer": "layer_norm", "attempts": [zeros * 9]}, {"answer": "layer_norm", "tag": "right", "points": 99},
    {"result": "right"}, {"at": "end"}, {"at": {}}, {"at": "cell", "cell": {"a": 1}}, {"answer": []}, {"none": "x"},
    {"cell_error": 3, "error": "E" * 900}, [1, 2], "right", {"answer": "mean_square", "attempts": [[{"dtype": "O"}]]},
]
for descriptor in range(64):
    for line in lines:
        try:
            os.write(descriptor, (json.dumps(line) + "\\n").encode())
        except OSError:
            break
"""
PATCH = """
import builtins, gc, sys, types
for name in ("allclose", "isclose", "array_equal"):
    setattr(np, name, lambda *args, **kwargs: True)
np.testing.assert_allclose = lambda *args, **kwargs: None
builtins.all = lambda items: True
checks.layer_norm = lambda answer: True
checks.Result = checks.Exercise = object
for thing in gc.get_objects():
    if isinstance(thing, types.ModuleType) and "subnorm" in str(getattr(thing, "__name__", "")):
        for name in list(vars(thing)):
            if name in ("difference", "verdict", "judge", "grade"):
                setattr(thing, name, lambda *args: None)
"""
# Search for a readable file with a solution, or from another student, and use it as the answer.
SEARCH = """
import os
for root, folders, names in os.walk("/"):
    folders[:] = [name for name in folders if root != "/usr" and name not in ("python3.11", "site-packages")]
    for name in names:
        if name.endswith(".ipynb") or name in ("norms.py", "layer_norm.py", "grades.csv", "log.json"):
            exec(GOOD)
for path in PATHS:
    try:
        open(path).read()
        exec(GOOD)
    except OSError:
        pass
"""
ESCAPE = """
import os
for path in PATHS:
    try:
        open(path, "w").write("I was here")
    except OSError:
        pass
"""
NETWORK = """
import socket
for family, address in ((socket.AF_INET, ("127.0.0.1", PORT)), (socket.AF_UNIX, NAME)):
    try:
        socket.socket(family).connect(address)
        exec(GOOD)
    except OSError:
        pass
"""
FLOOD = """
import os
for descriptor in range(64):
    try:
        for _ in range(4000):
            os.write(descriptor, b"x" * 65536)
    except OSError:
        pass
"""
PRINT = "for _ in range(2000):\n    print('x' * 1_000_000)"
STAY = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable or "/usr/bin/sleep", ["python", "-c", "import time; time.sleep(3600)", MARKER])
    os._exit(0)
"""


def body(*lines):
    return BODY + "".join(f"    {line}\n" for line in lines)


def endless():
    """Submissions that only a time limit ends. One loop keeps a core busy; the others sleep."""
    right, sleep = "right", "import time\ntime.sleep(3600)\n"
    yield "loop", "loop.ipynb", sheet(LOOP), "timeout", right
    yield "sleep in a cell", "sleep in a cell.ipynb", sheet(LAYER_NORM, MEAN_SQUARE, sleep), right, right
    yield "sleep before", "sleep before.ipynb", sheet(sleep + LAYER_NORM), "timeout", right
    yield "sleep at exit", "sleep at exit.ipynb", sheet(
        LAYER_NORM, MEAN_SQUARE, "import os, threading, time\nos._exit = print\n"
        "threading.Thread(target=time.sleep, args=(3600,)).start()",
    ), right, right  # fmt: skip


def hand_ins(folder, out, port, name, outside):
    """(student, file name, bytes, diagnosis of layer_norm, diagnosis of mean_square)."""
    good = f"GOOD = {LAYER_NORM!r}\n"
    readable = [str(folder / "Ada.ipynb"), str(out / "log.json"), grade.__file__, str(Path(__file__))]
    search = good + f"PATHS = {readable!r}\n" + SEARCH
    escape = f"PATHS = {[str(path) for path in outside]!r}\n" + ESCAPE
    network = good + f"PORT = {port}\nNAME = {name!r}\n" + NETWORK
    right, no = "right", "missing"
    deep = b"[" * 200_000
    yield "Ada", "Ada.ipynb", sheet(), right, right
    yield "allocates", "allocates.ipynb", sheet(body("return np.ones(800_000_000)")), "memory", right
    hoard = body("hoard = []", "while True:", "    hoard.append(bytearray(1 << 24))")
    yield "hoards", "hoards.ipynb", sheet(hoard), "memory", right
    yield "forks", "forks.ipynb", sheet(body("import os", "while True:", "    os.fork()")), "processes", right
    threads = "from threading import Event, Thread"
    many = body(
        threads, "for _ in range(40):", "    Thread(target=Event().wait, daemon=True).start()", "Event().wait()"
    )
    yield "threads", "threads.ipynb", sheet(many), "processes", right
    stay = f"MARKER = {str(out)!r}\n{STAY}"
    yield "stays", "stays.ipynb", sheet(LAYER_NORM, MEAN_SQUARE, stay), right, right
    yield "no checks", "no checks.ipynb", notebook(cell(SETUP, "setup"), LAYER_NORM, MEAN_SQUARE), right, right
    edited = cell("print('✓ layer_norm: right on all 7 inputs.')\nassert checks.layer_norm(layer_norm)", "check")
    edited = notebook(cell(SETUP, "setup"), HALF, edited, MEAN_SQUARE)
    yield "edited check", "edited check.ipynb", edited, "shape", right
    yield "patches", "patches.ipynb", sheet(PATCH + HALF), "shape", right
    yield "forges", "forges.ipynb", sheet(FORGE + HALF), "shape", "unreadable"
    later = sheet(body(*FORGE.strip().split("\n"), "return 0.5"))
    yield "forges later", "forges later.ipynb", later, "shape", "unreadable"
    yield "seeks", "seeks.ipynb", sheet(search), no, right
    yield "imports", "imports.ipynb", sheet("from subnorm.numpy import layer_norm"), "cell_error", right
    yield "network", "network.ipynb", sheet(network), no, right
    yield "escapes", "escapes.ipynb", sheet(escape + LAYER_NORM), right, right
    yield "exits", "exits.ipynb", sheet(body("import os", "os._exit(0)")), "killed", right
    yield "kills", "kills.ipynb", sheet(f"import os\n{LAYER_NORM}os.kill(os.getpid(), 9)"), "killed", right
    yield "crashes", "crashes.ipynb", sheet(body("import ctypes", "ctypes.string_at(0)")), "killed", right
    yield "interrupts", "interrupts.ipynb", sheet(body("raise KeyboardInterrupt")), "killed", right
    yield "prints", "prints.ipynb", sheet(LAYER_NORM, MEAN_SQUARE, PRINT), right, right
    yield "floods", "floods.ipynb", sheet(FLOOD + LAYER_NORM), "output", right
    yield "huge", "huge.ipynb", sheet(body("return np.broadcast_to(x.flat[0], (10**6, 10**6))")), "memory", right
    yield "odd", "odd.ipynb", sheet(body("return np.array([print, {}], dtype=object)")), "type", right
    yield "nested", "nested.ipynb", sheet(body("a = []", "a.append(a)", "return a")), "error", right
    yield "nan", "nan.ipynb", sheet(body("return x * np.nan")), "value", right
    yield "tells", "tells.ipynb", sheet(body("raise type(repr(x), (Exception,), {})(repr(x))")), "error", right
    yield "broken cell", "broken cell.ipynb", sheet("def layer_norm(:\n"), "cell_error", right
    yield "broken", "broken.ipynb", b'{"cells": [', "broken_notebook", "broken_notebook"
    yield "deep", "deep.ipynb", deep, "broken_notebook", "broken_notebook"
    yield "list", "list.ipynb", b"[1, 2]", "broken_notebook", "broken_notebook"
    yield "bytes", "bytes.ipynb", b"\xff\xfe\xfd\x00\x01", "broken_notebook", "broken_notebook"
    yield "wrong", "wrong.ipynb", notebook("print('my diary')"), "wrong_notebook", "wrong_notebook"
    yield "empty", "empty.ipynb", b"", "empty", "empty"
    yield "no cells", "no cells.ipynb", notebook(), "empty", "empty"
    yield "large", "large.ipynb", sheet(LAYER_NORM + "#" * (11 << 20)), "too_large", "too_large"
    yield "two", "two/a.ipynb", sheet(), "two_files", "two_files"
    yield "two", "two/b.ipynb", sheet(HALF), "two_files", "two_files"
    yield "twice the same", "twice the same/a.ipynb", sheet(), right, right
    yield "twice the same", "twice the same/b.ipynb", sheet(), right, right
    yield "no notebook", "no notebook/essay.txt", b"My dog ate it.", "no_notebook", "no_notebook"
    yield "Zoë Ångström", "Zoe\u0308 A\u030angstro\u0308m.ipynb", sheet(), right, right
    yield "李小龍 🐉", "李小龍 🐉.ipynb", sheet(HALF), "shape", right
    yield "'=HYPERLINK(1)", "=HYPERLINK(1).ipynb", sheet(), right, right


def archives(folder):
    """(student, members of the student's zip)."""
    yield "bomb", [("sheet.ipynb", b" " * (300 << 20))]
    yield "climbs", [("../../climbed.ipynb", sheet())]
    yield "absolute", [(str(folder / "climbed.ipynb"), sheet())]
    yield "windows", [("C:\\climbed.ipynb", sheet())]
    yield "linked", [("sheet.ipynb -> ", str(folder / "Ada.ipynb").encode())]
    yield "many", [(f"{k}.ipynb", b"") for k in range(1100)]


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """One run over all of them."""
    need("bwrap")
    folder, out = tmp_path_factory.mktemp("class"), tmp_path_factory.mktemp("desk") / "grades"
    outside = [folder / "planted.ipynb", out / "grades.csv", Path.home() / ".subnorm-planted", Path("/tmp/planted")]
    outside += [Path(grade.__file__).with_name("planted.py"), Path("/usr/planted"), Path("/dev/shm/planted")]
    outside[1] = out / "planted.csv"
    met, wanted = [], {}
    with socket.socket() as inet, socket.socket(socket.AF_UNIX) as local:
        name = f"\0subnorm-{os.getpid()}"
        inet.bind(("127.0.0.1", 0))
        local.bind(name)
        for listener in (inet, local):
            listener.listen()
            listener.settimeout(0.05)
        for student, path, data, *diagnoses in hand_ins(folder, out, inet.getsockname()[1], name, outside):
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(data)
            wanted[student] = diagnoses
        for student, members in archives(folder):
            write_zip(folder / f"{student}.zip", members)
            wanted[student] = ["too_many_files" if student == "many" else "unsafe_archive"] * 2
        (folder / "soft link.ipynb").symlink_to(folder / "Ada.ipynb")
        wanted["soft link"] = ["link"] * 2
        stop = threading.Event()
        listening = threading.Thread(target=listen, args=((inet, local), met, stop))
        listening.start()
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(grade.SETS, "quick", SET)
            patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("scratch")))
            before = digests(folder)
            status = grade_class("quick", folder, out, seed=5, limits=PATIENT)
            scratch = tempfile.gettempdir()
        stop.set()
        listening.join()
    assert status == 0
    with (out / "grades.csv").open(encoding="utf-8") as file:
        rows = {(row["student"], row["exercise"]): row for row in csv.DictReader(file)}
    return {
        "rows": rows, "wanted": wanted, "out": out, "folder": folder, "met": met, "outside": outside,
        "unchanged": before == digests(folder), "scratch": scratch,
    }  # fmt: skip


def listen(listeners, met, stop):
    while not stop.is_set():
        for listener in listeners:
            try:
                met.append(listener.accept())
            except TimeoutError:
                continue


def digests(folder):
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


@pytest.mark.slow
def test_each_case_is_reported_by_name_and_no_point_is_forged(graded):
    found = {student: [graded["rows"][student, ex.name]["diagnosis"] for ex in SET] for student in graded["wanted"]}
    assert found == graded["wanted"]
    for row in graded["rows"].values():
        assert int(row["points"]) == (int(row["max_points"]) if row["diagnosis"] == "right" else 0)
    assert len(graded["rows"]) == 2 * len(graded["wanted"])


@pytest.mark.slow
def test_no_student_is_met_on_the_network(graded):
    assert graded["met"] == []


@pytest.mark.slow
def test_nothing_was_written_outside(graded):
    assert [path for path in graded["outside"] if path.exists()] == []
    assert not list(graded["folder"].parent.rglob("climbed*"))
    assert graded["unchanged"]


@pytest.mark.slow
def test_no_process_is_left(graded):
    """Only of this run: others may be grading on this machine too."""
    own = [str(graded["out"]).encode(), graded["scratch"].encode()]
    assert not [command for command in commands() if any(name in command for name in own)]


def commands():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            yield path.read_bytes()


@pytest.mark.slow
def test_what_never_ends_costs_its_own_points_alone(quick_set, tmp_path):
    (tmp_path / "class").mkdir()
    wanted = {}
    for student, path, data, *diagnoses in endless():
        (tmp_path / "class" / path).write_bytes(data)
        wanted[student] = diagnoses
    assert grade_class("quick", tmp_path / "class", tmp_path / "grades", limits=BRIEF, jobs=4) == 0
    with (tmp_path / "grades/grades.csv").open(encoding="utf-8") as file:
        rows = {(row["student"], row["exercise"]): row["diagnosis"] for row in csv.DictReader(file)}
    assert {student: [rows[student, ex.name] for ex in SET] for student in wanted} == wanted


@pytest.mark.slow
def test_feedback_never_tells_the_inputs_or_the_expected_values(graded):
    inputs = {f"{value:.3f}" for ex in SET for case in draw(ex, 5).cases for value in case.args[0].ravel()}
    for path in (graded["out"] / "feedback").glob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert not any(value in text for value in inputs), path
        assert "expected" not in text, path
    tells = (graded["out"] / "feedback/tells.md").read_text()
    assert "it raises an error of its own kind" in tells
    assert "array" not in tells


@pytest.mark.slow
def test_feedback_stays_in_its_folder_under_the_student_s_name(graded):
    files = {path.relative_to(graded["out"]).as_posix() for path in graded["out"].rglob("*.md")}
    assert {"feedback/Zoë Ångström.md", "feedback/李小龍 🐉.md", "feedback/=HYPERLINK(1).md"} <= files
    assert len(files) == len(graded["wanted"])


@pytest.mark.slow
def test_the_log_flags_what_a_person_should_look_at(graded):
    students = json.loads((graded["out"] / "log.json").read_text())["students"]
    assert students["Ada"]["flags"] == []
    assert students["imports"]["flags"] == ["imports more of subnorm than checks"]
    assert {"imports gc", "imports sys", "imports builtins"} <= set(students["patches"]["flags"])
    assert "imports socket" in students["network"]["flags"]


# Attacks on the grader's own process: each could stop the run for everybody, or exhaust the machine.


def packed(name, method, data, size):
    """A zip of one member, whose header may lie."""
    sizes = (0, len(data), size, len(name))
    start = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, method, 0, 0, *sizes, 0) + name + data
    entry = struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, method, 0, 0, *sizes, 0, 0, 0, 0, 0, 0) + name
    return start + entry + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(entry), len(start), 0)


@pytest.mark.parametrize(
    ("method", "data", "problem"),
    [
        (zipfile.ZIP_DEFLATED, b"\xff" * 600, "unreadable_file"),  # zlib.error
        (zipfile.ZIP_BZIP2, bz2.compress(bytes(1 << 22)), "unsafe_archive"),  # all of it comes, whatever the size says
        (zipfile.ZIP_LZMA, b"\t\4\5\0]" + b"\xff" * 600, "unsafe_archive"),
        (99, b"x", "unsafe_archive"),
    ],
)
def test_an_archive_that_is_broken_or_packed_in_a_rare_way_stops_nobody_else(method, data, problem, tmp_path):
    (tmp_path / "Eve.zip").write_bytes(packed(b"x.ipynb", method, data, 6000))
    (tmp_path / "Ada.ipynb").write_bytes(sheet())
    ada, eve = read_all(tmp_path)
    assert (ada.notebook("quick")[2], eve.notebook("quick")[2]) == ("", problem)


def overlapped(count):
    """A zip whose members of 10 MB share the same compressed bytes, which no compression ratio reveals."""
    data = b"{" + np.random.default_rng(0).bytes(70_000) + b" " * 9_900_000 + b"}"
    deflate = zlib.compressobj(wbits=-15)
    squeezed = deflate.compress(data) + deflate.flush()
    name, sizes = b"x.ipynb", (zlib.crc32(data), len(squeezed), len(data), 7)
    start = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 0, *sizes, 0) + name + squeezed
    entry = struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 8, 0, 0, *sizes, 0, 0, 0, 0, 0, 0) + name
    return (
        start
        + count * entry
        + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, count * len(entry), len(start), 0)
    )


def test_an_archive_that_tells_the_same_bytes_many_times_is_not_unpacked(tmp_path, monkeypatch):
    """990 members of 10 MB would keep the grader busy for half a minute."""
    opened = []
    monkeypatch.setattr(
        "subnorm_classroom.grading.archives.read_member", lambda archive, info: opened.append(info) or b""
    )
    (tmp_path / "Eve.zip").write_bytes(overlapped(990))
    (tmp_path / "class").mkdir()
    (tmp_path / "class/Eve.zip").write_bytes((tmp_path / "Eve.zip").read_bytes())
    (tmp_path / "class/Ada.ipynb").write_bytes(sheet())
    assert [one.notebook("quick")[2] for one in read_all(tmp_path / "class")] == ["", "unsafe_archive"]
    assert {one.notebook("quick")[2] for one in read_all(tmp_path / "Eve.zip")} == {"unsafe_archive"}
    assert opened == []


def test_copies_of_one_notebook_are_read_up_to_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(submissions, "MOST_BYTES", 3 * len(sheet()))
    for student, copies in (("Ada", 4), ("Eve", 5)):
        (tmp_path / student).mkdir()
        for k in range(copies):
            (tmp_path / student / f"{k}.ipynb").write_bytes(sheet())
    assert [one.notebook("quick")[2] for one in read_all(tmp_path)] == ["", "too_large"]


def test_a_student_s_archives_are_opened_up_to_a_number(tmp_path):
    for k in range(submissions.MOST_ARCHIVES + 1):
        write_zip(tmp_path / f"{k}.zip", [("x.ipynb", sheet())])
    (tmp_path / "class/Eve").mkdir(parents=True)
    (tmp_path / "class/Ada").mkdir()
    for k in range(submissions.MOST_ARCHIVES + 1):
        (tmp_path / "class/Eve" / f"{k}.zip").write_bytes((tmp_path / f"{k}.zip").read_bytes())
        if k:
            (tmp_path / "class/Ada" / f"{k}.zip").write_bytes((tmp_path / f"{k}.zip").read_bytes())
    assert [one.notebook("quick")[2] for one in read_all(tmp_path / "class")] == ["", "too_many_files"]


def test_a_folder_that_cannot_be_read_stops_nobody_else(tmp_path, monkeypatch):
    (tmp_path / "Eve").mkdir()
    (tmp_path / "Ada.ipynb").write_bytes(sheet())
    monkeypatch.setattr(Path, "iterdir", lambda self: (_ for _ in ()).throw(PermissionError))
    assert [one.notebook("quick")[2] for one in read_all(tmp_path)] == ["", "unreadable_file"]


def test_a_wrong_answer_changes_no_input_of_the_others():
    for ex in grade.SETS["ex01"][:2]:  # their facts call the sublayers, which count it
        cases = draw(ex, 1).cases
        before = [json.dumps(pack_case(case)) for case in cases]
        wrong = [replace(outcome, value=doubled(outcome.value)) for outcome in ex.outcomes(ex.reference, cases)]
        assert "should also be true" in verdict(ex, cases, wrong)[1]
        assert [json.dumps(pack_case(case)) for case in cases] == before


def doubled(value):
    """The same form, other numbers."""
    return [doubled(item) for item in value] if isinstance(value, list) else np.asarray(value) * 2 + 1


@pytest.mark.parametrize("unit", ["import from ", "from torch import (", "getattr(x", "attrgetter('"])
def test_flags_are_found_in_one_reading_of_a_long_line(unit):
    def seconds(words):  # of this thread, whatever else the machine does
        begun = time.thread_time()
        assert "imports os" in flags_of([Cell(1, (), "#" + unit * words + "\nimport os")])
        return time.thread_time() - begun

    assert seconds(4000) < 24 * (seconds(500) + 0.01)  # in one reading it takes 8 times as long; else 64 times


def test_tags_that_mean_nothing_are_not_kept():
    data = json.dumps({"cells": [{**cell("layer_norm", "setup"), "metadata": {"tags": ["setup", *"x" * 1000]}}]})
    assert cells_of(data.encode(), "quick", ["layer_norm"])[0].tags == ("setup",)


def test_a_name_that_was_made_to_collide_has_files_of_its_own():
    taken = file_names(["a:b", "a?b"])["a?b"]
    names = file_names([taken.replace("a_", "a*"), "a:b", "a?b"])
    assert len(set(names.values())) == 3


def test_a_file_name_does_not_change_whose_it_is_on_moodle(tmp_path):
    name = "Eve_1_assignsubmission_file_Ada_2_assignsubmission_file_x.ipynb"
    (tmp_path / name).write_bytes(sheet())
    assert [one.student for one in read_all(tmp_path)] == ["Eve_1"]
