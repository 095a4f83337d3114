"""Timing on a CUDA GPU. The file is short because it cannot be tested without a GPU."""

# mypy: disable-error-code="import-not-found, import-untyped"
# Triton has no types, and may be absent.

import subprocess

import torch

from subnorm.timing.cases import Case

#: Triton's warm-up and measuring time for one reading.
MILLISECONDS = {"warmup": 10, "rep": 40}


def seconds(case: Case) -> float:
    """Median seconds of one call on the GPU's own clock, with its second-level cache flushed before every call.

    Calls are queued while the flush still runs, so the time covers the work and not the launch. If the host takes
    longer for a call than the flush and the work together, the time is the host's: compare with the table "host".
    """
    from triton.testing import do_bench  # comes with PyTorch for CUDA

    milliseconds: float = do_bench(case.prepare(), return_mode="median", **MILLISECONDS)
    return milliseconds / 1000


def description() -> dict[str, str | None]:
    """The GPU's name, driver, CUDA version and clocks; "unknown" if nvidia-smi does not answer."""
    fields = "driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem"
    query = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
    driver = clocks = "unknown"
    try:
        answer = subprocess.run(query, check=True, capture_output=True, text=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        pass
    else:
        driver, sm, memory, max_sm, max_memory = (
            field.strip() for field in answer[torch.cuda.current_device()].split(",")
        )
        clocks = f"processors {sm} of {max_sm}, memory {memory} of {max_memory}"
    return {"name": torch.cuda.get_device_name(), "driver": driver, "cuda": torch.version.cuda, "clocks": clocks}
