"""Common false statements about the subject, rebuilt small enough to see them fail.

The page of myths rests on these where no cell of a chapter measures the same. Code found in public is rewritten here in
its own form, with its mistake; the last test of each shows that the package does not have it.
"""

import inspect

import numpy as np
import pytest
import torch
from torch import nn

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm_lab.experiments.deepnorm import constants

FOUR = np.array([2.0, 4.0, 6.0, 12.0])
SEEDS = range(5)


def draw(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def test_what_seed_0_really_prints() -> None:
    x = np.random.RandomState(0).randn(2, 30, 512).astype(np.float32)
    assert f"{x.mean():.3f} {x.std():.3f}" == "-0.005 0.994"  # and not 0.001 1.000
    assert x.std(axis=-1).max() - x.std(axis=-1).min() > 0.1  # token by token it is neither
    y = torch.nn.functional.layer_norm(torch.from_numpy(x), (512,)).numpy().astype(np.float64)
    assert 0.99999 < y.std() < 1


def test_a_curve_of_0_98_to_the_power_k_is_a_vanishing_one() -> None:
    def gradient(layers: int) -> float:
        x = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
        y = x
        for _ in range(layers):
            y = st.residual(y, lambda h: -0.02 * h)
        return float(torch.autograd.grad(y, x)[0])

    shown = [0.98, 0.96, 0.94, 0.92, 0.90, 0.89, 0.87, 0.85, 0.83, 0.82]
    assert [round(gradient(layers), 2) for layers in range(1, 11)] == shown
    assert gradient(100) < 0.14
    assert gradient(500) < 1e-4


def layer_norm_of_the_formula(y: np.ndarray) -> np.ndarray:
    return (y - y.mean()) / np.sqrt(y.var())


def test_a_formula_that_lost_its_fraction_bar_its_root_or_its_brackets_is_another_one() -> None:
    right = sn.layer_norm(FOUR, eps=0)
    np.testing.assert_allclose(layer_norm_of_the_formula(FOUR), right, rtol=1e-12)
    without_root = (FOUR - FOUR.mean()) / FOUR.var()
    without_brackets = FOUR - FOUR.mean() / np.sqrt(FOUR.var())
    without_bar = np.sqrt(FOUR.var()) * FOUR - FOUR.mean()
    for wrong in (without_root, without_brackets, without_bar):
        assert np.abs(wrong - right).max() > 0.7


# Scale


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("alpha", [-2.0, -0.5])
def test_a_negative_scale_turns_the_sign_of_layer_norm(seed: int, alpha: float) -> None:
    x = draw(seed, 512)
    assert np.abs(sn.layer_norm(alpha * x) + sn.layer_norm(x)).max() < 1e-3  # eps keeps them this far apart
    assert np.abs(sn.layer_norm(alpha * x) - sn.layer_norm(x)).max() > 4
    np.testing.assert_allclose(sn.layer_norm(alpha * x, eps=0), -sn.layer_norm(x, eps=0), rtol=1e-9, atol=1e-12)


def test_a_large_scale_of_either_sign_removes_eps_and_not_the_sign() -> None:
    exact = sn.layer_norm(FOUR, eps=0)
    for alpha in (1e3, -1e3):
        np.testing.assert_allclose(sn.layer_norm(alpha * FOUR), np.sign(alpha) * exact, atol=1e-9)


# DeepNorm


def skip_share(x: np.ndarray, f: np.ndarray, on_x: float, on_f: float) -> float:
    """Correlation of the sublayer's output with its input."""
    y = sn.layer_norm(on_x * x + on_f * f)
    return float(np.mean(sn.layer_norm(x) * y))


@pytest.mark.parametrize("seed", SEEDS)
def test_alpha_on_the_branch_makes_deep_norm_shake_where_it_should_hold(seed: int) -> None:
    x, f = draw(seed, 2, 100, 512)
    alpha, _ = constants(100)
    right, wrong = skip_share(x, f, alpha, 1), skip_share(x, f, 1, alpha)
    assert right == pytest.approx(alpha / np.hypot(alpha, 1), abs=0.02)
    assert wrong == pytest.approx(1 / np.hypot(alpha, 1), abs=0.02)
    assert right > 0.95
    assert wrong < 0.3


@pytest.mark.parametrize(("blocks", "factor"), [(100, 14.1), (1000, 44.7)])
def test_alpha_on_the_branch_is_wrong_by_its_square(blocks: int, factor: float) -> None:
    alpha, _ = constants(blocks)
    x, f = draw(0, 2, 8, 64)
    np.testing.assert_allclose(sn.layer_norm(x + alpha * f, eps=0), sn.layer_norm(x / alpha + f, eps=0), rtol=1e-9)
    assert alpha / (1 / alpha) == pytest.approx(factor, abs=0.05)  # what multiplies x, right over wrong


# The variance in one pass


def one_pass(x: torch.Tensor) -> torch.Tensor:
    """The mean of the squares minus the square of the mean, without clipping at 0."""
    return (x**2).mean(-1) - x.mean(-1) ** 2


def rows_around(mean: float) -> torch.Tensor:
    return torch.from_numpy(mean + draw(0, 256, 768)).float()


def test_in_one_pass_the_variance_loses_its_digits_as_the_mean_grows() -> None:
    errors = []
    for mean in (1.0, 1e2, 1e3):
        x = rows_around(mean)
        errors.append(float((one_pass(x) - x.double().var(-1, correction=0)).abs().max()))
    assert errors[0] < 1e-4
    assert 1e-3 < errors[1] < 0.02
    assert errors[2] > 0.1  # of a variance of 1


def test_in_one_pass_some_variances_come_out_negative_and_their_rows_nan() -> None:
    x = rows_around(1e4)
    variance = one_pass(x)
    assert 20 < int((variance < -1e-5).sum()) < 236
    y = (x - x.mean(-1, keepdim=True)) / torch.sqrt(variance + 1e-5)[:, None]
    assert torch.equal(y.isnan().any(-1), variance + 1e-5 < 0)


def test_the_package_and_torch_survive_a_mean_of_ten_thousand() -> None:
    x = rows_around(1e4)
    for y in (st.layer_norm(x), torch.nn.functional.layer_norm(x, (768,)), torch.from_numpy(sn.layer_norm(x.numpy()))):
        assert float((y.double().std(-1, correction=0) - 1).abs().max()) < 0.01


# The standard deviation of a sample, with eps outside


def sample_norm(x: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """``x.std()`` divides by d - 1, and eps is added to the standard deviation."""
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)


def test_a_sample_standard_deviation_shrinks_the_output_and_hides_at_512_features() -> None:
    for d, shrinks in ((4, 0.134), (16, 0.032), (512, 0.001)):
        x = torch.from_numpy(draw(0, 64, d))
        ratio = sample_norm(x) / st.layer_norm(x, eps=0)
        torch.testing.assert_close(ratio, torch.full_like(ratio, np.sqrt((d - 1) / d)), rtol=1e-4, atol=0)
        assert 1 - float(ratio.mean()) == pytest.approx(shrinks, abs=5e-4)


def test_eps_outside_the_root_is_another_function_on_small_rows() -> None:
    x = torch.from_numpy(1e-4 * draw(0, 64, 512))
    outside = (x - x.mean(-1, keepdim=True)) / (x.std(-1, correction=0, keepdim=True) + 1e-5)
    inside = st.layer_norm(x)
    assert 0.85 < float(outside.std(-1, correction=0).mean()) < 0.95
    assert float(inside.std(-1, correction=0).mean()) < 0.05


def test_a_share_of_values_that_are_close_does_not_find_a_wrong_norm() -> None:
    x = torch.from_numpy(draw(0, 64, 768))
    right = st.layer_norm(x)
    for wrong in (sample_norm(x), st.layer_norm(x, eps=0)):
        assert float(torch.isclose(wrong, right, rtol=1e-3, atol=1e-4).double().mean()) > 0.99
    small = x[:, :4]
    assert float(torch.isclose(sample_norm(small), st.layer_norm(small), rtol=1e-3, atol=1e-4).double().mean()) < 0.1


# Words and code


class Followed(nn.Module):
    """The docstring says that a norm follows the residual connection; in the code the norm comes first."""

    def __init__(self, norm: nn.Module, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm, self.dropout = norm, nn.Dropout(dropout)

    def forward(self, x: torch.Tensor, sublayer: nn.Module) -> torch.Tensor:
        return x + self.dropout(sublayer(self.norm(x)))


def test_followed_by_a_norm_in_words_and_pre_ln_in_code() -> None:
    torch.manual_seed(0)
    norm, sublayer = nn.LayerNorm(16).double(), nn.Linear(16, 16).double()
    x = 3 * torch.from_numpy(draw(0, 8, 16))
    y = Followed(norm)(x, sublayer)
    torch.testing.assert_close(y, st.pre_ln(x, sublayer, norm))
    assert float((y - st.post_ln(x, sublayer, norm)).abs().max().detach()) > 1


# Defaults


HALF = [torch.bfloat16, torch.float16]


@pytest.mark.parametrize(
    ("dtype", "computed_in"),
    [(torch.float64, torch.float64), (torch.float32, torch.float32), *((dtype, torch.float32) for dtype in HALF)],
)
def test_the_default_eps_of_torchs_rms_norm_is_that_of_the_dtype_it_computes_in(
    dtype: torch.dtype, computed_in: torch.dtype
) -> None:
    """So it is not 0.0078 for bfloat16. A row whose squares are near eps reveals the value."""
    x = torch.full((1, 64), 1e-3, dtype=dtype)
    for y in (nn.RMSNorm(64, dtype=dtype)(x), torch.nn.functional.rms_norm(x, (64,))):
        eps = (x.double() / y.detach().double()).square() - x.double().square()
        np.testing.assert_allclose(eps, torch.finfo(computed_in).eps, rtol=0.1)


def test_eps_by_default() -> None:
    assert nn.LayerNorm(4).eps == 1e-5
    assert nn.RMSNorm(4).eps is None
    assert torch.finfo(torch.float32).eps == pytest.approx(1.19e-7, abs=5e-10)
    for norm in (sn.layer_norm, sn.rms_norm, st.layer_norm, st.rms_norm):
        assert inspect.signature(norm).parameters["eps"].default == 1e-5
