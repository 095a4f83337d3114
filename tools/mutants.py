"""How many small faults the tests notice: `python3 course.py mutants [part ...]`, which writes tests/mutants.md.

cosmic-ray makes the faults ("mutants"): it replaces one operator, number or condition of a file. Each mutant is
written into a copy of the checkout, where pytest runs the tests of that file until one fails. A mutant that no test
notices survives: the command prints its line. It may compute the same as before, or a test may be missing.

cosmic-ray starts a new Python for each mutant. Here every run is forked from a process that has already imported NumPy
and PyTorch, but nothing of the course, which saves most of the time. course.py runs this in .venv.
"""

import argparse
import ast
import collections
import contextlib
import gc
import hashlib
import importlib
import json
import os
import pickle
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

import subnorm
from subnorm.provenance import today
from subnorm_lab import _files
from tools import checkout

TABLE = checkout.ROOT / "tests" / "mutants.md"
SURVIVORS = checkout.BUILD / "mutants.json"  # of the runs in this checkout
SEED = 13  # of the samples
PAUSE = 0.01  # seconds
LEAST = 10  # seconds on a processor for a test, to which five times its own are added
WAITING = 120  # seconds for a test that only waits, to which ten times its own are added
OURS = (
    "subnorm",
    "subnorm_lab",
    "subnorm_classroom",
    "tools",
    "tests",
    "helpers",
    "conftest",
)  # imported anew for every mutant
PRELOADED = ("numpy", "torch", "hypothesis", "matplotlib.image", "IPython", "hypothesis.extra.numpy")
HEAD = """# Small faults that the tests notice

`python3 course.py mutants` writes this table. A *mutant* is a file with one operator, number or condition changed. Of
most files of the classroom, and of the fast norm, a random sample is tried. A mutant that computes the same as before
cannot be noticed. *Content* is git's name for the file that was tried: `git show` with it prints that file, and `git
hash-object` names the one of today.

| File | Mutants | Tried | Noticed | Day | Version | Content |
| --- | --- | --- | --- | --- | --- | --- |
"""

#: Operators of cosmic-ray that are not used. They would raise the score, not test the tests: a bit operator on floats
#: is an error in the first test, and `is` between two numbers is nearly always `==`.
SKIPPED = re.compile(
    r"VariableReplacer|VariableInserter"  # these take a name to replace
    r"|ReplaceBinaryOperator_(?!BitOr_|BitAnd_)\w+_(LShift|RShift|BitAnd|BitXor|BitOr)"
    r"|ReplaceComparisonOperator_(?!Is_IsNot|IsNot_Is)(Is_|IsNot_|\w+_Is$|\w+_IsNot$)"
    r"|ReplaceUnaryOperator_(?!Delete)"  # `+x` is `x`
)


def package(*names: str) -> list[str]:
    return [f"tests/package/test_{name}.py" for name in names]


def checks(*names: str) -> list[str]:
    return [f"tests/checks/test_{name}.py" for name in names]


def classroom(*names: str) -> list[str]:
    return [f"tests/classroom/test_{name}.py" for name in names]


