"""Play a term with a synthetic class, by the commands of the teacher's page: `python -m tools.term --students 2000`.

Every student solves the released sheets. How many make which mistake is fixed, and so is who hands in late, hands in a
broken, copied or hostile notebook, or nothing. Each sheet comes back from another platform, is graded, compared,
corrected, graded again and handed back. The page on the class then has to name what was planted. The first result that
is not the planted one is a sentence, and the end.

With `--record` the times become `book/term.json`, which the teacher's page shows.
"""

import argparse
import csv
import html
import io
import json
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from subnorm import _files
from subnorm.checks import SETS
from subnorm.classroom import beliefs
from subnorm.classroom.release import read, source_of
from subnorm.provenance import commit, load, today, versions
from tools import course
from tools.speed import machine

RECORD = course.ROOT / "book/term.json"
SEED = 4711  # of the class
DAY, DEADLINE, LATER = (2026, 11, 19, 12, 0, 0), "2026-11-20", (2026, 11, 22, 12, 0, 0)
#: by sheet the mistake of many: (exercise, mistake, share of the class); the teacher's page has a belief for each
PLANTED = {
    "ex01": ("residual_backward", "no_identity", 0.6),
    "ex03": ("llama_rms_norm", "cast_last", 0.5),
    "ex04": ("pre_ln_stack", "no_final_norm", 0.4),
}
OTHERS = 0.1  # share of the class with some other named mistake, in every exercise
HOSTILE = [
    "import os\nos._exit(0)",
    "import socket\nsocket.create_connection(('example.org', 80))",
    "import pathlib\npathlib.Path('/etc/passwd').write_text('<script>alert(1)</script>')",
]
MOODLE = ["Identifier", "Full name", "Email address", "Status", "Grade", "Maximum grade", "Grade can be changed"]
MOODLE += ["Last modified (submission)", "Last modified (grade)"]
CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
NBGRADER = ["assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email", "raw_score"]
NBGRADER += ["late_submission_penalty", "score", "max_score"]


class Failed(Exception):
    """A result is not the planted one."""


@dataclass
class Student:
    """A student, and what they do with one sheet."""

    number: int
    first: str
    last: str
    answers: dict[str, str] = field(default_factory=dict)  # by exercise: "right", or the mistake
    more: str = ""  # a cell of their own
    late: bool = False
    absent: bool = False
    broken: bool = False

    @property
    def lower(self) -> str:
        return f"{self.last}{self.first}".lower()


def demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Failed(otherwise)


# The class


