"""Chapter 04, RMSNorm, and its deep dives: what their turns promise."""

import re

import numpy as np
from helpers.turns import turned


def numbers(printed):
    """The last number of each line."""
    return [float(re.findall(r"-?\d+\.?\d*", line)[-1]) for line in printed.splitlines()]


def test_a_shift_leaves_no_trace_in_layer_norm_and_drowns_the_token_in_rms_norm():
    at = turned("04-rmsnorm", "shift")
    for run in at.values():
        np.testing.assert_allclose(run.by_layer, at["0.0"].by_layer, rtol=0, atol=1e-9)
    spread = [np.ptp(run.by_rms) for run in at.values()]
    assert spread[0] > 2 * spread[1] > 1
    assert spread[2] < 0.02


def test_few_features_that_pass_a_relu_leave_hardly_any_mean():
    share = {bias: float(run.share.mean()) for bias, run in turned("04-rmsnorm", "bias").items()}
    assert share["-2.0"] < 0.1 < 0.25 < share["0.0"] < 0.4 < 0.7 < share["2.0"]


def test_half_a_gain_tells_another_story_and_no_gain_none():
    said = {power: run.printed.split() for power, run in turned("04-rmsnorm", "power").items()}
    assert said["1.0"][:6] == said["0.5"][:6] == ["Once", "upon", "a", "time,", "there", "was"]
    assert said["0.5"] != said["1.0"]
    assert set(said["0.0"]) == {"Once", "upon"}


def test_the_model_notices_an_eps_of_one_and_not_of_a_hundredth():
    said = {eps: run.printed for eps, run in turned("04-rmsnorm", "eps").items()}
    assert said["0.01"] == said["1e-5"]
    assert said["1.0"] == "nothing\n"


def test_a_wider_model_forgives_the_swap_only_slowly():
    moves = [numbers(run.printed) for run in turned("04-rmsnorm", "width").values()]
    assert all(centred == 0 for _, centred in moves)
    assert moves[0][0] > 2 * moves[2][0] > 0.2  # sixteen times the width
    assert moves[0][0] > moves[1][0] > 0.1


def test_of_two_features_layer_norm_passes_no_gradient():
    ranks = {features: numbers(run.printed) for features, run in turned("04-rmsnorm", "features").items()}
    assert ranks == {"16": [14, 15], "3": [1, 2], "2": [0, 1]}


def test_one_more_step_of_scale_and_the_token_is_gone():
    at = turned("04-rmsnorm", "scale")
    kept = {scale: run.narrow for scale, run in at.items()}
    np.testing.assert_allclose(kept["21.0"], np.array([2, 4, 6, 12]) / np.sqrt(50), rtol=2e-3)
    assert (kept["22.0"] == 0).all()
    assert (kept["25.0"] == 0).all()


# 04a, The mean, and parity


def test_three_pairs_would_have_called_layer_norm_the_better_one_and_eight_do_not():
    at = turned("04a-mean-and-parity", "pairs")
    above = {pairs: re.findall(r"in (\d) of", run.printed) for pairs, run in at.items()}
    lead = {
        pairs: [int(mean) for mean in re.findall(r"([+-]\d+) thousandths", run.printed)] for pairs, run in at.items()
    }
    assert above["3"] == ["3", "3"]
    assert min(lead["3"]) > 10
    assert all(three > five > eight for three, five, eight in zip(lead["3"], lead["5"], lead["8"], strict=True))
    assert np.abs(lead["8"]).max() < 10


def test_an_outlier_of_five_does_little_and_one_of_fifty_spoils_the_estimate():
    at = turned("04a-mean-and-parity", "outlier")
    middle = {outlier: float(run.found[1]) for outlier, run in at.items()}  # of half of the features
    assert middle["1.0"] > 0.98
    assert middle["5.0"] > 0.95
    assert middle["50.0"] < 0.7


def test_half_the_shift_changes_no_word_and_the_reverse_shift_does_other_damage():
    said = {c: run.printed.split() for c, run in turned("04a-mean-and-parity", "c").items()}
    assert said["0.1"][4:11] == ["there", "was", "a", "little", "girl", "named", "Lily."]
    assert said["0.2"][-10:] == ["time"] * 10
    assert said["-0.2"][4:6] == ["there", "was"]
    assert said["-0.2"] != said["0.1"]
