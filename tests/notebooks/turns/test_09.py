"""Chapter 09, When norms go wrong, and its deep dives: what their turns promise."""

import re

import numpy as np
import pytest
from helpers.turns import turned


def numbers(line):
    return [float(one) for one in re.findall(r"-?\d[\d.]*(?:e[+-]?\d+)?", line)]


def test_a_float16_norm_is_right_at_255_and_returns_zeros_at_256():
    at = turned("09-when-norms-go-wrong", "size")
    for size, run in at.items():
        expected = [1, -1, 1, -1] if size == "255.0" else [0, 0, 0, 0]
        np.testing.assert_allclose(run.y, expected, atol=1e-3)
        assert np.isfinite(run.mean_square) == (size == "255.0")


def test_a_louder_stream_breaks_earlier_and_in_other_tokens():
    at = {}
    for louder, run in turned("09-when-norms-go-wrong", "louder").items():
        at[louder] = {tuple(map(int, re.findall(r"\d+", line))) for line in run.printed.splitlines()}
    assert at["2.0**13"] == {(10, 0)}
    assert {token for _, token in at["2.0 ** 14"]} == {0}
    assert max(sublayer for sublayer, _ in at["2.0 ** 14"]) < 10
    assert {sublayer for sublayer, _ in at["2.0 ** 16"]} == {0}
    assert 0 not in {token for _, token in at["2.0 ** 16"]}


def test_far_from_0_one_pass_is_lost_and_then_the_others_err_too():
    off, least = {}, {}
    for mean, run in turned("09-when-norms-go-wrong", "mean").items():
        found = [numbers(line)[-2:] for line in run.printed.splitlines()]
        off[mean], least[mean] = zip(*found, strict=True)
    one, two, welford = zip(*(off[mean] for mean in ("1000.0", "10000.0", "1000000.0")), strict=True)
    assert 5 < one[0] < one[1] / 10 < one[2] / 100  # percent
    assert least["10000.0"][0] <= 0 < least["1000.0"][0]
    assert max(two[0], welford[0]) < 0.1
    assert min(two[2], welford[2]) > 0.5


def test_float16_loses_an_eps_of_a_hundred_millionth_but_keeps_ten_times_as_much():
    for eps, run in turned("09-when-norms-go-wrong", "eps").items():
        lost = [line.split()[0] for line in run.printed.splitlines() if line.endswith("nan")]
        assert lost == ([] if eps == "1e-07" else ["float16"])


def test_with_many_features_the_two_libraries_agree_to_three_digits():
    at = turned("09-when-norms-go-wrong", "features")
    for features, run in at.items():
        d = int(features)
        assert run.theirs[0] / run.copied[0] == pytest.approx((d / (d - 1)) ** 0.5)
    assert at["4"].theirs[0] / at["4"].copied[0] > 1.1
    assert at["1024"].theirs[0] / at["1024"].copied[0] < 1.001
