import json
from pathlib import Path

import numpy as np
import pytest

from subnorm_lab.experiments import longer_runs, stored, warmup


def test_the_record_has_a_value_for_every_run() -> None:
    record = longer_runs.recorded()
    assert tuple(record["parts"]) == longer_runs.PARTS
    for losses in record["parts"].values():
        assert losses.shape == (len(longer_runs.SEEDS), len(longer_runs.STEPS))
        assert (losses > 0).all()


@pytest.mark.parametrize(
    "part", [f"12-{placement}-{rate}-0" for placement in ("post", "pre") for rate in (0.001, 0.002, 0.005)]
)
def test_after_100_steps_the_runs_are_those_of_the_map(part: str) -> None:
    record, deep = longer_runs.recorded(), warmup.recorded()["maps"]["deep"]
    after_100 = record["parts"][part][:, record["steps"].index(100)]
    _blocks, placement, rate, _updates = part.split("-")
    at = deep["learning_rates"].index(float(rate))
    np.testing.assert_array_equal(after_100, deep["final_loss"][placement][:, at])


def test_a_part_names_its_blocks_its_placement_its_rate_and_its_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr(longer_runs, "train", lambda *arguments: given.append(arguments) or (None, np.zeros(800)))
    longer_runs.train_one("12-post-0.005-400", 3)
    longer_runs.train_one("4-pre-0.002-0", 1, steps=60)
    longer_runs.train_one("12-post-0.005-400-3200", 2)
    task = longer_runs.SETTING.task
    assert given == [
        (task, "post", 3, 0.005, 800, 400, 12, 8),
        (task, "pre", 1, 0.002, 60, 0, 4, 8),
        (task, "post", 2, 0.005, 3200, 400, 12, 8),
    ]


def test_a_longer_part_is_recorded_at_as_many_steps() -> None:
    assert longer_runs.steps_of("12-post-0.005-400") == longer_runs.STEPS
    longest = longer_runs.steps_of("12-post-0.005-400-3200")
    assert longest == tuple(range(200, 3201, 200))
    losses = np.arange(3200.0)
    assert longer_runs.along(losses, longest)[0] == warmup.settled(losses[:200])
    assert longer_runs.along(losses, longest)[-1] == warmup.settled(losses)


def test_a_run_is_read_as_the_map_reads_it() -> None:
    losses = np.arange(800.0)
    assert longer_runs.along(losses)[0] == warmup.settled(losses[:50]) == 39.5
    assert longer_runs.along(losses)[-1] == warmup.settled(losses) == 789.5


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Two parts with two seeds and instant runs, and the list of runs made."""
    made: list[tuple[str, int]] = []

    def train_one(part: str, seed: int) -> np.ndarray:
        made.append((part, seed))
        return np.full(800, float(len(made)))

    monkeypatch.setattr(longer_runs, "PARTS", ("12-post-0.005-0", "12-post-0.005-400"))
    monkeypatch.setattr(longer_runs, "SEEDS", range(2))
    monkeypatch.setattr(longer_runs, "train_one", train_one)
    return made


def last_losses(path: Path) -> dict[str, list[float]]:
    return {part: [row[-1] for row in rows] for part, rows in json.loads(path.read_text())["parts"].items()}


def test_what_was_measured_before_an_interruption_is_kept(
    runs: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, whole = tmp_path / "record.json", longer_runs.train_one

    def stopped(part: str, seed: int) -> np.ndarray:
        if len(runs) == 3:
            raise KeyboardInterrupt
        return whole(part, seed)

    monkeypatch.setattr(longer_runs, "train_one", stopped)
    with pytest.raises(KeyboardInterrupt):
        longer_runs.take([], path)
    assert last_losses(path) == {"12-post-0.005-0": [1, 2], "12-post-0.005-400": [3]}
    monkeypatch.setattr(longer_runs, "train_one", whole)
    longer_runs.take([], path)
    assert last_losses(path) == {"12-post-0.005-0": [1, 2], "12-post-0.005-400": [3, 4]}


def test_one_part_can_be_measured_anew_and_all_can(runs: list[tuple[str, int]], tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    longer_runs.take([], path)
    longer_runs.take(["12-post-0.005-0"], path)
    assert last_losses(path) == {"12-post-0.005-0": [5, 6], "12-post-0.005-400": [3, 4]}
    assert list(last_losses(path)) == ["12-post-0.005-0", "12-post-0.005-400"]
    longer_runs.take(["all"], path)
    assert last_losses(path) == {"12-post-0.005-0": [7, 8], "12-post-0.005-400": [9, 10]}


def test_a_part_that_does_not_exist_is_refused(runs: list[tuple[str, int]], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"12-post-0\.005-400"):
        longer_runs.take(["12-post-0.005"], tmp_path / "record.json")
    assert runs == []


def test_runs_of_two_versions_do_not_share_a_record(runs: list[tuple[str, int]], tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    longer_runs.take([], path)
    stored.write(path, json.loads(json.dumps(stored.read(path)).replace('"torch": "', '"torch": "1.')))
    with pytest.raises(ValueError, match="Measure all anew"):
        longer_runs.take(["12-post-0.005-0"], path)
    longer_runs.take(["all"], path)
    assert last_losses(path) == {"12-post-0.005-0": [5, 6], "12-post-0.005-400": [7, 8]}
