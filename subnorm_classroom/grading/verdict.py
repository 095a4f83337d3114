"""The diagnosis and feedback for an answer, in fixed sentences."""

import contextlib
import difflib
import platform
import re
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from subnorm_classroom.grading.cells import IMPORT, Cell, defines, longest
from subnorm_classroom.grading.wire import NOT_HERE, PACKAGES
from subnorm_lab.checks import SETS
from subnorm_lab.checks.collect import UNSUPPORTED, Case, Outcome
from subnorm_lab.checks.exercise import Exercise
from subnorm_lab.checks.sentences import DIFFERENCES, SENTENCES

#: The sentence of each diagnosis other than "right", "error" and the named mistakes, without a full stop.
SAYS = SENTENCES | {
    "no_notebook": "no notebook was handed in; hand in the file whose name ends in .ipynb (a copy of it in a folder "
    "`.ipynb_checkpoints` does not count)",
    "two_files": "two different notebooks were handed in; hand in one",
    "empty": "the notebook is empty",
    "broken_notebook": "the file is not a readable notebook; save it again in Jupyter, and hand that in",
    "wrong_notebook": "this is not the notebook of this sheet",
    "too_large": "the file is too large; clear its outputs (Kernel > Restart Kernel and Clear Outputs), delete "
    "data that is pasted into cells, and save it",
    "unsafe_archive": "the archive has suspicious paths, links or sizes; hand in the notebook itself",
    "too_many_files": "too many notebooks or archives were handed in; hand in one notebook",
    "grader_failed": "the grader failed on this notebook, and your teacher has to read it",
    "link": "a link was handed in, not a file",
    "unreadable_file": "the file or archive cannot be read; hand in the notebook itself",
    "missing": "after all cells have run, there is no function of this name",
    "timeout": "it ran out of time: look for a loop that does not end",
    "memory": "it took more memory than is allowed",
    "processes": "it started more processes or threads than are allowed",
    "output": "it returned too much data",
    "killed": "it ended its Python process",
    "unreadable": "the result is not an answer: return numbers, strings, arrays, or lists and dicts of these",
}

#: diagnoses of a wrong answer that matches no named mistake
UNKNOWN = (*DIFFERENCES, "error", "unreadable")
OURS = ("needs_library", "no_reference")  # diagnoses that say nothing about the answer

