"""How exact the LayerNorms of this package, PyTorch and JAX's libraries are on rows whose mean is far from 0.

All read the same float32 rows, and are compared with the exact result, computed with 70 decimal digits. The unit of an
error is float32's machine epsilon times the largest entry of the exact row.

JAX, Flax and Equinox are not among the course's requirements: install ``jax flax equinox`` to measure them.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm_lab.experiments import stored

RECORD = stored.file("accuracy")
MEANS = (0.0, 1e3, 1e6)
ROWS, FEATURES, EPS, SEED = 4, 768, 1e-5, 0
PEERS = ("jax", "flax", "equinox")

Array = np.ndarray[Any, np.dtype[np.floating[Any]]]


def rows_about(mean: float) -> Array:
    """Float32 rows of standard deviation 1 about a mean, shape (ROWS, FEATURES)."""
    rng = np.random.default_rng(SEED)
    return (mean + rng.standard_normal((ROWS, FEATURES))).astype(np.float32)


def exact(row: Array, centred: bool) -> list[Decimal]:
    """LayerNorm of one row, or RMSNorm if it is not centred, in the decimal digits of the context."""
    values = [Decimal(float(value)) for value in row]
    mean = sum(values, Decimal(0)) / len(values) if centred else Decimal(0)
    deviations = [value - mean for value in values]
    mean_square = sum((value * value for value in deviations), Decimal(0)) / len(values)
    root = (mean_square + Decimal(EPS)).sqrt()
    return [value / root for value in deviations]


@lru_cache(maxsize=1)  # several norms, one after the other, read the same rows
def _exact_rows(
    rows: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], centred: bool
) -> list[tuple[list[Decimal], Decimal]]:
    """For each row the exact result, and the unit of an error in it."""
    found = [exact(row, centred) for row in np.frombuffer(rows, dtype).reshape(shape)]
    return [(right, Decimal(float(np.finfo(dtype).eps)) * max(map(abs, right))) for right in found]


def error(norm: Callable[[Array], Array], x: Array, centred: bool = True) -> float:
    """The largest error of a norm in rows of x, in machine epsilons of its dtype, against 70 decimal digits."""
    worst = Decimal(0)
    with localcontext(prec=70):
        for result, (right, unit) in zip(norm(x), _exact_rows(x.tobytes(), x.dtype, x.shape, centred), strict=True):
            worst = max(worst, max(abs(Decimal(float(y)) - r) for y, r in zip(result, right, strict=True)) / unit)
    return float(worst)


def installed_norms() -> dict[str, Callable[[Array], Array]]:
    """The norms that the course installs, by name."""
    return {
        "sn.layer_norm": lambda x: sn.layer_norm(x, eps=EPS),
        "st.layer_norm": lambda x: st.layer_norm(torch.from_numpy(x), eps=EPS).numpy(),
        "F.layer_norm": lambda x: F.layer_norm(torch.from_numpy(x), (FEATURES,), eps=EPS).numpy(),
    }


def elsewhere() -> dict[str, Callable[[Array], Array]]:
    """JAX's norms, by name."""
    import equinox  # type: ignore[import-not-found]
    import flax.linen  # type: ignore[import-not-found]
    import jax  # type: ignore[import-not-found]

    plain = flax.linen.LayerNorm(epsilon=EPS, use_bias=False, use_scale=False)
    return {
        "jax.nn.standardize": lambda x: np.asarray(jax.nn.standardize(x, epsilon=EPS)),
        "flax.linen.LayerNorm": lambda x: np.asarray(plain.apply({}, x)),
        "equinox.nn.LayerNorm": lambda x: np.asarray(
            jax.vmap(equinox.nn.LayerNorm(FEATURES, EPS, use_weight=False, use_bias=False))(x)
        ),
    }


def take() -> dict[str, Any]:
    """Measure all norms at each of :data:`MEANS`."""
    return {
        **stored.origin("python -m subnorm_lab.experiments.accuracy"),
        "peers": {name: version(name) for name in PEERS},
        "means": list(MEANS),
        "rows": ROWS,
        "features": FEATURES,
        "eps": EPS,
        "seed": SEED,
        "errors": {
            name: [float(f"{error(norm, rows_about(mean)):.3g}") for mean in MEANS]
            for name, norm in {**installed_norms(), **elsewhere()}.items()
        },
    }


def recorded() -> dict[str, Any]:
    """The record: for each norm, its error at each of the means."""
    return stored.read(RECORD)


if __name__ == "__main__":
    stored.write(RECORD, take())
