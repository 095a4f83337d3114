"""Bugs in the statistics: the wrong axis, the wrong divisor, the wrong variance."""

from typing import Any

import numpy as np

from subnorm_lab.checks.collect import Case
from subnorm_lab.museum.exhibit import Function, exhibit


def row_cases(*shape: int, sizes: tuple[float, ...] = (1.0, 3.0), mean: float = 0.5, args: tuple[Any, ...] = ()) -> Any:
    """Cases of random rows of the shape, in several sizes, followed by the other arguments."""

    def cases(rng: np.random.Generator) -> list[Case]:
        return [Case(f"x of size {size:g}", (size * rng.normal(mean, 1, shape), *args)) for size in sizes]

    return cases


def tokens_stay_apart(norm: Function) -> bool:
    x = np.random.default_rng(0).normal(0, 1, (2, 5, 8))
    changed = x.copy()
    changed[:, 3] += 10  # another token
    return np.allclose(norm(x, 1e-5)[:, 0], norm(changed, 1e-5)[:, 0])


@exhibit(
    bug="axis = -1 -> axis = 1",
    says="the mean and the variance run over the tokens; each token has its own, over its features, axis -1.",
    report="jadore801120/attention-is-all-you-need-pytorch/pull/17",
    year=2017,
    test=tokens_stay_apart,
    cases=row_cases(2, 5, 8, args=(1e-5,)),
    others=[("both_axes", "axis = -1 -> axis = (1, 2)", "the mean runs over tokens and features; leave the tokens.")],
)
def token_norm(x, eps):
    axis = -1  # x is (batch, tokens, features)
    mean = x.mean(axis, keepdims=True)
    var = x.var(axis, keepdims=True)
    return (x - mean) / np.sqrt(var + eps)


def groups_stay_apart(norm: Function) -> bool:
    x = np.random.default_rng(0).normal(0, 1, (1, 4, 4, 6))
    louder = x.copy()
    louder[..., :3] *= 10  # the first of two groups
    return np.allclose(norm(x, 2, 1e-5)[..., 3:], norm(louder, 2, 1e-5)[..., 3:])


