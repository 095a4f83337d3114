"""Keep a measurement with everything that it depends on, check it, and read it back."""

import json
import math
import platform
import re
from collections.abc import Mapping
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from subnorm.provenance import today, versions
from subnorm.timing import cuda
from subnorm.timing.cases import LABELS, forward_cases, max_error
from subnorm.timing.measure import CPU_CLOCK, clocks, device_here, interleave, of_copy, quartiles

Record = dict[str, Any]

#: A large array, and one so small that the cost of calling shows. On a GPU "large" starts later.
SHAPES = {"cpu": [(4096, 512), (8, 512)], "cuda": [(8192, 4096), (64, 4096)]}
DTYPES = {"cpu": "float32", "cuda": "bfloat16"}


def take(rounds: int = 33, command: str = "subnorm.timing.take()") -> Record:
    """Measure on the GPU if there is one, otherwise on one thread of the CPU.

    Args:
        rounds: how many times each case is timed; with 4k + 1 the quartiles are rounds, not values between two.
        command: what was typed, for whoever wants to repeat it.

    Returns:
        the record: who, when and how, then one table for each shape.

    Raises:
        ArithmeticError: a case gives a wrong result.
    """
    device = device_here()
    return {
        "schema": 1,
        "date": today(),
        "command": command,
        "device": _describe(device),
        "versions": versions(),
        "clock": "cuda_events" if device == "cuda" else CPU_CLOCK,
        "tables": [_table(shape, DTYPES[device], device, rounds) for shape in SHAPES[device]],
    }


def _table(shape: tuple[int, int], dtype: str, device: str, rounds: int) -> Record:
    cases = forward_cases(shape, getattr(torch, dtype), device)
    errors = {name: max_error(name, case) for name, case in cases.items()}
    measured = interleave(clocks({name: case.run for name, case in cases.items()}, device), rounds)
    seconds = {name: [float(f"{s:.4g}") for s in ts] for name, ts in measured.items()}
    ratios = of_copy(seconds)
    return {
        "shape": list(shape),
        "dtype": dtype,
        "rows": {
            name: {
                "bytes": case.bytes,
                "max_error": float(f"{errors[name]:.1e}"),
                "of_copy": quartiles(ratios[name]),
                "seconds": quartiles(seconds[name]),
                "rounds": seconds[name],
            }
            for name, case in cases.items()
        },
    }


def _describe(device: str) -> dict[str, Any]:
    if device == "cuda":
        return {"kind": device, "threads": None, **cuda.description()}
    return {"kind": device, "threads": 1, "name": _cpu_model(), "driver": None, "cuda": None}


