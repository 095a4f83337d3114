"""A norm in two processes: a pair that runs a function of a notebook on split tensors, and adds over both.

The processes use ``torch.distributed`` with gloo, on this machine alone: they meet in a file, and speak over loopback.
"""

import inspect
import os
import pickle
import signal
import socket
import tempfile
import textwrap
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist

START = 120.0  # seconds in which both processes must have loaded PyTorch and met


class AllReduce:
    """``all_reduce(x)`` is the sum of x over the processes, in every process. Its gradient is a sum over them as well.

    Attributes:
        sent: how many numbers each of the messages had, in order, backward passes included.
    """

    def __init__(self) -> None:
        self.sent: list[int] = []

    def __call__(self, x: Tensor) -> Tensor:
        total: Tensor = _Sum.apply(x, self)
        return total

    def add(self, x: Tensor) -> Tensor:
        """The sum, outside autograd."""
        total = x.detach().clone()
        dist.all_reduce(total)
        self.sent.append(total.numel())
        return total


class _Sum(torch.autograd.Function):
    """Every process uses the sum, so a part of it has a gradient from every process."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, all_reduce: AllReduce) -> Tensor:
        ctx.all_reduce = all_reduce
        return all_reduce.add(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.all_reduce.add(grad), None


class Pair:
    """Two processes that wait for work. They start at once, end with this one, and start anew after a failure.

    Args:
        patience: seconds that a run may take.

    Attributes:
        sent: how many numbers each message of the last run had.
    """

    def __init__(self, patience: float = 60.0) -> None:
        self.patience = patience
        self.sent: list[int] = []
        self._processes: list[SpawnProcess] = []
        self._lines: list[Connection] = []
        self._met = False
        self._start()

    def run(self, function: Callable[..., Any], *parts: Sequence[Any]) -> list[Any]:
        """``function(all_reduce, *part)`` in both processes, each with its own part: the two results.

        Args:
            function: defined with ``def``. Only its text travels, so of the names around it, it sees ``torch`` alone.
            parts: the arguments of process 0, and those of process 1.

        Raises:
            TypeError: the function has no text to send, such as a lambda or a builtin.
            ValueError: not one part for each process.
            RuntimeError: the function failed in a process, or a process died; with what it said.
            TimeoutError: a process waits, most often for a message that the other never sends.
        """
        if len(parts) != 2:
            raise ValueError(f"run takes the arguments of process 0 and of process 1; got {len(parts)} parts.")
        work = [pickle.dumps((function.__name__, _text(function), tuple(part))) for part in parts]
        if not self._processes:
            self._start()
        try:
            if not self._met:
                self._answers(START, "start")
                self._met = True
            for line, what in zip(self._lines, work, strict=True):
                line.send_bytes(what)
            found = self._answers(self.patience, function.__name__)
        except BaseException:  # an interruption, too: what is left in the lines would answer the next run
            self.close()
            raise
        self.sent = found[0][1]
        return [value for value, _ in found]

    def close(self) -> None:
        """End both processes; the next run starts new ones."""
        for process in self._processes:
            process.kill()
            process.join()
        for line in self._lines:
            line.close()
        self._processes, self._lines = [], []
        self._folder.cleanup()

    def _start(self) -> None:
        context = get_context("spawn")
        self._folder = tempfile.TemporaryDirectory(prefix="pair-")
        meeting = Path(self._folder.name, "meeting").as_uri()
        lines = [context.Pipe() for _ in range(2)]
        self._lines = [ours for ours, _ in lines]
        theirs = [end for _, end in lines]
        self._processes = [
            context.Process(target=_serve, args=(rank, meeting, line, self.patience), daemon=True)
            for rank, line in enumerate(theirs)
        ]
        self._met = False
        for process, line in zip(self._processes, theirs, strict=True):
            process.start()
            line.close()  # so that its end is seen here

    def _answers(self, seconds: float, what: str) -> list[Any]:
        """What both processes send back, in their order."""
        end = time.monotonic() + seconds
        found: dict[Connection, Any] = {}
        while len(found) < 2:
            open_lines = [line for line in self._lines if line not in found]
            waited = connection.wait(open_lines, max(0.0, end - time.monotonic()))
            ready = [line for line in open_lines if line in waited]
            if not ready:
                late = " and ".join(str(rank) for rank, line in enumerate(self._lines) if line not in found)
                raise TimeoutError(
                    f"`{what}` must end within {seconds:g} s in both processes; process {late} has not. Does each "
                    f"call all_reduce as often as the other, with tensors of one shape?"
                )
            for line in ready:
                rank = self._lines.index(line)
                try:
                    found[line], said = pickle.loads(line.recv_bytes())
                except EOFError:
                    self._processes[rank].join()
                    code = self._processes[rank].exitcode
                    raise RuntimeError(f"process {rank} died in `{what}`, with exit code {code}.") from None
                if said:
                    raise RuntimeError(f"`{what}` failed in process {rank}:\n{said}")
        return [found[line] for line in self._lines]


@cache
def pair() -> Pair:
    """The pair of this process. Starting one takes seconds, so a notebook shares it."""
    return Pair()


def _text(function: Callable[..., Any]) -> str:
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        text = ""
    if not text.startswith("def "):
        raise TypeError(f"run takes a function defined with `def`, whose text it can send; got {function!r}.")
    return text


def _serve(rank: int, meeting: str, line: Connection, patience: float) -> None:
    """One of the two processes: meet the other, then call what arrives, until the line is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interruption is the notebook's, which ends this process
    torch.set_num_threads(1)
    loopback = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    if loopback:  # without it gloo looks up this machine's name, which needs a network
        os.environ["GLOO_SOCKET_IFNAME"] = loopback[0]
    try:
        limit = timedelta(seconds=max(patience, START))
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2, timeout=limit)
        line.send_bytes(pickle.dumps((None, "")))
        while True:
            line.send_bytes(_answer(*pickle.loads(line.recv_bytes())))
    except (EOFError, OSError):  # the notebook is gone
        os._exit(0)  # gloo's threads may wait for the other process


def _answer(name: str, text: str, part: tuple[Any, ...]) -> bytes:
    """The pickled pair of a result, with what was sent, and of what went wrong."""
    all_reduce = AllReduce()
    names: dict[str, Any] = {"torch": torch}
    try:
        exec(compile(text, name, "exec"), names)
        value = _detached(names[name](all_reduce, *part))
        return pickle.dumps(((value, all_reduce.sent), ""))
    except Exception as error:
        return pickle.dumps((None, "".join(traceback.format_exception_only(error))))


def _detached(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_detached(one) for one in value)
    return value.detach() if isinstance(value, Tensor) else value
