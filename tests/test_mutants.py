"""tools/mutants.py on a checkout of one file, whose tests miss a fault, leave a process, and may not end."""

import json
import os
import re
import signal
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers import requirements
from packaging.utils import canonicalize_name

from tools import mutants

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which Windows has not")
needs_cosmic_ray = pytest.mark.skipif(
    find_spec("cosmic_ray") is None, reason="needs cosmic-ray: pip install -r requirements-mutants.txt"
)

SMALL = """def bigger(a: int | None, b: int):
    return a if a > b else b


def count_down(n):
    while n > 0:
        n -= 1
    return n
"""
TESTS = """import pathlib, subprocess, sys
import small

def test_bigger():
    for alone in (False, True):
        left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=alone)
        with open(pathlib.Path.home() / "left.txt", "a") as file:
            print(left.pid, file=file)
    assert small.bigger(2, 1) == 2

def test_count_down():
    assert small.count_down(3) == 0
"""
COMMAND = """import json, sys
from pathlib import Path
from tools import course, mutants

course.ROOT = Path(sys.argv.pop(1))
mutants.RECORD = course.ROOT / "book" / "mutants.json"
mutants.PARTS = {"part": {"small.py": ["test_small.py"]}}
mutants.PRELOADED = ()
mutants.LEAST = 1
if changes := json.loads(sys.argv.pop(1)):
    text = (course.ROOT / "small.py").read_text()
    mutants.mutants = lambda file: [
        mutants.Mutant(file, 1 + text[: text.index(was)].count(chr(10)), "", was, now, text.replace(was, now))
        for was, now in changes
    ]
mutants.main()
"""


