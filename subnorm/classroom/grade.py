"""Grade a class: run every notebook in its own process, and compare its answers in this one.

The inputs come from a secret seed, so knowing the class inputs earns nothing. A student's process receives code and
inputs and sends outcomes; the right answers and the verdict never leave this process. (The student's process also
reports changed inputs and counts of calls, which the grader trusts; it does not trust values.)

The same notebooks and seed give the same output, byte for byte. Each student's record is written at once, so an
interrupted run can resume.
"""

import hashlib
import importlib.util
import json
import os
import platform
import secrets
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import numpy as np

import subnorm
from subnorm.checks import SETS
from subnorm.checks.exercise import Exercise
from subnorm.classroom import canary
from subnorm.classroom.cells import BrokenNotebook, Cell, cells_of, flags_of, solution_of
from subnorm.classroom.results import (
    Record,
    Refused,
    as_csv,
    as_json,
    as_totals,
    digest,
    feedback,
    read_json,
    write,
    writes_to,
)
from subnorm.classroom.running import draw, run
from subnorm.classroom.sandbox import PACKAGE, Limits, NoSandbox, Sandbox
from subnorm.classroom.submissions import NoSubmissions, Submission, file_names, read_all
from subnorm.classroom.verdict import SAYS, failed_imports, verdict, why_missing

NO_SANDBOX = """
  NO SANDBOX. The code of every submission runs as you, on this machine, with your files and your network.
  It can read, change and delete whatever you can, read other submissions and the solutions, and leave programs running.
  Only time and memory are limited. Use a machine that holds nothing else.
"""


def grade(
    set_name: str,
    source: Path,
    out: Path,
    seed: int | None = None,
    sandbox: bool = True,
    jobs: int | None = None,
    limits: Limits | None = None,
) -> int:
    """Grade the submissions of a class; return 0 when done, 1 if refused (see standard error), 130 on Ctrl-C.

    Args:
        set_name: "ex02".
        source: folder or zip from a learning platform.
        out: folder for grades.csv, totals.csv, feedback/, students/ and log.json.
        seed: of the inputs; None takes it from the log of an earlier run, or draws one.
        sandbox: False runs the submissions without isolation.
        jobs: how many to run at the same time; None for one per processor.
        limits: of time, memory and processes.
    """
    try:
        exercises = SETS.get(set_name)
        if exercises is None:
            raise Refused(f"a set is one of {', '.join(SETS)}; got {set_name}")
        if not source.exists():
            raise Refused(f"submissions must be a folder or a zip file; there is no {source}")
        if source.is_dir() and out.resolve().is_relative_to(source.resolve()):
            raise Refused(f"the grades must not be inside the submissions; choose a folder other than {out}")
        if not sandbox:
            print(NO_SANDBOX, file=sys.stderr)
        with writes_to(out):
            out.mkdir(parents=True, exist_ok=True)
        with Sandbox(sandbox, limits, hidden=[source, out]) as box:
            Grading(set_name, exercises, source, out, seed, box).run(jobs)
    except (Refused, NoSandbox, NoSubmissions) as error:
        print(f"grade: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ngrade: stopped. Run the same command again to continue.", file=sys.stderr)
        return 130
    return 0


