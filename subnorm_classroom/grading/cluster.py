"""Run the notebooks on the workers of a Dask cluster, each in the sandbox of `subnorm_classroom.grading.sandbox` there.

A worker gets cells and inputs and returns outcomes, both as bytes of JSON. Nothing that a student made is pickled, no
student's name leaves this process, and only this process knows the right answers. Before its first notebook, a worker
compares its versions with ours and tests its sandbox. This module needs `distributed`; one machine does not import it.
"""

import atexit
import contextlib
import json
import logging
import threading
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import distributed
from distributed.comm import CommClosedError

from subnorm_classroom.errors import Refusal
from subnorm_classroom.grading import canary, running
from subnorm_classroom.grading.cells import Cell
from subnorm_classroom.grading.running import Attempts, NotebookLost, Question, RemoteWorkers, Work, unpack_attempts
from subnorm_classroom.grading.sandbox import Limits, Sandbox
from subnorm_classroom.grading.verdict import SAYS, CellError
from subnorm_classroom.grading.versions import versions
from subnorm_classroom.grading.wire import pack_outcome, unpack_case

PATIENCE = 60  # seconds: to connect, and without any worker
MOST_WAITING = 1_000  # notebooks that are with the cluster at a time
KEPT = "What is graded is kept: run the same command again to continue"


class Cluster(RemoteWorkers):
    """The workers of a cluster. A context manager, which connects and tests them.

    Args:
        address: where the scheduler answers: tcp://10.0.0.5:8786; for tls:// Dask's own configuration names the keys.
        limits: the limits of each run.
        hidden: folders to hide from the sandboxes, in case the workers have them, too.
    """

    def __init__(self, address: str, limits: Limits | None = None, hidden: Sequence[Path] = ()) -> None:
        self.address, self.limits = address, limits or Limits()
        self.order = {
            "session": uuid.uuid4().hex,
            "versions": versions(),
            "torch": torch_version(),
            "limits": asdict(self.limits),
            "hidden": [str(path.resolve()) for path in hidden],
        }

    def __enter__(self) -> "Cluster":
        for name in logging.root.manager.loggerDict:
            if name.split(".")[0] == "distributed":
                logging.getLogger(name).setLevel(logging.CRITICAL)  # every error is a sentence of ours
        try:
            self.client = distributed.Client(self.address, timeout=PATIENCE, set_as_default=False)
        except Exception as error:  # a wrong address, no scheduler, no key: Dask raises many kinds
            raise Refusal(
                f"no Dask scheduler answers at {self.address} ({why(error)}). Start one there with `dask scheduler`, "
                "or leave out --scheduler to grade on this machine"
            ) from error
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
            said = self.client.run(hello, json.dumps(self.order), on_error="return")
        except BaseException as error:
            self.stop()
            if isinstance(error, Exception):
                raise Refusal(self.nobody()) from error
            raise
        faults = [f"{at}: {fault(answer)}" for at, answer in sorted(said.items()) if answer]
        if faults:
            self.stop()
            raise Refusal(f"{len(faults)} of {len(said)} workers cannot grade. {faults[0]}")
        self.jobs = min(MOST_WAITING, 2 * sum(self.client.nthreads().values()))
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        with contextlib.suppress(Exception):
            self.client.close(timeout=5)

    def nobody(self) -> str:
        return f"the scheduler at {self.address} has no worker. Start one with `dask worker {self.address}`. {KEPT}"

    def work(self, cells: Sequence[Cell], questions: Sequence[Question]) -> Work:
        """Run a notebook on any worker.

        Raises:
            Refusal: the cluster cannot go on.
            NotebookLost: the workers end when they run this notebook.
        """
        order = json.dumps(self.order_for(cells, questions)).encode()
        try:
            future = self.client.submit(perform, order, key=f"grade-{uuid.uuid4().hex}", pure=False, retries=0)
            answer = json.loads(self.result(future))
        except distributed.KilledWorker as error:
            raise NotebookLost(
                f"workers ended while they ran it (look for the reason in their logs). {KEPT}"
            ) from error
        except Refusal:
            raise
        except (Exception, CancelledError) as error:  # of Dask, or a worker's that came later and cannot run `perform`
            # The client can still be "running" when it has lost the scheduler.
            if self.client.status == "running" and not isinstance(error, CancelledError | CommClosedError):
                raise Refusal(f"a worker cannot grade: {fault(error)}. {KEPT}") from error
            raise Refusal(f"the scheduler at {self.address} was cut off. Start it again. {KEPT}") from error
        if "refused" in answer:
            raise Refusal(f"a worker cannot grade: {answer['at']}: {answer['refused']}. {KEPT}")
        try:
            return unpack_work(
                answer, {asked.name: len(asked.cases) for asked in questions}, [cell.number for cell in cells]
            )
        except ValueError as error:
            raise NotebookLost(f"a worker sent no results ({error}). {KEPT}") from error

    def order_for(self, cells: Sequence[Cell], questions: Sequence[Question]) -> dict[str, Any]:
        return {
            **self.order,
            "cells": [[cell.number, cell.tags, cell.source] for cell in cells],
            "questions": [asked.pack() for asked in questions],
        }

    def result(self, future: Any) -> bytes:
        """What a worker returns; Refusal if there are no workers any more."""
        while True:
            try:
                return bytes(future.result(timeout=PATIENCE))
            except TimeoutError:
                if future.done():
                    raise  # it is the worker's
                if not self.client.nthreads():
                    raise Refusal(self.nobody()) from None


