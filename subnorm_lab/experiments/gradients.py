"""How large is the gradient of each layer of an untrained stack, and how does it depend on depth?"""

import math

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from subnorm import _rules
from subnorm.torch import DecoderBlock, Stack
from subnorm_lab.experiments.deepnorm import constants, untrained
from subnorm_lab.experiments.stack import (
    causal_mask,
    draw_weights,
    mean_square,
    random_tokens,
    states,
    token_cosine,
)

CLASSES = 64
SEQUENCES = 8

#: Variance of a weight matrix by its numbers of inputs and outputs. "torch" is the default of nn.Linear; "square"
#: preserves the mean square for every shape, as Xavier's rule does for square matrices.
INITS = {
    "xavier": lambda inputs, outputs: 2 / (inputs + outputs),
    "he": lambda inputs, outputs: 2 / inputs,
    "torch": lambda inputs, outputs: 1 / (3 * inputs),
    "square": lambda inputs, outputs: 1 / inputs,
}

Sizes = dict[str, npt.NDArray[np.float64]]


def last_layer(kind: str, depths: tuple[int, ...], seeds: range) -> Sizes:
    """Size of the gradient of the last feed-forward's second weight matrix, at init, by depth.

    The loss is a cross-entropy with random targets, on a random linear layer of the normalised output.
    "one_token" is the loss of a single token, the root mean square over tokens (one in each sequence);
    "average" is the loss averaged over all tokens of the batch.

    Args:
        kind: "pre", "post" or "deepnorm".
        depths: numbers of blocks L. For "pre" and "post" a seed draws only the deepest stack, and the others are its
            lower parts; DeepNorm's weights depend on L, so a seed draws each stack.
        seeds: one draw of weights, tokens and targets for each.

    Returns:
        "one_token" and "average", each of shape (seeds, depths): Frobenius norms.

    Source: Xiong et al. 2020, arXiv:2002.04745, theorem 1, about the averaged loss in a simpler stack:
    O(d sqrt(ln d)) for Post-LN, O(d sqrt(ln d / L)) for Pre-LN.
    """
    one_token, average = np.zeros((2, len(seeds), len(depths)))
    for row, seed in enumerate(seeds):
        for columns in [[i] for i in range(len(depths))] if kind == "deepnorm" else [range(len(depths))]:
            generator = torch.Generator().manual_seed(seed)
            x = random_tokens(generator, batch_size=SEQUENCES)  # (B, T, d)
            deepest = max(depths[column] for column in columns)
            stack = untrained(kind, deepest, generator)
            head, target = _head(x, generator)
            weights, branches = _second_matrices(stack), stack.branches(causal_mask(x.shape[-2]))
            with torch.no_grad():
                stream = states(stack, x)
            for column in columns:
                last = depths[column] - 1
                weight, top = weights[last], stream[last]
                for k in (2 * last, 2 * last + 1):
                    top = stack.placement.step(top, branches[k], k)
                losses = _losses(stack.placement.end(top), head, target)  # (B, T)
                unit = _unit(kind, depths[column])
                last_token = [_norms(loss, [weight])[0] for loss in losses[:, -1]]
                one_token[row, column] = unit * np.sqrt(np.mean(np.square(last_token)))
                average[row, column] = unit * _norms(losses.mean(), [weight])[0]
    return {"one_token": one_token, "average": average}


def by_layer(
    kind: str,
    num_blocks: int,
    seeds: range,
    init: str = "xavier",
    sequences: int = 3,
    plain_average: bool = False,
) -> Sizes:
    """Size of the gradient of every block's second feed-forward matrix, at init. Losses as in :func:`last_layer`.

    Args:
        kind: "pre", "post" or "deepnorm".
        num_blocks: depth L.
        seeds: one draw of weights, tokens and targets for each.
        init: a key of :data:`INITS`, for every weight matrix of the stack. DeepNorm uses Xavier's.
        sequences: number of sequences B, and of single tokens.
        plain_average: set queries and keys to zero, so that attention takes the plain mean of the tokens that it sees.

    Returns:
        "one_token" and "average", each of shape (seeds, num_blocks): Frobenius norms, the bottom block first.

    Raises:
        ValueError: an unknown init.

    Source: Xiong et al. 2020, arXiv:2002.04745, section 3.3 and appendix F, who use ``init="square"`` and
    ``plain_average=True``, but no causal mask.
    """
    _rules.choice("init", init, INITS)
    one_token, average = np.zeros((2, len(seeds), num_blocks))
    for row, seed in enumerate(seeds):
        generator = torch.Generator().manual_seed(seed)
        x = random_tokens(generator, batch_size=sequences)  # (B, T, d)
        stack = _redraw(untrained(kind, num_blocks, generator), init)
        if plain_average:
            _silence_queries_and_keys(stack)
        head, target = _head(x, generator)
        losses = _losses(stack(x, causal_mask(x.shape[-2])), head, target)  # (B, T)
        weights = _second_matrices(stack)
        unit = _unit(kind, num_blocks)
        last_tokens = [_norms(loss, weights) for loss in losses[:, -1]]
        one_token[row] = unit * np.sqrt(np.mean(np.square(last_tokens), axis=0))
        average[row] = unit * np.array(_norms(losses.mean(), weights))
    return {"one_token": one_token, "average": average}


