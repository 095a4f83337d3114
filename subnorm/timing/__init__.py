"""Time LayerNorm and RMSNorm against rivals and a copy of the same bytes, record the measurement, and read it back.

Run ``python -m subnorm.timing`` for every table of this machine, or name the tables: ``python -m subnorm.timing forward
training``. With ``--record`` it stores the measurement as JSON. Every case is first compared with float64; only
correct cases are timed, and the others are listed with the error.
"""

from subnorm.timing.cases import LABELS, RIVALS, TABLES, Case, build_cases
from subnorm.timing.exact import Inputs, expected, max_error
from subnorm.timing.measure import interleave, quartiles, share_of_copy
from subnorm.timing.record import ROOF, read_records, take, validate, write
from subnorm.timing.replay import Row, heading, live, names, rows, shapes, table
from subnorm.timing.traffic import Operation, operations

__all__ = [
    "LABELS",
    "RIVALS",
    "ROOF",
    "TABLES",
    "Case",
    "Inputs",
    "Operation",
    "Row",
    "build_cases",
    "expected",
    "heading",
    "interleave",
    "live",
    "max_error",
    "names",
    "operations",
    "quartiles",
    "read_records",
    "rows",
    "shapes",
    "share_of_copy",
    "table",
    "take",
    "validate",
    "write",
]
