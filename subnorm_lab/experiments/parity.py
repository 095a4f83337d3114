"""Is RMSNorm as good as LayerNorm? Pairs of small language models that differ only in the norm.

Deep dive 04a trains the pairs for 130 steps. Longer runs take minutes, so they are a record:

    python -m subnorm_lab.experiments.parity

writes ``records/parity.json`` beside this file. Deep dive 04a reads it, and compares the shortest runs with its own.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from subnorm_lab.experiments import stored
from subnorm_lab.experiments.language_model import Characters, LanguageModel, train

RECORD = stored.file("parity")

NORMS = ("layer", "rms")
SEEDS = range(8)
LENGTHS = (130, 400, 800)
TASK, BLOCKS, LR, BATCH_SIZE = Characters(), 2, 5e-3, 8

#: Student's t: the half-width of a 95 % interval in standard errors, by degrees of freedom.
T_95 = {4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def windows(text: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Cut a text into consecutive windows, with the next character of each as its target.

    Args:
        text: tokens, shape (N,), N greater than length.
        length: tokens in a window, T.

    Returns:
        tokens and targets, each of shape (B, T), B = (N - 1) // T; an incomplete last window is dropped.
    """
    rows = (len(text) - 1) // length
    cut = rows * length
    return text[:cut].view(rows, length), text[1 : cut + 1].view(rows, length)


@torch.no_grad()
def held_back_loss(model: LanguageModel, text: Tensor, shift: float = 0.0) -> float:
    """Mean cross-entropy, in nats, over a whole text, in windows of the model's length.

    Args:
        model: the model to evaluate.
        text: tokens, shape (N,).
        shift: added to every feature of the stream before the first block. It does not affect a Pre-LN model.
    """
    tokens, targets = windows(text, len(model.positions))
    scores = model.scores(model.embed(tokens) + shift)  # (B, T, vocabulary)
    return float(F.cross_entropy(scores.flatten(0, 1), targets.flatten()))


def paired_interval(one: npt.ArrayLike, other: npt.ArrayLike) -> tuple[float, float]:
    """Mean difference ``other - one`` of paired runs, and half the width of its 95 % interval (Student's t).

    ``half = t s / sqrt(n)``, with s the standard deviation of the n differences, divided by n - 1.

    Args:
        one: a number for each of 5 to 10 seeds.
        other: the same seeds, in the same order.

    Raises:
        ValueError: not two rows of equal length, or not 5 to 10 seeds.
    """
    first, second = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"pairs need two rows of equal length; got shapes {first.shape} and {second.shape}.")
    freedom = len(first) - 1
    if freedom not in T_95:
        raise ValueError(f"an interval needs 5 to 10 pairs; got {len(first)}. Run more seeds, or fewer.")
    difference = second - first
    return float(difference.mean()), T_95[freedom] * float(difference.std(ddof=1)) / math.sqrt(len(first))


def pair(seed: int, steps: int) -> list[float]:
    """Held-back loss of the two models of a pair after training, in nats, in the order of :data:`NORMS`."""
    models = [train(TASK, "pre", seed, LR, steps, 0, BLOCKS, BATCH_SIZE, norm)[0] for norm in NORMS]
    return [held_back_loss(model, TASK.text.validation) for model in models]


def take() -> dict[str, Any]:
    """Train all pairs, for each of :data:`LENGTHS`."""
    return {
        **stored.origin("python -m subnorm_lab.experiments.parity"),
        "task": repr(TASK),
        "norms": list(NORMS),
        "seeds": list(SEEDS),
        "blocks": BLOCKS,
        "batch_size": BATCH_SIZE,
        "learning_rate": LR,
        "held_back_loss": {
            str(steps): [[round(loss, 4) for loss in pair(seed, steps)] for seed in SEEDS] for steps in LENGTHS
        },
    }


def recorded() -> dict[str, Any]:
    """The record, with each ``["held_back_loss"][steps]`` as an array of shape (seeds, norms)."""
    record = stored.read(RECORD)
    record["held_back_loss"] = {int(steps): np.array(rows) for steps, rows in record["held_back_loss"].items()}
    return record


if __name__ == "__main__":
    torch.set_num_threads(1)
    stored.write(RECORD, take())
