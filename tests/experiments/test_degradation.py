"""Short training runs of plain and residual stacks, to check the code."""

import numpy as np
import pytest
import torch

from subnorm_lab.experiments.degradation import STACKS, batch, leave_one_out, train


def test_the_target_has_mean_zero_and_variance_one() -> None:
    source = torch.Generator().manual_seed(0)
    y = torch.cat([batch(source)[1] for _ in range(2000)])
    assert y.mean().item() == pytest.approx(0, abs=0.02)
    assert y.square().mean().item() == pytest.approx(1, rel=0.03)


def test_batch_norm_gives_every_feature_spread_one_over_the_examples() -> None:
    """So the first answer keeps its size at any depth, while the same plain stack shrinks to nothing."""
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


def test_leaving_out_a_block_of_a_residual_stack_hurts_far_less_than_one_of_a_plain_stack() -> None:
    whole, without = {}, {}
    for stack in ("plain", "residual"):
        whole[stack], without[stack] = leave_one_out(stack, "he", depth=8, steps=150, seeds=range(2))
        assert without[stack].shape == (8, 2)
        assert (whole[stack] < 0.7).all()
        assert (without[stack] > whole[stack]).all()
    assert (np.median(without["residual"], axis=0) < 0.85).all()
    assert (np.median(without["plain"], axis=0) > 1).all()


def test_a_block_that_was_left_out_is_the_identity() -> None:
    """Untrained, with one block: without it the answer is last(first(x)), for every stack."""
    plain, residual = (leave_one_out(stack, "he", depth=1, steps=1, lr=0.0)[1] for stack in ("plain", "residual"))
    np.testing.assert_array_equal(plain, residual)


def test_twenty_plain_blocks_from_torchs_default_are_as_stuck_after_a_thousand_steps_at_ten_times_the_rate() -> None:
    source = torch.Generator().manual_seed(0)
    always_zero = [batch(source)[1].square().mean().item() for _ in range(1000)]
    losses = train("plain", "torch", depth=20, steps=1000, lr=1e-2, seeds=[0])[0]
    assert losses[-100:].mean() == pytest.approx(np.mean(always_zero[-100:]), abs=0.01)
