"""From a sequence to one number: three ways to pool the steps of a window, on the same small encoder.

The encoder is one Pre-LN block with its final norm. With ``mixing=False`` it has no attention, so no information
moves between the steps before the head. Everything is in float64.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from subnorm import _rules
from subnorm.torch import FeedForward, MultiHeadAttention, pre_ln
from subnorm_lab.experiments.stack import draw_weights

#: Draws n examples: windows, shape (n, T, sensors), and targets, shape (n,).
Sample = Callable[[int, torch.Generator], tuple[Tensor, Tensor]]


class MeanPool(nn.Module):
    """The mean over the steps: ``h.mean(-2)``."""

    def __init__(self, d_model: int) -> None:
        super().__init__()

    def weights(self, h: Tensor) -> Tensor:
        """The weight of each step: (..., T, d) to (..., T), summing to 1."""
        return torch.full_like(h[..., 0], 1 / h.shape[-2])

    def forward(self, h: Tensor) -> Tensor:
        """(..., T, d) to (..., d)."""
        return (self.weights(h)[..., None] * h).sum(-2)


class LastStep(MeanPool):
    """Only the last step: ``h[..., -1, :]``."""

    def weights(self, h: Tensor) -> Tensor:
        weights = torch.zeros_like(h[..., 0])
        weights[..., -1] = 1
        return weights


class AttentionPool(MeanPool):
    """Attention with one learned query q: the mean over the steps with weights ``softmax(h q)``.

    The query starts at 0, so training starts from the plain mean.

    Source: Ilse, Tomczak, Welling 2018, arXiv:1802.04712 (who use one more layer for the score).
    """

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model)
        self.query = nn.Parameter(torch.zeros(d_model))

    def weights(self, h: Tensor) -> Tensor:
        return (h @ self.query).softmax(-1)


HEADS: dict[str, type[MeanPool]] = {"mean": MeanPool, "last": LastStep, "attention": AttentionPool}


class Regressor(nn.Module):
    """Windows to numbers: a linear map and positions, one Pre-LN block, a norm, a pool, a linear map.

    Args:
        sensors: readings at each step.
        length: steps in a window, T.
        head: "mean", "last" or "attention".
        generator: draws the weights, the same for all heads.
        mixing: whether the block has attention.
        d_model: number of features.

    Raises:
        ValueError: an argument breaks its rule; the message says which.
    """

    def __init__(
        self, sensors: int, length: int, head: str, generator: torch.Generator, mixing: bool = True, d_model: int = 16
    ) -> None:
        super().__init__()
        _rules.size("sensors", sensors)
        _rules.size("length", length)
        _rules.choice("head", head, HEADS)
        self.embed = nn.Linear(sensors, d_model)
        self.attention = MultiHeadAttention(d_model, 2) if mixing else None
        self.norm1 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, 2 * d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm = nn.LayerNorm(d_model)
        self.pool = HEADS[head](d_model)
        self.out = nn.Linear(d_model, 1)
        draw_weights(self.double(), generator)
        self.positions = nn.Parameter(0.5 * torch.randn(length, d_model, generator=generator, dtype=torch.float64))

    def encode(self, x: Tensor) -> Tensor:
        """Windows (..., T, sensors) to normalised steps (..., T, d)."""
        h = self.embed(x) + self.positions
        if self.attention is not None:
            h = pre_ln(h, self.attention, self.norm1)
        return self.norm(pre_ln(h, self.feed_forward, self.norm2))

    def forward(self, x: Tensor) -> Tensor:
        """Windows (..., T, sensors) to one number each, shape (...)."""
        return self.out(self.pool(self.encode(x)))[..., 0]


def train(
    sample: Sample, head: str, seed: int, mixing: bool = True, steps: int = 150, lr: float = 3e-2, batch_size: int = 16
) -> tuple[Regressor, npt.NDArray[np.float64]]:
    """Fit new examples at every step with Adam; the learning rate falls linearly to 0.

    Args:
        sample: draws the examples.
        head: "mean", "last" or "attention".
        seed: of the weights and the examples, which are the same for all heads.
        mixing: whether the block has attention.
        steps: number of updates.
        lr: learning rate at the start.
        batch_size: windows in a batch.

    Returns:
        the model, and the mean squared error before every update, shape (steps,).
    """
    weights, data = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(1000 + seed)
    sensors_shape = sample(1, torch.Generator())[0].shape
    model = Regressor(sensors_shape[-1], sensors_shape[-2], head, weights, mixing)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)
    losses = np.empty(steps)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = lr * (1 - step / steps)
        x, y = sample(batch_size, data)
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses[step] = loss.item()
    return model, losses


@torch.no_grad()
def error(model: Regressor, x: Tensor, y: Tensor) -> float:
    """Root mean squared error, in the unit of y."""
    return float((model(x) - y).square().mean().sqrt())


def linear_error(train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]) -> float:
    """Test error (root mean squared) of a least-squares fit to all readings of a window and a constant."""
    (x, y), (x_test, y_test) = train, test

    def design_matrix(x: Tensor) -> npt.NDArray[np.float64]:
        return np.column_stack([x.flatten(1).numpy(), np.ones(len(x))])

    solution = np.linalg.lstsq(design_matrix(x), y.numpy(), rcond=None)[0]
    return float(np.sqrt(np.mean((design_matrix(x_test) @ solution - y_test.numpy()) ** 2)))
