"""Grade a class: run every notebook in its own process, and compare its answers in this one.

The inputs come from a secret seed, so knowing the class inputs earns nothing. A student's process receives code and
inputs and sends outcomes; the right answers and the verdict never leave this process. (The student's process also
reports changed inputs and counts of calls, which the grader trusts; it does not trust values.)

The same notebooks and seed give the same output, byte for byte. Each student's record is written at once, so an
interrupted run can resume. A mark of an unchanged notebook changes only if the teacher accepts it: until then the new
record waits in the folder `new`.
"""

import copy
import hashlib
import importlib.util
import json
import math
import os
import platform
import secrets
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

import numpy as np

import subnorm
from subnorm_classroom.grading import answers, canary
from subnorm_classroom.grading.behaviour import traces
from subnorm_classroom.grading.cells import BrokenNotebook, Cell, cells_of, flags_of, solution_of
from subnorm_classroom.grading.running import Elsewhere, Lost, draw, run
from subnorm_classroom.grading.sandbox import COURSE, Limits, NoSandbox, Sandbox
from subnorm_classroom.grading.submissions import NoSubmissions, Submission, file_names, read_all
from subnorm_classroom.grading.verdict import SAYS, UNKNOWN, failed_imports, share, verdict, why_missing
from subnorm_classroom.reports.marks import Marks, changes, one_of, publish, read_marks, records_in, worth
from subnorm_classroom.reports.results import Record, Refused, as_json, counted, digest, read_json, write, writes_to
from subnorm_classroom.sheets.variants import Release, asks_for_variants, foreign, release_in
from subnorm_lab.checks import SETS
from subnorm_lab.checks.exercise import OTHER, Exercise

NOTES = ("timestamp.txt", "submission_secret.txt")  # of nbgrader, which needs both to hand feedback back

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
    student: str | None = None,
    accept: bool = False,
    deadline: datetime | None = None,
    release: Path | None = None,
    scheduler: str | None = None,
    limits: Limits | None = None,
) -> int:
    """Grade the submissions of a class; return 0 when done, 1 if refused (see standard error), 130 on Ctrl-C.

    If the marks of notebooks that did not change would change, they are listed, nothing is published, and it returns 1.

    Args:
        set_name: "ex02".
        source: folder or zip from a learning platform.
        out: folder for grades.csv, totals.csv, log.json, feedback/, answers/, students/; marks.csv is the teacher's.
        seed: of the inputs; None takes it from the log of an earlier run, or draws one.
        sandbox: False runs the submissions without isolation.
        jobs: how many to run at the same time; None for one per processor.
        student: grade only this one, again; the platform's number may be left out.
        accept: change marks of notebooks that did not change.
        deadline: for the column "late"; None takes it from the log of an earlier run.
        release: the file that release wrote for sheets of the students' own; None takes it from an earlier run's log.
        scheduler: address of a Dask cluster to run the notebooks on; None for this machine.
        limits: of time, memory and processes.
    """
    try:
        if set_name not in SETS:
            raise Refused(f"a set is one of {', '.join(SETS)}; got {set_name}")
        if not source.exists():
            raise Refused(f"submissions must be a folder or a zip file; there is no {source}")
        if source.is_dir() and out.resolve().is_relative_to(source.resolve()):
            raise Refused(f"the grades must not be inside the submissions; choose a folder other than {out}")
        if not sandbox:
            if scheduler:
                raise Refused("--no-sandbox is for this machine only: on a cluster every worker needs bubblewrap")
            print(NO_SANDBOX, file=sys.stderr)
        with writes_to(out):
            out.mkdir(parents=True, exist_ok=True)
        hidden = [source, out]
        with cluster(scheduler, limits, hidden) if scheduler else Sandbox(sandbox, limits, hidden) as box:
            done = Grading(set_name, source, out, seed, box, student, accept, deadline, release).run(jobs)
    except (Refused, NoSandbox, NoSubmissions) as error:
        print(f"grade: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ngrade: stopped. Run the same command again to continue.", file=sys.stderr)
        return 130
    return 0 if done else 1


def cluster(address: str, limits: Limits | None, hidden: list[Path]) -> AbstractContextManager[Elsewhere]:
    """The workers of a Dask cluster."""
    try:
        from subnorm_classroom.grading.cluster import Cluster
    except ImportError as error:
        raise Refused(
            f"--scheduler needs Dask, which cannot be imported here ({error}). Install it, in a clone of the course "
            "with pip install -e '.[cluster]', or leave out --scheduler to grade on this machine"
        ) from error
    return Cluster(address, limits, hidden)


