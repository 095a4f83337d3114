"""Parts of the program inside the sandbox, without a sandbox."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from subnorm_classroom.grading import child

SAYS = """
import os, sys
from subnorm_classroom.grading import child
say = child.take_streams()
print("printed", flush=True)
os.system("echo by a program; echo an error >&2")
os.write(2, b"an error")
say(read=sys.stdin.read(), long="x" * 100_000)
"""


def test_only_messages_leave_the_process():
    done = subprocess.run([sys.executable, "-c", SAYS], input="the job", capture_output=True, text=True, check=True)
    assert done.stdout == f'{{"read": "", "long": "{"x" * 100_000}"}}\n'
    assert done.stderr == ""


@pytest.mark.parametrize(("hard", "limit"), [(-1, 5), (3, 3), (9, 5)])
def test_a_limit_is_never_raised(hard, limit, monkeypatch):
    made = {}

    def setrlimit(number, limits):
        if number == 1:
            raise ValueError  # as macOS does
        made[number] = limits

    numbers = {"RLIM_INFINITY": -1, "RLIMIT_AS": 1, "RLIMIT_CPU": 2}
    known = SimpleNamespace(**numbers, getrlimit=lambda number: (hard, hard), setrlimit=setrlimit)
    monkeypatch.setitem(sys.modules, "resource", known)
    child.limit_myself({"NEW": 1, "AS": 5, "CPU": 5})
    assert made == {2: (limit, limit)}


def test_a_system_without_limits_has_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    child.limit_myself({"CPU": 5})


def test_the_checks_of_the_package_do_nothing():
    checks = child.Stub("subnorm_lab.checks")
    assert checks.layer_norm(print) is checks.progress() is True
    assert not hasattr(checks, "__wrapped__")


def test_a_long_error_is_cut():
    said = []
    child.run_cell(7, "raise KeyError('x' * 400)", False, {}, lambda **message: said.append(message))
    assert said == [{"cell_error": 7, "error": "KeyError", "message": "'" + "x" * 299, "module": ""}]
