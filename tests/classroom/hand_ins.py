"""Submissions for the tests of the grader: notebooks, archives, and a small set to grade."""

import csv
import json
import stat
import zipfile
from dataclasses import replace

import numpy as np

from subnorm_classroom.errors import exit_status
from subnorm_classroom.grading.grade import grade
from subnorm_classroom.grading.sandbox import Limits
from subnorm_lab.checks import SETS
from subnorm_lab.checks.collect import Case
from subnorm_lab.checks.exercise import Exercise

#: Time limits that even the slowest machine does not reach, for submissions that end for other reasons.
PATIENT = Limits(
    start=600, cell=600, question=600, total=3000,
    memory=700 << 20, address=4 << 30, processes=12, restarts=4,
)  # fmt: skip
#: For submissions that never end. An honest answer needs a hundredth of this, so it also passes on a busy machine.
BRIEF = replace(PATIENT, cell=8, question=8)
SETUP = "import numpy as np\nfrom subnorm_lab import checks"
LAYER_NORM = """def layer_norm(x, gamma, beta, eps):
    wide = np.asarray(x, float)
    xhat = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + eps)
    return (gamma * xhat + beta).astype(x.dtype)
"""
MEAN_SQUARE = "def mean_square(x):\n    return (x * x).mean(-1)\n"

mean_square = Exercise(
    name="mean_square",
    level=2,
    minutes=5,
    chapter="04-rmsnorm",
    objective="square",
    reference=lambda x: (x * x).mean(-1),
    cases=lambda rng: [Case("a batch", (rng.normal(size=(3, 5)),)), Case("one token", (rng.normal(size=5),))],
    mistakes=[],
)
SET = [SETS["ex02"][0], mean_square]


def cell(source, *tags):
    return {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": source, "outputs": []}


def notebook(*cells):
    """The bytes of a notebook; a string becomes a code cell without tags."""
    cells = [cell(one) if isinstance(one, str) else one for one in cells]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def sheet(first=LAYER_NORM, second=MEAN_SQUARE, *more):
    """A complete sheet."""
    checks = [cell(f"checks.{ex.name}({ex.name})", "check") for ex in SET]
    return notebook(cell(SETUP, "setup"), first, checks[0], second, checks[1], *more)


def write_zip(path, members):
    """An archive of (name, bytes) pairs; the bytes of a link are its target, if the name ends in " -> "."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name.removesuffix(" -> "))
            info.external_attr = (stat.S_IFLNK if name.endswith(" -> ") else stat.S_IFREG) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)


def grade_class(set_name, source, out, **options):
    """The exit status of the command `grade`; what it refuses is on standard error."""
    return exit_status("grade", lambda: grade(set_name, source, out, **options))


def contents(out):
    """The bytes of all files of a folder of grades, except what waits for the teacher."""
    files = [path for path in out.rglob("*") if path.is_file() and "new" not in path.parts]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


def totals(out, *columns):
    """Some columns of totals.csv, by student; of one column its cell alone."""
    with (out / "totals.csv").open(encoding="utf-8") as file:
        rows = {row["student"]: tuple(row[name] for name in columns or ["points"]) for row in csv.DictReader(file)}
    return rows if len(columns) > 1 else {student: cells[0] for student, cells in rows.items()}


def normal(seed=3):
    return np.random.default_rng(seed).normal(size=(4, 6))
