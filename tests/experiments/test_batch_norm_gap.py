"""BatchNorm in the language model: its rows are tokens, its gap is real, and measuring does not change the model."""

import numpy as np
import pytest
import torch

from subnorm.torch import batch_norm
from subnorm_lab.experiments import batch_norm_gap as gap


def test_the_rows_are_all_tokens_of_all_sequences() -> None:
    x = torch.randn(3, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    norm = gap.TokenBatchNorm(4, dtype=torch.float64)
    assert torch.allclose(norm(x), batch_norm(x), atol=1e-12)
    assert torch.allclose(norm.running_mean, 0.1 * x.mean((0, 1)), atol=1e-12)


def test_a_model_has_norms_of_one_kind_and_a_seed_draws_the_same_weights() -> None:
    layer, batch = (gap.language_model(gap.TASK, norm, seed=0) for norm in gap.NORMS)
    kinds = {type(m) for m in batch.modules() if "Norm" in type(m).__name__}
    assert kinds == {gap.TokenBatchNorm}
    assert not any(isinstance(m, gap.TokenBatchNorm) for m in layer.modules())
    others = dict(batch.named_parameters())
    assert all(torch.equal(p, others[name]) for name, p in layer.named_parameters())


def test_another_norm_is_refused() -> None:
    with pytest.raises(ValueError, match=r"norm must be 'layer' or 'batch', got 'rms'.*Name one"):
        gap.language_model(gap.TASK, "rms", seed=0)


@pytest.mark.parametrize("training", [True, False])
def test_reading_a_text_leaves_the_model_as_it_was(training: bool) -> None:
    model = gap.language_model(gap.TASK, "batch", seed=0).train(not training)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gap.loss_in_batches(model, gap.TASK.text.validation[:200], 2, training)
    assert model.training is not training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_the_modes_differ_for_batch_norm_alone_and_the_same_windows_are_read() -> None:
    text = gap.TASK.text.validation[: 7 * gap.TASK.length + 1]
    read = {}
    for norm in gap.NORMS:
        model = gap.language_model(gap.TASK, norm, seed=0)
        read[norm] = [gap.loss_in_batches(model, text, 2, training) for training in (True, False)]
    assert read["layer"][0] == read["layer"][1]
    assert abs(read["batch"][0] - read["batch"][1]) > 0.01


def test_the_loss_is_that_of_whole_batches() -> None:
    model = gap.language_model(gap.TASK, "layer", seed=0)
    length = gap.TASK.length
    text = gap.TASK.text.validation[: 5 * length + 1]
    whole = gap.loss_in_batches(model, text[: 4 * length + 1], 4, training=False)
    assert gap.loss_in_batches(model, text, 4, training=False) == whole  # the fifth window fills no batch
    assert gap.loss_in_batches(model, text, 2, training=False) == pytest.approx(whole)


def test_taking_the_record_fills_every_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gap, "SEEDS", range(1))
    monkeypatch.setattr(gap, "BATCH_SIZES", (1, 2))
    monkeypatch.setattr(gap, "LONGER_SIZES", (1,))
    monkeypatch.setattr(gap, "STEPS", 1)
    monkeypatch.setattr(gap, "LONGER", 2)
    monkeypatch.setattr(gap, "WINDOWS", 2)
    record = gap.take()
    for losses, sizes in ((record["losses"], 2), (record["longer"]["losses"], 1)):
        assert {norm: np.shape(values) for norm, values in losses.items()} == dict.fromkeys(gap.NORMS, (1, sizes, 2))
    assert record["longer"]["steps"] == 2
    assert list(gap.recorded()["losses"]) == list(record["losses"])
