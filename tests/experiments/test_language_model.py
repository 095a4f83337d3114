import math

import numpy as np
import pytest
import torch

from subnorm_lab.experiments.language_model import IGNORE, Characters, Copy, learning_rate, loss, train, untrained


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_copy_batch_repeats_its_string_and_scores_the_repeat() -> None:
    tokens, targets = Copy(symbols=9, string=4).batch(3, generator())
    assert tokens.shape == targets.shape == (3, 8)
    assert (tokens[:, 4] == 9).all()  # the separator
    assert (tokens[:, :4] < 9).all()
    assert torch.equal(tokens[:, 5:], tokens[:, :3])
    assert (targets[:, :4] == IGNORE).all()
    assert torch.equal(targets[:, 4:], tokens[:, :4])


def test_chance_is_the_loss_without_reading() -> None:
    assert Copy(symbols=15).chance == pytest.approx(math.log(15))
    characters = Characters()
    assert characters.vocabulary == 74
    assert 2.5 < characters.chance < math.log(characters.vocabulary)


def test_a_character_batch_comes_from_the_training_text() -> None:
    task = Characters(length=16)
    tokens, targets = task.batch(2, generator())
    assert torch.equal(tokens[:, 1:], targets[:, :-1])
    assert task.text.decode(tokens[0]) in task.text.decode(task.text.train)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_scores_do_not_depend_on_the_future(placement: str) -> None:
    model = untrained(10, 8, placement, generator(), num_blocks=2)
    tokens = torch.randint(10, (2, 8), generator=generator(1))
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 10
    torch.testing.assert_close(model(tokens)[:, :5], model(changed)[:, :5])


def test_loss_scores_only_the_targets_that_count() -> None:
    model = untrained(10, 8, "pre", generator(), num_blocks=1)
    tokens = torch.zeros(1, 8, dtype=torch.long)
    targets = torch.full((1, 8), IGNORE)
    targets[0, 3] = 7
    expected = -model(tokens).log_softmax(-1)[0, 3, 7]
    torch.testing.assert_close(loss(model, tokens, targets), expected)


def test_the_learning_rate_rises_to_its_value_and_stays() -> None:
    assert [learning_rate(step, 1.0, 3) for step in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]
    assert learning_rate(0, 0.1, 0) == 0.1


def test_training_is_repeatable_and_seeded() -> None:
    one, same, other = (train(Copy(string=4), "pre", seed, 1e-2, 5, num_blocks=1)[1] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert abs(one - other).max() > 0.01


def test_both_placements_train_on_the_same_batches_and_warm_up_changes_the_run() -> None:
    class Spy(Copy):
        seen: list[torch.Tensor]

        def batch(self, batch_size: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
            batch = super().batch(batch_size, generator)
            self.seen.append(batch[0])
            return batch

    def run(placement: str, warmup: int) -> tuple[list[torch.Tensor], float]:
        task = Spy(string=4)
        object.__setattr__(task, "seen", [])
        losses = train(task, placement, 0, 1e-2, 4, warmup, num_blocks=1)[1]
        return task.seen, losses[-1]

    (pre, _), (post, cold), (_, warm) = run("pre", 0), run("post", 0), run("post", 3)
    assert all(torch.equal(x, y) for x, y in zip(pre, post, strict=True))
    assert abs(cold - warm) > 0.01


def test_the_norm_is_the_only_difference_between_a_pair() -> None:
    task = Copy(string=4)
    (layer, first), (rms, second) = (train(task, "pre", 0, 1e-2, 1, num_blocks=1, norm=n) for n in ("layer", "rms"))
    names = {name for name, _ in layer.named_parameters()}
    assert {name for name, _ in rms.named_parameters()} == {
        name for name in names if not ("norm" in name and name.endswith("bias"))
    }
    assert 0 < abs(first[0] - second[0]) < 0.5  # the same weights and batch, another norm


def test_a_small_model_learns_to_copy() -> None:
    task = Copy(symbols=4, string=4)
    losses = train(task, "pre", 0, 1e-2, 60, num_blocks=2, batch_size=8)[1]
    assert losses[:5].mean() > 0.8 * task.chance
    assert losses[-5:].mean() < 0.3 * task.chance
