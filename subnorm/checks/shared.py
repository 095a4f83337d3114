"""Sentences and helpers shared by exercises of several sheets."""

import numpy as np

from subnorm.checks.collect import Case

FIXED_EPS = "eps is always 1e-5; use the eps that the function is given."
NO_GAMMA = "gamma is not used: it multiplies each feature."


def in_dtype(case, dtype):
    """The case with its arrays in another dtype."""
    return Case(case.name, tuple(a.astype(dtype) if isinstance(a, np.ndarray) else a for a in case.args), case.edge)
