"""How large is the gradient of the last layer, and does it depend on the depth of the stack below it?"""

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from subnorm.experiments.stack import Stack, causal_mask, draw_weights, random_tokens
from subnorm.torch import TransformerBlock

CLASSES = 64
SEQUENCES = 16


def last_layer(placement: str, depths: tuple[int, ...], seeds: range) -> dict[str, npt.NDArray[np.float64]]:
    """Size of the gradient of the last feed-forward's second weight matrix, at init, by depth.

    The loss is a cross-entropy with random targets, read off the normalised output by a random linear layer.
    "one_token" is the loss of a single token, the root mean square over tokens (one in each sequence);
    "average" is the loss averaged over all tokens of the batch.

    Args:
        placement: "pre" or "post".
        depths: numbers of blocks L.
        seeds: one draw of weights and tokens for each.

    Returns:
        "one_token" and "average", each of shape (seeds, depths): Frobenius norms.

    Source: Xiong et al. 2020, arXiv:2002.04745, theorem 1, about the averaged loss in a simpler stack:
    O(d sqrt(ln d)) for Post-LN, O(d sqrt(ln d / L)) for Pre-LN.
    """
    one_token, average = np.zeros((2, len(seeds), len(depths)))
    for row, seed in enumerate(seeds):
        for column, depth in enumerate(depths):
            generator = torch.Generator().manual_seed(seed)
            losses, weight = _losses(placement, depth, generator)
            last_token = [_norm(loss, weight) for loss in losses[:, -1]]
            one_token[row, column] = np.sqrt(np.mean(np.square(last_token)))
            average[row, column] = _norm(losses.mean(), weight)
    return {"one_token": one_token, "average": average}


def log_slopes(depths: tuple[int, ...], sizes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The exponent p of ``size ~ L**p``, fitted for each seed.

    Args:
        depths: numbers of blocks L.
        sizes: positive, shape (seeds, depths).

    Returns:
        exponents, shape (seeds,).
    """
    return np.polyfit(np.log(depths), np.log(sizes).T, 1)[0]


def _losses(placement: str, depth: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Loss of every token, shape (B, T), and the weight in question. Only the last block is differentiated."""
    x = random_tokens(generator, batch_size=SEQUENCES)  # (B, T, d)
    stack = Stack(depth, placement, generator)
    head = nn.Linear(x.shape[-1], CLASSES, dtype=x.dtype)
    draw_weights(head, generator)
    target = torch.randint(CLASSES, x.shape[:-1], generator=generator)  # (B, T)
    with torch.no_grad():
        below = x if depth == 1 else stack.states(x)[-2]
    last = stack.blocks[-1]
    assert isinstance(last, TransformerBlock)
    logits = head(stack.final_norm(last(below, causal_mask(x.shape[-2]))))  # (B, T, classes)
    losses = F.cross_entropy(logits.transpose(1, 2), target, reduction="none")
    return losses, last.feed_forward.linear2.weight


def _norm(loss: Tensor, weight: Tensor) -> float:
    (gradient,) = torch.autograd.grad(loss, weight, retain_graph=True)
    return float(gradient.norm())
