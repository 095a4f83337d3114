"""Pooling heads: closed forms, mixing between steps, and short runs to check the code."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from subnorm_lab.experiments import pooling
from subnorm_lab.experiments.pooling import HEADS, AttentionPool, LastStep, MeanPool, Regressor


def steps(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("head", HEADS)
def test_weights_sum_to_one_and_pool_the_steps(head: str) -> None:
    pool, h = HEADS[head](6).double(), steps(3, 5, 6)
    weights = pool.weights(h)
    assert weights.shape == (3, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(pool(h), torch.einsum("bt,btd->bd", weights, h))


def test_mean_and_last_step_are_what_their_names_say() -> None:
    h = steps(3, 5, 6)
    torch.testing.assert_close(MeanPool(6)(h), h.mean(1))
    torch.testing.assert_close(LastStep(6)(h), h[:, -1])


def test_attention_starts_as_the_mean_and_can_pick_one_step() -> None:
    h = torch.tensor([2.0, 4, 6, 12], dtype=torch.float64)[:, None]
    pool = AttentionPool(1).double()
    assert pool(h).item() == pytest.approx(6)
    pool.query.data.fill_(100)
    assert pool(h).item() == pytest.approx(12)
    pool.query.data.fill_(math.log(3) / 6)  # 6 above 6 counts three times as much
    assert (pool.weights(h)[3] / pool.weights(h)[2]).item() == pytest.approx(3)


def test_without_mixing_no_step_hears_of_another() -> None:
    x = steps(2, 5, 3)
    changed = x.clone()
    changed[:, 1] += 1
    for mixing in (False, True):
        model = Regressor(3, 5, "mean", torch.Generator().manual_seed(0), mixing)
        moved = (model.encode(changed) - model.encode(x)).abs().amax((0, 2)) > 1e-9
        assert moved.tolist() == ([True] * 5 if mixing else [False, True, False, False, False])


def test_all_heads_start_from_the_same_encoder_which_ends_in_a_norm() -> None:
    x = steps(2, 5, 3)
    states = [Regressor(3, 5, head, torch.Generator().manual_seed(4)).encode(x) for head in HEADS]
    assert all(torch.equal(state, states[0]) for state in states)
    torch.testing.assert_close(states[0].mean(-1), torch.zeros(2, 5, dtype=torch.float64))


def last_reading(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    x = torch.randn(n, 4, 2, generator=generator, dtype=torch.float64)
    return x, x[:, -1, 0]


def test_the_head_that_looks_in_the_right_place_learns() -> None:
    test = last_reading(500, torch.Generator().manual_seed(9))
    right, wrong = (pooling.train(last_reading, head, 0, mixing=False, steps=80)[0] for head in ("last", "mean"))
    assert pooling.error(right, *test) < 0.5 < pooling.error(wrong, *test)


def test_training_is_seeded_and_all_heads_meet_the_same_examples() -> None:
    one, same, other, attention = (
        pooling.train(last_reading, head, seed, steps=3)[1]
        for head, seed in (("mean", 0), ("mean", 0), ("mean", 1), ("attention", 0))
    )
    np.testing.assert_array_equal(one, same)
    assert abs(one - other).max() > 1e-3
    assert attention[0] == pytest.approx(one[0])  # same weights, same batch, and the query starts at 0


def test_least_squares_is_exact_where_the_answer_is_linear_and_useless_where_it_is_a_product() -> None:
    train, test = (last_reading(200, torch.Generator().manual_seed(seed)) for seed in (0, 1))
    assert pooling.linear_error(train, test) < 1e-9
    x, y = test
    product = x[:, 0, 0] * x[:, 1, 0]
    assert pooling.linear_error((train[0], train[0][:, 0, 0] * train[0][:, 1, 0]), (x, product)) > 0.8
    assert pooling.linear_error((train[0], train[1] + 5), (x, y + 5)) < 1e-9  # there is a constant


@pytest.mark.parametrize("bad", [{"sensors": 0}, {"length": 0}, {"head": "max"}])
def test_bad_input_is_named(bad: dict[str, object]) -> None:
    arguments = {"sensors": 2, "length": 4, "head": "mean", **bad}
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must be"):
        Regressor(**arguments, generator=torch.Generator())  # type: ignore[arg-type]
