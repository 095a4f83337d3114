"""Does BatchNorm compute the same in training and in evaluation? A small language model with BatchNorm for every norm.

In training, BatchNorm uses the statistics of the batch; in evaluation, running averages of them. The gap is the
difference in loss on the same text. Measuring all batch sizes takes minutes, so the results are a record:

    python -m subnorm_lab.experiments.batch_norm_gap

writes ``records/batch_norm_gap.json`` beside this file. Deep dive 03b reads it, and repeats a part of it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from subnorm.provenance import today, versions
from subnorm.torch import Placement
from subnorm.torch.placements import Norm
from subnorm_lab.experiments import stored
from subnorm_lab.experiments.language_model import Characters, LanguageModel, Task, fit, loss
from subnorm_lab.experiments.parity import windows
from subnorm_lab.experiments.stack import BUILT_IN, draw

RECORD = stored.file("batch_norm_gap")

SEEDS = range(5)
BATCH_SIZES = (1, 2, 4, 8, 32)
TASK, BLOCKS, D_MODEL, NUM_HEADS, STEPS, LR = Characters(), 2, 32, 2, 150, 5e-3

#: A longer training run, and its batch sizes.
LONGER, LONGER_SIZES = 600, (1, 4)

#: Windows of held-out text for evaluation.
WINDOWS = 64


class TokenBatchNorm(nn.BatchNorm1d):
    """torch's BatchNorm on tokens: the rows are all tokens of all sequences, (..., d) to the same shape."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.reshape(-1, x.shape[-1])).view_as(x)


#: The norms that are compared.
NORMS: dict[str, Norm] = {"layer": BUILT_IN["layer"], "batch": TokenBatchNorm}


def language_model(task: Task, norm: str, seed: int, num_blocks: int = BLOCKS) -> LanguageModel:
    """A Pre-LN language model whose norms are all of one kind; a seed draws the same weights for both kinds.

    Args:
        task: defines the vocabulary and the length.
        norm: "layer" or "batch".
        seed: draws the weights.
        num_blocks: depth L.

    Raises:
        ValueError: the norm is neither of the two.
    """
    if norm not in NORMS:
        raise ValueError(f"norm must be 'layer' or 'batch', got {norm!r}. Name one of them.")
    weights = torch.Generator().manual_seed(seed)
    stack = draw(Placement(D_MODEL, num_blocks, NORMS[norm]), NUM_HEADS, weights)
    return LanguageModel(task.vocabulary, task.length, stack, weights)


@torch.no_grad()
def loss_in_batches(model: LanguageModel, text: Tensor, batch_size: int, training: bool) -> float:
    """Mean loss, in nats, over a text in batches, in training or evaluation mode. The model does not change.

    Args:
        model: the model to evaluate.
        text: tokens, shape (N,).
        batch_size: windows in a batch; an incomplete last batch is dropped.
        training: True to normalise each batch by its own statistics, False to use the running averages.
    """
    mode, before = model.training, {name: value.clone() for name, value in model.state_dict().items()}
    model.train(training)
    tokens, targets = windows(text, len(model.positions))
    full = len(tokens) // batch_size * batch_size
    batches = zip(tokens[:full].split(batch_size), targets[:full].split(batch_size), strict=True)
    losses = [loss(model, x, y).item() for x, y in batches]
    model.load_state_dict(before)  # training mode changed the running averages
    model.train(mode)
    return float(np.mean(losses))


def held_back(norm: str, batch_size: int, seed: int, steps: int = STEPS) -> tuple[float, float]:
    """Train on the text, then evaluate the held-out text in both modes.

    Args:
        norm: "layer" or "batch".
        batch_size: sequences in a batch, in training and evaluation.
        seed: draws the weights and the batches; both norms get the same ones.
        steps: number of updates.

    Returns:
        the loss in training mode and in evaluation mode, in nats.
    """
    model = language_model(TASK, norm, seed)
    fit(model, TASK, seed, LR, steps, batch_size=batch_size)
    text = TASK.text.validation[: WINDOWS * TASK.length + 1]
    in_training, in_evaluation = (loss_in_batches(model, text, batch_size, mode) for mode in (True, False))
    return in_training, in_evaluation


def take() -> dict[str, Any]:
    """Measure every norm at every batch size with every seed."""
    return {
        **stored.origin("python -m subnorm_lab.experiments.batch_norm_gap"),
        "task": repr(TASK),
        "optimizer": f"Adam, learning rate {LR}",
        "steps": STEPS,
        "blocks": BLOCKS,
        "seeds": list(SEEDS),
        "batch_sizes": list(BATCH_SIZES),
        "losses": _losses(BATCH_SIZES, STEPS),
        "longer": {
            "date": today(),
            "versions": versions(),
            "steps": LONGER,
            "batch_sizes": list(LONGER_SIZES),
            "losses": _losses(LONGER_SIZES, LONGER),
        },
    }


def _losses(batch_sizes: Sequence[int], steps: int) -> dict[str, list[list[list[float]]]]:
    """For each norm, shape (seeds, batch sizes, 2)."""
    return {
        norm: [[[round(x, 4) for x in held_back(norm, size, seed, steps)] for size in batch_sizes] for seed in SEEDS]
        for norm in NORMS
    }


def recorded() -> dict[str, Any]:
    """The record; ``["losses"][norm]`` as an array of shape (seeds, batch sizes, 2): training mode, evaluation mode.

    The same under ``["longer"]``, for the longer runs.
    """
    record = stored.read(RECORD)
    for part in (record, record["longer"]):
        part["losses"] = {norm: np.array(losses) for norm, losses in part["losses"].items()}
    return record


if __name__ == "__main__":
    torch.set_num_threads(1)
    stored.write(RECORD, take())
