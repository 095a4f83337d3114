"""Sublayers and blocks against torch.nn.TransformerEncoderLayer and against their parts; dropout on the branch only."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import subnorm.numpy as sn
import subnorm.torch as st

close = partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-12, strict=True)

B, T, D, HEADS, D_FF = 2, 5, 12, 3, 20
CAUSAL = np.tri(T, dtype=bool)
PLACEMENTS, NORMS = ["pre", "post"], ["layer", "rms"]


def randomised(module: nn.Module) -> nn.Module:
    """In float64 with random parameters: 1 and 0 would hide a forgotten gain or bias."""
    torch.manual_seed(0)
    for parameter in module.double().parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


def arrays_of(module: nn.Module) -> dict[str, np.ndarray]:
    return {name: p.numpy() for name, p in module.state_dict().items()}


def gradients(module: nn.Module, x: np.ndarray, dy: np.ndarray, f: Callable[[Tensor], Tensor]) -> dict[str, np.ndarray]:
    """y, dx, and the gradient of each parameter by name."""
    x_in = torch.tensor(x, requires_grad=True)
    y = f(x_in)
    names, parameters = zip(*module.named_parameters(), strict=True)
    grads = torch.autograd.grad(y, [x_in, *parameters], torch.from_numpy(dy))
    return {"y": y.detach().numpy(), **{n: g.numpy() for n, g in zip(("dx", *names), grads, strict=True)}}


def renamed(name: str) -> str:
    """torch.nn.TransformerEncoderLayer keeps the feed-forward's layers beside the attention."""
    return name.replace("linear", "feed_forward.linear")


@pytest.mark.parametrize("mask", [None, CAUSAL], ids=["no mask", "causal"])
@pytest.mark.parametrize("eps", [1e-5, 0.1])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_block_is_torch_nn_s_encoder_layer(
    placement: str, eps: float, mask: np.ndarray | None, rng: np.random.Generator
) -> None:
    x, dy = rng.normal(1, 2, (2, B, T, D))
    theirs = randomised(
        nn.TransformerEncoderLayer(
            D, HEADS, D_FF, dropout=0, batch_first=True, norm_first=placement == "pre", layer_norm_eps=eps
        )
    )
    block = st.TransformerBlock(D, HEADS, D_FF, placement, eps=eps).double()
    block.load_state_dict({renamed(name): p for name, p in theirs.state_dict().items()})

    allowed = None if mask is None else torch.from_numpy(mask)
    got = gradients(block, x, dy, lambda v: block(v, allowed))
    blocked = None if mask is None else ~allowed  # the opposite convention
    for name, expected in gradients(theirs, x, dy, lambda v: theirs(v, src_mask=blocked)).items():
        close(got.pop(renamed(name)), expected, err_msg=name)
    assert not got
    y = gradients(block, x, dy, lambda v: block(v, allowed))["y"]
    close(sn.transformer_block(x, arrays_of(block), HEADS, placement, "layer", mask, eps), y)


S = 7
MEMORY_MASK = np.arange(S)[None, :] != np.arange(T)[:, None]  # every query may see all tokens of the memory but one


@pytest.mark.parametrize("masks", [(None, None), (CAUSAL, None), (None, MEMORY_MASK), (CAUSAL, MEMORY_MASK)])
@pytest.mark.parametrize("eps", [1e-5, 0.1])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_decoder_block_is_torch_nn_s_decoder_layer(
    placement: str, eps: float, masks: tuple[np.ndarray | None, np.ndarray | None], rng: np.random.Generator
) -> None:
    (x, dy), memory = rng.normal(1, 2, (2, B, T, D)), rng.normal(size=(B, S, D))
    theirs = randomised(
        nn.TransformerDecoderLayer(
            D, HEADS, D_FF, dropout=0, batch_first=True, norm_first=placement == "pre", layer_norm_eps=eps
        )
    )
    block = st.DecoderBlock(D, HEADS, D_FF, placement, eps=eps).double()
    block.load_state_dict({renamed(name): p for name, p in theirs.state_dict().items()})

    allowed = [None if mask is None else torch.from_numpy(mask) for mask in masks]
    blocked = [None if mask is None else ~mask for mask in allowed]  # the opposite convention
    memories = [torch.tensor(memory, requires_grad=True) for _ in range(2)]
    got = gradients(block, x, dy, lambda v: block(v, memories[0], *allowed))
    expected = gradients(theirs, x, dy, lambda v: theirs(v, memories[1], *blocked))
    for name, value in expected.items():
        close(got.pop(renamed(name)), value, err_msg=name)
    assert not got
    y = torch.from_numpy(dy)
    dmemory = [
        torch.autograd.grad(f(torch.from_numpy(x), m, *ms), m, y)[0].numpy()
        for f, m, ms in ((block, memories[0], allowed), (theirs, memories[1], blocked))
    ]
    close(*dmemory)
    y = sn.decoder_block(x, memory, arrays_of(block), HEADS, placement, "layer", *masks, eps)
    close(y, expected["y"])


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_what_a_decoder_may_see(placement: str, rng: np.random.Generator) -> None:
    """A later token of x changes no earlier output; a token of the memory changes them all."""
    x, memory = rng.normal(size=(B, T, D)), rng.normal(size=(B, S, D))
    params = arrays_of(randomised(st.DecoderBlock(D, HEADS, D_FF, placement)))

    def changed(x2: np.ndarray, memory2: np.ndarray) -> list[bool]:
        y, y2 = (sn.decoder_block(a, m, params, HEADS, placement, mask=CAUSAL) for a, m in ((x, memory), (x2, memory2)))
        return (np.abs(y2 - y).max(axis=(0, 2)) > 1e-9).tolist()

    for token in range(T):
        other = x.copy()
        other[:, token] += rng.normal(size=D)
        assert changed(other, memory) == [t >= token for t in range(T)]
    for token in range(S):
        other = memory.copy()
        other[:, token] += rng.normal(size=D)
        assert all(changed(x, other))


