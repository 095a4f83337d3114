"""What a process in the sandbox can see of the machine, and how the grader treats its answers."""

import errno
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from classroom.hand_ins import PATIENT
from helpers.parts import need

from subnorm_classroom.grading import calls, sandbox, wire
from subnorm_classroom.grading.assignments import draw
from subnorm_classroom.grading.canary import CANARY
from subnorm_classroom.grading.cells import Cell
from subnorm_classroom.grading.sandbox import Limits, NoSandbox, Sandbox
from subnorm_classroom.grading.verdict import verdict
from subnorm_lab.checks.collect import Case, Device, Outcome, Sublayer

known = pytest.mark.skipif(not calls.program(), reason="the system calls of this machine are not known")
DTYPES = ["float16", "bfloat16", "float32", "float64"]
LOOK = """
import os, sys
def look(x):
    found = {{}}
    {body}
    return found
"""


def ask(box, body, *args, torch=False, seconds=3000):
    """The result of a function with this body in the sandbox, or how it ended."""
    source = LOOK.format(body=body.strip().replace("\n", "\n    "))
    job = {"torch": torch, "cells": [[1, [], source]], "questions": [["look", "function", [["one", [*args, None]]]]]}
    heard = []
    ending = box.run(job, heard.append, time.monotonic() + seconds)
    outcomes = [wire.unpack_outcome(message["attempts"][0][0]) for message in heard if "answer" in message]
    if not outcomes:
        return ending
    return outcomes[0].value if not outcomes[0].error else outcomes[0]


def value(box, expression):
    return ask(box, f"import os, sys\nfound = {expression}")


def test_the_environment_and_the_user_are_nobody_s(box, monkeypatch):
    monkeypatch.setenv("TOKEN", "secret")
    assert "TOKEN" not in value(box, "dict(os.environ)")
    assert value(box, "[os.getuid(), os.getgid(), os.getpid() < 5]") == [65534, 65534, True]


@pytest.mark.slow
def test_there_is_no_home_no_course_no_other_process_and_no_package(tmp_path, monkeypatch):
    """Even if the packages are in a folder named like the course, as in a clone with the default name."""
    need("bwrap")
    site = tmp_path / "my subnorm é" / "packages"
    shutil.copytree(sandbox.COURSE / "subnorm_lab/checks", site / "subnorm_lab/checks")
    (site / "other.py").write_text("")
    monkeypatch.setattr(sandbox, "installed_in", lambda real=sandbox.installed_in: [*real(), str(site)])
    with Sandbox(limits=PATIENT) as box:
        assert set(value(box, "os.listdir('/')")) <= {
            "bin", "dev", "etc", "grader", "lib", "lib32", "lib64", "proc", "sys", "tmp", "usr",
            *(path.parts[1] for path in [Path(sys.base_prefix).resolve(), *box.packages]),
        }  # fmt: skip
        assert value(box, "[n for _, names, files in os.walk('/proc') for n in names + files]") == ["cpuinfo"]
        assert set(value(box, "[os.path.join(r, n) for r, _, names in os.walk('/sys') for n in names]")) <= {
            *sandbox.CPU
        }
        assert value(box, f"os.path.exists({str(site / 'other.py')!r})") is True
        assert sorted(of_the_package(box)) == [
            "/grader/subnorm_classroom/grading/calls.py", "/grader/subnorm_classroom/grading/child.py",
            "/grader/subnorm_classroom/grading/shell.py", "/grader/subnorm_classroom/grading/wire.py",
            "/grader/subnorm_lab/checks/collect.py",
        ]  # fmt: skip


def of_the_package(box):
    """The files inside that are ours: "subnorm" is in their path below Python's folders, not only above them."""
    body = """
roots = sorted(map(os.path.realpath, ROOTS), key=len, reverse=True)
found = []
for folder, _, names in os.walk("/"):
    root = next((root for root in roots if (folder + "/").startswith(root + "/")), "")
    found += [f"{folder}/{name}" for name in names if "subnorm" in f"{folder[len(root):]}/{name}"]
"""
    roots = [sys.base_prefix, *map(str, box.packages)]
    found = ask(box, f"import os\nROOTS = {roots!r}\n{body.strip()}")
    return [path for path in found if "__editable__" not in path and "dist-info" not in path]


