"""Publish the grades of a class: the tables for the teacher, and the feedback to each student."""

from pathlib import Path

from subnorm_classroom.files import write
from subnorm_classroom.reports import feedback, tables
from subnorm_classroom.reports.marks import Marks, with_marks
from subnorm_classroom.reports.records import Record


def publish(out: Path, set_name: str, records: dict[str, Record], marks: Marks) -> list[Record]:
    """Write the tables and the feedback, with the marks set by hand; return the records with these marks."""
    final = {stem: with_marks(record, marks) for stem, record in records.items()}
    for stem, record in final.items():
        write(out / "feedback" / f"{stem}.md", feedback.markdown(set_name, record))
        write(out / "feedback" / f"{stem}.html", feedback.page(set_name, record))
    ordered = list(final.values())
    write(out / "grades.csv", tables.answers_table(ordered))
    write(out / "totals.csv", tables.totals_table(ordered))
    return ordered
