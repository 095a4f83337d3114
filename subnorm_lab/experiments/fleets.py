"""Three fleets of machines whose sensors show wear in different ways, and how well each pooling head learns it.

A head's error depends on the length of training. Measuring three lengths takes minutes, so the results are a record:

    python -m subnorm_lab.experiments.fleets

writes ``records/fleets.json`` beside this file. Deep dive 06c reads it, and repeats a part of it.
"""

import math
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from subnorm import _rules
from subnorm_lab.experiments import pooling, stored

RECORD = stored.file("fleets")

FLEETS = ("spread", "last", "flagged")
SEEDS = range(5)
STEPS = (150, 600, 2000)

#: Steps in a window, and the standard deviation of the noise of a reading in *spread*.
LENGTH, NOISE = 30, 0.5
#: Standard deviation of the remaining life, in cycles: the scale of the targets.
CYCLES = 100 / math.sqrt(12)


def machines(fleet: str, n: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Draw machines with wear uniform between 0 and 1, and 100 (1 - wear) remaining cycles of life.

    Args:
        fleet: how the window shows the wear. "spread": every reading is the wear plus noise. "last": the last reading
            is the wear, the others are random. "flagged": one random step has it, which a second channel marks.
        n: number of machines.
        generator: draws them.

    Returns:
        windows, shape (n, LENGTH, 2), and remaining lives, shape (n,); both with mean 0 and a spread of about 1.
    """
    _rules.choice("fleet", fleet, FLEETS)
    draw = partial(torch.rand, generator=generator, dtype=torch.float64)
    wear = draw(n)
    reading = draw(n, LENGTH)
    flag = torch.zeros(n, LENGTH, dtype=torch.float64)
    if fleet == "spread":
        noise = torch.randn(n, LENGTH, generator=generator, dtype=torch.float64)
        reading = wear[:, None] + NOISE * noise
    elif fleet == "last":
        reading[:, -1] = wear
    else:
        inspected = torch.randint(LENGTH, (n, 1), generator=generator)
        reading.scatter_(1, inspected, wear[:, None])
        flag.scatter_(1, inspected, 1.0)
    reading = (reading - 0.5) * math.sqrt(12)
    flag = (flag - 1 / LENGTH) / math.sqrt(1 / LENGTH - 1 / LENGTH**2)
    return torch.stack([reading, flag], dim=-1), (0.5 - wear) * math.sqrt(12)


def judged_machines(fleet: str) -> tuple[Tensor, Tensor]:
    """The 1000 test machines, the same for every model."""
    return machines(fleet, 1000, Generator().manual_seed(99))


def train_one(fleet: str, head: str, seed: int, steps: int = STEPS[0], mixing: bool = False) -> pooling.Regressor:
    """Train a model on new machines at every step."""
    return pooling.train(partial(machines, fleet), head, seed, mixing, steps)[0]


def judge(model: pooling.Regressor, fleet: str) -> float:
    """The error on the test machines, in cycles."""
    return CYCLES * pooling.error(model, *judged_machines(fleet))


def take() -> dict[str, Any]:
    """Measure every head on every fleet after every length of training."""
    return {
        **stored.origin("python -m subnorm_lab.experiments.fleets"),
        "optimizer": "Adam, learning rate from 0.03 linearly to 0",
        "batch": 16,
        "seeds": list(SEEDS),
        "steps": list(STEPS),
        "errors": {
            fleet: {
                head: [[round(judge(train_one(fleet, head, seed, n), fleet), 1) for n in STEPS] for seed in SEEDS]
                for head in pooling.HEADS
            }
            for fleet in FLEETS
        },
    }


def recorded() -> dict[str, Any]:
    """The record; ``["errors"][fleet][head]`` in cycles, as an array of shape (seeds, steps)."""
    record = stored.read(RECORD)
    record["errors"] = {
        fleet: {head: np.array(errors) for head, errors in heads.items()} for fleet, heads in record["errors"].items()
    }
    return record


if __name__ == "__main__":
    torch.set_num_threads(1)
    stored.write(RECORD, take())
