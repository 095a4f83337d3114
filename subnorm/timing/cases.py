"""What is timed: each norm written by hand and built into PyTorch, and a copy of the same bytes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import subnorm.numpy as sn
import subnorm.torch as st

#: What a reader is shown for the name of each case; records keep the names.
LABELS = {
    "copy": "copy",
    "layer_hand": "LayerNorm, by hand",
    "rms_hand": "RMSNorm, by hand",
    "layer_builtin": "F.layer_norm",
    "rms_builtin": "F.rms_norm",
}


@dataclass(frozen=True)
class Case:
    """One function to time.

    Args:
        run: the call.
        bytes: how many bytes have to move at least: every input read once, the output written once.
        expected: what the call must give, computed in float64.
    """

    run: Callable[[], Tensor]
    bytes: int
    expected: npt.NDArray[np.floating[Any]]


def forward_cases(shape: tuple[int, int], dtype: torch.dtype, device: str, seed: int = 0) -> dict[str, Case]:
    """The forward pass of both norms, by hand (`subnorm.torch`) and built in (`torch.nn.functional`), and a copy.

    Every case allocates its output, so the copy does too. Gain and shift are not trivial, and have the dtype of x:
    with a wider gain the built-in RMSNorm leaves its fused kernel.

    Args:
        shape: rows and features, (N, d).
        dtype: of x, gamma and beta.
        device: "cpu" or "cuda".
        seed: of the random input.

    Returns:
        the cases by name, in the order of `LABELS`; "copy" is the first.
    """
    _rows, d = shape
    eps = 1e-5
    random = torch.Generator().manual_seed(seed)

    def draw(*size: int, around: float) -> Tensor:
        return (around + torch.randn(*size, generator=random)).to(dtype).to(device)

    x, gamma, beta = draw(*shape, around=0.5), draw(d, around=1.0), draw(d, around=0.0)
    x64, gamma64, beta64 = (t.double().cpu().numpy() for t in (x, gamma, beta))
    layer, rms = sn.layer_norm(x64, gamma64, beta64, eps), sn.rms_norm(x64, gamma64, eps)
    moved = 2 * x.nbytes  # x read, y written
    return {
        "copy": Case(x.clone, moved, x64),
        "layer_hand": Case(lambda: st.layer_norm(x, gamma, beta, eps), moved + gamma.nbytes + beta.nbytes, layer),
        "rms_hand": Case(lambda: st.rms_norm(x, gamma, eps), moved + gamma.nbytes, rms),
        "layer_builtin": Case(
            lambda: F.layer_norm(x, (d,), gamma, beta, eps), moved + gamma.nbytes + beta.nbytes, layer
        ),
        "rms_builtin": Case(lambda: F.rms_norm(x, (d,), gamma, eps), moved + gamma.nbytes, rms),
    }


def max_error(name: str, case: Case) -> float:
    """Largest error of the case's result, relative to the largest expected entry.

    Raises:
        ArithmeticError: the result is wrong by more than eight roundings of its dtype.
    """
    y = case.run()
    error = np.abs(y.double().cpu().numpy() - case.expected).max() / np.abs(case.expected).max()
    limit = 8 * torch.finfo(y.dtype).eps
    if not error <= limit:  # also true for NaN
        raise ArithmeticError(
            f"a case must be right before it is timed; {name} is off by {error:.1e} of the largest entry, "
            f"and {y.dtype} allows {limit:.1e}. Mend the function first: the speed of a wrong answer says nothing."
        )
    return float(error)


def operations(run: Callable[[], Tensor]) -> list[str]:
    """The tensor operations that a call is made of, in order: ``["native_layer_norm"]`` if it is one kernel.

    Each is at least one pass over its input. Below the call PyTorch has taken its composite functions apart.
    """
    with _Listen() as listen:
        run()
    return listen.names


class _Listen(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        name = func.overloadpacket.__name__
        if name != "promote_types":  # asks about dtypes, touches no data
            self.names.append(name)
        return func(*args, **(kwargs or {}))