def test_a_package_that_is_installed_and_not_editable_is_covered(tmp_path, monkeypatch):
    need("bwrap")
    site = tmp_path / "site"
    shutil.copytree(sandbox.COURSE / "subnorm/numpy", site / "subnorm/numpy")
    (site / "class").mkdir()
    (site / "class/Ada.ipynb").write_text("{}")
    (site / "class.zip").write_text("secret")
    (site / "other.py").write_text("")
    monkeypatch.setattr(sandbox, "installed_in", lambda real=sandbox.installed_in: [*real(), str(site)])
    with Sandbox(limits=PATIENT, hidden=[site / "class", site / "class.zip"]) as box:
        listed = value(box, f"[os.listdir(os.path.join({str(site)!r}, n)) for n in ('.', 'subnorm', 'class')]")
        assert set(listed[0]) == {"subnorm", "class", "class.zip", "other.py"}
        assert listed[1:] == [[], []]
        assert ask(box, f"open({str(site / 'class.zip')!r}).read()").error == "PermissionError"


def test_only_tmp_can_be_written_to_and_it_is_small(box):
    body = """
places = ["/", "/dev", "/dev/shm", "/usr", "/grader", "/etc", "/bin", os.path.dirname(os.__file__), "/tmp"]
for place in places:
    try:
        with open(place + "/planted", "w") as file:
            file.write("x")
        found[place] = True
    except OSError:
        found[place] = False
total = 0
try:
    for k in range(60):
        with open(f"/tmp/{k}", "wb") as file:
            total += file.write(bytes(4 << 20))
except OSError:
    pass
found["total"] = total
"""
    found = ask(box, body)
    assert [place for place, written in found.items() if written is True] == ["/tmp"]
    assert found["total"] <= PATIENT.scratch


def test_a_process_that_is_stopped_is_heard_out(box, monkeypatch):
    """Messages sent before a process ends show how far it got, even if the grader reads them late."""
    monkeypatch.setattr(sandbox, "excess", lambda pid, limits: wait_for_here(pid) or "processes")
    ending = ask(box, "open('/tmp/here', 'w').close()\nwhile True:\n    pass")
    assert (ending.how, ending.at, ending.which) == ("processes", "question", "look")


def wait_for_here(pid):
    """Wait until the program of a sandbox has made /tmp/here."""
    while not any(Path(f"/proc/{number}/root/tmp/here").exists() for number in sandbox.tree(pid)[2:]):
        time.sleep(0.05)


def test_a_student_s_file_is_gone_for_the_next_one(box):
    body = 'found = os.path.exists("/tmp/mine")\nopen("/tmp/mine", "w").close()'
    assert ask(box, body) is ask(box, body) is False


def test_there_is_no_network(box):
    body = """
import socket
for number in range(1, 200):
    try:
        found[socket.if_indextoname(number)] = number
    except OSError:
        pass
"""
    assert set(ask(box, body)) <= {"lo"}
    # test_hostile.py tests the loopback device of this machine


@known
def test_no_socket_reaches_out_not_even_of_a_family_without_namespaces(box):
    body = """
import socket
for family in range(46):
    for make in (socket.socket, socket.socketpair):
        try:
            make(family, socket.SOCK_DGRAM)
            found[f"{make.__name__} {family}"] = "made"
        except OSError as error:
            found[f"{make.__name__} {family}"] = error.errno
"""
    found = ask(box, body)
    assert {name for name, what in found.items() if what == "made"} == {"socket 1", "socketpair 1"}
    assert {what for what in found.values() if what != "made"} == {errno.EAFNOSUPPORT}


@known
def test_no_process_reads_or_steers_another(box):
    """The kernel allows a process each of these calls on itself, so only the filter can refuse them."""
    body = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
seen, copy = ctypes.create_string_buffer(b"seen"), ctypes.create_string_buffer(5)
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
one, other = (Part(ctypes.addressof(buffer), 5) for buffer in (seen, copy))
def tried(result):
    return [result, ctypes.get_errno()]