def _cpu_model() -> str:
    """The model as the operating system reports it, never the machine's own name."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def validate(record: Record) -> None:
    """Refuse a record that is incomplete, edited by hand, or too good to be true.

    Raises:
        ValueError: with the place, the rule, and what stands there.
    """
    _keys("the record", record, {"schema", "date", "command", "device", "versions", "clock", "tables"})
    _must(record["schema"] == 1, "schema must be 1", record["schema"])
    _must(_is_date(record["date"]), "date must be a day, YYYY-MM-DD", record["date"])
    _must(bool(record["command"]), "command must say how to repeat it", record["command"])

    device = record["device"]
    _keys("device", device, {"kind", "name", "threads", "driver", "cuda"})
    _must(device["kind"] in SHAPES, "device.kind must be cpu or cuda", device["kind"])
    on_gpu = device["kind"] == "cuda"
    _must(bool(device["name"]), "device.name must say what was measured on", device["name"])
    _must(device["threads"] == (None if on_gpu else 1), "device.threads must be 1 on a CPU, null on a GPU", device)
    for key in ("driver", "cuda"):
        _must(bool(device[key]) == on_gpu, f"device.{key} must be given for a GPU, and only there", device[key])
    _keys("versions", record["versions"], {"python", "torch", "numpy", "subnorm"})
    _must(all(record["versions"].values()), "versions must not be empty", record["versions"])
    allowed = {"cuda_events"} if on_gpu else {"thread_time", "perf_counter"}
    _must(record["clock"] in allowed, f"clock must be one of {sorted(allowed)} on {device['kind']}", record["clock"])

    _must(bool(record["tables"]), "there must be a table", record["tables"])
    for table in record["tables"]:
        _validate_table(table)


def _validate_table(table: Record) -> None:
    _keys("a table", table, {"shape", "dtype", "rows"})
    shape = table["shape"]
    _must(len(shape) == 2 and min(shape) > 0, "shape must be rows and features", shape)
    _must(table["dtype"] in DTYPES.values(), f"dtype must be one of {sorted(DTYPES.values())}", table["dtype"])
    dtype: torch.dtype = getattr(torch, table["dtype"])
    _keys("the rows of a table", table["rows"], set(LABELS))
    floor = 2 * math.prod(shape) * dtype.itemsize
    copy = table["rows"]["copy"]["rounds"]
    for name, row in table["rows"].items():
        _keys(name, row, {"bytes", "max_error", "of_copy", "seconds", "rounds"})
        rounds = row["rounds"]
        _must(row["bytes"] >= floor, f"{name}.bytes must count x once and y once, {floor}", row["bytes"])
        _must(0 <= row["max_error"] <= 8 * torch.finfo(dtype).eps, f"{name} must be right", row["max_error"])
        _must(len(rounds) >= 5, f"{name}.rounds must be at least five", len(rounds))
        _must(len(rounds) == len(copy), f"{name}.rounds must be as many as the copy's, {len(copy)}", len(rounds))
        _must(all(0 < s < math.inf for s in rounds), f"{name}.rounds must be positive seconds", rounds)
        spreads = {"seconds": quartiles(rounds), "of_copy": quartiles(of_copy({"copy": copy, name: rounds})[name])}
        for key, spread in spreads.items():
            _must(row[key] == spread, f"{name}.{key} must be {spread}, as its rounds say", row[key])
        fastest = row["of_copy"]["median"]
        _must(fastest >= 0.9, f"{name} must not beat a copy of its bytes: measure again, or count them again", fastest)


def _must(kept: bool, rule: str, got: object) -> None:
    if not kept:
        raise ValueError(f"{rule}; got {got!r}. Records are made by `python -m subnorm.timing record`, not by hand.")


def _keys(where: str, mapping: Mapping[str, object], expected: set[str]) -> None:
    _must(set(mapping) == expected, f"{where} must have the keys {sorted(expected)}", sorted(mapping))


def _is_date(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).date().isoformat() == text
    except ValueError:
        return False


def write(record: Record, folder: Path) -> Path:
    """Check the record and write it as JSON, one file for each device."""
    validate(record)
    slug = "-".join("".join(c if c.isalnum() else " " for c in record["device"]["name"].lower()).split())
    path = folder / f"{record['device']['kind']}-{slug}.json"
    text = json.dumps(record, indent=1)
    # A list of numbers belongs on one line: then a reader sees the whole record on a page.
    text = re.sub(r"\[[^][{}]+\]", lambda numbers: re.sub(r"\s+", " ", numbers[0]), text)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")
    return path


def read_records() -> list[Record]:
    """The records that come with the package, CPUs before GPUs."""
    folder = files("subnorm.timing").joinpath("records")
    found = [json.loads(f.read_text(encoding="utf-8")) for f in folder.iterdir() if f.name.endswith(".json")]
    return sorted(found, key=lambda record: (record["device"]["kind"], record["device"]["name"]))


def table(record: Record) -> str:
    """The record as text: each case's time as a multiple of the copy's, with quartiles."""
    device = record["device"]
    lines = [] if device["kind"] == "cuda" else ["no GPU: timed on one thread of the CPU"]
    lines.append(f"{device['name']}, torch {record['versions']['torch']}, {record['date']}")
    for one in record["tables"]:
        rows, d = one["shape"]
        head = f"{rows} x {d}, {one['dtype']}"
        lines.append(f"\n{head:<26} {'of copy':>8}    {'[quartiles]':<16} {'microseconds':>12}")
        for name, row in one["rows"].items():
            q = row["of_copy"]
            span = f"[{q['q1']:.2f}, {q['q3']:.2f}]"
            lines.append(f"{LABELS[name]:<26} {q['median']:8.2f}    {span:<16} {1e6 * row['seconds']['median']:12.1f}")
    return "\n".join(lines)