@exhibit(
    bug="n, h * w, groups, c // groups -> n, c // groups, groups, h * w",
    says="the channels are the last axis, so only that axis may be split: a reshape does not transpose.",
    report="tensorflow/addons/issues/751",
    year=2019,
    test=groups_stay_apart,
    cases=row_cases(2, 3, 4, 6, args=(2, 1e-5)),
    others=[
        ("positions_apart", "g.mean((1, 3) -> g.mean((3,)", "the mean of a group runs over all positions as well.")
    ],
)
def group_norm(x, groups, eps):
    n, h, w, c = x.shape
    g = x.reshape(n, h * w, groups, c // groups)
    mean = g.mean((1, 3), keepdims=True)
    var = g.var((1, 3), keepdims=True)
    return ((g - mean) / np.sqrt(var + eps)).reshape(x.shape)


def small_inputs_stay_small(norm: Function) -> bool:
    x = 1e-3 * np.ones((1, 8))
    return np.allclose(norm(x, np.ones(8), 1e-5), 1e-3 / np.sqrt(1e-6 + 1e-5))


@exhibit(
    bug="np.sqrt(mean_square + eps) -> np.sqrt(mean_square) + eps",
    says="eps is added to the root; in Llama's norm it is added under the root.",
    report="allenai/OLMo/issues/281",
    year=2023,
    test=small_inputs_stay_small,
    cases=row_cases(3, 8, sizes=(1.0, 1e-3), args=(np.linspace(0.5, 1.5, 8), 1e-5)),
    others=[("no_eps", "mean_square + eps -> mean_square", "eps is gone; put it under the root.")],
)
def rms_norm(x, gain, eps):
    mean_square = (x * x).mean(-1, keepdims=True)
    rms = np.sqrt(mean_square + eps)
    xhat = x / rms
    return gain * xhat


def scale_is_ignored(norm: Function) -> bool:
    x = np.random.default_rng(0).normal(0, 1, (3, 8))
    return np.allclose(norm(x, 0.0), norm(3 * x, 0.0))


@exhibit(
    bug="x * rstd -> x / rstd",
    says="x is divided by 1/rms, which multiplies it by the rms; multiply by rstd.",
    report="mosaicml/llm-foundry/pull/372",
    year=2023,
    test=scale_is_ignored,
    cases=row_cases(3, 8, args=(1e-5,)),
    others=[("no_root", "1 / np.sqrt(mean_square + eps) -> 1 / (mean_square + eps)", "the root is missing.")],
)
def unit_rms(x, eps):
    mean_square = (x * x).mean(-1, keepdims=True)
    rstd = 1 / np.sqrt(mean_square + eps)
    return x * rstd


def four_numbers(norm: Function) -> bool:
    x = np.array([1.0, 0.0, 0.0, 0.0])
    return np.allclose(norm(x, np.ones(4), 0.0), np.array([3, -1, -1, -1]) / np.sqrt(3))


@exhibit(
    bug="x.var(-1, keepdims=True) -> x.var(-1, keepdims=True, ddof=1)",
    says="the variance is divided by d - 1; LayerNorm divides it by d.",
    report="harvardnlp/annotated-transformer/pull/119",
    year=2024,
    test=four_numbers,
    cases=row_cases(3, 4, args=(np.linspace(0.5, 1.5, 4), 1e-5)),
    others=[("no_gain", "gain * (x - mean) -> (x - mean)", "gain is not used: it multiplies each feature.")],
)
def affine_norm(x, gain, eps):
    mean = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(var + eps)


def shift_is_ignored(norm: Function) -> bool:
    x = np.linspace(-0.1, 0.1, 64, dtype=np.float32)[None]
    shifted = norm(x + np.float32(10_000), 1e-5)
    return np.allclose(shifted, norm(x, 1e-5), atol=0.1)


def shifted_rows(rng: np.random.Generator) -> list[Case]:
    deviations = rng.uniform(-1, 1, (3, 64)).astype(np.float32)
    return [Case(f"float32 with mean {mean:g}", (deviations + np.float32(mean), 1e-5)) for mean in (0.0, 10.0, 4000.0)]


@exhibit(
    bug="(centred * centred).mean(-1, keepdims=True) -> (x * x).mean(-1, keepdims=True) - mean * mean",
    says="the variance is a difference of two large numbers; take the mean of the squared deviations.",
    report="tracel-ai/burn/issues/5607",
    year=2026,
    test=shift_is_ignored,
    cases=shifted_rows,
    others=[("no_root", "np.sqrt(var + eps) -> (var + eps)", "the root is missing.")],
)
def one_read_norm(x, eps):
    mean = x.mean(-1, keepdims=True)
    centred = x - mean
    var = (centred * centred).mean(-1, keepdims=True)
    return centred / np.sqrt(var + eps)


def rows_have_rms_one(norm: Function) -> bool:
    x = np.arange(10.0)[None]  # the mean is not 0
    return np.allclose((norm(x, np.ones(10), 0.0) ** 2).mean(), 1)


@exhibit(
    bug="(x * x).mean(-1, keepdims=True) -> x.var(-1, keepdims=True)",
    says="the variance subtracts the mean, which RMSNorm does not; take the mean of the squares.",
    report="keras-team/keras/issues/21234",
    year=2025,
    test=rows_have_rms_one,
    cases=row_cases(3, 6, mean=2.0, args=(np.linspace(0.5, 1.5, 6), 1e-3)),
    others=[("centred_too", "gain * x -> gain * (x - x.mean(-1, keepdims=True))", "x is centred; RMSNorm does not.")],
)
def root_mean_square(x, gain, eps):
    power = (x * x).mean(-1, keepdims=True)
    rstd = 1 / np.sqrt(power + eps)
    return gain * x * rstd


def padding_does_not_count(variance: Function) -> bool:
    x = np.random.default_rng(0).normal(5, 1, 17)
    return np.allclose(variance(x, 32), variance(x, 17))


def lanes(rng: np.random.Generator) -> list[Case]:
    return [Case(f"{d} values in 32 lanes", (rng.normal(5, 1, d), 32)) for d in (32, 17, 3)]


@exhibit(
    bug="block[: x.size] -= mean -> block -= mean",
    says="the padded lanes hold 0, so subtracting the mean makes them count; subtract it from the values alone.",
    report="triton-lang/triton/issues/9838",
    year=2026,
    test=padding_does_not_count,
    cases=lanes,
    others=[
        (
            "all_lanes",
            "(block * block).sum() / x.size -> (block * block).mean()",
            "the sum is divided by the number of lanes, not by that of the values.",
        )
    ],
)
def block_variance(x, width):
    block = np.zeros(width)  # as a kernel loads a row
    block[: x.size] = x
    mean = block.sum() / x.size
    block[: x.size] -= mean
    return (block * block).sum() / x.size
