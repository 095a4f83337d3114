"""Multi-head attention: NumPy against PyTorch against torch.nn.MultiheadAttention, and what masks must do."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, strategies
from hypothesis.extra.numpy import array_shapes, arrays
from torch import nn

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm.numpy.attention import ATTENTION_PARAMS

close = partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-12, strict=True)

# All sizes differ, so that a swapped axis cannot hide.
B, T, D, HEADS = 2, 5, 12, 3


def builtin(d_model: int = D, num_heads: int = HEADS) -> nn.MultiheadAttention:
    """torch's module with random parameters; biases start at 0, which would hide a forgotten one."""
    torch.manual_seed(0)
    module = nn.MultiheadAttention(d_model, num_heads, batch_first=True).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


def ours(theirs: nn.MultiheadAttention) -> st.MultiHeadAttention:
    module = st.MultiHeadAttention(theirs.embed_dim, theirs.num_heads).double()
    module.load_state_dict(theirs.state_dict())
    return module


def arrays_of(module: nn.Module) -> dict[str, np.ndarray]:
    return {name: p.numpy() for name, p in module.state_dict().items()}


def causal() -> np.ndarray:
    return np.tri(T, dtype=bool)


def random_mask(rng: np.random.Generator, *lead: int) -> np.ndarray:
    return (rng.random((*lead, T, T)) < 0.5) | np.eye(T, dtype=bool)


MASKS = {
    "none": lambda rng: None,
    "causal": lambda rng: causal(),
    "any": random_mask,
    "per sequence": lambda rng: random_mask(rng, B, 1),
    "per head": lambda rng: random_mask(rng, HEADS),
    "per sequence and head": lambda rng: random_mask(rng, B, HEADS),
    "padding": lambda rng: np.array([[True, True, True, False, False], [True] * 5])[:, None, None, :],
}


# Cross-attention has its queries from x, keys and values from a memory of S tokens.
S = 7
MEMORY_MASKS = {
    "none": lambda rng: None,
    "any": lambda rng: (rng.random((T, S)) < 0.5) | (np.arange(S) == 0),
    "padding": lambda rng: np.arange(S)[None, None, None, :] < np.array([4, S])[:, None, None, None],
}
READS = [("itself", name) for name in MASKS] + [("a memory", name) for name in MEMORY_MASKS]


@pytest.mark.parametrize(("reads", "mask_name"), READS)
def test_numpy_torch_and_builtin_agree(reads: str, mask_name: str, rng: np.random.Generator) -> None:
    (x, dy), memory = rng.normal(size=(2, B, T, D)), rng.normal(size=(B, S, D))
    given, masks = {"itself": ([x], MASKS), "a memory": ([x, memory], MEMORY_MASKS)}[reads]
    mask = masks[mask_name](rng)
    theirs = builtin()
    module = ours(theirs)
    allowed = blocked = None
    if mask is not None:  # torch's convention is the opposite one, and its mask has one axis for batch and heads
        allowed, keys = torch.from_numpy(mask), mask.shape[-1]
        blocked = ~allowed.expand(B, HEADS, T, keys).reshape(B * HEADS, T, keys)

    def theirs_on(x: torch.Tensor, memory: torch.Tensor | None = None) -> torch.Tensor:
        source = x if memory is None else memory
        return theirs(x, source, source, attn_mask=blocked, need_weights=False)[0]

    results = []
    for m, f in ((theirs, theirs_on), (module, lambda x, *memory: module(x, allowed, *memory))):
        inputs = [torch.tensor(a, requires_grad=True) for a in given]
        y = f(*inputs)
        names, parameters = zip(*sorted(m.named_parameters()), strict=True)
        results.append([y.detach(), *torch.autograd.grad(y, [*inputs, *parameters], torch.from_numpy(dy))])
    assert names == tuple(sorted(ATTENTION_PARAMS))
    for expected, got in zip(*results, strict=True):
        close(got.numpy(), expected.numpy())
    close(sn.multi_head_attention(x, arrays_of(theirs), HEADS, mask, *given[1:]), results[0][0].numpy())


