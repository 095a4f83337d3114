"""The backward passes against checks that need no second derivation, and properties of every right one."""

import itertools
from functools import partial

import numpy as np
import pytest
import torch

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm_lab.experiments.finite_differences import finite_difference

close = partial(np.testing.assert_allclose, strict=True)

NORMS = ["layer_norm", "rms_norm", "batch_norm"]


def cases(shapes: list[tuple[int, ...]]) -> list[tuple[str, tuple[int, ...], float]]:
    """Every norm, shape and eps; with eps = 0, BatchNorm of a single row has no answer."""
    every = itertools.product(NORMS, shapes, [0.0, 1e-5, 0.1])
    return [(name, s, eps) for name, s, eps in every if name != "batch_norm" or np.prod(s[:-1]) > 1 or eps > 0]


@pytest.mark.parametrize(("name", "shape", "eps"), cases([(5,), (1, 5), (4, 2), (3, 8), (2, 3, 4), (2, 1, 3, 5)]))
def test_finite_differences(name: str, shape: tuple[int, ...], eps: float, rng: np.random.Generator) -> None:
    x, dy, d = rng.normal(1, 2, shape), rng.normal(size=shape), shape[-1]
    gamma, beta = rng.normal(1, 0.5, d), rng.normal(size=d)
    forward, backward = getattr(sn, name), getattr(sn, f"{name}_backward")
    shift = () if name == "rms_norm" else (beta,)

    expected = [
        finite_difference(lambda v: forward(v, gamma, *shift, eps=eps), x, dy),
        finite_difference(lambda v: forward(x, v, *shift, eps=eps), gamma, dy),
    ]
    if shift:
        expected.append(finite_difference(lambda v: forward(x, gamma, v, eps), beta, dy))
    for exact, difference in zip(backward(dy, x, gamma, eps), expected, strict=True):
        # Rounding over the step: 1e-16 / 1e-6, times the sum of up to 30 entries; the step itself: 1e-12 f'''.
        close(exact, difference, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("name", "shape", "eps"), cases([(33,), (3, 31), (2, 1, 5, 32)]))
def test_adjoint_identity(name: str, shape: tuple[int, ...], eps: float, rng: np.random.Generator) -> None:
    """<dy, J v> = <J^T dy, v> in any direction v, with J v from torch."""
    d, shift = shape[-1], () if name == "rms_norm" else (rng.normal(size=shape[-1]),)
    inputs = [rng.normal(1, 2, shape), rng.normal(1, 0.5, d), *shift]
    directions, dy = [rng.normal(size=a.shape) for a in inputs], rng.normal(size=shape)

    def forward(*args: torch.Tensor) -> torch.Tensor:
        return getattr(st, name)(*args, eps=eps)

    _y, pushed = torch.autograd.functional.jvp(
        forward, tuple(map(torch.from_numpy, inputs)), tuple(map(torch.from_numpy, directions))
    )
    jv = pushed.numpy()
    pulled_back = getattr(sn, f"{name}_backward")(dy, inputs[0], inputs[1], eps)
    assert len(pulled_back) == len(directions)
    scale = np.linalg.norm(dy) * np.linalg.norm(jv)
    assert abs(np.vdot(dy, jv) - sum(map(np.vdot, pulled_back, directions))) < 1e-13 * scale


@pytest.mark.parametrize("eps", [0.0, 1e-5, 0.1])
def test_a_sum_has_no_gradient_through_a_centred_norm(eps: float, rng: np.random.Generator) -> None:
    x, ones = rng.normal(1, 2, (4, 6)), np.ones((4, 6))
    close(sn.layer_norm_backward(ones, x, None, eps)[0], np.zeros((4, 6)), atol=1e-14)
    close(sn.batch_norm_backward(ones, x, rng.normal(size=6), eps)[0], np.zeros((4, 6)), atol=1e-14)
    # With a gain that differs from feature to feature it does have one, and RMSNorm has one in any case.
    assert np.abs(sn.layer_norm_backward(ones, x, rng.normal(size=6), eps)[0]).max() > 1e-3
    assert np.abs(sn.rms_norm_backward(ones, x, None, eps)[0]).max() > 1e-3


def test_parameter_gradients_add_up_over_every_row(rng: np.random.Generator) -> None:
    x, dy, gamma = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 4)), rng.normal(size=4)
    rows = [sn.layer_norm_backward(dy[i, j], x[i, j], gamma) for i in range(2) for j in range(3)]
    _dx, dgamma, dbeta = sn.layer_norm_backward(dy, x, gamma)
    close(dgamma, np.sum([row[1] for row in rows], axis=0), rtol=1e-12)
    close(dbeta, np.sum([row[2] for row in rows], axis=0), rtol=1e-12)
