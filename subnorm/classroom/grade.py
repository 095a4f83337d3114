"""Grade a class: every notebook runs in a process of its own, and its answers are compared here.

The inputs come from a secret seed, so an answer that knows the inputs of class is worth nothing. A student's process
gets code and inputs and gives outcomes; the right answers and the verdict never leave this process. (Whether an input
was written to, or a function called twice, is counted inside, and taken on trust; values are not.)

What is written is the same, byte for byte, when the same notebooks are graded with the same seed. Each student's
record is written as soon as it is known, so that a run that was cut off goes on where it stopped.
"""

import contextlib
import csv
import hashlib
import html
import importlib.util
import io
import json
import os
import platform
import re
import secrets
import sys
import threading
import time
import unicodedata
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import subnorm
from subnorm.checks import SETS
from subnorm.checks.collect import ODD, Case, Outcome, collect
from subnorm.checks.exercise import Exercise
from subnorm.classroom.sandbox import PACKAGE, Limits, NoSandbox, Sandbox
from subnorm.classroom.submissions import NoSubmissions, Submission, file_names, read_all
from subnorm.classroom.wire import NOT_HERE, pack_case, pack_outcome, unpack_case, unpack_outcome

Record = dict[str, Any]

#: What is said of a submission, or of an answer, that could not be compared.
SAYS = {
    "no_notebook": "no notebook was handed in; hand in the file whose name ends in .ipynb.",
    "two_files": "two different notebooks were handed in; hand in one.",
    "empty": "the notebook is empty.",
    "broken_notebook": "the file is not a notebook that can be read; save it again in Jupyter, and hand that in.",
    "wrong_notebook": "this is not the notebook of this sheet.",
    "too_large": "the file is larger than a notebook may be; clear its outputs (Kernel, Restart and Clear), save it.",
    "unsafe_archive": "the archive has paths, links or sizes that no honest archive has; hand in the notebook itself.",
    "too_many_files": "too many notebooks or archives were handed in; hand in one notebook.",
    "link": "a link was handed in, not a file.",
    "unreadable_file": "the file or archive cannot be read; hand in the notebook itself.",
    "missing": "no function of this name is left when all cells have run.",
    "no_function": "the name stands for something that is no function.",
    "timeout": "it ran out of time: look for a loop that does not end.",
    "memory": "it took more memory than is allowed.",
    "processes": "it started more processes or threads than are allowed.",
    "output": "more came back than an answer can be.",
    "killed": "it ended the Python process in which it ran.",
    "unreadable": "what came back is not an answer: numbers, texts, arrays, or lists and dicts of these are.",
    "value": "the values are not right",
    "shape": "the shape is not right",
    "dtype": "the values are right, the dtype is not",
    "type": "the type of the result is not right",
    "keys": "the keys of the result are not right",
    "count": "the number of results is not right",
    "in_place": "the values are right, but an input was written to: make a new array",
    "calls": "the values are right, but a function among the inputs is not called as often as it should be",
    "no_error": "an error was expected, and none was raised",
}
NO_SANDBOX = """
  NO SANDBOX. The code of every submission runs as you, on this machine, with your files and your network.
  It can read, change and delete what you can, read other submissions and the solutions, and leave programs running.
  Only time and memory are limited. Use a machine that holds nothing else.
"""
IMPORT = re.compile(r"\b(?:import|from)[ \t]([^\n#]*)")  # each line is read once, however long it is
WATCHED = "os sys io inspect socket subprocess ctypes gc importlib builtins pathlib shutil signal threading pickle"
FLAGS = {
    "imports more of subnorm than checks": r"\b(?:from|import)\s+subnorm(?:\.|\s+import\s+)(?!checks\b)",
    "uses eval, exec or __import__": r"\b(?:eval|exec|__import__)\s*\(",
    "opens files": r"(?<![\w.])open\s*\(",
    "takes a function apart": r"__closure__|__code__|__globals__|__dict__|cell_contents|\bvars\s*\(",
    "uses a ready-made norm": r"\b(?:F|functional|nn)\.(?:layer_norm|rms_norm|LayerNorm|RMSNorm)\b",
}
JUDGING = threading.Lock()  # Python's warnings, which a check silences, belong to all threads


