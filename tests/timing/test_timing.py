"""What can be tested of a timing without timing: right answers, fair order, honest records."""

import copy
import itertools
import json
import math

import pytest
import torch

from subnorm import timing
from subnorm.timing import __main__, record
from subnorm.timing.measure import clocks


def test_cases_are_right_before_they_are_timed():
    for dtype in (torch.float32, torch.bfloat16):
        for name, case in timing.forward_cases((5, 33), dtype, "cpu").items():
            assert timing.max_error(name, case) <= 8 * torch.finfo(dtype).eps


@pytest.mark.parametrize("wrong", [lambda y: 1.001 * y, lambda y: y * math.nan], ids=["scaled", "nan"])
def test_a_wrong_case_is_refused(wrong):
    case = timing.forward_cases((5, 33), torch.float32, "cpu")["rms_hand"]
    with pytest.raises(ArithmeticError, match="rms_hand is off by"):
        timing.max_error("rms_hand", timing.Case(lambda: wrong(case.run()), case.bytes, case.expected))


def test_bytes_count_each_array_once():
    moved = {name: case.bytes for name, case in timing.forward_cases((6, 8), torch.float32, "cpu").items()}
    assert moved["copy"] == 2 * 6 * 8 * 4
    assert moved["rms_hand"] == moved["rms_builtin"] == moved["copy"] + 8 * 4  # gamma
    assert moved["layer_hand"] == moved["layer_builtin"] == moved["copy"] + 2 * 8 * 4  # gamma and beta


def test_operations_sees_through_composite_functions():
    runs = {name: case.run for name, case in timing.forward_cases((6, 8), torch.float32, "cpu").items()}
    assert timing.operations(runs["layer_builtin"]) == ["native_layer_norm"]
    layer, rms = timing.operations(runs["layer_hand"]), timing.operations(runs["rms_hand"])
    assert (layer.count("mean"), rms.count("mean")) == (2, 1)
    assert len(layer) == len(rms) + 3  # the mean, its subtraction, and beta


# A fake machine: each call advances a clock by its cost, and the machine grows slower as time goes by.


def fake_clocks(costs):
    calls = itertools.count()
    order = []

    def clock(name):
        def read():
            order.append(name)
            return costs[name] * (1 + 0.01 * next(calls))

        return read

    return {name: clock(name) for name in costs}, order


def test_each_round_times_every_case_and_starts_one_later():
    machine, order = fake_clocks({"a": 1, "b": 1, "c": 1})
    seconds = timing.interleave(machine, rounds=4)
    assert order == list("abc" + "bca" + "cab" + "abc")
    assert {name: len(ts) for name, ts in seconds.items()} == {"a": 4, "b": 4, "c": 4}


def test_rounds_keep_the_ratio_when_the_machine_slows_down():
    costs = {"copy": 1.0, "norm": 3.0}
    machine, _ = fake_clocks(costs)
    interleaved = timing.of_copy(timing.interleave(machine, rounds=40))["norm"]
    assert timing.quartiles(interleaved)["median"] == pytest.approx(3, rel=0.02)

    machine, _ = fake_clocks(costs)
    one_after_the_other = {name: [machine[name]() for _ in range(40)] for name in costs}
    assert timing.quartiles(timing.of_copy(one_after_the_other)["norm"])["median"] > 3.8


def test_of_copy_divides_round_by_round():
    assert timing.of_copy({"copy": [1.0, 10.0], "norm": [2.0, 20.0]})["norm"] == [2.0, 2.0]


def test_quartiles():
    assert timing.quartiles([4.0, 1.0, 3.0, 2.0, 5.0]) == {"q1": 2.0, "median": 3.0, "q3": 4.0}


def test_a_clock_reads_seconds_per_call_on_one_thread():
    threads = []
    x = torch.ones(3)

    def run():
        threads.append(torch.get_num_threads())
        return x

    seconds = clocks({"run": run}, "cpu")["run"]()
    assert seconds > 0
    assert set(threads) == {1}


# Records


@pytest.fixture(scope="module")
def small_record():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(record.SHAPES, "cpu", [(4, 8)])
        patch.setattr(record, "device_here", lambda: "cpu")
        patch.setattr(record, "clocks", lambda runs, _: fake_clocks(dict.fromkeys(runs, 2e-6))[0])
        return timing.take(rounds=5)


