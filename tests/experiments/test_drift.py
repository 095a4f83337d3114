"""Mean, spread and common share of plain stacks: closed forms of one layer, and differences between nets."""

import math

import numpy as np
import pytest
import torch

from subnorm_lab.experiments.drift import ACTIVATIONS, describe, follow

WIDE = {"depth": 1, "d": 256, "examples": 128, "seeds": range(3)}


def test_a_layer_described_by_hand() -> None:
    same = torch.tensor([[2.0, 4.0, 6.0, 12.0]] * 3)
    assert describe(same) == pytest.approx((6, math.sqrt(14), 1))
    opposite = torch.tensor([[2.0, 4.0], [-2.0, -4.0]])
    assert describe(opposite) == pytest.approx((0, math.sqrt(10), 0))


@pytest.mark.parametrize(("activation", "variance"), [("linear", 4.0), ("linear", 0.25)])
def test_a_linear_layer_multiplies_the_spread_and_keeps_the_mean_at_zero(activation: str, variance: float) -> None:
    one = follow(activation, variance, **WIDE)  # type: ignore[arg-type]
    np.testing.assert_allclose(one.std[:, 1] / one.std[:, 0], math.sqrt(variance), rtol=0.03)
    np.testing.assert_allclose(one.mean[:, 1] / one.std[:, 1], 0, atol=0.03)


def test_a_relu_shifts_the_mean_once() -> None:
    one = follow("relu", 2.0, **WIDE)  # type: ignore[arg-type]
    np.testing.assert_allclose(one.mean[:, 1] / one.std[:, 1], 1 / math.sqrt(math.pi - 1), rtol=0.03)
    # of independent Gaussian rows, the mean square of relu's mean is 1 / pi of that of relu
    np.testing.assert_allclose(one.common[:, 1], 1 / math.pi, rtol=0.05)


def test_the_size_of_the_weights_moves_no_ratio_of_a_relu_net() -> None:
    small, large = (follow("relu", variance, depth=8, d=32, seeds=[3]) for variance in (1.0, 9.0))
    np.testing.assert_allclose(large.std[:, 8] / small.std[:, 8], 3**8, rtol=1e-10)
    np.testing.assert_allclose(large.mean / large.std, small.mean / small.std, rtol=1e-10)
    np.testing.assert_allclose(large.common, small.common, rtol=1e-10)


def test_only_relu_makes_the_examples_alike() -> None:
    ends = {name: follow(name, 1.0, depth=10, d=64, examples=32, seeds=range(3)).common[:, -1] for name in ACTIVATIONS}
    assert ends["relu"].min() > 0.6
    assert max(ends["linear"].max(), ends["tanh"].max()) < 0.2


def test_a_seed_is_alone() -> None:
    both = follow("relu", 2.0, depth=2, d=8, examples=4, seeds=[3, 5])
    np.testing.assert_array_equal(follow("relu", 2.0, depth=2, d=8, examples=4, seeds=[5]).std, both.std[1:])


@pytest.mark.parametrize("bad", [{"activation": "gelu"}, {"variance": -1}, {"depth": 0}, {"d": 0}, {"examples": 0}])
def test_bad_input_is_named(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must be .* got"):
        follow(**{"activation": "relu", "variance": 2.0, **bad})  # type: ignore[arg-type]