def attention_branch(module: nn.Module, mask: Tensor | None) -> Callable[[Tensor], Tensor]:
    """torch's own attention with the parameters of ours."""
    theirs = nn.MultiheadAttention(D, HEADS, batch_first=True).double()
    theirs.load_state_dict(module.self_attn.state_dict())
    return lambda h: theirs(h, h, h, attn_mask=None if mask is None else ~mask, need_weights=False)[0]


def builtin_norm(norm: nn.Module, eps: float) -> nn.Module:
    theirs = (nn.LayerNorm if hasattr(norm, "bias") else nn.RMSNorm)(D, eps=eps).double()
    theirs.load_state_dict(norm.state_dict())
    return theirs


@pytest.mark.parametrize("mask", [None, CAUSAL], ids=["no mask", "causal"])
@pytest.mark.parametrize("eps", [1e-5, 0.1])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_attention_sublayer_is_its_formula(
    placement: str, norm: str, eps: float, mask: np.ndarray | None, rng: np.random.Generator
) -> None:
    x = rng.normal(1, 2, (B, T, D))
    module = randomised(st.AttentionSubLayer(D, HEADS, 0.0, placement, norm, eps))
    allowed = None if mask is None else torch.from_numpy(mask)
    branch, n, v = attention_branch(module, allowed), builtin_norm(module.norm, eps), torch.from_numpy(x)
    with torch.no_grad():
        expected = v + branch(n(v)) if placement == "pre" else n(v + branch(v))
        close(module(v, allowed).numpy(), expected.numpy())
    close(sn.attention_sublayer(x, arrays_of(module), HEADS, placement, norm, mask, eps), expected.numpy())


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("kind", ["block", "decoder"])
def test_a_block_with_rms_norm_is_its_formula(kind: str, placement: str, rng: np.random.Generator) -> None:
    kinds = {"block": (st.TransformerBlock, sn.transformer_block), "decoder": (st.DecoderBlock, sn.decoder_block)}
    build, f = kinds[kind]
    block = randomised(build(D, HEADS, D_FF, placement, "rms", eps=0.1))
    given = [rng.normal(1, 2, (B, T, D)), rng.normal(size=(B, S, D))][: 1 + (kind == "decoder")]
    expected, *memory = tensors = [torch.from_numpy(a) for a in given]
    ffn = nn.Sequential(block.feed_forward.linear1, nn.ReLU(), block.feed_forward.linear2)
    branches = [attention_branch(block, None), *(lambda h, m=m: block.multihead_attn(h, memory=m) for m in memory), ffn]
    with torch.no_grad():
        for k, branch in enumerate(branches, 1):
            n, x = builtin_norm(block.get_submodule(f"norm{k}"), 0.1), expected
            expected = x + branch(n(x)) if placement == "pre" else n(x + branch(x))
        close(block(*tensors).numpy(), expected.numpy())
    close(f(*given, arrays_of(block), HEADS, placement, "rms", eps=0.1), expected.numpy())


@pytest.mark.parametrize("lead", [(), (1,), (2, 3), (0,)], ids=str)
def test_feed_forward_is_linear_relu_linear(lead: tuple[int, ...], rng: np.random.Generator) -> None:
    x = rng.normal(size=(*lead, D))
    module = randomised(st.FeedForward(D, D_FF))
    expected = nn.Sequential(module.linear1, nn.ReLU(), module.linear2)(torch.from_numpy(x)).detach().numpy()
    close(module(torch.from_numpy(x)).detach().numpy(), expected)
    close(sn.feed_forward(x, arrays_of(module)), expected)