@pytest.fixture
def small(tmp_path):
    """Runs the command on the small checkout, with our own mutants or those of cosmic-ray; gives the record."""
    (tmp_path / "book").mkdir()
    (tmp_path / "small.py").write_text(SMALL)
    (tmp_path / "test_small.py").write_text(TESTS)

    def small(*words, changes=(), status=0):
        env = {**os.environ, "HOME": str(tmp_path)}
        command = [sys.executable, "-c", COMMAND, tmp_path, json.dumps(changes), *words]
        done = subprocess.run(command, cwd=mutants.course.ROOT, env=env, capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        assert (tmp_path / "small.py").read_text() == SMALL
        return (
            done.stderr if status else json.loads((tmp_path / "book" / "mutants.json").read_text())["files"]["small.py"]
        )

    return small


def test_a_fault_that_no_test_notices_is_in_the_record(small):
    entry = small(changes=[("a > b", "a >= b"), ("a > b", "a < b")])
    assert (entry["mutants"], entry["tried"], entry["late"]) == (2, 2, 0)
    assert entry["survivors"] == [{"line": 2, "function": "", "was": "a > b", "now": "a >= b"}]


def test_a_fault_that_never_ends_is_noticed(small):
    entry = small(changes=[("n -= 1", "n += 1")])
    assert (entry["tried"], entry["late"], entry["survivors"]) == (1, 1, [])


def test_what_a_test_leaves_running_is_ended(small, tmp_path):
    small(changes=[("a > b", "a < b")])
    left = [int(line) for line in (tmp_path / "left.txt").read_text().split()]
    assert len(left) >= 4
    for process in left:
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout
        assert state[:1] in ("", "Z"), "it runs"  # a zombie is dead, and waits for its parent


def test_a_test_that_waits_for_ever_is_ended(tmp_path):
    code = (
        "import time; from pathlib import Path; from tools import mutants; mutants.WAITING = 0.1; "
        f"mutants.Listener({{}}, Path({str(tmp_path)!r})).pytest_runtest_logstart('a test'); time.sleep(600)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=mutants.course.ROOT)
    assert done.returncode == -signal.SIGALRM


def test_the_fast_tests_come_first_with_what_their_fixtures_cost(tmp_path):
    (tmp_path / "test_order.py").write_text(
        "import time, pytest\n\n"
        "@pytest.fixture(scope='module')\ndef slow(): time.sleep(0.3)\n\n"
        "def test_a(slow): pass\n\ndef test_b(slow): pass\n\n"
        "def test_c(): time.sleep(0.1)\n\ndef test_d(): pass\n"
    )
    costs = mutants.Run(tmp_path, ["test_order.py"]).wait()["costs"]
    names = [name for _, _, name in (test.rpartition("::") for test in sorted(costs, key=lambda test: costs[test]))]
    assert names[:2] == ["test_d", "test_c"]
    items = [SimpleNamespace(nodeid=test) for test in costs]
    mutants.Listener(costs, tmp_path / "report.json").pytest_collection_modifyitems(items)
    assert [item.nodeid.rpartition("::")[2] for item in items] == names


def test_tests_that_fail_anyway_stop_the_command(small, tmp_path):
    (tmp_path / "test_small.py").write_text("def test_wrong(): assert 0")
    assert "This fails without any mutant: test_small.py::test_wrong" in small(changes=[("a", "b")], status=1)


def test_a_survivor_that_a_new_test_notices_names_it(small, tmp_path):
    changes = [("return n", "return n + 0"), ("a > b", "a >= b"), ("a > b", "b < a or a > 5")]
    assert len(small(changes=changes)["survivors"]) == 3
    path = tmp_path / "book" / "mutants.json"
    record = json.loads(path.read_text())
    record["files"]["small.py"]["survivors"][0]["equivalent"] = "two equal numbers"
    path.write_text(json.dumps(record))
    more = "\n\ndef test_more():\n    assert small.bigger(6, 7) == 7\n"
    (tmp_path / "test_small.py").write_text(TESTS + more)
    entry = small("--survivors", changes=changes)
    verdicts = {row["now"]: (row.get("equivalent"), row.get("killed")) for row in entry["survivors"]}
    assert verdicts == {
        "a >= b": ("two equal numbers", None),
        "b < a or a > 5": (None, "test_small.py::test_more"),
        "return n + 0": (None, None),
    }
    assert entry["again"]["date"] >= entry["date"]
    again = small(changes=changes)["survivors"]
    assert [row.get("equivalent") for row in again] == ["two equal numbers", None]


@needs_cosmic_ray
def test_cosmic_ray_makes_the_faults(small):
    entry = small()
    assert {"line": 2, "function": "bigger", "was": "return a if a > b else b", "now": "return a if a >= b else b"} in (
        entry["survivors"]
    )
    assert entry["mutants"] > 10
    assert entry["late"] > 0
    assert not [row for row in entry["survivors"] if row["line"] == 1], "the type in the signature"


@needs_cosmic_ray
def test_an_exception_of_a_module_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants.course, "ROOT", tmp_path)
    (tmp_path / "small.py").write_text("try:\n    x = 1 + 2\nexcept (ValueError, csv.Error):\n    x = 0\n")
    found = {mutant.now for mutant in mutants.mutants("small.py")}
    assert {"x = 1 - 2", "except (CosmicRayTestingException, csv.Error):"} <= found


@needs_cosmic_ray
def test_a_fault_is_found_again_after_other_lines_have_moved(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants.course, "ROOT", tmp_path)
    (tmp_path / "small.py").write_text(SMALL)
    before = mutants.mutants("small.py")
    (tmp_path / "small.py").write_text("import os\n\n" + SMALL)
    after = mutants.mutants("small.py")
    assert [mutant.place for mutant in before] == [mutant.place for mutant in after]
    assert [mutant.line + 2 for mutant in before] == [mutant.line for mutant in after]


@needs_cosmic_ray
def test_every_package_that_cosmic_ray_brings_is_pinned():
    text = (mutants.course.ROOT / "constraints.txt").read_text("utf-8")
    pins = {canonicalize_name(name): number for name, number in re.findall(r"(?m)^([\w.-]+)==(\S+)$", text)}
    found = requirements.packages("requirements-mutants.txt")
    assert len(found) > 20
    assert {name: number for name in found if pins.get(name) != (number := version(name))} == {}


def test_only_the_lines_of_a_change_are_kept():
    assert mutants.changed_lines("a\n  b\n  c\nd", "a\n  b\n  x\nd") == ("c", "x")
    assert mutants.changed_lines("@f\ndef g(): 1", "def g(): 1") == ("@f", "")
    assert mutants.changed_lines("a\na\na", "a\na") == ("a", "")


def test_a_sample_is_the_same_each_time(monkeypatch):
    found = [mutants.Mutant("a.py", k, "", "", "", "") for k in range(50)]
    monkeypatch.setattr(mutants, "AT_MOST", {"a.py": 20, "b.py": 20})
    chosen = mutants.drawn(found, "a.py")
    assert len(set(chosen)) == 20
    assert chosen == mutants.drawn(found, "a.py") != mutants.drawn(found, "b.py")
    assert mutants.drawn(found[:20], "a.py") == found[:20]
    assert mutants.drawn(found, "c.py") == found


@pytest.mark.parametrize("part", mutants.PARTS)
def test_the_files_and_tests_of_a_part_are_there(part):
    for file, tests in mutants.PARTS[part].items():
        for name in (file, *tests):
            assert Path(mutants.course.ROOT, name).is_file(), name


def test_the_slow_tests_that_are_left_out_are_there():
    for file, names in mutants.SLOW.items():
        text = Path(mutants.course.ROOT, file).read_text("utf-8")
        assert [name for name in names if f"def test_{name}(" not in text] == []
