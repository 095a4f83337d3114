"""The fleets: how the windows show the wear, and a record that matches the code."""

import pytest
import torch

from subnorm_lab.experiments import fleets


def draw(fleet: str) -> tuple[torch.Tensor, torch.Tensor]:
    return fleets.machines(fleet, 4000, torch.Generator().manual_seed(0))


@pytest.mark.parametrize("fleet", fleets.FLEETS)
def test_windows_and_lives_have_mean_0_and_a_spread_of_about_1(fleet: str) -> None:
    x, y = draw(fleet)
    assert x.shape == (4000, fleets.LENGTH, 2)
    assert y.shape == (4000,)
    assert abs(y.mean()) < 0.05
    assert abs(y.std() - 1) < 0.05
    assert abs(x[..., 0].mean()) < 0.05


def test_one_step_carries_the_wear() -> None:
    x, y = draw("last")
    torch.testing.assert_close(x[:, -1, 0], -y)
    x, y = draw("flagged")
    at = x[..., 1].argmax(1)
    torch.testing.assert_close(x[torch.arange(len(x)), at, 0], -y)
    assert set(at.tolist()) == set(range(fleets.LENGTH))
    assert (x[..., 1] > 0).sum() == len(x)


def test_a_spread_reading_is_the_wear_and_noise() -> None:
    x, y = draw("spread")
    noise = (x[..., 0] + y[:, None]) / 12**0.5
    assert abs(noise.std() - fleets.NOISE) < 0.01
    assert x[..., 1].unique().numel() == 1


def test_an_unknown_fleet_is_refused() -> None:
    with pytest.raises(ValueError, match="fleet must be one of"):
        draw("lost")


def test_taking_the_record_fills_every_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleets, "SEEDS", range(1))
    monkeypatch.setattr(fleets, "STEPS", (1, 2))
    record = fleets.take()
    for heads in record["errors"].values():
        assert all(len(rows) == 1 and len(rows[0]) == 2 for rows in heads.values())
    assert record["errors"]["last"]["mean"] != record["errors"]["last"]["last"]
