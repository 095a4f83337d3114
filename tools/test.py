"""Run the tests in stages, and sum them up. Standard library only."""

import collections
import os
import re
import subprocess
import time

from tools import build, checkout

PATIENCE = 1800  # seconds


def run_tests(part: str) -> bool:
    """Run every stage of `part`, even after a failure; then print a table. The book is built before all tests."""
    start = time.monotonic()
    rows = [] if part else [("build", build.build(), "book", time.monotonic() - start)]
    counts: collections.Counter = collections.Counter()
    notes = []
    for stage, words in stages(part).items():
        print(f"\n--- {stage}: {' '.join(words)}", flush=True)
        start = time.monotonic()
        status, lines = tee([checkout.PYTHON, "-m", *words])
        rows.append((stage, status == 0, lines[-1], time.monotonic() - start))
        if words[0] == "pytest":
            counts.update({name: int(n) for n, name in re.findall(r"(\d+) (passed|failed|skipped|errors?)", lines[-1])})
            notes += [line for line in lines if line.startswith(("SKIPPED [", "FAILED ", "ERROR ", "FAIL Required"))]
    print("", *notes, "", sep="\n")
    for stage, good, result, seconds in rows:
        print(f"{stage:10} {'ok' if good else 'FAILED':7} {seconds:6.1f} s  {result}")
    good = all(row[1] for row in rows)
    print(f"{'All good' if good else 'Not good'}: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
    return good


def stages(part: str) -> dict:
    """The commands of each stage of the tests. `part` is "package", or empty for everything."""
    # a file stays on one core, because its tests share a browser, a built page or a notebook's state; files run in the
    # order of their folders, with long ones early, so that no core waits for another at the end; three workers on two
    # cores take 0.85 of the time of two, because a test of a page waits for its browser; a test that waits for ever
    # fails after half an hour, three times what the longest takes on a busy machine, and shows the line
    workers = min(4, (os.cpu_count() or 1) * 3 // 2)
    pytest = ["pytest", "-n", f"{workers}", "--dist=loadfile", "--no-loadscope-reorder", f"--timeout={PATIENCE}"]
    style = {"lint": ["ruff", "check", "."], "format": ["ruff", "format", "--check", "."], "types": ["mypy"]}
    if part == "package":
        return {**style, "package": [*pytest, "tests/package", "tests/checks"]}
    return {
        **style,
        # separate: coverage slows down all code, and the package's own tests must reach 100 %
        "package": [*pytest, "tests/package", "--cov", "--cov-fail-under=100"],
        "tests": [*pytest, "tests", "notebooks", "--ignore=tests/package"],
    }


def tee(command: list) -> tuple:
    """Run a command and show its output; return its exit status and its lines."""
    lines = []
    options: dict = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8", "errors": "replace"}
    env = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen([str(word) for word in command], cwd=checkout.ROOT, env=env, **options) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.strip("= \n"))
    return process.returncode, [line for line in lines if line] or [""]