#: part: {file: the tests that are meant for it, the fast ones first}
PARTS: dict[str, dict[str, list[str]]] = {
    "numpy": {
        "subnorm/residual.py": package("residual", "errors", "block"),
        "subnorm/numpy/attention.py": package("attention", "errors", "dtypes", "block"),
        "subnorm/numpy/blocked.py": package("blocked", "errors", "dtypes"),
        "subnorm/numpy/transformer_blocks.py": package("block", "errors", "dtypes", "published"),
        "subnorm/numpy/norms.py": package(
            "norms_backward", "norms", "dtypes", "errors", "published", "norms_properties"
        ),
    },
    "checks": {
        "subnorm_lab/checks/edited.py": checks("edited", "exercise"),
        "subnorm_lab/checks/exercise.py": checks("exercise", "differences", "edited"),
        "subnorm_lab/checks/collect.py": checks("collect", "exercise", "edited"),
    },
    "torch": {
        "subnorm/torch/attention.py": package("attention", "errors", "dtypes", "block"),
        "subnorm/torch/transformer_blocks.py": package("block", "errors", "dtypes", "published"),
        "subnorm/torch/norms.py": package(
            "norms_backward", "norms", "dtypes", "errors", "published", "norms_properties", "fast"
        ),
        "subnorm/torch/fast.py": package("fast", "errors"),
    },
    "placing": {
        "subnorm/torch/finite.py": package("finite"),
        "subnorm/torch/placements.py": package("placements", "errors", "dtypes"),
    },
    "classroom": {
        "subnorm_classroom/sheets/student_sheet.py": classroom("release", "packing"),
        "subnorm_classroom/sheets/release.py": classroom("release", "variants"),
        "subnorm_classroom/sheets/draft.py": classroom("release"),
        "subnorm_classroom/sheets/plain.py": classroom("release"),
        "subnorm_classroom/sheets/packing.py": classroom("packing", "release"),
        "subnorm_classroom/grading/cells.py": classroom("cells", "feedback", "grade"),
        "subnorm_classroom/grading/verdict.py": classroom("verdict", "feedback", "grade", "sandbox"),
        "subnorm_classroom/grading/wire.py": classroom("sandbox"),
        "subnorm_classroom/grading/calls.py": classroom("calls", "sandbox"),
        "subnorm_classroom/grading/child.py": classroom("child", "sandbox"),
        "subnorm_classroom/grading/canary.py": classroom("canary", "grade", "sandbox"),
        "subnorm_classroom/grading/running.py": classroom("running", "sandbox", "grade"),
        "subnorm_classroom/grading/sandbox.py": classroom("watch", "sandbox", "grade"),
        "subnorm_classroom/grading/archives.py": classroom("submissions", "layouts", "hostile"),
        "subnorm_classroom/grading/layouts.py": classroom("layouts", "grade"),
        "subnorm_classroom/grading/lateness.py": classroom("layouts", "decisions"),
        "subnorm_classroom/grading/submissions.py": classroom("submissions", "layouts", "grade", "hostile"),
        "subnorm_classroom/grading/assignments.py": classroom("running", "variants", "grade"),
        "subnorm_classroom/grading/judging.py": classroom("grade", "decisions", "feedback"),
        "subnorm_classroom/grading/setting.py": classroom("grade", "decisions", "variants"),
        "subnorm_classroom/grading/folder.py": classroom("grade", "decisions"),
        "subnorm_classroom/grading/grade.py": classroom("variants", "grade", "decisions", "hostile"),
        "subnorm_classroom/arguments.py": classroom("release"),
        "subnorm_classroom/errors.py": classroom("decisions", "grade"),
        "subnorm_classroom/__main__.py": classroom("decisions", "grade", "release"),
    },
    "marking": {  # what happens to answers and points after the cells have run
        "subnorm_classroom/files.py": classroom("files", "marks", "handback"),
        "subnorm_classroom/text.py": classroom("files", "marks", "overview"),
        "subnorm_classroom/grading/summary.py": classroom("submissions", "decisions", "grade"),
        "subnorm_classroom/reports/records.py": classroom("files", "marks", "handback"),
        "subnorm_classroom/reports/tables.py": classroom("files", "marks", "handback"),
        "subnorm_classroom/reports/feedback.py": classroom("marks", "handback"),
        "subnorm_classroom/reports/marks.py": classroom("marks", "handback"),
        "subnorm_classroom/reports/mark.py": classroom("marks"),
        "subnorm_classroom/reports/gradebook.py": classroom("gradebook", "handback"),
        "subnorm_classroom/reports/handback.py": classroom("handback"),
        "subnorm_classroom/grading/behaviour.py": classroom("behaviour"),
        "subnorm_classroom/reports/beliefs.py": classroom("beliefs", "overview"),
        "subnorm_classroom/grading/answers.py": classroom("answers"),
        "subnorm_classroom/sheets/variants.py": classroom("variants"),
        "subnorm_classroom/sheets/class_sheets.py": classroom("variants"),
        "subnorm_classroom/reports/counts.py": classroom("overview"),
        "subnorm_classroom/reports/overview.py": classroom("overview"),
        "subnorm_classroom/reports/overview_page.py": classroom("overview"),
    },
}

#: Of files whose tests take long, only so many mutants are tried.
AT_MOST = dict.fromkeys(PARTS["classroom"], 10) | {"subnorm/torch/fast.py": 30}


@dataclass(frozen=True)
class Mutant:
    """One fault of a file."""

    file: str
    line: int
    was: str  # the text of the lines that change, without their indent
    now: str
    text: str  # of the whole file

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.was} -> {self.now or 'nothing'}"


