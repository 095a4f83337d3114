"""Take a measurement, store it with everything that it depends on, validate it, and read it back."""

import json
import math
import multiprocessing
import re
from collections.abc import Callable, Container, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from subnorm.provenance import commit, cpu_model, is_commit, is_day, load, today, versions
from subnorm.timing import cuda, peers
from subnorm.timing.cases import LABELS, NORMS, RIVALS, TABLES, Case, build_cases
from subnorm.timing.exact import Inputs, expected, max_error, outputs_of
from subnorm.timing.measure import CPU_CLOCK, clocks, device_here, interleave, quartiles, share_of_copy

Record = dict[str, Any]
Shape = tuple[int, int]

_CPU_SHAPES = [(1, 4096), (16, 4096), (4096, 512), (4096, 4096)]
_CUDA_SHAPES = [(4096, 1024), (16384, 4096), (16384, 16384)]
_ONE_ROW = [(1, 4096)]
#: The tables to measure on each device, and their shapes.
PLAN: dict[str, dict[str, list[Shape]]] = {
    "cpu": dict.fromkeys(("forward", "training", "add_norm", "add_norm_training"), _CPU_SHAPES),
    "cuda": dict.fromkeys(("forward", "backward", "add_norm", "add_norm_backward"), _CUDA_SHAPES)
    | dict.fromkeys(("host", "host_training"), _ONE_ROW),
}
#: What a device may be measured in: see `_dtype`.
DTYPES = {"cpu": ("float32",), "cuda": ("bfloat16", "float16")}

#: Allowed error of a case, in machine epsilons of its dtype at the largest entry of each result; see also `_limit`.
ROUNDINGS = 8

#: Fewer rounds would give meaningless quartiles.
FEWEST = 5

#: Rows above this share of the copy's speed are flagged: no case can take less time than moving its bytes.
ROOF = 1.05


def take(
    plan: Mapping[str, Iterable[Shape]] | None = None,
    rounds: int = FEWEST,
    rivals: Container[str] = tuple(RIVALS),
    command: str = "subnorm.timing.take()",
    tell: Callable[[str], object] = lambda line: None,
    keep: Callable[[Record], object] = lambda record: None,
) -> Record:
    """Measure on the GPU if there is one, otherwise on one thread of the CPU.

    Args:
        plan: the shapes of each table, by its name; None for the `PLAN` of the device.
        rounds: how many times to time each case; with 4k + 1 rounds no quartile falls between two rounds.
        rivals: the rivals to time, if the device supports them and they are installed.
        command: the command that repeats the measurement.
        tell: called with a line at the start of each table, and for a table that is left out.
        keep: called with the record so far at the end of each table, so that a run that is cut off has left something.

    Returns:
        the record: device, date and settings, then one table for each name and shape that fits the GPU's memory.
    """
    device = device_here()
    tables: list[Record] = []
    record = {
        "schema": 2,
        "date": today(),
        "command": command,
        "commit": commit(Path(__file__)),
        "load": load(),  # before the measurement adds to it
        "device": {},
        "versions": versions() | {package: peers.version(package) for package in peers.PACKAGES},
        "clock": "cuda_events" if device == "cuda" else CPU_CLOCK,
        "cache": "flushed" if device == "cuda" else "warm",
        "tables": tables,
    }
    for name, shapes in (PLAN[device] if plan is None else plan).items():
        for shape in shapes:
            tell(f"{name}, {shape[0]} x {shape[1]}")
            try:
                tables.append(apart(measure, name, shape, device, rounds, rivals))
            except torch.cuda.OutOfMemoryError:
                tell("left out: it does not fit into the memory of the GPU")
            else:
                record["device"] = _describe(device)  # its clocks are those of a device at work
                keep(record)
    return record


