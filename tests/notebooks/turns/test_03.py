"""Chapter 03, Layer normalization, and its deep dives: what their turns promise."""

import re

import numpy as np
from helpers.turns import turned

# 03, Layer normalization


def test_the_million_comes_out_larger_the_more_quiet_features_are_beside_it():
    at = turned("03-layer-normalization", "quiet")
    for run in at.values():
        assert abs(run.came_out[-1] - np.sqrt(len(run.quiet))) < 0.01
    assert [len(run.quiet) for run in at.values()] == [3, 100, 10_000]


def test_half_precision_alone_feels_a_shift_and_then_loses_the_token():
    at = turned("03-layer-normalization", "shift")
    rows = {
        shift: {line.split("]")[1].strip(): line.split("]")[0] for line in run.printed.splitlines()}
        for shift, run in at.items()
    }
    assert len({found[name] for found in rows.values() for name in ("float64", "float32")}) == 1
    assert rows["100"]["float16"] == rows["100"]["float64"] != rows["10000"]["float16"]
    assert {float(number) for number in re.findall(r"[-\d.]+", rows["60000"]["float16"])} == {0}


def test_decay_spares_the_matrix_until_eps_is_larger_than_what_is_left():
    at = turned("03-layer-normalization", "decay")
    matrix = [run.y_matrix.std() for run in at.values()]
    gain = [run.y_gain.std() for run in at.values()]
    assert matrix[0] > 0.999 > matrix[1] > 0.95 > 0.1 > matrix[2]
    assert 0.4 > gain[0] > 0.01 > gain[1] > gain[2]


def test_the_tokens_that_move_are_those_that_share_the_statistics():
    moves = {axes: run.moves.tolist() for axes, run in turned("03-layer-normalization", "axes").items()}
    assert moves["2"] == [[False, False, True], [False, False, False]]
    assert moves["(1, 2)"] == [[True, True, True], [False, False, False]]
    assert moves["0"] == [[False, False, True], [False, False, True]]
    assert moves["(0, 1)"] == [[True, True, True], [True, True, True]]


def test_with_a_tiny_eps_a_whisper_is_as_loud_as_a_shout_and_a_large_one_turns_down_the_shout():
    at = turned("03-layer-normalization", "eps")
    heard = {eps: [float(line.split()[-1]) for line in run.printed.splitlines()] for eps, run in at.items()}
    assert heard["1e-12"] == [1.0] * 5
    assert heard["1e-5"][0] == 1 > 0.1 > heard["1e-5"][-1]
    assert 0.96 > heard["0.1"][0] > heard["0.1"][1] > heard["0.1"][2]


def test_the_story_breaks_without_a_cache_and_the_cache_hides_it():
    at = turned("03-layer-normalization", "wrong")
    told = {wrong: [line[13:].strip() for line in run.printed.splitlines()] for wrong, run in at.items()}
    assert len({cached for cached, _ in told.values()}) == 1
    assert all("a little girl named Lily" in told[wrong][1] for wrong in ("[0]", "range(3)"))
    assert all("Lily" not in told[wrong][1] for wrong in ("range(5)", "range(11)"))


# 03a, The backward pass of LayerNorm


def test_a_large_feature_is_as_far_up_as_it_can_be_and_has_no_gradient():
    at = turned("03a-layer-norm-backward", "largest")
    tops = [run.token_hat[-1] for run in at.values()]
    gradients = [run.dtoken[-1] for run in at.values()]
    assert tops == sorted(tops)
    assert tops[-1] < np.sqrt(3) < 1.001 * tops[-1]
    assert 5 * gradients[1] < gradients[0] < 0.1
    assert 0 < gradients[2] < 1e-5 * gradients[1]


def test_the_first_two_powers_are_blind_and_the_third_is_not():
    largest = {power: np.abs(run.drows).max() for power, run in turned("03a-layer-norm-backward", "power").items()}
    assert largest["1"] < 1e-12
    assert 1e-6 < largest["2"] < 1e-2
    assert largest["3"] > 1


def test_a_little_randomness_finds_all_faults_but_the_forgotten_gain():
    at = turned("03a-layer-norm-backward", "mix")
    passes = {
        mix: {line[:26].strip() for line in run.printed.splitlines() if "passes" in line} for mix, run in at.items()
    }
    assert passes.pop("0.0") == {"variance taken as constant", "gamma forgotten", "a wrong sign"}
    assert passes == {"1e-06": {"gamma forgotten"}, "1.0": {"gamma forgotten"}}


# 03b, BatchNorm, GroupNorm, InstanceNorm


def test_padding_makes_the_words_large_through_batch_norm_alone():
    at = turned("03b-batch-group-instance", "pads")
    found = {pads: dict(map(str.split, run.printed.splitlines())) for pads, run in at.items()}
    assert {sizes["LayerNorm"] for sizes in found.values()} == {"1.0"}
    assert {pads: sizes["BatchNorm"] for pads, sizes in found.items()} == {"30": "2.0", "0": "1.0", "1000": "10.0"}


def test_of_one_row_nothing_is_left_and_of_two_only_which_is_larger():
    at = turned("03b-batch-group-instance", "rows")
    sizes = {rows: {number.lstrip("-") for number in re.findall(r"[-\d.]+", run.printed)} for rows, run in at.items()}
    assert (sizes["1"], sizes["2"]) == ({"0."}, {"1."})
    assert len(sizes["3"]) > 10


def test_the_gap_between_the_modes_narrows_and_never_closes():
    gaps = {batches: run.gap for batches, run in turned("03b-batch-group-instance", "batches").items()}
    assert gaps["3"] > 2
    assert all(0.2 < gaps[batches] < 1.5 for batches in ("30", "300"))
