"""What is said of an answer: the diagnosis, in sentences that are written here."""

import re
import threading
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from subnorm.checks.collect import ODD, Case, Outcome
from subnorm.checks.exercise import Exercise
from subnorm.classroom.cells import IMPORT, Cell, defines, longest
from subnorm.classroom.wire import NOT_HERE

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

JUDGING = threading.Lock()  # Python's warnings, which a check silences, belong to all threads


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
        if outcome.error == "BlockingIOError" or outcome.message == "can't start new thread":
            # the kernel refused: root has no limit to the number of processes, and is stopped by the sandbox
            return "processes", f"{on}{SAYS['processes']}"
        if outcome.about in ODD:
            return "error", f"{on}{ODD[outcome.about]}."
        line = f" in line {outcome.line} of its cell" if 0 < outcome.line <= longest(ex.name, cells) else ""
        about = no_module(outcome.about, cells) if outcome.error == "ModuleNotFoundError" else ""
        says = f"{on}it raises {known_error(outcome.error)}{line}{about}."
        return "error", " ".join([says, result.hint]).strip()
    if result.tag in SAYS:
        return result.tag, " ".join([f"{on}{SAYS[result.tag]}.", result.hint]).strip()
    return result.tag, f"{on}{result.hint}"


def why_missing(
    name: str, reason: str, cells: Sequence[Cell], lost: Mapping[int, str], errors: Mapping[int, tuple[str, str]]
) -> tuple[str, str]:
    """(diagnosis, what the student is told) of a question without an answer: a cell that was lost may be the cause."""
    own = [cell.number for cell in cells if defines(name, cell)]
    if reason == "missing":
        for number in own:
            if number in lost:
                where = f"the cell that defines it ({number}, text cells counted)"
                return lost[number], f"{where} was left out: {SAYS[lost[number]]}"
        for number in own:
            if number in errors:
                where = f"the cell that defines it ({number}, text cells counted)"
                error, module = errors[number]
                return "cell_error", f"{where} raises {error}{no_module(module, cells)}."
    return reason, SAYS[reason]


def failed_imports(cells: Sequence[Cell], errors: Mapping[int, tuple[str, str]]) -> str:
    """The cells that wanted a module that is not there: a name that is missing may be its."""
    known = {number: no_module(module, cells) for number, (_, module) in sorted(errors.items())}
    return "".join(f" Cell {number} (text cells counted) failed{why}." for number, why in known.items() if why)


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
