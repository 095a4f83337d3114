"""The two gradient checks, on functions whose gradients are known."""

import numpy as np
import pytest

from subnorm_lab.experiments.finite_differences import adjoint_gap, finite_difference

rng = np.random.default_rng(0)
X, DY, V = (rng.standard_normal((2, 3)) for _ in range(3))


def test_a_quadratic_has_the_gradient_two_x() -> None:
    np.testing.assert_allclose(finite_difference(lambda x: x**2, X, DY), 2 * X * DY, atol=1e-8)


def test_the_output_may_have_another_shape() -> None:
    draw = np.random.default_rng(1)
    matrix, dy = draw.standard_normal((3, 4)), draw.standard_normal((2, 4))
    np.testing.assert_allclose(finite_difference(lambda x: x @ matrix, X, dy), dy @ matrix.T, atol=1e-8)


def test_the_input_is_not_changed() -> None:
    before = X.copy()
    finite_difference(np.sin, X, DY)
    adjoint_gap(np.sin, X, V, DY, DY * np.cos(X))
    np.testing.assert_array_equal(X, before)


def test_a_right_backward_pass_has_no_adjoint_gap() -> None:
    assert adjoint_gap(np.sin, X, V, DY, DY * np.cos(X)) < 1e-8


@pytest.mark.parametrize("wrong", [DY * np.sin(X), 1.01 * DY * np.cos(X), -DY * np.cos(X)])
def test_a_wrong_backward_pass_has_one(wrong: np.ndarray) -> None:
    assert adjoint_gap(np.sin, X, V, DY, wrong) > 1e-3
