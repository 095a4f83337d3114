"""When does warm-up matter? The final loss by learning rate, for Post-LN and Pre-LN with and without warm-up.

Two maps: copying with 4 blocks in 200 steps, and real text with 12 blocks in 100 steps. They take minutes, so their
results and settings are stored as a record:

    python -m subnorm_lab.experiments.warmup

writes ``records/warmup.json`` beside this file. Deep dive 05b reads it, and repeats some of its runs.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from subnorm_lab.experiments import stored
from subnorm_lab.experiments.language_model import Characters, Copy, LanguageModel, Task, train

RECORD = stored.file("warmup")

SEEDS = range(5)

#: The placement of each curve on a map, and whether warm-up takes the first half of the run.
ARMS = {"post": ("post", False), "post_warmup": ("post", True), "pre": ("pre", False), "pre_warmup": ("pre", True)}


@dataclass(frozen=True)
class Setting:
    """The settings shared by all runs of a map.

    Attributes:
        task: the training task.
        steps: updates in a run; an arm with warm-up spends half of them on it.
        blocks: depth L.
        batch_size: sequences in a batch.
        rates: the learning rates of the map.
    """

    task: Task
    steps: int
    blocks: int
    batch_size: int
    rates: tuple[float, ...]


MAPS = {
    "copy": Setting(Copy(string=8), steps=200, blocks=4, batch_size=16, rates=(2e-3, 5e-3, 1e-2, 2e-2)),
    "deep": Setting(Characters(length=16), steps=100, blocks=12, batch_size=8, rates=(1e-3, 2e-3, 5e-3, 1.5e-2)),
}


def train_one(setting: Setting, arm: str, lr: float, seed: int) -> tuple[LanguageModel, npt.NDArray[np.float64]]:
    """One training run.

    Args:
        setting: task, depth and length of the run.
        arm: a key of :data:`ARMS`.
        lr: learning rate; with warm-up, its peak.
        seed: of weights and batches; all arms get the same ones.

    Returns:
        the model, and the training loss before every update, shape (steps,).
    """
    placement, warm = ARMS[arm]
    warmup = setting.steps // 2 if warm else 0
    return train(setting.task, placement, seed, lr, setting.steps, warmup, setting.blocks, setting.batch_size)


def settled(losses: npt.NDArray[np.float64]) -> float:
    """The final loss of a run: the mean of its last 20 losses, in nats."""
    return float(losses[-20:].mean())


def final_loss(setting: Setting, arm: str, lr: float, seed: int) -> float:
    """The final loss of :func:`run`, in nats."""
    return settled(train_one(setting, arm, lr, seed)[1])


def take() -> dict[str, Any]:
    """Measure both maps."""
    return {
        **stored.origin("python -m subnorm_lab.experiments.warmup"),
        "optimizer": "Adam(betas=(0.9, 0.999))",
        "seeds": list(SEEDS),
        "maps": {
            name: {
                "task": repr(s.task),
                "steps": s.steps,
                "blocks": s.blocks,
                "batch_size": s.batch_size,
                "chance": round(s.task.chance, 4),
                "learning_rates": list(s.rates),
                "final_loss": {
                    arm: [[round(final_loss(s, arm, lr, seed), 4) for lr in s.rates] for seed in SEEDS] for arm in ARMS
                },
            }
            for name, s in MAPS.items()
        },
    }


def recorded() -> dict[str, Any]:
    """The record, with each ``["maps"][name]["final_loss"][arm]`` as an array of shape (seeds, learning rates)."""
    record = stored.read(RECORD)
    for measured in record["maps"].values():
        measured["final_loss"] = {arm: np.array(losses) for arm, losses in measured["final_loss"].items()}
    return record


if __name__ == "__main__":
    torch.set_num_threads(1)
    stored.write(RECORD, take())
