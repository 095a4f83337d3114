"""The residual connection, and the two placements of its norm, around any sublayer.

The functions use only `+` and calls, so they work for NumPy arrays and PyTorch tensors alike.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from subnorm import _rules

Array = TypeVar("Array", bound=Any)


def residual(x: Array, sublayer: Callable[[Array], Array]) -> Array:
    """Add the sublayer's output to its input: ``y = x + F(x)``.

    Args:
        x: input, any shape.
        sublayer: F, a function from arrays to arrays of the same shape.

    Returns:
        y, in the shape of x. Its Jacobian is ``I + J``, where J is the Jacobian of F.

    Raises:
        TypeError: x is not an array, or the sublayer did not return one.
        ValueError: the sublayer changed the shape.

    Source: He, Zhang, Ren, Sun 2015, arXiv:1512.03385; chapter 02.

    Known mistake: ``h = norm(x); y = h + F(h)``, which sends the normalised input down the skip path.
    """
    return _add(x, sublayer(x))


def pre_ln(x: Array, sublayer: Callable[[Array], Array], norm: Callable[[Array], Array]) -> Array:
    """Normalise the sublayer's input, and leave the skip path alone: ``y = x + F(norm(x))``.

    Args:
        x: input, any shape.
        sublayer: F, a function from arrays to arrays of the same shape.
        norm: LayerNorm, RMSNorm or another function that keeps the shape.

    Returns:
        y, in the shape of x. It is not normalised, so a Pre-LN stack needs a final norm.

    Raises:
        TypeError: x is not an array, or the sublayer did not return one.
        ValueError: the sublayer changed the shape.

    Source: Xiong et al. 2020, arXiv:2002.04745, who compare it with Post-LN; others used it earlier. Chapter 05.

    Known mistake: taking the residual after the norm, ``norm(x) + F(norm(x))``.
    """
    return _add(x, sublayer(norm(x)))


def post_ln(x: Array, sublayer: Callable[[Array], Array], norm: Callable[[Array], Array]) -> Array:
    """Normalise the sum, skip path included: ``y = norm(x + F(x))``, the "Add & Norm" of the original transformer.

    Arguments and errors are those of :func:`pre_ln`; y is normalised.

    Source: Vaswani et al. 2017, arXiv:1706.03762; chapter 05.

    Known mistake: a docstring that says Post-LN above Pre-LN code.
    """
    return norm(_add(x, sublayer(x)))


#: The placements that a block can be built with, by name.
PLACEMENTS: dict[str, Callable[..., Any]] = {"pre": pre_ln, "post": post_ln}


def _add(x: Array, branch: Array) -> Array:
    for name, value in (("x", x), ("the sublayer's output", branch)):
        _rules.array(name, hasattr(value, "shape"), type(value))
    _rules.same_shape("the sublayer's output", tuple(branch.shape), "its input x", tuple(x.shape))
    return x + branch