def why(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).split("\n")[0][:200]


def torch_version() -> str:
    """The version of PyTorch, the same for the CPU and the CUDA build; "none" without it."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version("torch").split("+")[0]
    return "none"


def fault(said: Any) -> str:
    """What keeps a worker from grading: its own sentence, or an error, which it raises before it can say one."""
    if isinstance(said, BaseException):
        return f"it cannot run this package ({why(said)}). Install the same version of subnorm there"
    return str(said)


# On a worker.


def hello(order: str) -> str:
    """What keeps this worker from grading; empty if nothing does."""
    try:
        compare(HERE, json.loads(order)["versions"])
        with Sandbox():
            return ""
    except Refusal as error:
        return str(error)


def perform(order: bytes) -> bytes:
    """Run one notebook on this worker."""
    todo = json.loads(order)
    cells = [Cell(number, tuple(tags), source) for number, tags, source in todo["cells"]]
    questions = [Question(name, way, list(map(unpack_case, cases))) for name, way, cases in todo["questions"]]
    try:
        torch = running.needs_torch(cells, questions)
        box = tested(todo, torch)
        work = running.run_notebook(box, cells, questions)
        if all(isinstance(answer, str) for answer in work.answers.values()) and not work.lost:
            self_test(box, torch)  # was it the notebook, or the machine?
        return json.dumps(pack_work(work)).encode()
    except Refusal as error:
        return json.dumps({"refused": str(error), "at": distributed.get_worker().address}).encode()


HERE = versions()  # when this process imported the code


def compare(ours: dict[str, str], theirs: dict[str, str]) -> None:
    """Raise Refusal if this worker has other versions than the machine that gives out the work."""
    other = [f"{name} {ours[name]} here, {theirs[name]} there" for name in ours if ours[name] != theirs[name]]
    if other:
        raise Refusal(
            "a worker must have the versions of the machine that gives out the work; it differs in "
            f"{'; '.join(other)}. Install the same there, and start the worker again"
        )


OPEN = contextlib.ExitStack()  # the sandboxes of this process
atexit.register(OPEN.close)
TESTED: dict[tuple[str, bool], Sandbox] = {}
TESTING = threading.Lock()


def tested(order: dict[str, Any], torch: bool) -> Sandbox:
    """The sandbox of this worker for one call of `grade`, made and tested when it is first needed."""
    known = order["session"], torch
    with TESTING:
        if known not in TESTED:
            compare(HERE, order["versions"])
            if torch:
                compare({"torch": torch_version()}, order)
            hidden = [Path(path) for path in order["hidden"]]
            box = OPEN.enter_context(Sandbox(limits=Limits(**order["limits"]), hidden=hidden))
            self_test(box, torch)
            TESTED[known] = box
        return TESTED[known]


def self_test(box: Sandbox, torch: bool) -> None:
    canary.check(box, [], 0, None, torch)


def pack_work(work: Work) -> dict[str, Any]:
    def pack(answer: Attempts | str) -> Any:
        return answer if isinstance(answer, str) else [list(map(pack_outcome, outcomes)) for outcomes in answer]

    return {
        "answers": {name: pack(answer) for name, answer in work.answers.items()},
        "checked": {name: pack(answer) for name, answer in work.checked.items()},
        "errors": list(work.errors.items()),
        "lost": list(work.lost.items()),
    }


def unpack_work(data: Any, cases: Mapping[str, int], numbers: Sequence[int]) -> Work:
    """The value of `pack_work`.

    Args:
        data: JSON, decoded. A worker may be damaged, or no worker of ours.
        cases: how many cases each question has, by its name.
        numbers: those of the cells.

    Raises:
        ValueError: the data is anything else.
    """

    def unpack(name: str, answer: Any) -> Attempts | str:
        if isinstance(answer, str) and answer in SAYS:
            return answer
        return unpack_attempts(answer, cases[name])

    try:
        answers = {name: unpack(name, data["answers"][name]) for name in cases}
        checked = {name: unpack_attempts(found, cases[name]) for name, found in data["checked"].items()}
        errors = {number: CellError(*error) for number, error in data["errors"]}
        lost = dict(data["lost"])
        texts = [text for error in errors.values() for text in error]
        if not all(number in numbers for number in [*errors, *lost]) or not all(type(text) is str for text in texts):
            raise ValueError("not the errors of cells")
        if not all(how in SAYS for how in lost.values()):
            raise ValueError("not an end")
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("not the results of a notebook") from error
    return Work(answers, checked, errors, lost)
