"""The program inside the sandbox: run a student's cells, call their functions on the cases, and send the outcomes.

It reads its job as JSON from standard input and writes one JSON object per line to the original standard output. It
makes no verdict and cannot reach the right answers. A student's code controls this process from the first cell on and
may forge every line, but a forged line is only another answer to compare.
"""

import __future__

import ast
import contextlib
import functools
import gc
import importlib.abc
import inspect
import json
import operator
import os
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from subnorm_classroom.grading.calls import refuse_calls
from subnorm_classroom.grading.wire import NOT_HERE, PACKAGES, pack_outcome, unpack_case
from subnorm_lab.checks.collect import collect, missing_module

Say = Callable[..., None]


def main() -> None:
    job = json.loads(sys.stdin.buffer.read())
    say = take_streams()
    limit_myself(job["limits"])
    refuse_calls()
    say(at="start")
    if job["torch"]:
        gc.disable()  # the import leaves no garbage; looking for it takes a sixth of the time, now and later
        import torch

        gc.freeze()
        gc.enable()
        torch.set_num_threads(1)
    questions = [(name, way, [unpack_case(case) for case in cases]) for name, way, cases in job["questions"]]
    hide_package()
    space = fresh_main()
    for number, tags, source in job["cells"]:
        say(at="cell", cell=number)
        run_cell(number, source, "setup" in tags, space, say)
    for name, way, cases in questions:
        say(at="question", question=name)
        answer = space.get(name)
        if callable(answer):
            say(answer=name, outcomes=[pack_outcome(outcome) for outcome in collect(answer, cases, way)])
        else:
            say(none=name, found=name in space)
    say(at="end")
    os._exit(0)  # do not wait for the student's threads and exit handlers


def take_streams() -> Say:
    """Discard everything printed, and return a function that sends one JSON object."""
    out = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)

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


class Stub(types.ModuleType):
    """`subnorm_lab.checks` during grading: calls to it do nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: True


class MissingPackageFinder(importlib.abc.MetaPathFinder):
    """An importer that explains why a module of the package is not available."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname.split(".")[0] in PACKAGES:
            # not as name=: "from subnorm import numpy" would then swallow the error
            error = ModuleNotFoundError(f"{fullname} {NOT_HERE}")
            error.absent = fullname  # type: ignore[attr-defined]
            raise error


def hide_package() -> None:
    """Replace the package by a stub, except the stand-ins of `collect`, which some sheets use.

    The sandbox does not contain the package's files anyway; this gives a clear message.
    """
    stand_ins = sys.modules["subnorm_lab.checks.collect"]
    for name in [name for name in sys.modules if name.split(".")[0] in PACKAGES]:
        del sys.modules[name]
    sys.path[:] = [path for path in sys.path if path != str(ROOT)]
    package, lab, checks = types.ModuleType("subnorm"), types.ModuleType("subnorm_lab"), Stub("subnorm_lab.checks")
    package.__path__, lab.__path__, checks.__path__ = [], [], []
    lab.checks = checks  # type: ignore[attr-defined]
    sys.modules.update({"subnorm": package, "subnorm_lab": lab})
    sys.modules.update({"subnorm_lab.checks": checks, "subnorm_lab.checks.collect": stand_ins})
    sys.meta_path.insert(0, MissingPackageFinder())


def fresh_main() -> dict[str, Any]:
    """A namespace for the notebook, with the names that IPython adds."""
    module = types.ModuleType("__main__")
    shell = Shell(module.__dict__)
    known = {"display": lambda *args, **kwargs: None, "get_ipython": lambda: shell}
    module.__dict__.update(known)
    sys.modules["__main__"] = module
    getter = types.ModuleType("IPython.core.getipython")  # for "from IPython import get_ipython"
    getter.get_ipython = known["get_ipython"]  # type: ignore[attr-defined]
    sys.modules[getter.__name__] = getter
    return module.__dict__


class MagicResult(float):
    """The result of a magic, such as %timeit -o: one second, as are all its attributes."""

    def __new__(cls, *args: Any, **kwargs: Any) -> "MagicResult":
        return super().__new__(cls, 1.0)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self


class Shell:
    """The result of `get_ipython()`: timing magics run their code once, and the others do nothing."""

    TIMED = ("time", "timeit", "capture")

    def __init__(self, space: dict[str, Any]) -> None:
        self.space = space

    def __getattr__(self, name: str) -> Any:
        return MagicResult().__getattr__(name)

    def run_line_magic(self, name: str, line: str, *args: Any) -> Any:
        if name == "time":
            run_source(line, "a magic", self.space)
        return MagicResult()

    def run_cell_magic(self, name: str, line: str, cell: str) -> Any:
        if name in self.TIMED:
            if name == "capture" and line.isidentifier():
                self.space[line] = MagicResult()
            run_source(cell, "a magic", self.space)
        return MagicResult()

    def getoutput(self, command: str, *args: Any, **kwargs: Any) -> list[str]:
        return []  # no program runs


#: __future__ features stay on for later cells, as in a notebook
FUTURE = {"flags": ast.PyCF_ALLOW_TOP_LEVEL_AWAIT}
EVERY_FEATURE = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


def run_cell(number: int, source: str, piecewise: bool, space: dict[str, Any], say: Say) -> None:
    """Run one cell and send its errors. In a setup cell, the other statements run even if one fails."""

    def tell(error: BaseException) -> None:
        say(cell_error=number, error=type(error).__name__, message=str(error)[:300], module=missing_module(error))

    try:
        tree = parse(source, f"cell {number}")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        tell(error)
        return
    parts: Sequence[list[ast.stmt]] = [[part] for part in tree.body] if piecewise else [tree.body]
    for part in parts:
        try:
            run_part(part, f"cell {number}", space)
        except BaseException as error:
            tell(error)


def run_source(source: str, name: str, space: dict[str, Any]) -> None:
    run_part(parse(source, name).body, name, space)


def run_part(part: list[ast.stmt], name: str, space: dict[str, Any]) -> None:
    """Run some statements of a cell, including top-level await."""
    code = compile(ast.Module(part, []), name, "exec", FUTURE["flags"], dont_inherit=True)
    FUTURE["flags"] |= code.co_flags & EVERY_FEATURE
    result = eval(code, space)
    if code.co_flags & inspect.CO_COROUTINE:
        import asyncio  # slow to import, and few cells need it

        asyncio.run(result)


def parse(source: str, name: str) -> ast.Module:
    """Parse a cell; IPython syntax becomes calls of `get_ipython()`, as in IPython itself."""
    try:
        return ast.parse(source, name)
    except SyntaxError:
        return ast.parse(transformed(source), name)


def transformed(source: str) -> str:
    """A cell after IPython's own input transformer; if IPython is not installed, without its magic lines."""
    with contextlib.suppress(Exception):
        from IPython.core.inputtransformer2 import TransformerManager

        return str(TransformerManager().transform_cell(source))
    first = source.lstrip().split("\n", 1)[0]
    if first.startswith("%%"):
        if first.split()[0][2:] not in Shell.TIMED:
            return ""  # shell code, or another language
        source = source.replace(first, "", 1)
    return "\n".join("" if is_magic(line.strip()) else line for line in source.split("\n"))


def is_magic(line: str) -> bool:
    return line.startswith(("%", "!", "?")) or line.endswith("?")


ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120

if __name__ == "__main__":
    main()