mine = os.pidfd_open(os.getpid())
for name in ("process_vm_readv", "process_vm_writev"):
    found[name] = tried(getattr(libc, name)(os.getpid(), ctypes.byref(other), 1, ctypes.byref(one), 1, 0))
found["pidfd_getfd"] = tried(libc.syscall(438, mine, 0, 0))
if os.fork() == 0:
    os._exit(libc.ptrace(0, 0, 0, 0) == 0)
found["ptrace itself"] = os.wait()[1]
found["ptrace pid 1"] = tried(libc.ptrace(0x4206, 1, 0, 0))
"""
    refused = [-1, errno.EPERM]
    assert ask(box, body) == {
        "process_vm_readv": refused, "process_vm_writev": refused, "pidfd_getfd": refused, "ptrace itself": 0,
        "ptrace pid 1": refused,
    }  # fmt: skip


# Test as an ordinary user too: root's rights differ from those of a teacher's account.

WATCH = r"""
import json, sys, threading, time
from dataclasses import replace
from pathlib import Path
sys.path[:0] = SEEN_FROM
from subnorm_classroom.grading import sandbox
from subnorm_classroom.grading.sandbox import Limits, Sandbox

started, asked = [], {}

def excess(pid, limits):
    started.append(pid)
    return ""

def watch():
    while not asked:
        for number in sandbox.tree(started[0]) if started else []:
            status = Path(f"/proc/{number}/status").read_text()
            inside = dict(line.split(":", 1) for line in status.splitlines())
            if len(inside["NSpid"].split()) == 2:
                limits = Path(f"/proc/{number}/limits").read_text()
                lines = {line[:26].strip(): line[26:].split()[:2] for line in limits.splitlines()}
                seen[inside["NSpid"].split()[1]] = [inside["Seccomp"].strip(), lines]
        time.sleep(0.01)

sandbox.excess = excess
seen = {}
watcher = threading.Thread(target=watch, daemon=True)
watcher.start()
job = {"torch": False, "cells": [[1, [], "def look(x):\n    import time\n    time.sleep(2)\n    return 3"]],
       "questions": [["look", "function", [["one", [None]]]]]}
with Sandbox(limits=Limits(start=600, question=600, total=3000)) as box:
    box.run(job, lambda message: asked.update(message) if "answer" in message else None, time.monotonic() + 3000)
watcher.join()
print(json.dumps([asked["attempts"][0][0][0], seen]))
"""


def as_oneself():
    need("bwrap")
    return [sys.executable]


def as_an_ordinary_user():
    need("bwrap")
    return shlex.split(need("ordinary user"))


@known
@pytest.mark.parametrize("who", [as_oneself, as_an_ordinary_user], ids=["oneself", "an ordinary user"])
@pytest.mark.slow
def test_every_process_inside_has_the_filter_and_the_limits_pid_1_too(who):
    code = WATCH.replace("SEEN_FROM", repr([str(sandbox.COURSE), *sandbox.installed_in()]))
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}
    done = subprocess.run([*who(), "-c", code], env=environment, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer, seen = json.loads(done.stdout)
    assert answer == 3
    assert {"1", "2"} <= set(seen)
    wanted = Limits()
    for pid, (seccomp, limits) in seen.items():
        assert seccomp == "2", pid
        assert limits["Max address space"] == [str(wanted.address)] * 2, pid
        assert limits["Max file size"] == [str(wanted.file)] * 2, pid
        assert limits["Max open files"] == [str(wanted.open_files)] * 2, pid
        assert limits["Max core file size"] == ["0", "0"], pid


def test_no_namespace_can_be_made_inside(box):
    body = """
import ctypes
found = ctypes.CDLL(None, use_errno=True).unshare(0x10000000)
"""
    assert ask(box, body) == -1


def test_the_kernel_limits_each_process(box):
    wanted = {"CORE": 0, "FSIZE": PATIENT.file, "NOFILE": PATIENT.open_files, "AS": PATIENT.address}
    body = f"""
