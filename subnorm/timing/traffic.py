"""What a call does to memory: the operations that it is made of, and the bytes that they read and write."""

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
        name: PyTorch's, as ``native_layer_norm``.
        bytes: every operand read once and every result written once, as if nothing stayed in a cache.
    """

    name: str
    bytes: int


def operations(run: Callable[[], object]) -> list[Operation]:
    """The operations on data that a call is made of, in order; one if it is one kernel.

    They are seen below the call, where PyTorch has taken its composite functions apart, and those of a backward pass
    are among them. Making a view or an empty array moves nothing, and is left out.

    Args:
        run: the call; it is made once.

    Returns:
        the operations, each with its bytes.

    Known mistake: taking the sum for what leaves the cache. An operation on a small array finds it there.
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
    """Of all tensors in any nesting. In x * x the array is read once; so is what a broadcast repeats."""
    tensors = {id(leaf): leaf for leaf in tree_leaves(operands) if isinstance(leaf, Tensor)}.values()
    return sum(_entries(tensor) * tensor.itemsize for tensor in tensors)


def _entries(tensor: Tensor) -> int:
    return math.prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)
