"""Measure the speed of the course itself: `python3 course.py speed [measure ...]`, which writes tools/speed.md.

Each measure runs the commands that a reader would type, in separate processes, and becomes a row when done.
Commands that change files run in a copy of the checkout. course.py runs this in .venv.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import subnorm
from subnorm.provenance import cpu_model, load, today
from subnorm_lab import _files
from tools import build, checkout, install
from tools.in_page import measure

TABLE = checkout.ROOT / "tools" / "speed.md"
HEAD = """# How long it takes

`python3 course.py speed` writes this table, or only the rows that you name. *Load* is how many processes wanted a core
when a measure began.

On {machine}:

| Measure | Median | Day and load |
| --- | --- | --- |
"""
BUILDS = 3
IMPORTS = 9
ROUNDS = 3  # of each browser, at each of two rates
CHANGED = "notebooks/03-layer-normalization.ipynb"  # the notebook in which to change one word

# The builds of a copy use the .venv of the checkout.
BUILD = (
    "import pathlib, sys\n"
    "from tools import build, checkout\n"
    "checkout.VENV, checkout.BIN, checkout.PYTHON = map(pathlib.Path, sys.argv[1:])\n"
    "sys.exit(not build.build())"
)
TESTS = "import sys; from tools import test; sys.exit(not test.run_tests(None))"
IMPORT = (
    "import time\n"
    "wall, cpu = time.perf_counter(), time.process_time()\n"
    "import {name}\n"
    "print(time.perf_counter() - wall, time.process_time() - cpu)"
)
PACKAGES = ["numpy", "subnorm", "subnorm.numpy", "torch", "subnorm.torch"]


class CommandFailed(Exception):
    """A command failed, so its time is meaningless."""


def clock(command: list, folder: pathlib.Path, show: bool = False) -> tuple:
    """(wall seconds, CPU seconds of all its processes, output) of a command in `folder`."""
    env = {**os.environ, "PYTHONPATH": str(folder)}  # takes precedence over the checkout installed in .venv
    start, before = time.perf_counter(), os.times()
    output = []
    options: dict = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8", "errors": "replace"}
    with subprocess.Popen([str(word) for word in command], cwd=folder, env=env, **options) as process:
        for line in process.stdout or ():
            output.append(line)
            if show:
                print(line, end="", flush=True)
    wall, after = time.perf_counter() - start, os.times()
    if process.returncode != 0:
        raise CommandFailed("".join(output[-30:]) + f"\n{' '.join(map(str, command))[:200]} failed")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu, "".join(output)


def as_row(rounds: list) -> dict:
    """What a measure found: every round, in seconds. Windows does not report the CPU time of child processes."""
    cpu = None if os.name == "nt" else [float(f"{cpu:.3g}") for _, cpu, *_ in rounds]
    return {"seconds": [float(f"{wall:.3g}") for wall, *_ in rounds], "cpu": cpu}


# --- the measures: each returns what it found, by name ---


def time_install(copy: pathlib.Path) -> dict:
    """A new environment, to read and then to run the course. pip's cache is used as it is."""
    venv = copy / ".venv"
    python = venv / checkout.PYTHON.relative_to(checkout.VENV)
    index = checkout.read_json(install.INSTALLED).get("torch index", "")
    rows = {}
    wall, cpu, _ = clock([sys.executable, "-m", "venv", venv], copy)
    for name, files in (("to read", install.READ), ("to run", install.RUN)):
        more = clock(install.pip_command(python, files, index), copy)
        wall, cpu = wall + more[0], cpu + more[1]
        size = sum(path.lstat().st_size for path in venv.rglob("*") if path.is_file())
        rows[name] = as_row([(wall, cpu)]) | {"bytes": size}
    shutil.rmtree(venv)
    return rows


def time_build(copy: pathlib.Path) -> dict:
    """Build from nothing; then with nothing changed; then with one word of a notebook changed."""
    command = [checkout.PYTHON, "-c", BUILD, checkout.VENV, checkout.BIN, checkout.PYTHON]
    rounds: dict = {"from nothing": [], "nothing changed": [], "one notebook changed": []}
    for k in range(BUILDS):
        shutil.rmtree(copy / "_build", ignore_errors=True)
        for found in rounds.values():
            if found is rounds["one notebook changed"]:
                edit_page(copy / CHANGED, f"changed{k}")
            found.append(clock(command, copy))
    return {name: as_row(found) for name, found in rounds.items()}


def edit_page(notebook: pathlib.Path, word: str) -> None:
    """Append a word to the last text cell."""
    book = json.loads(notebook.read_text("utf-8"))
    cell = [cell for cell in book["cells"] if cell["cell_type"] == "markdown"][-1]
    cell["source"] = ["".join(cell["source"]) + f"\n\n{word}"]
    notebook.write_text(json.dumps(book), "utf-8")


def time_notebooks(copy: pathlib.Path) -> dict:
    """Run each notebook with a fresh kernel, one after the other."""
    listed = clock([checkout.PYTHON, "-c", "from tools import refresh; print(*refresh.notebooks(), sep='\\n')"], copy)
    rows = {}
    for path in map(pathlib.Path, listed[2].splitlines()):  # a path may contain a space
        rows[path.stem] = as_row([clock([checkout.PYTHON, "-P", "tools/refresh.py", path], copy)])
    return rows


