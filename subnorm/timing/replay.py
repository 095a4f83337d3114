"""Read a record, as rows for a figure or as text, or measure the machine at hand."""

from dataclasses import dataclass
from typing import Any

from subnorm.provenance import made
from subnorm.timing.cases import LABELS, TABLES
from subnorm.timing.measure import device_here
from subnorm.timing.record import Record, Shape, take

#: Shapes for `live`, by device: a large array, and one so small that the cost of the call shows.
LIVE: dict[str, list[Shape]] = {"cpu": [(4096, 512), (1, 4096)], "cuda": [(4096, 4096), (1, 4096)]}


@dataclass(frozen=True)
class Row:
    """One case of a table.

    Args:
        label: its name for the reader.
        bytes: how many bytes one call must move.
        copy: the key of its roof, which moves the same arrays and computes nothing.
        max_error: its largest error, relative to the largest entry of the result; None for a roof.
        note: why it was not timed; None if it was.
        rounds: seconds per call in each round. Round i of all rows was measured together.
        seconds: their quartiles, named q1, median and q3; None without rounds.
        share: quartiles of the roof's time over the case's, round by round; None without rounds.
        above_roof: whether the median share exceeds `ROOF`, which should be impossible and needs an explanation.
    """

    label: str
    bytes: int
    copy: str
    max_error: float | None
    note: str | None
    rounds: tuple[float, ...]
    seconds: dict[str, float] | None
    share: dict[str, float] | None
    above_roof: bool


def names(record: Record) -> list[str]:
    """The names of its tables, in order."""
    return list(dict.fromkeys(table["name"] for table in record["tables"]))


def shapes(record: Record, name: str) -> list[Shape]:
    """The shapes of the tables of this name."""
    return [tuple(table["shape"]) for table in record["tables"] if table["name"] == name]


def rows(record: Record, name: str, shape: Shape) -> dict[str, Row]:
    """The rows of one table by their keys, roofs first.

    Raises:
        KeyError: the record has no such table.
    """
    for table in record["tables"]:
        if (table["name"], tuple(table["shape"])) == (name, tuple(shape)):
            return {key: _row(name, key, row) for key, row in table["rows"].items()}
    raise KeyError(
        f"the record has no table {name} at {shape}; it has {[(n, shapes(record, n)) for n in names(record)]}"
    )


def _row(name: str, key: str, row: dict[str, Any]) -> Row:
    unfused = TABLES[name].residual and key.endswith(("_builtin", "_module", "_compile"))
    label = ("x + f, " if unfused else "") + LABELS[key]
    return Row(**{"label": label, **row, "rounds": tuple(row["rounds"])})


def heading(record: Record) -> str:
    """The device, date and versions of the measurement."""
    device, found = record["device"], record["versions"]
    where = device["name"] + (", one thread" if device["threads"] else f", driver {device['driver']}")
    packages = ", ".join(f"{package} {version}" for package, version in found.items() if version)
    return f"{where}, {made(record, found['subnorm'])}\n{packages}"


def table(record: Record, name: str | None = None) -> str:
    """The record as text, or its tables of one name: time, share of the roof's speed, and warnings."""
    lines = [heading(record)]
    for one in names(record) if name is None else [name]:
        for shape in shapes(record, one):
            dtype = next(t["dtype"] for t in record["tables"] if t["name"] == one)
            head = f"{one}, {shape[0]} x {shape[1]}, {dtype}"
            lines.append(f"\n{head:<40} {'MB':>8} {'µs':>9}  {'[quartiles]':<18} {'share':>5}  [quartiles]")
            lines += [_line(row) for row in rows(record, one, shape).values()]
    return "\n".join(lines)


def _line(row: Row) -> str:
    start = f"{row.label:<40} {row.bytes / 1e6:8.3f}"
    if row.seconds is None or row.share is None:
        return f"{start}  {row.note}"
    micro = {key: f"{1e6 * s:.{1 if s < 1e-3 else 0}f}" for key, s in row.seconds.items()}
    share, flag = row.share, "  above the roof" if row.above_roof else ""
    span = f"[{micro['q1']}, {micro['q3']}]"
    return (
        f"{start} {micro['median']:>9}  {span:<18} {share['median']:5.2f}  [{share['q1']:.2f}, {share['q3']:.2f}]{flag}"
    )


def live() -> str:
    """Measure the machine at hand for a few seconds: the norms by hand, built in and, on a CPU, ours. Returns text."""
    device = device_here()
    no_gpu = "no GPU here: timed on one thread of the CPU\n" if device == "cpu" else ""
    record = take({"forward": LIVE[device]}, 5, ("hand", "builtin", "module"), "subnorm.timing.live()")
    return no_gpu + table(record)