def make_mutants(file: str) -> list[Mutant]:
    """All mutants of a file, without those that are no Python, that change a type, or that repeat another."""
    import cosmic_ray.ast  # type: ignore[import-untyped,import-not-found]
    import cosmic_ray.plugins  # type: ignore[import-untyped,import-not-found]
    from cosmic_ray.mutating import MutationVisitor  # type: ignore[import-untyped,import-not-found]

    source = (checkout.ROOT / file).read_text("utf-8")
    types = annotations(source)
    tree = cosmic_ray.ast.get_ast(source)
    nodes, kept = list(cosmic_ray.ast.ast_nodes(tree)), pickle.dumps(tree)  # to read it again takes six times as long
    found: dict[str, Mutant] = {}
    for name in cosmic_ray.plugins.operator_names():
        if SKIPPED.search(name):
            continue
        operator = cosmic_ray.plugins.get_operator(name)()
        places = [start for node in nodes for start, _ in operator.mutation_positions(node)]
        for k, start in enumerate(places):
            if any(first <= start < last for first, last in types):
                continue
            try:
                text = MutationVisitor(k, operator).walk(pickle.loads(kept)).get_code()
            except AttributeError:  # of `except (ValueError, csv.Error)`, cosmic-ray can replace only the first
                continue
            if text in found or not compiles(text):
                continue
            found[text] = Mutant(file, start[0], *changed_lines(source, text), text)
    return sorted(found.values(), key=lambda mutant: (mutant.line, mutant.now))


