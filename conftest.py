"""What nbval leaves out: it compares every text of a notebook, but not its pictures nor the numbers it says.

Both are compared here on nbval's own fresh run, so nothing runs twice. So are the tables behind live figures, which
another CPU may change in the last of their digits.
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

from subnorm import live, report

# The kernels inherit it: NumPy's second thread waits by spinning, and can cost twenty times the CPU time of one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["SUBNORM_STORED"] = "1"  # as refresh stores it: a still picture of a live figure

BLOCK = 16  # pixels
LAST_DIGIT = 2e-4  # relative; five digits are stored
LIMIT = 5.0  # of 255; other threads and CPUs stay below 0.4, a point moved by 3 % or one wrong letter is above 12


def worst_block(stored: np.ndarray, fresh: np.ndarray) -> float:
    """Largest mean difference in a block of 16 x 16 pixels: a small change in one place is not averaged away."""
    if stored.shape != fresh.shape:
        return np.inf
    diff = np.abs(stored - fresh).max(axis=-1)  # (height, width), over red, green and blue
    diff = np.pad(diff, [(0, -size % BLOCK) for size in diff.shape])
    height, width = diff.shape
    return float(diff.reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK).mean(axis=(1, 3)).max())


def pixels(png: str) -> np.ndarray:
    """(height, width, 3) on white, 0 to 255, of a base64 PNG."""
    rgba = 255 * image.imread(io.BytesIO(base64.b64decode(png)), format="png")
    if rgba.ndim == 2:
        rgba = np.stack([rgba] * 3, axis=-1)
    alpha = rgba[..., 3:] / 255 if rgba.shape[-1] == 4 else 1.0
    return rgba[..., :3] * alpha + 255 * (1 - alpha)


def same(stored: Any, fresh: Any) -> bool:
    """Whether two tables are equal, numbers to their last digit."""
    if isinstance(stored, dict) and isinstance(fresh, dict):
        return list(stored) == list(fresh) and all(same(stored[key], fresh[key]) for key in stored)
    if isinstance(stored, list) and isinstance(fresh, list):
        return len(stored) == len(fresh) and all(map(same, stored, fresh))
    if isinstance(stored, int | float) and isinstance(fresh, int | float):
        return abs(stored - fresh) <= LAST_DIGIT * max(abs(stored), abs(fresh))
    return bool(stored == fresh)


def same_live(stored: str | None, fresh: str | None) -> bool:
    """Whether two live figures, as JSON, or none, have the same table."""
    if stored is None or fresh is None:
        return stored is fresh
    return same(json.loads(stored), json.loads(fresh))


def stale(stored: list[dict[str, Any]], fresh: list[dict[str, Any]]) -> str | None:
    """How the stored outputs of a cell differ from the fresh ones in what nbval does not compare."""
    both = [[output for output in outputs if "data" in output] for outputs in (stored, fresh)]
    said = [[report.said(output) for output in outputs] for outputs in both]
    pngs = [[output["data"].get("image/png") for output in outputs] for outputs in both]
    lives = [[live.stored(output) for output in outputs] for outputs in both]
    if said[0] != said[1]:
        return f"the stored numbers are {said[0]}, the fresh ones {said[1]}"
    if [png is None for png in pngs[0]] != [png is None for png in pngs[1]]:
        return "a figure is stored that the cell does not draw, or the other way round"
    if not all(map(same_live, *lives)):
        return "a live figure is stored with other data than the cell now computes"
    for was, now in zip(*pngs, strict=True):
        if was != now and (worst := worst_block(pixels(was), pixels(now))) > LIMIT:
            return f"a stored figure is not the one now drawn: a block differs by {worst:.1f} of 255, limit {LIMIT}"
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    yield
    if not isinstance(item, IPyNbCell) or item.options["skip"]:
        return
    if item.cell.execution_count is None:  # nbval compares nothing in such a cell, and calls it passed
        why = "no outputs are stored"
    elif item.options["check"]:
        why = stale(item.cell.outputs, item.test_outputs)
    else:
        return
    if why:
        item.raise_cell_error(f"{why}; run: python3 course.py refresh")