class Refused(Exception):
    """Grading does not start; the message says why, and how to fix it."""


@dataclass(frozen=True)
class Cell:
    """A code cell: its place in the notebook, counted from 1 over all cells, its useful tags, its source."""

    number: int
    tags: tuple[str, ...]
    source: str


@dataclass
class Work:
    """What came of running one notebook."""

    answers: dict[str, list[Outcome] | str] = field(default_factory=dict)  # outcomes, or why there are none
    errors: dict[int, tuple[str, str]] = field(default_factory=dict)  # of cells, and a module that is missing
    lost: dict[int, str] = field(default_factory=dict)  # cells that ended the process, and how


class BrokenNotebook(Exception):
    """A file that is not a notebook; the argument is the diagnosis."""


def grade(
    set_name: str,
    source: Path,
    out: Path,
    seed: int | None = None,
    sandbox: bool = True,
    jobs: int | None = None,
    limits: Limits | None = None,
) -> int:
    """Grade the submissions of a class; 0 if that is done, 1 if it was refused, 130 if it was stopped by hand.

    Why it was refused is said on standard error.

    Args:
        set_name: "ex02".
        source: folder or zip of a learning platform.
        out: folder for grades.csv, totals.csv, feedback/, students/ and log.json.
        seed: of the inputs; drawn if it is None, or taken from the log of a run that was cut off.
        sandbox: False runs the submissions without isolation.
        jobs: how many run at the same time; as many as there are processors if it is None.
        limits: of time, memory and processes.
    """
    try:
        exercises = SETS.get(set_name)
        if exercises is None:
            raise Refused(f"a set is one of {', '.join(SETS)}; got {set_name}")
        if not source.exists():
            raise Refused(f"submissions are a folder or a zip file; there is no {source}")
        if source.is_dir() and out.resolve().is_relative_to(source.resolve()):
            raise Refused(f"the grades may not lie among the submissions; give another folder than {out}")
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
        print("\ngrade: stopped. The same command goes on where this one stopped.", file=sys.stderr)
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
            raise Refused(f"{out} holds the grades of {self.log['set']}; give another folder: -o {out / name}")
        kept = self.log.get("seed")
        if seed is None and (out / "log.json").exists() and (type(kept) is not int or kept < 0):
            raise Refused(
                f"{out / 'log.json'} is damaged, and with it the seed of the grades there is lost. Give that seed with "
                "--seed if you have it. If not, remove the file: a new seed is drawn, and everybody is graded again"
            )
        self.seed: int = seed if seed is not None else secrets.randbits(64) if kept is None else kept
        self.cases = {ex.name: draw(ex, self.seed) for ex in exercises}
        self.version = {
            "subnorm": subnorm.__version__,
            "code": code_digest(),
            "python": platform.python_version(),
            "numpy": np.__version__,
        }
        self.usual = flags_of(solution_of(name) or [])  # the sheet itself has them
        self.names = file_names([submission.student for submission in self.submissions])

    def run(self, jobs: int | None) -> None:
        """Grade everybody, and write what was found."""
        settings = {"set": self.name, "seed": self.seed, "isolated": self.box.isolated, "versions": self.version}
        write(self.out / "log.json", as_json({**settings, "finished": False, "students": {}}))
        self.canary()
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
            print(f"  removed, for they are not among the submissions any more: {', '.join(gone)}")

    def remove_others(self) -> list[str]:
        """Remove what an earlier run wrote of students who are not in this one; their names."""
        gone = []
        kept = {f"{name}.json" for name in self.names.values()}
        for path in sorted((self.out / "students").glob("*.json")):
            record = read_json(path) if path.name not in kept else {}
            if {"student", "key", "results"} <= set(record):  # ours, and no file that somebody put there
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
            print(f"  {len(flagged)} with something to look at: see flags in {self.out / 'log.json'}")

    def student(self, submission: Submission) -> Record:
        """The record of one student: from an earlier run of the same, or graded now."""
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
        """One for each exercise."""
        work = self.work(cells, self.exercises, self.cases)
        found = []
        for ex in self.exercises:
            answer = work.answers[ex.name]
            if isinstance(answer, str):
                found.append(self.result(ex, *why_missing(ex.name, answer, cells, work)))
            else:
                diagnosis, says = verdict(ex, self.cases[ex.name], answer, cells)
                if diagnosis == "error" and "raises NameError" in says:
                    says += failed_imports(cells, work)
                found.append(self.result(ex, diagnosis, says))
        return found

    def result(self, ex: Exercise, diagnosis: str, says: str) -> Record:
        points = ex.level if diagnosis == "right" else 0
        return {"exercise": ex.name, "points": points, "max_points": ex.level, "diagnosis": diagnosis, "says": says}

    def work(self, cells: Sequence[Cell], exercises: Sequence[Exercise], cases: dict[str, list[Case]]) -> Work:
        """Run a notebook; a cell or a question that ends or hangs the process is left out when it is run again."""
        work = Work()
        names = {ex.name for ex in exercises}
        torch = any(ex.way == "module" for ex in exercises) or any(re.search(r"\btorch\b", c.source) for c in cells)
        until = time.monotonic() + self.box.limits.total
        for _ in range(self.box.limits.restarts + 1):
            todo = [ex for ex in exercises if ex.name not in work.answers]
            job = {
                "torch": torch,
                "cells": [[c.number, c.tags, c.source] for c in cells if c.number not in work.lost],
                "questions": [[ex.name, ex.way, [pack_case(case) for case in cases[ex.name]]] for ex in todo],
            }
            how = "killed"
            if todo:
                ending = self.box.run(job, lambda message: hear(message, work, names, cases), until)
                how = ending.how
                if ending.at == "cell" and isinstance(ending.which, int):
                    work.lost[ending.which] = how
                elif ending.at == "question" and isinstance(ending.which, str) and ending.which in names:
                    work.answers.setdefault(ending.which, how)
                else:  # it came to its end, or did not begin
                    break
            if not todo or time.monotonic() > until:
                break
        for name in names:
            work.answers.setdefault(name, "killed" if how == "end" else how)
        return work

    def canary(self) -> None:
        """Refused if right answers are not judged right here, or wrong ones are: then no mark would mean anything."""
        for ex in self.exercises:
            sent = [unpack_case(json.loads(json.dumps(pack_case(case)))) for case in self.cases[ex.name]]
            there = [json.loads(json.dumps(pack_outcome(o))) for o in collect(ex.reference, sent, ex.way)]
            self.demand(ex, "right", verdict(ex, self.cases[ex.name], [unpack_outcome(data) for data in there]))
        tests = [*self.exercises, CANARY]
        cases = {**self.cases, CANARY.name: draw(CANARY, self.seed)}
        solved = solution_of(self.name)
        twice = Cell(10_001, (), "def canary(x):\n    return 2 * x")
        half = "".join(f"def {ex.name}(*args, **kwargs):\n    return 0.5\n" for ex in tests)
        for cells, wanted in ([*(solved or []), twice], "right"), ([Cell(1, (), half)], "wrong"):
            judged = tests if solved or wanted == "wrong" else [CANARY]
            work = self.work(cells, tests, cases)
            for ex in judged:
                answer = work.answers[ex.name]
                found = (
                    (answer, "nothing came back") if isinstance(answer, str) else verdict(ex, cases[ex.name], answer)
                )
                self.demand(ex, wanted, found)
                if wanted == "wrong" and isinstance(answer, str):
                    raise Refused(f"before grading, nothing came back of an answer to {ex.name}: {answer}")
        if self.runs_torch():
            cases = {IN_TORCH.name: draw(IN_TORCH, self.seed)}
            answer = self.work([Cell(1, (), TWICE_IN_TORCH)], [IN_TORCH], cases).answers[IN_TORCH.name]
            found = (
                (answer, SAYS[answer]) if isinstance(answer, str) else verdict(IN_TORCH, cases[IN_TORCH.name], answer)
            )
            self.demand(IN_TORCH, "right", found)

    def runs_torch(self) -> bool:
        """Whether PyTorch is here, and an exercise or a notebook may use it: to load it takes seconds."""
        if importlib.util.find_spec("torch") is None:
            return False
        notebooks = (submission.notebook(self.name)[1] for submission in self.submissions)
        return any(ex.way == "module" for ex in self.exercises) or any(b"torch" in data for data in notebooks)

    def demand(self, ex: Exercise, wanted: str, found: tuple[str, str]) -> None:
        if (found[0] == "right") != (wanted == "right"):
            what = "the solution" if wanted == "right" else "a wrong answer"
            raise Refused(
                f"before grading, {what} of {ex.name} was judged {found[0]} ({found[1]}). Nothing was graded."
            )


