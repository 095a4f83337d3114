"""Tests of the timing code without timing: right answers, fair order, valid records."""

import copy
import itertools
import json
import math
import os
from pathlib import Path

import pytest
import torch

import subnorm.numpy as sn
from subnorm import timing
from subnorm.timing import __main__, cases, exact, measure, record, replay
from subnorm_lab.experiments import traffic

CPU_TABLES = list(record.PLAN["cpu"])
SHAPES = ((4, 8), (2, 3))
APART = record.apart


def call_here(call, *arguments):
    """Instead of a new process, which would not have the test's monkeypatches."""
    return call(*arguments)


@pytest.fixture(autouse=True)
def _compiles_nothing(monkeypatch):
    """Skip torch.compile, which takes a minute; every timing checks its results anyway."""
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: function)
    monkeypatch.setattr(record, "apart", call_here)


def draw(name, shape=(5, 33), dtype=torch.float32):
    return timing.Inputs.draw(shape, dtype, "cpu", tracked=timing.TABLES[name].backward)


def built_cases(name, *arguments):
    return timing.build_cases(name, draw(name, *arguments))


def error_of(name, inputs, key, case):
    wanted = exact.expected(inputs, case.norm, **vars(timing.TABLES[name]))
    return exact.max_error(exact.outputs_of(case.prepare()()), wanted)


# Cases


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", timing.TABLES)
def test_every_case_is_right_and_stays_so_when_it_is_called_again(name, dtype):
    inputs = draw(name, dtype=dtype)
    wanted = {norm: exact.expected(inputs, norm, **vars(timing.TABLES[name])) for norm in cases.NORMS}
    for case in timing.build_cases(name, inputs).values():
        call = case.prepare()
        for results in (call(), call()):
            if case.norm:
                limit = 8 * torch.finfo(dtype).eps
                assert exact.max_error(exact.outputs_of(results), wanted[case.norm]) <= limit


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_expected_agrees_with_numpy(monkeypatch, dtype):
    monkeypatch.setattr(exact, "PIECE", 2 * 33)  # two rows at a time, and one at the end
    inputs = draw("training", dtype=dtype)
    x, dy, gamma, beta = (t.detach().double().numpy() for t in (inputs.x, inputs.dy, inputs.gamma, inputs.beta))
    wanted = exact.expected(inputs, "layer", residual=False, forward=True, backward=True)
    assert [len(piece) for piece in wanted[0]] == [2, 2, 1]
    y = sn.layer_norm(x, gamma, beta, exact.EPS)
    assert exact.max_error((y, *sn.layer_norm_backward(dy, x, gamma, exact.EPS)), wanted) < 1e-12


def test_a_sum_hands_the_gradient_of_the_stream_on():
    inputs = draw("add_norm_training")
    _y, h, dx, df, *_ = exact.expected(inputs, "rms", residual=True, forward=True, backward=True)
    assert torch.equal(dx[0], df[0])
    (alone, *_) = exact.expected(inputs, "rms", residual=False, forward=False, backward=True)
    assert torch.equal(h[0], inputs.x.double() + inputs.f.double())
    assert not torch.allclose(dx[0], alone[0])


@pytest.mark.parametrize("wrong", [1.001, math.nan])
@pytest.mark.parametrize("place", range(5))
def test_an_error_of_any_result_is_seen(place, wrong):
    inputs = draw("add_norm_training")
    wanted = exact.expected(inputs, "rms", residual=True, forward=True, backward=True)
    results = [torch.cat(pieces) for pieces in wanted]
    assert exact.max_error(results, wanted) == 0
    results[place] = results[place] * wrong
    assert not exact.max_error(results, wanted) <= 9e-4


def test_a_missing_result_is_no_result():
    inputs = draw("training")
    wanted = exact.expected(inputs, "layer", residual=False, forward=True, backward=True)
    with pytest.raises(ValueError, match=r"zip\(\)"):
        exact.max_error([torch.cat(pieces) for pieces in wanted[:-1]], wanted)


