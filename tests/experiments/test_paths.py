"""The paths of a residual stack, against the network and against counting."""

import math

import numpy as np
import pytest
import torch

from subnorm.torch import residual
from subnorm_lab.experiments.paths import binomial, branch_jacobians, enumerate_paths, sum_by_length
from subnorm_lab.experiments.signal import weights

DEPTH, D, SEEDS = 6, 5, (0, 3)
JACOBIANS, X = branch_jacobians("he", DEPTH, scale=0.7, d=D, seeds=SEEDS)


def network(x: torch.Tensor) -> torch.Tensor:
    """The stack of branch_jacobians, for the second seed."""
    for w in 0.7 * weights("he", DEPTH, D, SEEDS)[:, 1]:
        x = residual(x, lambda h, w=w: w @ torch.relu(h))
    return x


def test_all_paths_together_are_the_networks_jacobian() -> None:
    _, products = enumerate_paths(JACOBIANS[:, 1])
    expected = torch.autograd.functional.jacobian(network, torch.from_numpy(X[1])).numpy()
    np.testing.assert_allclose(products.sum(axis=0), expected, rtol=1e-12, atol=1e-12)


def test_there_are_as_many_paths_of_each_length_as_subsets() -> None:
    lengths, products = enumerate_paths(JACOBIANS)
    assert products.shape == (2**DEPTH, len(SEEDS), D, D)
    assert np.bincount(lengths).tolist() == [math.comb(DEPTH, k) for k in range(DEPTH + 1)]


def test_order_matters_and_later_blocks_stand_on_the_left() -> None:
    first, second = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 2.0]])
    lengths, products = enumerate_paths(np.stack([first, second]))
    np.testing.assert_array_equal(products[lengths == 2][0], second @ first)
    assert not np.array_equal(second @ first, first @ second)


def test_the_sums_by_length_are_those_of_the_listed_paths() -> None:
    lengths, products = enumerate_paths(JACOBIANS)
    listed = [products[lengths == k].sum(axis=0) for k in range(DEPTH + 1)]
    np.testing.assert_allclose(sum_by_length(JACOBIANS), listed, rtol=1e-12, atol=1e-12)


def test_shares_by_length_follow_the_binomial() -> None:
    jacobians, _ = branch_jacobians("he", 8, d=64, seeds=range(8))
    energy = np.square(sum_by_length(jacobians)).sum(axis=(-1, -2))  # (length, seed)
    shares = (energy / energy.sum(axis=0)).mean(axis=1)
    np.testing.assert_allclose(shares, binomial(8, 1.0), atol=0.03)


@pytest.mark.parametrize("gain", [1.0, 1 / 6])
def test_the_binomial_sums_to_one_around_its_mean(gain: float) -> None:
    shares = binomial(20, gain)
    assert shares.sum() == pytest.approx(1)
    assert shares @ np.arange(21) == pytest.approx(20 * gain / (1 + gain))