@pytest.mark.parametrize("num_heads", [1, 2, 3, 12])
@pytest.mark.parametrize("lead", [(), (1,), (2,), (2, 3), (0,)], ids=str)
@pytest.mark.parametrize("tokens", [1, 5])
def test_any_leading_axes_and_heads(
    tokens: int, lead: tuple[int, ...], num_heads: int, rng: np.random.Generator
) -> None:
    x = rng.normal(size=(*lead, tokens, D))
    theirs = builtin(num_heads=num_heads)
    rows = torch.from_numpy(x.reshape(-1, tokens, D))
    expected = np.empty_like(x)
    if x.size:
        expected = theirs(rows, rows, rows, need_weights=False)[0].detach().numpy().reshape(x.shape)
    close(ours(theirs)(torch.from_numpy(x)).detach().numpy(), expected)
    close(sn.multi_head_attention(x, arrays_of(theirs), num_heads), expected)


def test_the_module_starts_as_torch_nn_does() -> None:
    module, theirs = st.MultiHeadAttention(D, HEADS), nn.MultiheadAttention(D, HEADS)
    assert {n: p.shape for n, p in module.named_parameters()} == {n: p.shape for n, p in theirs.named_parameters()}
    assert not module.in_proj_bias.any()
    assert not module.out_proj.bias.any()
    limit = (6 / (D + 3 * D)) ** 0.5  # Xavier: uniform within this
    assert 0.9 * limit < module.in_proj_weight.abs().max() <= limit


def test_self_attention_is_cross_attention_to_oneself(rng: np.random.Generator) -> None:
    x, module = rng.normal(size=(B, T, D)), ours(builtin())
    params, v = arrays_of(module), torch.from_numpy(x)
    close(sn.multi_head_attention(x, params, HEADS, memory=x), sn.multi_head_attention(x, params, HEADS))
    close(module(v, memory=v).detach().numpy(), module(v).detach().numpy())


def test_a_query_that_sees_one_token_of_the_memory_gets_its_value(rng: np.random.Generator) -> None:
    """Query t sees token t of a longer memory, and so nothing of x but its own place."""
    x, memory, params = rng.normal(size=(B, T, D)), rng.normal(size=(B, S, D)), arrays_of(builtin())
    value = memory @ params["in_proj_weight"][2 * D :].T + params["in_proj_bias"][2 * D :]
    expected = (value @ params["out_proj.weight"].T + params["out_proj.bias"])[:, :T]
    close(sn.multi_head_attention(x, params, HEADS, np.eye(T, S, dtype=bool), memory), expected)


# Softmax and a single head


@given(x=arrays(np.float64, array_shapes(max_dims=3, max_side=6), elements=strategies.floats(-1000, 1000)))
def test_softmax_is_positive_and_sums_to_one(x: np.ndarray) -> None:
    weights = sn.softmax(x)
    assert (weights >= 0).all()
    close(weights.sum(axis=-1), np.ones(x.shape[:-1])[()])
    close(weights, torch.softmax(torch.from_numpy(x), -1).numpy())
    close(sn.softmax(x + 500), weights)


def test_softmax_gives_minus_infinity_no_weight() -> None:
    assert sn.softmax([0.0, -np.inf, 0.0]).tolist() == [0.5, 0, 0.5]


def test_any_numbers_of_queries_and_keys(rng: np.random.Generator) -> None:
    q, k, v = (rng.normal(size=(B, *shape)) for shape in ((3, 4), (7, 4), (7, 2)))
    expected = nn.functional.scaled_dot_product_attention(*map(torch.from_numpy, (q, k, v))).numpy()
    close(sn.attention(q, k, v), expected)


def test_lists_are_arrays() -> None:
    q, k, v = [[1.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0], [3.0]]
    close(sn.attention(q, k, v, [[True, True]]), sn.attention(*map(np.array, (q, k, v))))