class Grading:
    """One run over one class."""

    def __init__(
        self,
        name: str,
        source: Path,
        out: Path,
        seed: int | None,
        box: Sandbox | Elsewhere,
        only: str | None,
        accept: bool,
        deadline: datetime | None,
        release: Path | None,
    ) -> None:
        self.name, self.exercises, self.out, self.box, self.accept = name, list(SETS[name]), out, box, accept
        self.submissions = read_all(source)
        self.only = one_of(only, [submission.student for submission in self.submissions]) if only else None
        self.log = read_json(out / "log.json")
        if self.log.get("set", name) != name:
            raise Refused(f"{out} holds the grades of {self.log['set']}; choose another folder: -o {out / name}")
        if only and not self.log.get("finished"):
            raise Refused("--student grades one student again; grade the whole class first, without it")
        kept = self.log.get("seed")
        if seed is None and (out / "log.json").exists() and (type(kept) is not int or kept < 0):
            raise Refused(
                f"{out / 'log.json'} is damaged, and the seed of its grades is lost. If you have the seed, pass it "
                "with --seed. If not, remove the file to draw a new seed and grade everybody again"
            )
        self.seed: int = seed if seed is not None else secrets.randbits(64) if kept is None else kept
        self.deadline = deadline.astimezone().isoformat() if deadline else self.log.get("deadline")
        self.pending: list[tuple[Record, Record]] = []  # (old, new) records of one notebook, with other marks
        self.cases = {ex.name: draw(ex, self.seed) for ex in self.exercises}
        self.take_release(release)
        self.version = versions()
        self.solved = solution_of(name)
        self.usual = flags_of(self.solved or [])  # flags of the sheet itself
        self.names = file_names([submission.student for submission in self.submissions])

    def take_release(self, path: Path | None) -> None:
        """The exercises and cases of each student, by the label of each variant, if their sheets are their own."""
        data, where = (read_json(path), path) if path else (self.log.get("release"), self.out / "log.json")
        self.release: Release | None = release_in(data, self.name, where) if path or data else None
        self.variants: dict[tuple[str, str], Exercise] = {}
        if not self.release:
            own = sum(asks_for_variants(one.notebook(self.name)[1]) for one in self.submissions)
            if 2 * own > len(self.submissions):
                raise Refused("the sheets are the students' own: add --release, with the file that release wrote")
            return
        if self.only and (self.log.get("release") or {}).get("seed") != self.release.seed:
            raise Refused(f"the class was not graded with {where}; to change that, grade everybody, without --student")
        self.lines = self.release.lines_of([one.student for one in self.submissions])
        self.variants = {(ex.name, one.label): ex.variant(one.label) for ex in self.exercises for one in ex.variants}
        self.drawn = {key: draw(ex, self.seed) for key, ex in self.variants.items()}

    def own(self, student: str) -> "Grading":
        """This run, with the exercises and cases of one student."""
        if not self.release:
            return self
        own = copy.copy(self)
        own.exercises, own.cases = list(self.exercises), dict(self.cases)
        for k, ex in enumerate(self.exercises):
            if ex.variants:
                key = ex.name, self.release.draw(self.lines[student], ex)
                own.exercises[k], own.cases[ex.name] = self.variants[key], self.drawn[key]
        return own

    def run(self, jobs: int | None) -> bool:
        """Grade everybody, and write the results; False if marks would change that nobody has accepted."""
        settings = {"set": self.name, "seed": self.seed, "isolated": self.box.isolated, "versions": self.version}
        settings |= {"deadline": self.deadline} if self.deadline else {}
        settings |= {"release": self.release.as_dict()} if self.release else {}
        if not self.log.get("finished"):
            write(self.out / "log.json", as_json({**settings, "finished": False, "students": {}}))
        for key, ex in self.variants.items():
            canary.check_reference(ex, self.drawn[key])
        canary.check(self.box, self.exercises, self.cases, self.seed, self.solved, self.runs_torch())
        todo = [one for one in self.submissions if self.only in (None, one.student)]
        lost = []
        with ThreadPoolExecutor(jobs or (self.box.jobs if isinstance(self.box, Elsewhere) else processors())) as pool:
            try:
                futures = {pool.submit(self.student, submission): submission.student for submission in todo}
                for done, future in enumerate(as_completed(futures), 1):
                    try:
                        future.result()
                    except Lost as error:
                        lost.append(f"{futures[future]}: {error}")
                    progress(done, len(futures))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                if isinstance(self.box, Elsewhere):
                    self.box.stop()
                raise
        if lost:
            raise Refused(f"{len(lost)} of {len(todo)} could not be graded. {min(lost)}")
        marks = read_marks(self.out, records_in(self.out).values())
        self.list_changes(marks)
        if self.pending and not self.accept:
            return False
        for _, record in self.pending:
            write(self.place(record["student"]), as_json(record))
        shutil.rmtree(self.out / "new", ignore_errors=True)
        gone = self.remove_others()
        records = records_in(self.out)
        ordered = publish(self.out, self.name, records, marks)
        kept = ("file", "sha256", "problem", "flags", "late")
        students = {r["student"]: {key: r[key] for key in kept} for r in ordered}
        if self.only:  # the others were graded with these
            settings |= {name: self.log[name] for name in ("seed", "isolated", "versions")}
        write(self.out / "log.json", as_json({**settings, "finished": True, "students": students}))
        answers.leave(self.out, self.name, self.exercises, todo, self.names)
        self.summary(ordered)
        if gone:
            print(f"  removed, because they are no longer among the submissions: {', '.join(gone)}")
        return True

    def list_changes(self, marks: Marks) -> None:
        """Print the marks of unchanged notebooks that change, or would if the teacher accepted it."""
        pairs = sorted(self.pending, key=lambda pair: str(pair[0]["student"]))
        lines = [line for old, new in pairs for line in changes(old, new, marks)]
        if not lines:
            return
        verb = "change" if self.accept else "would change"
        print(f"grade: {counted(len(lines), 'mark')} of notebooks that are as before {verb}:", file=sys.stderr)
        print(*(f"  {line}" for line in lines), sep="\n", file=sys.stderr)
        if not self.accept:
            print("All marks and feedback are still the old ones. To take the new, add --accept.", file=sys.stderr)

    def place(self, student: str) -> Path:
        return self.out / "students" / f"{self.names[student]}.json"

    def remove_others(self) -> list[str]:
        """Remove an earlier run's results of students who are not in this one; return their names."""
        gone = []
        kept = {f"{name}.json" for name in self.names.values()}
        for path in sorted((self.out / "students").glob("*.json")):
            record = read_json(path) if path.name not in kept else {}
            if {"student", "key", "results"} <= set(record):  # written by the grader
                with writes_to(path):
                    for kind in ("md", "html"):
                        (self.out / "feedback" / f"{path.name.removesuffix('.json')}.{kind}").unlink(missing_ok=True)
                    path.unlink()
                gone.append(str(record["student"]))
        return gone

    def summary(self, records: Sequence[Record]) -> None:
        """Print what needs the teacher's attention; of one student who was graded again, the marks."""
        if self.only:
            results = next(record["results"] for record in records if record["student"] == self.only)
            print(f"{self.only}: {', '.join(r['exercise'] + ' ' + worth(r) for r in results)}")
            return
        named = {(ex.name, mistake.tag) for ex in self.exercises for mistake in ex.mistakes}
        judged = [r for record in records if not record["problem"] for r in record["results"]]
        counts = Counter(
            "a named mistake"
            if (r["exercise"], r["diagnosis"]) in named or r["diagnosis"].startswith(OTHER)
            else r["diagnosis"]
            for r in judged
        )
        print(f"{counted(len(records), 'submission')} of {self.name}: {self.out / 'grades.csv'}")
        if counts:
            print("  answers: " + ", ".join(f"{tag} {many}" for tag, many in counts.most_common()))
        if problems := [f"{record['student']} ({record['problem']})" for record in records if record["problem"]]:
            more = f", and {len(problems) - 20} more in totals.csv" if len(problems) > 20 else ""
            print(f"  {len(problems)} without a notebook to grade: {', '.join(problems[:20])}{more}")
        if flagged := [record["student"] for record in records if record["flags"]]:
            print(f"  {len(flagged)} flagged for review: see flags in {self.out / 'totals.csv'}")
        if late := sum(bool(record["late"]) for record in records):
            print(f"  {late} late: see late in {self.out / 'totals.csv'}")
        if by_hand := sum("by_hand" in r for record in records for r in record["results"]):
            print(f"  {counted(by_hand, 'mark')} set by hand: see {self.out / 'marks.csv'}")

    def student(self, submission: Submission) -> None:
        """Grade one student, unless an earlier run has, and write the record."""
        path, data, problem = submission.notebook(self.name)
        sha = hashlib.sha256(data).hexdigest() if data else ""
        own = self.own(submission.student)
        asked = [ex.chosen.label for ex in own.exercises if ex.chosen]
        setting = [self.name, self.seed, self.version, self.box.isolated, str(self.box.limits), sha, asked]
        key = digest(json.dumps(setting))
        now = {"student": submission.student, "file": path, "sha256": sha, "key": key}
        place = self.place(submission.student)
        old, waiting = read_json(place), read_json(self.out / "new" / place.name)
        record = old
        if not data or not same(old, now) or self.only:
            if self.accept and same(waiting, now):
                record = waiting
            else:
                flags, results = [], []
                if not problem:
                    try:
                        cells = cells_of(data, self.name, [ex.name for ex in self.exercises])
                        flags = [flag for flag in flags_of(cells) if flag not in self.usual]
                        flags += foreign(cells, own.exercises)
                        results = own.results(cells)
                    except BrokenNotebook as error:
                        problem = str(error)
                if problem:
                    results = [self.result(ex, problem, f"{SAYS[problem]}.") for ex in own.exercises]
                record = {**now, "problem": problem, "flags": flags, "results": results}
        notes = {name: submission.noted(name) for name in NOTES}
        record |= {"handed_in": submission.names(path), "notes": {name: text for name, text in notes.items() if text}}
        record["late"] = submission.late(datetime.fromisoformat(self.deadline) if self.deadline else None)
        before = {"student": submission.student, "sha256": sha}
        if data and "results" in old and same(old, before) and changes(old, record, {}):
            self.pending.append((old, record))
            place = self.out / "new" / place.name
        write(place, as_json(record))

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
                found.append(self.result(ex, diagnosis, says, share(ex, self.cases[ex.name], answer, diagnosis)))
                if diagnosis in UNKNOWN:
                    found[-1]["does"] = traces(answer)
        return found

    def result(self, ex: Exercise, diagnosis: str, says: str, part: float = 0) -> Record:
        points = ex.level if diagnosis == "right" else math.floor(100 * part * ex.level) / 100
        if points and diagnosis != "right":
            says += f" Partial credit: {part:.0%} of the inputs are right."
        own = {"variant": ex.chosen.label} if ex.chosen else {}
        marked = {"exercise": ex.name, "points": points, "max_points": ex.level, "diagnosis": diagnosis, "says": says}
        return marked | own

    def runs_torch(self) -> bool:
        """Whether PyTorch is installed, and an exercise or a notebook may use it. (Testing it takes seconds.)"""
        if importlib.util.find_spec("torch") is None:
            return False
        notebooks = (submission.notebook(self.name)[1] for submission in self.submissions)
        return any(ex.way == "module" for ex in self.exercises) or any(b"torch" in data for data in notebooks)