@pytest.mark.parametrize("lead", [(), (1,), (2, 3), (0,)], ids=str)
def test_a_block_takes_any_leading_axes(lead: tuple[int, ...], rng: np.random.Generator) -> None:
    x = rng.normal(size=(*lead, T, D))
    block = randomised(st.TransformerBlock(D, HEADS, D_FF))
    y = sn.transformer_block(x, arrays_of(block), HEADS)
    assert y.shape == x.shape
    close(block(torch.from_numpy(x)).detach().numpy(), y)
    for i in np.ndindex(lead):
        close(y[i], sn.transformer_block(x[i], arrays_of(block), HEADS))


# Names, counts, defaults


def test_defaults_are_pre_ln_layer_norm_and_eps_1e_5(rng: np.random.Generator) -> None:
    x = rng.normal(0, 1e-3, (B, T, D))  # variance 1e-6: here eps shows
    spelled_out = {"placement": "pre", "norm": "layer", "eps": 1e-5}
    for module, f in (
        (st.TransformerBlock(D, HEADS, D_FF), sn.transformer_block),
        (st.AttentionSubLayer(D, HEADS).eval(), sn.attention_sublayer),
    ):
        params = arrays_of(randomised(module))
        close(f(x, params, HEADS), f(x, params, HEADS, **spelled_out))
        close(module(torch.from_numpy(x)).detach().numpy(), f(x, params, HEADS))
    decoder, v = randomised(st.DecoderBlock(D, HEADS, D_FF)), torch.from_numpy(x)
    y = sn.decoder_block(x, x, arrays_of(decoder), HEADS)
    close(sn.decoder_block(x, x, arrays_of(decoder), HEADS, **spelled_out), y)
    close(decoder(v, v).detach().numpy(), y)


def parameter_count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_attention_sublayer_of_512_features() -> None:
    module = st.AttentionSubLayer().eval()  # 512 features, 8 heads
    assert module.self_attn.num_heads == 8
    assert module.dropout.p == 0.1
    assert parameter_count(module) == 1_051_648
    assert module(torch.zeros(2, 30, 512)).shape == (2, 30, 512)


# Dropout

P = 0.75


def check_dropped(added: Tensor, branch: Tensor) -> None:
    """Every entry added to the skip path is 0, or the branch's entry scaled to keep the mean."""
    dropped = added.abs() < 1e-12
    close(added[~dropped].numpy(), (branch / (1 - P))[~dropped].numpy())
    # n entries, dropped with probability P: six standard deviations of their share.
    assert abs(dropped.double().mean() - P) < 6 * (P * (1 - P) / dropped.numel()) ** 0.5


def without_norms(module: nn.Module) -> nn.Module:
    """Without the norms the output shows both paths, in either placement."""
    for name in ("norm", "norm1", "norm2", "norm3"):
        if hasattr(module, name):
            setattr(module, name, nn.Identity())
    return module


WITH_DROPOUT: dict[str, Callable[[str], nn.Module]] = {
    "sublayer": lambda placement: st.AttentionSubLayer(D, HEADS, P, placement),
    "block": lambda placement: st.TransformerBlock(D, HEADS, D_FF, placement, dropout_p=P),
    "decoder": lambda placement: st.DecoderBlock(D, HEADS, D_FF, placement, dropout_p=P),
}
LAST = {"self_attn": "out_proj", "multihead_attn": "out_proj", "feed_forward": "linear2"}
BRANCHES = [("sublayer", "self_attn"), *(("block", name) for name in LAST if name != "multihead_attn")]
BRANCHES += [("decoder", name) for name in LAST]


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize(("kind", "speaking"), BRANCHES)
def test_dropout_acts_on_each_branch_in_training_only(kind: str, speaking: str, placement: str) -> None:
    module = without_norms(randomised(WITH_DROPOUT[kind](placement)))
    x, memory = torch.randn(8, 16, D, dtype=torch.float64), torch.randn(8, S, D, dtype=torch.float64)
    for name in LAST.keys() - {speaking}:
        if hasattr(module, name):
            for parameter in module.get_submodule(f"{name}.{LAST[name]}").parameters():
                nn.init.zeros_(parameter)  # the others add nothing, so that this branch's share shows
    given = [x, memory] if kind == "decoder" else [x]
    with torch.no_grad():
        branch = getattr(module, speaking)(x, **({"memory": memory} if speaking == "multihead_attn" else {}))
        check_dropped(module.train()(*given) - x, branch)
        close((module.eval()(*given) - x).numpy(), branch.numpy())


def test_a_block_has_no_dropout_unless_asked() -> None:
    block, x = st.TransformerBlock(D, HEADS, D_FF), torch.randn(B, T, D)
    assert torch.equal(block.train()(x), block.eval()(x))


def test_inputs_are_left_as_they_came(rng: np.random.Generator) -> None:
    block, x = randomised(st.TransformerBlock(D, HEADS, D_FF)), rng.normal(size=(B, T, D))
    before, params = x.copy(), {k: v.copy() for k, v in arrays_of(block).items()}
    sn.transformer_block(x, params, HEADS)
    block(torch.from_numpy(x))
    assert np.array_equal(x, before)
    assert all(np.array_equal(params[name], p) for name, p in arrays_of(block).items())
