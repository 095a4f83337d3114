"""The tables for the teacher, as CSV: one line for each answer, and one for each student."""

import csv
import io
import unicodedata
from collections.abc import Sequence
from typing import Any

from subnorm_classroom.reports.records import Record, points

SIGNS = "=+-@\N{MINUS SIGN}"  # a formula begins with one, in any of their Unicode forms


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
    """A text that no spreadsheet takes for a formula, whatever separator it reads the file with.

    A `'` before a sign makes a text of what follows. `from_cell` takes it away.
    """
    signs = formulas(text)
    return "".join(f"'{c}" if k in signs else c for k, c in enumerate(text))


def from_cell(text: str) -> str:
    """The text of a cell that `as_cell` made."""
    added = {k - 1 for k in formulas(text) if k and text[k - 1] == "'"}
    return "".join(c for k, c in enumerate(text) if k not in added)


def formulas(text: str) -> set[int]:
    """Where a spreadsheet may see the beginning of a formula: at a sign that begins a cell.

    A cell begins with the text, and after everything that may separate two: after any character but letters and digits,
    and after a space. Spaces, quotes and what nobody sees may be before the sign. A sign between two spaces, as in
    "late - by mail", is no formula: where a space separates cells, it is a cell of its own.
    """
    found: set[int] = set()
    may_begin = spaced = True
    for k, c in enumerate(text):
        kind = unicodedata.category(c)
        if unicodedata.normalize("NFKC", c)[0] in SIGNS:
            alone = not text[k + 1 : k + 2].strip()
            if may_begin or (spaced and not alone):
                found.add(k)
            may_begin = spaced = False
        elif kind == "Zs":
            spaced = True
        elif kind[0] in "LNM" or c == "_":
            may_begin = spaced = False
        elif c not in "'\"" and kind != "Cf":
            may_begin = True
    return found
