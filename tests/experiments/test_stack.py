import pytest
import torch
from torch import nn

from subnorm_lab.experiments.stack import causal_mask, mean_square, random_tokens, states, token_cosine, untrained

MASK = causal_mask(32)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("placement", ["pre", "post", "after_branch"])
def test_every_token_of_the_output_is_normalised(placement: str) -> None:
    y = untrained(placement, 3, generator())(random_tokens(generator(1)), MASK)
    torch.testing.assert_close(y.mean(-1), torch.zeros(4, 32, dtype=y.dtype), atol=1e-5, rtol=0)
    torch.testing.assert_close(y.var(-1, correction=0), torch.ones(4, 32, dtype=y.dtype), atol=1e-3, rtol=0)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_a_token_does_not_see_the_future(placement: str) -> None:
    stack, x = untrained(placement, 2, generator()), random_tokens(generator(1))
    changed = x.clone()
    changed[:, 20:] = random_tokens(generator(2))[:, 20:]
    y, y_changed = states(stack, x)[-1], states(stack, changed)[-1]
    torch.testing.assert_close(y[:, :20], y_changed[:, :20])
    assert (y[:, 20:] - y_changed[:, 20:]).abs().max() > 0.1


def test_the_generator_alone_decides_the_weights() -> None:
    one, same, other = (untrained("pre", 1, generator(seed)).state_dict() for seed in (3, 3, 4))
    name = "sublayers.1.linear1.weight"
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert not torch.equal(one[name], other[name])
    assert float(one[name].var()) == pytest.approx(2 / (64 + 256), rel=0.05)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_both_norms_start_from_the_same_weights_and_are_what_they_say(placement: str) -> None:
    layer, rms = (untrained(placement, 2, generator(), norm=norm) for norm in ("layer", "rms"))
    weights = dict(layer.named_parameters())
    assert all(torch.equal(weights[name], w) for name, w in rms.named_parameters())
    norms = [m for m in rms.modules() if isinstance(m, (nn.LayerNorm, nn.RMSNorm))]
    assert len(norms) == (5 if placement == "pre" else 4)
    assert all(isinstance(m, nn.RMSNorm) and m.eps == 1e-5 for m in norms)
    y = rms(random_tokens(generator(1)), MASK)
    torch.testing.assert_close(y.square().mean(-1), torch.ones(4, 32, dtype=y.dtype), atol=1e-3, rtol=0)
    assert y.mean(-1).abs().max() > 0.1  # the mean stays in


@pytest.mark.parametrize(("name", "known"), [("norm", "'layer', 'rms'"), ("placement", "'pre', 'post'")])
def test_an_unknown_name_is_refused(name: str, known: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be one of {known}"):
        untrained(**{"placement": "pre", "num_blocks": 1, "generator": generator(), name: "batch"})


def test_the_states_are_those_after_each_block() -> None:
    stack, x = untrained("after_branch", 2, generator()), random_tokens(generator(1))
    expected = [x]
    for k in (0, 2):
        middle = expected[-1] + stack.placement.norms[k](stack.sublayers[k](expected[-1], MASK))
        expected.append(middle + stack.placement.norms[k + 1](stack.sublayers[k + 1](middle)))
    for state, y in zip(states(stack, x), expected, strict=True):
        torch.testing.assert_close(state, y)


def test_token_cosine_of_known_sequences() -> None:
    alike = torch.randn(2, 1, 8, generator=generator()).expand(2, 5, 8)
    opposite = torch.tensor([[[1.0, 2.0], [-3.0, -6.0]]])
    assert token_cosine(alike) == pytest.approx(1)
    assert token_cosine(opposite) == pytest.approx(-1)
    assert token_cosine(torch.eye(4)[None]) == pytest.approx(0)


def test_mean_square_of_known_numbers() -> None:
    assert mean_square(torch.tensor([2.0, 4.0, 6.0, 12.0])) == 50
