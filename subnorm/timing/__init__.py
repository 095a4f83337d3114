"""Time LayerNorm and RMSNorm against rivals and a copy of the same bytes, record the measurement, and read it back.

Run ``python -m subnorm.timing`` for every table of this machine, or name the tables: ``python -m subnorm.timing forward
training``. With ``--record`` it stores the measurement as JSON. Every case is first compared with float64; only
correct cases are timed, and the others are listed with the error.
"""

from subnorm.timing.cases import LABELS, TABLES, build_cases
from subnorm.timing.exact import Inputs
from subnorm.timing.record import read_records, take, validate, write
from subnorm.timing.replay import heading, live, names, rows, shapes, table

__all__ = [
    "LABELS",
    "TABLES",
    "Inputs",
    "build_cases",
    "heading",
    "live",
    "names",
    "read_records",
    "rows",
    "shapes",
    "table",
    "take",
    "validate",
    "write",
]
