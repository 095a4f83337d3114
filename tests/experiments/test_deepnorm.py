import pytest
import torch
from torch import nn

from subnorm_lab.experiments.deepnorm import constants, deep_norm, untrained
from subnorm_lab.experiments.stack import causal_mask, random_tokens


@pytest.mark.parametrize(("blocks", "alpha", "beta"), [(6, 1.8612, 0.3799), (100, 3.7606, 0.1880)])
def test_constants(blocks: int, alpha: float, beta: float) -> None:
    assert constants(blocks) == pytest.approx((alpha, beta), abs=5e-5)


@torch.no_grad()
def test_the_scaled_post_ln_stack_computes_deepnorm() -> None:
    blocks, d = 3, 64
    alpha, beta = constants(blocks)
    plain = untrained("post", blocks, torch.Generator().manual_seed(0))
    scaled = deep_norm(untrained("post", blocks, torch.Generator().manual_seed(0)))
    x = random_tokens(torch.Generator().manual_seed(1))
    expected, mask = x, causal_mask(x.shape[-2])
    norm = nn.LayerNorm(d, eps=0, dtype=torch.float64)
    for attention, feed_forward in zip(plain.attention, plain.feed_forward, strict=True):
        attention.in_proj_weight[2 * d :] *= beta  # the values
        attention.out_proj.weight *= beta
        feed_forward.linear1.weight *= beta
        feed_forward.linear2.weight *= beta
        expected = norm(alpha * expected + attention(expected, mask))
        expected = norm(alpha * expected + feed_forward(expected))
    torch.testing.assert_close(scaled(x, mask), expected, atol=1e-4, rtol=1e-4)  # eps is alpha^2 times as large there


def test_stacks_by_name() -> None:
    stacks = {kind: untrained(kind, 2, torch.Generator().manual_seed(0)) for kind in ("pre", "post", "deepnorm")}
    assert isinstance(stacks["pre"].placement.final_norm, nn.LayerNorm)
    weights = {kind: stack.feed_forward[0].linear1.weight for kind, stack in stacks.items()}
    assert torch.equal(weights["pre"], weights["post"])
    torch.testing.assert_close(weights["deepnorm"], constants(2)[1] * weights["post"])