def annotations(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where the types of a file begin and end: (line, column) of each."""
    kinds = (ast.arg, ast.AnnAssign, ast.FunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    types = [node.returns if isinstance(node, ast.FunctionDef) else node.annotation for node in nodes]
    return [((t.lineno, t.col_offset), (t.end_lineno or 0, t.end_col_offset or 0)) for t in types if t]


def compiles(text: str) -> bool:
    try:
        compile(text, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def changed_lines(source: str, text: str) -> tuple[str, str]:
    """The lines that differ, before and after."""
    old, new = source.splitlines(), text.splitlines()
    while old[:1] == new[:1]:
        del old[0], new[0]
    while old[-1:] == new[-1:]:
        del old[-1], new[-1]
    return "\n".join(line.strip() for line in old).strip(), "\n".join(line.strip() for line in new).strip()


# --- running: one process a mutant, in a copy of the checkout ---


class Run:
    """pytest on a copy of the checkout, in a process of its own.

    `costs` are the seconds of each test in a run without any mutant: the fast tests come first, and each has a limit.
    """

    def __init__(
        self, folder: Path, tests: list[str], costs: dict[str, float] | None = None, mutated: bool = True
    ) -> None:
        self.folder, self.report = folder, folder / "mutant.json"
        self.report.unlink(missing_ok=True)
        self.scratch().mkdir()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                child(folder, self.scratch(), tests, costs, mutated, self.report)
            finally:
                os._exit(70)
        with contextlib.suppress(OSError):
            os.setpgid(self.pid, self.pid)  # the child does so too: either may be first

    def scratch(self) -> Path:
        """The temporary folder of the tests."""
        return self.folder.with_name(f"{self.folder.name}-scratch")

    def ended(self) -> dict[str, Any] | None:
        """None while it runs; then the first test that failed ("" if none did), and the seconds of each."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            return None
        self.clean()
        without_test = "the time limit" if os.WIFSIGNALED(status) else "pytest"
        return {"failed": without_test if status else "", **checkout.read_json(self.report)}

    def clean(self) -> None:
        """End what the tests have started, and remove what they have left."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        for process in Path("/proc").glob("[0-9]*"):  # those with a group of their own; only Linux lists them here
            with contextlib.suppress(OSError):
                if (
                    str(self.scratch()).encode()
                    in (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
                ):
                    os.kill(int(process.name), signal.SIGKILL)
        shutil.rmtree(self.scratch(), ignore_errors=True)

    def wait(self) -> dict[str, Any]:
        while (end := self.ended()) is None:
            time.sleep(PAUSE)
        return end


def child(
    folder: Path, scratch: Path, tests: list[str], costs: dict[str, float] | None, mutated: bool, report: Path
) -> None:
    """The life of the forked process."""
    os.setpgid(0, 0)
    if mutated:  # the other runs leave bytecode of all files
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    log = os.open(folder / "mutant.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream, file in enumerate((os.open(os.devnull, os.O_RDONLY), log, log)):
        os.dup2(file, stream)
    os.chdir(folder)
    os.environ |= {"PYTHONPATH": str(folder), "TMPDIR": str(scratch)}  # for its own processes
    tempfile.tempdir = str(scratch)
    sys.path[:] = [str(folder), *(path for path in sys.path if path not in ("", str(checkout.ROOT)))]
    for name in [name for name in sys.modules if name.split(".")[0] in OURS]:
        del sys.modules[name]
    words = ["-x", "-q", "--tb=short", "--assert=plain", "-p", "no:cacheprovider"]  # nobody reads why a test failed
    words += ["-m", "not slow"]  # each takes seconds, and a survivor would wait for all of them
    status = pytest.main([*words, *tests], plugins=[Listener(costs, report)])
    sys.stdout.flush()
    os._exit(int(status))


class Listener:
    """Hooks of pytest: they put the fast tests first, limit each, and report the first that fails."""

    def __init__(self, costs: dict[str, float] | None, report: Path) -> None:
        self.costs, self.report = costs, report
        self.seconds: dict[str, float] = collections.defaultdict(float)  # of each test without its fixtures
        self.fixtures: dict[str, float] = {}

    def pytest_sessionstart(self) -> None:
        if self.costs is not None:
            self.limit(0)  # of the collection, which imports the mutant

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if (costs := self.costs) is not None:
            items.sort(key=lambda item: costs.get(item.nodeid, 0))  # of equal ones the first stays so

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
        start = time.monotonic()
        try:
            return (yield)
        finally:
            self.fixtures[fixture_key(request.node.nodeid, fixturedef.argname)] = time.monotonic() - start

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A limit on the processor, which another load does not move, and a late one for a test that only waits."""
        if self.costs is not None:
            self.limit(self.costs.get(nodeid, 0))

    def limit(self, cost: float) -> None:
        import resource  # not on Windows, which has no fork either

        seconds = int(sum(os.times()[:2]) + LEAST + 5 * cost)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
        signal.setitimer(signal.ITIMER_REAL, WAITING + 10 * cost)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration if report.when == "call" else 0
        self.failed(report)

    def pytest_collectreport(self, report: Any) -> None:
        self.failed(report)

    def failed(self, report: Any) -> None:
        if report.failed and not self.report.exists():
            self.report.write_text(json.dumps({"failed": report.nodeid}), "utf-8")

    def pytest_sessionfinish(self, session: Any) -> None:
        if self.costs is None and not self.report.exists():
            costs = {
                item.nodeid: self.seconds[item.nodeid]
                + sum(self.fixtures.get(fixture_key(item.nodeid, name), 0) for name in item.fixturenames)
                for item in session.items
            }
            self.report.write_text(json.dumps({"costs": costs}), "utf-8")


def fixture_key(test: str, fixture: str) -> str:
    """A fixture, of which another file may have another of the same name."""
    return f"{test.split('::')[0]} {fixture}"


def rehearse(tests: list[str], copies: list[Path]) -> dict[str, float]:
    """The seconds of each test in a run without any mutant. The other copies run them in the order of the mutants."""
    costs: dict[str, float] | None = None
    for copy in [copies[0], *(copies[1:] or copies)]:
        end = Run(copy, tests, costs, mutated=False).wait()
        if end["failed"]:
            log = (copy / "mutant.log").read_text("utf-8", "replace")
            sys.exit(f"{log[-3000:]}\nThis fails without any mutant: {end['failed']}")
        costs = costs or end["costs"]
    return costs or {}


def try_mutants(
    found: list[Mutant], tests: list[str], costs: dict[str, float], copies: list[Path]
) -> Iterator[tuple[Mutant, str]]:
    """Each mutant with the test that notices it, or ""."""
    todo, free = collections.deque(found), list(copies)
    running: list[tuple[Run, Path, Mutant, bytes, os.stat_result]] = []
    try:
        while todo or running:
            while todo and free:
                copy, mutant = free.pop(), todo.popleft()
                file = copy / mutant.file
                before = file.read_bytes(), file.stat()
                file.write_text(mutant.text, "utf-8")
                os.utime(file, (0, 0))  # by its time, Python knows that it has no bytecode of this text
                running.append((Run(copy, tests, costs), copy, mutant, *before))
            time.sleep(PAUSE)
            for one in list(running):
                run, copy, mutant, content, times = one
                if (end := run.ended()) is not None:
                    (copy / mutant.file).write_bytes(content)
                    os.utime(copy / mutant.file, ns=(times.st_atime_ns, times.st_mtime_ns))
                    running.remove(one)
                    free.append(copy)
                    yield mutant, end["failed"]
    finally:  # also after Ctrl+C, which a process group of its own does not get
        for run, *_ in running:
            run.clean()


# --- the table ---


def rows() -> dict[str, list[str]]:
    """{file: the other cells of its row}"""
    lines = TABLE.read_text("utf-8").splitlines() if TABLE.exists() else []
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]
    return {name.strip("`"): rest for name, *rest in cells}