CANARY = Exercise(
    name="canary",
    level=1,
    minutes=1,
    chapter="",
    objective="",
    reference=lambda x: 2 * x,
    cases=lambda rng: [Case("a batch", (rng.normal(size=(3, 4)),))],
    mistakes=[],
)
IN_TORCH = replace(
    CANARY,
    name="canary_in_pytorch",
    cases=lambda rng: [
        Case(f"a {dtype} batch", (rng.normal(size=(3, 4)).astype(dtype),))
        for dtype in ("float16", "float32", "float64")
    ],
)
TWICE_IN_TORCH = """
import torch

def canary_in_pytorch(x):
    x = torch.as_tensor(x)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        torch.nn.functional.rms_norm(x.to(dtype), x.shape[-1:]).mean()
    return (2 * x.float()).to(x.dtype)
"""


def draw(ex: Exercise, seed: int) -> list[Case]:
    """The cases of an exercise; those of another are drawn apart."""
    return ex.cases(np.random.default_rng([seed, zlib.crc32(ex.name.encode())]))


def hear(message: Any, work: Work, names: Iterable[str], cases: dict[str, list[Case]]) -> None:
    """Take in a message from a student's process. It may be forged: it is only an answer, and the first one counts."""
    name = message.get("answer", message.get("none"))
    if isinstance(name, str) and name in names and name not in work.answers:
        if "answer" in message:
            try:
                outcomes = [unpack_outcome(data) for data in message["outcomes"]]
                if len(outcomes) != len(cases[name]):
                    raise ValueError("not as many outcomes as cases")
                work.answers[name] = outcomes
            except Exception:  # anything may have been sent
                work.answers[name] = "unreadable"
        else:
            work.answers[name] = "no_function" if message.get("found") is True else "missing"
    number, error = message.get("cell_error"), message.get("error")
    if isinstance(number, int) and isinstance(error, str) and len(work.errors) < 1000:
        work.errors.setdefault(number, (known_error(error), str(message.get("module"))[:100]))


