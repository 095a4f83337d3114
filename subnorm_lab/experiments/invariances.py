"""Which changes of a norm's input leave its output the same: Table 1 of the LayerNorm paper, cell by cell.

A linear layer computes ``a = W h``, and the norm computes y from a. For each change: does y stay the same?
Rows of a are examples, columns are units (features). Everything is in float64, with eps = 0, as in the paper.
"""

from collections.abc import Callable

import numpy as np

from subnorm.numpy import batch_norm, layer_norm, rms_norm
from subnorm.numpy.norms import Array

#: The changes, in the order of the paper's columns.
CHANGES = (
    "weight matrix scaled",
    "weight matrix shifted",
    "weight vector scaled",
    "data set scaled",
    "data set shifted",
    "one example scaled",
)

#: BatchNorm, weight normalization and LayerNorm as in Ba et al. 2016, Table 1; RMSNorm as in Zhang and Sennrich 2019.
PUBLISHED = {
    "BatchNorm": (True, False, True, True, True, False),
    "WeightNorm": (True, False, True, False, False, False),
    "LayerNorm": (True, True, False, True, False, True),
    "RMSNorm": (True, False, False, True, False, True),
}


def changes(h: Array, weight: Array, rng: np.random.Generator) -> dict[str, tuple[Array, Array]]:
    """Each change applied: inputs h (examples, n) and weights (units, n), before the linear layer.

    Scales are positive; a weight matrix is shifted by adding the same vector to every unit's weights.
    """
    shift = rng.standard_normal(weight.shape[1])
    one_unit = np.ones((len(weight), 1))
    one_unit[0] = 3.0
    one_example = np.ones((len(h), 1))
    one_example[0] = 3.0
    applied = (
        (h, 3.0 * weight),
        (h, weight + shift),
        (h, one_unit * weight),
        (3.0 * h, weight),
        (h + shift, weight),
        (one_example * h, weight),
    )
    return dict(zip(CHANGES, applied, strict=True))


def invariance_table(seed: int, examples: int = 6, units: int = 5, inputs: int = 4) -> dict[str, tuple[float, ...]]:
    """The largest change of y, relative to the largest y, for every norm and every change.

    Args:
        seed: of the inputs, the weights and the shift.
        examples: rows of h.
        units: rows of the weight matrix.
        inputs: columns of h and of the weight matrix.

    Returns:
        for each norm, six numbers in the order of CHANGES; an invariance shows as rounding error.

    Source: Ba, Kiros, Hinton 2016, arXiv:1607.06450, section 5.1 and Table 1.
    """
    rng = np.random.default_rng(seed)
    h = rng.standard_normal((examples, inputs))
    weight = rng.standard_normal((units, inputs))
    norms: dict[str, Callable[[Array, Array], Array]] = {
        "BatchNorm": lambda h, w: batch_norm(h @ w.T, eps=0),
        "WeightNorm": lambda h, w: h @ (w / np.linalg.norm(w, axis=1, keepdims=True)).T,
        "LayerNorm": lambda h, w: layer_norm(h @ w.T, eps=0),
        "RMSNorm": lambda h, w: rms_norm(h @ w.T, eps=0),
    }
    table = {}
    for name, norm in norms.items():
        before = norm(h, weight)
        gaps = [norm(*after) - before for after in changes(h, weight, rng).values()]
        table[name] = tuple(float(np.abs(gap).max() / np.abs(before).max()) for gap in gaps)
    return table
