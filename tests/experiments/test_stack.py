import pytest
import torch
from torch import nn

from subnorm_lab.experiments.stack import Stack, causal_mask, mean_square, random_tokens, token_cosine


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("placement", ["pre", "post", "branch"])
def test_every_token_of_the_output_is_normalised(placement: str) -> None:
    y = Stack(3, placement, generator())(random_tokens(generator(1)))
    torch.testing.assert_close(y.mean(-1), torch.zeros(4, 32, dtype=y.dtype), atol=1e-5, rtol=0)
    torch.testing.assert_close(y.var(-1, correction=0), torch.ones(4, 32, dtype=y.dtype), atol=1e-3, rtol=0)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_a_token_does_not_see_the_future(placement: str) -> None:
    stack, x = Stack(2, placement, generator()), random_tokens(generator(1))
    changed = x.clone()
    changed[:, 20:] = random_tokens(generator(2))[:, 20:]
    y, y_changed = stack(x), stack(changed)
    torch.testing.assert_close(y[:, :20], y_changed[:, :20])
    assert (y[:, 20:] - y_changed[:, 20:]).abs().max() > 0.1


def test_the_generator_alone_decides_the_weights() -> None:
    one, same, other = (Stack(1, "pre", generator(seed)).state_dict() for seed in (3, 3, 4))
    name = "blocks.0.feed_forward.linear1.weight"
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert not torch.equal(one[name], other[name])
    assert float(one[name].var()) == pytest.approx(2 / (64 + 256), rel=0.05)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_both_norms_start_from_the_same_weights_and_are_what_they_say(placement: str) -> None:
    layer, rms = (Stack(2, placement, generator(), norm=norm) for norm in ("layer", "rms"))
    weights = dict(layer.named_parameters())
    assert all(torch.equal(weights[name], w) for name, w in rms.named_parameters())
    norms = [m for m in rms.modules() if isinstance(m, (nn.LayerNorm, nn.RMSNorm))]
    assert len(norms) == (5 if placement == "pre" else 4)
    assert all(isinstance(m, nn.RMSNorm) and m.eps == 1e-5 for m in norms)
    y = rms(random_tokens(generator(1)))
    torch.testing.assert_close(y.square().mean(-1), torch.ones(4, 32, dtype=y.dtype), atol=1e-3, rtol=0)
    assert y.mean(-1).abs().max() > 0.1  # the mean stays in


def test_an_unknown_norm_is_refused() -> None:
    with pytest.raises(ValueError, match="norm must be one of"):
        Stack(1, "pre", generator(), norm="batch")


def test_a_norm_at_the_end_of_the_branch() -> None:
    stack, pre = (Stack(1, placement, generator()) for placement in ("branch", "pre"))
    assert all(torch.equal(w, dict(pre.named_parameters())[name]) for name, w in stack.named_parameters())
    block, x = stack.blocks[0], random_tokens(generator(1))
    middle = x + block.norm1(block.self_attn(x, causal_mask(32)))
    torch.testing.assert_close(stack.states(x)[1], middle + block.norm2(block.feed_forward(middle)))


def test_token_cosine_of_known_sequences() -> None:
    alike = torch.randn(2, 1, 8, generator=generator()).expand(2, 5, 8)
    opposite = torch.tensor([[[1.0, 2.0], [-3.0, -6.0]]])
    assert token_cosine(alike) == pytest.approx(1)
    assert token_cosine(opposite) == pytest.approx(-1)
    assert token_cosine(torch.eye(4)[None]) == pytest.approx(0)


def test_mean_square_of_known_numbers() -> None:
    assert mean_square(torch.tensor([2.0, 4.0, 6.0, 12.0])) == 50