def verdict(
    ex: Exercise, cases: Sequence[Case], outcomes: Sequence[Outcome], cells: Sequence[Cell] = ()
) -> tuple[str, str]:
    """(diagnosis, what the student is told), in sentences that are written here.

    No number of the inputs or of the right answer is in it, and no text that came from inside. What an answer does
    choose is the name of its error, one of its own lines and one of the modules that its cells import: an answer may
    choose by its inputs, and so learn as much of them as one of so many lines can say, after the marks are given.
    """
    try:
        with JUDGING, np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = ex.judge(cases, outcomes, trusted=False)
    except Exception:
        return "unreadable", SAYS["unreadable"]
    if result.tag in ("right", "not_done", "needs_library", "no_reference"):
        return result.tag, " ".join([result.seen, result.hint]).strip()
    where = [k for k, case in enumerate(cases) if result.seen.startswith(f"on {case.name}, ")]
    on = f"on {cases[where[0]].name}, " if where else ""
    if result.tag == "error":
        outcome = outcomes[where[0]] if where else Outcome()
        if outcome.error in ("MemoryError", "_ArrayMemoryError"):
            return "memory", f"{on}{SAYS['memory']}"
        if outcome.about in ODD:
            return "error", f"{on}{ODD[outcome.about]}."
        line = f" in line {outcome.line} of its cell" if 0 < outcome.line <= longest(ex.name, cells) else ""
        about = no_module(outcome.about, cells) if outcome.error == "ModuleNotFoundError" else ""
        says = f"{on}it raises {known_error(outcome.error)}{line}{about}."
        return "error", " ".join([says, result.hint]).strip()
    if result.tag in SAYS:
        return result.tag, " ".join([f"{on}{SAYS[result.tag]}.", result.hint]).strip()
    return result.tag, f"{on}{result.hint}"


