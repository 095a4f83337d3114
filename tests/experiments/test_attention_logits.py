"""The remedies for attention logits, against their formulas, and the head that they are tried on."""

import math

import numpy as np
import pytest
import torch

from subnorm_lab.experiments import attention_logits as al


def draw(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_soft_cap_is_nearly_the_identity_near_zero_and_a_cap_far_away() -> None:
    small = torch.linspace(-0.1, 0.1, 5, dtype=torch.float64)
    torch.testing.assert_close(al.soft_cap(small), small, rtol=0, atol=1e-6)
    torch.testing.assert_close(al.soft_cap(torch.tensor([1e4, -1e4]), cap=3.0), torch.tensor([3.0, -3.0]))


def test_a_matrix_over_its_spectral_norm_lengthens_nothing() -> None:
    weight, vectors = draw(0, 3, 6, 4), draw(1, 3, 50, 6)
    assert ((vectors @ al.unit_norm(weight)).norm(dim=-1) <= vectors.norm(dim=-1)).all()
    torch.testing.assert_close(torch.linalg.svdvals(al.unit_norm(weight))[:, 0], torch.ones(3, dtype=torch.float64))


def test_the_clip_brings_the_largest_logit_to_the_threshold_and_never_up() -> None:
    factor = al.clip_factor(torch.tensor([400.0, 100.0, 50.0]), threshold=100.0)
    torch.testing.assert_close(factor.square() * torch.tensor([400.0, 100.0, 50.0]), torch.tensor([100.0, 100.0, 50.0]))


def test_a_sink_is_one_more_term_of_the_denominator() -> None:
    logits, sink = draw(2, 5, 7), torch.tensor(1.5, dtype=torch.float64)
    by_hand = logits.exp() / (sink.exp() + logits.exp().sum(dim=-1, keepdim=True))
    torch.testing.assert_close(al.attention_weights(logits, sink), by_hand)
    torch.testing.assert_close(al.attention_weights(logits), logits.softmax(dim=-1))


def test_the_entropy_of_even_and_of_one_hot_weights() -> None:
    even, one = torch.full((8,), 1 / 8, dtype=torch.float64), torch.eye(8, dtype=torch.float64)[0]
    np.testing.assert_allclose(al.entropy(torch.stack([even, one])), [math.log(8), 0], atol=1e-12)


def test_all_remedies_start_with_the_same_head() -> None:
    first = {remedy: al.train(remedy, 0.1, range(2), steps=1).loss[:, 0] for remedy in al.REMEDIES}
    for remedy in ("sigma_reparam", "qk_clip", "gate"):
        np.testing.assert_allclose(first[remedy], first["none"], rtol=1e-12)
    np.testing.assert_allclose(first["soft_cap"], first["none"], rtol=0.02)


def test_seeds_run_side_by_side_without_touching_each_other() -> None:
    for remedy in ("none", "qk_norm", "qk_clip"):
        both, second = (al.train(remedy, 0.3, seeds, steps=20, threshold=5.0) for seeds in (range(2), range(1, 2)))
        np.testing.assert_allclose(both.loss[1:], second.loss, rtol=1e-6)
        np.testing.assert_allclose(both.largest[1:], second.largest, rtol=1e-6)


def test_an_unknown_remedy() -> None:
    with pytest.raises(ValueError, match="got 'cap'"):
        al.train("cap", 0.1, range(1))
