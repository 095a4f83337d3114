"""How it is timed: in rounds, so that a slow moment of the machine falls on every case alike."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.utils.benchmark import Timer

from subnorm.timing import cuda

#: The thread's own processor time, which a busy neighbour does not lengthen. On Windows that clock ticks every 16 ms,
#: whatever resolution it reports, so there it is wall time.
CPU_CLOCK = "perf_counter" if os.name == "nt" else "thread_time"

#: One reading of the CPU clock lasts about this long, and calls are repeated to fill it.
SECONDS_PER_READING = 0.01


def clocks(runs: Mapping[str, Callable[[], Tensor]], device: str) -> dict[str, Callable[[], float]]:
    """For each call a function that times it once more, in seconds per call. The calls are warm afterwards."""
    if device == "cuda":
        cuda.warm_up(runs.values())
        return {name: partial(cuda.seconds, run) for name, run in runs.items()}
    return {name: _cpu_clock(run) for name, run in runs.items()}


def _cpu_clock(run: Callable[[], Tensor]) -> Callable[[], float]:
    timer = Timer("run()", globals={"run": run}, num_threads=1, timer=getattr(time, CPU_CLOCK))
    calls = max(1, round(SECONDS_PER_READING / timer.timeit(1).mean))
    return lambda: timer.timeit(calls).mean


def interleave(clocks: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Read every clock once a round; each round begins one clock later than the round before.

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


def of_copy(seconds: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Each case's time over the copy's time in the same round."""
    return {name: [s / c for s, c in zip(ts, seconds["copy"], strict=True)] for name, ts in seconds.items()}


def quartiles(values: Sequence[float]) -> dict[str, float]:
    """Median and quartiles, to four digits: a timing has no more."""
    q1, median, q3 = (float(f"{q:.4g}") for q in np.quantile(values, (0.25, 0.5, 0.75)))
    return {"q1": q1, "median": median, "q3": q3}


def device_here() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"
