"""The program inside the sandbox: run a student's cells, call their functions on the cases, and send the outcomes.

It reads its job as JSON from standard input and writes one JSON object per line to the original standard output. It
makes no verdict and cannot reach the right answers. A student's code controls this process from the first cell on and
may forge every line, but a forged line is only another answer to compare.
"""

import ast
import gc
import importlib.abc
import json
import os
import re
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from subnorm_classroom.grading.calls import refuse_calls
from subnorm_classroom.grading.shell import Shell, make_shell
from subnorm_classroom.grading.wire import NOT_HERE, PACKAGES, pack_outcome, unpack_case
from subnorm_lab.checks.collect import Case, attempts, message_of, missing_module, name_of

Say = Callable[..., None]
MOST_CHECKS = 20  # calls of one check that are answered
EMPTY_LINES = 1000  # that input() reads before the end of the file


def main() -> None:
    job = json.loads(sys.stdin.buffer.read())
    say = take_streams()
    limit_myself(job["limits"])
    refuse_calls()
    shell = make_shell()
    if job["torch"]:
        import torch

        torch.set_num_threads(1)
    gc.freeze()  # the command has turned it off: imports leave no garbage, and to look costs a sixth of PyTorch's time
    gc.enable()
    asking = Asking(say, {name: (way, list(map(unpack_case, cases))) for name, way, cases in job["questions"]})
    hide_package(asking)
    for number, tags, source in job["cells"]:
        asking.go_on_with(number)
        run_cell(shell, number, source, "setup" in tags, say)
    for name in asking.questions:
        asking.end(name, shell.user_ns)
    say(at="end")
    os._exit(0)  # do not wait for the student's threads and exit handlers


class Asking:
    """Calls the answers of a notebook on the cases: at their checks, and when all cells have run.

    An answer counts as it is at its check: a later cell may give its name, or that of a helper, to something else.

    Args:
        say: sends a message.
        questions: {name of the function: (way to call it, cases)}.
    """

    def __init__(self, say: Say, questions: Mapping[str, tuple[str, list[Case]]]) -> None:
        self.say, self.questions = say, questions
        self.left = dict.fromkeys(questions, MOST_CHECKS)
        self.cell: int | None = None  # that is running; None while an answer is

    def go_on_with(self, cell: int) -> None:
        """Say that a cell runs."""
        self.cell = cell
        self.say(at="cell", cell=cell)

    def check(self, name: str, answer: Any) -> None:
        """Send the outcomes of an answer that a cell gives to its check."""
        if not callable(answer) or self.cell is None or not self.left.get(name):
            return
        self.left[name] -= 1
        cell, self.cell = self.cell, None
        try:
            self.say(at="question", question=name)
            self.say(checked=name, attempts=self.attempts(name, answer))
        finally:
            self.go_on_with(cell)

    def end(self, name: str, names: Mapping[str, Any]) -> None:
        """Send the outcomes of the answer that a notebook has at its end."""
        self.cell = None
        self.say(at="question", question=name)
        if callable(answer := names.get(name)):
            self.say(answer=name, attempts=self.attempts(name, answer))
        else:
            self.say(none=name, found=name in names)

    def attempts(self, name: str, answer: Callable[..., Any]) -> list[list[Any]]:
        way, cases = self.questions[name]
        return [[pack_outcome(outcome) for outcome in found] for found in attempts(answer, cases, way)]


def take_streams() -> Say:
    """Discard everything printed, read empty lines, and return a function that sends one JSON object."""
    out = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    lines, keyboard = os.pipe()
    os.write(keyboard, b"\n" * EMPTY_LINES)
    for text in (sys.stdout, sys.stderr):
        text.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]  # as a kernel prints
    os.close(keyboard)
    os.dup2(lines, 0)
    os.close(lines)

    def say(**message: Any) -> None:
        data = (json.dumps(message) + "\n").encode()
        while data:
            data = data[os.write(out, data) :]

    return say


