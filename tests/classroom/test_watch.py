"""How the grader follows a process, here one of ours without a sandbox."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from classroom.hand_ins import PATIENT

from subnorm_classroom.grading import sandbox
from subnorm_classroom.grading.sandbox import Sandbox, end
from subnorm_classroom.grading.wire import LARGEST

LINE = 1 << 10


def followed(program):
    """How a process with this program ended, and its messages, while one question is asked."""
    heard = []
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
    try:
        until = time.monotonic() + PATIENT.total
        return Sandbox(False, PATIENT).follow(process, process.stdout, 1, heard.append, until), heard
    finally:
        end(process)


@pytest.mark.parametrize(("size", "how"), [(2 * LARGEST, "end"), (3 * LARGEST + LINE, "output")])
def test_there_may_be_an_answer_of_the_largest_size_to_each_question_and_twice_more(size, how):
    line = " " * (LINE - 1) + "\\n"
    ending, _ = followed(f"for _ in range({size // LINE}): print('{line}', end='')\nprint('{{\"at\": \"end\"}}')")
    assert ending.how == how


def test_the_last_place_that_it_told_of_is_where_it_ended():
    told = ['{"at": "cell", "cell": 3}', '{"at": "elsewhere"}', '{"at": "question", "question": "f"}', "[]", "}"]
    ending, heard = followed(f"print({chr(10).join(told)!r})")
    assert (ending.how, ending.at, ending.which) == ("killed", "question", "f")
    assert [message.get("at") for message in heard] == ["cell", "elsewhere", "question", None, None]


def test_the_time_in_which_the_machine_stood_still_does_not_count(tmp_path, monkeypatch):
    """The clock jumps by a day when the first message arrives, and the process goes on."""
    real, jumped = time.monotonic, []
    monkeypatch.setattr(sandbox.time, "monotonic", lambda: real() + 86400 * len(jumped))
    program = f"""
import json, pathlib, time
print(json.dumps(dict(at="cell", cell=3)), flush=True)
while not pathlib.Path({str(tmp_path / "on")!r}).exists():
    time.sleep(0.01)
print(json.dumps(dict(at="end")), flush=True)
"""

    def listen(message):
        if message.get("at") == "cell":
            jumped.append(message)
            (tmp_path / "on").touch()

    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
    try:
        ending = Sandbox(False, PATIENT).follow(process, process.stdout, 1, listen, real() + PATIENT.total)
    finally:
        end(process)
    assert (ending.how, len(jumped)) == ("end", 1)


def test_without_a_sandbox_code_runs_in_a_folder_of_its_own():
    """Not in that of the grader's program, which it could change for the students after it."""
    source = "import os\ndef f(x):\n    open('mine', 'w').close()\n    return os.getcwd()"
    job = {"torch": False, "cells": [[1, [], source]], "questions": [["f", "function", [["one", [None]]]]]}
    heard = []
    with Sandbox(False, PATIENT) as box:
        for _ in range(2):
            assert box.run(job, heard.append, time.monotonic() + PATIENT.total).how == "end"
        first, second = (Path(message["outcomes"][0][0]) for message in heard if "answer" in message)
        assert first != second
        assert not {first, second} & {box.folder, Path.cwd()}
        assert not first.exists()
        assert not list(box.folder.rglob("mine"))
