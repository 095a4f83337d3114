"""Chapter 07, After Pre-LN, and its deep dive: what their turns promise."""

import re

import pytest
from helpers.turns import turned


def numbers(line):
    return [float(one) for one in re.findall(r"\d[\d.]*(?:e[+-]?\d+)?", line)]


def test_only_pre_ln_grows_with_its_weights_until_eps_decides():
    at = {factor: run.streams for factor, run in turned("07-after-pre-ln", "factor").items()}
    for factor, expected in (("10", 100), ("100", 10_000)):
        grown = {name: (at[factor][name, float(factor)] / at[factor][name, 1]).mean() for name, _ in at[factor]}
        assert grown["pre"] > expected / 2
        assert grown["sandwich"] == pytest.approx(1, abs=0.01)
        assert grown["after_branch"] == pytest.approx(1, abs=0.01)
    for name in ("pre", "sandwich", "after_branch"):
        assert (at["0.001"][name, 0.001] < at["0.001"][name, 1] / 5).all()


def test_only_the_larger_power_moves_a_deep_stack_less():
    at = {}
    for power, run in turned("07-after-pre-ln", "power").items():
        found = [numbers(line) for line in run.printed.splitlines()]
        at[power] = [many / few for _, few, _, many in found]
    assert min(at["0.0"]) > 2
    assert 0.5 < min(at["0.25"]) <= max(at["0.25"]) < 2
    assert max(at["0.5"]) < 0.5


def test_an_open_gate_lets_the_gradient_in_and_the_stack_is_no_longer_the_identity():
    at = {
        alpha: [line.split(": ")[1] for line in run.printed.splitlines()]
        for alpha, run in turned("07-after-pre-ln", "alpha").items()
    }
    assert at == {
        "0.0": ["True", "False", "True"],
        "0.0001": ["False", "True", "True"],
        "1.0": ["False", "True", "True"],
    }


def test_loud_queries_see_one_key_unless_they_are_normalized():
    most, largest = {}, {}
    for size, run in turned("07-after-pre-ln", "size").items():
        found = [numbers(line.partition(":")[2]) for line in run.printed.splitlines()]
        largest[size], most[size] = zip(*found, strict=True)
    assert most["1.0"][0] < 60
    assert most["30"][0] > 85
    assert most["1000"][0] > 99
    assert largest["1000"][0] > 500
    for size in most:
        assert most[size][1] == most["1.0"][1] < 60
        assert largest[size][1] <= 4


def test_attention_residuals_are_the_first_to_leave_pre_ln():
    at = {}
    for eps, run in turned("07-after-pre-ln", "eps").items():
        at[eps] = [line.split()[0] for line in run.printed.splitlines() if line.endswith("True")]
    assert at["0.0"] == ["pre", "hyper_connections", "attention_residuals"]
    assert at["1e-05"] == ["pre", "hyper_connections"]
    assert at["0.01"] == ["pre"]


def test_qk_norm_ignores_a_loud_stream_but_not_one_as_small_as_eps():
    changes = {}
    for scale, run in turned("07a-placements-one-by-one", "scale").items():
        changes[scale] = [numbers(line)[-1] for line in run.printed.splitlines()]
    for scale, (without, with_qk_norm) in changes.items():
        assert without > 0.5
        assert (with_qk_norm > 0.5) == (scale == "0.001")
        assert with_qk_norm < 1e-3 or scale == "0.001"


def test_dropped_paths_keep_the_mean_and_the_variance_grows_as_the_law_says():
    at = {rate: numbers(run.printed) for rate, run in turned("07a-placements-one-by-one", "rate").items()}
    for rate, (mean, variance) in at.items():
        law = float(rate) / (1 - float(rate))
        assert mean == pytest.approx(1, abs=0.15)
        assert variance == pytest.approx(law, rel=0.15)
    assert at["0.9"][1] > 50 * at["0.1"][1]