#: In arrays of x for the roof; vectors of d on top for LayerNorm and for RMSNorm.
MOVED = {
    "forward": (2, 2, 1),
    "backward": (3, 3, 2),
    "training": (5, 5, 3),
    "add_norm": (4, 2, 1),
    "add_norm_backward": (4, 3, 2),
    "add_norm_training": (8, 5, 3),
    "host": (2, 2, 1),
    "host_training": (5, 5, 3),
}


@pytest.mark.parametrize("name", timing.TABLES)
def test_bytes_count_each_array_once(name):
    arrays, layer, rms = MOVED[name]
    vectors = {"": 0, "layer": layer, "rms": rms}
    for case in built_cases(name, (6, 8)).values():
        assert case.bytes == (arrays * 6 + vectors[case.norm]) * 8 * 4


@pytest.mark.parametrize("name", timing.TABLES)
def test_a_roof_reads_and_writes_just_as_many_arrays(name):
    """Each of these operations reads its tensors once and writes one."""
    call = built_cases(name)["copy"].prepare()
    reads = {"clone": 1, "add": 2, "addcmul": 3}
    assert sum(reads[operation.name] + 1 for operation in traffic.operations(call)) == MOVED[name][0]
    assert not any(result.requires_grad for result in call())


def test_a_roof_finds_its_memory_where_its_cases_do():
    found = built_cases("forward")
    assert {key: case.copy for key, case in found.items() if not case.norm} == {c: c for c in cases.COPIES}
    for key, case in found.items():
        new = case.prepare()
        first, second = new(), new()
        there = first is second
        expected = (
            "copy_out" if there else "copy" if torch.is_tensor(first) or isinstance(first, tuple) else "copy_numpy"
        )
        assert case.copy == expected, key
    values = found["copy_out"].prepare()()
    assert torch.equal(values, draw("forward").x)


def test_rivals_can_be_chosen_and_roofs_go_with_them():
    inputs = draw("forward")
    assert list(timing.build_cases("forward", inputs, ["blocked_out"])) == [
        "copy_out",
        "layer_blocked_out",
        "rms_blocked_out",
    ]
    assert list(timing.build_cases("forward", inputs, ["hand"])) == ["copy", "layer_hand", "rms_hand"]


def test_modules_compute_with_the_inputs_own_parameters():
    inputs = draw("training")
    case = timing.build_cases("training", inputs)["layer_module"]
    *_, dgamma, dbeta = case.prepare()()
    assert dgamma.any()
    assert torch.allclose(dbeta, inputs.dy.sum(0), atol=1e-5)


# A fake machine: each call advances a clock by its cost, and the machine slows down over time.


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
    seconds = measure.interleave(machine, rounds=4)
    assert order == list("abc" + "bca" + "cab" + "abc")
    assert {name: len(ts) for name, ts in seconds.items()} == {"a": 4, "b": 4, "c": 4}


def test_rounds_keep_the_share_when_the_machine_slows_down():
    costs = {"copy": 1.0, "norm": 4.0}
    machine, _ = fake_clocks(costs)
    rounds = measure.interleave(machine, rounds=40)
    assert measure.quartiles(measure.share_of_copy(rounds["norm"], rounds["copy"]))["median"] == pytest.approx(
        0.25, rel=0.02
    )

    machine, _ = fake_clocks(costs)
    one_after_the_other = {name: [machine[name]() for _ in range(40)] for name in costs}
    assert measure.quartiles(measure.share_of_copy(*reversed(one_after_the_other.values())))["median"] < 0.2


def test_the_share_divides_round_by_round():
    assert measure.share_of_copy([2.0, 20.0], [1.0, 10.0]) == [0.5, 0.5]


def test_quartiles():
    assert measure.quartiles([4.0, 1.0, 3.0, 2.0, 5.0]) == {"q1": 2.0, "median": 3.0, "q3": 4.0}


@pytest.mark.parametrize(("device", "host"), [("cpu", False), ("cuda", True)])
def test_a_clock_reads_seconds_per_call_on_one_thread(device, host):
    threads = []

    def run():
        threads.append(torch.get_num_threads())

    seconds = measure.clocks({"run": cases.Case(lambda: run, 0)}, device, host=host)["run"]()
    assert 0 < seconds < 0.1
    assert set(threads) == {1}


