"""Chapter 03, Layer normalization, and its deep dives: what their turns promise."""

import re

import numpy as np
from helpers.turns import turned

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
