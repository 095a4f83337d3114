import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from subnorm.torch import DecoderBlock, Stack
from subnorm_lab.experiments import gradients
from subnorm_lab.experiments.deepnorm import constants, untrained
from subnorm_lab.experiments.stack import causal_mask, draw_weights, random_tokens, states


def lower_part(stack: Stack, num_blocks: int, x: torch.Tensor) -> torch.Tensor:
    """The stream after some of the blocks."""
    for k, branch in enumerate(stack.branches(causal_mask(x.shape[-2]))[: 2 * num_blocks]):
        x = stack.placement.step(x, branch, k)
    return x


def test_log_slopes_of_power_laws() -> None:
    depths = (1, 2, 4, 8)
    sizes = np.array([[3 * depth**p for depth in depths] for p in (0.0, -0.5, 2.0)])
    np.testing.assert_allclose(gradients.log_slopes(depths, sizes), [0, -0.5, 2], atol=1e-12)


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("depth", [1, 3])
def test_the_short_cut_gives_the_gradient_of_the_whole_stack(placement: str, depth: int) -> None:
    measured = gradients.last_layer(placement, (depth,), range(5, 6))
    layers = gradients.by_layer(placement, depth, range(5, 6), sequences=gradients.SEQUENCES)
    for loss, sizes in layers.items():
        assert sizes.shape == (1, depth)
        assert sizes[0, -1] == pytest.approx(measured[loss][0, 0], rel=1e-9)

    generator = torch.Generator().manual_seed(5)
    x = random_tokens(generator, batch_size=gradients.SEQUENCES)
    stack, head = untrained(placement, depth, generator), nn.Linear(64, gradients.CLASSES, dtype=x.dtype)
    draw_weights(head, generator)
    target = torch.randint(gradients.CLASSES, (gradients.SEQUENCES, 32), generator=generator)
    logits = head(stack(x, causal_mask(32)))
    weight = stack.feed_forward[-1].linear2.weight

    (average,) = torch.autograd.grad(F.cross_entropy(logits.flatten(0, 1), target.flatten()), weight, retain_graph=True)
    assert measured["average"][0, 0] == pytest.approx(float(average.norm()), rel=1e-4)
    squares = [
        float(torch.autograd.grad(F.cross_entropy(logits[b, -1:], target[b, -1:]), weight, retain_graph=True)[0].norm())
        ** 2
        for b in range(gradients.SEQUENCES)
    ]
    assert measured["one_token"][0, 0] == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-4)


def test_a_lower_part_has_its_own_last_layer() -> None:
    deep, alone = (gradients.last_layer("post", depths, range(1)) for depths in ((1, 2), (2,)))
    assert deep["average"][0, 1] == alone["average"][0, 0]
    assert deep["average"][0, 0] != deep["average"][0, 1]


def test_block_by_block_starts_at_the_input_and_post_ln_stays_at_one() -> None:
    pre, post = (gradients.block_by_block(placement, (4,), range(2))[4] for placement in ("pre", "post"))
    assert pre["mean_square"].shape == pre["token_cosine"].shape == (2, 5)
    assert pre["one_token"].shape == (2, 4)
    np.testing.assert_allclose(post["mean_square"][:, 1:], 1, atol=1e-3)
    np.testing.assert_allclose(pre["mean_square"][:, 0], 1, atol=0.1)
    np.testing.assert_allclose(pre["token_cosine"][:, 0], 0, atol=0.02)
    assert (np.diff(pre["mean_square"], axis=1) > 0.3).all()


@pytest.mark.parametrize("kind", ["pre", "after_branch", "deepnorm"])
def test_block_by_block_of_a_lower_part(kind: str) -> None:
    found = gradients.block_by_block(kind, (2, 3), range(4, 5))[2]
    generator = torch.Generator().manual_seed(4)
    stack = untrained(kind, 2 if kind == "deepnorm" else 3, generator)
    x = random_tokens(generator)
    head = nn.Linear(64, gradients.CLASSES, dtype=x.dtype)
    draw_weights(head, generator)
    target = torch.randint(gradients.CLASSES, (4, 32), generator=generator)
    h = lower_part(stack, 2, x)
    assert found["mean_square"][0, 2] == pytest.approx(float(h.detach().square().mean()), rel=1e-9)
    logits = head(stack.placement.final_norm(h))[:, -1]  # of the last tokens, (B, classes)
    squares = np.zeros(2)
    for b in range(2):
        loss = F.cross_entropy(logits[b], target[b, -1])
        weights = [feed_forward.linear2.weight for feed_forward in stack.feed_forward[:2]]
        squares += [float(g.square().sum()) / 2 for g in torch.autograd.grad(loss, weights, retain_graph=True)]
    unit = 1 / constants(2)[0] if kind == "deepnorm" else 1
    np.testing.assert_allclose(found["one_token"][0], unit * np.sqrt(squares), rtol=1e-9)