# Records


@pytest.fixture(scope="module")
def small_record():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "compile", lambda function, dynamic: function)
        patch.setattr(record, "apart", call_here)
        patch.setattr(record, "device_here", lambda: "cpu")
        patch.setattr(record, "clocks", lambda cases, *_, host: fake_clocks(dict.fromkeys(cases, 2e-6))[0])
        lines = []
        made = timing.take(dict.fromkeys(CPU_TABLES, SHAPES), rounds=5, tell=lines.append)
        assert lines == [f"{name}, {rows} x {d}" for name in CPU_TABLES for rows, d in SHAPES]
        return made


def test_every_table_has_a_process_of_its_own(monkeypatch):
    processes = []
    monkeypatch.setattr(record, "apart", lambda call, *arguments: processes.append(APART(os.getpid)) or {})
    timing.take({"forward": SHAPES})
    assert len({os.getpid(), *processes}) == 1 + len(SHAPES)


def test_a_record_survives_the_file_and_is_valid(small_record, tmp_path):
    path = timing.write(small_record, tmp_path)
    assert json.loads(path.read_text("utf-8")) == small_record
    assert path.name.startswith("cpu-")


def test_a_faulty_record_is_not_written(small_record, tmp_path):
    with pytest.raises(ValueError, match="schema must be 2"):
        timing.write({**small_record, "schema": 1}, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_faulty_record_is_not_read(small_record, tmp_path, monkeypatch):
    monkeypatch.setattr(record, "files", lambda package: tmp_path)
    (tmp_path / "records").mkdir()
    path = timing.write(small_record, tmp_path / "records")
    assert timing.read_records() == [small_record]
    path.write_text(path.read_text("utf-8").replace('"schema": 2', '"schema": 1'), "utf-8")
    with pytest.raises(ValueError, match="schema must be 2"):
        timing.read_records()


def test_the_records_of_the_package_say_what_made_them():
    records = timing.read_records()
    assert "cpu" in [found["device"]["kind"] for found in records]
    for found in records:
        assert found["command"].startswith("python -m subnorm.timing")
        assert found["commit"]


def test_none_of_our_own_is_wrong_in_the_records_of_the_package():
    for found in timing.read_records():
        for table in found["tables"]:
            for key, row in table["rows"].items():
                if key.endswith(("_hand", "_builtin", "_module", "_fused", "_numpy", "_blocked", "_out", "_triton")):
                    assert row["note"] is None, (table["name"], table["shape"], key)


def setting(*path_and_value):
    *path, key, value = path_and_value

    def plant(found):
        for step in path:
            found = found[step]
        found[key] = value

    return plant


def every_row(change):
    return lambda found: [change(row) for row in found["tables"][0]["rows"].values()]


ROW = ("tables", 0, "rows", "rms_builtin")
GPU = {"kind": "cuda", "name": "g", "threads": None, "driver": None, "cuda": "12", "clocks": "fast"}
FAULTS = {
    "no date": (lambda found: found.pop("date"), "the record must have the keys"),
    "unknown key": (setting("host", "a"), "the record must have the keys"),
    "schema": (setting("schema", 1), "schema must be 2"),
    "date": (setting("date", "yesterday"), "date must be a day"),
    "command": (setting("command", ""), "command must say"),
    "commit": (setting("commit", "main"), "commit must be forty"),
    "load": (setting("load", -1), "load must be"),
    "kind": (setting("device", "kind", "tpu"), "kind must be cpu or cuda"),
    "name": (setting("device", "name", ""), "must name the device"),
    "threads": (setting("device", "threads", 2), "threads must be 1"),
    "driver on a CPU": (setting("device", "driver", "1.0"), "driver must be given for a GPU, and only there"),
    "GPU without driver": (setting("device", GPU), "driver must be given for a GPU"),
    "GPU without clocks": (
        setting("device", GPU | {"driver": "1", "clocks": None}),
        "clocks must be given for a GPU",
    ),
    "device": (lambda found: found["device"].pop("clocks"), "device must have the keys"),
    "version": (setting("versions", "torch", ""), "versions must name"),
    "peer": (lambda found: found["versions"].pop("numba"), "versions must have the keys"),
    "clock": (setting("clock", "cuda_events"), "clock must be one of"),
    "cache": (setting("cache", "flushed"), "cache must be warm"),
    "no table": (setting("tables", []), "there must be a table"),
    "table twice": (lambda found: found["tables"].append(found["tables"][0]), "no table may occur twice"),
    "key of a table": (lambda found: found["tables"][0].pop("dtype"), "a table must have the keys"),
    "table of a GPU": (setting("tables", 0, "name", "backward"), "name must be one of"),
    "shape": (setting("tables", 0, "shape", [4, 0]), "shape must be rows and features"),
    "dtype": (setting("tables", 0, "dtype", "bfloat16"), "dtype must be float32"),
    "unknown row": (lambda found: found["tables"][0]["rows"].update(fast={}), "rows must be of"),
    "no copy": (lambda found: found["tables"][0]["rows"].pop("copy"), "the roof called copy must be there"),
    "copy not timed": (
        setting("tables", 0, "rows", "copy", "note", "failed: it"),
        "the roof called copy must be there",
    ),
    "key of a row": (lambda found: found["tables"][0]["rows"]["rms_hand"].pop("note"), "rms_hand must have the keys"),
    "no such roof": (setting(*ROW, "copy", "copy_gpu"), "copy must be a roof of the table"),
    "a norm for a roof": (setting(*ROW, "copy", "rms_hand"), "copy must be a roof of the table"),
    "bytes": (setting(*ROW, "bytes", 4 * 8 * 4), "bytes must be 288"),
    "note": (setting(*ROW, "note", "slow"), "note must begin with"),
    "timed though wrong": (setting(*ROW, "note", "wrong: off by 1"), "must not be timed"),
    "error": (setting(*ROW, "max_error", 0.1), "must be right to be timed"),
    "no error": (setting(*ROW, "max_error", None), "must be right to be timed"),
    "NaN": (setting(*ROW, "max_error", math.nan), "must be right to be timed"),
    "few rounds": (every_row(lambda row: row.update(rounds=row["rounds"][:4])), "rounds must be at least 5"),
    "uneven rounds": (setting(*ROW, "rounds", [2e-6] * 6), "as many as its roof's, 5"),
    "negative time": (setting(*ROW, "rounds", [2e-6, 2e-6, -2e-6, 2e-6, 2e-6]), "positive seconds"),
    "edited median": (setting(*ROW, "seconds", "median", 1e-6), "rms_builtin.seconds must be"),
    "edited share": (setting(*ROW, "share", "q3", 1.0), "rms_builtin.share must be"),
    "edited flag": (setting(*ROW, "above_roof", True), "rms_builtin.above_roof must be False"),
}


@pytest.mark.parametrize(("plant", "rule"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_refused(small_record, plant, rule):
    faulty = copy.deepcopy(small_record)
    timing.validate(faulty)
    plant(faulty)
    with pytest.raises(ValueError, match=rf"{rule}[^;]*; got .*Make records with"):
        timing.validate(faulty)


# A table whose cases take given times; some of them are wrong.


@pytest.fixture
def measured(monkeypatch):
    """One table of a machine where a norm takes `costs` seconds, or runs a given replacement."""

    def table(name="forward", costs=None, **instead):
        original = record.build_cases

        def build(*arguments):
            found = original(*arguments)
            for key, call in instead.items():
                found[key] = cases.Case(lambda call=call: call, found[key].bytes, norm=found[key].norm)
            return found

        monkeypatch.setattr(record, "build_cases", build)
        monkeypatch.setattr(
            record, "clocks", lambda cases, *_, host: {k: lambda k=k: (costs or {}).get(k, 2e-6) for k in cases}
        )
        device = "cpu"
        return record.measure(name, (4, 8), device, 5, ["hand", "builtin", "module"])

    return table


def test_a_wrong_case_is_named_and_not_timed(measured, small_record):
    def crash():
        raise RuntimeError("no kernel for this width")

    made = measured(
        rms_module=lambda: torch.zeros(4, 8), layer_module=crash, layer_hand=lambda: torch.full((4, 8), math.nan)
    )
    notes = {key: row["note"] for key, row in made["rows"].items() if row["note"]}
    assert notes == {
        "rms_module": "wrong: off by 1.0e+00 of the largest entry",
        "layer_module": "failed: RuntimeError",
        "layer_hand": "wrong: off by nan of the largest entry",
    }
    assert all(made["rows"][key]["rounds"] == [] for key in notes)
    found = {**small_record, "tables": [made]}
    timing.validate(json.loads(json.dumps(found)))
    assert "RMSNorm, by hand" in (text := timing.table(found))
    assert sum("wrong: off by" in line for line in text.splitlines()) == 2


def test_faster_than_its_bytes_is_flagged(measured, small_record):
    made = measured(costs={"copy": 1.06e-6, "rms_hand": 1e-6, "rms_module": 1.02e-6})
    assert [key for key, row in made["rows"].items() if row["above_roof"]] == ["rms_hand"]
    found = {**small_record, "tables": [made]}
    timing.validate(found)
    (line,) = (line for line in timing.table(found).splitlines() if "above the roof" in line)
    assert line.startswith("RMSNorm, by hand")
    assert timing.rows(found, "forward", (4, 8))["rms_hand"].above_roof


def test_the_time_to_call_has_no_roof(measured):
    made = measured("host", costs={"copy": 9e-6})
    assert made["rows"]["rms_hand"]["share"]["median"] == 4.5
    assert not any(row["above_roof"] for row in made["rows"].values())


def test_sums_over_many_rows_may_be_off_by_more_but_y_may_not():
    eps, half = torch.finfo(torch.float32).eps, torch.finfo(torch.bfloat16).eps
    assert (
        record._limit("forward", (4096, 8), torch.float32)
        == record._limit("add_norm", (1, 8), torch.float32)
        == 8 * eps
    )
    assert record._limit("training", (4096, 8), torch.float32) == (8 + 64) * eps
    assert record._limit("backward", (65536, 8), torch.bfloat16) == 8 * half + 256 * eps  # summed in float32


def test_each_table_compiles_for_its_own_shape(measured, monkeypatch):
    resets = []
    monkeypatch.setattr(torch._dynamo, "reset", lambda: resets.append(1))
    measured()
    assert resets == [1]


# Replay


def test_rows_are_those_of_one_table(small_record):
    assert timing.names(small_record) == CPU_TABLES
    assert timing.shapes(small_record, "training") == [(4, 8), (2, 3)]
    found = timing.rows(small_record, "add_norm", (2, 3))
    stored = next(t for t in small_record["tables"] if (t["name"], t["shape"]) == ("add_norm", [2, 3]))["rows"]
    assert list(found) == list(stored)
    for key, row in found.items():
        assert list(row.rounds) == stored[key]["rounds"]
        assert (row.bytes, row.seconds, row.share) == tuple(stored[key][k] for k in ("bytes", "seconds", "share"))
    assert found["rms_builtin"].label == "x + f, F.rms_norm"
    assert found["rms_fused"].label == "st.AddRMSNorm"


@pytest.mark.parametrize(("name", "shape"), [("backward", (4, 8)), ("forward", (8, 4))])
def test_a_table_that_is_not_there_is_asked_for(small_record, name, shape):
    with pytest.raises(KeyError, match=f"no table {name}"):
        timing.rows(small_record, name, shape)


def test_the_text_shows_every_row_of_the_tables_asked_for(small_record):
    text = timing.table(small_record, "training")
    assert text.count("\ntraining, ") == 2
    assert "\nforward, " not in text
    assert f"\n{timing.table(small_record, 'forward').split(chr(10), 2)[2]}" in timing.table(small_record)
    labels = [row.label for row in timing.rows(small_record, "training", (2, 3)).values()]
    for line, label in zip(text.splitlines()[-len(labels) :], labels, strict=True):
        assert line.startswith(label + "  ")


def test_the_heading_says_where_when_and_with_what(small_record):
    here = {**small_record, "commit": "0123456789" * 4, "load": 0.25}
    text = timing.heading(here)
    for part in (
        here["device"]["name"],
        "one thread",
        here["date"],
        "commit 0123456,"[:-1],
        "load 0.2",
        torch.__version__,
    ):
        assert part in text
    elsewhere = {**here, "commit": None, "load": None, "device": {**here["device"], "threads": None, "driver": "580.1"}}
    text = timing.heading(elsewhere)
    assert "driver 580.1" in text
    assert "load" not in text
    assert f"version {here['versions']['subnorm']}" in text


def test_live_says_when_there_is_no_gpu(monkeypatch, small_record):
    asked = []
    monkeypatch.setattr(replay, "take", lambda *arguments: asked.append(arguments) or small_record)
    monkeypatch.setattr(replay, "device_here", lambda: "cpu")
    assert timing.live().startswith("no GPU here: ")
    monkeypatch.setattr(replay, "device_here", lambda: "cuda")
    assert "no GPU" not in timing.live()
    assert [list(plan["forward"]) for plan, *_ in asked] == [replay.LIVE["cpu"], replay.LIVE["cuda"]]


# The command


@pytest.fixture
def command(monkeypatch, small_record):
    """The plans that the command measures, without measuring."""
    plans = []

    def take(plan, rounds, command, tell, keep):
        plans.append((plan, rounds))
        tell("forward, 4 x 8")
        keep({**small_record, "command": command})
        return {**small_record, "command": command}

    monkeypatch.setattr(__main__, "device_here", lambda: "cpu")
    monkeypatch.setattr(__main__, "take", take)
    return plans


def test_the_command_takes_every_table_or_those_that_are_named(command, capsys):
    __main__.main([])
    __main__.main(["training", "forward", "--rounds", "9"])
    (everything, rounds), (named, more) = command
    assert (everything, rounds) == (record.PLAN["cpu"], 5)
    assert (list(named), more) == (["forward", "training"], 9)
    assert capsys.readouterr().out.startswith("timing forward, 4 x 8\n")


def test_the_command_keeps_the_record_when_it_is_told_to(command, tmp_path, capsys):
    __main__.main(["--folder", str(tmp_path)])
    assert not list(tmp_path.iterdir())
    __main__.main(["--folder", str(tmp_path / "new"), "forward", "--rounds", "9", "--record"])
    (path,) = (tmp_path / "new").iterdir()
    kept = json.loads(path.read_text("utf-8"))["command"]
    assert kept == "python -m subnorm.timing forward --rounds 9 --record"  # without the local folder
    assert str(path) in capsys.readouterr().out


def test_a_run_that_is_cut_off_leaves_its_tables_and_the_last_record(small_record, tmp_path, monkeypatch):
    last = timing.write(small_record, tmp_path)

    def measure(name, shape, *_):
        if shape == (2, 3):
            raise KeyboardInterrupt
        return small_record["tables"][0]

    monkeypatch.setattr(record, "measure", measure)
    monkeypatch.setattr(record, "device_here", lambda: "cpu")
    monkeypatch.setattr(__main__, "PLAN", {device: {"forward": SHAPES} for device in record.PLAN})
    with pytest.raises(KeyboardInterrupt):
        __main__.main(["--folder", str(tmp_path), "--record"])
    left = json.loads(last.with_suffix(".part").read_text("utf-8"))
    record.validate(left)
    assert left["tables"] == small_record["tables"][:1]
    assert json.loads(last.read_text("utf-8")) == small_record


@pytest.mark.parametrize(
    ("arguments", "why"),
    [(["backwards"], "no table backwards here; there are forward"), (["--rounds", "4"], "at least 5")],
)
def test_the_command_refuses_before_it_measures(command, capsys, arguments, why):
    with pytest.raises(SystemExit):
        __main__.main(arguments)
    assert why in capsys.readouterr().err
    assert command == []


def test_the_folder_of_the_records_is_that_of_the_package():
    assert Path(record.__file__).with_name("records") == Path(__main__.__file__).with_name("records")
