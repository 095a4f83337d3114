import numpy as np
import pytest
import torch

from subnorm_lab.experiments import parity
from subnorm_lab.experiments.equivalence import random_model
from subnorm_lab.experiments.language_model import loss
from subnorm_lab.experiments.parity import T_95, held_back_loss, paired_interval, windows


def test_windows_cover_the_text_once_and_know_what_comes_next():
    tokens, targets = windows(torch.arange(12), 4)
    assert tokens.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert torch.equal(targets, tokens + 1)
    assert windows(torch.arange(13), 4)[0].shape == (3, 4)  # twelve predictions


def test_the_loss_is_that_of_the_windows():
    model = random_model()
    text = torch.randint(50, (70,), generator=torch.Generator().manual_seed(0))
    expected = loss(model, *windows(text, 16)).item()
    assert held_back_loss(model, text) == pytest.approx(expected, rel=1e-12)


def test_only_layer_norm_ignores_a_shift_of_the_stream():
    text = torch.randint(50, (70,), generator=torch.Generator().manual_seed(0))
    change = {
        norm: held_back_loss(random_model(norm), text, shift=3.0) - held_back_loss(random_model(norm), text)
        for norm in ("layer", "rms")
    }
    assert abs(change["layer"]) < 1e-12
    assert abs(change["rms"]) > 1e-3


def test_paired_interval_by_hand():
    mean, half = paired_interval([0, 0, 0, 0, 0], [1, 2, 3, 4, 5])
    assert mean == 3
    assert half == pytest.approx(2.776 * np.sqrt(2.5 / 5))


def test_a_common_noise_cancels_in_pairs():
    noise = 10 * np.random.default_rng(0).normal(size=8)
    mean, half = paired_interval(noise, noise + 1)
    assert mean == pytest.approx(1)
    assert half < 1e-12


@pytest.mark.parametrize("seeds", [5, 8, 10])
def test_the_interval_holds_the_truth_in_95_of_100_cases(seeds):
    runs = np.random.default_rng(0).normal(size=(4000, seeds))
    intervals = [paired_interval(np.zeros(seeds), differences) for differences in runs]
    assert np.mean([abs(mean) < half for mean, half in intervals]) == pytest.approx(0.95, abs=0.012)


def test_what_cannot_be_paired_is_refused():
    with pytest.raises(ValueError, match="equal length"):
        paired_interval([1, 2, 3, 4, 5], [1, 2, 3, 4])
    with pytest.raises(ValueError, match="5 to 10 pairs"):
        paired_interval([1, 2], [1, 2])
    assert sorted(T_95.values(), reverse=True) == list(T_95.values())


def test_taking_the_record_trains_every_pair_for_each_length(monkeypatch):
    monkeypatch.setattr(parity, "pair", lambda seed, steps: [seed, steps])
    taken = parity.take()["held_back_loss"]
    assert {steps: rows[3] for steps, rows in taken.items()} == {"130": [3, 130], "400": [3, 400], "800": [3, 800]}


def test_the_models_of_a_pair_differ_in_the_norm_alone(monkeypatch):
    given = []
    monkeypatch.setattr(parity, "train", lambda *arguments: given.append(arguments) or (None, None))
    monkeypatch.setattr(parity, "held_back_loss", lambda model, text: 1.0)
    assert parity.pair(2, 400) == [1.0, 1.0]
    assert given == [(parity.TASK, "pre", 2, 0.005, 400, 0, 2, 8, norm) for norm in ("layer", "rms")]
