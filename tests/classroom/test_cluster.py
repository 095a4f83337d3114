"""Grading on a Dask cluster: the bytes of one machine, and nothing lost with a worker or the scheduler.

The cluster is a scheduler and workers of our own on this machine. Tests wait for events: a file, a task, a process.
"""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from classroom.hand_ins import PATIENT, contents, grade_class, notebook
from helpers.parts import need

from subnorm_classroom.errors import Refusal
from subnorm_classroom.grading import grade
from subnorm_classroom.grading.assignments import draw
from subnorm_classroom.grading.cells import solution_of
from subnorm_classroom.grading.running import NotebookLost, RemoteWorkers, run_notebook
from subnorm_classroom.grading.sandbox import COURSE, PACKAGES, Sandbox
from subnorm_lab.checks import SETS

SET = "ex05"
LONG = 300  # seconds until a process that does not answer is given up


def until(happened):
    """Wait for an event, and return what it gives."""
    end = time.monotonic() + LONG
    while not (found := happened()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


class Local:
    """A scheduler and workers on this machine."""

    def __init__(self, folder):
        self.folder, self.processes, self.workers = folder, [], []
        folder.mkdir()
        self.scheduler = self.start("scheduler", "--port", "0", "--scheduler-file", str(folder / "scheduler.json"))
        self.address = until(self.told)

    def told(self):
        with contextlib.suppress(OSError, ValueError):
            return json.loads((self.folder / "scheduler.json").read_text())["address"]

    def start(self, kind, *arguments, **environment):
        code = f"import sys\nfrom distributed.cli.dask_{kind} import main\nsys.exit(main())"
        command = [sys.executable, "-c", code, "--host", "127.0.0.1", "--no-dashboard", *arguments]
        with (self.folder / f"{kind}-{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "TMPDIR": str(self.folder), **environment},
            )  # fmt: skip
        self.processes.append(process)
        return process

    def work(self, **environment):
        """Start a worker, and wait until the scheduler knows it."""
        before = set(self.ask(lambda client: client.nthreads()))
        process = self.start("worker", self.address, "--nthreads", "1", "--no-nanny", **environment)
        at = until(lambda: set(self.ask(lambda client: client.nthreads())) - before)
        self.workers.append((at.pop(), process))
        return process

    def ask(self, question):
        import distributed

        with distributed.Client(self.address, timeout=LONG, set_as_default=False) as client:
            return question(client)

    def end(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture
def local(tmp_path):
    """A function that makes a cluster."""
    need("dask")
    need("bwrap")
    made = []
    with contextlib.ExitStack() as stack:

        def make(workers):
            made.append(Local(tmp_path / f"cluster {len(made)}"))
            stack.callback(made[-1].end)
            for _ in range(workers):
                made[-1].work()
            return made[-1]

        yield make


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """A small class: right, wrong, unfinished and broken, with answers and cells that end their process."""
    folder = tmp_path_factory.mktemp("class")
    right = [cell.source for cell in solution_of(SET)]
    first = SETS[SET][0].name
    own = next(k for k, source in enumerate(right) if f"def {first}" in source)
    for name, cells in {
        "Ada King": right,
        "Bo Diaz": [*right, f"def {first}(*args):\n    return 0.5"],
        "Cy Young": right[:4],
        "Di Lang": [*right, f"import os\ndef {first}(*args):\n    os._exit(0)"],
        "Ed Post": [*right[:own], f"{right[own]}\nimport os\nos.kill(os.getpid(), 9)", *right[own + 1 :]],
        "Flo Rida": [*right, f"def {first}(*args):\n    return [print, {{}}, float('nan'), 10**40]"],
        "Zoë Blum": [*right[:own], f"import no_such_module\n{right[own]}", *right[own + 1 :]],
    }.items():
        (folder / f"{name}.ipynb").write_bytes(notebook(*cells))
    (folder / "Gus Gray.ipynb").write_bytes(b'{"cells": [')
    return folder


@pytest.fixture(scope="module")
def one_machine(room, tmp_path_factory):
    """What one machine writes."""
    need("bwrap")
    out = tmp_path_factory.mktemp("here") / "grades"
    assert graded(room, out) == 0
    return contents(out)


def graded(room, out, address=None, **options):
    return grade_class(SET, room, out, seed=7, limits=PATIENT, scheduler=address, **options)


def test_one_worker_two_and_any_order_write_the_bytes_of_one_machine(local, room, one_machine, tmp_path, monkeypatch):
    assert b"right" in one_machine["grades.csv"]
    assert b"killed" in one_machine["grades.csv"]
    assert b"cell_error" in one_machine["grades.csv"]
    cluster = local(1)
    assert graded(room, tmp_path / "one", cluster.address) == 0
    assert contents(tmp_path / "one") == one_machine
    cluster.work()
    real = grade.read_all
    monkeypatch.setattr(grade, "read_all", lambda source: random.Random(5).sample(found := real(source), len(found)))
    assert graded(room, tmp_path / "two", cluster.address) == 0
    assert contents(tmp_path / "two") == one_machine


def test_a_worker_that_is_killed_at_work_loses_nothing(local, room, one_machine, tmp_path):
    cluster = local(2)
    done = []
    grading = threading.Thread(target=lambda: done.append(graded(room, tmp_path / "out", cluster.address)))
    grading.start()
    at, process = cluster.ask(lambda client: until(lambda: stopped_at_work(client, cluster.workers)))
    process.kill()
    process.wait()
    grading.join(LONG)
    assert done == [0]
    assert contents(tmp_path / "out") == one_machine
    assert set(cluster.ask(lambda client: client.nthreads())) == {other for other, _ in cluster.workers} - {at}
    until(lambda: not list(sandboxes(cluster.folder)))


def stopped_at_work(client, workers):
    """(address, process) of a worker that was stopped while it had a notebook; None if none has one now."""
    for at, process in workers:
        if client.processing().get(at):
            process.send_signal(signal.SIGSTOP)
            client.nthreads()  # the scheduler has now heard everything that the worker said before
            if client.processing().get(at):
                return at, process
            process.send_signal(signal.SIGCONT)
    return None


def sandboxes(folder):
    """The commands of the sandboxes whose program is below a folder."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            command = path.read_bytes()
            if b"--ro-bind" in command and str(folder).encode() in command:
                yield command


def test_when_the_scheduler_is_cut_off_the_next_call_goes_on(local, room, one_machine, tmp_path, capsys, judged):
    out, cluster = tmp_path / "out", local(1)
    done = []
    grading = threading.Thread(target=lambda: done.append(graded(room, out, cluster.address)))
    grading.start()
    until(lambda: len(list((out / "students").glob("*.json"))) >= 2)
    cluster.workers[0][1].send_signal(signal.SIGSTOP)
    kept = len(list((out / "students").glob("*.json")))
    cluster.scheduler.kill()
    grading.join(LONG)
    assert done == [1]
    said = [line for line in capsys.readouterr().err.splitlines() if not line.endswith(" graded")]
    assert len(said) == 1
    assert f"the scheduler at {cluster.address} was cut off" in said[0]
    assert "run the same command again" in said[0]
    assert not (out / "grades.csv").exists()
    judged.clear()
    assert graded(room, out, local(1).address) == 0
    assert contents(out) == one_machine
    assert 0 < len(judged) <= len(list(room.glob("*.ipynb"))) - kept


def test_a_lost_connection_is_no_fault_of_a_worker_even_before_the_client_has_noticed():
    comm, clusters = (pytest.importorskip(name) for name in ("distributed.comm", "subnorm_classroom.grading.cluster"))

    def lost(*_, **__):
        raise comm.CommClosedError("in ConnectionPool.gather: reset by peer")

    cluster = clusters.Cluster("tcp://127.0.0.1:1")
    cluster.client = SimpleNamespace(status="running", submit=lost)
    with pytest.raises(Refusal, match="was cut off"):
        cluster.work([], [])


# Workers that cannot grade.

HALTED = "import sys\nsys.modules['subnorm'] = None\n"


def test_a_worker_that_cannot_grade_is_named_with_the_fix_and_gives_no_mark(local, room, tmp_path, capsys):
    """Without the package, with other code, without bubblewrap."""
    other = tmp_path / "other"
    for name in PACKAGES:
        shutil.copytree(COURSE / name, other / name, ignore=shutil.ignore_patterns("__pycache__"))
    with (other / "subnorm_lab/checks/ex01/paths.py").open("a") as file:
        file.write("# one more line\n")
    none = tmp_path / "none"
    none.mkdir()
    (none / "sitecustomize.py").write_text(HALTED)
    cluster = local(0)
    for environment, says in [
        (
            {"PYTHONPATH": str(none)},
            r"it cannot run this package \(.*\)\. Install the same version of subnorm",
        ),
        ({"PYTHONPATH": str(other)}, r"must have the versions of .* code \w{64} here, \w{64} there\. Install the same"),
        ({"PATH": str(tmp_path)}, r"this machine has no bubblewrap\. Install bubblewrap \(apt install bubblewrap"),
    ]:
        worker = cluster.work(**environment)
        assert graded(room, tmp_path / "out", cluster.address) == 1
        said = capsys.readouterr().err
        assert re.fullmatch(rf"grade: 1 of 1 workers cannot grade\. tcp://[\d.:]+: .*{says}.*\n", said)
        assert not (tmp_path / "out/students").exists()
        worker.terminate()
        until(lambda: not cluster.ask(lambda client: client.nthreads()))


@pytest.fixture
def order(monkeypatch):
    """An order for a worker, which is this process: the solutions of the sheet."""
    need("dask")
    need("bwrap")
    from subnorm_classroom.grading import cluster

    monkeypatch.setattr(cluster.distributed, "get_worker", lambda: SimpleNamespace(address="tcp://worker"))
    monkeypatch.setattr(cluster, "TESTED", {})
    with contextlib.ExitStack() as stack:
        monkeypatch.setattr(cluster, "OPEN", stack)
        yield (
            cluster,
            cluster.Cluster("tcp://nowhere:1", PATIENT).order_for(
                solution_of(SET), [draw(ex, 7).question for ex in SETS[SET]]
            ),
        )


class Dask:
    """A client of a cluster whose only worker is this process."""

    status = "running"

    def __init__(self, address, **options):
        self.sent, self.open = [], True

    def wait_for_workers(self, many, timeout):
        pass

    def run(self, function, *arguments, on_error):
        return {"tcp://worker": function(*arguments)}

    def nthreads(self):
        return {"tcp://worker": 2}

    def submit(self, function, order, key, **options):
        self.sent.append((key, order, function(order)))
        return SimpleNamespace(result=lambda timeout: self.sent[-1][2] if self.open else None)

    def close(self, timeout):
        self.open = False


def test_a_worker_is_told_no_name_and_gets_bytes(order, room, one_machine, tmp_path, monkeypatch):
    cluster, _ = order
    clients = []
    monkeypatch.setattr(cluster.distributed, "Client", lambda *given, **_: clients.append(Dask(*given)) or clients[0])
    assert graded(room, tmp_path / "out", "tcp://there", jobs=1) == 0
    assert contents(tmp_path / "out") == one_machine
    assert not clients[0].open
    assert len(clients[0].sent) >= len(list(room.glob("*.ipynb")))
    for key, sent, got in clients[0].sent:
        assert (type(sent), type(got)) == (bytes, bytes)
        assert set(json.loads(sent)) == {"session", "versions", "torch", "limits", "hidden", "cells", "questions"}
        assert not any(path.stem in f"{key}{json.loads(sent)}{json.loads(got)}" for path in room.iterdir())


def test_a_run_on_a_cluster_that_is_stopped_says_how_to_go_on(order, room, tmp_path, monkeypatch, capsys):
    cluster, _ = order
    clients, real = [], Dask.submit
    monkeypatch.setattr(cluster.distributed, "Client", lambda *given, **_: clients.append(Dask(*given)) or clients[0])

    def submit(self, *given, **named):
        if len(self.sent) == 5:
            raise KeyboardInterrupt
        return real(self, *given, **named)

    monkeypatch.setattr(Dask, "submit", submit)
    assert graded(room, tmp_path / "out", "tcp://there", jobs=1) == 130
    assert not clients[0].open
    said = capsys.readouterr().err
    assert said.endswith("grade: stopped. Run the same command again to continue.\n")
    assert "grade: 1 of 8 graded\n" in said  # no terminal, and yet progress
    assert list((tmp_path / "out/students").iterdir())


def test_a_worker_that_came_later_is_tested_before_its_first_notebook(order, monkeypatch):
    cluster, sent = order
    data = json.loads(cluster.perform(json.dumps(sent).encode()))
    cases, numbers = {name: len(cases) for name, _, cases in sent["questions"]}, [cell[0] for cell in sent["cells"]]
    work = cluster.unpack_work(data, cases, numbers)
    assert all(isinstance(answer, list) for answer in work.answers.values())
    name = min(cases)
    for damage in (
        {"answers": {}}, {"answers": {**data["answers"], name: "a reason of its own"}}, {"answers": None},
        {"answers": {**data["answers"], name: [[]]}}, {"checked": {"other": []}}, {"lost": [[numbers[0], "forged"]]},
        {"errors": [[999, ["KeyError", "", ""]]]}, {"errors": [[numbers[0], ["KeyError", 3, ""]]]}, {"errors": 3},
        {"errors": [[[1], ["KeyError", "", ""]]]},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="not"):
            cluster.unpack_work({**data, **damage}, cases, numbers)
    for change, says in [
        ({"versions": {**sent["versions"], "numpy": "1.0"}}, f"numpy {np.__version__} here, 1.0 there"),
        ({"torch": "0.1", "cells": [[1, [], "import torch"]]}, "torch .* here, 0.1 there"),
    ]:
        cluster.TESTED.clear()
        answer = json.loads(cluster.perform(json.dumps({**sent, **change}).encode()))
        assert answer["at"] == "tcp://worker"
        assert re.search(says, answer["refused"])
    monkeypatch.setattr(cluster.canary, "check", lambda *_: (_ for _ in ()).throw(Refusal("a wrong answer is right")))
    assert json.loads(cluster.perform(json.dumps(sent).encode()))["refused"] == "a wrong answer is right"


def test_a_worker_whose_sandbox_breaks_later_gives_no_mark(order):
    cluster, sent = order
    cluster.perform(json.dumps(sent).encode())
    (box,) = cluster.TESTED.values()
    (box.folder / "calls").unlink()  # the shell cannot open it
    answer = json.loads(cluster.perform(json.dumps(sent).encode()))
    assert "canary was judged killed" in answer["refused"]


# Without a cluster.


def test_one_machine_imports_nothing_of_dask_and_says_how_to_install_it(room, tmp_path, capsys, monkeypatch):
    code = (
        "import sys, subnorm_classroom.__main__, subnorm_classroom.grading.grade\nprint('distributed' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    monkeypatch.delitem(sys.modules, "subnorm_classroom.grading.cluster", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert graded(room, tmp_path / "out", "tcp://127.0.0.1:1") == 1
    assert "pip install -e '.[cluster]', or leave out --scheduler" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x"])
def test_no_scheduler_is_a_sentence(address, room, tmp_path, capsys, monkeypatch):
    need("dask")
    from subnorm_classroom.grading import cluster

    monkeypatch.setattr(cluster, "PATIENCE", 0.1)
    assert graded(room, tmp_path / "out", address) == 1
    assert re.fullmatch(
        rf"grade: no Dask scheduler answers at {address} \(.*\)\. Start one there .*\n", capsys.readouterr().err
    )


def test_no_worker_is_a_sentence(local, room, tmp_path, capsys, monkeypatch):
    from subnorm_classroom.grading import cluster

    alone = local(0)
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    assert graded(room, tmp_path / "out", alone.address) == 1
    assert f"has no worker. Start one with `dask worker {alone.address}`" in capsys.readouterr().err


def test_without_a_sandbox_there_is_no_cluster(room, tmp_path, capsys):
    assert graded(room, tmp_path / "out", "tcp://127.0.0.1:1", sandbox=False) == 1
    assert "every worker needs bubblewrap" in capsys.readouterr().err


class Fragile(RemoteWorkers, Sandbox):
    """Workers that end when they run one notebook."""

    jobs = 2

    def stop(self):
        raise AssertionError

    def work(self, cells, questions):
        if any("no_such_module" in cell.source for cell in cells):
            raise NotebookLost("workers ended")
        with Sandbox(limits=self.limits) as box:
            return run_notebook(box, cells, questions)


def test_a_notebook_that_ends_its_workers_costs_nobody_else_anything(room, one_machine, tmp_path, capsys, monkeypatch):
    need("bwrap")
    monkeypatch.setattr(grade, "remote_workers", lambda address, limits, hidden: Fragile(True, limits, hidden))
    assert graded(room, tmp_path / "out", "tcp://there") == 1
    assert "1 of 8 could not be graded. Zoë Blum: workers ended" in capsys.readouterr().err
    assert len(list((tmp_path / "out/students").iterdir())) == 7
    monkeypatch.undo()
    assert graded(room, tmp_path / "out") == 0
    assert contents(tmp_path / "out") == one_machine
