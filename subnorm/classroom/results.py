"""The files that grading writes: feedback for students, tables for the teacher, and records for resuming."""

import contextlib
import csv
import hashlib
import html
import io
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from subnorm import _files
from subnorm.classroom.verdict import SAYS

Record = dict[str, Any]


class Refused(Exception):
    """Grading does not start; the message says why, and how to fix it."""


def feedback(set_name: str, record: Record) -> str:
    """A student's feedback page, in Markdown."""
    results = record["results"]
    name, file = (
        re.sub(r"([\\`*_\[\]#])", r"\\\1", html.escape(record.get(key) or "nothing")) for key in ("student", "file")
    )
    total, most = sum(r["points"] for r in results), sum(r["max_points"] for r in results)
    parts = [f"# {name}: {set_name}", f"{total} of {most} points."]
    if record.get("problem"):  # the same for every exercise
        parts += [f"`{record['problem']}`: {SAYS[record['problem']]}", f"Handed in: {file}"]
        results = []
    for r in results:
        parts.append(f"## {r['exercise']}: {r['points']} of {r['max_points']}")
        named = "" if r["diagnosis"] in ("right", "not_done") else f"`{r['diagnosis']}`: "
        parts.append(named + r["says"])
    return "\n\n".join(parts) + "\n"


def as_csv(records: Sequence[Record]) -> str:
    """One line for each student and exercise."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["student", "exercise", "points", "max_points", "diagnosis"])
    for record in records:
        for r in record["results"]:
            row = [r["exercise"], r["points"], r["max_points"], r["diagnosis"]]
            writer.writerow([as_cell(record["student"]), *row])
    return text.getvalue()


def as_totals(records: Sequence[Record]) -> str:
    """One line for each student, for import into a learning platform."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["student", "points", "max_points", "problem"])
    for record in records:
        sums = [sum(r[key] for r in record["results"]) for key in ("points", "max_points")]
        writer.writerow([as_cell(record["student"]), *sums, record["problem"]])
    return text.getvalue()


def as_cell(student: str) -> str:
    """A name that no spreadsheet takes for a formula; some also accept a full-width sign, or a leading space."""
    return f"'{student}" if unicodedata.normalize("NFKC", student).strip()[:1] in "=+-@" else student


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def read_json(path: Path) -> dict[str, Any]:
    """A file from an earlier run; empty if it is missing or incomplete."""
    with contextlib.suppress(OSError, ValueError):
        value = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(value, dict):
            return value
    return {}


def write(path: Path, text: str) -> None:
    """Write a file atomically."""
    with writes_to(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _files.write(path, text)


@contextlib.contextmanager
def writes_to(path: Path) -> Iterator[None]:
    """Raise Refused instead of an OSError."""
    try:
        yield
    except OSError as error:
        raise Refused(
            f"the grades cannot be written to {path}: {error.strerror}. Make room there, or choose another folder "
            "(-o). Finished grades are kept: run the same command again to continue"
        ) from error


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