def class_of(sheet: str, many: int) -> list[Student]:
    """The students of a sheet, with the same quotas at every call."""
    random = Random(f"{SEED} {sheet}")
    class_ = [Student(1000 + k, f"Ada{k % 40}", f"Lee{k // 40}") for k in range(many)]
    for ex in SETS[sheet]:
        name, mistake, share = PLANTED[sheet]
        tags = [mistake] * round(share * many) if ex.name == name else []
        others = [m.tag for m in ex.mistakes if hasattr(m.answer, "text") and m.tag not in tags]
        tags += random.choices(others, k=round(OTHERS * many)) if others else []
        tags += ["right"] * (many - len(tags))
        random.shuffle(tags)
        for student, tag in zip(class_, tags, strict=True):
            student.answers[ex.name] = tag
    for student in class_:
        student.more = own_code(random)
    some = random.sample(class_, many)
    few = max(1, many // 100)
    for student in some[:few]:
        student.broken = True
    for k, student in enumerate(some[few : 2 * few]):
        student.more = HOSTILE[k % len(HOSTILE)]
    for student in some[2 * few : 3 * few]:
        student.absent = True
    for k in range(3 * few, 5 * few, 2):
        some[k + 1].more = disguised(some[k].more)
    for student in some[3 * few : 3 * few + max(1, many // 10)]:
        student.late = True
    return class_


def own_code(random: Random) -> str:
    """A cell that hardly anybody else has."""
    lines = []
    for _ in range(12):
        a, b, c = (random.choice("abcd") for _ in range(3))
        name, sign = random.choice(["sqrt", "exp", "abs", "tanh", "log1p"]), random.choice("+-*/")
        lines.append(
            f"    {a} = np.{name}({b} {sign} {random.randrange(2, 10_000)}) {sign} {c}[{random.randrange(9)}:]"
        )
    return "def scratch(a, b, c, d):\n" + "\n".join(lines) + "\n    return a\n"


def disguised(code: str) -> str:
    """The same code with other names and a comment in each line."""
    for was, now in {"scratch": "mine", "a ": "alpha ", "b ": "beta ", "c[": "gamma["}.items():
        code = code.replace(was, now)
    return code.replace("\n", "  # my own idea\n")


def pairs_of(class_: list[Student]) -> set[frozenset[int]]:
    """The numbers of those who share a cell."""
    copies = {disguised(one.more): one for one in class_}
    return {frozenset({copies[one.more].number, one.number}) for one in class_ if one.more in copies}


def notebook_of(sheet: str, student: Student) -> bytes:
    """What a student hands in: the released sheet, with an answer in every answer cell."""
    if student.broken:
        return b'{"cells": [{"cell_type": "co'
    source = source_of(sheet)
    solved = {cell["id"]: cell["source"] for cell in read(source)["cells"]}
    book = read(source.parent / "student" / source.name)
    answers = {f"{sheet}-{ex.number}-answer": ex for ex in SETS[sheet]}
    for cell in book["cells"]:
        if ex := answers.get(cell["id"]):
            tag = student.answers[ex.name]
            wrong = {m.tag: getattr(m.answer, "text", "") for m in ex.mistakes}
            cell["source"] = wrong.get(tag, solved[cell["id"]])
    own = {"cell_type": "code", "id": "own", "metadata": {}, "outputs": [], "source": student.more}
    return json.dumps({**book, "cells": [*book["cells"], own]}).encode()


# The platforms: what a teacher downloads


def moodle(sheet: str, class_: list[Student], folder: Path) -> tuple[Path, dict[int, str]]:
    """The zip of the submissions, and each student's name in it."""
    names = {one.number: f"{one.first} {one.last}_{one.number}" for one in class_}
    members = []
    for one in class_:
        if not one.absent:
            path = f"{names[one.number]}_assignsubmission_file/{sheet}.ipynb"
            members.append((zipfile.ZipInfo(path, LATER if one.late else DAY), notebook_of(sheet, one)))
    return zipped(folder / "download.zip", members), names


def canvas(sheet: str, class_: list[Student], folder: Path) -> tuple[Path, dict[int, str]]:
    names = {one.number: f"{one.lower}_{one.number}" for one in class_}
    members = []
    for one in class_:
        if not one.absent:
            path = f"{one.lower}{'_LATE' if one.late else ''}_{one.number}_{90000 + one.number}_{sheet}.ipynb"
            members.append((zipfile.ZipInfo(path, DAY), notebook_of(sheet, one)))
    return zipped(folder / "download.zip", members), names


def nbgrader(sheet: str, class_: list[Student], folder: Path) -> tuple[Path, dict[int, str]]:
    for one in class_:
        if not one.absent:
            place = folder / "submitted" / one.lower / sheet
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{sheet}.ipynb").write_bytes(notebook_of(sheet, one))
            year, month, day, *_ = LATER if one.late else DAY
            (place / "timestamp.txt").write_text(f"{year}-{month}-{day} 12:00:00.123456 UTC", "utf-8")
            (place / "submission_secret.txt").write_text(f"secret {one.number}", "utf-8")
    return folder / "submitted", {one.number: one.lower for one in class_}


def zipped(path: Path, members: list[tuple[zipfile.ZipInfo, bytes]]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, data in members:
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return path


def gradebook(platform: str, sheet: str, class_: list[Student]) -> list[list[str]]:
    """The rows of the platform's file; see tests/classroom/test_gradebook.py for where its form comes from."""
    most = sum(ex.level for ex in SETS[sheet])
    if platform == "moodle":
        rows = [
            [f"Participant {one.number}", f"{one.first} {one.last}", f"{one.lower}@x.edu", "Submitted for grading", "",
             f"{most}.00", "Yes", "Thursday, 19 November 2026, 12:00 PM", "-"]
            for one in class_
        ]  # fmt: skip
        return [MOODLE, *rows]
    if platform == "canvas":
        rows = [[f"{one.last}, {one.first}", str(one.number), "", one.lower, "Sec 1", "", "3.00"] for one in class_]
        head = ["    Points Possible", "", "", "", "", f"{most}.00", "(read only)"]
        return [[*CANVAS, f"Sheet {sheet} (4242)", "Final Score"], head, *rows]
    rows = [[sheet, "", "", one.lower, one.last, one.first, "", "0.0", "0.0", "0.0", f"{most}.0"] for one in class_]
    return [NBGRADER, *rows]


PLATFORMS: dict[str, tuple[Callable[..., tuple[Path, dict[int, str]]], str, str]] = {
    "moodle": (moodle, "Grade", "Participant_{number}_assignfeedback_file/feedback.html"),
    "canvas": (canvas, "Sheet {sheet} (4242)", "{lower}{late}_{number}_9{number:04}_{sheet}.ipynb"),
    "nbgrader": (nbgrader, "raw_score", "feedback/{lower}/{sheet}/{sheet}.html"),
}


# The commands


class Term:
    """The commands of a term in one folder, with the time of each."""

    def __init__(self, folder: Path, many: int) -> None:
        self.folder, self.many = folder, many
        self.rows: dict[str, dict[str, Any]] = {}

    def run(self, row: str, *words: str | Path, status: int = 0) -> str:
        """Run a command of the teacher's page; return what it says. Failed if its exit status is another."""
        start = time.perf_counter()
        command = [sys.executable, "-m", "subnorm.classroom", *map(str, words)]
        done = subprocess.run(command, cwd=course.ROOT, capture_output=True, text=True, encoding="utf-8")
        wall = time.perf_counter() - start
        demand(done.returncode == status, f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stderr}")
        self.rows[row] = {"seconds": float(f"{wall:.3g}")}
        return done.stdout + done.stderr

    def play(self) -> dict[str, dict[str, Any]]:
        """Play the term, one sheet on each platform; return the times."""
        self.run("release", "release", *PLANTED)
        weeks: list[Week] = []
        for sheet, platform in zip(PLANTED, PLATFORMS, strict=True):
            (self.folder / sheet).mkdir()
            weeks.append(Week(self, sheet, platform))
            weeks[-1].play()
        self.look(weeks)
        return self.rows

    def look(self, weeks: list["Week"]) -> None:
        """The page on the class has the planted mistakes first, counts who is missing, and has no name on it."""
        gradebooks = [word for week in weeks for word in ("--gradebook", week.gradebook)]
        out = self.folder / "overview.html"
        self.run("overview", "overview", *(week.out for week in weeks), *gradebooks, "-o", out)
        page = out.read_text("utf-8")
        topics = re.findall(r"<li>.*?</li>", page.partition("Teach this tomorrow")[2], re.DOTALL)[: len(weeks)]
        for week, topic in zip(weeks, topics, strict=True):
            known = next(one for one in beliefs.read() if PLANTED[week.sheet][:2] in one.catches)
            demand(plain(known.text) in plain(topic), f"overview: {known.text} is not at its place, but {topic}")
            count = week.count(known)
            demand(count in plain(topic), f"overview: not {count}, but {topic}")
            missing = sum(one.absent for one in week.class_)
            said = f"{missing} student{'s' * (missing > 1)} of the gradebook did not hand in"
            demand(said in page, f"overview: it does not say: {said}")
        demand("Lee" not in page, "overview: there is a name on the page")


class Week:
    """One sheet, from the platform's download to what it takes back."""

    def __init__(self, term: Term, sheet: str, platform: str) -> None:
        self.term, self.sheet, self.platform = term, sheet, platform
        self.class_ = class_of(sheet, term.many)
        self.folder, self.out = term.folder / sheet, term.folder / f"grades/{sheet}"
        self.levels = {ex.name: ex.level for ex in SETS[sheet]}
        self.by_hand: dict[tuple[int, str], float] = {}
        self.gradebook = self.folder / f"Grades-{sheet}.csv"
        self.download()

    def download(self) -> None:
        self.source, self.names = PLATFORMS[self.platform][0](self.sheet, self.class_, self.folder)

    def run(self, row: str, *words: str | Path, status: int = 0) -> str:
        return self.term.run(f"{row} {self.sheet}", *words, status=status)

    def play(self) -> None:
        grade: list[str | Path] = ["grade", self.sheet, self.source, "-o", self.out, "--deadline", DEADLINE]
        self.run("grade", *grade)
        self.check_grades()
        self.run("similar", "similar", self.sheet, self.source, "-o", self.out)
        self.check_similar()
        self.complain()
        self.hand_in_again()
        self.run("grade again", *grade)
        self.check_grades()
        before = (self.out / "grades.csv").read_bytes()
        someone = next(one for one in self.class_ if not (one.absent or one.broken))
        self.run("grade --student", *grade, "--student", self.names[someone.number])
        demand((self.out / "grades.csv").read_bytes() == before, f"{self.sheet}: grading one again changed the grades")
        self.hand_back()

    def count(self, known: beliefs.Belief) -> str:
        """How many made a mistake with this belief behind it, of those who handed in a notebook."""
        here = [one for one in self.class_ if not (one.absent or one.broken)]
        some = sum(not known.catches.isdisjoint(one.answers.items()) for one in here)
        return f"{some} of {len(here)} students in {self.sheet}"

    def points(self, student: Student) -> float:
        sum_ = 0.0
        for name, tag in student.answers.items():
            right = tag == "right" and not student.broken
            sum_ += self.by_hand.get((student.number, name), self.levels[name] * right)
        return sum_

    def check_grades(self) -> None:
        """Every diagnosis is the mistake that was made; every total is its sum; who is late is late."""
        here = {self.names[one.number]: one for one in self.class_ if not one.absent}
        wanted = {
            (name, exercise): "broken_notebook" if one.broken else tag
            for name, one in here.items() for exercise, tag in one.answers.items()
        }  # fmt: skip
        found = {(row["student"], row["exercise"]): row["diagnosis"] for row in table(self.out / "grades.csv")}
        wrong = {key: (found.get(key), tag) for key, tag in wanted.items() if found.get(key) != tag}
        demand(not wrong, f"{self.sheet}: {len(wrong)} other diagnoses (found, made): {str(wrong)[:2000]}")
        demand(found.keys() == wanted.keys(), f"{self.sheet}: others have grades: {found.keys() - wanted.keys()}")
        totals = {row["student"]: (float(row["points"]), bool(row["late"])) for row in table(self.out / "totals.csv")}
        sums = {name: (self.points(one), one.late) for name, one in here.items()}
        demand(totals == sums, f"{self.sheet}: totals or lateness of {sorted(totals.items() ^ sums.items())[:5]}")

    def check_similar(self) -> None:
        """Those who share a cell are the first in the list."""
        here = {one.number for one in self.class_ if not (one.absent or one.broken)}
        planted = {pair for pair in pairs_of(self.class_) if pair <= here}
        numbers = {name: number for number, name in self.names.items()}
        rows = table(self.out / "similar.csv")[: len(planted)]
        listed = {frozenset({numbers[row["first"]], numbers[row["second"]]}) for row in rows}
        demand(listed == planted, f"{self.sheet}: the list begins with {listed}, not with {planted}")

    def complain(self) -> None:
        """A student complains, and gets half of the points of an exercise."""
        exercise, mistake, _ = PLANTED[self.sheet]
        one = next(s for s in self.class_ if s.answers[exercise] == mistake and not (s.absent or s.broken))
        self.by_hand[one.number, exercise] = self.levels[exercise] / 2
        half = f"{self.levels[exercise] / 2}"
        self.run("mark", "mark", self.out, self.names[one.number], exercise, half, "--reason", "The idea is right")

    def hand_in_again(self) -> None:
        """A student whose file was broken hands in a good one."""
        next(one for one in self.class_ if one.broken).broken = False
        self.download()

    def hand_back(self) -> None:
        """The platform's file has everybody's points and no other change; the zip has everybody's feedback."""
        path = self.gradebook
        rows = gradebook(self.platform, self.sheet, self.class_)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        path.write_text(text.getvalue(), "utf-8")
        broken = sorted(self.names[one.number] for one in self.class_ if one.broken and not one.absent)
        words: list[str | Path] = ["handback", self.out, "--to", self.platform, "--gradebook", path]
        said = self.run("handback", *words, status=1 if broken else 0)
        listed = sorted(line.strip().split(":")[0] for line in said.splitlines() if line.startswith("  "))
        demand(listed == broken, f"{self.sheet}: handback lists {listed}, not {broken}")
        _, title, place = PLATFORMS[self.platform]
        at = rows[0].index(title.format(sheet=self.sheet))
        for one, row in zip(self.class_, rows[-len(self.class_) :], strict=True):
            if not (one.absent or one.broken):
                row[at] = f"{self.points(one):.{1 if self.platform == 'nbgrader' else 2}f}"
                if self.platform == "nbgrader":
                    row[at + 2] = row[at]
        back = self.out / "handback"
        with (back / path.name).open(encoding="utf-8", newline="") as file:
            demand(list(csv.reader(file)) == rows, f"{self.sheet}: {back / path.name} has other cells than the truth")
        archive = back / f"feedback-{self.sheet}-{self.platform}.zip"
        with zipfile.ZipFile(archive) as pages:
            names = {name for name in pages.namelist() if not name.endswith(".txt")}
        wanted = {
            place.format(sheet=self.sheet, number=one.number, lower=one.lower, late="_LATE" if one.late else "")
            for one in self.class_ if not one.absent
        }  # fmt: skip
        demand(names == wanted, f"{self.sheet}: feedback for {sorted(names ^ wanted)[:5]} is too much or too little")
        self.term.rows[f"handback {self.sheet}"]["bytes"] = archive.stat().st_size


def plain(text: str) -> str:
    """The words of a text, without quotes and marks."""
    return " ".join(re.findall(r"\w+", html.unescape(re.sub("<[^>]*>|`", "", text))))


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def origin(many: int) -> dict[str, Any]:
    """The first entries of the record."""
    return {
        "schema": 1,
        "date": today(),
        "commit": commit(course.ROOT / "course.py", but=RECORD.relative_to(course.ROOT).as_posix()),
        "load": load(),
        "command": f"python -m tools.term --students {many} --record",
        "machine": machine(),
        "versions": versions(),
        "students": many,
    }


def main(words: list[str] | None = None) -> int:
    """Play a term, and print the time of each command."""
    parser = argparse.ArgumentParser(prog="python -m tools.term", description=__doc__)
    parser.add_argument("--students", type=int, default=24, help="in the class (default: 24)")
    parser.add_argument("--record", action="store_true", help="store the times for the teacher's page")
    options = parser.parse_args(words)
    before = origin(options.students) if options.record else {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            rows = Term(Path(folder), options.students).play()
        except Failed as error:
            print(f"term: {error}", file=sys.stderr)
            return 1
    for name, row in rows.items():
        print(f"{name:24} {row['seconds']:8.3g} s" + (f" {row['bytes']:12,} bytes" if "bytes" in row else ""))
    if options.record:
        _files.write(RECORD, json.dumps({**before, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
