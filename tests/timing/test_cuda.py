"""The part that needs a GPU, with a stand-in for it: what is called, in which order, and in which unit."""

import itertools
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from subnorm.timing import cuda


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A GPU whose n-th timed call takes n milliseconds; the list says what was asked of it, in order."""
    seen: list[str] = []
    milliseconds = itertools.count(1)

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            seen.append("event")

        def elapsed_time(self, end: Any) -> float:
            seen.append("read")
            return float(next(milliseconds))

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: seen.append("synchronize"))
    monkeypatch.setattr(cuda, "_flush", lambda: SimpleNamespace(zero_=lambda: seen.append("flush")))
    return seen


def test_every_call_stands_between_events_after_a_flush(calls: list[str]) -> None:
    seconds = cuda.seconds(lambda: calls.append("run"))
    n = cuda.CALLS_PER_READING
    assert calls == ["flush", "event", "run", "event"] * n + ["synchronize"] + ["read"] * n
    assert seconds == pytest.approx((1 + n) / 2 / 1000)  # the median, in seconds


def test_warm_up_runs_every_case_and_waits_for_it(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0, cuda.WARM_UP_SECONDS * 0.6)
    monkeypatch.setattr(cuda.time, "perf_counter", lambda: next(clock))
    cuda.warm_up([lambda: calls.append("a"), lambda: calls.append("b")])
    assert calls == ["a", "b", "synchronize"]


@pytest.mark.parametrize("missing", [FileNotFoundError("nvidia-smi"), subprocess.CalledProcessError(9, "nvidia-smi")])
def test_a_gpu_without_nvidia_smi_is_described_all_the_same(
    missing: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: Any, **__: Any) -> None:
        raise missing

    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    monkeypatch.setattr(cuda.subprocess, "run", run)
    assert cuda.description() == {"name": "a GPU", "driver": "unknown", "cuda": torch.version.cuda}


def test_the_driver_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    monkeypatch.setattr(cuda.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout="580.65.06\n580.65.06\n"))
    assert cuda.description()["driver"] == "580.65.06"
