"""The code for a GPU, with a fake: the calls of Triton and of the driver, and the units."""

import pickle
import subprocess
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from subnorm import timing
from subnorm.timing import cuda, measure, record
from subnorm.timing.cases import Case


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


@pytest.mark.parametrize(("capability", "dtype"), [((7, 5), "float16"), ((8, 0), "bfloat16"), ((10, 0), "bfloat16")])
def test_an_old_gpu_is_measured_in_the_half_precision_that_it_has(
    capability: tuple[int, int], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert record._dtype("cuda") == dtype
    assert record._dtype("cpu") == "float32"
    assert dtype in record.DTYPES["cuda"]


def test_a_table_that_does_not_fit_the_gpu_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def apart(_measure: Any, name: str, shape: tuple[int, int], *_: Any) -> dict[str, Any]:
        if shape[0] > 8:
            # an error reaches this process pickled
            raise pickle.loads(pickle.dumps(torch.cuda.OutOfMemoryError("CUDA out of memory")))
        return {"name": name, "shape": shape}

    monkeypatch.setattr(record, "apart", apart)
    lines: list[str] = []
    found = timing.take({"forward": [(16, 8), (4, 8)]}, tell=lines.append)
    assert found["tables"] == [{"name": "forward", "shape": (4, 8)}]
    assert lines == ["forward, 16 x 8", "left out: it does not fit into the memory of the GPU", "forward, 4 x 8"]


def test_another_failure_still_ends_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    def apart(*_: Any) -> None:
        raise RuntimeError("the driver is gone")

    monkeypatch.setattr(record, "apart", apart)
    with pytest.raises(RuntimeError, match="the driver"):
        timing.take({"forward": [(4, 8)]})
