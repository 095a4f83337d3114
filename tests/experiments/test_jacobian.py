"""The Jacobian of a norm against PyTorch's, and its singular values against their closed forms."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from subnorm_lab.experiments.jacobian import jacobian, singular_values

D = 8
TORCH = {"layer": F.layer_norm, "rms": F.rms_norm}


def token(seed: int) -> np.ndarray:
    return 2 + 3 * np.random.default_rng(seed).standard_normal(D)


@pytest.mark.parametrize("norm", TORCH)
@pytest.mark.parametrize("eps", [1e-8, 1e-5, 1.0, 100.0])
def test_the_jacobian_is_that_of_autograd(norm, eps) -> None:
    for seed in range(5):
        x = token(seed)
        expected = torch.autograd.functional.jacobian(
            lambda leaf: TORCH[norm](leaf, (D,), eps=eps), torch.from_numpy(x)
        ).numpy()
        np.testing.assert_allclose(jacobian(norm, x, eps), expected, atol=1e-12)


@pytest.mark.parametrize("eps", [0, 1e-5, 1.0])
def test_singular_values_have_their_closed_forms(eps) -> None:
    for seed in range(5):
        x = token(seed)
        centred, plain = x.var() + eps, (x**2).mean() + eps
        layer = [*[centred**-0.5] * (D - 2), eps * centred**-1.5, 0]
        rms = [*[plain**-0.5] * (D - 1), eps * plain**-1.5]
        np.testing.assert_allclose(singular_values("layer", x, eps), layer, rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(singular_values("rms", x, eps), rms, rtol=1e-9, atol=1e-15)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"norm is one of \['layer', 'rms'\]; got 'batch'"):
        jacobian("batch", token(0), 0)
    with pytest.raises(ValueError, match=r"one token, shape \(d,\); got \(2, 8\)"):
        jacobian("rms", np.ones((2, D)), 0)
