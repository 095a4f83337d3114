"""One token through untrained stacks: its size is that of the signal, and a seed's stacks share token and matrices."""

import numpy as np
import pytest

from subnorm_lab.experiments.journey import travel
from subnorm_lab.experiments.signal import expected_signal


@pytest.mark.parametrize("wiring", ["plain", "residual", "pre", "post"])
def test_a_token_has_the_size_that_the_law_of_its_stack_says(wiring: str) -> None:
    vectors = travel(wiring, gain=0.25, depth=3, d=256, seeds=range(48))
    size = (vectors**2).mean(axis=1) / (vectors[..., :1] ** 2).mean(axis=1)
    np.testing.assert_allclose(size.mean(axis=0), expected_signal(wiring, 3, 0.25), rtol=0.1)


def test_the_features_are_sorted_by_the_input_and_keep_their_rows() -> None:
    vectors = travel("residual", gain=0.0, depth=3, d=16, seeds=[4])
    assert vectors.shape == (1, 16, 4)
    assert (np.diff(vectors[0, :, 0]) < 0).all()
    np.testing.assert_array_equal(vectors, vectors[..., :1].repeat(4, axis=-1))


def test_stacks_of_a_seed_differ_only_in_their_wiring() -> None:
    plain, residual = (travel(wiring, depth=1, d=16, seeds=[2, 7]) for wiring in ("plain", "residual"))
    np.testing.assert_array_equal(plain[..., 0], residual[..., 0])
    np.testing.assert_allclose(residual[..., 1], plain[..., 0] + plain[..., 1], rtol=1e-12)


def test_a_seed_does_not_depend_on_the_others() -> None:
    both = travel("pre", depth=2, d=16, seeds=[3, 5])
    np.testing.assert_array_equal(travel("pre", depth=2, d=16, seeds=[5]), both[1:])
    for column in (0, -1):  # the token, and what the stack made of it
        assert not np.allclose(both[0, :, column], both[1, :, column])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"wiring": "batch"}, "wiring must be one of 'plain', 'residual', 'pre', 'post'; got 'batch'"),
        ({"gain": -1.0}, "gain must be at least 0; got -1"),
        ({"depth": 0}, "depth must be a whole number, at least 1; got 0"),
        ({"d": 1.5}, "d must be a whole number, at least 1; got 1.5"),
    ],
)
def test_bad_input_is_named(bad: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        travel(**{"wiring": "plain", **bad})  # type: ignore[arg-type]