def in_a_decoder(placement: str, num_blocks: int, seeds: range, encoder: bool = True, sequences: int = 2) -> Sizes:
    """Size of the gradient of every decoder block's second feed-forward matrix, at init.

    By cross-attention the decoder reads the output of an encoder of the same placement and depth. All weights follow
    Xavier's rule; encoder and decoder start from independent random tokens. Losses as in :func:`last_layer`.

    Args:
        placement: "pre" or "post".
        num_blocks: depth L of the decoder, and of the encoder.
        seeds: one draw of weights, tokens and targets for each.
        encoder: if False, the memory is as many independent random tokens.
        sequences: number of sequences B, and of single tokens.

    Returns:
        "one_token" and "average", each of shape (seeds, num_blocks): Frobenius norms, the bottom block first.
    """
    one_token, average = np.zeros((2, len(seeds), num_blocks))
    for row, seed in enumerate(seeds):
        generator = torch.Generator().manual_seed(seed)
        x, memory = (random_tokens(generator, batch_size=sequences) for _ in range(2))  # (B, T, d) each
        stack = untrained(placement, num_blocks, generator)
        d = x.shape[-1]
        decoder = [DecoderBlock(d, 4, 4 * d, placement).double() for _ in range(num_blocks)]
        for block in decoder:
            for sublayer in (block.self_attn, block.multihead_attn, block.feed_forward):
                draw_weights(sublayer, generator)
        if encoder:
            with torch.no_grad():
                memory = stack(memory)  # an encoder has no mask
        y, mask = x, causal_mask(x.shape[-2])
        for block in decoder:
            y = block(y, memory, mask)
        head, target = _head(x, generator)
        losses = _losses(stack.placement.end(y), head, target)  # (B, T)
        weights = [block.feed_forward.linear2.weight for block in decoder]
        last_tokens = [_norms(loss, weights) for loss in losses[:, -1]]
        one_token[row] = np.sqrt(np.mean(np.square(last_tokens), axis=0))
        average[row] = _norms(losses.mean(), weights)
    return {"one_token": one_token, "average": average}


def block_by_block(kind: str, depths: tuple[int, ...], seeds: range) -> dict[int, Sizes]:
    """Size of the stream, similarity of its tokens and size of the gradient, block by block in untrained stacks.

    Args:
        kind: "pre", "post", "after_branch" or "deepnorm".
        depths: numbers of blocks L; lower parts of one stack, as in :func:`last_layer`.
        seeds: one draw of weights, tokens and targets for each.

    Returns:
        for each depth, "mean_square" and "token_cosine", shape (seeds, L + 1), at the input and after each block; and
        "one_token", shape (seeds, L), as in :func:`by_layer`, from two sequences.
    """
    found = {
        depth: {
            "mean_square": np.zeros((len(seeds), depth + 1)),
            "token_cosine": np.zeros((len(seeds), depth + 1)),
            "one_token": np.zeros((len(seeds), depth)),
        }
        for depth in depths
    }
    for row, seed in enumerate(seeds):
        for drawn in [(depth,) for depth in depths] if kind == "deepnorm" else [depths]:
            generator = torch.Generator().manual_seed(seed)
            stack = untrained(kind, max(drawn), generator)
            x = random_tokens(generator)  # (B, T, d)
            head, target = _head(x, generator)
            stream = states(stack, x)
            for depth in drawn:
                passed = [h.detach() for h in stream[: depth + 1]]
                found[depth]["mean_square"][row] = [mean_square(h) for h in passed]
                found[depth]["token_cosine"][row] = [token_cosine(h) for h in passed]
                losses = _losses(stack.placement.end(stream[depth]), head, target)  # (B, T)
                weights = _second_matrices(stack)[:depth]
                last_tokens = [_norms(loss, weights) for loss in losses[:2, -1]]
                found[depth]["one_token"][row] = _unit(kind, depth) * np.sqrt(np.mean(np.square(last_tokens), axis=0))
    return found


def log_slopes(depths: tuple[int, ...], sizes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The exponent p of ``size ~ L**p``, fitted for each seed.

    Args:
        depths: numbers of blocks L.
        sizes: positive, shape (seeds, depths).

    Returns:
        exponents, shape (seeds,).
    """
    return np.polyfit(np.log(depths), np.log(sizes).T, 1)[0]


def _second_matrices(stack: Stack) -> list[Tensor]:
    return [weight for name, weight in stack.matrices() if name == "down"]


def _unit(kind: str, depth: int) -> float:
    """DeepNorm's own W2 is alpha times as large as ours for the same function, so its gradient is 1/alpha of ours."""
    return 1 / constants(depth)[0] if kind == "deepnorm" else 1.0


@torch.no_grad()
def _redraw(stack: Stack, init: str) -> Stack:
    """Scale weights drawn by Xavier's rule to the variance of another rule."""
    for parameter in stack.parameters():
        if parameter.ndim == 2:
            outputs, inputs = parameter.shape
            parameter.mul_(math.sqrt(INITS[init](inputs, outputs) / INITS["xavier"](inputs, outputs)))
    return stack


@torch.no_grad()
def _silence_queries_and_keys(stack: Stack) -> None:
    for name, weight in stack.matrices():
        if name in ("query", "key"):
            nn.init.zeros_(weight)


def _head(x: Tensor, generator: torch.Generator) -> tuple[nn.Linear, Tensor]:
    """A random linear classifier for the output, and random targets, shape (B, T)."""
    head = nn.Linear(x.shape[-1], CLASSES, dtype=x.dtype)
    draw_weights(head, generator)
    return head, torch.randint(CLASSES, x.shape[:-1], generator=generator)


def _losses(y: Tensor, head: nn.Linear, target: Tensor) -> Tensor:
    """Loss of every token, shape (B, T)."""
    return F.cross_entropy(head(y).transpose(1, 2), target, reduction="none")


def _norms(loss: Tensor, weights: list[Tensor]) -> list[float]:
    return [float(gradient.norm()) for gradient in torch.autograd.grad(loss, weights, retain_graph=True)]