def why_missing(name: str, reason: str, cells: Sequence[Cell], work: Work) -> tuple[str, str]:
    """(diagnosis, what the student is told) of a question without an answer: a cell that was lost may be the cause."""
    own = [cell.number for cell in cells if defines(name, cell)]
    if reason == "missing":
        for number in own:
            if number in work.lost:
                where = f"the cell that defines it ({number}, text cells counted)"
                return work.lost[number], f"{where} was left out: {SAYS[work.lost[number]]}"
        for number in own:
            if number in work.errors:
                where = f"the cell that defines it ({number}, text cells counted)"
                error, module = work.errors[number]
                return "cell_error", f"{where} raises {error}{no_module(module, cells)}."
    return reason, SAYS[reason]


def failed_imports(cells: Sequence[Cell], work: Work) -> str:
    """The cells that wanted a module that is not there: a name that is missing may be its."""
    known = {number: no_module(module, cells) for number, (_, module) in sorted(work.errors.items())}
    return "".join(f" Cell {number} (text cells counted) failed{why}." for number, why in known.items() if why)


def defines(name: str, cell: Cell) -> bool:
    """Whether a cell gives a name its meaning: by def, class, an assignment or an import."""
    pattern = rf"\b(?:def|class)\s+{re.escape(name)}\b|^[ \t]*{re.escape(name)}[ \t]*=[^=]"
    imported = any(re.search(rf"\b{re.escape(name)}\b", line) for line in IMPORT.findall(cell.source))
    return imported or bool(re.search(pattern, cell.source, re.MULTILINE))


def longest(name: str, cells: Sequence[Cell]) -> int:
    """How many lines the longest cell has in which an answer is defined: no line of an answer has a larger number."""
    return max((cell.source.count("\n") + 1 for cell in cells if defines(name, cell)), default=0)


def no_module(name: str, cells: Sequence[Cell]) -> str:
    """Which module is missing, if the cells import one of this name; any other name may spell out the inputs."""
    words = {word for cell in cells for line in IMPORT.findall(cell.source) for word in re.findall(r"[\w.]+", line)}
    top = name.split(".")[0]
    if not top.isidentifier() or top not in {word.split(".")[0] for word in words}:
        return ""
    if top == "subnorm":
        return f": subnorm {NOT_HERE}"
    return f": there is no module {top} here"


def known_error(name: str) -> str:
    """The name of an exception, if Python or NumPy has it; a student's own may spell out the inputs."""
    error = getattr(__import__("builtins"), name, None) if name.isidentifier() else None
    if isinstance(error, type) and issubclass(error, BaseException):
        return name
    return name if name in ("LinAlgError", "AxisError", "_ArrayMemoryError") else "an error of its own kind"