def apart(call: Callable[..., Record], *arguments: Any) -> Record:
    """Call it in a new process. In a process that has freed memory, some arrays reuse it and others do not: after
    other tables, a case took three quarters of its usual time in every second round.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(call, *arguments).result()


def measure(name: str, shape: Shape, device: str, rounds: int, rivals: Container[str]) -> Record:
    """One table: compare every case with float64, and time the correct ones."""
    torch._dynamo.reset()  # type: ignore[no-untyped-call]  # compile for this shape, not for dynamic shapes
    dtype = getattr(torch, _dtype(device))
    inputs = Inputs.draw(shape, dtype, device, tracked=TABLES[name].backward)
    cases = build_cases(name, inputs, rivals)
    checked: dict[str, Checked] = dict.fromkeys(cases, (None, None))
    for norm in NORMS:
        these = {key: case for key, case in cases.items() if case.norm == norm}
        checked |= _check(these, expected(inputs, norm, **vars(TABLES[name])), _limit(name, shape, dtype))
    right = {key: case for key, case in cases.items() if checked[key][1] is None}
    measured = interleave(clocks(right, device, host=name.startswith("host")), rounds)
    seconds = {key: [float(f"{s:.4g}") for s in measured.get(key, [])] for key in cases}
    rows = {}
    for key, case in cases.items():
        error, note = checked[key]
        about = {"bytes": case.bytes, "copy": case.copy, "max_error": error, "note": note, "rounds": seconds[key]}
        rows[key] = about | _summary(name, seconds[key], seconds[case.copy])
    return {"name": name, "shape": list(shape), "dtype": _dtype(device), "rows": rows}


def _dtype(device: str) -> str:
    """float32 on a CPU; on a GPU bfloat16, or float16 if it is older than Ampere and does not compute in bfloat16."""
    if device == "cpu":
        return "float32"
    return "bfloat16" if torch.cuda.get_device_capability() >= (8, 0) else "float16"


#: The error of a case, None if unknown; and why it is not timed, None if it is.
Checked = tuple[float | None, str | None]


def _check(cases: Mapping[str, Case], wanted: list[list[Tensor]], limit: float) -> dict[str, Checked]:
    return {key: _compare(case, wanted, limit) for key, case in cases.items()}


def _compare(case: Case, wanted: list[list[Tensor]], limit: float) -> Checked:
    """Compare one case. A wrong result is not timed, nor is a call that fails, for whatever reason of the rival."""
    try:
        error = max_error(outputs_of(case.prepare()()), wanted)
    except Exception as failure:
        return None, f"failed: {type(failure).__name__}"
    if not error <= limit:  # also true for NaN
        return None, f"wrong: off by {error:.1e} of the largest entry"
    return float(f"{error:.1e}"), None


def _limit(name: str, shape: Iterable[int], dtype: torch.dtype) -> float:
    """The allowed error. A backward pass sums over rows, and n random rounding errors add up to the root of n."""
    rows, _d = shape
    sums = math.sqrt(rows) * torch.finfo(torch.float32).eps if TABLES[name].backward else 0
    limit: float = ROUNDINGS * torch.finfo(dtype).eps + sums
    return limit


def _summary(name: str, seconds: list[float], copy: list[float]) -> dict[str, Any]:
    """Quartiles of the rounds, and whether they exceed the roof; a host table has none."""
    if not seconds:
        return {"seconds": None, "share": None, "above_roof": False}
    share = quartiles(share_of_copy(seconds, copy))
    above = not name.startswith("host") and share["median"] > ROOF
    return {"seconds": quartiles(seconds), "share": share, "above_roof": above}


def _describe(device: str) -> dict[str, Any]:
    if device == "cuda":
        return {"kind": device, "threads": None, **cuda.description()}
    return {"kind": device, "threads": 1, "name": cpu_model(), "driver": None, "cuda": None, "clocks": None}


def validate(record: Record) -> None:
    """Reject a record that is incomplete or edited by hand.

    Raises:
        ValueError: with the place, the rule, and the value found.
    """
    keys = {"schema", "date", "command", "commit", "load", "device", "versions", "clock", "cache", "tables"}
    _keys("the record", record, keys)
    _must(record["schema"] == 2, "schema must be 2", record["schema"])
    _must(is_day(record["date"]), "date must be a day, YYYY-MM-DD", record["date"])
    _must(bool(record["command"]), "command must say how to repeat it", record["command"])
    place, busy = record["commit"], record["load"]
    _must(is_commit(place), "commit must be forty hexadecimal digits, or null outside a checkout", place)
    _must(busy is None or busy >= 0, "load must be the load average at the start, or null where there is none", busy)

    device = record["device"]
    _keys("device", device, {"kind", "name", "threads", "driver", "cuda", "clocks"})
    _must(device["kind"] in PLAN, "device.kind must be cpu or cuda", device["kind"])
    on_gpu = device["kind"] == "cuda"
    _must(bool(device["name"]), "device.name must name the device", device["name"])
    _must(device["threads"] == (None if on_gpu else 1), "device.threads must be 1 on a CPU, null on a GPU", device)
    for key in ("driver", "cuda", "clocks"):
        _must(bool(device[key]) == on_gpu, f"device.{key} must be given for a GPU, and only there", device[key])
    own = {"python", "torch", "numpy", "subnorm"}
    _keys("versions", record["versions"], own | set(peers.PACKAGES))
    _must(all(record["versions"][package] for package in own), "versions must name these", sorted(own))
    allowed = {"cuda_events"} if on_gpu else {"thread_time", "perf_counter"}
    _must(record["clock"] in allowed, f"clock must be one of {sorted(allowed)} on {device['kind']}", record["clock"])
    cache = "flushed" if on_gpu else "warm"
    _must(record["cache"] == cache, f"cache must be {cache} on {device['kind']}", record["cache"])

    _must(bool(record["tables"]), "there must be a table", record["tables"])
    places = [(table.get("name"), *table.get("shape", [])) for table in record["tables"]]
    _must(len(places) == len(set(places)), "no table may occur twice", places)
    for table in record["tables"]:
        _validate_table(table, device["kind"])


def _validate_table(table: Record, kind: str) -> None:
    _keys("a table", table, {"name", "shape", "dtype", "rows"})
    name, shape, rows = table["name"], table["shape"], table["rows"]
    _must(name in PLAN[kind], f"name must be one of {list(PLAN[kind])} on {kind}", name)
    _must(len(shape) == 2 and min(shape) > 0, "shape must be rows and features", shape)
    _must(table["dtype"] in DTYPES[kind], f"dtype must be {' or '.join(DTYPES[kind])} on {kind}", table["dtype"])
    dtype: torch.dtype = getattr(torch, table["dtype"])
    _must(set(rows) <= set(LABELS), f"rows must be of {list(LABELS)}", list(rows))
    _must("copy" in rows and rows["copy"]["note"] is None, "the roof called copy must be there", list(rows))
    for key, row in rows.items():
        _keys(key, row, {"bytes", "copy", "max_error", "note", "rounds", "seconds", "share", "above_roof"})
        _must(
            row["copy"] in rows and row["copy"].startswith("copy"),
            f"{key}.copy must be a roof of the table",
            row["copy"],
        )
    for key, row in rows.items():
        moved = TABLES[name].bytes(key.partition("_")[0], shape, dtype)
        _must(row["bytes"] == moved, f"{key}.bytes must be {moved}, each array once", row["bytes"])
        rounds, copy, note = row["rounds"], rows[row["copy"]]["rounds"], row["note"]
        if note is not None:
            _must(note.startswith(("wrong: ", "failed: ")), f"{key}.note must begin with wrong: or failed:", note)
            _must(rounds == [], f"{key} must not be timed: {note}", rounds)
        elif not key.startswith("copy"):
            right = row["max_error"] is not None and 0 <= row["max_error"] <= _limit(name, shape, dtype)
            _must(right, f"{key} must be right to be timed", row["max_error"])
        if note is None:
            _must(len(rounds) >= FEWEST, f"{key}.rounds must be at least {FEWEST}", len(rounds))
            _must(len(rounds) == len(copy), f"{key}.rounds must be as many as its roof's, {len(copy)}", len(rounds))
            _must(all(0 < s < math.inf for s in rounds), f"{key}.rounds must be positive seconds", rounds)
        for part, value in _summary(name, rounds, copy).items():
            _must(row[part] == value, f"{key}.{part} must be {value}, to match the rounds", row[part])


def _must(kept: bool, rule: str, got: object) -> None:
    if not kept:
        raise ValueError(f"{rule}; got {got!r}. Make records with `python -m subnorm.timing --record`, not by hand.")


def _keys(where: str, mapping: Mapping[str, object], expected: set[str]) -> None:
    _must(set(mapping) == expected, f"{where} must have the keys {sorted(expected)}", sorted(mapping))


def write(record: Record, folder: Path, *, whole: bool = True) -> Path:
    """Validate the record and write it as JSON, one file for each device. One that is not whole does not replace it:
    it goes into a file beside it that ends in ``.part``, and that nobody reads until it is renamed.
    """
    validate(record)
    slug = "-".join("".join(c if c.isalnum() else " " for c in record["device"]["name"].lower()).split())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record['device']['kind']}-{slug}.json"
    text = json.dumps(record, indent=1)
    # Put a list of numbers, and three quartiles, on one line each: this keeps the file readable.
    text = re.sub(r"\[[^][{}]+\]|\{[^][{}]*\"q1\"[^][{}]+\}", lambda part: re.sub(r"\s+", " ", part[0]), text)
    part = path.with_suffix(".part")
    part.write_text(text + "\n", encoding="utf-8", newline="\n")
    return part.replace(path) if whole else part


def read_records() -> list[Record]:
    """The records in the package, validated, CPUs before GPUs."""
    folder = files("subnorm.timing").joinpath("records")
    found = [json.loads(f.read_text(encoding="utf-8")) for f in folder.iterdir() if f.name.endswith(".json")]
    for record in found:
        validate(record)
    return sorted(found, key=lambda record: (record["device"]["kind"] == "cuda", record["device"]["name"]))
