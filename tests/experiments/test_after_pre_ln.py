from functools import partial

import numpy as np
import pytest
import torch

from subnorm.torch import STACK_PLACEMENTS
from subnorm_lab.experiments import after_pre_ln
from subnorm_lab.experiments.language_model import Characters


@pytest.mark.parametrize(("place", "name"), [("pre", "pre"), ("post", "post"), ("after_branch", "after_branch")])
def test_a_movable_norm_at_a_known_place(place, name):
    x = torch.randn(2, 5, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    both = [
        after_pre_ln.untrained(build, 3, torch.Generator().manual_seed(1))
        for build in (partial(after_pre_ln.Movable, place=place, power=0), STACK_PLACEMENTS[name])
    ]
    moved, known = (stack(x) for stack in both)
    torch.testing.assert_close(moved, known, atol=1e-4, rtol=0)  # Movable ends in one more norm


def test_the_size_of_the_branches():
    placement = after_pre_ln.Movable(4, 8, "none", 0.5)
    x = torch.ones(1, 4)
    torch.testing.assert_close(placement.states(x, [torch.ones_like] * 16)[-1], x * 5)  # 1 + 16 / sqrt(16)


def test_measures_of_a_stack_that_does_nothing():
    found = after_pre_ln.at_start(STACK_PLACEMENTS["rezero"], (1, 2), range(2))
    np.testing.assert_allclose(found["stream"], 1)
    np.testing.assert_allclose(found["share"], 1)
    assert np.isnan(found["gradient"]).all()
    np.testing.assert_array_equal(found["step"], 0)
    np.testing.assert_array_equal(found["adam"], 0)


def test_the_step_is_a_derivative():
    """With half the step the relative change, per learning rate, is the same."""
    found, adam = {}, {}
    for step in (1e-5, 5e-6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(after_pre_ln, "STEP", step)
            measures = after_pre_ln.at_start(STACK_PLACEMENTS["pre"], (3,), range(2))
            found[step], adam[step] = measures["step"], measures["adam"]
    np.testing.assert_allclose(found[1e-5], found[5e-6], rtol=1e-3)
    np.testing.assert_allclose(adam[1e-5], adam[5e-6], rtol=2e-2)
    assert found[1e-5].min() > 0.1
    assert (adam[1e-5] > 10 * found[1e-5]).all()


def test_a_step_starts_from_the_untrained_weights():
    """Adam's step is that of a stack which gradient descent has not moved."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(after_pre_ln, "OPTIMIZERS", {"adam": torch.optim.Adam})
        alone = after_pre_ln.at_start(STACK_PLACEMENTS["pre"], (3,), range(2))["adam"]
    np.testing.assert_array_equal(alone, after_pre_ln.at_start(STACK_PLACEMENTS["pre"], (3,), range(2))["adam"])


def test_a_run_learns_and_keeps_ngpt_on_its_sphere(monkeypatch):
    monkeypatch.setattr(after_pre_ln, "BLOCKS", 1)
    monkeypatch.setattr(after_pre_ln, "TASK", Characters(length=8))
    losses = after_pre_ln.train_one("pre", 0, 60)
    assert losses[-20:].mean() < losses[:5].mean() - 0.3
    seen = []
    update = STACK_PLACEMENTS["ngpt"].after_update

    def watched(placement, stack):
        update(placement, stack)
        seen.extend(weight.norm(dim=1).max().item() for name, weight in stack.matrices() if name == "query")

    monkeypatch.setattr(STACK_PLACEMENTS["ngpt"], "after_update", watched)
    after_pre_ln.train_one("ngpt", 0, 3)
    np.testing.assert_allclose(seen, 1)
    assert len(seen) == 4  # before the first step, and after each


def test_the_record_is_resumed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(after_pre_ln, "SEEDS", range(2))
    monkeypatch.setattr(after_pre_ln, "STEPS", (20, 40))
    monkeypatch.setattr(after_pre_ln, "LONGER_STEPS", (40, 60))
    monkeypatch.setattr(after_pre_ln, "LONGER", ("pre",))
    monkeypatch.setattr(after_pre_ln, "STACK_PLACEMENTS", dict.fromkeys(("pre", "post")))
    asked = []

    def train_one(name, seed, steps):
        asked.append((name, seed, steps))
        return np.arange(steps, dtype=float) + seed

    monkeypatch.setattr(after_pre_ln, "train_one", train_one)
    path = tmp_path / "record.json"
    after_pre_ln.take(False, path)
    assert len(asked) == 6
    monkeypatch.setattr(after_pre_ln, "RECORD", path)
    record = after_pre_ln.recorded()
    np.testing.assert_allclose(record["loss"]["post"], [[9.5, 29.5], [10.5, 30.5]])
    np.testing.assert_allclose(record["longer_loss"]["pre"], [[29.5, 49.5], [30.5, 50.5]])
    after_pre_ln.take(False, path)
    assert len(asked) == 6
    after_pre_ln.take(True, path)
    assert len(asked) == 12
    monkeypatch.setattr(after_pre_ln, "versions", dict)
    with pytest.raises(ValueError, match="Measure all anew"):
        after_pre_ln.take(False, path)