def test_deepnorms_gradient_is_that_of_its_own_weight() -> None:
    depth = 2
    measured = gradients.last_layer("deepnorm", (depth,), range(1))["average"].item()
    generator = torch.Generator().manual_seed(0)
    x = random_tokens(generator, batch_size=gradients.SEQUENCES)
    stack, head = untrained("deepnorm", depth, generator), nn.Linear(64, gradients.CLASSES, dtype=x.dtype)
    draw_weights(head, generator)
    target = torch.randint(gradients.CLASSES, (gradients.SEQUENCES, 32), generator=generator)
    attention, feed_forward = stack.sublayers[-2:]
    alpha = constants(depth)[0]
    own = (alpha * feed_forward.linear2.weight).detach().requires_grad_()
    h = states(stack, x)[-2]
    h = stack.placement.norms[-2](h + attention(h, causal_mask(32)))
    branch = torch.relu(feed_forward.linear1(h)) @ own.T  # F(h), with the weight that DeepNorm has
    y = F.layer_norm(alpha * h + branch, (64,), eps=1e-5 * alpha**2)
    loss = F.cross_entropy(head(y).flatten(0, 1), target.flatten())
    assert measured == pytest.approx(float(torch.autograd.grad(loss, own)[0].norm()), rel=1e-6)


@pytest.mark.parametrize("init", gradients.INITS)
def test_redrawn_weights_have_the_variance_of_their_rule(init: str) -> None:
    stack = gradients._redraw(untrained("pre", 2, torch.Generator().manual_seed(0)), init)
    for name, weight in stack.named_parameters():
        if weight.ndim == 2:
            outputs, inputs = weight.shape
            assert float(weight.detach().var()) == pytest.approx(gradients.INITS[init](inputs, outputs), rel=0.1), name


def test_an_unknown_init_is_refused() -> None:
    with pytest.raises(ValueError, match="init"):
        gradients.by_layer("pre", 1, range(1), "zeros")


def test_without_queries_and_keys_attention_is_a_plain_average() -> None:
    stack = untrained("post", 1, torch.Generator().manual_seed(0))
    gradients._silence_queries_and_keys(stack)
    attention = stack.attention[0]
    h = random_tokens(torch.Generator().manual_seed(1), batch_size=2, length=5)
    seen = h.cumsum(1) / torch.arange(1, 6, dtype=h.dtype)[:, None]  # the mean of the tokens up to each one
    values = seen @ attention.in_proj_weight[128:].T
    torch.testing.assert_close(attention(h, causal_mask(5)), values @ attention.out_proj.weight.T)

    kept, silent = (gradients.by_layer("post", 2, range(1), "square", 1, average) for average in (False, True))
    assert (kept["average"] != silent["average"]).all()


def test_square_branches_have_the_gain_of_xiongs_theory() -> None:
    generator = torch.Generator().manual_seed(0)
    attention, feed_forward = gradients._redraw(untrained("post", 1, generator), "square").sublayers
    h = random_tokens(generator, batch_size=64)
    assert float(feed_forward(h).square().mean().detach()) == pytest.approx(1 / 2, rel=0.2)
    d = h.shape[-1]
    values = h @ attention.in_proj_weight[2 * d :].T
    assert float((values @ attention.out_proj.weight.T).square().mean().detach()) == pytest.approx(1, rel=0.2)


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("encoder", [True, False])
def test_in_a_decoder_the_gradient_is_that_of_torchs_layers(placement: str, encoder: bool) -> None:
    found = gradients.in_a_decoder(placement, 2, range(3, 4), encoder)
    generator = torch.Generator().manual_seed(3)
    x, memory = (random_tokens(generator, batch_size=2) for _ in range(2))
    lower = untrained(placement, 2, generator)
    ours = [DecoderBlock(64, 4, 256, placement).double() for _ in range(2)]
    for block in ours:
        for part in (block.self_attn, block.multihead_attn, block.feed_forward):
            draw_weights(part, generator)

    def torchs(kind: type[nn.Module], state: dict[str, torch.Tensor]) -> nn.Module:
        layer = kind(64, 4, 256, 0.0, batch_first=True, norm_first=placement == "pre", dtype=x.dtype)
        layer.load_state_dict({name.removeprefix("feed_forward."): w for name, w in state.items()}, strict=False)
        return layer  # the norms that are not in the state are as ours, gain 1 and shift 0

    final = nn.LayerNorm(64, dtype=x.dtype) if placement == "pre" else nn.Identity()
    if encoder:
        for attention, feed_forward in zip(lower.attention, lower.feed_forward, strict=True):
            state = {f"self_attn.{name}": w for name, w in attention.state_dict().items()}
            memory = torchs(nn.TransformerEncoderLayer, state | feed_forward.state_dict())(memory)
        memory = final(memory).detach()
    layers = [torchs(nn.TransformerDecoderLayer, block.state_dict()) for block in ours]
    y = x
    for layer in layers:
        y = layer(y, memory, tgt_mask=~causal_mask(32))
    head = nn.Linear(64, gradients.CLASSES, dtype=x.dtype)
    draw_weights(head, generator)
    target = torch.randint(gradients.CLASSES, (2, 32), generator=generator)
    losses = F.cross_entropy(head(final(y)).transpose(1, 2), target, reduction="none")
    for row, layer in enumerate(layers):
        (average,) = torch.autograd.grad(losses.mean(), layer.linear2.weight, retain_graph=True)
        assert found["average"][0, row] == pytest.approx(float(average.norm()), rel=1e-6)
        tokens = [torch.autograd.grad(loss, layer.linear2.weight, retain_graph=True)[0] for loss in losses[:, -1]]
        assert found["one_token"][0, row] == pytest.approx(
            np.sqrt(np.mean([float(g.square().sum()) for g in tokens])), rel=1e-6
        )
