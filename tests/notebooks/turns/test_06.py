"""Chapter 06, The block, assembled, and its deep dives: what their turns promise."""

import numpy as np
from helpers.turns import turned


def test_only_rms_norm_lets_the_shift_reach_the_later_tokens():
    moved = {norm: run.moved.amax(dim=1) for norm, run in turned("06-the-block-assembled", "norm").items()}
    for by in moved.values():
        assert by[:2].max() < 1e-5
    assert moved['"layer"'][3:].max() < 1e-5
    assert abs(moved['"layer"'][2] - 1) < 1e-5
    assert moved["'rms'"][3:].min() > 0.01


def test_only_a_mask_makes_the_order_count():
    gap = {part: np.abs(run.before - run.after).max() for part, run in turned("06-the-block-assembled", "part").items()}
    assert gap.pop("'masked'") > 0.1
    assert len(gap) == 3
    assert max(gap.values()) < 1e-12


def test_what_is_not_dropped_makes_up_for_the_rest():
    at = turned("06-the-block-assembled", "p")
    for run in at.values():
        np.testing.assert_allclose((run.gained / run.branch).abs().unique().max(), 1 / (1 - run.p))
        assert (run.gained == 0).double().mean().sub(run.p).abs() < 0.1
        assert not (run.many + run.gained == 0).any()  # the token is still there
    assert [run.p for run in at.values()] == [0.5, 0.1, 0.9]


def test_a_larger_gpt2_has_a_smaller_share_outside_its_blocks():
    totals, shares = zip(
        *((run.total, run.in_blocks / run.total) for run in turned("06-the-block-assembled", "size").values()),
        strict=True,
    )
    assert totals == (124_439_808, 354_823_168, 1_557_611_200)
    assert shares[0] < 0.7 < 0.8 < shares[1] < 0.9 < shares[2]


def test_the_final_norm_holds_at_any_depth_and_half_a_nat_is_there_without_a_block():
    above = {
        int(blocks): [float(line.split()[3]) for line in run.printed.splitlines()]
        for blocks, run in turned("06-the-block-assembled", "blocks").items()
    }
    assert all(abs(with_norm - 0.5) < 0.5 for with_norm, _without in above.values())
    without = [above[blocks][1] for blocks in (0, 4, 16, 64)]
    assert without[0] > 0.5
    assert (np.diff(without) > 0.7).all()


def test_a_small_rate_is_slow_and_a_large_one_explodes():
    at = {lr: run.curves for lr, run in turned("06-the-block-assembled", "lr").items()}  # (seeds, steps) each
    assert at["1.0"][:, -1].max() < 3.2
    assert (at["0.1"][:, -1] > at["1.0"][:, -1] + 0.2).all()
    assert (np.diff(at["0.1"][:, ::10]) < 0).all()
    assert not np.isfinite(at["3.0"][:, -1]).any()


def test_a_trained_model_minds_the_order_of_its_two_lines():
    told = {first: run.printed for first, run in turned("06-the-block-assembled", "first").items()}
    for first, story in told.items():
        assert ("little girl named Lily" in story) == (first == '"attention"')


def test_a_narrow_model_is_all_embeddings_and_its_norms_weigh_more():
    shares = {}
    for width, run in turned("06d-counting-parameters", "width").items():
        shares[width] = {line.split()[0]: float(line.split()[2]) for line in run.printed.splitlines()}
    assert shares["4"]["embeddings"] > 95
    assert max(shares["12288"], key=shares["12288"].get) == "feed-forward"
    assert shares["12288"]["norms"] < shares["768"]["norms"] / 10 < shares["4"]["norms"] / 10


def test_one_vocabulary_gives_all_four_wrong_figures_and_those_around_it_do_not():
    at = {tokens: run.printed.split() for tokens, run in turned("06d-counting-parameters", "vocabulary").items()}
    assert "fits" not in at["50257"]
    for tokens, sign in (("40000", "-"), ("41000", "+")):
        missed = [word for word in at[tokens] if word[0] in "+-"]
        assert missed
        assert {word[0] for word in missed} == {sign}


def shares_by_width(printed):
    """The favourite token's share of the weight, in per cent, at 4, 64 and 1024 features."""
    return np.array([float(line.split()[-1].rstrip("%")) for line in printed.splitlines()])


def test_only_the_root_makes_the_width_of_a_head_not_matter():
    at = {power: shares_by_width(run.printed) for power, run in turned("06a-attention-sublayer", "power").items()}
    assert np.ptp(at["0.5"]) <= 2
    assert at["0"][0] + 20 < at["0"][1] < at["0"][2]
    assert at["1"][0] > 1.5 * at["1"][1]
    assert at["1"][2] < 6  # of thirty tokens, each would get 3.3 %


def test_only_rounding_ever_shows_the_bias_of_the_keys():
    said = {size: run.printed.split() for size, run in turned("06a-attention-sublayer", "size").items()}
    moved = {size: dict(zip(words[::4], words[3::4], strict=True)) for size, words in said.items()}
    assert [by["keys"] for by in moved.values()] == ["False", "False", "True"]
    assert all(by["queries"] == by["values"] == "True" for by in moved.values())


def test_a_silent_branch_leaves_the_token_only_where_there_is_a_skip_path():
    at = {branch: run.results for branch, run in turned("06b-ablation", "branch").items()}
    four = np.array([2.0, 4.0, 6.0, 12.0])
    for way, y in at["np.zeros_like"].items():
        np.testing.assert_array_equal(y, 0 * four if way in ("neither", "norm") else four)
    lost = [way for way, y in at["np.negative"].items() if not y.any()]
    assert lost == ["residual"]
    np.testing.assert_array_equal(at["np.flip"]["neither"], four[::-1])


def test_at_any_depth_only_the_scaled_branches_keep_size_and_difference():
    def numbers(printed):
        rows = [line.split() for line in printed.splitlines()]
        return np.array([[float(row[-3]), float(row[-1])] for row in rows])  # (ways, 2)

    at = {int(blocks): numbers(run.printed) for blocks, run in turned("06b-ablation", "blocks").items()}
    neither, residual, norm, both, scaled = np.moveaxis(np.stack([at[blocks] for blocks in (1, 12, 48)]), 1, 0)
    assert neither[2, 0] < 1e-20
    assert residual[2, 0] > 1e9
    assert min(neither[1:, 1].min(), norm[1:, 1].min()) > 0.999
    assert (np.diff(both, axis=0) > 0).all()
    assert scaled[:, 0].max() < 3
    assert scaled[:, 1].max() < 0.3


def test_the_query_picks_the_largest_step_or_less_surely_the_smallest():
    at = {q: run.fit for q, run in turned("06c-pooling-heads", "query").items()}
    np.testing.assert_allclose(at["0.0"], 1 / 4)
    assert at["1.0"][-1] > 0.99
    assert 0.7 < at["-1.0"][0] < 0.9


def test_only_before_a_norm_does_loudness_count_and_never_for_the_last_step():
    at = {}
    for loudness, run in turned("06c-pooling-heads", "loudness").items():
        found = [line.replace(",", "").split() for line in run.printed.splitlines()]
        at[loudness] = {row[0]: (float(row[-4]), float(row[-1])) for row in found}
    for loudness, found in at.items():
        assert all(first == at["1.0"][head][0] for head, (first, _) in found.items())
        assert found["last"] == at["1.0"]["last"]
        for head in ("mean", "attention"):
            assert (found[head][1] > 0.85) == (loudness == "10.0")
            assert (found[head][1] < 0.1) == (loudness == "0.1")
