"""Chapter 10, Norms at work, and its deep dives: what their turns promise."""

import re

from helpers.turns import turned


def first_number(run):
    return float(re.search(r"\d[\d.]*", run.printed)[0])


def test_two_processes_tell_a_story_and_eight_lose_it():
    at = turned("10-norms-at-work", "shards")
    for shards in ("2", "4"):
        assert at[shards].printed.startswith("Once upon a time, there was a little girl named Lily.")
    assert "Lily" not in at["8"].printed


def test_the_wider_the_token_the_less_a_test_sees():
    at = turned("10-norms-at-work", "features")
    assert first_number(at["8"]) > 10 > first_number(at["64"]) > 2 * first_number(at["4096"])


def test_agreement_finds_one_mistake_and_one_process_finds_both():
    found = {
        mistake[1:-1]: re.findall("True|False", run.printed)
        for mistake, run in turned("10-norms-at-work", "mistake").items()
    }
    assert found == {"averaged": ["True", "False"], "not summed": ["False", "False"], "none": ["True", "True"]}


def test_a_norm_for_each_head_sends_nothing():
    at = {over[1:-1]: run.printed for over, run in turned("10-norms-at-work", "over").items()}
    assert "sends 60 numbers for 60 tokens" in at["all heads"]
    assert "sends 0 numbers" in at["each head"]


def test_other_threads_move_some_rows_and_the_same_threads_none():
    at = {threads: int(run.moved.sum()) for threads, run in turned("10-norms-at-work", "threads").items()}
    assert at["1024"] == 0
    assert 10 < min(at["512"], at["256"]) <= max(at["512"], at["256"]) < 128


def test_the_story_turns_at_the_last_digit_of_bfloat16():
    at = turned("10-norms-at-work", "digits")
    assert at["23"].printed == at["10"].printed == "the same tokens: all 256\n"
    assert 50 < at["7"].same.index(False) < 256


def test_two_blocks_have_one_sum_and_three_blocks_three():
    at = {blocks: int(first_number(run)) for blocks, run in turned("10-norms-at-work", "blocks").items()}
    assert at["2"] == 1
    assert at["3"] == 3
    assert at["64"] > 40


def test_the_story_misses_neighbours_more():
    at = {order: run.loss for order, run in turned("10c-cut-and-looped", "order").items()}
    assert at["[1, 2, 4, 5]"] + 0.5 < at["[1, 2, 4]"] < at["[1, 2, 5]"] - 0.5


def test_only_post_ln_turns_the_stream_in_deep_blocks():
    deep = {name[1:-1]: run.turned[-1] for name, run in turned("10c-cut-and-looped", "placement").items()}
    assert deep["post"] > 0.2
    assert deep["layernorm_scaling"] < deep["pre"] / 3 < 0.004


def test_a_later_exit_is_right_more_often_and_saves_less():
    at = {first: (run.same.mean(), run.after.mean()) for first, run in turned("10c-cut-and-looped", "first").items()}
    assert at["1"][0] < 0.3 < 0.85 < at["3"][0] < at["4"][0] < 1
    assert at["1"][1] < 2 < 4.5 < at["3"][1] < at["4"][1] < 5


def test_only_a_norm_on_the_sum_stops_a_loop():
    at = {where[1:-1]: first_number(run) for where, run in turned("10c-cut-and-looped", "where").items()}
    assert at["branch"] > at["nowhere"] + 20 > 60
    assert at["sum"] == 1


def test_a_planted_outlier_costs_more_the_louder_it_is_and_smoothing_undoes_it():
    at = {}
    for factor, run in turned("10a-outliers-and-rotations", "factor").items():
        at[factor] = [float(line.split()[-2]) for line in run.printed.splitlines()]
    assert at["1"][0] == 0
    assert 0 < at["30"][0] < 2 < at["100"][0]
    assert [smoothed for _, smoothed in at.values()] == [0, 0, 0]


def test_a_rotation_needs_the_gains_folded():
    at = {folded: run.error for folded, run in turned("10a-outliers-and-rotations", "folded").items()}
    assert at["True"] < 1e-12
    assert at["False"] > 0.1


def test_a_gain_in_bfloat16_loses_small_steps():
    at = {
        rate: [float(line.split()[1]) for line in run.printed.splitlines()]
        for rate, run in turned("10a-outliers-and-rotations", "rate").items()
    }
    assert at["0.001"] == [1, 1.1]
    assert at["0.01"][0] < 2
    assert at["0.01"][0] > 1.5


def test_a_folded_batch_norm_is_the_one_of_evaluation():
    at = {training: run.error.item() for training, run in turned("10d-without-a-norm", "training").items()}
    assert at["False"] < 1e-12 < 0.1 < at["True"]


def test_standardised_weights_have_no_offsets_and_pass_the_variance():
    at = {}
    for weights, run in turned("10d-without-a-norm", "weights").items():
        at[weights[1:-1]] = run.offsets.std(), run.y.var(axis=0).mean() / run.h.var()
    assert at["plain"][0] > 0.3 > 0.05 > at["standardised"][0]
    assert abs(at["standardised"][1] - 1) < 0.05 < abs(at["plain"][1] - 1)


def test_only_a_large_gradient_is_clipped():
    at = {}
    for size, run in turned("10d-without-a-norm", "size").items():
        at[size] = [float(line.split()[-4]) for line in run.printed.splitlines()]
    assert at["0.0001"][0] == at["0.0001"][1] < 0.01
    for size in ("1.0", "1000000.0"):
        assert at[size][0] > 1
        assert at[size][1] == 0.01


def test_only_stacked_gains_decay_by_axes():
    at = {layout[1:-1]: run.decaying for layout, run in turned("10b-fine-tuning", "layout").items()}
    assert at == {"stacked": 11 * 64, "one by one": 0}


def test_only_eval_freezes_the_statistics():
    at = {
        freeze[1:-1]: float(run.norm.running_mean.mean()) for freeze, run in turned("10b-fine-tuning", "freeze").items()
    }
    assert at["gain and shift"] > 0.2
    assert at["statistics, too"] == 0
