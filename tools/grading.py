"""Measure how long grading takes: `python -m tools.grading ex01 200 [--workers 2]`, on Linux, in .venv.

It makes hand-ins from the sheet's solution, with mistakes of the bank in some answers, and grades them on this machine;
with --workers also on a local Dask cluster of so many processes, and compares every byte. CPU seconds include those of
the sandboxes, which end as orphans: this process adopts them. A small class tells the start from the hand-ins. The
client is the process that reads the hand-ins, judges the outcomes, and writes the files.
"""

import argparse
import ctypes
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from subnorm.checks import SETS
from subnorm.checks.edited import Edited, text_of
from subnorm.provenance import cpu_model, load, today
from tools import course

FEW = 10  # hand-ins of the small class
SHARES = {"right": 0.6, "mistake": 0.3, "not done": 0.1}
NAMES = {"wall": "each hand-in", "all": "CPU", "client": "of which the client", "scheduler": "the scheduler"}
CLASS = 100_000
PR_SET_CHILD_SUBREAPER = 36


def hand_ins(name: str, many: int, folder: Path) -> Path:
    """A folder of notebooks; the same for the same arguments."""
    folder.mkdir()
    (path,) = course.ROOT.glob(f"notebooks/exercises/{name}-*.ipynb")
    book = json.loads(path.read_text("utf-8"))
    cells = [cell for cell in book["cells"] if "solution-only" not in cell["metadata"].get("tags", ())]
    rng = random.Random(2016)
    for student in range(many):
        extra = [code(answer) for ex in SETS[name] if (answer := answer_to(ex, rng))]
        text = json.dumps({**book, "cells": [*cells, *extra]})
        (folder / f"Student {student:06}.ipynb").write_text(text, "utf-8")
    return folder


def code(source: str) -> dict:
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": []}


def answer_to(ex, rng: random.Random) -> str:
    """The text of an answer that replaces the sheet's own; empty to keep that one."""
    kind = rng.choices(list(SHARES), list(SHARES.values()))[0]
    wrong = [m.answer.text for m in ex.mistakes if isinstance(m.answer, Edited) and "sn." not in m.answer.text]
    if kind == "right" or not wrong:
        return ""
    unwritten = text_of(ex.reference).split("\n")[0] + "\n    raise NotImplementedError"
    return rng.choice(wrong) if kind == "mistake" else unwritten


def measured(grade: list, cluster: Callable[[], list] = list) -> dict:
    """Wall and CPU seconds of a grading: of its own process, of the scheduler, of all."""
    before = os.times()
    helpers = cluster()
    start = time.perf_counter()
    address = ["--scheduler", told(helpers)] if helpers else []
    process = subprocess.Popen([*grade, *address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ended = 0
    while ended != process.pid:  # the others are orphans, which would fill the table of processes
        ended, status, own = os.wait4(-1, 0)
    wall = time.perf_counter() - start
    if status:
        sys.exit(f"{' '.join(map(str, [*grade, *address]))} failed")
    found = {"wall": wall, "client": own.ru_utime + own.ru_stime if helpers else 0.0}
    for k, helper in enumerate(reversed(helpers)):
        helper.terminate()
        _, _, used = os.wait4(helper.pid, 0)
        if k == len(helpers) - 1:
            found["scheduler"] = used.ru_utime + used.ru_stime
    while reaped():
        pass
    after = os.times()
    total = after.children_user + after.children_system - before.children_user - before.children_system
    return {**found, "all": total}


def reaped() -> bool:
    try:
        os.wait()
    except ChildProcessError:
        return False
    return True


def local_cluster(folder: Path, workers: int) -> list:
    """A scheduler, and its workers."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    options = ["--scheduler-file", str(file), "--no-dashboard"]
    scheduler = dask("scheduler", "--host", "127.0.0.1", "--port", "0", *options)
    while not (file.exists() and file.read_text("utf-8").endswith("}")):
        time.sleep(0.1)
    one = ["--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
    return [scheduler, *(dask("worker", *options, *one) for _ in range(workers))]


def dask(kind: str, *words: str) -> subprocess.Popen:
    code = f"from distributed.cli.dask_{kind} import main\nmain()"
    return subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def told(helpers: list) -> str:
    file = helpers[0].args[helpers[0].args.index("--scheduler-file") + 1]
    return str(json.loads(Path(file).read_text("utf-8"))["address"])


def contents(folder: Path) -> dict:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def slope(few: dict, many: dict, more: int) -> dict:
    """Seconds for each hand-in, without the start."""
    return {key: (many[key] - few[key]) / more for key in many}


def on_paper(each: dict) -> Iterator[str]:
    """What the CPU of a hand-in on a cluster says about a large class."""
    away = each["all"] - each["client"] - each["scheduler"]
    slowest = max(("client", "scheduler"), key=lambda name: each[name])
    hours = CLASS * away / 3600
    yield f"on paper, {CLASS:,} hand-ins: {hours:.1f} hours of CPU on the workers, divided by their cores;"
    yield f"  the client {CLASS * each['client'] / 60:.0f} minutes, the scheduler {CLASS * each['scheduler'] / 60:.0f};"
    yield f"  so from {away / each[slowest]:.0f} cores of workers on, the {slowest} is what they wait for"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.grading", description=__doc__)
    parser.add_argument("set", choices=list(SETS))
    parser.add_argument("many", type=int, help=f"hand-ins, more than {FEW}")
    parser.add_argument("--workers", type=int, default=0, help="processes of a local Dask cluster")
    options = parser.parse_args()
    if options.many <= FEW:
        parser.error(f"many must be more than {FEW}; got {options.many}")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        places: dict[str, Callable[[], list]] = {"this machine": list}
        if options.workers:
            places[f"{options.workers} workers"] = lambda: local_cluster(folder, options.workers)
        sizes = [FEW, options.many]
        classes = {many: hand_ins(options.set, many, folder / f"class {many}") for many in sizes}
        print(
            f"{options.set}, {options.many:,} hand-ins; {today()}, {cpu_model()}, {os.cpu_count()} cores, load {load()}"
        )
        outs: list[Path] = []
        each: dict = {}
        for place, cluster in places.items():
            found = []
            for many in sizes:
                outs.append(folder / f"grades {len(outs)}")
                grade = [sys.executable, "-m", "subnorm.classroom", "grade", options.set, str(classes[many])]
                found.append(measured([*grade, "-o", str(outs[-1]), "--seed", "1"], cluster))
            each = slope(found[0], found[1], options.many - FEW)
            parts = [f"{NAMES[key]} {1000 * each[key]:.0f} ms" for key in NAMES if each.get(key)]
            print(
                f"{place + ':':14}{', '.join(parts)}; to start: CPU {found[0]['all'] - FEW * each['all']:.1f} s",
                flush=True,
            )
        if options.workers:
            if contents(outs[1]) != contents(outs[3]):
                sys.exit("The cluster wrote other bytes than this machine.")
            print("the same bytes from both", *on_paper(each), sep="\n", flush=True)


if __name__ == "__main__":
    main()
