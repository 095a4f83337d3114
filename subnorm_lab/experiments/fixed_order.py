"""What a fixed order of adding costs: products whose rows do not depend on the batch, timed beside the usual one.

    python -m subnorm_lab.experiments.fixed_order

writes ``records/fixed_order.json`` beside this file, on one thread of a CPU.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from subnorm.provenance import cpu_model, load
from subnorm.timing.measure import CPU_CLOCK
from subnorm_lab.experiments import stored
from subnorm_lab.experiments.same_answer import dependence

RECORD = stored.file("fixed_order")

BATCHES = (1, 8, 64, 512)
D, TILE, ROUNDS = 1024, 64, 51


def product(x: Tensor, W: Tensor) -> Tensor:
    """``x @ W``, as one call."""
    return x @ W


def one_at_a_time(x: Tensor, W: Tensor) -> Tensor:
    """``x @ W``, each row on its own."""
    return torch.cat([row @ W for row in x.split(1)])


def in_tiles(x: Tensor, W: Tensor, rows: int = TILE) -> Tensor:
    """``x @ W`` in products of one shape: tiles of so many rows, the last one filled up with zeros."""
    tiles = [torch.cat([tile, tile.new_zeros(rows - len(tile), tile.shape[1])]) for tile in x.split(rows)]
    return torch.cat([tile @ W for tile in tiles])[: len(x)]


PRODUCTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "x @ W": product,
    "one row at a time": one_at_a_time,
    "in tiles of one shape": in_tiles,
}


def arrays(d: int = D) -> tuple[Tensor, Tensor]:
    """Rows for the largest batch, and a matrix."""
    random = torch.Generator().manual_seed(0)
    return torch.randn(max(BATCHES), d, generator=random), torch.randn(d, d, generator=random) / d**0.5


def ratios(rounds: int = ROUNDS, d: int = D) -> dict[str, dict[int, list[float]]]:
    """The time of each product over that of ``x @ W`` in the same round: {product: {batch: quartiles}}."""
    x, W = arrays(d)
    found: dict[str, dict[int, list[float]]] = {name: {} for name in PRODUCTS}
    for batch in BATCHES:
        times = np.array([[_seconds(f, x[:batch], W) for f in PRODUCTS.values()] for _ in range(rounds)])
        for name, column in zip(PRODUCTS, (times / times[:, :1]).T, strict=True):
            found[name][batch] = [float(f"{q:.3g}") for q in np.quantile(column, (0.25, 0.5, 0.75))]
    return found


def _seconds(call: Callable[[Tensor, Tensor], Tensor], x: Tensor, W: Tensor) -> float:
    clock = getattr(time, CPU_CLOCK)
    start = clock()
    call(x, W)
    return float(clock() - start)


def by(call: Callable[[Tensor, Tensor], Tensor], W: Tensor, x: Tensor) -> Tensor:
    """A product as a function of its rows."""
    return call(x, W)


def take() -> dict[str, Any]:
    """Measure on one thread of this machine's CPU."""
    torch.set_num_threads(1)
    x, W = arrays()
    return {
        **stored.origin("python -m subnorm_lab.experiments.fixed_order"),
        "device": cpu_model(),
        "load": load(),
        "batches": list(BATCHES),
        "features": D,
        "tile": TILE,
        "rounds": ROUNDS,
        "moved": {name: dependence(partial(by, f, W), x, BATCHES) for name, f in PRODUCTS.items()},
        "ratios": ratios(),
    }


def recorded() -> Mapping[str, Any]:
    """The record."""
    return stored.read(RECORD)


if __name__ == "__main__":
    stored.write(RECORD, take())