def cells_of(data: bytes, set_name: str, names: Sequence[str]) -> list[Cell]:
    """The code cells of a notebook; BrokenNotebook if it is none, or that of another sheet."""
    if data.count(b"[") + data.count(b"{") > 500_000:
        raise BrokenNotebook("too_large")
    try:
        book = json.loads(data)
        cells = [
            (k, cell["metadata"], "".join(cell["source"]), str(cell.get("id")))
            for k, cell in enumerate(book["cells"], 1)
            if cell["cell_type"] == "code"
        ]
        found = [
            Cell(k, tuple(tag for tag in ("setup", "solution-only") if tag in meta.get("tags", ())), source)
            for k, meta, source, _ in cells
        ]
        ids = [str(meta.get("nbgrader", {}).get("grade_id", "")) for _, meta, _, _ in cells]
        ids += [name for *_, name in cells]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError) as error:
        raise BrokenNotebook("broken_notebook") from error
    if not any(cell.source.strip() for cell in found):
        raise BrokenNotebook("empty")
    source = "\n".join(cell.source for cell in found)
    defines = any(re.search(rf"\b{re.escape(name)}\b", source) for name in names)
    if not defines and not any(name.startswith(f"{set_name}-") for name in ids):
        raise BrokenNotebook("wrong_notebook")
    return found


def flags_of(cells: Sequence[Cell]) -> list[str]:
    """What a person may want to look at; it changes no mark."""
    source = "\n".join(cell.source for cell in cells)
    imported = {word for line in IMPORT.findall(source) for word in re.findall(r"\w+", line)}
    found = [f"imports {name}" for name in WATCHED.split() if name in imported]
    return sorted(found + [flag for flag, pattern in FLAGS.items() if re.search(pattern, source)])


def solution_of(set_name: str) -> list[Cell] | None:
    """The code cells of the sheet with its solutions, if the course is here and not the package alone."""
    for path in sorted((PACKAGE.parent / "notebooks/exercises").glob(f"{set_name}-*.ipynb")):
        cells = cells_of(path.read_bytes(), set_name, [])
        return [cell for cell in cells if "solution-only" not in cell.tags]  # as students have it
    return None


def feedback(set_name: str, record: Record) -> str:
    """What a student gets, in Markdown."""
    results = record["results"]
    name, file = (
        re.sub(r"([\\`*_\[\]#])", r"\\\1", html.escape(record.get(key) or "nothing")) for key in ("student", "file")
    )
    total, most = sum(r["points"] for r in results), sum(r["max_points"] for r in results)
    parts = [f"# {name}: {set_name}", f"{total} of {most} points."]
    if record.get("problem"):  # the same for every exercise: it is said once
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
    """One line for each student, as learning platforms read it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["student", "points", "max_points", "problem"])
    for record in records:
        sums = [sum(r[key] for r in record["results"]) for key in ("points", "max_points")]
        writer.writerow([as_cell(record["student"]), *sums, record["problem"]])
    return text.getvalue()


def as_cell(student: str) -> str:
    """A name that a spreadsheet does not compute; some take a wide sign for a plain one, or read past a space."""
    return f"'{student}" if unicodedata.normalize("NFKC", student).strip()[:1] in "=+-@" else student


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def read_json(path: Path) -> dict[str, Any]:
    """What an earlier run wrote; empty if there is none, or it was cut off."""
    with contextlib.suppress(OSError, ValueError):
        value = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(value, dict):
            return value
    return {}


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(f".part-{digest(path.name)[:16]}")
    with writes_to(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_text(text, encoding="utf-8", newline="\n")
            part.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink()
            raise


@contextlib.contextmanager
def writes_to(path: Path) -> Iterator[None]:
    """Refused instead of an error of the file system."""
    try:
        yield
    except OSError as error:
        raise Refused(
            f"the grades cannot be written to {path}: {error.strerror}. Make room there, or give another folder (-o). "
            "What is graded is kept: the same command goes on where this one stopped"
        ) from error


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def code_digest() -> str:
    """Of everything that decides a mark."""
    folders = [PACKAGE / name for name in ("checks", "classroom", "numpy", "torch")]
    files = sorted(path for folder in folders for path in folder.rglob("*.py"))
    return digest("".join(path.read_text(encoding="utf-8") for path in files))
