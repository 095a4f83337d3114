"""Training plain and residual stacks side by side: short runs that show the machinery is right."""

import numpy as np
import pytest
import torch

from subnorm.experiments.degradation import STACKS, batch, train


def test_the_target_has_mean_zero_and_variance_one() -> None:
    source = torch.Generator().manual_seed(0)
    y = torch.cat([batch(source)[1] for _ in range(2000)])
    assert y.mean().item() == pytest.approx(0, abs=0.02)
    assert y.square().mean().item() == pytest.approx(1, rel=0.03)


def test_batch_norm_gives_every_feature_spread_one_over_the_examples() -> None:
    """So the first answer keeps its size at any depth, where the same plain stack has shrunk to nothing."""
    source = torch.Generator().manual_seed(0)
    always_zero = batch(source)[1].square().mean().item()
    first = train("batch", "torch", depth=40, steps=1)[:, 0]
    assert (np.abs(first - always_zero) > 0.1).all()
    np.testing.assert_allclose(first, train("batch", "he", depth=40, steps=1)[:, 0], rtol=0.05)  # eps


@pytest.mark.parametrize("stack", STACKS)
def test_a_shallow_network_learns(stack: str) -> None:
    losses = train(stack, "he", depth=2, steps=100, lr=1e-2)
    assert losses.shape == (5, 100)
    assert (losses[:, -20:].mean(axis=1) < 0.6).all()


def test_a_seed_trains_alone_as_it_does_among_others() -> None:
    together = train("residual", "he", depth=3, steps=20, seeds=[4, 7])
    np.testing.assert_allclose(train("residual", "he", depth=3, steps=20, seeds=[7]), together[1:], rtol=1e-4)


def test_the_plain_stack_has_no_skip_path() -> None:
    """Forty blocks that each shrink the signal leave nothing of it: the first answer is 0 for every example."""
    source = torch.Generator().manual_seed(0)
    always_zero = batch(source)[1].square().mean().item()
    np.testing.assert_allclose(train("plain", "torch", depth=40, steps=1)[:, 0], always_zero, rtol=1e-5)
    assert (np.abs(train("residual", "torch", depth=40, steps=1)[:, 0] - always_zero) > 0.1).all()


def test_fifty_plain_blocks_learn_from_he_only_at_the_lower_rate() -> None:
    """The solution of chapter 01's exercise on the learning rate."""
    source = torch.Generator().manual_seed(0)
    always_zero = np.mean([batch(source)[1].square().mean().item() for _ in range(100)][-20:])
    low, high = (train("plain", "he", 50, 100, lr, range(2))[:, -20:].mean(axis=1) for lr in (1e-3, 4e-3))
    assert (low < always_zero - 0.04).all()
    np.testing.assert_allclose(high, always_zero, atol=0.02)


@pytest.mark.parametrize("bad", [{"stack": "dense"}, {"init": "zeros"}, {"depth": 0}])
def test_bad_input_is_named(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must be .* got"):
        train(**{"stack": "plain", "init": "he", "depth": 2, **bad})  # type: ignore[arg-type]
