"""Chapter 02, Residual connections, and its deep dives: what their turns promise."""

import re

import numpy as np
from helpers.turns import turned


def gradients(printed):
    """{wiring: norm} as the cell printed them."""
    return {wiring: float(norm) for wiring, norm in map(str.split, printed.splitlines())}


def test_the_plain_gradient_vanishes_with_depth_and_the_residual_one_grows():
    at = {depth: gradients(run.printed) for depth, run in turned("02-residual-connections", "depth").items()}
    assert 1 > at["8"]["plain"] > 1e4 * at["32"]["plain"]
    assert at["128"]["plain"] < 1e-40
    assert 1 < at["8"]["residual"] < at["32"]["residual"] / 2 < at["128"]["residual"] / 100


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