@pytest.mark.parametrize("size", [100.0, 300.0])
def test_large_float16_tokens_do_not_overflow(size: float, rng: np.random.Generator) -> None:
    """Scores of float16 tokens of this size are above 65504, where float16 ends. What comes out is a mean of values."""
    params = {name: value.astype(np.float16) for name, value in arrays_of(builtin()).items()}
    x = (size * rng.normal(size=(B, T, D))).astype(np.float16)
    y = sn.multi_head_attention(x, params, HEADS)
    wide = {name: value.astype(np.float64) for name, value in params.items()}
    expected = sn.multi_head_attention(x.astype(np.float64), wide, HEADS)
    assert y.dtype == np.float16
    # One rounding of the result, of about 1e-3 relative, and the float32 steps before it, far smaller.
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())
    q = x[..., :4]
    mixed = sn.attention(q, q, q)
    assert mixed.dtype == np.float16
    assert np.isfinite(mixed).all()


def test_float16_is_rounded_once_at_the_end(rng: np.random.Generator) -> None:
    """All steps before are in float32, so almost every entry is the float16 nearest to the exact one."""
    params = {name: value.astype(np.float16) for name, value in arrays_of(builtin()).items()}
    x = rng.normal(size=(B, 20, D)).astype(np.float16)
    wide = {name: value.astype(np.float64) for name, value in params.items()}
    expected = sn.multi_head_attention(x.astype(np.float64), wide, HEADS)
    y = sn.multi_head_attention(x, params, HEADS)
    assert (y == expected.astype(np.float16)).mean() > 0.98


# Masks

LIBRARIES = {
    "numpy": lambda module, x, mask: sn.multi_head_attention(x, arrays_of(module), HEADS, mask),
    "torch": lambda module, x, mask: (
        module(torch.from_numpy(x), None if mask is None else torch.from_numpy(mask)).detach().numpy()
    ),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_token_that_sees_only_itself_gets_its_own_value(library: str, rng: np.random.Generator) -> None:
    module, x = ours(builtin()), rng.normal(size=(B, T, D))
    params = arrays_of(module)
    value = x @ params["in_proj_weight"][2 * D :].T + params["in_proj_bias"][2 * D :]
    expected = value @ params["out_proj.weight"].T + params["out_proj.bias"]
    close(LIBRARIES[library](module, x, np.eye(T, dtype=bool)), expected)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("now", range(T - 1))
def test_under_a_causal_mask_the_future_changes_nothing(library: str, now: int, rng: np.random.Generator) -> None:
    module, x = ours(builtin()), rng.normal(size=(B, T, D))
    other = x.copy()
    other[:, now + 1 :] = rng.normal(size=other[:, now + 1 :].shape)
    attend = partial(LIBRARIES[library], module)
    before, after = attend(x, causal()), attend(other, causal())
    close(after[:, : now + 1], before[:, : now + 1])
    assert np.abs(after[:, now + 1 :] - before[:, now + 1 :]).min() > 1e-6  # and the past does change the future


@pytest.mark.parametrize("library", LIBRARIES)
def test_without_a_mask_attention_commutes_with_permuting_tokens(library: str, rng: np.random.Generator) -> None:
    module, x, order = ours(builtin()), rng.normal(size=(B, T, D)), rng.permutation(T)
    attend = partial(LIBRARIES[library], module)
    close(attend(x[:, order], None), attend(x, None)[:, order])


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_mask_of_ones_is_no_mask(library: str, rng: np.random.Generator) -> None:
    module, x = ours(builtin()), rng.normal(size=(B, T, D))
    close(LIBRARIES[library](module, x, np.ones((T, T), bool)), LIBRARIES[library](module, x, None))


@pytest.mark.parametrize("lead", [(), (2, 3)])
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_mask_fits_any_leading_axes(library: str, lead: tuple[int, ...], rng: np.random.Generator) -> None:
    module, x = ours(builtin()), rng.normal(size=(*lead, T, D))
    alone = [LIBRARIES[library](module, one, causal()) for one in x.reshape(-1, T, D)]
    close(LIBRARIES[library](module, x, causal()), np.reshape(alone, x.shape))