def limit_myself(limits: dict[str, int]) -> None:
    """Set hard limits that the kernel enforces for each process. The grader watches the rest from outside."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for name, limit in limits.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            hard = resource.getrlimit(number)[1]
            limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            try:
                resource.setrlimit(number, (limit, limit))
            except (ValueError, OSError):  # macOS refuses RLIMIT_AS
                continue


class Checks(types.ModuleType):
    """`subnorm_lab.checks` during grading: a check prints nothing, and its result looks like that of a right answer."""

    def __init__(self, asking: Asking) -> None:
        super().__init__("subnorm_lab.checks")
        self.__asking = asking

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def check(answer: Any = None, *args: Any, **kwargs: Any) -> types.SimpleNamespace:
            self.__asking.check(name, answer)
            return types.SimpleNamespace(exercise=name, tag="right", seen="", hint="", case=None, mark="✓")

        return check


class MissingPackageFinder(importlib.abc.MetaPathFinder):
    """An importer that explains why a module of the package is not available."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname.split(".")[0] in PACKAGES:
            # not as name=: "from subnorm import numpy" would then swallow the error
            error = ModuleNotFoundError(f"{fullname} {NOT_HERE}")
            error.absent = fullname  # type: ignore[attr-defined]
            raise error


def hide_package(asking: Asking) -> None:
    """Replace the package by a stub, except the stand-ins of `collect`, which some sheets use.

    The sandbox does not contain the package's files anyway; this gives a clear message.
    """
    stand_ins = sys.modules["subnorm_lab.checks.collect"]
    for name in [name for name in sys.modules if name.split(".")[0] in PACKAGES]:
        del sys.modules[name]
    sys.path[:] = ["", *(path for path in sys.path if path != str(ROOT))]  # "": as in Jupyter, a file of the notebook
    package, lab, checks = types.ModuleType("subnorm"), types.ModuleType("subnorm_lab"), Checks(asking)
    package.__path__, lab.__path__, checks.__path__ = [], [], []
    lab.checks = checks  # type: ignore[attr-defined]
    sys.modules.update({"subnorm": package, "subnorm_lab": lab})
    sys.modules.update({"subnorm_lab.checks": checks, "subnorm_lab.checks.collect": stand_ins})
    sys.meta_path.insert(0, MissingPackageFinder())


#: What Python cannot read before some version: the line of the error begins so.
NEWER_SYNTAX = {
    (3, 12): r"""(?:type\s+\w+\s*(?:\[.*\]\s*)?=|(?:async\s+)?def\s+\w+\[|class\s+\w+\[)
        |.*\b(?:[fF][rR]?|[rR][fF])(['"])(?:(?!\1).)*\{[^{}]*?(?:\1|\\).*?\}""",
    (3, 13): r"(?:type|(?:async\s+)?def|class)\s+\w+\[[^\]]*=",
    (3, 14): r"except\s+[\w.]+\s*,|(?:.*[=(,[{:]\s*)?(?:[tT][rR]?|[rR][tT])['\"]",
}

#: An f-string with a line break in its braces, which Python can read since 3.12.
BREAK_IN_BRACES = r"""[^\n]*\b(?:[fF][rR]?|[rR][fF])(['"])(?:(?!\1)[^\n{])*\{[^{}'"\n]*\n[^{}'"]*\}[^\n]*?\1"""


def run_cell(shell: Shell, number: int, source: str, piecewise: bool, say: Say) -> None:
    """Run one cell and send its errors. In a setup cell, the other statements run even if one fails."""

    def tell(error: BaseException) -> None:
        newer = newer_syntax(error, source) if isinstance(error, SyntaxError) else ""
        about = {"message": message_of(error), "module": missing_module(error), "newer": newer}
        say(cell_error=number, error=name_of(type(error))[:100], **about)

    if error := shell.run(source):
        tell(error)
        for statement in statements(shell.transform_cell(source)) if piecewise else []:
            if error := shell.run(statement, keep=False):
                tell(error)


def statements(source: str) -> list[str]:
    """The statements of a cell; none if it cannot be read."""
    try:
        return [ast.get_source_segment(source, one) or "" for one in ast.parse(source).body]
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []


def newer_syntax(error: SyntaxError, cell: str = "", version: tuple[int, ...] = sys.version_info[:2]) -> str:
    """The version of Python for whose syntax a line looks, if this one is older: "3.12"; otherwise empty."""
    line = (error.text or "").strip()[:300]
    for newer, pattern in reversed(NEWER_SYNTAX.items()):
        if version < newer and re.match(pattern, line, re.VERBOSE):
            return ".".join(map(str, newer))
    if version < (3, 12) and line and re.match(BREAK_IN_BRACES, cell[max(cell.find(line), 0) :][:300]):
        return "3.12"
    return ""


ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120

if __name__ == "__main__":
    main()
