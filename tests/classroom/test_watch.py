"""How the grader follows a process, here one of ours without a sandbox."""

import contextlib
import io
import math
import subprocess
import sys
import time
from dataclasses import replace
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


@pytest.mark.parametrize(("size", "how"), [(3 * LARGEST, "end"), (4 * LARGEST + LINE, "output")])
def test_there_may_be_two_answers_of_the_largest_size_to_each_question_and_two_more(size, how):
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
        first, second = (Path(message["attempts"][0][0][0]) for message in heard if "answer" in message)
        assert first != second
        assert not {first, second} & {box.folder, Path.cwd()}
        assert not first.exists()
        assert not list(box.folder.rglob("mine"))


SLOW = """
import json, pathlib, time
while not pathlib.Path({on!r}).exists():
    time.sleep(0.01)
for at in ("start", "cell", "start", "end"):
    print(json.dumps(dict(at=at, cell=3)), flush=True)
"""


def test_a_process_that_begins_late_is_waited_for_and_the_teacher_reads_what_helps(tmp_path, monkeypatch):
    """It begins only after the message, when all its time would be over: that counts from its first cell."""
    box = Sandbox(False, replace(PATIENT, start=0, stall=math.inf))
    clock, passed = time.monotonic, [0.0]
    monkeypatch.setattr(sandbox.time, "monotonic", lambda: clock() + passed[0])

    left = [100]

    def look(*_):
        """How the process does, while it waits for the message: without one it would never end."""
        left[0] -= not passed[0]
        assert left[0], "the teacher is not told"
        return ""

    monkeypatch.setattr(sandbox, "excess", look)

    class Stderr(io.StringIO):
        def write(self, text):
            passed[0] = 2 * PATIENT.total
            (tmp_path / "on").touch()
            return super().write(text)

    program = SLOW.format(on=str(tmp_path / "on"))
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
    heard = []
    try:
        with contextlib.redirect_stderr(Stderr()) as said:
            ending = box.follow(process, process.stdout, 1, heard.append, time.monotonic() + PATIENT.total)
    finally:
        end(process)
    assert (ending.how, [message["at"] for message in heard]) == ("end", ["start", "cell", "start", "end"])
    assert "this machine is busy" in said.getvalue()
    assert "--jobs 1" in said.getvalue()


def test_the_teacher_is_told_once_in_a_while(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(sandbox.time, "monotonic", lambda: now[0])
    box = Sandbox(False, replace(PATIENT, start=60))
    for seconds in (61, 62, 120, 121, 122):
        now[0] = seconds
        box.tell_that_it_waits()
    assert capsys.readouterr().err.count("grade: after 60 s, ") == 2


def test_the_first_program_in_the_sandbox_is_waited_for(capsys):
    box = Sandbox(False, replace(PATIENT, start=0.01))
    program = "import os, sys; os.read(0, 1); sys.stderr.write('x')"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as process:
        keyboard, process.stdin = process.stdin, None
        real, wait, told, left = box.tell_that_it_waits, process.communicate, [], [100]

        def communicate(timeout):
            left[0] -= not told
            assert left[0], "the teacher is not told"
            return wait(timeout=timeout)

        def tell():
            real()
            if not told:
                keyboard.write(b"!")
            told.append(1)

        box.tell_that_it_waits, process.communicate = tell, communicate
        with keyboard:  # it ends with its last line
            assert box.patiently(process) == b"x"
    assert "this machine is busy" in capsys.readouterr().err