def time_imports(copy: pathlib.Path) -> dict:
    """Time each import statement in a new process, in turns, so that a slow moment affects all alike."""
    rounds: dict = {name: [] for name in PACKAGES}
    for k in range(-1, IMPORTS):  # an extra first round fills the caches
        for name, found in rounds.items():
            _, _, said = clock([checkout.PYTHON, "-c", IMPORT.format(name=name)], copy)
            if k >= 0:
                found.append(tuple(map(float, said.split()[-2:])))
    return {name: as_row(found) for name, found in rounds.items()}


def time_in_page(_copy: pathlib.Path) -> dict:
    """Python in a page: first results, later results, bytes and memory, in each browser engine that is here."""
    if not build.build():
        raise CommandFailed("the book has errors")
    rows: dict = {}
    for browser in measure.BROWSERS:
        try:
            found = measure.times(browser, ROUNDS)
        except measure.BrowserNotFound as error:
            print(error)
        else:
            rows |= {f"{browser}: {name}": row for name, row in found.items()}
    if not rows:
        raise CommandFailed("no browser is here")
    return rows


def time_tests(_copy: pathlib.Path) -> dict:
    """Everything that `course.py test` runs once the book is built."""
    if not build.build():
        raise CommandFailed("the book has errors")
    wall, cpu, said = clock([checkout.PYTHON, "-c", TESTS], checkout.ROOT, show=True)
    stages = re.findall(r"^(\w+) +ok +([\d.]+) s  ", said, flags=re.MULTILINE)
    # a stage of less than a tenth of a second, such as an up-to-date build, has no time to report
    timed = {name: {"seconds": [float(s)], "cpu": None} for name, s in stages if float(s) > 0}
    return {"all": as_row([(wall, cpu)])} | timed


MEASURES = {
    "install": time_install,
    "import": time_imports,
    "build": time_build,
    "notebooks": time_notebooks,
    "in-page": time_in_page,
    "tests": time_tests,
}


# --- the table ---


def machine() -> str:
    """The machine as its operating system describes it, without its host name, and the versions."""
    versions = f"Python {platform.python_version()}, the course {subnorm.__version__}"
    return f"{cpu_model()}, {os.cpu_count()} cores, {platform.system()}; {versions}"


def store_row(name: str, rows: dict, busy: float | None) -> None:
    """Put the row of a measure into the table. Drop those of another machine or other versions."""
    head, table = HEAD.format(machine=machine()), TABLE.read_text("utf-8") if TABLE.exists() else ""
    lines = table.removeprefix(head).splitlines() if table.startswith(head) else []
    kept = {line.split(" | ")[0].strip("| "): line for line in lines}
    kept[name] = f"| {name} | {'; '.join(cell_of(name, rows))} | {today()}, {busy} |"
    _files.write(TABLE, head + "".join(f"{kept[key]}\n" for key in MEASURES if key in kept))


def cell_of(name: str, rows: dict) -> list[str]:
    """What a row says: the slowest notebook, of Python in a page only the first results."""
    if name == "notebooks":
        slowest = max(rows, key=lambda key: rows[key]["seconds"][0])
        return [f"the slowest, {slowest}: {value(rows[slowest])}"]
    first = ("first result", "over 10 Mbit/s")
    return [f"{key}: {value(row)}" for key, row in rows.items() if name != "in-page" or key.endswith(first)]


def value(row: dict) -> str:
    """The median time to two digits, or a size, or both."""
    parts = []
    if "seconds" in row:
        seconds = statistics.median(row["seconds"])
        parts.append(f"{seconds / 60:.1f} min" if seconds >= 120 else f"{float(format(seconds, '.2g')):g} s")
    if "bytes" in row:
        parts.append(f"{float(format(row['bytes'] / 1e6, '.2g')):g} MB")
    return ", ".join(parts)


def take(names: list) -> bool:
    """Take the measures, and put each into the table when done; report one that fails, and continue with the others."""
    failed, left = [], list(names)
    try:
        for name in names:
            print(f"\n--- {name}", flush=True)
            busy = load()
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                copy = pathlib.Path(folder, "course")
                shutil.copytree(checkout.ROOT, copy, ignore=checkout.GENERATED)
                try:
                    rows = MEASURES[name](copy)
                except CommandFailed as error:
                    print(error)
                    failed.append(name)
                else:
                    store_row(name, rows, busy)
                    print(*(f"  {key}: {value(row)}" for key, row in rows.items()), sep="\n", flush=True)
            left.remove(name)
    except KeyboardInterrupt:
        sys.exit(f"\nInterrupted. Finished measures are stored; for the rest: python3 course.py speed {' '.join(left)}")
    print(f"\nNot measured: {', '.join(failed)}" if failed else f"\nStored in {TABLE}")
    return not failed


def main(words: list) -> bool:
    """Take the named measures; by default all except the install, which needs the network."""
    parser = argparse.ArgumentParser(prog="course.py speed", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="measure")
    parser.add_argument("--install", action="store_true")
    args = parser.parse_args(words)
    if unknown := set(args.names) - set(MEASURES):
        sys.exit(f"There is no measure {' '.join(sorted(unknown))}; the measures are {', '.join(MEASURES)}.")
    return take(args.names or [name for name in MEASURES if args.install or name != "install"])


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
