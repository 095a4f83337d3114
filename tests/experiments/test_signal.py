"""Signal and gradient through untrained stacks follow the laws, and seeds are independent."""

import math

import numpy as np
import pytest
import torch

from subnorm_lab.experiments.signal import INITS, WIRINGS, expected_signal, gain, propagate, weights

SMALL = {"depth": 6, "d": 32, "tokens": 16}


@pytest.mark.parametrize("init", INITS)
def test_weights_have_the_variance_of_their_init(init: str) -> None:
    d = 200
    assert weights(init, 2, d, range(3)).var().item() == pytest.approx(INITS[init] / d, rel=0.02)


def test_torch_init_is_what_a_linear_layer_draws() -> None:
    drawn = torch.nn.Linear(400, 400).weight
    ours = weights("torch", 1, 400, [0])
    assert ours.std().item() == pytest.approx(drawn.std().item(), rel=0.01)
    assert ours.abs().max().item() == pytest.approx(drawn.abs().max().item(), rel=0.01)


@pytest.mark.parametrize("init", INITS)
def test_one_block_multiplies_the_mean_square_by_its_gain(init: str) -> None:
    signal = propagate("plain", init, depth=1, d=256, tokens=256, seeds=range(4)).signal
    np.testing.assert_allclose(signal[:, 1] / signal[:, 0], gain(init), rtol=0.05)


@pytest.mark.parametrize("scale", [1.0, 6**-0.5])
@pytest.mark.parametrize("wiring", ["residual", "pre", "post"])
def test_a_residual_stack_follows_its_variance_law(wiring: str, scale: float) -> None:
    trace = propagate(wiring, "he", depth=6, scale=scale, d=256, tokens=64, seeds=range(4))
    law = expected_signal(wiring, 6, scale**2)
    np.testing.assert_allclose(trace.signal.mean(axis=0), law, rtol=0.1)


def test_the_gradient_of_a_residual_stack_grows_as_its_signal_does() -> None:
    trace = propagate("residual", "he", depth=6, d=256, seeds=range(4))
    np.testing.assert_allclose(trace.gradient[:, 0].mean(), 2**3, rtol=0.1)


def test_the_doubling_falls_short_by_less_in_a_wider_stack() -> None:
    ends = [propagate("residual", "he", depth=32, d=d, tokens=16).signal[:, -1] for d in (32, 64, 128)]
    narrow, middle, wide = (np.exp(np.log(end).mean() / 32) for end in ends)
    assert narrow + 0.03 < middle < wide < 2


def test_batch_norm_keeps_the_signal_and_lets_the_gradient_grow() -> None:
    """BatchNorm removes the common part that ReLU creates, and divides by the rest: 1 - 1 / pi of the square."""
    depth = 20
    trace = propagate("batch", "he", depth, seeds=range(4))
    np.testing.assert_allclose(trace.signal[:, 1:], 1, rtol=1e-3)
    np.testing.assert_allclose(trace.gradient[:, 0] ** (2 / depth), math.pi / (math.pi - 1), rtol=0.06)


def test_laws_written_out() -> None:
    np.testing.assert_allclose(expected_signal("plain", 2, 0.5), [1, 0.5, 0.25])
    np.testing.assert_allclose(expected_signal("residual", 2, 0.5), [1, 1.5, 2.25])
    np.testing.assert_allclose(expected_signal("batch", 2, 0.5), [1, 1, 1])
    np.testing.assert_allclose(expected_signal("pre", 2, 0.5), [1, 1.5, 2])
    np.testing.assert_allclose(expected_signal("post", 2, 0.5), [1, 1, 1])


@pytest.mark.parametrize("wiring", ["residual", "pre"])
def test_a_branch_of_scale_zero_leaves_signal_and_gradient_alone(wiring: str) -> None:
    trace = propagate(wiring, scale=0.0, **SMALL)
    np.testing.assert_array_equal(trace.signal, trace.signal[:, :1].repeat(7, axis=1))
    np.testing.assert_allclose(trace.gradient, 1, rtol=1e-12)


@pytest.mark.parametrize("wiring", WIRINGS)
def test_the_last_gradient_has_norm_one(wiring: str) -> None:
    np.testing.assert_allclose(propagate(wiring, **SMALL).gradient[:, -1], 1, rtol=1e-12)


def test_branches_with_a_mean_above_zero_add_up_faster() -> None:
    law = expected_signal("residual", 16, 1 / 16)[-1]
    signal = propagate("residual", depth=16, scale=0.25, ends_in_relu=True, d=64, tokens=16).signal[:, -1]
    assert signal.min() > 4 * law


def test_the_mean_drifts_only_where_branches_end_in_a_relu() -> None:
    """relu(z) / sqrt(L) has the mean 1 / sqrt(pi L) if z is normal with variance 2, as He's init makes it."""
    shape = {"depth": 16, "scale": 0.25, "d": 128, "tokens": 64}
    straight, rectified = (propagate("residual", ends_in_relu=ends, **shape) for ends in (False, True))  # type: ignore[arg-type]
    for trace in (straight, rectified):
        assert (trace.signal >= trace.mean**2).all()
        np.testing.assert_allclose(trace.mean[:, 0], 0, atol=0.05)
    assert np.abs(straight.mean).max() < 0.15
    step = (rectified.mean[:, 1] - rectified.mean[:, 0]).mean()
    np.testing.assert_allclose(step, 1 / math.sqrt(math.pi * 16), rtol=0.05)
    assert (np.diff(rectified.mean.mean(axis=0)) > 0).all()


def test_a_seeds_weights_do_not_depend_on_the_others() -> None:
    both = weights("he", 2, 8, [3, 5])
    np.testing.assert_array_equal(weights("he", 2, 8, [5]), both[:, 1:])
    assert not np.array_equal(both[:, 0], both[:, 1])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"wiring": "highway"}, "wiring must be one of 'plain', 'residual', 'batch', 'pre', 'post'; got 'highway'"),
        ({"init": "orthogonal"}, "init must be one of 'he', 'xavier', 'torch'; got 'orthogonal'"),
        ({"depth": 0}, "depth must be a whole number, at least 1; got 0"),
    ],
)
def test_bad_input_is_named(bad: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        propagate(**{"wiring": "plain", **bad})  # type: ignore[arg-type]
