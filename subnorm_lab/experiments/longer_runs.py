"""Does a Post-LN model that is stuck after 100 steps learn in 800?

The runs continue those of the map ``deep`` in :mod:`subnorm_lab.experiments.warmup`: same text, seeds and batches, with
warm-ups of different lengths, one part with four blocks, and one with 3200 steps. They take half an hour:

    python -m subnorm_lab.experiments.longer_runs all

writes the results to ``records/longer_runs.json`` beside this file, after each run. Without ``all`` the command
measures only missing runs, so you can stop and resume it. With names of parts, such as ``12-post-0.005-400``, it
repeats those. Deep dive 05b reads the record, and repeats some of its runs.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from subnorm.provenance import versions
from subnorm_lab.experiments import stored, warmup
from subnorm_lab.experiments.language_model import train

RECORD = stored.file("longer_runs")

SETTING = warmup.MAPS["deep"]
SEEDS = warmup.SEEDS

#: The steps after which the loss is recorded, in a run of the usual length. The last one is that length.
STEPS = tuple(range(50, 801, 50))

#: Blocks, placement, learning rate, updates of warm-up, and the steps of the run if they are not the usual ones.
PARTS = (
    "4-post-0.015-0",
    "12-post-0.001-0",
    "12-post-0.001-400",
    "12-pre-0.001-0",
    "12-post-0.002-0",
    "12-post-0.002-400",
    "12-pre-0.002-0",
    "12-post-0.005-0",
    "12-post-0.005-400",
    "12-post-0.005-400-3200",
    "12-pre-0.005-0",
)


def steps_of(part: str) -> tuple[int, ...]:
    """The steps after which the loss of a part is recorded: as many as :data:`STEPS`, evenly over its run."""
    factor = int([*part.split("-"), str(STEPS[-1])][4]) // STEPS[-1]
    return tuple(factor * step for step in STEPS)


def train_one(part: str, seed: int, steps: int | None = None) -> npt.NDArray[np.float64]:
    """One training run.

    Args:
        part: blocks, placement, learning rate, updates of warm-up and steps, as in :data:`PARTS`.
        seed: of weights and batches; all parts get the same ones.
        steps: updates in the run, if not all of the part's.

    Returns:
        the training loss before every update, in nats, shape (steps,).
    """
    blocks, placement, rate, updates = part.split("-")[:4]
    length = steps or steps_of(part)[-1]
    return train(SETTING.task, placement, seed, float(rate), length, int(updates), int(blocks), SETTING.batch_size)[1]


def along(losses: npt.NDArray[np.float64], steps: tuple[int, ...] = STEPS) -> list[float]:
    """A run's recorded losses: the mean of the last 20 losses at each of the steps, in nats."""
    return [round(warmup.settled(losses[:step]), 4) for step in steps]


def take(anew: list[str], path: Path) -> None:
    """Measure the missing runs, and write the record after each.

    Args:
        anew: parts to measure again, or "all".
        path: the record.

    Raises:
        ValueError: an unknown part, or a record measured with other versions.
    """
    if unknown := set(anew) - {*PARTS, "all"}:
        raise ValueError(f"no part is named {sorted(unknown)}. Parts: {', '.join(PARTS)}; or all.")
    kept = stored.read(path) if path.exists() else {"parts": {}}
    parts = {part: rows for part, rows in kept["parts"].items() if part in PARTS and not {part, "all"} & set(anew)}
    if parts and kept["versions"] != versions():
        raise ValueError(f"the record was measured with {kept['versions']}, not {versions()}. Measure all anew.")
    for part in PARTS:
        rows = parts.setdefault(part, [])
        for seed in SEEDS[len(rows) :]:
            rows.append(along(train_one(part, seed), steps_of(part)))
            record = {
                **stored.origin("python -m subnorm_lab.experiments.longer_runs all"),
                "task": repr(SETTING.task),
                "batch_size": SETTING.batch_size,
                "chance": round(SETTING.task.chance, 4),
                "optimizer": "Adam(betas=(0.9, 0.999))",
                "seeds": list(SEEDS),
                "steps": list(STEPS),
                "parts": {name: parts[name] for name in PARTS if name in parts},
            }
            stored.write(path, record)
            print(f"{part}, seed {seed}: {rows[-1][-1]} nats", flush=True)


def recorded() -> dict[str, Any]:
    """The record, with each of its ``["parts"]`` as an array of shape (seeds, steps).

    Its ``["steps"]`` are those of a run of the usual length; :func:`steps_of` has those of any part.
    """
    record = stored.read(RECORD)
    record["parts"] = {part: np.array(rows) for part, rows in record["parts"].items()}
    return record


if __name__ == "__main__":
    torch.set_num_threads(1)
    take(sys.argv[1:], RECORD)
