import re

import pytest

from subnorm.experiments import warmup


def test_the_record_says_what_it_depends_on_and_fits_the_code() -> None:
    record = warmup.recorded()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"])
    assert set(record["versions"]) == {"python", "torch", "numpy", "subnorm"}
    assert record["command"] == "python -m subnorm.experiments.warmup"
    assert record["task"] == {"name": "copy", "symbols": warmup.TASK.symbols, "string": warmup.TASK.string}
    settings = {"steps": warmup.STEPS, "warmup": warmup.WARMUP, "blocks": warmup.BLOCKS}
    assert {key: record[key] for key in settings} == settings
    assert record["chance"] == pytest.approx(warmup.TASK.chance, abs=1e-4)
    assert tuple(record["learning_rates"]) == warmup.LEARNING_RATES
    assert set(record["final_loss"]) == set(warmup.ARMS)
    for losses in record["final_loss"].values():
        assert losses.shape == (len(warmup.SEEDS), len(warmup.LEARNING_RATES))
        assert (losses > 0).all()


def test_taking_the_map_fills_every_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warmup, "SEEDS", range(1))
    monkeypatch.setattr(warmup, "LEARNING_RATES", (1e-3, 1e-2))
    monkeypatch.setattr(warmup, "STEPS", 2)
    record = warmup.take()
    assert all(len(rows) == 1 and len(rows[0]) == 2 for rows in record["final_loss"].values())
    assert record["final_loss"]["post"] != record["final_loss"]["pre"]
