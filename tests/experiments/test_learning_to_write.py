import json
from pathlib import Path

import pytest
import torch

from subnorm_lab.experiments import language_model, learning_to_write, stored
from subnorm_lab.experiments.learning_to_write import PROMPT, SEEDS, STEPS, TASK


def test_the_record_has_a_value_for_every_run() -> None:
    record = learning_to_write.recorded()
    assert record["training"].shape == record["held_back"].shape == (len(SEEDS), len(STEPS))
    texts = [stage["text"] for run in record["runs"] for stage in run]
    assert all(text.startswith(PROMPT) and len(text) == learning_to_write.LENGTH for text in texts)


def test_a_model_of_one_letter_writes_it_and_one_that_knows_nothing_writes_all() -> None:
    weights = torch.Generator().manual_seed(0)
    model = language_model.untrained(TASK.vocabulary, TASK.length, "pre", weights, num_blocks=1)
    with torch.no_grad():
        model.head.weight.zero_()
        assert len(set(learning_to_write.generate(model))) > 40
        model.head.bias[TASK.text.characters.index("e")] = 20
    assert learning_to_write.generate(model) == PROMPT + "e" * (learning_to_write.LENGTH - len(PROMPT))


def test_each_character_follows_from_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that scores the next character of the vocabulary highest: it goes round, beyond one window as well."""
    weights = torch.Generator().manual_seed(0)
    model = language_model.untrained(TASK.vocabulary, TASK.length, "pre", weights, num_blocks=1, d_model=256)
    with torch.no_grad():
        model.positions.zero_()
        monkeypatch.setattr(model, "scores", model.head)
        model.head.weight.copy_(model.tokens.roll(1, dims=0))
    known = TASK.text.characters
    turns = [known[(known.index(" ") + 1 + k) % len(known)] for k in range(learning_to_write.LENGTH - len(PROMPT))]
    assert learning_to_write.generate(model) == PROMPT + "".join(turns)


def test_a_run_stops_at_its_steps_and_trains_like_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning_to_write, "STEPS", (0, 2, 3))
    monkeypatch.setattr(learning_to_write, "held_back_loss", lambda model, text: 1.0)
    monkeypatch.setattr(learning_to_write, "generate", lambda model: model.head.weight.sum().item())
    heads = [stage["text"] for stage in learning_to_write.stages(seed=4)]
    for steps, head in zip((0, 2, 3), heads, strict=True):
        weights = torch.Generator().manual_seed(4)
        model = language_model.untrained(TASK.vocabulary, TASK.length, "pre", weights, 3, 64)
        losses = language_model.fit(model, TASK, 4, 2e-3, steps, batch_size=8)
        assert len(losses) == steps
        assert model.head.weight.sum().item() == head
    assert len(set(heads)) == 3


def test_training_and_held_back_text_are_not_swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning_to_write, "held_back_loss", lambda model, text: len(text))
    stage = next(learning_to_write.stages(seed=0))
    assert (stage["training"], stage["held_back"]) == (len(TASK.text.train), len(TASK.text.validation))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Instant runs, and the list of seeds that ran."""
    made: list[int] = []

    def stages(seed: int) -> list[dict[str, object]]:
        made.append(seed)
        return [{"training": float(len(made)), "held_back": 2.0, "text": "The "}]

    monkeypatch.setattr(learning_to_write, "stages", stages)
    return made


def losses(path: Path) -> list[float]:
    return [run[-1]["training"] for run in json.loads(path.read_text())["runs"]]


def test_what_ran_before_an_interruption_is_kept(
    runs: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, whole = tmp_path / "record.json", learning_to_write.stages

    def stopped(seed: int) -> object:
        if seed == 1:
            raise KeyboardInterrupt
        return whole(seed)

    monkeypatch.setattr(learning_to_write, "stages", stopped)
    with pytest.raises(KeyboardInterrupt):
        learning_to_write.take(path, anew=False)
    assert losses(path) == [1]
    monkeypatch.setattr(learning_to_write, "stages", whole)
    learning_to_write.take(path, anew=False)
    assert (losses(path), runs) == ([1, 2], [0, 1])
    learning_to_write.take(path, anew=True)
    assert losses(path) == [3, 4]


@pytest.mark.parametrize(("was", "now"), [('"torch": "', '"torch": "1.'), ('"blocks": 3', '"blocks": 4')])
def test_runs_with_other_versions_or_settings_do_not_share_a_record(
    was: str, now: str, runs: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "record.json"
    learning_to_write.take(path, anew=False)
    stored.write(path, json.loads(json.dumps(stored.read(path)).replace(was, now)))
    with pytest.raises(ValueError, match="Make all runs anew"):
        learning_to_write.take(path, anew=False)
    learning_to_write.take(path, anew=True)
    assert losses(path) == [3, 4]