DEFINED = re.compile(r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*=[^=]", re.MULTILINE)
LINE = 60  # characters of a student's line that a sentence quotes


class CellError(NamedTuple):
    """The error of a cell."""

    error: str  # its name; see `known_error`
    module: str = ""  # that it could not import
    newer: str = ""  # version of Python whose syntax the cell may have


JUDGING = threading.Lock()  # a check silences Python's warnings, which all threads share


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Compare without a warning, whatever the numbers."""
    with JUDGING, np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def choose(ex: Exercise, cases: Sequence[Case], found: Sequence[list[Outcome]]) -> list[Outcome]:
    """Of the outcomes with arrays, and with tensors if there are any, those that count."""
    try:
        with quietly():
            return ex.choose(found, cases)
    except Exception:  # the process may send anything
        return found[0]


def verdict(
    ex: Exercise, cases: Sequence[Case], outcomes: Sequence[Outcome], cells: Sequence[Cell] = ()
) -> tuple[str, str]:
    """(diagnosis, feedback to the student), in fixed sentences.

    The feedback contains no number from the inputs or the right answer, and no text from the student's process. An
    answer can only choose the name of its error, one of its own line numbers and one of the modules that its cells
    import. It may choose them by its inputs, and so leak a little about them, but only after the marks are given.
    """
    try:
        with quietly():
            result = ex.judge(cases, outcomes, trusted=False)
    except Exception:
        return "unreadable", f"{SAYS['unreadable']}."
    if result.case is None:  # right, not done, or not judged
        return result.tag, " ".join([result.seen, result.hint]).strip()
    on, outcome = f"on {cases[result.case].name}, ", outcomes[result.case]
    if result.tag == "error":
        if outcome.error in ("MemoryError", "_ArrayMemoryError"):
            return "memory", f"{on}{SAYS['memory']}."
        if outcome.error == "BlockingIOError" or outcome.message == "can't start new thread":
            # the kernel refused; for root it has no limit on processes, but the sandbox does
            return "processes", f"{on}{SAYS['processes']}."
        if outcome.about in UNSUPPORTED:
            return "error", f"{on}{UNSUPPORTED[outcome.about]}."
        line = f" in line {outcome.line} of its cell" if 0 < outcome.line <= longest(ex.name, cells) else ""
        about = no_module(outcome.about, cells) if outcome.error == "ModuleNotFoundError" else ""
        says = f"{on}it raises {known_error(outcome.error)}{line}{about}."
        return "error", " ".join([says, result.hint]).strip()
    if result.tag in SAYS:
        return result.tag, " ".join([f"{on}{SAYS[result.tag]}.", result.hint]).strip()
    return result.tag, f"{on}{result.hint}"


def share(ex: Exercise, cases: Sequence[Case], outcomes: Sequence[Outcome], diagnosis: str) -> float:
    """The share of a wrong answer's outcomes that are right, if the exercise gives points for them; otherwise 0."""
    if not ex.partial or diagnosis in OURS:
        return 0
    try:
        with quietly():
            return ex.right_cases(cases, outcomes) / len(cases)
    except Exception:
        return 0


def why_missing(
    name: str, reason: str, cells: Sequence[Cell], lost: Mapping[int, str], errors: Mapping[int, CellError]
) -> tuple[str, str]:
    """(diagnosis, feedback to the student) for a missing answer, which a lost cell may explain."""
    own = [cell for cell in cells if defines(name, cell)]
    if reason != "missing":
        return reason, f"{SAYS[reason]}."
    for cell in own:
        if how := lost.get(cell.number):
            return how, f"the cell that defines it, which begins with {begins(cell)}, was left out: {SAYS[how]}."
    for cell in own:
        if cell.number in errors:
            error = errors[cell.number]
            where = f"the cell that defines it, which begins with {begins(cell)},"
            return "cell_error", f"{where} raises {error.error}{no_module(error.module, cells)}{newer(error)}."
    near = "" if own else near_name(name, cells)
    return reason, f"{SAYS[reason]}" + (f"; rename `{near}` if that is your answer." if near else ".")


def begins(cell: Cell) -> str:
    """The first line of a cell, as code: JupyterLab shows no numbers of cells."""
    lines = [line.strip() for line in cell.source.splitlines() if line.strip()]
    line = "".join(c for c in lines[0] if c.isprintable() and c != "`") if lines else ""
    return f"`{line[:LINE]}{'…' if len(line) > LINE else ''}`"


def near_name(name: str, cells: Sequence[Cell]) -> str:
    """A name that the cells define and that may be meant for an answer's, as layernorm for layer_norm; or none."""
    answers = {ex.name for exercises in SETS.values() for ex in exercises}
    plain = {
        word.replace("_", "").lower(): word
        for cell in cells
        for found in DEFINED.findall(cell.source)
        for word in found
    }
    mine = [key for key, word in plain.items() if word and word not in answers]
    return next((plain[key] for key in difflib.get_close_matches(name.replace("_", "").lower(), mine, 1, 0.8)), "")


def failed_imports(cells: Sequence[Cell], errors: Mapping[int, CellError]) -> str:
    """The cells that failed to import a module, which may explain a NameError."""
    known = {cell: no_module(errors[cell.number].module, cells) for cell in cells if cell.number in errors}
    return "".join(f" The cell that begins with {begins(cell)} failed{why}." for cell, why in known.items() if why)


def no_module(name: str, cells: Sequence[Cell]) -> str:
    """The name of a missing module, if the cells import it; any other name might leak the inputs."""
    words = {word for cell in cells for line in IMPORT.findall(cell.source) for word in re.findall(r"[\w.]+", line)}
    top = name.split(".")[0]
    if not top.isidentifier() or top not in {word.split(".")[0] for word in words}:
        return ""
    if top in PACKAGES:
        return f": {top} {NOT_HERE}"
    return f": there is no module {top} here"


def newer(error: CellError) -> str:
    """The versions of Python, if a cell looks like the syntax of a newer one than the grader's."""
    if not error.newer:
        return ""
    here = ".".join(platform.python_version_tuple()[:2])
    return f": it looks like the syntax of Python {error.newer}, and answers are graded with Python {here}"


def known_error(name: str) -> str:
    """The name of an exception of Python or NumPy; a student's own name might leak the inputs."""
    error = getattr(__import__("builtins"), name, None) if name.isidentifier() else None
    if isinstance(error, type) and issubclass(error, BaseException):
        return name
    return name if name in ("LinAlgError", "AxisError", "_ArrayMemoryError") else "an error of its own kind"