class Grading:
    """One run over one class."""

    def __init__(
        self, name: str, exercises: Sequence[Exercise], source: Path, out: Path, seed: int | None, box: Sandbox
    ) -> None:
        self.name, self.exercises, self.out, self.box = name, exercises, out, box
        self.submissions = read_all(source)
        self.log = read_json(out / "log.json")
        if self.log.get("set", name) != name:
            raise Refused(f"{out} holds the grades of {self.log['set']}; choose another folder: -o {out / name}")
        kept = self.log.get("seed")
        if seed is None and (out / "log.json").exists() and (type(kept) is not int or kept < 0):
            raise Refused(
                f"{out / 'log.json'} is damaged, and the seed of its grades is lost. If you have the seed, pass it "
                "with --seed. If not, remove the file to draw a new seed and grade everybody again"
            )
        self.seed: int = seed if seed is not None else secrets.randbits(64) if kept is None else kept
        self.cases = {ex.name: draw(ex, self.seed) for ex in exercises}
        self.version = {
            "subnorm": subnorm.__version__,
            "code": code_digest(),
            "python": platform.python_version(),
            "numpy": np.__version__,
        }
        self.solved = solution_of(name)
        self.usual = flags_of(self.solved or [])  # flags of the sheet itself
        self.names = file_names([submission.student for submission in self.submissions])

    def run(self, jobs: int | None) -> None:
        """Grade everybody, and write the results."""
        settings = {"set": self.name, "seed": self.seed, "isolated": self.box.isolated, "versions": self.version}
        write(self.out / "log.json", as_json({**settings, "finished": False, "students": {}}))
        canary.check(self.box, self.exercises, self.cases, self.seed, self.solved, self.runs_torch())
        records = {}
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        with ThreadPoolExecutor(jobs or processors or 1) as pool:
            try:
                futures = [pool.submit(self.student, submission) for submission in self.submissions]
                for done, future in enumerate(as_completed(futures), 1):
                    record = future.result()
                    records[record["student"]] = record
                    if sys.stderr.isatty():
                        print(f"\r{done}/{len(futures)} graded", end="", file=sys.stderr, flush=True)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        if sys.stderr.isatty():
            print(file=sys.stderr)
        ordered = [records[submission.student] for submission in self.submissions]
        gone = self.remove_others()
        write(self.out / "grades.csv", as_csv(ordered))
        write(self.out / "totals.csv", as_totals(ordered))
        students = {r["student"]: {key: r[key] for key in ("file", "sha256", "problem", "flags")} for r in ordered}
        write(self.out / "log.json", as_json({**settings, "finished": True, "students": students}))
        self.summary(ordered)
        if gone:
            print(f"  removed, because they are no longer among the submissions: {', '.join(gone)}")

    def remove_others(self) -> list[str]:
        """Remove an earlier run's results of students who are not in this one; return their names."""
        gone = []
        kept = {f"{name}.json" for name in self.names.values()}
        for path in sorted((self.out / "students").glob("*.json")):
            record = read_json(path) if path.name not in kept else {}
            if {"student", "key", "results"} <= set(record):  # written by the grader
                with writes_to(path):
                    (self.out / "feedback" / f"{path.name.removesuffix('.json')}.md").unlink(missing_ok=True)
                    path.unlink()
                gone.append(str(record["student"]))
        return gone

    def summary(self, records: Sequence[Record]) -> None:
        counts = Counter(r["diagnosis"] for record in records if not record["problem"] for r in record["results"])
        print(f"{len(records)} submissions of {self.name}: {self.out / 'grades.csv'}")
        if counts:
            print("  answers: " + ", ".join(f"{tag} {many}" for tag, many in counts.most_common()))
        if problems := [f"{record['student']} ({record['problem']})" for record in records if record["problem"]]:
            more = f", and {len(problems) - 20} more in totals.csv" if len(problems) > 20 else ""
            print(f"  {len(problems)} without a notebook to grade: {', '.join(problems[:20])}{more}")
        if flagged := [record["student"] for record in records if record["flags"]]:
            print(f"  {len(flagged)} flagged for review: see flags in {self.out / 'log.json'}")

    def student(self, submission: Submission) -> Record:
        """The record of one student, from an earlier run if nothing has changed since."""
        path, data, problem = submission.notebook(self.name)
        sha = hashlib.sha256(data).hexdigest() if data else ""
        key = digest(json.dumps([self.name, self.seed, self.version, self.box.isolated, str(self.box.limits), sha]))
        place = self.out / "students" / f"{self.names[submission.student]}.json"
        record = read_json(place)
        same = (record.get("key"), record.get("student"), record.get("problem"), record.get("file"))
        if not data or same != (key, submission.student, problem, path):
            flags, results = [], []
            if not problem:
                try:
                    cells = cells_of(data, self.name, [ex.name for ex in self.exercises])
                    flags = [flag for flag in flags_of(cells) if flag not in self.usual]
                    results = self.results(cells)
                except BrokenNotebook as error:
                    problem = str(error)
            if problem:
                results = [self.result(ex, problem, SAYS[problem]) for ex in self.exercises]
            record = {"student": submission.student, "file": path, "sha256": sha, "problem": problem}
            record |= {"flags": flags, "results": results, "key": key}
            write(place, as_json(record))
        write(self.out / "feedback" / f"{self.names[submission.student]}.md", feedback(self.name, record))
        return record

    def results(self, cells: Sequence[Cell]) -> list[Record]:
        """The results, one for each exercise."""
        work = run(self.box, cells, self.exercises, self.cases)
        found = []
        for ex in self.exercises:
            answer = work.answers[ex.name]
            if isinstance(answer, str):
                found.append(self.result(ex, *why_missing(ex.name, answer, cells, work.lost, work.errors)))
            else:
                diagnosis, says = verdict(ex, self.cases[ex.name], answer, cells)
                if diagnosis == "error" and "raises NameError" in says:
                    says += failed_imports(cells, work.errors)
                found.append(self.result(ex, diagnosis, says))
        return found

    def result(self, ex: Exercise, diagnosis: str, says: str) -> Record:
        points = ex.level if diagnosis == "right" else 0
        return {"exercise": ex.name, "points": points, "max_points": ex.level, "diagnosis": diagnosis, "says": says}

    def runs_torch(self) -> bool:
        """Whether PyTorch is installed, and an exercise or a notebook may use it. (Testing it takes seconds.)"""
        if importlib.util.find_spec("torch") is None:
            return False
        notebooks = (submission.notebook(self.name)[1] for submission in self.submissions)
        return any(ex.way == "module" for ex in self.exercises) or any(b"torch" in data for data in notebooks)


def code_digest() -> str:
    """The digest of the whole package, which contains all code that decides a mark."""
    return digest("".join(path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))))
