"""Chapter 06, The block, assembled, and its deep dives: what their turns promise."""

from helpers.turns import turned


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