import resource
for name in {list(wanted)}:
    found[name] = resource.getrlimit(getattr(resource, "RLIMIT_" + name))[1]
"""
    assert ask(box, body) == wanted


@known
def test_memory_that_no_process_s_size_shows_cannot_be_had(box):
    body = """
import ctypes, mmap
call = ctypes.CDLL(None, use_errno=True)
found["shmget"] = call.shmget(0, ctypes.c_size_t(4096), 0o1600)
found["msgget"] = call.msgget(0, 0o1600)
for name, make in [("memfd", lambda: os.memfd_create("x")), ("shared", lambda: mmap.mmap(-1, 4096)),
                   ("private", lambda: mmap.mmap(-1, 4096, mmap.MAP_PRIVATE))]:
    try:
        make()
        found[name] = 0
    except OSError:
        found[name] = -1
"""
    assert ask(box, body) == {"shmget": -1, "msgget": -1, "memfd": -1, "shared": -1, "private": 0}


@known
def test_the_mode_of_a_file_stays_for_a_device_is_the_machine_s_own(box):
    body = """
open("/tmp/x", "w").close()
before = os.stat("/tmp/x").st_mode
os.chmod("/tmp/x", 0)
with open("/tmp/x") as file:
    os.fchmod(file.fileno(), 0)
found = os.stat("/tmp/x").st_mode == before
"""
    assert ask(box, body) is True


def test_very_many_empty_files_are_too_much_memory(box):
    assert ask(box, "k = 0\nwhile True:\n    k += 1\n    open(f'/tmp/{k}', 'w').close()").how == "memory"


def test_a_burst_of_processes_is_refused_or_ended_together(box):
    burst = ask(box, "while True:\n    os.fork()")
    if isinstance(burst, Outcome):  # the kernel counts an ordinary user's processes
        assert burst.error == "BlockingIOError"
    else:
        assert (burst.how, burst.at, burst.which) == ("processes", "question", "look")


def test_memory_of_all_processes_together_is_limited(box):
    body = """
for _ in range(4):
    if os.fork() == 0:
        break
keep = bytearray(200 << 20)
__import__("time").sleep(3600)
"""
    assert ask(box, body).how == "memory"


@pytest.mark.slow
def test_time_is_limited_for_each_question_and_in_all(box):
    with Sandbox(limits=replace(PATIENT, question=1)) as brief:
        ending = ask(brief, "__import__('time').sleep(3600)")
        assert (ending.how, ending.at, ending.which) == ("timeout", "question", "look")
    assert ask(box, "__import__('time').sleep(3600)", seconds=1).how == "timeout"


@pytest.mark.slow
def test_torch_computes_in_every_dtype():
    """Without the CPU information, half.float() and many other calls raise a RuntimeError."""
    need("bwrap")
    body = """
import torch
from torch.nn.functional import layer_norm, rms_norm
dtypes = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
for dtype in dtypes:
    x = torch.ones(2, 4, dtype=dtype)
    found[str(dtype)] = [float(x.to(other).to(dtype).sum()) for other in dtypes] + [
        float((2 * x.float()).to(dtype).sum()), float(x.half().float().sum()), float(8 * x.mean()),
        float(x.sum()), float((x @ x.T).sum() / 2), float(rms_norm(x, (4,)).sum().round()),
        float(8 + layer_norm(x, (4,)).sum()),
    ]
