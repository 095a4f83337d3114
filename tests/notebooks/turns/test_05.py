"""Chapter 05, Pre-LN or Post-LN?, and its deep dives: what their turns promise."""

import re

import numpy as np
from helpers.turns import turned

from subnorm_lab.experiments import warmup


def numbers(line):
    return [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e-\d+)?", line)]


def by_placement(printed):
    """The last number of the line of each placement."""
    return {line.split()[0]: numbers(line)[-1] for line in printed.splitlines()}


def test_pre_ln_notices_the_scale_and_post_ln_does_not():
    at = turned("05-pre-ln-or-post-ln", "scale")
    x = np.array([2.0, 4.0, 6.0, 12.0])
    for run in at.values():
        np.testing.assert_allclose(run.post, [1, -1, -1, 1])
    np.testing.assert_allclose(at["1000.0"].pre, 1000 * x, rtol=1e-3)  # the branch hardly counts
    np.testing.assert_allclose(at["0.001"].pre, ((x - x.mean()) / x.std())[::-1], atol=0.02)  # nor does x


def test_only_pre_ln_still_knows_its_token_and_its_stream_grows():
    found = {}
    for blocks, run in turned("05-pre-ln-or-post-ln", "blocks").items():
        post, pre = (numbers(line.split("LN")[1]) for line in run.printed.splitlines())
        found[int(blocks)] = post, pre
        assert post[1] == 1
        assert 1.5 * int(blocks) < pre[1] < 2.5 * int(blocks) + 1
    assert min(found[1][0][0], found[1][1][0]) > 0.4
    for blocks in (12, 100):
        post, pre = found[blocks]
        assert abs(post[0]) < 0.05 < pre[0]


def test_a_branch_of_twice_the_size_adds_four_times_as_much():
    grown = {branch: numbers(run.printed)[-1] - 1 for branch, run in turned("05-pre-ln-or-post-ln", "branch").items()}
    assert 3.5 < grown["2.0"] / grown["1.0"] < 4.5
    assert 0.7 < grown["0.144"] < 1.3


def test_small_weights_keep_the_tokens_apart_and_large_ones_hurt_post_ln_alone():
    at = {factor: by_placement(run.printed) for factor, run in turned("05-pre-ln-or-post-ln", "factor").items()}
    assert at["0.5"]["post"] < 0.2
    assert at["0.5"]["pre"] < 0.2
    assert at["1.0"]["post"] < at["4.0"]["post"]
    assert at["4.0"]["post"] > 0.99
    assert at["4.0"]["pre"] < at["1.0"]["pre"] + 0.05 < 0.7


def test_the_last_gradient_of_post_ln_does_not_notice_the_depth():
    at = {depth: by_placement(run.printed) for depth, run in turned("05-pre-ln-or-post-ln", "depth").items()}
    post = [found["post"] for found in at.values()]
    assert max(post) < 1.1 * min(post)
    for fewer, more in (("2", "8"), ("8", "32")):  # four times as many blocks halve it, or nearly so
        assert 0.35 < at[more]["pre"] / at[fewer]["pre"] < 0.75


def test_a_trained_model_stands_a_norm_that_moves_unless_it_is_the_first():
    told = {at: run.printed for at, run in turned("05-pre-ln-or-post-ln", "rewired").items()}
    for at in ("9", "5"):
        assert "a little girl named Lily. She loved to play" in told[at]
    assert "girl" not in told["0"]
    assert told["0"].count("time") > 2


# 05a, Gradients by placement


def test_no_gradient_gets_through_post_ln_by_hand():
    for run in turned("05a-gradients-by-placement", "dy").values():
        np.testing.assert_allclose(run.post_dx, 0, atol=1e-12)
        assert np.abs(run.behind_norm).max() > 0.1
        assert np.linalg.norm(run.pre_dx) > 0.5 * np.linalg.norm(run.dy)


def test_the_whole_gradient_does_not_follow_the_skip_path_down():
    for depth, run in turned("05a-gradients-by-placement", "depth").items():
        (post_skip, post), (pre_skip, pre) = (numbers(line) for line in run.printed.splitlines())
        assert abs(post_skip ** (1 / int(depth)) - 0.5**0.5) < 0.03
        assert 0.3 < post < 3
        assert pre_skip == 1
        assert 0.8 < pre / np.sqrt(int(depth) + 1) < 1.2


# 05b, Warm-up


def test_a_large_eps_makes_adam_follow_the_gradient():
    gradient = np.array([1e-3, -1e-2, 1.0, 50.0])
    for eps, run in turned("05b-warm-up", "eps").items():
        share = np.array(run.weights.tolist()) / -0.015
        np.testing.assert_allclose(share, gradient / (abs(gradient) + float(eps)), rtol=1e-4)
        full = abs(share) > 0.98
        assert (
            full.tolist()
            == {
                "1e-8": [True, True, True, True],
                "0.001": [False, False, True, True],
                "1.0": [False, False, False, True],
            }[eps]
        )


def test_a_quarter_of_the_run_is_warm_up_enough_and_a_twentieth_is_not():
    chance = warmup.MAPS["deep"].task.chance
    below = {length: chance - np.array(run.ends) for length, run in turned("05b-warm-up", "length").items()}
    assert min(below["50"].min(), below["25"].min()) > 0.2
    assert abs(below["5"]).max() < 0.1


# 05c, Rank collapse


def test_opposite_tokens_differ_most():
    at = {multiple: numbers(run.printed)[-1] for multiple, run in turned("05c-rank-collapse", "multiple").items()}
    assert at == {"0.5": 0.316, "1.0": 0, "0.0": 0.707, "-1.0": 1}


def test_a_tenth_of_a_skip_path_stops_the_cube():
    at = {
        keep: [numbers(line)[-1] for line in run.printed.splitlines()]
        for keep, run in turned("05c-rank-collapse", "keep").items()
    }
    assert at["0.0"][3:] == [1e-15] * 3
    falls = np.divide(at["0.1"][2:], at["0.1"][1:-1])
    assert ((falls > 0.03) & (falls < 0.3)).all()  # about a tenth of r is left each time: no cube
    assert at["1.0"][-1] > 0.1
    assert at["3.0"][-1] > 0.8


def test_the_softmax_ignores_a_shift_until_it_rounds_the_scores():
    for shift, run in turned("05c-rank-collapse", "shift").items():
        plain, shifted = run.printed.splitlines()
        assert (plain == shifted) == (shift != "1e+17")
