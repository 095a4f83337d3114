"""What a small language model writes while it trains: noise at first, then words, then sentences like those it read.

The text that it reads is short, so it learns part of it by heart: the record has the loss on held-out text as well.
The runs take minutes:

    python -m subnorm_lab.experiments.learning_to_write all

writes ``records/learning_to_write.json`` beside this file, after each run. Without ``all`` the command makes only the
missing runs, so you can stop and resume it. Chapter 06 reads the record, and repeats the beginning of a run.
"""

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from subnorm_lab.experiments import stored
from subnorm_lab.experiments.language_model import Characters, LanguageModel, untrained, updates
from subnorm_lab.experiments.parity import held_back_loss
from subnorm_lab.stories import sample

RECORD = stored.file("learning_to_write")

TASK, BLOCKS, D_MODEL, LR, BATCH_SIZE = Characters(64), 3, 64, 2e-3, 8
SEEDS = range(2)
PROMPT, LENGTH, TEMPERATURE = "The ", 200, 0.7

#: The updates after which the model writes. The last one is the length of a run.
STEPS = (0, 30, 100, 300, 1000, 3000, 6000)

Stage = dict[str, Any]


@torch.no_grad()
def generate(model: LanguageModel) -> str:
    """The prompt, and how the model goes on: characters sampled at the temperature, always with the same noise."""
    rng = np.random.default_rng(0)
    tokens = TASK.text.encode(PROMPT)
    while len(tokens) < LENGTH:
        scores = model(tokens[None, -TASK.length :])[0, -1].numpy()  # (V,)
        tokens = torch.cat([tokens, torch.tensor([sample(scores, TEMPERATURE, rng)])])
    return TASK.text.decode(tokens)


def stages(seed: int) -> Iterator[Stage]:
    """Train a model, and stop at each of :data:`STEPS`.

    Args:
        seed: of the weights and the batches.

    Yields:
        "training" and "held_back": the loss on the whole training text and on the held-out text, in nats; "text":
        what the model writes.
    """
    weights = torch.Generator().manual_seed(seed)
    model = untrained(TASK.vocabulary, TASK.length, "pre", weights, BLOCKS, D_MODEL)
    training, done = updates(model, TASK, seed, LR, batch_size=BATCH_SIZE), 0
    for step in STEPS:
        for _loss in islice(training, step - done):
            done += 1
        yield {
            "training": round(held_back_loss(model, TASK.text.train), 4),
            "held_back": round(held_back_loss(model, TASK.text.validation), 4),
            "text": generate(model),
        }


def take(path: Path, anew: bool) -> None:
    """Make the missing runs, and write the record after each.

    Args:
        path: the record.
        anew: make all runs.

    Raises:
        ValueError: a record made with other versions or settings.
    """
    record = {
        **stored.origin("python -m subnorm_lab.experiments.learning_to_write all"),
        "task": repr(TASK),
        "blocks": BLOCKS,
        "d_model": D_MODEL,
        "learning_rate": LR,
        "batch_size": BATCH_SIZE,
        "optimizer": "Adam(betas=(0.9, 0.999))",
        "temperature": TEMPERATURE,
        "seeds": list(SEEDS),
        "steps": list(STEPS),
    }
    kept = {"runs": []} if anew or not path.exists() else stored.read(path)
    runs: list[list[Stage]] = kept["runs"]
    if changed := [name for name in record if runs and name != "date" and kept[name] != record[name]]:
        raise ValueError(f"the record was made with another entry {', '.join(changed)}. Make all runs anew.")
    for seed in SEEDS[len(runs) :]:
        runs.append(list(stages(seed)))
        stored.write(path, {**record, "runs": runs})
        print(f"seed {seed}: {runs[-1][-1]['training']} nats on the training text", flush=True)


def recorded() -> dict[str, Any]:
    """The record, with each loss as an array of shape (seeds, steps) in "training" and "held_back"."""
    record = stored.read(RECORD)
    for name in ("training", "held_back"):
        record[name] = np.array([[stage[name] for stage in run] for run in record["runs"]])
    return record


if __name__ == "__main__":
    torch.set_num_threads(1)
    take(RECORD, "all" in sys.argv[1:])
