"""The command ``grade``: run every notebook in its own process, and compare its answers in this one.

The inputs come from a secret seed, so knowing the class inputs earns nothing. A student's process receives code and
inputs and sends outcomes; the right answers and the verdict never leave this process. (The student's process also
reports changed inputs and counts of calls, which the grader trusts; it does not trust values.)

The same notebooks and seed give the same output, byte for byte. Each student's record is written at once, so an
interrupted run can resume. A mark of an unchanged notebook changes only if the teacher accepts it: until then the new
record waits in the folder `new`.
"""

import argparse
import hashlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from subnorm_classroom.arguments import at_least, moment, set_name
from subnorm_classroom.errors import Refusal
from subnorm_classroom.files import as_json, read_json, write, writes_to
from subnorm_classroom.grading import answers, canary, judging
from subnorm_classroom.grading.assignments import Assignment, Assignments
from subnorm_classroom.grading.cells import BrokenNotebook, cells_of, flags_of, solution_of
from subnorm_classroom.grading.folder import Folder
from subnorm_classroom.grading.running import NotebookLost, RemoteWorkers
from subnorm_classroom.grading.sandbox import Limits, Sandbox
from subnorm_classroom.grading.setting import Setting, choose_deadline, choose_release, choose_seed
from subnorm_classroom.grading.submissions import Submission, file_names, read_all
from subnorm_classroom.grading.summary import (
    NO_SANDBOX,
    print_advice,
    print_changes,
    print_class,
    print_progress,
    print_student,
)
from subnorm_classroom.grading.versions import versions
from subnorm_classroom.reports import overview
from subnorm_classroom.reports.marks import changes, find_student, marks_of_folder
from subnorm_classroom.reports.publication import publish
from subnorm_classroom.reports.records import Record, read_records
from subnorm_classroom.sheets.variants import asks_for_variants, foreign
from subnorm_lab.checks import SETS

HELP = "run the notebooks that students handed in; write the grades, the feedback and an overview"
NOTES = ("timestamp.txt", "submission_secret.txt")  # of nbgrader, which needs both to hand feedback back


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", type=set_name, help="ex01, ex02, …")
    parser.add_argument("submissions", type=Path, help="a folder, or the zip of a learning platform")
    parser.add_argument("-o", "--out", type=Path, default=Path("grades"), help="output folder (default: grades)")
    parser.add_argument("--seed", type=at_least(0), help="seed of an earlier run, from its log.json, for its inputs")
    parser.add_argument("--no-sandbox", action="store_true", help="run student code as you, without isolation")
    parser.add_argument("--jobs", type=at_least(1), help="how many notebooks to run at a time (default: all cores)")
    parser.add_argument("--student", metavar="NAME", help="grade only this student, again")
    parser.add_argument("--accept", action="store_true", help="change the marks of notebooks that are as before")
    parser.add_argument("--deadline", type=moment, help="2026-11-20 or 2026-11-20T18:00; reports who is late")
    parser.add_argument("--release", type=Path, metavar="FILE", help="what release --variants wrote for the grader")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run the notebooks on a Dask cluster, tcp://host:8786")


def run_command(options: argparse.Namespace) -> int:
    return grade(
        options.set,
        options.submissions,
        options.out,
        seed=options.seed,
        sandbox=not options.no_sandbox,
        jobs=options.jobs,
        student=options.student,
        accept=options.accept,
        deadline=options.deadline,
        release=options.release,
        scheduler=options.scheduler,
    )