"""
    with Sandbox(limits=replace(Limits(), start=600, cell=600, question=600, total=3000)) as box:
        found = ask(box, body, torch=True)
    assert found == {f"torch.{name}": [8.0] * 4 + [16.0] + [8.0] * 6 for name in DTYPES}


@pytest.mark.slow
def test_a_clear_message_where_the_package_would_be(box):
    outcome = ask(box, "from subnorm.numpy import layer_norm")
    assert outcome.error == "ModuleNotFoundError"
    assert "write the function yourself" in outcome.message
    assert value(box, "__import__('subnorm_lab').checks.layer_norm(print).tag") == "right"
    assert ask(box, "from subnorm_lab.checks.collect import Device\nfound = Device(2.0, [1.0]).launch") == 2.0


def test_no_bubblewrap_is_a_refusal_with_the_fix(monkeypatch):
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    with pytest.raises(NoSandbox, match=r"apt install bubblewrap.*--no-sandbox"), Sandbox():
        pass
    with pytest.MonkeyPatch.context() as windows:
        windows.delattr(sandbox.select, "poll")
        with pytest.raises(NoSandbox, match="WSL"), Sandbox(isolated=False):
            pass
    with Sandbox(isolated=False) as open_box:
        assert open_box.folder.exists()
    assert not open_box.folder.exists()


def test_a_python_that_does_not_start_inside_is_a_refusal(monkeypatch):
    need("bwrap")
    monkeypatch.setattr(sandbox, "installed_in", lambda: [])
    with pytest.raises(NoSandbox, match="does not start"), Sandbox():
        pass


def test_a_python_among_the_teacher_s_files_is_a_refusal(tmp_path, monkeypatch):
    need("bwrap")
    monkeypatch.setattr(sandbox, "installed_in", lambda real=sandbox.installed_in: [*real(), str(tmp_path)])
    monkeypatch.setenv("HOME", str(tmp_path / "teacher"))
    with pytest.raises(NoSandbox, match="so is your home"), Sandbox():
        pass


@pytest.mark.parametrize("fails", ["mkdtemp", "TemporaryFile"])
def test_a_full_temporary_folder_is_a_sentence(fails, monkeypatch, tmp_path):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    need("bwrap")
    monkeypatch.setattr(sandbox.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sandbox.tempfile, fails, full)
    with pytest.raises(NoSandbox, match=r"temporary folder .* cannot be used: No space left.*TMPDIR"), Sandbox() as box:
        value(box, "1")
    assert list(tmp_path.iterdir()) == []


# What goes over the wire.

VALUES = [
    None, True, 3, 2.5, "text", ..., [1, (2, [3.0])], {"a": (1, None), "b": {}}, np.arange(6.0).reshape(2, 3).T,
    np.float16([1, 2]), np.array(3), np.float32(2), np.array([True, False]), np.zeros((0, 3)), 10**30,
    np.arange(4, dtype=">f8"),
]  # fmt: skip


@pytest.mark.parametrize("sent", VALUES, ids=repr)
def test_a_value_comes_back_as_it_was(sent):
    back = wire.unpack(json.loads(json.dumps(wire.pack(sent))))
    assert type(back) is type(sent)
    np.testing.assert_equal(back, sent)
    if isinstance(sent, np.ndarray | np.generic):
        assert back.dtype == sent.dtype.newbyteorder("=")


def test_functions_among_the_inputs_come_back_and_are_never_taken_from_a_student():
    case = Case("a", (Sublayer("linear", np.eye(2)), Device(1e-6, [1.0, 2.0]), {"k": 1}))
    sent = json.loads(json.dumps(wire.pack_case(case)))
    layer, device, rest = wire.unpack_case(sent).args
    np.testing.assert_array_equal(layer(np.ones(2)), np.ones(2))
    assert (device, rest) == (Device(1e-6, [1.0, 2.0]), {"k": 1})
    with pytest.raises(ValueError, match="not a value"):
        wire.unpack(sent[1])


GOOD_BYTES = "AAAAAAAA8D8="
FORGED = [
    {"dtype": "object", "shape": [1], "bytes": GOOD_BYTES},
    {"dtype": "float64", "shape": [2], "bytes": GOOD_BYTES},
    {"dtype": "float64", "shape": [10**6, 10**6], "bytes": GOOD_BYTES},
    {"dtype": "float64", "shape": [10**6, 10**6, 0], "bytes": ""},
    {"dtype": "float64", "shape": [-1, -1], "bytes": GOOD_BYTES},
    {"dtype": "float64", "shape": [True], "bytes": GOOD_BYTES},
    {"dtype": "float64", "shape": [1.0], "bytes": GOOD_BYTES},
    {"dtype": "float64", "shape": [1] * 40, "bytes": GOOD_BYTES},
    {"dtype": "float64", "shape": [1], "bytes": "not base64!"},
    {"dtype": "float64", "shape": [1], "bytes": 5},
    {"dtype": ["float64"], "shape": [1], "bytes": GOOD_BYTES},
    {"dict": [["a"]]}, {"dict": [[1, 2]]}, {"tuple": 3}, {"scalar": 3}, {"stand_in": "Sublayer", "parts": {}},
    {"pickle": "gASVBAAAAAAAAABLAi4="}, {},
]  # fmt: skip


@pytest.mark.parametrize("data", FORGED, ids=str)
def test_what_is_no_value_is_refused(data):
    with pytest.raises(ValueError, match=r"."):
        wire.unpack(data)


OUTCOMES = [1, [], [1, "", "", 0, False], [1, "", "", 0, False, [True], [], ""], [1, "", "", -1, False, [], [], ""],
            [1, "E" * 200, "", 0, False, [], [], ""], [1, "", "", 0, 0, [], [], ""], [1, "", "", 0, False, [], [1], ""],
            [1, None, "", 0, False, [], [], ""], [1, "", "", 0, False, [], [], "m" * 200]]  # fmt: skip


@pytest.mark.parametrize("data", OUTCOMES, ids=str)
def test_what_is_no_outcome_is_refused(data):
    with pytest.raises(ValueError, match="not an outcome"):
        wire.unpack_outcome(data)


def test_an_outcome_comes_back_and_what_cannot_be_sent_is_an_error():
    sent = Outcome(np.ones(2), "", "", 4, True, [1, 2], ["ValueError"], "einops")
    back = wire.unpack_outcome(json.loads(json.dumps(wire.pack_outcome(sent))))
    assert (back.line, back.changed, back.calls, back.kinds, back.about) == (4, True, [1, 2], ["ValueError"], "einops")
    refused = wire.unpack_outcome(json.loads(json.dumps(wire.pack_outcome(Outcome(print, line=4)))))
    assert (refused.error, refused.line) == ("TypeError", 0)
    assert wire.pack_outcome(Outcome(np.zeros(10**6)))[1] == "MemoryError"
    assert math.isnan(wire.unpack(json.loads(json.dumps(wire.pack(math.nan)))))


def test_a_judge_that_fails_on_a_strange_answer_is_no_point(monkeypatch):
    broken = replace(CANARY, reference=lambda x: 1 / 0 if x is None else 2 * x)
    monkeypatch.setattr(type(broken), "judge", lambda *args: 1 / 0)
    assert verdict(broken, [], [])[0] == "unreadable"


def test_facts_are_looked_for_in_small_results_of_any_form():
    asked = []
    ex = replace(CANARY, facts=[("it is even", lambda y, x: bool(asked.append(y)))])
    cases = draw(ex, 1).cases
    for value, error in [(np.zeros((2001, 1)), ""), ([np.zeros(1001)] * 2, ""), ("%99d" * 999, ""), (None, "KeyError")]:
        assert verdict(ex, cases, [Outcome(value, error)])[0] in ("shape", "type", "error")
    assert asked == []
    for value in (np.zeros((3, 4)), np.zeros((9, 1, 1))):
        assert verdict(ex, cases, [Outcome(value)])[1].endswith("should be true that it is even.")
    assert len(asked) == 2


def test_a_long_text_among_numbers_does_not_make_each_as_long():
    cases = draw(CANARY, 1).cases
    outcomes = [Outcome(["x" * 1000, *([1] * 10_000)])]
    tracemalloc.start()
    assert verdict(CANARY, cases, outcomes)[0] == "type"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20


def test_a_line_that_the_cell_of_the_answer_has_not_is_not_told():
    cases, cells = draw(CANARY, 1).cases, [Cell(1, (), "x = 1\n" * 99), Cell(2, (), "\n" * 6)]
    cells.append(Cell(3, (), "\n\n\n\ndef canary(x):\n\n    return x"))
    for line, told in [(7, True), (8, False), (99, False), (1_234_567, False)]:
        says = verdict(CANARY, cases, [Outcome(error="ValueError", line=line)], cells)[1]
        assert (str(line) in says) is told