def test_a_record_survives_the_file_and_is_valid(small_record, tmp_path):
    path = record.write(small_record, tmp_path)
    assert json.loads(path.read_text()) == small_record
    assert path.name.startswith("cpu-")


def test_a_faulty_record_is_not_written(small_record, tmp_path):
    with pytest.raises(ValueError, match="schema must be 1"):
        record.write({**small_record, "schema": 2}, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_records_of_the_package_are_valid():
    records = timing.read_records()
    assert "cpu" in [found["device"]["kind"] for found in records]
    for found in records:
        timing.validate(found)
        assert found["command"] == "python -m subnorm.timing record"


def put(*path_and_value):
    *path, key, value = path_and_value

    def plant(found):
        for step in path:
            found = found[step]
        found[key] = value

    return plant


ROW = ("tables", 0, "rows", "rms_builtin")
FAULTS = {
    "no date": lambda found: found.pop("date"),
    "unknown key": put("host", "a"),
    "schema": put("schema", 2),
    "date": put("date", "yesterday"),
    "command": put("command", ""),
    "kind": put("device", "kind", "tpu"),
    "name": put("device", "name", ""),
    "threads": put("device", "threads", 2),
    "driver on a CPU": put("device", "driver", "1.0"),
    "GPU without driver": put("device", {"kind": "cuda", "name": "g", "threads": None, "driver": None, "cuda": "12"}),
    "version": put("versions", "torch", ""),
    "clock": put("clock", "cuda_events"),
    "no table": put("tables", []),
    "shape": put("tables", 0, "shape", [4, 0]),
    "dtype": put("tables", 0, "dtype", "float31"),
    "no copy": lambda found: found["tables"][0]["rows"].pop("copy"),
    "bytes": put(*ROW, "bytes", 4 * 8 * 4),
    "error": put(*ROW, "max_error", 0.1),
    "few rounds": lambda found: [row.update(rounds=row["rounds"][:4]) for row in found["tables"][0]["rows"].values()],
    "uneven rounds": put(*ROW, "rounds", [2e-6] * 6),
    "negative time": put(*ROW, "rounds", [2e-6, 2e-6, -2e-6, 2e-6, 2e-6]),
    "edited median": put(*ROW, "seconds", "median", 1e-6),
    "edited ratio": put(*ROW, "of_copy", "q3", 1.0),
}


@pytest.mark.parametrize("plant", FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_refused(small_record, plant):
    faulty = copy.deepcopy(small_record)
    timing.validate(faulty)
    plant(faulty)
    with pytest.raises(ValueError, match=r"; got .*Records are made by"):
        timing.validate(faulty)


def test_faster_than_a_copy_is_refused(small_record):
    faulty = copy.deepcopy(small_record)
    row, rows = faulty["tables"][0]["rows"]["rms_builtin"], faulty["tables"][0]["rows"]
    row["rounds"] = [s / 2 for s in rows["copy"]["rounds"]]
    row["seconds"] = timing.quartiles(row["rounds"])
    row["of_copy"] = timing.quartiles([0.5] * 5)
    with pytest.raises(ValueError, match="must not beat a copy"):
        timing.validate(faulty)


def test_the_table_says_when_there_is_no_gpu(small_record):
    assert timing.table(small_record).startswith("no GPU:")
    on_gpu = {**small_record, "device": {**small_record["device"], "kind": "cuda"}}
    assert "no GPU" not in timing.table(on_gpu)


def test_the_table_shows_every_case_by_its_label(small_record):
    assert list(small_record["tables"][0]["rows"]) == list(timing.LABELS)
    for line, label in zip(timing.table(small_record).splitlines()[-5:], timing.LABELS.values(), strict=True):
        assert line.startswith(label + "  ")


def test_the_command_keeps_the_record(small_record, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(__main__, "take", lambda command: {**small_record, "command": command})
    __main__.main([])
    assert not list(tmp_path.iterdir())
    __main__.main(["record", "--folder", str(tmp_path)])
    (path,) = tmp_path.iterdir()
    assert json.loads(path.read_text())["command"] == "python -m subnorm.timing record"
    assert str(path) in capsys.readouterr().out
