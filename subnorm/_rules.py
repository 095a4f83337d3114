"""The rules for inputs, shared by NumPy and PyTorch.

Every message has three parts: the rule, the input received, and the fix. The functions take plain shapes, names and
numbers, so this file needs neither library.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from numbers import Integral, Real
from typing import Any

Shape = tuple[int, ...]


def tensor(name: str, is_tensor: bool, got: type) -> None:
    if not is_tensor:
        raise TypeError(
            f"subnorm.torch takes torch tensors, and {name} must be one; got {got.__name__}. "
            f"Use torch.from_numpy, or the function of the same name in subnorm.numpy."
        )


def array(name: str, is_array: bool, got: type) -> None:
    if not is_array:
        raise TypeError(
            f"{name} must be one array with a shape; got {got.__name__}. "
            f"If a module returns several results, such as torch.nn.MultiheadAttention, take the first."
        )


NUMPY_TYPES = "float16, float32 or float64"
TORCH_TYPES = "float16, bfloat16, float32 or float64"


def floating(name: str, is_floating: bool, dtype: object, types: str) -> None:
    if not is_floating:
        raise TypeError(
            f"{name} must hold real floating-point numbers; got dtype {dtype}. "
            f"Convert it first, to {types}; token ids go through an embedding."
        )


def no_array(name: str, got: type, why: Exception) -> TypeError:
    """The error for a value of which NumPy makes no array; `why` is what NumPy says."""
    return TypeError(
        f"subnorm.numpy takes arrays, and {name} must be one, or numbers in lists of equal length; "
        f"got {got.__module__}.{got.__name__} ({why}). Convert a bfloat16 tensor with x.float().numpy(), "
        f"and pad rows of different lengths."
    )


def unmasked(name: str, is_unmasked: bool) -> None:
    if not is_unmasked:
        raise TypeError(
            f"{name} must be a plain array; got a masked one, whose hidden entries would be counted in the statistics. "
            f"Give {name}.compressed() or {name}.filled(…), whichever you mean."
        )


def dense(name: str, is_dense: bool, is_nested: bool, layout: object) -> None:
    if not is_dense:
        raise TypeError(
            f"{name} must be a dense tensor, or a nested one of layout torch.jagged; "
            f"got a {'nested' if is_nested else 'sparse'} one of layout {layout}. "
            f"Call {name}.to_dense(), or torch.nested.nested_tensor(…, layout=torch.jagged)."
        )


def features(shape: Shape) -> None:
    """The last axis holds the features, at least one."""
    if len(shape) == 0 or shape[-1] == 0:
        raise ValueError(
            f"x must have shape (..., d) with d at least 1; got shape {shape}. "
            f"The norms work along the last axis: put the features there."
        )


def at_least_one_row(shape: Shape) -> None:
    if 0 in shape:
        raise ValueError(
            f"BatchNorm needs at least one row to average over; got shape {shape}. "
            f"Skip an empty batch, or use LayerNorm, which treats each row on its own."
        )


def vector(name: str, shape: Shape, d: int) -> None:
    """A gain or a shift has one entry for each feature."""
    if shape != (d,):
        raise ValueError(
            f"{name} must have shape ({d},), one entry for each feature on the last axis of x; got shape {shape}. "
            f"Check that x has its features last, and that {name} was made for d = {d}."
        )


def width(shape: Shape, d_model: int) -> None:
    if len(shape) == 0 or shape[-1] != d_model:
        raise ValueError(
            f"the last axis of x must have d_model = {d_model} features; got shape {shape}. "
            f"Move the features last, or build the layer with d_model equal to that axis."
        )


def queries_keys_values(q: Shape, k: Shape, v: Shape) -> None:
    sequences = all(len(shape) >= 2 and 0 not in shape[-2:] for shape in (q, k, v))
    if not sequences or k[:-2] != q[:-2] or k[-1] != q[-1] or v[:-1] != k[:-1]:
        raise ValueError(
            f"q, k and v must have shapes (..., T, d_head), (..., S, d_head) and (..., S, d_value), none empty; "
            f"got {q}, {k} and {v}. Give each key one value; put tokens on the second-to-last axis, features last."
        )


def sequence(shape: Shape, d_model: int) -> None:
    if len(shape) < 2 or shape[-2] == 0 or shape[-1] != d_model:
        raise ValueError(
            f"x must have shape (..., T, d_model) with T at least 1 and d_model = {d_model}; got shape {shape}. "
            f"Attention mixes the T tokens of a sequence: put tokens on the second-to-last axis, features last."
        )


def memory(shape: Shape, x: Shape) -> None:
    """Cross-attention reads another sequence: any number of tokens, the other axes as in x."""
    if len(shape) != len(x) or shape[:-2] != x[:-2] or shape[-1] != x[-1] or shape[-2] == 0:
        raise ValueError(
            f"memory must have shape (..., S, d_model) with S at least 1 and the other axes of x, {x}; "
            f"got shape {shape}. Give every sequence of x its own memory, with the same number of features."
        )


def same_shape(name: str, shape: Shape, other: str, expected: Shape) -> None:
    if shape != expected:
        raise ValueError(
            f"{name} must have the shape of {other}, {expected}; got shape {shape}. "
            f"It is not broadcast, because a silent broadcast hides a wrong axis."
        )


def out(fits: bool, shape: Shape, dtype: object) -> None:
    if not fits:
        raise ValueError(
            f"out must be a contiguous array of the shape and dtype of x, {shape} and {dtype}; it is not. "
            f"Leave it out for a new array, or give np.empty_like of a contiguous x, or x itself."
        )


def small_constant(eps: float) -> None:
    if not (_is_number(eps) and math.isfinite(eps) and eps >= 0):
        raise ValueError(
            f"eps must be a finite number, at least 0; got {eps!r}, of type {type(eps).__name__}. "
            f"It is added to the variance under the root: take the float 1e-5, or 0 for the exact formula; "
            f"float(…) turns a text from a file or a tensor of one number into a float."
        )


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def size(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(
            f"{name} must be a whole number, at least 1; got {value!r}. Give the number of features or heads as an int."
        )


def heads(d_model: int, num_heads: int) -> None:
    size("d_model", d_model)
    size("num_heads", num_heads)
    if d_model % num_heads:
        raise ValueError(
            f"d_model must be divisible by num_heads, so that all heads get the same number of features; "
            f"got d_model = {d_model} and num_heads = {num_heads}. Change one of the two."
        )


def probability(name: str, p: float) -> None:
    if not (_is_number(p) and 0 <= p < 1):
        raise ValueError(
            f"{name} must lie in [0, 1); got {p!r}, of type {type(p).__name__}. "
            f"It is the fraction of entries set to zero: 0 turns dropout off."
        )


def function(name: str, is_function: bool, got: object) -> None:
    if not is_function:
        raise TypeError(
            f"{name} must be a function of a tensor; got {got!r}. Give torch.nn.functional.gelu, for example."
        )


def choice(name: str, value: object, choices: Collection[str]) -> None:
    known = ", ".join(repr(c) for c in choices)
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {known}; got {value!r}. Choose a name from the list.")


def keys(name: str, got: Mapping[str, Any], expected: Iterable[str]) -> None:
    missing = [key for key in expected if key not in got]
    if missing:
        raise ValueError(
            f"{name} must hold {', '.join(expected)}; missing: {', '.join(missing)}. "
            f"The names are those of the PyTorch module's state_dict."
        )


def absent(name: str, got: Mapping[str, Any], key: str, why: str) -> None:
    if key in got:
        raise ValueError(f"{name} must not hold {key}, because {why}; it does. Check which norm it was made with.")


def matrix(name: str, shape: Shape) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"{name} must be a matrix, (outputs, inputs); got shape {shape}. "
            f"Names and shapes are those of the PyTorch module's state_dict."
        )


def shapes(name: str, got: Mapping[str, Any], expected: Mapping[str, Shape]) -> None:
    for key, shape in expected.items():
        if got[key].shape != shape:
            raise ValueError(
                f"{name}[{key!r}] must have shape {shape} to fit the others; got shape {got[key].shape}. "
                f"Names and shapes are those of the PyTorch module's state_dict: weights are (outputs, inputs)."
            )


def mask(is_bool: bool, dtype: object, shape: Shape, scores: Shape) -> None:
    """A mask tells which keys (columns) each query (row) may see."""
    if not is_bool:
        raise TypeError(
            f"mask must be boolean, True where a query may look at a key; got dtype {dtype}. "
            f"Convert an additive mask with mask = (additive == 0), "
            f"and one for torch.nn.MultiheadAttention, where True blocks, with ~mask."
        )
    # Broadcasting aligns axes from the right: each must be 1 or equal the scores' axis.
    fits = 2 <= len(shape) <= len(scores) and all(
        m in (1, s) for m, s in zip(reversed(shape), reversed(scores), strict=False)
    )
    if not fits:
        raise ValueError(
            f"mask must have a row for each query and a column for each key, and broadcast to the scores' shape "
            f"(..., heads, T, S) = {scores}; got shape {shape}. "
            f"Give (T, S) for one shared mask, or (B, 1, T, S) for one per sequence; S is T in self-attention."
        )


def sees_something(every_query_sees_a_key: bool) -> None:
    if not every_query_sees_a_key:
        raise ValueError(
            "every query must see at least one key, because its weights must sum to one; got a mask row that is all "
            "False. Let a padding token look at itself, and discard its output later."
        )
