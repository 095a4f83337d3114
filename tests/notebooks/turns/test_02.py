"""Chapter 02, Residual connections, and its deep dives: what their turns promise."""

import re

import numpy as np
from helpers.turns import turned

# 02, Residual connections


def test_the_plain_gradient_vanishes_with_depth_and_the_residual_one_grows():
    at = {depth: run.columns for depth, run in turned("02-residual-connections", "depth").items()}
    plain, residual = ({depth: columns[k][0].item() for depth, columns in at.items()} for k in (0, 1))
    assert 1 > plain["8"] > 1e4 * plain["32"]
    assert plain["128"] < 1e-40
    assert 1 < residual["8"] < residual["32"] / 2 < residual["128"] / 100


def test_an_orthogonal_branch_wipes_out_a_direction_and_an_antisymmetric_one_shortens_none():
    at = {branch.strip("'\""): run.factors for branch, run in turned("02-residual-connections", "branch").items()}
    assert at["orthogonal"].min() < 1e-10
    assert at["antisymmetric"].min() > 1 - 1e-10
    assert 1e-4 < at["random"].min() < 0.2
    assert all(0.25 < np.mean(at[branch] < 1) < 0.5 for branch in ("random", "orthogonal"))


def test_the_mean_drifts_unless_the_branch_ends_in_something_odd():
    at = {end: run.stream.mean() / run.stream.std() for end, run in turned("02-residual-connections", "end").items()}
    assert abs(at["np.tanh"]) < 0.1 < 1.5 < at["silu"] < at["relu"]


def test_without_attention_the_story_still_begins_and_without_feed_forward_it_does_not():
    at = {
        which: re.split(r"\w+:\n", run.printed)[1].split()
        for which, run in turned("02-residual-connections", "sublayers").items()
    }
    assert "Lily." in at["[4]"]
    assert at["range(0, 10, 2)"][:2] == ["Once", "upon"]
    assert "Lily." not in at["range(0, 10, 2)"]
    assert at["range(1, 10, 2)"] == ["…"]


def test_before_the_first_block_the_model_repeats_the_last_word_and_ends_on_another():
    for prompt, run in turned("02-residual-connections", "prompt").items():
        lines = [line[3:].split(", ")[0] for line in run.printed.splitlines()]
        last = f"' {prompt.strip(chr(39) + chr(34)).split()[-1]}'"
        assert len(lines) == 6
        assert lines[0] == last != lines[-1] != lines[3]


# 02a, Recipes of the family


def test_a_half_open_gate_lets_the_least_of_the_gradient_through():
    at = turned("02a-recipes-of-the-family", "gate")
    arrives = {b_T: run.first_x.grad.norm().item() for b_T, run in at.items()}
    assert arrives["-8.0"] > 0.9 > 0.01 > max(arrives["-2.0"], arrives["2.0"])
    assert arrives["0.0"] < 1e-3 * min(arrives["-2.0"], arrives["2.0"])


def test_a_tenth_of_the_branches_leaves_a_hundredth_of_the_difference():
    at = turned("02a-recipes-of-the-family", "smaller")
    ends = {s: [float(line.split()[0]) for line in run.printed.splitlines()] for s, run in at.items()}
    gaps = {s: abs(one - other) for s, (one, other) in ends.items()}
    assert gaps["1.0"] > 0.1
    assert all(50 < gaps[large] / gaps[small] < 200 for large, small in (("1.0", "0.1"), ("0.1", "0.01")))


def test_without_decay_the_first_token_is_never_forgotten_and_a_fast_one_leaves_three_that_notice():
    at = {decay: run.noticed.norm(dim=-1) for decay, run in turned("02a-recipes-of-the-family", "decay").items()}
    assert at["0.0"][-1] > 0.05 > at["0.5"][-1] > 1e-3
    assert at["10.0"][:3].min() > 0.1
    assert at["10.0"][3:].max() < 1e-3
