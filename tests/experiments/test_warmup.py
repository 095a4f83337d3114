import dataclasses

import numpy as np
import pytest

from subnorm_lab.experiments import warmup


def test_the_record_has_a_value_for_every_run() -> None:
    record = warmup.recorded()
    for name, setting in warmup.MAPS.items():
        measured = record["maps"][name]
        assert set(measured["final_loss"]) == set(warmup.ARMS)
        for losses in measured["final_loss"].values():
            assert losses.shape == (len(warmup.SEEDS), len(setting.rates))
            assert (losses > 0).all()


def test_taking_the_maps_fills_every_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {
        name: dataclasses.replace(setting, steps=2, blocks=1, rates=(1e-3, 1e-2))
        for name, setting in warmup.MAPS.items()
    }
    monkeypatch.setattr(warmup, "SEEDS", range(1))
    monkeypatch.setattr(warmup, "MAPS", small)
    record = warmup.take()
    for measured in record["maps"].values():
        assert all(len(rows) == 1 and len(rows[0]) == 2 for rows in measured["final_loss"].values())
        assert measured["final_loss"]["post"] != measured["final_loss"]["pre"]


def test_an_arm_with_warm_up_spends_half_its_run_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr(warmup, "train", lambda *arguments: given.append(arguments) or (None, np.zeros(30)))
    for arm in ("post", "pre_warmup"):
        warmup.train_one(warmup.MAPS["copy"], arm, 0.1, 4)
    task = warmup.MAPS["copy"].task
    assert given == [(task, "post", 4, 0.1, 200, 0, 4, 16), (task, "pre", 4, 0.1, 200, 100, 4, 16)]


def test_settled_is_the_mean_of_the_last_twenty() -> None:
    assert warmup.settled(np.arange(30.0)) == 19.5
