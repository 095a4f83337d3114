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
from tools import checkout, mutants

checkout.ROOT = Path(sys.argv.pop(1))
mutants.TABLE = checkout.ROOT / "mutants.md"
mutants.SURVIVORS = checkout.ROOT / "_build" / "mutants.json"
mutants.PARTS = {"part": {"small.py": ["test_small.py"]}}
mutants.PRELOADED = ()
mutants.LEAST = 1
if changes := json.loads(sys.argv.pop(1)):
    text = (checkout.ROOT / "small.py").read_text()
    mutants.make_mutants = lambda file: [
        mutants.Mutant(file, 1 + text[: text.index(was)].count(chr(10)), was, now, text.replace(was, now))
        for was, now in changes
    ]
mutants.main()
"""


@pytest.fixture
def small(tmp_path):
    """Runs the command on the small checkout, with our own mutants or those of cosmic-ray; gives what it prints."""
    (tmp_path / "small.py").write_text(SMALL)
    (tmp_path / "test_small.py").write_text(TESTS)

    def small(*words, changes=(), status=0):
        env = {**os.environ, "HOME": str(tmp_path)}
        command = [sys.executable, "-c", COMMAND, tmp_path, json.dumps(changes), *words]
        done = subprocess.run(command, cwd=mutants.checkout.ROOT, env=env, capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        assert (tmp_path / "small.py").read_text() == SMALL
        return done.stderr if status else done.stdout

    return small


def row(tmp_path):
    """The numbers of the small file in the table: mutants, tried, noticed."""
    table = (tmp_path / "mutants.md").read_text("utf-8")
    name, *numbers = re.findall(r"(?m)^\| `(.*)` \| (\d+) \| (\d+) \| (\d+) \|.*$", table)[0]
    assert name == "small.py"
    return [int(number) for number in numbers]


def test_a_fault_that_no_test_notices_is_printed_and_counted(small, tmp_path):
    said = small(changes=[("a > b", "a >= b"), ("a > b", "a < b")])
    assert said.startswith("small.py:2: a > b -> a >= b\nsmall.py: 1 of 2 survive, 0 ended by the time limit")
    assert row(tmp_path) == [2, 2, 1]


def test_a_fault_that_never_ends_is_noticed(small, tmp_path):
    assert "0 of 1 survive, 1 ended by the time limit" in small(changes=[("n -= 1", "n += 1")])
    assert row(tmp_path) == [1, 1, 1]


def test_the_table_names_the_content_that_was_tried(small, tmp_path):
    small(changes=[("a > b", "a < b")])
    said = subprocess.run(["git", "hash-object", tmp_path / "small.py"], check=True, capture_output=True, text=True)
    assert f" | {said.stdout[:12]} |\n" in (tmp_path / "mutants.md").read_text("utf-8")


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
    done = subprocess.run([sys.executable, "-c", code], cwd=mutants.checkout.ROOT)
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
    changes = [("return n", "return n + 0"), ("a > b", "b < a or a > 5")]
    small(changes=changes)
    assert row(tmp_path) == [2, 2, 0]
    more = "\n\ndef test_more():\n    assert small.bigger(6, 7) == 7\n"
    (tmp_path / "test_small.py").write_text(TESTS + more)
    said = small("--survivors", changes=changes)
    assert "small.py:2: a > b -> b < a or a > 5\n  noticed by test_small.py::test_more\n" in said
    assert "small.py: 2 tried again, 1 survive" in said
    assert row(tmp_path) == [2, 2, 1]
    assert "small.py: 1 tried again, 1 survive" in small("--survivors", changes=changes)


def test_the_survivors_of_a_file_that_has_changed_are_not_tried(small, tmp_path):
    small(changes=[("a > b", "a >= b")])
    table = tmp_path / "mutants.md"
    table.write_text(re.sub(r"\w+ \|\n$", "0123456789ab |\n", table.read_text("utf-8")))
    assert "no survivors of this content are known" in small("--survivors", changes=[("a > b", "a >= b")])
    assert row(tmp_path) == [1, 1, 0]


@needs_cosmic_ray
def test_cosmic_ray_makes_the_faults(small, tmp_path):
    said = small()
    assert "small.py:2: return a if a > b else b -> return a if a >= b else b\n" in said
    assert row(tmp_path)[0] > 10
    assert " 0 ended by the time limit" not in said
    assert "small.py:1:" not in said, "the type in the signature"


@needs_cosmic_ray
def test_an_exception_of_a_module_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants.checkout, "ROOT", tmp_path)
    (tmp_path / "small.py").write_text("try:\n    x = 1 + 2\nexcept (ValueError, csv.Error):\n    x = 0\n")
    found = {mutant.now for mutant in mutants.make_mutants("small.py")}
    assert {"x = 1 - 2", "except (CosmicRayTestingException, csv.Error):"} <= found


@needs_cosmic_ray
def test_every_package_that_cosmic_ray_brings_is_pinned():
    text = (mutants.checkout.ROOT / "constraints.txt").read_text("utf-8")
    pins = {canonicalize_name(name): number for name, number in re.findall(r"(?m)^([\w.-]+)==(\S+)$", text)}
    found = requirements.packages("requirements-mutants.txt")
    assert len(found) > 20
    assert {name: number for name in found if pins.get(name) != (number := version(name))} == {}


def test_only_the_lines_of_a_change_are_kept():
    assert mutants.changed_lines("a\n  b\n  c\nd", "a\n  b\n  x\nd") == ("c", "x")
    assert mutants.changed_lines("@f\ndef g(): 1", "def g(): 1") == ("@f", "")
    assert mutants.changed_lines("a\na\na", "a\na") == ("a", "")


def test_a_sample_is_the_same_each_time(monkeypatch):
    found = [mutants.Mutant("a.py", k, "", "", "") for k in range(50)]
    monkeypatch.setattr(mutants, "AT_MOST", {"a.py": 20, "b.py": 20})
    chosen = mutants.draw_sample(found, "a.py")
    assert len(set(chosen)) == 20
    assert chosen == mutants.draw_sample(found, "a.py") != mutants.draw_sample(found, "b.py")
    assert mutants.draw_sample(found[:20], "a.py") == found[:20]
    assert mutants.draw_sample(found, "c.py") == found


@pytest.mark.parametrize("part", mutants.PARTS)
def test_the_files_and_tests_of_a_part_are_there(part):
    for file, tests in mutants.PARTS[part].items():
        for name in (file, *tests):
            assert Path(mutants.checkout.ROOT, name).is_file(), name


def test_the_table_is_of_files_that_the_command_tries():
    found = mutants.rows()
    assert found
    assert found.keys() <= {file for part in mutants.PARTS.values() for file in part}
    for file, (made, tried, noticed, *_) in found.items():
        assert int(made) >= int(tried) >= int(noticed) > 0, file
