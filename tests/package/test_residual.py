"""The residual connection and the two placements: which input the sublayer sees, and what the skip path carries."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import subnorm.numpy as sn
import subnorm.torch

any_x = arrays(np.float64, array_shapes(max_dims=4, max_side=4), elements=st.floats(-100, 100))


def test_both_libraries_share_these_functions() -> None:
    assert subnorm.torch.residual is sn.residual
    assert subnorm.torch.PLACEMENTS is sn.PLACEMENTS
    assert {"pre": sn.pre_ln, "post": sn.post_ln} == sn.PLACEMENTS


@given(x=any_x)
def test_a_zero_branch_changes_nothing(x: np.ndarray) -> None:
    assert np.array_equal(sn.residual(x, np.zeros_like), x)
    assert np.array_equal(sn.pre_ln(x, np.zeros_like, sn.rms_norm), x)
    assert np.array_equal(sn.post_ln(x, np.zeros_like, sn.rms_norm), sn.rms_norm(x))


def seven_plus(x: np.ndarray) -> np.ndarray:
    return 7 + x


def ten_times(x: np.ndarray) -> np.ndarray:
    return 10 * x


# Neither linear through 0 together nor commuting: every other order of add, branch and norm gives another number.
@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (lambda x: sn.residual(x, seven_plus), 3 + (7 + 3)),
        (lambda x: sn.pre_ln(x, seven_plus, ten_times), 3 + (7 + 30)),
        (lambda x: sn.post_ln(x, seven_plus, ten_times), 10 * (3 + (7 + 3))),
    ],
)
@pytest.mark.parametrize("make", [np.full, torch.full])
def test_order_of_branch_sum_and_norm(make: Callable, place: Callable, expected: int) -> None:
    y = place(make((2, 3), 3.0))
    assert y.shape == (2, 3)
    assert (y == expected).all()


def test_inputs_are_left_as_they_came(rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 4))
    before = x.copy()
    for y in (
        sn.residual(x, ten_times),
        sn.pre_ln(x, ten_times, sn.layer_norm),
        sn.post_ln(x, ten_times, sn.layer_norm),
    ):
        assert np.array_equal(x, before)
        assert not np.shares_memory(x, y)
