"""Published properties of the norms and of attention that need no training, on the package.

Table 1 of the LayerNorm paper is in tests/experiments/test_invariances.py, the parameter
counts of published models in test_parameters.py, and the paths through a residual stack in test_paths.py.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm_lab.experiments.rank_collapse import attention_paths, draw_layers, draw_tokens, exact_residuals, states

FOUR = np.array([2.0, 4.0, 6.0, 12.0])


def jacobian(norm: Callable[..., torch.Tensor], x: np.ndarray, eps: float) -> np.ndarray:
    return torch.autograd.functional.jacobian(lambda row: norm(row, eps=eps), torch.from_numpy(x)).numpy()


# The geometry of LayerNorm, and its distance from RMSNorm


@pytest.mark.parametrize("d", [4, 16, 63])
def test_layer_norm_has_length_root_d_and_is_orthogonal_to_the_ones(d: int, rng: np.random.Generator) -> None:
    y = sn.layer_norm(5 + 3 * rng.standard_normal((20, d)), eps=0)
    np.testing.assert_allclose(np.linalg.norm(y, axis=-1), np.sqrt(d), rtol=1e-12)
    np.testing.assert_allclose(y.sum(axis=-1), 0, atol=1e-12)


def test_layer_norm_is_rms_norm_of_the_centred_row_on_four_numbers() -> None:
    np.testing.assert_allclose(sn.layer_norm(FOUR), sn.rms_norm(FOUR - 6), rtol=1e-15, atol=1e-15)
    assert np.abs(sn.layer_norm(FOUR) - sn.rms_norm(FOUR)).max() > 0.7


@pytest.mark.parametrize(("d", "ratio"), [(4, 0.866), (512, 0.9990)])
def test_dividing_by_d_minus_one_shrinks_by_a_known_ratio(d: int, ratio: float, rng: np.random.Generator) -> None:
    x = rng.standard_normal(d)
    shrunk = (x - x.mean()) / x.std(ddof=1) / sn.layer_norm(x, eps=0)
    np.testing.assert_allclose(shrunk, np.sqrt((d - 1) / d), rtol=1e-9)
    assert shrunk[0] == pytest.approx(ratio, abs=5e-5)


@pytest.mark.parametrize(
    ("rms", "inside", "outside"), [(1e-2, 0.9535, 0.9990), (1e-3, 0.3015, 0.9901), (1e-4, 0.0316, 0.9091)]
)
def test_eps_inside_and_outside_the_root(rms: float, inside: float, outside: float) -> None:
    x = rms * sn.rms_norm(FOUR, eps=0)
    size = np.sqrt(np.mean(x**2))
    assert np.sqrt(np.mean(sn.rms_norm(x) ** 2)) == pytest.approx(inside, abs=5e-5)
    assert np.sqrt(np.mean((x / (size + 1e-5)) ** 2)) == pytest.approx(outside, abs=5e-5)


# Gradients


@pytest.mark.parametrize(("norm", "rank"), [(st.layer_norm, 14), (st.rms_norm, 15)])
def test_the_jacobian_is_a_projection_over_the_size(
    norm: Callable[..., torch.Tensor], rank: int, rng: np.random.Generator
) -> None:
    x = 2 + rng.standard_normal(16)
    size = x.std() if norm is st.layer_norm else np.sqrt(np.mean(x**2))
    values = np.linalg.svd(jacobian(norm, x, eps=0), compute_uv=False)
    np.testing.assert_allclose(size * values[:rank], 1, rtol=1e-9)
    np.testing.assert_allclose(size * values[rank:], 0, atol=1e-9)


def test_the_strength_of_layer_norms_gradient_is_root_d_over_the_length(rng: np.random.Generator) -> None:
    x = 2 + rng.standard_normal(16)
    lemma = np.sqrt(16) / np.linalg.norm(x - x.mean())
    assert np.linalg.norm(jacobian(st.layer_norm, x, eps=0), 2) == pytest.approx(lemma, rel=1e-9)
    assert np.linalg.norm(jacobian(st.layer_norm, x, eps=1e-5), 2) == pytest.approx(lemma, rel=1e-4)


def test_a_gradient_through_either_norm_is_orthogonal_to_x_and_through_layer_norm_to_the_ones(
    rng: np.random.Generator,
) -> None:
    x, dy = 2 + rng.standard_normal(16), rng.standard_normal(16)
    by_layer, by_rms = sn.layer_norm_backward(dy, x, eps=0)[0], sn.rms_norm_backward(dy, x, eps=0)[0]
    np.testing.assert_allclose([x @ by_layer, x @ by_rms, by_layer.sum()], 0, atol=1e-12)
    assert abs(by_rms.sum()) > 0.1


@pytest.mark.parametrize("norm", [st.layer_norm, st.rms_norm, st.batch_norm])
def test_gradcheck_of_the_norms(norm: Callable[..., torch.Tensor]) -> None:
    source = torch.Generator().manual_seed(0)
    x = torch.randn(3, 4, 5, generator=source, dtype=torch.float64, requires_grad=True)
    gains = [(1 + torch.randn(5, generator=source, dtype=torch.float64)).requires_grad_() for _ in range(2)]
    given = (x, *gains[: 1 if norm is st.rms_norm else 2])
    assert torch.autograd.gradcheck(norm, given)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_gradcheck_of_a_block(placement: str) -> None:
    torch.manual_seed(0)
    block = st.TransformerBlock(4, 2, 6, placement).double()
    x = torch.randn(1, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(block, (x,))


# Attention alone


def test_three_layers_of_two_heads_have_1_6_12_and_8_paths() -> None:
    stack, x = draw_layers(3, seed=0, d_model=16, num_heads=2), draw_tokens(0, 8, 16)
    lengths, terms = attention_paths(x, stack, skip=True)
    assert np.bincount(lengths).tolist() == [1, 6, 12, 8]
    np.testing.assert_allclose(terms.sum(axis=0), states(x, stack, skip=True)[-1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_rate_of_the_collapse_is_cubic(seed: int) -> None:
    log_r = np.log(exact_residuals(draw_tokens(seed), draw_layers(6, seed)))
    slope = np.polyfit(log_r[2:6], log_r[3:7], 1)[0]
    assert slope == pytest.approx(3, abs=0.02)
