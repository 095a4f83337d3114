"""Fine-tuning: what each adapter trains, on which text, and that the record is of these runs."""

import itertools

import numpy as np
import pytest
import torch

from subnorm_lab import stories
from subnorm_lab.experiments import fine_tuning, text
from subnorm_lab.experiments.fine_tuning import ADAPTERS, LoRA, adapted, trained

GAINS = "branch gains"


def test_a_lora_starts_as_the_weight_and_adds_a_product_of_its_rank():
    weight, generator = torch.randn(6, 9, generator=torch.Generator().manual_seed(0)), torch.Generator().manual_seed(1)
    lora = LoRA(weight, 2, generator)
    assert torch.equal(lora(weight), weight)
    assert torch.count_nonzero(lora.a) == lora.a.numel()  # or no gradient would reach b
    with torch.no_grad():
        lora.b.normal_()
        change = lora(weight) - weight
    torch.testing.assert_close(change, lora.b @ lora.a)
    assert torch.linalg.matrix_rank(change) == 2


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_trains_its_own_parameters_and_starts_as_the_model(adapter):
    model, plain = adapted(adapter, 0), stories.load(np.float32)
    names = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    matrices, rank = ADAPTERS[adapter]
    if adapter == GAINS:
        assert names == {f"norms.{k}.weight" for k in range(10)}  # not the last
    elif adapter == "all weights":
        assert len(names) == len(list(model.parameters()))
        assert sum(p.numel() for p in trained(model)) == 260032
    else:
        kinds = {(name.split(".")[-3], name.split(".")[-1]) for name in names}
        assert kinds == set(itertools.product(matrices, "ab"))
        assert {
            p.shape[0] if name.endswith("a") else p.shape[1] for name, p in model.named_parameters() if name in names
        } == {rank}
    some = torch.tensor(stories.texts()[0][:20])
    with torch.no_grad():
        found = model(some).numpy()
    wanted = stories.logits(plain, stories.stream(plain, some.numpy())[-1])
    np.testing.assert_allclose(found, wanted, atol=1e-3)


def test_three_parts_of_both_documents_share_no_line_and_leave_none_out():
    parts = [fine_tuning.tokens(part).tolist() for part in range(3)]
    encode = stories.load().tokenizer.encode
    whole = [[encode(line)[1:] for line in text.read(file).splitlines() if line] for file in text.FILES]
    assert sum(map(len, parts)) == sum(len(line) for lines in whole for line in lines)
    assert parts[0][:40] == [token for line in whole[0] for token in line][:40]
    assert parts[2][-40:] == [token for line in whole[1] for token in line][-40:]
    assert len(parts[0]) > 6 * len(parts[1]) > 0 < 6 * len(parts[2]) < len(parts[0])


def test_the_loss_is_the_mean_over_windows_that_each_begin_where_the_last_ends():
    model, plain = adapted(GAINS, 0), stories.load()
    part, length = fine_tuning.tokens(2).tolist(), fine_tuning.LENGTH
    windows = [part[at : at + length + 1] for at in range(0, len(part) - length, length)]
    assert fine_tuning.loss(model, 2) == pytest.approx(np.mean([stories.loss(plain, one) for one in windows]), rel=1e-4)


def test_only_what_is_trained_moves_and_the_rate_falls_to_zero():
    model, rate = adapted(GAINS, 0), 1e-3
    before = {name: value.clone() for name, value in model.state_dict().items()}
    steps = fine_tuning.updates(model, rate, 0, steps=4)
    moved = []
    for _ in steps:
        now = model.norms[0].weight.detach().clone()
        moved.append((now - before["norms.0.weight"]).abs().max().item())
    # Adam's first step is the rate for each number, and no step is much longer than its rate
    assert moved[0] == pytest.approx(rate, rel=1e-3)
    assert moved[-1] <= rate * (1 + 3 / 4 + 2 / 4 + 1 / 4) * 1.01
    changed = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {f"norms.{k}.weight" for k in range(10)}


def test_a_seed_draws_the_batches():
    def losses(seed):
        return list(fine_tuning.updates(adapted(GAINS, 0), 1e-3, seed, steps=2))

    assert losses(0) == losses(0)
    assert losses(0)[0] != losses(1)[0]


def test_the_rate_is_chosen_on_the_text_to_choose_by(monkeypatch):
    """The rate with the lower loss there, although the other looks better on the held-out text."""
    low, high = fine_tuning.RATES
    asked = []

    def train_one(adapter, rate, seed):
        asked.append((adapter, rate, seed))
        return {"choose": rate, "held_back": -rate, "stories": 1.0}, adapted(GAINS, 0)

    monkeypatch.setattr(fine_tuning, "train_one", train_one)
    record = fine_tuning.take()
    for adapter, found in record["found"].items():
        assert (found["rate"], found["choose"]) == (low, [low, high])
        assert [rest for name, *rest in asked if name == adapter] == [[low, 0], [high, 0], [low, 1], [low, 2]]
        assert len(found["runs"]) == len(fine_tuning.SEEDS)


def test_the_record_is_of_these_settings_and_its_gains_give_its_loss():
    record = fine_tuning.recorded()
    settings = [record[name] for name in ("steps", "length", "batch_size", "rates", "seeds")]
    assert settings == [fine_tuning.STEPS, fine_tuning.LENGTH, fine_tuning.BATCH_SIZE, [*fine_tuning.RATES], [0, 1, 2]]
    assert list(record["found"]) == list(ADAPTERS)
    for adapter, found in record["found"].items():
        assert found["parameters"] == sum(p.numel() for p in trained(adapted(adapter, 0)))
        assert found["rate"] == fine_tuning.RATES[int(np.argmin(found["choose"]))]
    model = adapted(GAINS, 0)
    assert fine_tuning.loss(model, 2) == pytest.approx(record["before"]["held_back"], abs=1e-3)
    with torch.no_grad():
        for norm, gains in zip(model.norms[:-1], record["gains"], strict=True):
            norm.weight.copy_(torch.tensor(gains))
    first = record["found"][GAINS]["runs"][0]
    assert fine_tuning.loss(model, 2) == pytest.approx(first["held_back"], abs=1e-3)
    assert fine_tuning.story_loss(model) == pytest.approx(first["stories"], abs=1e-3)
