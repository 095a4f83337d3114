"""Chapter 01, Why depth breaks, and its deep dive: what their turns promise."""

import numpy as np
from helpers.turns import turned

# 01, Why depth breaks


def test_only_the_stack_with_skip_and_norm_doubles_when_the_depth_is_four_times_as_large():
    at = turned("01-why-depth-breaks", "blocks")
    size = {
        stack: [getattr(at[blocks], stack).square().mean().sqrt().item() for blocks in ("24", "96", "384")]
        for stack in ("plain", "skip", "both")
    }
    assert all(1.6 < large / small < 2.5 for small, large in zip(size["both"], size["both"][1:], strict=False))
    assert size["plain"][0] > 1e8 * size["plain"][1] > 1e16 * size["plain"][2]
    assert size["skip"][0] < 1e-4 * size["skip"][1] < 1e-8 * size["skip"][2]


def test_a_factor_a_hundredth_from_one_is_not_close_enough():
    at = turned("01-why-depth-breaks", "factor")
    assert at["0.99"].left < 1 / 2 < 2 < at["1.01"].left < 3
    assert at["0.9"].left < 1e-4 < 1e4 < at["1.1"].left


def test_xavier_keeps_what_forgets_its_signs_and_loses_what_relu_halves():
    at = {f: np.mean(run.h**2) for f, run in turned("01-why-depth-breaks", "activation").items()}
    assert 0.2 < at["np.abs"] < 5
    assert 0.005 < at["np.tanh"] < 0.05
    assert at["relu"] < 1e-8


def test_the_default_init_trains_twelve_plain_layers_and_not_twenty():
    at = {depth: run.losses[:, -50:].mean(axis=1) for depth, run in turned("01-why-depth-breaks", "depth").items()}
    assert at["20"].min() > 0.9
    assert max(at["12"].max(), at["4"].max()) < 0.5


def test_the_model_tells_a_story_with_nine_tenths_of_its_skips_and_loops_with_a_tenth_too_much():
    at = turned("01-why-depth-breaks", "keep")
    told = {keep: " ".join(run.printed.split("\n\n")[1].split()) for keep, run in at.items()}
    assert "a little girl named Lily" in told["0.9"]
    assert len(set(told["0.9"].split())) > 15 > 5 > len(set(told["1.1"].split()))
    assert all("Lily" not in told[keep] for keep in ("0.0", "0.5", "1.1"))


# 01a, Attention in twenty lines


def test_the_sharper_the_scores_the_nearer_the_mean_is_to_one_value():
    at = turned("01a-attention-in-twenty-lines", "sharpness")
    means = {sharpness: float(run.printed.split("->")[1]) for sharpness, run in at.items()}
    assert means["10"] > 11.9
    assert means["0"] == 6
    assert 4 < means["-1"] < 5


def test_attention_knows_the_order_through_a_causal_mask_alone():
    at = turned("01a-attention-in-twenty-lines", "mask")
    assert {mask: run.printed.split()[-1] for mask, run in at.items()} == {"None": "True", "causal": "False"}


def test_a_mask_hides_every_number_and_not_infinity():
    at = turned("01a-attention-in-twenty-lines", "last")
    printed = {last: run.printed.split()[-1] for last, run in at.items()}
    assert printed == {"1000.0": "True", "1e+100": "True", "np.inf": "False"}
