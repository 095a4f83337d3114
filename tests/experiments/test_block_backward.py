"""The written-out backward passes against finite differences and autograd, and their skip path."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from subnorm.numpy import PLACEMENTS, layer_norm, layer_norm_backward
from subnorm_lab.experiments import block_backward
from subnorm_lab.experiments.finite_differences import finite_difference

rng = np.random.default_rng(0)
X, DY, W = rng.standard_normal((2, 5)), rng.standard_normal((2, 5)), rng.standard_normal((5, 5))


def branch(h: np.ndarray) -> np.ndarray:
    return np.tanh(h @ W.T)


def written_out(placement: str, back: object = None) -> np.ndarray:
    read = layer_norm(X) if placement == "pre" else X
    normed = X if placement == "pre" else X + branch(X)
    return (back or block_backward.BACK[placement])(  # type: ignore[operator]
        DY,
        lambda dh: (dh * (1 - branch(read) ** 2)) @ W,
        lambda dh: layer_norm_backward(dh, normed)[0],
    )


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_against_finite_differences(placement: str) -> None:
    slow = finite_difference(lambda x: PLACEMENTS[placement](x, branch, layer_norm), X, DY)
    np.testing.assert_allclose(written_out(placement), slow, atol=1e-8)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_other_placement_fails(placement: str) -> None:
    slow = finite_difference(lambda x: PLACEMENTS[placement](x, branch, layer_norm), X, DY)
    wrong = block_backward.BACK["post" if placement == "pre" else "pre"]
    assert np.abs(written_out(placement, wrong) - slow).max() > 0.1


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_whole_gradient_of_a_stack_is_autograds(placement: str) -> None:
    d, depth, tokens = 6, 3, 4
    generator = np.random.default_rng(2)
    x = torch.tensor(generator.standard_normal((tokens, d)), requires_grad=True)
    inner = torch.tensor(generator.standard_normal((depth, d, d)) * np.sqrt(2 / d))
    outer = torch.tensor(generator.standard_normal((depth, d, d)) * np.sqrt(1 / d))
    dy = torch.tensor(generator.standard_normal((tokens, d)))
    stream = [x]
    for w1, w2 in zip(inner, outer, strict=True):
        stream.append(
            PLACEMENTS[placement](
                stream[-1],
                lambda h, w1=w1, w2=w2: torch.relu(h @ w1.T) @ w2.T,
                lambda h: F.layer_norm(h, (d,)),
            )
        )
    expected = [float(g.norm() / dy.norm()) for g in torch.autograd.grad((dy * stream[-1]).sum(), stream)]
    sizes = block_backward.gradient_sizes(placement, depth, range(2, 3), d, tokens)
    np.testing.assert_allclose(sizes["whole"][0], expected, rtol=1e-8)


def test_the_skip_path_alone() -> None:
    assert (block_backward.gradient_sizes("pre", 4, range(2))["skip"] == 1).all()
    alone = block_backward.gradient_sizes("post", 8, range(2))["skip"]
    factors = alone[:, :-1] / alone[:, 1:]
    np.testing.assert_allclose(factors[:, 1:].mean(), 0.5**0.5, rtol=0.1)


def test_an_unknown_placement_is_refused() -> None:
    with pytest.raises(ValueError, match="placement"):
        block_backward.gradient_sizes("middle", 2, range(1))