def grade(
    set_name: str,
    source: Path,
    out: Path,
    *,
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
    """Grade the submissions of a class; return 0 when done.

    If the marks of notebooks that did not change would change, they are listed, nothing is published, and it returns 1.

    Args:
        set_name: "ex02".
        source: a folder, or a zip from a learning platform.
        out: the folder for grades.csv, totals.csv, overview.html, log.json, feedback/, answers/, students/; its
            marks.csv is the teacher's.
        seed: draws the inputs; None takes that of an earlier run, or makes one.
        sandbox: False runs the submissions without isolation.
        jobs: how many to run at the same time; None for one per processor.
        student: grade only this one, again; the platform's number may be left out.
        accept: change marks of notebooks that did not change.
        deadline: the time for the column "late"; None takes that of an earlier run.
        release: the file that release wrote for sheets of the students' own; None takes that of an earlier run.
        scheduler: the address of a Dask cluster to run the notebooks on; None for this machine.
        limits: the limits of time, memory and processes.

    Raises:
        Refusal: an argument is wrong, or this machine cannot grade.
    """
    if set_name not in SETS:
        raise Refusal(f"a set is one of {', '.join(SETS)}; got {set_name}")
    if not source.exists():
        raise Refusal(f"submissions must be a folder or a zip file; there is no {source}")
    if source.is_dir() and out.resolve().is_relative_to(source.resolve()):
        raise Refusal(f"the grades must not be inside the submissions; choose a folder other than {out}")
    if not sandbox:
        if scheduler:
            raise Refusal("--no-sandbox is for this machine only: on a cluster every worker needs bubblewrap")
        print(NO_SANDBOX, file=sys.stderr)
    with writes_to(out):
        out.mkdir(parents=True, exist_ok=True)
    hidden = [source, out]
    with remote_workers(scheduler, limits, hidden) if scheduler else Sandbox(sandbox, limits, hidden) as box:
        submissions = read_all(source)
        only = find_student(student, [one.student for one in submissions]) if student else None
        folder = Folder(out, set_name, file_names([one.student for one in submissions]))
        if only and not folder.log.get("finished"):
            raise Refusal("--student grades one student again; grade the whole class first, without it")
        setting = Setting(
            set_name,
            seed=choose_seed(folder, seed),
            isolated=box.isolated,
            versions=versions(),
            limits=box.limits,
            deadline=choose_deadline(folder, deadline),
            release=choose_release(folder, set_name, release),
        )
        demand_release(setting, submissions, folder, only)
        everybody = [one.student for one in submissions]
        assignments = Assignments(SETS[set_name], setting.seed, setting.release, everybody)
        folder.begin(setting.as_log())
        self_test(box, setting, assignments, submissions)
        grading = Grading(setting, assignments, box, folder, again=only is not None, accept=accept)
        grade_all(grading, [one for one in submissions if only in (None, one.student)], jobs)
        if not publish_all(grading, submissions, only):
            return 1
        print_advice(submissions, read_records(out).values(), set_name, source if source.is_dir() else source.parent)
        return 0


def remote_workers(address: str, limits: Limits | None, hidden: list[Path]) -> AbstractContextManager[RemoteWorkers]:
    """The workers of a Dask cluster."""
    try:
        from subnorm_classroom.grading.cluster import Cluster
    except ImportError as error:
        raise Refusal(
            f"--scheduler needs Dask, which cannot be imported here ({error}). Install it, in a clone of the course "
            "with pip install -e '.[cluster]', or leave out --scheduler to grade on this machine"
        ) from error
    return Cluster(address, limits, hidden)


def demand_release(setting: Setting, submissions: Sequence[Submission], folder: Folder, only: str | None) -> None:
    """Raise Refusal if the sheets are the students' own and there is no release, or one student has another."""
    if not setting.release:
        own = sum(asks_for_variants(one.notebook(setting.set_name)[1]) for one in submissions)
        if 2 * own > len(submissions):
            raise Refusal("the sheets are the students' own: add --release, with the file that release wrote")
    elif only and (folder.log.get("release") or {}).get("seed") != setting.release.seed:
        raise Refusal("the class was not graded with this release; to change that, grade everybody, without --student")


def self_test(
    box: Sandbox | RemoteWorkers, setting: Setting, assignments: Assignments, submissions: Sequence[Submission]
) -> None:
    """Raise Refusal if this machine does not judge right and wrong answers as it should."""
    for assignment in assignments.variants.values():
        canary.check_reference(assignment)
    notebooks = (one.notebook(setting.set_name)[1] for one in submissions)
    in_torch = importlib.util.find_spec("torch") is not None and (  # testing it takes seconds
        any(one.exercise.way == "module" for one in assignments.common) or any(b"torch" in data for data in notebooks)
    )
    canary.check(box, assignments.common, setting.seed, solution_of(setting.set_name), in_torch)


@dataclass
class Grading:
    """What is done for each student, by several threads.

    Args:
        setting: the setting of the run.
        assignments: what each student is asked.
        box: where the notebooks run.
        folder: the folder of the grades.
        again: whether to grade notebooks that are graded.
        accept: whether marks of unchanged notebooks may change.
        pending: gets the (old, new) records of unchanged notebooks with other marks.
    """

    setting: Setting
    assignments: Assignments
    box: Sandbox | RemoteWorkers
    folder: Folder
    again: bool
    accept: bool
    pending: list[tuple[Record, Record]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.usual_flags = flags_of(solution_of(self.setting.set_name) or [])

    def grade(self, submission: Submission) -> None:
        """Grade one student, unless an earlier run has, and write the record."""
        path, data, problem = submission.notebook(self.setting.set_name)
        assignments = self.assignments.of(submission.student)
        identity = self.identity(submission.student, path, data, assignments)
        old = read_json(self.folder.place(submission.student))
        record = self.kept(identity, old) or {**identity, **self.judged(submission.student, data, problem, assignments)}
        notes = {name: submission.noted(name) for name in NOTES}
        record |= {"handed_in": submission.names(path), "notes": {name: text for name, text in notes.items() if text}}
        record["late"] = submission.late(self.setting.deadline)
        self.keep(record, old)

    def identity(self, student: str, path: str, data: bytes, assignments: Sequence[Assignment]) -> Record:
        """What tells whether two records are of one student, one notebook and one grader."""
        sha256 = hashlib.sha256(data).hexdigest() if data else ""
        variants = [one.exercise.chosen.label for one in assignments if one.exercise.chosen]
        return {"student": student, "file": path, "sha256": sha256, "key": self.setting.key(sha256, variants)}

    def kept(self, identity: Record, old: Record) -> Record | None:
        """An earlier run's record, if nothing that decides a mark has changed since; otherwise None."""
        if identity["sha256"] and not self.again and matches(old, identity):
            return old
        waiting = read_json(self.folder.waiting_place(identity["student"])) if self.accept else {}
        return waiting if matches(waiting, identity) else None

    def judged(self, student: str, data: bytes, problem: str, assignments: Sequence[Assignment]) -> Record:
        """The results of a notebook, with the flags for the teacher, and the problem if it cannot be graded."""
        flags, results = [], []
        if not problem:
            exercises = [one.exercise for one in assignments]
            try:
                cells = cells_of(data, self.setting.set_name, [ex.name for ex in exercises])
                flags = [flag for flag in flags_of(cells) if flag not in self.usual_flags]
                flags += foreign(cells, exercises)
                results = judging.judge(self.box, cells, assignments)
            except BrokenNotebook as error:
                problem = str(error)
            except (Refusal, OSError):
                raise
            except Exception as error:  # a fault of ours, which must not cost the others their marks
                problem = "grader_failed"
                print(f"grade: the grader failed on {student} ({type(error).__name__}), and goes on", file=sys.stderr)
        if problem:
            results = judging.judge_nothing(problem, assignments)
        return {"problem": problem, "flags": flags, "results": results}

    def keep(self, record: Record, old: Record) -> None:
        """Write a record; if only the grader would change the marks of a notebook, it waits for the teacher."""
        same_notebook = record["sha256"] and matches(old, {name: record[name] for name in ("student", "sha256")})
        if same_notebook and "results" in old and changes(old, record, {}):
            self.pending.append((old, record))
            write(self.folder.waiting_place(record["student"]), as_json(record))
        else:
            write(self.folder.place(record["student"]), as_json(record))


def matches(record: Record, identity: Record) -> bool:
    """Whether a record has these values."""
    return all(record.get(name) == value for name, value in identity.items())


def grade_all(grading: Grading, submissions: Sequence[Submission], jobs: int | None) -> None:
    """Grade several students at a time.

    Raises:
        Refusal: somebody could not be graded; the others are.
    """
    box, lost = grading.box, []
    with ThreadPoolExecutor(jobs or (box.jobs if isinstance(box, RemoteWorkers) else processors())) as pool:
        try:
            futures = {pool.submit(grading.grade, submission): submission.student for submission in submissions}
            for done, future in enumerate(as_completed(futures), 1):
                try:
                    future.result()
                except NotebookLost as error:
                    lost.append(f"{futures[future]}: {error}")
                print_progress(done, len(futures))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            if isinstance(box, RemoteWorkers):
                box.stop()
            raise
    if lost:
        raise Refusal(f"{len(lost)} of {len(submissions)} could not be graded. {min(lost)}")


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def publish_all(grading: Grading, submissions: Sequence[Submission], only: str | None) -> bool:
    """Publish the results of a class; False if marks would change that nobody has accepted."""
    folder, setting = grading.folder, grading.setting
    out, exercises = folder.path, [one.exercise for one in grading.assignments.common]
    marks = marks_of_folder(out, read_records(out).values())
    print_changes(grading.pending, marks, grading.accept)
    if grading.pending and not grading.accept:
        return False
    folder.accept_waiting([record for _, record in grading.pending])
    gone = folder.remove_others()
    records = publish(out, setting.set_name, read_records(out), marks)
    log = setting.as_log()
    if only:  # the others were graded with these
        log |= {name: folder.log[name] for name in ("seed", "isolated", "versions")}
    folder.finish(log, records)
    graded = [one for one in submissions if only in (None, one.student)]
    answers.leave(out, setting.set_name, exercises, graded, folder.names)
    if only:
        print_student(only, records)
    else:
        print_class(setting.set_name, exercises, records, out)
    overview.renew(out, "grade", tell=only is None)
    if gone:
        print(f"  removed, because they are no longer among the submissions: {', '.join(gone)}")
    return True