def test_doubly_stochastic_mixing_keeps_one_direction_and_loses_the_others():
    at = {
        layers: [numbers(line) for line in run.printed.splitlines()]
        for layers, run in turned("07a-placements-one-by-one", "layers").items()
    }
    for _, tied in at.values():
        assert tied[0] == pytest.approx(1, abs=0.02)
    assert at["2"][0][0] < at["6"][0][0] < at["60"][0][0] / 10
    assert at["2"][1][1] > 10 * at["6"][1][1]
    assert at["60"][1][1] == 0


def test_dyt_gives_large_inputs_size_1_and_leaves_small_ones_small():
    at = {}
    for loud, run in turned("07a-placements-one-by-one", "loud").items():
        at[loud] = [numbers(line)[-1] for line in run.printed.splitlines()]
    for norm, _, _ in at.values():
        assert norm > 0.9
    for like_a_norm in at["1000.0"]:
        assert like_a_norm == pytest.approx(1, abs=0.02)
    assert max(at["0.01"][1:]) < 0.02
    assert max(at["1.0"][1:]) < 0.6


def test_a_published_family_loads_into_its_placement():
    at = {run.family: run.gap for run in turned("07a-placements-one-by-one", "family").values()}
    assert len(at) == 6
    assert max(at.values()) < 1e-6
    assert {name for name, gap in at.items() if gap < 1e-14} == {"BERT", "GPT-2"}


def test_the_same_weights_fit_another_placement_and_are_wrong_there():
    at = {run.placed: run.wrong for run in turned("07a-placements-one-by-one", "placed").values()}
    assert at.pop("pre") < 1e-6
    assert min(at, key=at.get) == "layernorm_scaling"
    assert all(wrong > 0.05 for wrong in at.values())


def test_a_capped_logit_stays_below_the_cap_and_loses_its_gradient():
    at = {}
    for logit, run in turned("07b-the-attention-logits", "logit").items():
        at[logit] = numbers(run.printed)[1:]
    capped, slopes = zip(*at.values(), strict=True)
    assert list(at) == ["10.0", "60.0", "300.0"]
    assert 9 < capped[0] < 10
    assert max(capped) <= 50
    assert slopes[0] > 0.9
    assert 0.1 < slopes[1] < 0.5
    assert slopes[2] < 1e-4


def test_only_the_cross_entropy_ignores_a_shift_of_all_scores():
    at = {shift: numbers(run.printed) for shift, run in turned("07b-the-attention-logits", "shift").items()}
    for shift, (cross_entropy, log_z, z_loss) in at.items():
        assert cross_entropy == at["0.0"][0]
        assert abs(log_z - abs(at["0.0"][1] + float(shift))) < 0.11  # without its sign
        assert (z_loss > 0.01) == (shift != "0.0")


def test_a_sink_takes_attention_and_keeps_the_order_of_the_keys():
    at = {}
    for sink, run in turned("07b-the-attention-logits", "sink").items():
        at[sink] = numbers(run.printed)
    nowhere = [row[-1] for row in at.values()]
    assert nowhere == sorted(nowhere)
    assert nowhere[0] < 0.1 < 0.6 < nowhere[1] < 0.99 < nowhere[2]
    for row in at.values():
        assert sum(row) == pytest.approx(1, abs=0.002)
        assert row[:3] == sorted(row[:3], reverse=True)


def test_only_a_norm_before_the_gate_lets_the_gate_set_the_size():
    at = {
        float(opening): [numbers(line)[-1] for line in run.printed.splitlines()]
        for opening, run in turned("07b-the-attention-logits", "opening").items()
    }
    for opening, (gate_last, norm_last) in at.items():
        assert gate_last == pytest.approx(opening * at[1.0][0], rel=0.05)
        assert norm_last == pytest.approx(1, abs=0.11)


def test_a_low_threshold_rescues_the_high_rate_and_costs_at_the_good_one():
    at = {
        threshold: [numbers(line)[-1] for line in run.printed.splitlines()]
        for threshold, run in turned("07b-the-attention-logits", "threshold").items()
    }
    (high, good), (_, good_at_low), (high_at_k2, good_at_k2) = at.values()
    assert list(at) == ["10.0", "3.0", "100.0"]
    assert high < high_at_k2 - 0.2
    assert good_at_k2 < 0.2 < 0.4 < good_at_low
    assert good_at_k2 < good < good_at_low
