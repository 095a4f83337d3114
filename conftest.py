"""Compare the outputs that nbval does not: pictures, quoted numbers, and the tables of live figures.

The comparison uses nbval's own fresh run, so nothing runs twice. On another CPU the last digits of a live figure's
table may differ.

No result may depend on the processor. With the instructions of an old one, the same tests are
`ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE OPENBLAS_CORETYPE=Prescott .venv/bin/python -m pytest notebooks`.
"""

import base64
import io
import json
import os
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from matplotlib import image
from nbval.plugin import IPyNbCell

from subnorm_lab import figures, live, report

# The kernels inherit this: NumPy's second thread spins while it waits, which can cost twenty times the CPU time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["SUBNORM_STORED"] = "1"  # live figures as still pictures, as refresh stores them

BLOCK = 16  # pixels
LAST_DIGIT = 2e-4  # relative; five digits are stored
LIMIT = 5.0  # of 255; other threads and CPUs give at most 0.4; a point moved by 3 % or one wrong letter, more than 12


def worst_block(stored: np.ndarray, fresh: np.ndarray) -> float:
    """Largest mean difference in a block of 16 x 16 pixels, so that a small local change is not averaged away."""
    if stored.shape != fresh.shape:
        return np.inf
    diff = np.abs(stored - fresh).max(axis=-1)  # (height, width), over red, green and blue
    diff = np.pad(diff, [(0, -size % BLOCK) for size in diff.shape])
    height, width = diff.shape
    return float(diff.reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK).mean(axis=(1, 3)).max())


def pixels(picture: str) -> np.ndarray:
    """An SVG, or a base64 PNG, on white as an array, (height, width, 3), 0 to 255."""
    png = figures.as_png(picture, figures.SHARP) if picture.startswith("<svg") else base64.b64decode(picture)
    rgba = 255 * image.imread(io.BytesIO(png), format="png")
    if rgba.ndim == 2:
        rgba = np.stack([rgba] * 3, axis=-1)
    alpha = rgba[..., 3:] / 255 if rgba.shape[-1] == 4 else 1.0
    return rgba[..., :3] * alpha + 255 * (1 - alpha)


def same(stored: Any, fresh: Any) -> bool:
    """Whether two tables are equal, with numbers equal to about four digits."""
    if isinstance(stored, dict) and isinstance(fresh, dict):
        return list(stored) == list(fresh) and all(same(stored[key], fresh[key]) for key in stored)
    if isinstance(stored, list) and isinstance(fresh, list):
        return len(stored) == len(fresh) and all(map(same, stored, fresh))
    if isinstance(stored, int | float) and isinstance(fresh, int | float):
        return abs(stored - fresh) <= LAST_DIGIT * max(abs(stored), abs(fresh))
    return bool(stored == fresh)


def same_live(stored: str | None, fresh: str | None) -> bool:
    """Whether two live figures (JSON, or None) have the same table."""
    if stored is None or fresh is None:
        return stored is fresh
    return same(json.loads(stored), json.loads(fresh))


def pictures_of(output: dict[str, Any]) -> list[str | None]:
    """The pictures of an output; None in the place of those that it lacks."""
    return [figures.wide(output), output["data"].get("image/png"), figures.narrow(output)]


def stale(stored: list[dict[str, Any]], fresh: list[dict[str, Any]]) -> str | None:
    """How a cell's stored outputs differ from the fresh ones, apart from what nbval compares; None if they do not."""
    both = [[output for output in outputs if "data" in output] for outputs in (stored, fresh)]
    said = [[report.said(output) for output in outputs] for outputs in both]
    pictures = [[picture for output in outputs for picture in pictures_of(output)] for outputs in both]
    lives = [[live.stored(output) for output in outputs] for outputs in both]
    if said[0] != said[1]:
        return f"the stored numbers are {said[0]}, the fresh ones {said[1]}"
    if [picture is None for picture in pictures[0]] != [picture is None for picture in pictures[1]]:
        return "a figure is stored that the cell does not draw, or the other way round"
    if not all(map(same_live, *lives)):
        return "a live figure is stored with other data than the cell now computes"
    for was, now in zip(*pictures, strict=True):
        if was != now and (worst := worst_block(pixels(was), pixels(now))) > LIMIT:
            return f"a stored figure is not the one now drawn: a block differs by {worst:.1f} of 255, limit {LIMIT}"
    return None


def pytest_itemcollected(item: pytest.Item) -> None:
    if isinstance(item, IPyNbCell):
        item.output_timeout = item.config.option.nbval_cell_timeout  # of nbval's 5 s, a busy machine needs more


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    yield
    if not isinstance(item, IPyNbCell) or item.options["skip"]:
        return
    if item.cell.execution_count is None:  # nbval would pass such a cell without comparing anything
        why = "no outputs are stored"
    elif item.options["check"]:
        why = stale(item.cell.outputs, item.test_outputs)
    else:
        return
    if why:
        item.raise_cell_error(f"{why}; run: python3 course.py refresh")
