"""Time cases in rounds, so that a slow moment of the machine affects every case alike."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch.utils import benchmark

from subnorm.timing import cuda
from subnorm.timing.cases import Call, Case

#: The thread's own processor time, which other processes do not lengthen. On Windows that clock ticks only every 16 ms,
#: whatever resolution it reports, so we use wall time there.
CPU_CLOCK = "perf_counter" if os.name == "nt" else "thread_time"

#: One reading repeats the call for about this long.
SECONDS_PER_READING = 0.01


def clocks(cases: Mapping[str, Case], device: str, *, host: bool) -> dict[str, Callable[[], float]]:
    """For each case, a function that times it once, in seconds per call.

    On the CPU no cache is flushed: a call finds the data that the previous call left there. Only arrays larger than
    the last-level cache come from memory. On a GPU the second-level cache is flushed before every call.

    Args:
        cases: by name.
        device: "cpu" or "cuda".
        host: on a GPU, whether to time the call on the host instead of the work, which runs in the background.
    """
    if device == "cuda" and not host:
        return {name: partial(cuda.seconds, case) for name, case in cases.items()}
    timer = getattr(time, CPU_CLOCK) if device == "cpu" else benchmark.timer
    return {name: clock(case.prepare(), timer) for name, case in cases.items()}


def clock(call: Call, timer: Callable[[], float]) -> Callable[[], float]:
    """A function that times the call once, by this timer, in seconds per call."""
    repeated = benchmark.Timer("call()", globals={"call": call}, num_threads=1, timer=timer)  # calls twice to warm up
    calls = max(1, round(SECONDS_PER_READING / repeated.timeit(1).mean))
    return lambda: repeated.timeit(calls).mean


def interleave(clocks: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Read every clock once per round; each round starts one clock later than the previous one.

    Args:
        clocks: by name, a function that times its case once and returns seconds per call.
        rounds: how many times each clock is read.

    Returns:
        by name, the seconds per call of every round.
    """
    names = list(clocks)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for i in range(rounds):
        first = i % len(names)
        for name in names[first:] + names[:first]:
            seconds[name].append(clocks[name]())
    return seconds


def share_of_copy(seconds: Sequence[float], copy: Sequence[float]) -> list[float]:
    """The copy's time over the case's in the same round: 1 for a case that only moves its bytes."""
    return [c / s for s, c in zip(seconds, copy, strict=True)]


def quartiles(values: Sequence[float]) -> dict[str, float]:
    """Median and quartiles, to four digits: a timing is no more precise."""
    q1, median, q3 = (float(f"{q:.4g}") for q in np.quantile(values, (0.25, 0.5, 0.75)))
    return {"q1": q1, "median": median, "q3": q3}


def device_here() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"
