"""A wrong gradient, and a gradient test that cannot fail."""

import numpy as np

from subnorm.numpy import layer_norm, layer_norm_backward
from subnorm_lab.checks.collect import Case
from subnorm_lab.museum.exhibit import Function, exhibit


def the_gradient_sums_to_zero(backward: Function) -> bool:
    rng = np.random.default_rng(0)
    xhat = layer_norm(rng.normal(0, 1, (3, 8)))
    dx = backward(rng.normal(1, 1, (3, 8)), xhat, np.ones((3, 1)), np.linspace(0.5, 1.5, 8))
    return np.allclose(dx.sum(-1), 0)  # a shift of x changes nothing


def gradients(rng: np.random.Generator) -> list[Case]:
    def case(name: str, mean: float) -> Case:
        xhat = layer_norm(rng.normal(0, 1, (3, 8)))
        return Case(name, (rng.normal(mean, 1, (3, 8)), xhat, rng.uniform(0.5, 2, (3, 1)), rng.uniform(0.5, 2, 8)))

    return [case("dy of mean 0", 0.0), case("dy of mean 1", 1.0)]


@exhibit(
    bug="rstd * (g - mean_g - xhat * mean_gx) -> rstd * (g - 2 * mean_g - xhat * mean_gx)",
    says="the mean of dy * gain is subtracted twice; once is right.",
    report="tenstorrent/tt-metal/pull/53215",
    year=2026,
    test=the_gradient_sums_to_zero,
    cases=gradients,
    others=[("no_mean", "g - mean_g -> g", "the mean of dy * gain is not subtracted.")],
)
def layer_norm_gradient(dy, xhat, rstd, gain):
    g = dy * gain
    mean_g = g.mean(-1, keepdims=True)
    mean_gx = (g * xhat).mean(-1, keepdims=True)
    return rstd * (g - mean_g - xhat * mean_gx)


def right(dy, x):
    return layer_norm_backward(dy, x)[0]


def only_zeros(dy, x):
    return 0 * x


def without_xhat(dy, x):
    return (dy - dy.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def a_wrong_gradient_is_noticed(check: Function) -> bool:
    x = np.random.default_rng(1).normal(0, 1, (3, 8))
    return check(layer_norm, right, x) and not check(layer_norm, only_zeros, x)


def backwards(rng: np.random.Generator) -> list[Case]:
    x = rng.normal(0, 1, (3, 8))
    return [
        Case(name, (layer_norm, backward, x))
        for name, backward in (
            ("the right gradient", right),
            ("a gradient of zeros", only_zeros),
            ("one without its last term", without_xhat),
        )
    ]


@exhibit(
    bug="rng.standard_normal(x.shape)  # upstream -> np.ones(x.shape)",
    says="with ones upstream the right gradient is 0, so a gradient of zeros passes; draw it at random.",
    report="HomericIntelligence/Odyssey/pull/3808",
    year=2026,
    test=a_wrong_gradient_is_noticed,
    cases=backwards,
    others=[("never", "bool(abs(slope - told) < 1e-6) -> False", "it returns False whatever it is given.")],
)
def gradient_check(norm, backward, x):
    rng = np.random.default_rng(0)
    dy = rng.standard_normal(x.shape)  # upstream
    step = 1e-5 * rng.standard_normal(x.shape)
    slope = ((norm(x + step) - norm(x - step)) * dy).sum() / 2e-5
    told = (backward(dy, x) * step).sum() / 1e-5
    return bool(abs(slope - told) < 1e-6)
