"""What the exercises of several sheets share."""

import numpy as np

from subnorm.checks.collect import Case

FIXED_EPS = "eps is 1e-5 whatever comes in; use the eps that the function is given."
NO_GAMMA = "gamma is not used: it multiplies each feature."


def in_dtype(case, dtype):
    """The same case, with its arrays in another dtype."""
    return Case(case.name, tuple(a.astype(dtype) if isinstance(a, np.ndarray) else a for a in case.args), case.edge)
