"""What do float32, bfloat16 and float16 do to a norm, to its variance, and to a trained model?

NumPy has no bfloat16, and a processor adds float32 numbers in an order of its own. So everything here computes in
float64 and rounds each result to the format, which gives the same numbers on every machine. For one addition, product,
quotient or root this is what a processor does, too: 53 binary digits are enough to round twice without harm.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from subnorm.numpy.norms import Array
from subnorm_lab.stories import Model


@dataclass(frozen=True)
class Format:
    """A binary floating-point format; call it to round to the nearest number it has, ties to even.

    Args:
        digits: of the significand, with the leading 1.
        least: exponent of the smallest normal number; below it the spacing stays the same.
        largest: the largest finite number; beyond it everything is infinite.

    Source: IEEE 754 for float64, float32 and float16; bfloat16 has float32's exponents and 8 digits.
    """

    digits: int
    least: int
    largest: float

    def __call__(self, x: npt.ArrayLike) -> Array:
        """The nearest number of this format, as float64, in the shape of x."""
        x = np.asarray(x, dtype=np.float64)
        _, exponent = np.frexp(x)  # |x| = m 2**exponent with m in [0.5, 1)
        spacing = np.ldexp(1.0, np.maximum(exponent - 1, self.least) - (self.digits - 1))
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.rint(x / spacing) * spacing
        return np.where(np.abs(near) > self.largest, np.copysign(np.inf, x), near)


FORMATS = {
    "float64": Format(53, -1022, float(np.finfo(np.float64).max)),
    "float32": Format(24, -126, float(np.finfo(np.float32).max)),
    "bfloat16": Format(8, -126, float.fromhex("0x1.fep127")),
    "float16": Format(11, -14, 65504.0),
}


# Three ways to a variance


def one_pass(x: npt.ArrayLike, fmt: Format) -> Array:
    """The mean of the squares minus the square of the mean; it can come out negative.

    Args:
        x: shape (..., d), numbers of the format.
        fmt: rounds every result; sums run from the first feature to the last.

    Returns:
        The variance of each row, shape (..., 1).
    """
    x = np.asarray(x)
    mean = _mean(x, fmt)
    return fmt(_mean(fmt(x * x), fmt) - fmt(mean * mean))


def two_pass(x: npt.ArrayLike, fmt: Format) -> Array:
    """The mean first, then the mean of the squared deviations. Arguments and result are those of :func:`one_pass`."""
    deviation = fmt(np.asarray(x) - _mean(np.asarray(x), fmt))
    return _mean(fmt(deviation * deviation), fmt)


def welford(x: npt.ArrayLike, fmt: Format) -> Array:
    """One pass that keeps a running mean, and the squared deviations from it: Welford's method.

    For each value: ``delta = x - mean``, ``mean += delta / n``, ``m2 += delta * (x - mean)``; the variance is
    ``m2 / d``. Arguments and result are those of :func:`one_pass`.

    Source: B. P. Welford, Technometrics 4 (1962), 419-420.
    """
    x = np.asarray(x)
    mean = m2 = np.zeros((*x.shape[:-1], 1))
    for n, value in enumerate(np.moveaxis(x, -1, 0)[..., None], 1):  # each (..., 1)
        delta = fmt(value - mean)
        mean = fmt(mean + fmt(delta / n))
        m2 = fmt(m2 + fmt(delta * fmt(value - mean)))
    return fmt(m2 / x.shape[-1])


def _mean(x: Array, fmt: Format) -> Array:
    total: Array = np.zeros(x.shape[:-1])
    for feature in np.moveaxis(x, -1, 0):
        total = fmt(total + feature)
    return fmt(total / x.shape[-1])[..., None]


VARIANCES: dict[str, Callable[[npt.ArrayLike, Format], Array]] = {
    "one pass": one_pass,
    "two passes": two_pass,
    "Welford": welford,
}


def variance_errors(way: str, fmt: Format, means: npt.ArrayLike, seed: int, rows: int = 50, d: int = 64) -> Array:
    """Relative errors of a variance, for rows of standard deviation 1 around each of the means.

    Args:
        way: a key of :data:`VARIANCES`.
        fmt: the rows are rounded to it first, so that only the variance itself can be wrong.
        means: shape (n,); the rows must stay finite in the format, and so must their squares.
        seed: of the rows.
        rows: for each mean.
        d: features.

    Returns:
        Shape (n, rows): computed variance over the exact one, minus 1. At -1 and below nothing is left to divide by.
    """
    centred = np.random.default_rng(seed).standard_normal((rows, d))
    x = fmt(centred + np.asarray(means, dtype=np.float64)[:, None, None])  # (n, rows, d)
    wrong: Array = VARIANCES[way](x, fmt)[..., 0] / x.var(axis=-1) - 1
    return wrong


# Norms in a format


def rms_norm_inside(x: Array, gamma: Array, fmt: Format, eps: float = 1e-5) -> Array:
    """RMSNorm with every result in the format, squares and eps too. The sum of the squares is exact.

    Args:
        x: shape (..., d).
        gamma: gain, shape (d,).
        fmt: the format.
        eps: is rounded as well.

    Returns:
        Shape (..., d).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_square = fmt(fmt(x * x).mean(axis=-1, keepdims=True))
        rstd = fmt(1 / np.sqrt(fmt(mean_square + fmt(eps))))
        return fmt(fmt(x * rstd) * gamma)


