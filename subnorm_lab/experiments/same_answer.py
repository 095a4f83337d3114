"""The same answer twice? Whether the bits of a row depend on its batch, and those of a result on the run.

On the CPU a notebook measures it. A GPU is a record:

    python -m subnorm_lab.experiments.same_answer

writes ``records/same_answer.json`` beside this file, on a machine with a CUDA GPU.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import subnorm.torch as st
from subnorm_lab.experiments import stored

RECORD = stored.file("same_answer")

BATCHES = (1, 2, 3, 8, 17, 64, 100, 512, 1000, 4096)
D, RUNS, EPS = 4096, 50, 1e-5
DTYPES = (torch.float32, torch.bfloat16)

Rowwise = Callable[[Tensor], Tensor]


def dependence(function: Rowwise, x: Tensor, batches: Sequence[int] = BATCHES) -> list[float]:
    """How far the first row of the result moves with the batch: its largest difference from the row computed alone.

    Args:
        function: of rows, whose result for one row should not depend on the others.
        x: rows, shape (N, d).
        batches: how many of the rows to pass, none more than N.

    Returns:
        for each batch the largest difference, over the largest entry of the row; 0 if all bits are equal.
    """
    alone = function(x[:1])[0].double()
    moved = [(function(x[:rows])[0].double() - alone).abs().max() / alone.abs().max() for rows in batches]
    return [float(f"{float(difference):.2g}") for difference in moved]


def count_answers(function: Callable[[], Tensor], runs: int = RUNS) -> int:
    """How many different results the same call gives, in so many runs: 1 if it always gives the same bits."""
    found: list[Tensor] = []
    for _ in range(runs):
        result = function()
        if not any(torch.equal(result, one) for one in found):
            found.append(result)
    return len(found)


def rowwise(d: int, dtype: torch.dtype, device: str) -> dict[str, Rowwise]:
    """Functions of rows of d features: norms, a softmax, and a product with a matrix."""
    random = torch.Generator(device).manual_seed(1)
    gamma, beta = (torch.randn(d, generator=random, device=device, dtype=dtype) for _ in range(2))
    W = torch.randn(d, d, generator=random, device=device, dtype=dtype) / d**0.5
    found: dict[str, Rowwise] = {
        "F.layer_norm": lambda x: F.layer_norm(x, (d,), gamma, beta, EPS),
        "F.rms_norm": lambda x: F.rms_norm(x, (d,), gamma, EPS),
        "st.rms_norm": lambda x: st.rms_norm(x, gamma, eps=EPS),
        "softmax": lambda x: torch.softmax(x, dim=-1),
        "x @ W": lambda x: x @ W,
        "x @ W, one row at a time": lambda x: torch.cat([row @ W for row in x.split(1)]),
    }
    if device == "cuda":
        from subnorm.torch import kernels

        found["kernels.layer_norm"] = lambda x: kernels.layer_norm(x, gamma, beta, EPS)
        found["kernels.rms_norm"] = lambda x: kernels.rms_norm(x, gamma, EPS)
    return found


def summed(rows: int, d: int, dtype: torch.dtype, device: str) -> dict[str, Callable[[], Tensor]]:
    """Calls that add over rows: the gradient of a gain, and a sum into few places, in PyTorch's two ways."""
    random = torch.Generator(device).manual_seed(2)
    x, dy = (torch.randn(rows, d, generator=random, device=device, dtype=dtype) for _ in range(2))
    place = torch.randint(8, (rows,), generator=random, device=device)
    gamma = torch.ones(d, device=device, dtype=dtype, requires_grad=True)

    def gradient(norm: Rowwise) -> Callable[[], Tensor]:
        return lambda: torch.autograd.grad(norm(x), gamma, dy)[0]

    found: dict[str, Callable[[], Tensor]] = {
        "gradient of gain, F.layer_norm": gradient(lambda x: F.layer_norm(x, (d,), gamma, None, EPS)),
        "gradient of gain, F.rms_norm": gradient(lambda x: F.rms_norm(x, (d,), gamma, EPS)),
        "sum by index_add_": lambda: torch.zeros(8, d, device=device, dtype=dtype).index_add_(0, place, x),
        "sum by a product": lambda: F.one_hot(place, 8).to(dtype).T @ x,
    }
    if device == "cuda":
        from subnorm.torch import kernels

        found["gradient of gain, kernels.rms_norm"] = gradient(lambda x: kernels.rms_norm(x, gamma, EPS))
    return found


def measure(device: str, batches: Sequence[int], d: int, runs: int, rows: int) -> dict[str, Any]:
    """{dtype: {"batch": {function: differences}, "runs": {call: number of results}}}."""
    found = {}
    for dtype in DTYPES:
        x = torch.randn(max(batches), d, generator=torch.Generator(device).manual_seed(0), device=device, dtype=dtype)
        found[str(dtype).removeprefix("torch.")] = {
            "batch": {name: dependence(f, x, batches) for name, f in rowwise(d, dtype, device).items()},
            "runs": {name: count_answers(call, runs) for name, call in summed(rows, d, dtype, device).items()},
        }
    return found


def take() -> dict[str, Any]:
    """Measure on the CUDA GPU of this machine."""
    return {
        **stored.origin("python -m subnorm_lab.experiments.same_answer"),
        "device": torch.cuda.get_device_name(),
        "batches": list(BATCHES),
        "features": D,
        "rows": 4096,
        "runs": RUNS,
        "found": measure("cuda", BATCHES, D, RUNS, rows=4096),
    }


def recorded() -> Mapping[str, Any]:
    """The record."""
    return stored.read(RECORD)


if __name__ == "__main__":
    stored.write(RECORD, take())
