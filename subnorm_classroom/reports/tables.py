"""The tables for the teacher, as CSV: one line for each answer, and one for each student."""

import csv
import io
import unicodedata
from collections.abc import Sequence
from typing import Any

from subnorm_classroom.reports.records import Record, points


def answers_table(records: Sequence[Record]) -> str:
    """One line for each student and exercise; the last column is there if students have variants of their own."""
    rows: list[list[Any]] = [["student", "exercise", "points", "max_points", "diagnosis", "by_hand"]]
    variants = any("variant" in r for record in records for r in record["results"])
    rows[0] += ["variant"] if variants else []
    for record in records:
        for r in record["results"]:
            row = [r["exercise"], f"{r['points']:g}", r["max_points"], r["diagnosis"], as_cell(r.get("by_hand", ""))]
            row += [as_cell(r.get("variant", ""))] if variants else []
            rows.append([as_cell(record["student"]), *row])
    return as_csv(rows)


def totals_table(records: Sequence[Record]) -> str:
    """One line for each student."""
    rows: list[list[Any]] = [["student", "points", "max_points", "problem", "late", "by_hand", "flags"]]
    for record in records:
        by_hand = ", ".join(r["exercise"] for r in record["results"] if "by_hand" in r)
        sums = [f"{sum_:g}" for sum_ in points(record)]
        notes = [record["problem"], record.get("late", ""), by_hand, as_cell("; ".join(record["flags"]))]
        rows.append([as_cell(record["student"]), *sums, *notes])
    return as_csv(rows)


def as_csv(rows: Sequence[Sequence[Any]]) -> str:
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
