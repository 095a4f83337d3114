"""What an unknown wrong answer does: a few numbers for each result, by which the overview groups alike answers.

Rounding differs between two answers that compute the same, so their results have no common digest. A trace keeps, of
each array, its dtype and shape, the number of entries that are not finite, the root mean square, and one projection.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from subnorm_classroom.grading.verdict import known_error
from subnorm_lab.checks.collect import Outcome

Trace = list[Any]  # a text, followed by numbers or traces
MOST = 20  # entries of a list of which a trace takes notice
ROUGH = {"float16": 2e-2}  # what rounding may change, relative to the root mean square
CLOSE = 1e-3


def traces(outcomes: Sequence[Outcome]) -> list[Trace]:
    """The trace of each outcome of an answer."""
    with np.errstate(all="ignore"):
        return [raised(one) if one.error else trace(one.value) for one in outcomes]


def raised(outcome: Outcome) -> Trace:
    """An error: its name, and a digest of its message, which a student may have written."""
    return [known_error(outcome.error), hashlib.sha256(outcome.message.encode()).hexdigest()[:16]]


def trace(value: Any, depth: int = 2) -> Trace:
    """The trace of a result. A student's process may send lists in lists without end, so their depth is limited."""
    if isinstance(value, dict | list | tuple):
        parts = [value[key] for key in sorted(value)] if isinstance(value, dict) else value
        return [f"{len(value)} results", *(trace(part, depth - 1) for part in parts[:MOST] if depth)]
    if isinstance(value, str):
        return ["text", hashlib.sha256(value.encode()).hexdigest()[:16]]
    array = np.asarray(value)
    kind = f"{array.dtype} {array.shape}"
    if array.dtype.kind not in "biuf" or not array.size:
        return [kind]
    numbers = array.astype(float).ravel()
    finite = np.isfinite(numbers)
    numbers = np.where(finite, numbers, 0)
    scale = float(np.abs(numbers).max()) or 1.0  # squares must not overflow
    weights = np.cos(np.arange(1, numbers.size + 1))
    found = scale * math.sqrt(np.mean((numbers / scale) ** 2)), scale * np.mean(numbers / scale * weights)
    return [kind, int(np.sum(~finite)), *(float(f"{number:.6g}") for number in found)]


def alike(one: Trace, other: Trace) -> bool:
    """Whether two results differ by no more than rounding."""
    if len(one) != len(other) or one[0] != other[0]:
        return False
    if len(one) == 4 and isinstance(one[1], int):
        tolerance = ROUGH.get(one[0].split(" ")[0], CLOSE) * max(one[2], other[2])
        return one[1] == other[1] and all(abs(one[k] - other[k]) <= tolerance for k in (2, 3))
    pairs = zip(one[1:], other[1:], strict=True)
    return all(alike(a, b) if isinstance(a, list) and isinstance(b, list) else a == b for a, b in pairs)
