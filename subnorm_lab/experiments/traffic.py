"""Memory traffic of a call: its tensor operations, and the bytes that they read and write."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class Operation:
    """One tensor operation of a call.

    Args:
        name: PyTorch's name, such as ``native_layer_norm``.
        bytes: every operand read once and every result written once, as if nothing stayed in a cache.
    """

    name: str
    bytes: int


def operations(run: Callable[[], object]) -> list[Operation]:
    """The operations of a call, in order; just one if the call is a single kernel.

    PyTorch reports them after it has decomposed composite functions, including those of a backward pass. Views and
    empty arrays move no data, and are left out.

    Args:
        run: the call, which is made once.

    Returns:
        the operations, each with its bytes.

    Known mistake: taking the sum for traffic to memory. A small array stays in the cache.
    """
    with _Listen() as listen:
        run()
    return listen.found


class _Listen(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Operation] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        views = not func._schema.is_mutable and any(value.alias_info for value in func._schema.returns)
        moved = _bytes((args, kwargs or {})) + _bytes(result)
        if not views and moved and not func.__name__.startswith("empty"):
            self.found.append(Operation(func.overloadpacket.__name__, moved))
        return result


def _bytes(operands: Any) -> int:
    """The bytes of all tensors in nested operands. x * x reads x once; a broadcast reads each entry once."""
    tensors = {id(leaf): leaf for leaf in tree_leaves(operands) if isinstance(leaf, Tensor)}.values()
    return sum(_entries(tensor) * tensor.itemsize for tensor in tensors)


def _entries(tensor: Tensor) -> int:
    return math.prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)
