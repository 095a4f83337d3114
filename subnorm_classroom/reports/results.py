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

from subnorm_classroom.grading.verdict import SAYS
from subnorm_lab import _files

Record = dict[str, Any]
BY_HAND = "Set by hand"


class Refused(Exception):
    """A command cannot do what it was asked; the message says why, and how to fix it."""


def points(record: Record) -> tuple[float, float]:
    """(points, maximum) of a student."""
    return sum(r["points"] for r in record["results"]), sum(r["max_points"] for r in record["results"])


def feedback(set_name: str, record: Record) -> str:
    """A student's feedback page, in Markdown."""
    total, most = points(record)
    parts = [f"# {as_markdown(record['student'])}: {set_name}", f"{total:g} of {most:g} points."]
    for result, texts in feedback_parts(record):
        parts += [f"## {heading(result)}"] if result else []
        parts += [f"{as_markdown(before)}{says}{as_markdown(after)}" for before, says, after in texts]
    return "\n\n".join(parts) + "\n"


Text = tuple[str, str, str]


def feedback_parts(record: Record) -> Iterator[tuple[Record | None, list[Text]]]:
    """(result, paragraphs) of the feedback to each exercise; a missing notebook comes first, with None for a result.

    A paragraph is (before, says, after). ``says`` is Markdown of ours; the other two are plain text, which a student or
    teacher may have chosen.
    """
    problem = record.get("problem")  # the same for every exercise
    if problem:
        yield None, [("", f"`{problem}`: {SAYS[problem]}.", ""), ("Handed in: ", "", record.get("file") or "nothing")]
    for r in record["results"]:
        texts = [("", f"Your variant: `{r['variant']}`.", "")] if "variant" in r else []
        texts += [(f"{BY_HAND}: ", "", r["by_hand"])] if "by_hand" in r else []
        if not problem:
            named = "" if r["diagnosis"] in ("right", "not_done") else f"`{r['diagnosis']}`: "
            texts.append(("", named + r["says"], ""))
        if texts:
            yield r, texts


def heading(result: Record) -> str:
    return f"{result['exercise']}: {result['points']:g} of {result['max_points']:g}"


def as_markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]#$])", r"\\\1", html.escape(text, quote=False))


def as_csv(records: Sequence[Record]) -> str:
    """One line for each student and exercise; the last column is there if students have variants of their own."""
    rows: list[list[Any]] = [["student", "exercise", "points", "max_points", "diagnosis", "by_hand"]]
    own = any("variant" in r for record in records for r in record["results"])
    rows[0] += ["variant"] if own else []
    for record in records:
        for r in record["results"]:
            row = [r["exercise"], f"{r['points']:g}", r["max_points"], r["diagnosis"], as_cell(r.get("by_hand", ""))]
            row += [as_cell(r.get("variant", ""))] if own else []
            rows.append([as_cell(record["student"]), *row])
    return as_lines(rows)


def as_totals(records: Sequence[Record]) -> str:
    """One line for each student."""
    rows: list[list[Any]] = [["student", "points", "max_points", "problem", "late", "by_hand", "flags"]]
    for record in records:
        by_hand = ", ".join(r["exercise"] for r in record["results"] if "by_hand" in r)
        sums = [f"{sum_:g}" for sum_ in points(record)]
        notes = [record["problem"], record.get("late", ""), by_hand, as_cell("; ".join(record["flags"]))]
        rows.append([as_cell(record["student"]), *sums, *notes])
    return as_lines(rows)


def as_lines(rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def as_cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula; some also accept a full-width sign, or a leading space."""
    begins = unicodedata.normalize("NFKC", text).strip()[:1]
    return f"'{text}" if begins and begins in "=+-@" else text


def from_cell(text: str) -> str:
    """The text of a cell that `as_cell` made."""
    bare = text.removeprefix("'")
    return bare if as_cell(bare) == text else text


def counted(many: int, noun: str) -> str:
    return f"{many} {noun}{'' if many == 1 else 's'}"


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def read_json(path: Path) -> dict[str, Any]:
    """A file from an earlier run; empty if it is missing or incomplete."""
    with contextlib.suppress(OSError, ValueError):
        value = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(value, dict):
            return value
    return {}


def write(path: Path, content: str | bytes) -> None:
    """Write a file atomically, unless it already has this content."""
    data = content.encode() if isinstance(content, str) else content
    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            return
    with writes_to(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _files.write(path, data)


@contextlib.contextmanager
def writes_to(path: Path) -> Iterator[None]:
    """Raise Refused instead of an OSError."""
    try:
        yield
    except OSError as error:
        raise Refused(
            f"the grades cannot be written to {path}: {error.strerror}. Make room there, allow yourself to write, "
            "or choose another folder. What is finished is kept: run the same command again to continue"
        ) from error


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
