"""Encode values as JSON and back, between the grader and a student's process.

An array is sent as dtype, shape and raw bytes. Nothing is unpickled: the student's side may send anything, so every
part is checked before use. This file runs on both sides, so it imports only NumPy and `collect`.
"""

import base64
import math
from dataclasses import fields
from typing import Any

import numpy as np

from subnorm_lab.checks.collect import STAND_INS, Case, Outcome, message_of, name_of

_NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
DTYPES = {name: np.dtype(name) for name in _NAMES.split()}
LARGEST = 1 << 21  # bytes of one array, and of one answer as JSON

#: The packages of the course, none of which an answer can import while it is graded.
PACKAGES = ("subnorm", "subnorm_lab", "subnorm_classroom")
#: follows "subnorm" in the error inside the sandbox and in the feedback
NOT_HERE = "is not available when answers are graded: write the function yourself, with NumPy or PyTorch"


def pack(value: Any) -> Any:
    """A value in a form that JSON can store."""
    if isinstance(value, np.generic):
        return {"scalar": pack(np.asarray(value))}
    if isinstance(value, int) and value.bit_length() > 1000:  # JSON takes no more than 4,300 digits
        return math.inf if value > 0 else -math.inf
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if value is ...:
        return {"ellipsis": 1}
    if isinstance(value, np.ndarray):
        if value.dtype.name not in DTYPES:
            return {"strange": str(value.dtype)[:60]}
        if value.nbytes > LARGEST:
            raise MemoryError(f"a result of {value.nbytes} bytes is too large to be handed in")
        raw = np.ascontiguousarray(value, value.dtype.newbyteorder("=")).tobytes()
        return {"dtype": value.dtype.name, "shape": list(value.shape), "bytes": base64.b64encode(raw).decode()}
    if isinstance(value, list):
        return [pack(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [pack(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[str(key), pack(item)] for key, item in value.items()]}
    if type(value).__name__ in STAND_INS:
        parts = {f.name: pack(getattr(value, f.name)) for f in fields(value)}
        return {"stand_in": type(value).__name__, "parts": parts}
    raise TypeError(f"{type(value).__name__} cannot be sent")


def unpack(data: Any, stand_ins: bool = False) -> Any:
    """The value of `pack`; ValueError for anything else.

    Args:
        data: JSON, decoded.
        stand_ins: whether stand-ins for functions are allowed; cases may have them, results may not.
    """
    if data is None or isinstance(data, bool | int | float | str):
        return data
    if isinstance(data, list):
        return [unpack(item, stand_ins) for item in data]
    if isinstance(data, dict) and data:
        kind, inner = next(iter(data.items()))
        if kind == "ellipsis":
            return ...
        if kind == "tuple" and isinstance(inner, list):
            return tuple(unpack(item, stand_ins) for item in inner)
        if kind == "dict" and isinstance(inner, list) and all(map(is_entry, inner)):
            return {key: unpack(item, stand_ins) for key, item in inner}
        if kind == "scalar":
            scalar = unpack(inner)
            if isinstance(scalar, np.ndarray) and scalar.ndim == 0:
                return scalar[()]
        if kind == "strange":
            return np.empty(0, dtype=object)  # never right: not a numeric dtype
        if kind == "dtype":
            return unpack_array(data)
        if kind == "stand_in" and stand_ins:
            return STAND_INS[inner](**{key: unpack(item, True) for key, item in data["parts"].items()})
    raise ValueError("not a value")


def is_entry(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2 and isinstance(item[0], str)


def unpack_array(data: dict[str, Any]) -> np.ndarray[Any, Any]:
    name, shape, text = data.get("dtype"), data.get("shape"), data.get("bytes")
    if not (isinstance(name, str) and name in DTYPES and isinstance(shape, list) and isinstance(text, str)):
        raise ValueError("not an array")
    if len(shape) > 32 or not all(type(n) is int and 0 <= n <= LARGEST for n in shape):
        raise ValueError("not a shape")
    size = 1  # entries
    filled = 1  # entries if empty axes had length 1, as a mean over them has
    for n in shape:
        size, filled = size * n, filled * max(n, 1)
    raw = base64.b64decode(text, validate=True)
    dtype = DTYPES[name]
    if filled > LARGEST or len(raw) != size * dtype.itemsize:
        raise ValueError("the bytes are not those of the shape")
    if name == "bool":
        return (np.frombuffer(raw, np.uint8) != 0).reshape(shape)
    return np.frombuffer(raw, dtype).reshape(shape).copy()


def pack_case(case: Case) -> Any:
    """A case, without its `edge`, which only the grader needs."""
    return [case.name, pack(case.args)]


def unpack_case(data: Any) -> Case:
    name, args = data
    return Case(name, unpack(args, stand_ins=True))


def pack_outcome(outcome: Outcome) -> Any:
    try:
        value = pack(outcome.value)
        calls = [int(n) for n in outcome.calls]
    except Exception as error:
        return [None, name_of(type(error))[:100], message_of(error), 0, bool(outcome.changed), [], [], ""]
    parts = [value, outcome.error[:100], outcome.message, outcome.line, outcome.changed, calls]
    return [*parts, [str(kind)[:100] for kind in outcome.kinds], outcome.about]


def unpack_outcome(data: Any) -> Outcome:
    """An outcome from the student's side; ValueError if the data is not one."""
    if not (isinstance(data, list) and [type(part) for part in data[1:]] == [str, str, int, bool, list, list, str]):
        raise ValueError("not an outcome")
    value, error, message, line, changed, calls, kinds, about = data
    if not all(type(n) is int for n in calls) or max(len(error), len(calls)) > 100 or not 0 <= line <= LARGEST:
        raise ValueError("not an outcome")
    if not all(type(kind) is str for kind in kinds) or max(len(kinds), len(about)) > 100:
        raise ValueError("not an outcome")
    return Outcome(unpack(value), error, message[:300], line, changed, calls, kinds, about)
