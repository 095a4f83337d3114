"""When does warm-up decide? The final loss by learning rate, for Post-LN with and without warm-up, and for Pre-LN.

The whole map takes minutes, so it is measured once and kept as a record, with what it depends on:

    python -m subnorm.experiments.warmup

writes ``records/warmup.json`` beside this file. Chapter 05 reads it back, and measures two runs of it anew.
"""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from subnorm.experiments.language_model import Copy, train
from subnorm.provenance import today, versions

RECORD = files("subnorm.experiments") / "records" / "warmup.json"

STEPS = 200
WARMUP = STEPS // 2
BLOCKS = 4
LEARNING_RATES = (2e-3, 5e-3, 1e-2, 2e-2)
SEEDS = range(5)

#: Placement and warm-up of each curve on the map.
ARMS = {"post": ("post", 0), "post_warmup": ("post", WARMUP), "pre": ("pre", 0)}

TASK = Copy(string=8)


def final_loss(arm: str, lr: float, seed: int) -> float:
    """Mean training loss over the last 20 of :data:`STEPS` updates, in nats."""
    placement, warmup = ARMS[arm]
    return settled(train(TASK, placement, seed, lr, STEPS, warmup, BLOCKS)[1])


def settled(losses: npt.NDArray[np.float64]) -> float:
    """Where a run ended: the mean of its last 20 losses."""
    return float(losses[-20:].mean())


def take() -> dict[str, Any]:
    """Measure the whole map."""
    return {
        "date": today(),
        "command": "python -m subnorm.experiments.warmup",
        "versions": versions(),
        "optimizer": "Adam(betas=(0.9, 0.999))",
        "task": {"name": "copy", "symbols": TASK.symbols, "string": TASK.string},
        "steps": STEPS,
        "warmup": WARMUP,
        "blocks": BLOCKS,
        "chance": round(TASK.chance, 4),
        "learning_rates": list(LEARNING_RATES),
        "seeds": list(SEEDS),
        "final_loss": {
            arm: [[round(final_loss(arm, lr, seed), 4) for lr in LEARNING_RATES] for seed in SEEDS] for arm in ARMS
        },
    }


def recorded() -> dict[str, Any]:
    """The record, with ``final_loss[arm]`` as an array of shape (seeds, learning rates)."""
    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    record["final_loss"] = {arm: np.array(losses) for arm, losses in record["final_loss"].items()}
    return record


if __name__ == "__main__":
    torch.set_num_threads(1)
    Path(str(RECORD)).write_text(json.dumps(take(), indent=1) + "\n", encoding="utf-8", newline="\n")
