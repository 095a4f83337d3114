"""A causal transformer that trains in seconds, and two tasks for it: copying, and predicting real text."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from subnorm import _rules
from subnorm.torch import Stack
from subnorm_lab.experiments import stack as stacks
from subnorm_lab.experiments import text
from subnorm_lab.experiments.stack import causal_mask, draw_weights

IGNORE = -100  # the target that torch's cross-entropy ignores


class Task(Protocol):
    """A training task: a vocabulary, and batches of tokens with their targets."""

    @property
    def vocabulary(self) -> int:
        """Number of different tokens."""

    @property
    def length(self) -> int:
        """Tokens in a sequence, T."""

    @property
    def chance(self) -> float:
        """The loss, in nats, of a model that ignores its input."""

    def batch(self, batch_size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Tokens and targets, each of shape (B, T); a target of IGNORE is not scored."""


@dataclass(frozen=True)
class Copy:
    """Repeat a random string: ``b d a | b d a``. Only the second half counts.

    Attributes:
        symbols: number of different symbols; the separator is one more token.
        string: length of the string.
    """

    symbols: int = 15
    string: int = 16

    @property
    def vocabulary(self) -> int:
        return self.symbols + 1

    @property
    def length(self) -> int:
        return 2 * self.string

    @property
    def chance(self) -> float:
        return math.log(self.symbols)

    def batch(self, batch_size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        string = torch.randint(self.symbols, (batch_size, self.string), generator=generator)
        separator = torch.full((batch_size, 1), self.symbols)
        sequence = torch.cat([string, separator, string], dim=1)  # (B, T + 1)
        target = sequence[:, 1:].clone()
        target[:, : self.string] = IGNORE
        return sequence[:, :-1], target


@dataclass(frozen=True)
class Characters:
    """Predict the next character of the training text.

    Attributes:
        length: characters in a sequence.
    """

    length: int = 32

    @cached_property
    def text(self) -> text.Text:
        return text.load()

    @property
    def vocabulary(self) -> int:
        return len(self.text.characters)

    @property
    def chance(self) -> float:
        return self.text.unigram_loss()

    def batch(self, batch_size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return text.batch(self.text.train, batch_size, self.length, generator)


class LanguageModel(nn.Module):
    """Token and position embeddings, a stack of blocks, and a linear layer that scores the next token.

    Args:
        vocabulary: number of different tokens.
        length: longest sequence, T.
        stack: maps the stream to the features that the last layer reads.
        generator: draws the other weights: Xavier-normal; embeddings have standard deviation 1 for tokens, 0.5 for
            positions.

    Raises:
        ValueError: an argument breaks its rule; the message says which.
    """

    def __init__(self, vocabulary: int, length: int, stack: Stack, generator: torch.Generator) -> None:
        super().__init__()
        _rules.size("vocabulary", vocabulary)
        _rules.size("length", length)
        d_model = stack.placement.d_model
        self.stack = stack
        self.head = nn.Linear(d_model, vocabulary, dtype=torch.float64)
        draw_weights(self.head, generator)
        self.tokens = nn.Parameter(torch.randn(vocabulary, d_model, generator=generator, dtype=torch.float64))
        self.positions = nn.Parameter(0.5 * torch.randn(length, d_model, generator=generator, dtype=torch.float64))

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens, shape (B, T), to scores of the next token, shape (B, T, vocabulary)."""
        return self.scores(self.embed(tokens))

    def embed(self, tokens: Tensor) -> Tensor:
        """The stream before the first block: token plus position embedding, shape (B, T, d_model)."""
        return self.tokens[tokens] + self.positions[: tokens.shape[1]]

    def scores(self, x: Tensor) -> Tensor:
        """Map the stream before the first block, shape (B, T, d_model), to the scores."""
        return self.head(self.stack(x, causal_mask(x.shape[1])))

    def states(self, tokens: Tensor) -> list[Tensor]:
        """The stream before the first block and after each, before the final norm: each of shape (B, T, d_model)."""
        return stacks.states(self.stack, self.embed(tokens))


def untrained(
    vocabulary: int,
    length: int,
    placement: str,
    generator: torch.Generator,
    num_blocks: int = 4,
    d_model: int = 32,
    norm: str = "layer",
) -> LanguageModel:
    """A model on :func:`~subnorm_lab.experiments.stack.untrained` with two heads; arguments and errors as there."""
    stack = stacks.untrained(placement, num_blocks, generator, d_model, 2, norm)
    return LanguageModel(vocabulary, length, stack, generator)


def loss(model: nn.Module, tokens: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy, in nats, over the tokens that count."""
    return F.cross_entropy(model(tokens).transpose(1, 2), targets, ignore_index=IGNORE)


def learning_rate(step: int, lr: float, warmup: int) -> float:
    """The learning rate at a step, counted from 0: linear up to lr over `warmup` steps, then constant."""
    return lr * min(1.0, (step + 1) / (warmup + 1))


def train(
    task: Task,
    placement: str,
    seed: int,
    lr: float,
    steps: int,
    warmup: int = 0,
    num_blocks: int = 4,
    batch_size: int = 16,
    norm: str = "layer",
) -> tuple[LanguageModel, npt.NDArray[np.float64]]:
    """Train a new model with Adam (betas 0.9 and 0.999, no weight decay, no clipping).

    Args:
        task: the training task.
        placement: "pre" or "post".
        seed: draws the weights and the batches; both placements and both norms see the same batches.
        lr: learning rate after the warm-up.
        steps: number of updates.
        warmup: updates over which the learning rate rises linearly; 0 for none.
        num_blocks: depth L.
        batch_size: sequences in a batch.
        norm: "layer" or "rms"; both start from the same weights.

    Returns:
        the model, and the training loss before every update, shape (steps,).
    """
    weights = torch.Generator().manual_seed(seed)
    model = untrained(task.vocabulary, task.length, placement, weights, num_blocks, norm=norm)
    return model, fit(model, task, seed, lr, steps, warmup, batch_size)


def fit(
    model: LanguageModel, task: Task, seed: int, lr: float, steps: int, warmup: int = 0, batch_size: int = 16
) -> npt.NDArray[np.float64]:
    """Train an existing model in place; otherwise as :func:`train`.

    Args:
        model: the model to train.
        task: the training task.
        seed: draws the batches.
        lr: learning rate after the warm-up.
        steps: number of updates.
        warmup: updates over which the learning rate rises linearly; 0 for none.
        batch_size: sequences in a batch.

    Returns:
        the training loss before every update, shape (steps,).
    """
    return np.fromiter(islice(updates(model, task, seed, lr, warmup, batch_size), steps), float, steps)


def updates(
    model: LanguageModel, task: Task, seed: int, lr: float, warmup: int = 0, batch_size: int = 16
) -> Iterator[float]:
    """Make the updates of :func:`fit` one at a time, without end, and yield the training loss before each."""
    data = torch.Generator().manual_seed(1000 + seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)
    for step in count():
        optimizer.param_groups[0]["lr"] = learning_rate(step, lr, warmup)
        batch_loss = loss(model, *task.batch(batch_size, data))
        optimizer.zero_grad()
        batch_loss.backward()
        optimizer.step()
        model.stack.placement.after_update(model.stack)
        yield batch_loss.item()