def same(record: Record, now: Record) -> bool:
    """Whether a record is of this student, this notebook and this grader."""
    return all(record.get(name) == value for name, value in now.items())


def progress(done: int, many: int) -> None:
    """Count on a terminal; elsewhere, as in the log of a cluster, print a line for each tenth."""
    if sys.stderr.isatty():
        print(f"\r{done}/{many} graded", end="\n" if done == many else "", file=sys.stderr, flush=True)
    elif done * 10 // many > (done - 1) * 10 // many:
        print(f"grade: {done} of {many} graded", file=sys.stderr, flush=True)


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def versions() -> dict[str, str]:
    """Everything that decides a mark, and the digest of our part of it."""
    return {
        "subnorm": subnorm.__version__,
        "code": code_digest(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


#: All code of ours that decides a mark: the definitions, the trained model, the checks, and the grader.
DECIDES = (
    "subnorm/__init__.py",
    "subnorm_lab/__init__.py",
    "subnorm_lab/_files.py",
    "subnorm/_rules.py",
    "subnorm/numpy",
    "subnorm/torch",
    "subnorm_lab/stories",
    "subnorm_lab/checks",
    "subnorm_classroom",
)


def code_digest() -> str:
    """The digest of our code that decides a mark: a change of a figure must not invalidate the marks of a class."""
    paths = [path for name in DECIDES for path in sorted([COURSE / name, *(COURSE / name).rglob("*.py")])]
    return digest("".join(path.read_text(encoding="utf-8") for path in paths if path.is_file()))
