"""Is RMSNorm as good as LayerNorm? Pairs of small language models that differ in the norm and in nothing else."""

import math

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from subnorm.experiments.language_model import LanguageModel

#: Student's t: how many standard errors a 95 % interval reaches to either side, by degrees of freedom.
T_95 = {4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def windows(text: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """A text cut into windows side by side, and each character's successor.

    Args:
        text: tokens, shape (N,), N greater than length.
        length: tokens in a window, T.

    Returns:
        tokens and targets, each of shape (B, T), B = (N - 1) // T; what is left at the end is dropped.
    """
    rows = (len(text) - 1) // length
    cut = rows * length
    return text[:cut].view(rows, length), text[1 : cut + 1].view(rows, length)


@torch.no_grad()
def held_back_loss(model: LanguageModel, text: Tensor, shift: float = 0.0) -> float:
    """Mean cross-entropy, in nats, over a whole text, in windows as long as the model reads.

    Args:
        model: what to judge.
        text: tokens, shape (N,).
        shift: added to every feature of the stream before the first block. A Pre-LN model does not feel it.
    """
    tokens, targets = windows(text, len(model.positions))
    scores = model.head(model.stack(model.embed(tokens) + shift))  # (B, T, vocabulary)
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
