"""The formats are the machine's, and what they do to a norm is what the theory says."""

import numpy as np
import pytest
import torch

from subnorm.numpy import layer_norm, rms_norm
from subnorm_lab import stories
from subnorm_lab.experiments import precision
from subnorm_lab.experiments.precision import FORMATS, VARIANCES, treated

HALF = FORMATS["float16"]


def every_size(seed):
    """Of every size that the formats know, and beyond, with ties and both infinities."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(5000) * 10.0 ** rng.uniform(-45, 39, 5000)
    ties = (1 + np.arange(64) / 64) * (1 + 2.0**-8)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.9, 65520, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25, 2.0**-149]
    return FORMATS["float32"](np.concatenate([x, ties, edges]))  # PyTorch rounds float64 to bfloat16 in two steps


@pytest.mark.parametrize("name", FORMATS)
def test_rounding_is_that_of_the_machine(name):
    x = every_size(0)
    if name == "float32":
        x = np.concatenate([x, 10 * x, x * (1 + 2.0**-40)])
    machine = torch.from_numpy(x).to(getattr(torch, name)).double().numpy()
    np.testing.assert_array_equal(FORMATS[name](x), machine)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_one_operation_is_that_of_the_machine(dtype):
    fmt = FORMATS[dtype.__name__]
    a, b = (fmt(np.random.default_rng(k).standard_normal(10_000)) for k in (1, 2))
    with np.errstate(over="ignore"):
        for ours, theirs in [
            (a + b, a.astype(dtype) + b.astype(dtype)),
            (a * b, a.astype(dtype) * b.astype(dtype)),
            (a / b, a.astype(dtype) / b.astype(dtype)),
            (np.sqrt(np.abs(a)), np.sqrt(np.abs(a).astype(dtype))),
        ]:
            np.testing.assert_array_equal(fmt(ours), theirs)


@pytest.mark.parametrize("way", VARIANCES)
def test_a_variance_is_right_where_nothing_cancels(way):
    assert np.abs(precision.variance_errors(way, FORMATS["float32"], [0.0, 1.0], 0)).max() < 1e-5
    assert np.abs(precision.variance_errors(way, FORMATS["float64"], [0.0, 1e3], 0)).max() < 1e-8


def test_one_pass_fails_where_the_square_of_the_mean_fills_the_digits():
    """The error grows with the square of the mean, from about 2**-24 of it; two passes do not notice."""
    means = np.array([1e2, 1e3, 1e4])
    one, two, welford = (np.abs(precision.variance_errors(way, FORMATS["float32"], means, 0)) for way in VARIANCES)
    growth = np.median(one, axis=1)
    assert ((growth[1:] / growth[:-1] > 30) & (growth[1:] / growth[:-1] < 300)).all()
    assert one[2].max() > 1
    assert two.max() < 1e-3
    assert welford.max() < 1e-2


def test_a_variance_can_come_out_negative():
    errors = precision.variance_errors("one pass", FORMATS["float32"], [3e4], 0)
    assert (errors < -1).any()


def test_norms_in_float64_are_the_norms_of_the_course():
    rng = np.random.default_rng(0)
    x, gamma, wide = rng.standard_normal((5, 8)), rng.standard_normal(8), FORMATS["float64"]
    for norm in (precision.rms_norm_inside, precision.rms_norm_widened, precision.rms_norm_narrowed_first):
        np.testing.assert_allclose(norm(x, gamma, wide), rms_norm(x, gamma), rtol=1e-14)
    for way in VARIANCES:
        np.testing.assert_allclose(precision.layer_norm_by(way, x, gamma, wide), layer_norm(x, gamma), rtol=1e-10)


def test_the_orders_of_the_casts_are_those_of_pytorch():
    rng = np.random.default_rng(0)
    x, gamma = (FORMATS["bfloat16"](rng.standard_normal(shape)) for shape in ((50, 64), (64,)))
    w, wide = torch.from_numpy(gamma).bfloat16(), torch.from_numpy(rms_norm(x))
    for norm, theirs in [
        (precision.rms_norm_narrowed_first, w * wide.bfloat16()),
        (precision.rms_norm_widened, (w.double() * wide).bfloat16()),
    ]:
        np.testing.assert_array_equal(norm(x, gamma, FORMATS["bfloat16"]), theirs.double().numpy())


def test_half_precision_ends_where_its_squares_and_its_eps_end():
    for value, result in [(255, 1), (257, 0)]:  # 257 squared is infinite, and one over infinity is 0
        assert (precision.rms_norm_inside(np.full((1, 4), value), np.ones(4), HALF).round() == result).all()
    assert np.isnan(precision.rms_norm_inside(np.zeros((1, 4)), np.ones(4), HALF, eps=1e-12)).all()
    assert (precision.rms_norm_inside(np.zeros((1, 4)), np.ones(4), HALF, eps=1e-5) == 0).all()


def test_the_patient_is_the_same_model_at_every_size_and_shift():
    model = stories.load()
    text = stories.texts()[0][:20]

    def layer(x, gamma, fmt):
        return layer_norm(x, gamma, eps=0)

    def rms(x, gamma, fmt):
        return rms_norm(x, gamma, eps=0)

    wide = FORMATS["float64"]
    usual = stories.loss(treated(model, rms, wide), text)
    assert np.isclose(usual, stories.loss(model, text), atol=1e-3)  # but for eps
    assert np.isclose(stories.loss(treated(model, rms, wide, size=2.0**-9), text), usual, rtol=1e-12)
    moved = [stories.loss(treated(model, layer, wide, 4.0, shift), text) for shift in (0.0, 1000.0)]
    assert np.isclose(*moved, rtol=1e-9)
    assert not np.isclose(moved[0], usual, rtol=1e-3)


def test_a_size_that_would_round_is_refused():
    with pytest.raises(ValueError, match="power of 2"):
        treated(stories.load(), precision.rms_norm_widened, HALF, size=3.0)
