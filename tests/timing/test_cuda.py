"""The code for a GPU, with a fake: the calls of Triton and of the driver, and the units."""

import subprocess
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from subnorm.timing import Case, cuda, measure


def test_a_reading_is_tritons_median_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def do_bench(call: Any, **options: Any) -> float:
        asked.append((call(), options))
        return 0.25

    testing = ModuleType("triton.testing")
    monkeypatch.setattr(testing, "do_bench", do_bench, raising=False)
    monkeypatch.setitem(sys.modules, "triton", ModuleType("triton"))
    monkeypatch.setitem(sys.modules, "triton.testing", testing)
    made = iter(["first", "second"])
    clock = measure.clocks({"run": Case(lambda: made.__next__, 0)}, "cuda", host=False)["run"]
    assert clock() == 0.25 / 1000
    assert clock() == 0.25 / 1000
    options = {"return_mode": "median", "warmup": 10, "rep": 40}
    assert asked == [("first", options), ("second", options)]


def test_what_a_call_goes_back_on_is_made_anew_for_each_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """And freed afterwards: a GPU cannot hold the graphs of all cases together."""
    prepared: list[int] = []
    monkeypatch.setattr(cuda, "seconds", lambda case: case.prepare()())
    clock = measure.clocks({"run": Case(lambda: lambda: prepared.append(1), 0)}, "cuda", host=False)["run"]
    assert prepared == []
    clock()
    assert prepared == [1]


@pytest.mark.parametrize("missing", [FileNotFoundError("nvidia-smi"), subprocess.CalledProcessError(9, "nvidia-smi")])
def test_a_gpu_without_nvidia_smi_is_described_all_the_same(
    missing: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: Any, **__: Any) -> None:
        raise missing

    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    monkeypatch.setattr(cuda.subprocess, "run", run)
    assert cuda.description() == {
        "name": "a GPU",
        "driver": "unknown",
        "cuda": torch.version.cuda,
        "clocks": "unknown",
    }


def test_driver_and_clocks_are_those_of_the_gpu_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = "580.1, 210 MHz, 405 MHz, 1980 MHz, 2619 MHz\n580.2, 1755 MHz, 2619 MHz, 1980 MHz, 2619 MHz\n"
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(cuda.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=answer))
    found = cuda.description()
    assert found["driver"] == "580.2"
    assert found["clocks"] == "processors 1755 MHz of 1980 MHz, memory 2619 MHz of 2619 MHz"
