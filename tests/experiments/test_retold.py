"""What altered models say: the record is what the code measures now."""

import numpy as np
import pytest

from subnorm_lab import stories
from subnorm_lab.experiments import retold, stored


def test_the_record_is_what_the_models_say_now() -> None:
    record, fresh = stored.read(retold.RECORD), retold.take()
    assert record["command"] == fresh["command"]
    assert record["texts"] == fresh["texts"]
    assert list(record["told"]) == list(fresh["told"])
    for name, told in record["told"].items():
        assert told["story"] == fresh["told"][name]["story"]
        assert told["loss"] == pytest.approx(fresh["told"][name]["loss"], abs=0.011)  # two decimals


def test_what_the_first_page_says_of_them() -> None:
    told = stored.read(retold.RECORD)["told"]
    loss = {name: told[name]["loss"] for name in told}
    guess = np.log(512)
    story = told["as trained"]["story"]
    assert story.endswith('park."')
    assert told["no final division"]["story"] == story
    assert loss["no final division"]["mean"] > loss["as trained"]["mean"]
    assert max(loss[name]["mean"] for name in ("without one branch", "LayerNorm")) < 1.3
    assert min(loss[name]["min"] for name in ("without one skip", "Post-LN")) > guess
    assert told["no norms"]["story"].endswith(" a a a")
    assert loss["no norms"]["max"] < guess


def test_a_branch_and_a_skip_go_at_the_same_place() -> None:
    models = retold.models()
    tokens = stories.texts()[0]
    whole, branch, skip = (
        stories.stream(models[name], tokens) for name in ("as trained", "without one branch", "without one skip")
    )
    k = retold.MIDDLE
    for states in (branch, skip):
        np.testing.assert_array_equal(states[: k + 1], whole[: k + 1])
    np.testing.assert_allclose(branch[k + 1] + skip[k + 1], whole[k + 1], rtol=0, atol=1e-12)


def test_without_the_final_division_the_model_is_too_sure() -> None:
    models = retold.models()
    texts = stories.texts()

    def scores(name: str) -> np.ndarray:
        return np.concatenate([stories.logits(m, stories.stream(m, t[:-1])[-1]) for m in [models[name]] for t in texts])

    trained, undivided = (scores(name) for name in ("as trained", "no final division"))
    np.testing.assert_array_equal(undivided.argmax(axis=-1), trained.argmax(axis=-1))
    right = (trained.argmax(axis=-1) == np.concatenate([t[1:] for t in texts])).mean()
    sure = [(np.exp(z - z.max(-1, keepdims=True)).sum(-1) ** -1).mean() for z in (trained, undivided)]
    assert sure[0] < right < sure[1]
