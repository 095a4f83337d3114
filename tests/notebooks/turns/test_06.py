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
