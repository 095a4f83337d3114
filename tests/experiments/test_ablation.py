import json

import numpy as np
import pytest
import torch

from subnorm.numpy import layer_norm, pre_ln, residual
from subnorm_lab.experiments import ablation
from subnorm_lab.experiments.language_model import LanguageModel, train

X = np.array([2.0, 4.0, 6.0, 12.0])


def reverse(h):
    return h[..., ::-1]


@pytest.mark.parametrize(
    ("arm", "expected"),
    [
        ("neither", reverse(X)),
        ("residual", residual(X, reverse)),
        ("norm", reverse(layer_norm(X))),
        ("both", pre_ln(X, reverse, layer_norm)),
        ("scaled", X + reverse(X) / np.sqrt(2 * 8)),
        ("final", residual(X, reverse)),
    ],
)
def test_an_arm_is_its_formula(arm: str, expected: np.ndarray) -> None:
    y = ablation.ARMS[arm].sublayer(X, reverse, layer_norm, num_blocks=8)
    np.testing.assert_allclose(y, expected)


def test_both_is_the_pre_ln_model_and_trains_as_it_does() -> None:
    ours, losses = ablation.train_one("both", 2, seed=3, steps=3)
    theirs, expected = train(ablation.TASK, "pre", 3, ablation.LR, 3, num_blocks=2, batch_size=ablation.BATCH)
    np.testing.assert_array_equal(losses, expected)
    assert torch.equal(ours.head.weight, theirs.head.weight)


@pytest.mark.parametrize("arm", ablation.ARMS)
def test_arms_share_their_weights_and_hold_norms_only_where_they_use_them(arm: str) -> None:
    full, model = (dict(ablation.build_model(name, 2, seed=1).named_parameters()) for name in ("both", arm))
    assert all(torch.equal(model[name], full[name]) for name in model)
    norms = {name.split(".")[2] for name in model if "norm" in name}
    parts = ablation.ARMS[arm]
    assert norms == ({"norms"} if parts.norm else set()) | ({"final_norm"} if parts.final_norm else set())


def test_the_scale_follows_the_depth() -> None:
    """Zeroed branches leave the stream unchanged in every arm with a skip path, and zero it without one."""
    tokens = torch.zeros(1, 4, dtype=torch.long)
    for arm, parts in ablation.ARMS.items():
        model = ablation.build_model(arm, 2, seed=0)
        for name, weight in model.stack.matrices():
            if name in ("out", "down"):
                torch.nn.init.zeros_(weight.detach())
        first, *_, top = model.states(tokens)
        assert torch.equal(top, first if parts.residual else torch.zeros_like(first))
    change = {}
    for depth in (1, 4):
        plain, scaled = (ablation.build_model(arm, depth, 0).states(tokens)[:2] for arm in ("residual", "scaled"))
        plain, scaled = plain[1] - plain[0], scaled[1] - scaled[0]
        change[depth] = (scaled.norm() / plain.norm()).item()
    assert change[4] < change[1] < 1


def test_tens_are_means_of_ten_steps() -> None:
    np.testing.assert_array_equal(ablation.tens(np.arange(20.0)), [4.5, 14.5])


def test_a_model_that_does_not_read_is_judged_blind() -> None:
    model = ablation.build_model("both", 1, seed=0)
    count = torch.bincount(ablation.TASK.text.train, minlength=ablation.TASK.vocabulary).double()
    torch.nn.init.zeros_(model.head.weight)
    model.head.bias.data = (count / count.sum()).log()
    assert ablation.judge(model) == pytest.approx(ablation.blind_loss())
    assert ablation.recorded()["blind"] == pytest.approx(ablation.blind_loss(), abs=1e-4)


class Constant(torch.nn.Module):
    """Predicts one character for every input."""

    def __init__(self, character: str) -> None:
        super().__init__()
        self.positions = torch.zeros(ablation.TASK.length, 1)
        self.scores = torch.full((ablation.TASK.vocabulary,), -100.0, dtype=torch.float64)
        self.scores[ablation.TASK.text.encode(character)] = 100

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        assert tokens.shape[1] <= ablation.TASK.length
        return self.scores.expand(*tokens.shape, -1)


def test_writing_draws_from_what_the_model_predicts() -> None:
    sure: LanguageModel = Constant("q")  # type: ignore[assignment]
    assert ablation.generate(sure, "We", 40) == "q" * 40
    model = ablation.build_model("both", 1, seed=0)
    text = ablation.generate(model, "We", 40)
    assert len(text) == 40
    assert text == ablation.generate(model, "We", 40) != ablation.generate(model, "We", 40, seed=1)


def test_taking_the_record_fills_every_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SEEDS": range(1), "DEPTHS": (1, 2), "STEPS": 10, "LATE_STEPS": 10, "LATE_DEPTH": 1}.items():
        monkeypatch.setattr(ablation, name, value)
    monkeypatch.setattr(ablation, "OTHER_RATES", (1e-3,))
    monkeypatch.setattr(ablation, "train_one", lambda arm, depth, seed, steps=10, lr=5e-3: _short(arm, depth, seed, lr))
    record = json.loads(json.dumps(ablation.take()))
    assert set(record["training"]) == set(ablation.ARMS) == set(ablation.recorded()["training"])
    assert all(np.shape(losses) == (1, 2, 1) for losses in record["training"].values())
    assert all(np.shape(losses) == (1, 1) for losses in record["held_back_other_rates"].values())
    assert len({str(losses) for losses in record["training"].values()}) >= 5  # the arms differ


def _short(arm: str, depth: int, seed: int, lr: float) -> tuple[LanguageModel, np.ndarray]:
    model = ablation.build_model(arm, depth, seed)
    return model, ablation.fit(model, ablation.TASK, seed, lr, 1, batch_size=2).repeat(10)