def store_row(file: str, row: list[str], survivors: list[Mutant]) -> None:
    """Put a row into the table, and its survivors where `--survivors` finds them."""
    found = sorted((rows() | {file: row}).items())
    _files.write(TABLE, HEAD + "".join(f"| `{name}` | {' | '.join(cells)} |\n" for name, cells in found))
    left = checkout.read_json(SURVIVORS) | {file: [str(mutant) for mutant in survivors]}
    SURVIVORS.parent.mkdir(exist_ok=True)
    _files.write(SURVIVORS, json.dumps(left, indent=1, ensure_ascii=False))
    print(*survivors, sep="\n", end="\n" if survivors else "")


def git_blob(file: str) -> str:
    """Git's name for the content of a file."""
    data = (checkout.ROOT / file).read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()[:12]


def draw_sample(found: list[Mutant], file: str) -> list[Mutant]:
    """All mutants of a file, or a sample, which is the same each time."""
    if len(found) <= AT_MOST.get(file, len(found)):
        return found
    return random.Random(f"{SEED} {file}").sample(found, AT_MOST[file])


def try_file(part: str, file: str, costs: dict[str, float], copies: list[Path]) -> None:
    """Try the mutants of a file, and put the numbers into the table."""
    start = time.monotonic()
    found = make_mutants(file)
    ends = list(try_mutants(chosen := draw_sample(found, file), PARTS[part][file], costs, copies))
    alive = sorted((mutant for mutant, end in ends if not end), key=lambda mutant: (mutant.line, mutant.now))
    counts = [str(len(found)), str(len(chosen)), str(len(chosen) - len(alive))]
    store_row(file, [*counts, today(), subnorm.__version__, git_blob(file)], alive)
    late = sum(end == "the time limit" for _, end in ends)
    end = f"{late} ended by the time limit, {time.monotonic() - start:.0f} s"
    print(f"{file}: {len(alive)} of {len(chosen)} survive, {end}", flush=True)


def retry_survivors(part: str, file: str, costs: dict[str, float], copies: list[Path]) -> None:
    """Try the survivors again: which test notices them now?"""
    left, row = checkout.read_json(SURVIVORS).get(file), rows().get(file)
    if left is None or row is None or row[-1] != git_blob(file):
        print(f"{file}: no survivors of this content are known; run it without --survivors")
        return
    alive = []
    for mutant, end in try_mutants([m for m in make_mutants(file) if str(m) in left], PARTS[part][file], costs, copies):
        if end:
            print(f"{mutant}\n  noticed by {end}")
        else:
            alive.append(mutant)
    store_row(file, [*row[:2], str(int(row[1]) - len(alive)), *row[3:]], alive)
    print(f"{file}: {len(left)} tried again, {len(alive)} survive", flush=True)


def preload() -> None:
    """Import what no mutant changes."""
    for name in PRELOADED:
        importlib.import_module(name)
    for plugin in entry_points(group="pytest11"):
        plugin.load()
    gc.freeze()  # else each test run looks through all of this for garbage


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all if not given")
    parser.add_argument("--survivors", action="store_true", help="only those that no test noticed last time")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if not hasattr(os, "fork"):
        sys.exit("This command forks: it runs on Linux, on macOS, or in WSL.")
    preload()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        Path(folder).chmod(0o755)  # some tests run as another user
        copies = [Path(folder, f"{k:03}") for k in range(os.cpu_count() or 1)]
        for copy in copies:
            shutil.copytree(checkout.ROOT, copy, ignore=checkout.GENERATED)
        for part in args.parts or PARTS:
            costs = rehearse(sorted({test for tests in PARTS[part].values() for test in tests}), copies)
            for file in PARTS[part]:
                (retry_survivors if args.survivors else try_file)(part, file, costs, copies)


if __name__ == "__main__":
    main()
