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


def last(run):
    return [numbers(line)[-1] for line in run.printed.splitlines()]


def test_the_eps_outside_the_root_shows_on_small_rows_alone():
    at = {size: last(run) for size, run in turned("09a-the-bug-museum", "size").items()}
    assert at["1.0"] == [1, 1]
    for size in ("0.001", "1e-05"):
        assert at[size][0] > 2 * at[size][1]
    assert at["1e-05"][1] < 0.01


def test_a_single_empty_lane_spoils_the_variance_and_none_does_not():
    for values, run in turned("09a-the-bug-museum", "values").items():
        lanes = 32 - int(values)
        expected = run.kernel_row.var() + lanes * run.kernel_row.mean() ** 2 / int(values)
        assert run.computed == pytest.approx(expected)
        assert (run.computed > 1.5 * run.kernel_row.var()) == (lanes > 0)


def test_the_option_named_rms_is_an_rms_norm_for_mean_0_alone():
    at = {mean: last(run) for mean, run in turned("09b-the-convention-map", "mean").items()}
    assert [rms for _, rms in at.values()] == [1, 1, 1]
    assert at["0.0"][0] == pytest.approx(1, abs=0.02)
    assert at["1.0"][0] > 1.2
    assert at["100.0"][0] > 50


def test_eps_under_the_root_lets_the_output_shrink_first_and_a_least_length_last():
    at = {size: last(run) for size, run in turned("09b-the-convention-map", "size").items()}
    assert at["1.0"] == [1, 1, 1]
    inside, outside, clamp = at["0.001"]
    assert inside < 0.5 < outside < clamp == 1
    inside, outside, clamp = at["1e-06"]
    assert inside < outside / 10 < outside < clamp / 2 < 0.5


def test_an_outlier_leaves_few_of_the_values_of_the_others():
    at = turned("09c-quantisation-autocast-export", "outlier")
    left = {outlier: len(np.unique(run.kept)) for outlier, run in at.items()}
    assert left["3.0"] > 3 * left["30.0"] > 10 * left["1000.0"]
    assert np.mean(at["1000.0"].kept == 0) > 0.99


def test_a_scaled_loss_saves_the_gradient_until_it_overflows():
    at = turned("09c-quantisation-autocast-export", "scale")
    wrong = {scale: float(run.wrong.double().mean()) for scale, run in at.items()}
    assert wrong["1.0"] > 0.5
    assert wrong["4096.0"] < 0.01
    assert wrong["1000000000000.0"] > 0.5
    assert [bool(run.rounded.isinf().any()) for run in at.values()] == [False, False, True]


def test_only_the_sum_of_cubes_has_a_gradient():
    at = {power: last(run)[0] for power, run in turned("09d-when-something-breaks", "power").items()}
    assert at["1"] == at["2"] == 0
    assert at["3"] > 1


def test_without_keepdims_only_a_single_token_is_right():
    at = {tokens: run.printed for tokens, run in turned("09d-when-something-breaks", "tokens").items()}
    assert numbers(at["8"])[0] > 0.1
    assert "could not be broadcast" in at["4"]
    assert numbers(at["1"]) == [0]