def rms_norm_widened(x: Array, gamma: Array, fmt: Format, eps: float = 1e-5) -> Array:
    """RMSNorm in float64, gain included, rounded once at the end: the order of Gemma. As :func:`rms_norm_inside`."""
    return fmt(_xhat(x, eps) * gamma)


def rms_norm_narrowed_first(x: Array, gamma: Array, fmt: Format, eps: float = 1e-5) -> Array:
    """RMSNorm in float64, rounded before the gain and after it: the order of Llama. As :func:`rms_norm_inside`."""
    return fmt(fmt(_xhat(x, eps)) * gamma)


def _xhat(x: Array, eps: float) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):  # a format can hand on infinities, and eps may be 0
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)


def layer_norm_by(way: str, x: Array, gamma: Array, fmt: Format, eps: float = 1e-5) -> Array:
    """LayerNorm with every result in the format, and its variance computed in the given way.

    Args:
        way: a key of :data:`VARIANCES`.
        x: shape (..., d).
        gamma: gain, shape (d,).
        fmt: the format.
        eps: added to the variance.

    Returns:
        Shape (..., d); NaN where the variance and eps together are negative.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rstd = fmt(1 / np.sqrt(fmt(VARIANCES[way](x, fmt) + eps)))
        return fmt(fmt(fmt(x - _mean(x, fmt)) * rstd) * gamma)


# The patient


def treated(model: Model, norm: Callable[..., Any], fmt: Format, size: float = 1.0, shift: float = 0.0) -> Model:
    """The trained model with its stream in a format, made larger and shifted, and with another norm.

    What enters the stream is multiplied by `size`, and the final norm's result is divided by it. With eps 0 and a norm
    that ignores scale this is the same function of the tokens. `shift` is added to every feature of the embedding; a
    norm that ignores shifts does not notice, and it adds the same number to all scores of a token. So every change of
    the loss is the arithmetic's. The matrix products run in float64.

    Args:
        model: from :func:`subnorm_lab.stories.load`.
        norm: a function of the stream, gamma and the format.
        fmt: of the stream, of what is added to it, and of the norms.
        size: a power of 2, so that scaling alone rounds nothing.
        shift: added to every feature of the stream.

    Raises:
        ValueError: the size is not a power of 2.
    """
    if np.frexp(size)[0] != 0.5:
        raise ValueError(f"size must be a power of 2, which rounds nothing; got {size:g}. Take 16 or 0.25.")

    def place(x: Array, sublayer: Callable[[Array], Array], normed: Callable[[Array], Array]) -> Array:
        return fmt(x + fmt(sublayer(normed(x))))

    def final(x: Array, gamma: Array) -> Array:
        last: Array = norm(x, gamma, fmt) / size
        return last

    return replace(
        model,
        embedding=fmt(size * model.embedding + shift),
        weights=tuple({n: w * size if n in ("o", "down") else w for n, w in ws.items()} for ws in model.weights),
        norms=(*[partial(norm, fmt=fmt)] * 10, final),
        places=(place,) * 10,
    )
