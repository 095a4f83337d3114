"""Timing on a CUDA GPU. Nothing here can run without one, so the file is short and says what it does."""

import statistics
import subprocess
import time
from collections.abc import Callable, Iterable
from functools import cache

import torch
from torch import Tensor

WARM_UP_SECONDS = 1.0
CALLS_PER_READING = 20


def warm_up(runs: Iterable[Callable[[], Tensor]]) -> None:
    """Keep the GPU busy until kernels are loaded, memory is cached and clocks have risen."""
    runs = list(runs)
    end = time.perf_counter() + WARM_UP_SECONDS
    while time.perf_counter() < end:
        for run in runs:
            run()
        torch.cuda.synchronize()


@cache
def _flush() -> Tensor:
    """More bytes than any L2 cache holds: writing them pushes x out, so that every call reads x from memory."""
    return torch.empty(256 * 2**20, dtype=torch.int8, device="cuda")


def seconds(run: Callable[[], Tensor]) -> float:
    """Median seconds of one call, between two events on the GPU's own clock.

    The calls are queued while the flush still runs, so the time between the events is work, not launching.
    """
    pairs = []
    for _ in range(CALLS_PER_READING):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        _flush().zero_()
        start.record()
        run()
        end.record()
        pairs.append((start, end))
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in pairs) / 1000  # milliseconds


def description() -> dict[str, str | None]:
    """Name of the GPU, version of its driver (unknown where nvidia-smi cannot be asked), version of CUDA."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        driver = subprocess.run(query, check=True, capture_output=True, text=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError):
        driver = "unknown"
    return {"name": torch.cuda.get_device_name(), "driver": driver, "cuda": torch.version.cuda}
