"""Time LayerNorm and RMSNorm beside a copy of the same bytes, keep the measurement, and read it back.

Run ``python -m subnorm.timing`` for a table of this machine, ``python -m subnorm.timing record`` to keep it as JSON.
The order is always the same: a case is checked against float64 first, and only then timed.
"""

from subnorm.timing.cases import LABELS, Case, forward_cases, max_error, operations
from subnorm.timing.measure import interleave, of_copy, quartiles
from subnorm.timing.record import read_records, table, take, validate

__all__ = [
    "LABELS",
    "Case",
    "forward_cases",
    "interleave",
    "max_error",
    "of_copy",
    "operations",
    "quartiles",
    "read_records",
    "table",
    "take",
    "validate",
]
