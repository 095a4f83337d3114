"""Run the cells of a page as Jupyter does. The page's worker calls this in Pyodide; it needs only the standard library.

A cell is run under its own file name, so that messages count lines from the top of the cell.
"""

import ast
import contextlib
import io
import json
import linecache
import pprint
import sys
import time
import traceback

MOST = 20_000  # characters of output of one run
OFTEN = 0.1  # seconds between two pieces of output
MARKS = "✓○✗"  # a verdict of `subnorm_lab.checks` begins with one, and the name of the exercise


class Output(io.TextIOBase):
    """What a run prints: sent on in pieces, and cut when it is long. What a check says from its verdict on is kept."""

    def __init__(self, send, exercise):
        self.send, self.heads = send, tuple(f"{mark} {exercise}: " for mark in MARKS)
        self.checking, self.verdict = False, []
        self.waiting, self.since, self.left = [], time.monotonic(), MOST

    def write(self, text):
        if self.left < 0:
            return len(text)
        self.left -= len(text)
        if self.checking and (self.verdict or text.startswith(self.heads)):
            self.verdict.append(text)
            return len(text)
        self.waiting.append(text if self.left >= 0 else f"{text[: self.left]}\n… cut after {MOST:,} characters")
        if self.left < 0 or time.monotonic() - self.since > OFTEN:
            self.flush()
        return len(text)

    def flush(self):
        if self.waiting:
            self.send("".join(self.waiting))
        self.waiting, self.since = [], time.monotonic()


class Session:
    """The names that a page's cells share.

    Args:
        setup: the page's first cell, which every other one relies on.
        exercises: names that other cells of the page define.
    """

    def __init__(self, setup="", exercises=()):
        self.setup, self.exercises = setup, exercises
        self.forget()

    def forget(self):
        """Begin anew, as a new kernel does."""
        self.names = fresh()
        execute(self.setup, "<setup>", self.names)

    def run(self, cell, code, check, send, parts=None):
        """Run a cell, and then its check if there is one; the result is JSON.

        Args:
            cell: the name of the cell: the exercise that it answers.
            code: its text.
            check: the code of its check, or "".
            send: gets pieces of its output.
            parts: what to run instead of this text alone, as (name of a cell, code, whether its output is sent).
        """
        file, output = f"<{cell}>", Output(send, cell)
        result = {"error": "", "line": 0, "verdict": "", "tag": "", "full": False}
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            try:
                for name, part, heard in parts or [(cell, code, True)]:
                    if heard:
                        execute(part, f"<{name}>", self.names)
                    else:
                        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
                            self.execute_unheard(name, part)
                if check:
                    output.checking = True
                    execute(check, "<check>", self.names)
                    result["tag"] = last_tag(cell)
            except BaseException as error:  # also SystemExit
                result["error"], result["line"] = report(error) + self.advice(error), line_of(error, file)
                result["full"] = isinstance(error, MemoryError)  # what fills it may still have a name
            output.flush()
        result["verdict"] = "".join(output.verdict).rstrip()
        return json.dumps(result)

    def execute_unheard(self, name, code):
        execute(code, f"<{name}>", self.names)

    def advice(self, error):
        """What to do about an error that comes from working in a page."""
        if isinstance(error, ModuleNotFoundError):
            return "\nOnly NumPy and Python's standard library are here. Use the notebook for everything else."
        if isinstance(error, NameError) and error.name in self.exercises:
            return f"\n{error.name} is defined by another cell of this page: run that one first."
        return ""

    def complete(self, path):
        """The public names in an object such as "np.linalg", as JSON."""
        first, *rest = path.split(".")
        try:
            value = self.names[first]
            for name in rest:
                value = getattr(value, name)
            return json.dumps([name for name in dir(value) if not name.startswith("_")])
        except Exception:  # an attribute may be anything that the reader wrote
            return "[]"


def last_tag(exercise):
    """The tag of the last result of an exercise's check."""
    return sys.modules["subnorm_lab.checks.exercise"].SEEN[exercise].tag


def fresh():
    """The names of a new session."""
    return {"__name__": "__main__", "input": no_input}


def no_input(prompt=""):
    raise EOFError("nobody can answer input() in a page: write the value into the code")


def parse(code, file):
    linecache.cache[file] = len(code), None, code.splitlines(keepends=True), file  # for tracebacks
    return compile(code, file, "exec", ast.PyCF_ONLY_AST)


def execute(code, file, names):
    """Run a cell; print the value of its last line, if that is an expression."""
    tree = parse(code, file)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, file, "exec"), names)
    if last:
        value = eval(compile(ast.Expression(last.value), file, "eval"), names)
        if value is not None and not hasattr(value, "_ipython_display_"):
            print(pprint.pformat(value, sort_dicts=False) if isinstance(value, dict | list | tuple) else repr(value))


def report(error):
    """The traceback of an error, without the frames of this file."""
    shown = traceback.TracebackException.from_exception(error)
    todo = [shown]
    while todo:
        one = todo.pop()
        frames = [frame for frame in one.stack or () if frame.filename != __file__]
        one.stack = traceback.StackSummary.from_list(frames) if frames else None
        todo += [other for other in (one.__cause__, one.__context__) if other]
    return "".join(shown.format()).rstrip()


def line_of(error, file):
    """The line of a cell at which an error arose; 0 if it arose elsewhere."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno or 0
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == file), 0)
