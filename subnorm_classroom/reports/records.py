"""The record of each student, as `grade` leaves it in the folder of the grades."""

from pathlib import Path
from typing import Any

from subnorm_classroom.errors import Refusal
from subnorm_classroom.files import read_json

Record = dict[str, Any]


def points(record: Record) -> tuple[float, float]:
    """(points, maximum) of a student."""
    return sum(r["points"] for r in record["results"]), sum(r["max_points"] for r in record["results"])


def is_late(record: Record) -> bool:
    """Whether a hand-in came after the deadline, as far as anybody knows."""
    return bool(record.get("late")) and not str(record["late"]).startswith("unknown")


def worth(result: Record) -> str:
    """The mark of a result, and the reason for it."""
    reason = "by hand" if "by_hand" in result else result["diagnosis"]
    return f"{result['points']:g} of {result['max_points']:g} ({reason})"


def read_grades(out: Path) -> tuple[str, dict[str, Record]]:
    """(set, records by file name) of a folder of grades.

    Raises:
        Refusal: the submissions are not graded, or not all of them.
    """
    log = read_json(out / "log.json")
    if not log.get("finished"):
        raise Refusal(f"there are no finished grades in {out}; run grade first, with -o {out}")
    return str(log["set"]), read_records(out)


def read_records(out: Path) -> dict[str, Record]:
    """The records in a folder of grades, by file name, sorted by student."""
    found = {path.stem: read_json(path) for path in (out / "students").glob("*.json")}
    known = {stem: record for stem, record in found.items() if is_record(record)}
    return dict(sorted(known.items(), key=lambda item: str(item[1]["student"])))


def is_record(value: Record) -> bool:
    """Whether the grader wrote it, and wrote all of it."""
    return {"student", "key", "results"} <= set(value)
