"""What `grade` prints: its progress, the marks that would change, and what needs the teacher's attention."""

import sys
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from subnorm_classroom.grading.lateness import NO_TIMES
from subnorm_classroom.grading.submissions import COLUMNS, WHICH, Submission
from subnorm_classroom.reports.marks import Marks, changes
from subnorm_classroom.reports.records import Record, is_late, worth
from subnorm_classroom.reports.tables import as_cell, as_csv
from subnorm_classroom.text import counted
from subnorm_lab.checks.exercise import OTHER, Exercise

NAMES_SHOWN = 20  # of students without a notebook to grade

NO_SANDBOX = """
  NO SANDBOX. The code of every submission runs as you, on this machine, with your files and your network.
  It can read, change and delete whatever you can, read other submissions and the solutions, and leave programs running.
  Only time and memory are limited. Use a machine that holds nothing else.
"""


def print_progress(done: int, many: int) -> None:
    """Count on a terminal; elsewhere, as in the log of a cluster, print a line for each tenth."""
    if sys.stderr.isatty():
        print(f"\r{done}/{many} graded", end="\n" if done == many else "", file=sys.stderr, flush=True)
    elif done * 10 // many > (done - 1) * 10 // many:
        print(f"grade: {done} of {many} graded", file=sys.stderr, flush=True)


def print_changes(pairs: Sequence[tuple[Record, Record]], marks: Marks, accept: bool) -> None:
    """Print the marks of unchanged notebooks that change, or would if the teacher accepted it.

    Args:
        pairs: (old, new) records of one notebook, with other marks.
        marks: the marks set by hand.
        accept: whether the teacher has.
    """
    ordered = sorted(pairs, key=lambda pair: str(pair[0]["student"]))
    lines = [line for old, new in ordered for line in changes(old, new, marks)]
    if not lines:
        return
    verb = "change" if accept else "would change"
    print(f"grade: {counted(len(lines), 'mark')} of notebooks that are as before {verb}:", file=sys.stderr)
    print(*(f"  {line}" for line in lines), sep="\n", file=sys.stderr)
    if not accept:
        print("All marks and feedback are still the old ones. To take the new, add --accept.", file=sys.stderr)


def print_student(student: str, records: Sequence[Record]) -> None:
    """Print the marks of one student who was graded again."""
    results = next(record["results"] for record in records if record["student"] == student)
    print(f"{student}: {', '.join(r['exercise'] + ' ' + worth(r) for r in results)}")


def print_advice(submissions: Sequence[Submission], records: Collection[Record], set_name: str, beside: Path) -> None:
    """Print what a file beside the submissions would settle: which of several notebooks counts, and when each came.

    Args:
        submissions: the submissions that were graded.
        records: the records of the class.
        set_name: "ex02".
        beside: the folder for these files.
    """
    several = {record["student"] for record in records if record["problem"] == "two_files"}
    if rows := [
        [as_cell(one.student), as_cell(str(file.shown))]
        for one in submissions
        if one.student in several
        for file in one.notebooks(set_name)
    ]:
        print(f"  {len(several)} handed in several notebooks. Write the rows that count into {beside / WHICH}:")
        print(as_csv([COLUMNS, *rows]), end="")
    if unknown := sum(record["late"] == NO_TIMES for record in records):
        print(
            f"  {unknown} may be late: Moodle's zip holds no such times. Put the grading worksheet, downloaded in "
            f"English, into {beside}, and run the same command again"
        )


def print_class(set_name: str, exercises: Sequence[Exercise], records: Sequence[Record], out: Path) -> None:
    """Print how many answers got which diagnosis, and what needs the teacher's attention."""
    named = {(ex.name, mistake.tag) for ex in exercises for mistake in ex.mistakes}
    judged = [r for record in records if not record["problem"] for r in record["results"]]
    counts = Counter(
        "a named mistake"
        if (r["exercise"], r["diagnosis"]) in named or r["diagnosis"].startswith(OTHER)
        else r["diagnosis"]
        for r in judged
    )
    print(f"{counted(len(records), 'submission')} of {set_name}: {out / 'grades.csv'}")
    if counts:
        print("  answers: " + ", ".join(f"{tag} {many}" for tag, many in counts.most_common()))
    if problems := [f"{record['student']} ({record['problem']})" for record in records if record["problem"]]:
        more = f", and {len(problems) - NAMES_SHOWN} more in totals.csv" if len(problems) > NAMES_SHOWN else ""
        print(f"  {len(problems)} without a notebook to grade: {', '.join(problems[:NAMES_SHOWN])}{more}")
    if flagged := sum(bool(record["flags"]) for record in records):
        print(f"  {flagged} flagged for review: see flags in {out / 'totals.csv'}")
    if late := sum(is_late(record) for record in records):
        print(f"  {late} late: see late in {out / 'totals.csv'}")
    if by_hand := sum("by_hand" in r for record in records for r in record["results"]):
        print(f"  {counted(by_hand, 'mark')} set by hand: see {out / 'marks.csv'}")
