"""Bad input raises the right exception in either library, with the rule, the input received, and the fix."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm.numpy import blocked

D, HEADS, D_FF, T = 6, 2, 8, 4
NORMS = ["layer_norm", "rms_norm", "batch_norm"]
SHIFTED = ["layer_norm", "batch_norm"]


def refuses(call: Callable[[], Any], error: type[Exception], *fragments: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    for fragment in fragments:
        assert fragment in str(caught.value)


@pytest.fixture(params=["numpy", "torch"])
def make(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """make(shape, dtype): ones of either library."""
    if request.param == "numpy":
        return lambda shape, dtype="float64": np.ones(shape, dtype)
    return lambda shape, dtype="float64": torch.ones(shape, dtype=getattr(torch, dtype))


def function(make: Callable[..., Any], name: str) -> Callable[..., Any]:
    return getattr(sn if isinstance(make(1), np.ndarray) else st, name)


def params_of(module: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: p.numpy() for name, p in module.double().state_dict().items()}


def layers(make: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Everything that reads (..., T, d_model), each as f(x, mask)."""
    attention, block = st.MultiHeadAttention(D, HEADS).double(), st.TransformerBlock(D, HEADS, D_FF, "post").double()
    sublayer = st.AttentionSubLayer(D, HEADS, placement="post").double()
    if not isinstance(make(1), np.ndarray):
        return {"attention": attention, "sublayer": sublayer, "block": block}
    post = {"placement": "post"}
    return {
        "attention": lambda x, mask=None: sn.multi_head_attention(x, params_of(attention), HEADS, mask),
        "sublayer": lambda x, mask=None: sn.attention_sublayer(x, params_of(sublayer), HEADS, mask=mask, **post),
        "block": lambda x, mask=None: sn.transformer_block(x, params_of(block), HEADS, mask=mask, **post),
    }


# Norms

NOT_FLOAT = ["must hold real floating-point numbers; got dtype", "Convert it first"]


@pytest.mark.parametrize("dtype", ["int64", "bool", "complex64"])
@pytest.mark.parametrize("name", NORMS)
def test_x_must_be_floating_point(name: str, dtype: str, make) -> None:
    refuses(lambda: function(make, name)(make((3, D), dtype)), TypeError, "x " + NOT_FLOAT[0], dtype, NOT_FLOAT[1])


@pytest.mark.parametrize("name", NORMS)
def test_gamma_and_beta_must_be_floating_point(name: str, make) -> None:
    f, x, integers = function(make, name), make((3, D)), make(D, "int32")
    refuses(lambda: f(x, integers), TypeError, "gamma " + NOT_FLOAT[0], "int32", NOT_FLOAT[1])
    if name in SHIFTED:
        refuses(lambda: f(x, None, integers), TypeError, "beta " + NOT_FLOAT[0], "int32", NOT_FLOAT[1])


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)], ids=str)
@pytest.mark.parametrize("name", NORMS)
def test_x_must_have_features(name: str, shape: tuple[int, ...], make) -> None:
    refuses(
        lambda: function(make, name)(make(shape)),
        ValueError,
        "x must have shape (..., d) with d at least 1",
        f"got shape {shape}",
        "put the features there",
    )


@pytest.mark.parametrize("shape", [(0, D), (2, 0, D)], ids=str)
def test_batch_norm_needs_a_row(shape: tuple[int, ...], make) -> None:
    expected = ["BatchNorm needs at least one row", f"got shape {shape}", "Skip an empty batch, or use LayerNorm"]
    refuses(lambda: function(make, "batch_norm")(make(shape)), ValueError, *expected)
    empty = np.ones(shape)
    refuses(lambda: sn.batch_norm_backward(empty, empty), ValueError, *expected)


@pytest.mark.parametrize("shape", [(D + 1,), (1,), (1, D), ()], ids=str)
@pytest.mark.parametrize("name", NORMS)
def test_gamma_and_beta_must_have_one_entry_for_each_feature(name: str, shape: tuple[int, ...], make) -> None:
    """Including shapes that would broadcast."""
    f, x, wrong = function(make, name), make((3, D)), make(shape)
    for parameter, call in (("gamma", lambda: f(x, wrong)), ("beta", lambda: f(x, None, wrong))):
        if parameter == "gamma" or name in SHIFTED:
            expected = [f"{parameter} must have shape ({D},)", f"got shape {shape}", f"was made for d = {D}"]
            refuses(call, ValueError, *expected)


@pytest.mark.parametrize("eps", [-1e-5, float("nan"), float("inf"), None, "1e-5", True, torch.tensor(1e-5)], ids=str)
def test_eps_must_be_finite_and_not_negative(eps: float, make) -> None:
    expected = [
        "eps must be a finite number, at least 0",
        f"got {eps!r}, of type {type(eps).__name__}",
        "take the float 1e-5, or 0",
    ]
    for name in NORMS:
        refuses(partial(function(make, name), make((3, D)), eps=eps), ValueError, *expected)
    for module in ("LayerNorm", "RMSNorm"):
        refuses(partial(function(make, module), D, eps=eps), ValueError, *expected)


@pytest.mark.parametrize("d_model", [0, -1, 6.0, True, "6", None])
def test_sizes_must_be_positive_whole_numbers(d_model: Any, make) -> None:
    expected = ["must be a whole number, at least 1", f"got {d_model!r}", "as an int"]
    for module in ("LayerNorm", "RMSNorm"):
        refuses(lambda m=module: function(make, m)(d_model), ValueError, "d_model " + expected[0], *expected[1:])
    refuses(lambda: st.FeedForward(d_model, D_FF), ValueError, "d_model " + expected[0], *expected[1:])
    refuses(lambda: st.FeedForward(D, d_model), ValueError, "d_ff " + expected[0], *expected[1:])
    refuses(lambda: st.MultiHeadAttention(d_model, 2), ValueError, "d_model " + expected[0], *expected[1:])
    refuses(lambda: st.MultiHeadAttention(D, d_model), ValueError, "num_heads " + expected[0], *expected[1:])


@pytest.mark.parametrize("name", NORMS)
def test_backward_checks_dy_as_the_forward_pass_checks_x(name: str) -> None:
    backward, x, dy = getattr(sn, f"{name}_backward"), np.ones((3, D)), np.ones((3, D))
    for wrong in (np.ones(D), np.ones((1, D)), np.ones((D, 3))):
        refuses(
            partial(backward, wrong, x),
            ValueError,
            f"dy must have the shape of x, (3, {D})",
            f"got shape {wrong.shape}",
            "It is not broadcast",
        )
    refuses(lambda: backward(np.ones((3, D), int), x), TypeError, "dy " + NOT_FLOAT[0], "int", NOT_FLOAT[1])
    refuses(lambda: backward(dy, np.ones((3, D), int)), TypeError, "x " + NOT_FLOAT[0], "int", NOT_FLOAT[1])
    refuses(lambda: backward(dy, x, np.ones(D, int)), TypeError, "gamma " + NOT_FLOAT[0], "int", NOT_FLOAT[1])
    refuses(lambda: backward(dy, x, np.ones(D + 1)), ValueError, f"gamma must have shape ({D},)", f"({D + 1},)")
    refuses(lambda: backward(dy, x, eps=-1.0), ValueError, "eps must be a finite number", "got -1.0")
    refuses(lambda: backward(np.ones((3, 0)), np.ones((3, 0))), ValueError, "d at least 1", "got shape (3, 0)")


# Residual


@pytest.mark.parametrize("place", ["residual", "pre_ln", "post_ln"])
def test_a_branch_must_keep_the_shape(place: str, make) -> None:
    """Even if the shapes would broadcast, as after a mean over the tokens."""
    norms = () if place == "residual" else (lambda x: x,)
    refuses(
        lambda: function(make, place)(make((2, 3)), lambda x: x[:1], *norms),
        ValueError,
        "the sublayer's output must have the shape of its input x, (2, 3)",
        "got shape (1, 3)",
        "a silent broadcast hides a wrong axis",
    )


# Attention and blocks


@pytest.mark.parametrize("layer", ["attention", "sublayer", "block"])
def test_tokens_must_be_floating_point(layer: str, make) -> None:
    call = partial(layers(make)[layer], make((T, D), "int64"))
    refuses(call, TypeError, "x " + NOT_FLOAT[0], "int64", NOT_FLOAT[1])


@pytest.mark.parametrize("shape", [(D,), (T, D + 1), (D, T), (2, 0, D), ()], ids=str)
@pytest.mark.parametrize("layer", ["attention", "sublayer", "block"])
def test_attention_needs_a_sequence(layer: str, shape: tuple[int, ...], make) -> None:
    refuses(
        partial(layers(make)[layer], make(shape)),
        ValueError,
        f"x must have shape (..., T, d_model) with T at least 1 and d_model = {D}",
        f"got shape {shape}",
        "features last",
    )


@pytest.mark.parametrize("layer", ["attention", "sublayer", "block"])
def test_a_mask_must_be_boolean(layer: str, make) -> None:
    refuses(
        lambda: layers(make)[layer](make((T, D)), make((T, T))),
        TypeError,
        "mask must be boolean, True where a query may look at a key",
        "float64",
        "mask = (additive == 0)",
        "with ~mask",
    )


@pytest.mark.parametrize("shape", [(T, T + 1), (3, T), (2, T, T, 1), (5, T, T), (1, 1, 1, T, T), (T,), ()], ids=str)
def test_a_mask_must_fit_the_scores(shape: tuple[int, ...], make) -> None:
    refuses(
        lambda: layers(make)["attention"](make((3, T, D)), make(shape, "bool")),
        ValueError,
        f"broadcast to the scores' shape (..., heads, T, S) = {(3, HEADS, T, T)}",
        f"got shape {shape}",
        "Give (T, S) for one shared mask",
    )


def readers(make: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Everything that reads a memory, each as f(x, memory, memory_mask)."""
    attention = st.MultiHeadAttention(D, HEADS).double()
    block = st.DecoderBlock(D, HEADS, D_FF, "post").double()
    if not isinstance(make(1), np.ndarray):
        return {
            "attention": lambda x, memory, mask=None: attention(x, mask, memory),
            "block": lambda x, memory, mask=None: block(x, memory, memory_mask=mask),
        }
    return {
        "attention": lambda x, memory, mask=None: sn.multi_head_attention(x, params_of(attention), HEADS, mask, memory),
        "block": lambda x, memory, mask=None: sn.decoder_block(
            x, memory, params_of(block), HEADS, "post", memory_mask=mask
        ),
    }


S = 3


@pytest.mark.parametrize("shape", [(D,), (S, D), (1, S, D), (2, S, D + 1), (2, 0, D), (1, 2, S, D), ()], ids=str)
@pytest.mark.parametrize("reader", ["attention", "block"])
def test_a_memory_must_fit_x(reader: str, shape: tuple[int, ...], make) -> None:
    """Even if it would broadcast: one memory for several sequences is more often a forgotten axis."""
    refuses(
        lambda: readers(make)[reader](make((2, T, D)), make(shape)),
        ValueError,
        f"memory must have shape (..., S, d_model) with S at least 1 and the other axes of x, {(2, T, D)}",
        f"got shape {shape}",
        "its own memory",
    )


@pytest.mark.parametrize("reader", ["attention", "block"])
def test_a_memory_must_be_floating_point(reader: str, make) -> None:
    call = partial(readers(make)[reader], make((2, T, D)), make((2, S, D), "int64"))
    refuses(call, TypeError, "memory " + NOT_FLOAT[0], "int64", NOT_FLOAT[1])


@pytest.mark.parametrize("reader", ["attention", "block"])
def test_a_memory_mask_has_a_column_for_each_token_of_the_memory(reader: str, make) -> None:
    f, x, memory = readers(make)[reader], make((2, T, D)), make((2, S, D))
    f(x, memory, make((T, S), "bool"))
    refuses(
        lambda: f(x, memory, make((T, T), "bool")),
        ValueError,
        f"broadcast to the scores' shape (..., heads, T, S) = {(2, HEADS, T, S)}",
        f"got shape {(T, T)}",
        "S is T in self-attention",
    )
    blind = make((T, S), "bool")
    blind[1] = False
    refuses(lambda: f(x, memory, blind), ValueError, "every query must see at least one key")


def test_every_query_must_see_a_key(make) -> None:
    mask = make((T, T), "bool")
    mask[2] = False
    refuses(
        lambda: layers(make)["attention"](make((3, T, D)), mask),
        ValueError,
        "every query must see at least one key",
        "a mask row that is all False",
        "Let a padding token look at itself",
    )


@pytest.mark.parametrize("num_heads", [4, 5, 12])
def test_heads_must_divide_d_model(num_heads: int) -> None:
    expected = [
        "d_model must be divisible by num_heads",
        f"d_model = {D} and num_heads = {num_heads}",
        "Change one of the two",
    ]
    refuses(lambda: st.MultiHeadAttention(D, num_heads), ValueError, *expected)
    refuses(lambda: st.AttentionSubLayer(D, num_heads), ValueError, *expected)
    refuses(lambda: st.TransformerBlock(D, num_heads, D_FF), ValueError, *expected)
    refuses(lambda: st.DecoderBlock(D, num_heads, D_FF), ValueError, *expected)
    params = params_of(st.MultiHeadAttention(D, HEADS))
    refuses(lambda: sn.multi_head_attention(np.ones((T, D)), params, num_heads), ValueError, *expected)


@pytest.mark.parametrize("num_heads", [0, -2, 2.0, True])
def test_numpy_heads_must_be_a_positive_whole_number(num_heads: Any) -> None:
    params = params_of(st.MultiHeadAttention(D, HEADS))
    call = partial(sn.multi_head_attention, np.ones((T, D)), params, num_heads)
    refuses(call, ValueError, "num_heads must be a whole number, at least 1", f"got {num_heads!r}")


@pytest.mark.parametrize("shape", [(D + 1,), (D, 3), ()], ids=str)
def test_feed_forward_needs_d_model_features(shape: tuple[int, ...], make) -> None:
    module = st.FeedForward(D, D_FF).double()
    f = module if not isinstance(make(1), np.ndarray) else partial(sn.feed_forward, params=params_of(module))
    expected = [f"the last axis of x must have d_model = {D} features", f"got shape {shape}", "Move the features last"]
    refuses(lambda: f(make(shape)), ValueError, *expected)
    refuses(lambda: f(make((3, D), "int32")), TypeError, "x " + NOT_FLOAT[0], "int32")


@pytest.mark.parametrize("build", ["sublayer", "block", "decoder"])
def test_placement_and_norm_must_be_known(build: str, make) -> None:
    call = {
        "sublayer": partial(st.AttentionSubLayer, D, HEADS),
        "block": partial(st.TransformerBlock, D, HEADS, D_FF),
        "decoder": partial(st.DecoderBlock, D, HEADS, D_FF),
    }[build]
    if isinstance(make(1), np.ndarray):
        params, x = params_of(call()), np.ones((T, D))
        call = {
            "sublayer": partial(sn.attention_sublayer, x, params, HEADS),
            "block": partial(sn.transformer_block, x, params, HEADS),
            "decoder": partial(sn.decoder_block, x, x, params, HEADS),
        }[build]
    fix = "Choose a name from the list"
    refuses(lambda: call(placement="middle"), ValueError, "placement must be one of 'pre', 'post'", "got 'middle'", fix)
    refuses(lambda: call(norm="batch"), ValueError, "norm must be one of 'layer', 'rms'", "got 'batch'", fix)


@pytest.mark.parametrize("p", [1.0, -0.1, 1.5, float("nan"), None, "0.1", False])
def test_dropout_must_be_a_share(p: Any) -> None:
    expected = ["dropout_p must lie in [0, 1)", f"got {p!r}, of type {type(p).__name__}", "0 turns dropout off"]
    refuses(lambda: st.AttentionSubLayer(D, HEADS, dropout_p=p), ValueError, *expected)
    refuses(lambda: st.TransformerBlock(D, HEADS, D_FF, dropout_p=p), ValueError, *expected)
    refuses(lambda: st.DecoderBlock(D, HEADS, D_FF, dropout_p=p), ValueError, *expected)


def without(params: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    return {key: value for key, value in params.items() if key != name}


def test_a_missing_parameter_is_named() -> None:
    x = np.ones((T, D))
    calls: list[tuple[torch.nn.Module, Callable[..., Any]]] = [
        (st.MultiHeadAttention(D, HEADS), lambda p: sn.multi_head_attention(x, p, HEADS)),
        (st.FeedForward(D, D_FF), lambda p: sn.feed_forward(x, p)),
        (st.AttentionSubLayer(D, HEADS), lambda p: sn.attention_sublayer(x, p, HEADS)),
        (st.TransformerBlock(D, HEADS, D_FF), lambda p: sn.transformer_block(x, p, HEADS)),
        (st.TransformerBlock(D, HEADS, D_FF, norm="rms"), lambda p: sn.transformer_block(x, p, HEADS, norm="rms")),
        (st.DecoderBlock(D, HEADS, D_FF), lambda p: sn.decoder_block(x, x, p, HEADS)),
        (st.DecoderBlock(D, HEADS, D_FF, norm="rms"), lambda p: sn.decoder_block(x, x, p, HEADS, norm="rms")),
    ]
    for module, call in calls:
        params = params_of(module)
        call(params)
        for name in params:
            short = name.removeprefix("self_attn.").removeprefix("multihead_attn.").removeprefix("feed_forward.")
            expected = ["params must hold", f"missing: {short}.", "the PyTorch module's state_dict"]
            refuses(partial(call, without(params, name)), ValueError, *expected)


@pytest.mark.parametrize("wrong", [np.ones(D - 1), np.ones((2, 2)), np.ones((1, D)), np.ones(())])
def test_a_misshapen_parameter_is_named(wrong: np.ndarray) -> None:
    x = np.ones((T, D))
    calls: list[tuple[torch.nn.Module, Callable[..., Any], str]] = [
        (st.MultiHeadAttention(D, HEADS), lambda p: sn.multi_head_attention(x, p, HEADS), "out_proj.weight"),
        (st.FeedForward(D, D_FF), lambda p: sn.feed_forward(x, p), "linear1.weight"),
    ]
    for module, call, measure in calls:
        params = params_of(module)
        for name in params:
            if name == measure:  # the others are held against this one, so only its axes are known
                if wrong.ndim != 2:
                    expected = [f"params['{name}'] must be a matrix", f"got shape {wrong.shape}"]
                    refuses(partial(call, params | {name: wrong}), ValueError, *expected)
                continue
            expected = [f"params['{name}'] must have shape {params[name].shape}", f"got shape {wrong.shape}"]
            refuses(partial(call, params | {name: wrong}), ValueError, *expected, "the PyTorch module's state_dict")


def test_an_output_projection_that_is_not_square_is_named_itself() -> None:
    params = params_of(st.MultiHeadAttention(D, HEADS)) | {"out_proj.weight": np.ones((D, D - 2))}
    expected = ["params['out_proj.weight'] must have shape", f"({D}, {D})", f"got shape ({D}, {D - 2})"]
    refuses(lambda: sn.multi_head_attention(np.ones((T, D)), params, HEADS), ValueError, *expected)


@pytest.mark.parametrize(
    ("q", "k", "v"),
    [
        ((D,), (D,), (D,)),
        ((T, D), (T, D - 1), (T, D)),
        ((T, D), (T, D), (T - 1, D)),
        ((2, T, D), (T, D), (T, D)),
        ((T, 0), (T, 0), (T, D)),
        ((T, D), (0, D), (0, D)),
    ],
)
def test_queries_keys_and_values_must_fit(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> None:
    expected = ["q, k and v must have shapes", f"got {q}, {k} and {v}", "Give each key one value"]
    refuses(lambda: sn.attention(np.ones(q), np.ones(k), np.ones(v)), ValueError, *expected)


@pytest.mark.parametrize("position", range(3))
def test_queries_keys_and_values_must_be_floating_point(position: int) -> None:
    arrays = [np.ones((T, D)) for _ in range(3)]
    arrays[position] = arrays[position].astype(int)
    refuses(lambda: sn.attention(*arrays), TypeError, f"{'qkv'[position]} {NOT_FLOAT[0]}", "int64")


def test_numpy_arrays_are_refused_by_the_torch_modules() -> None:
    x = np.ones((T, D))
    calls: list[Callable[[Any], Any]] = [
        st.layer_norm,
        st.rms_norm,
        st.batch_norm,
        st.LayerNorm(D),
        st.RMSNorm(D),
        st.MultiHeadAttention(D, HEADS),
        st.FeedForward(D, D_FF),
        lambda x: st.TransformerBlock(D, HEADS, D_FF)(x),
    ]
    for call in calls:
        refuses(partial(call, x), TypeError, "and x must be one", "got ndarray", "torch.from_numpy")
    refuses(lambda: st.layer_norm(torch.ones(T, D), np.ones(D)), TypeError, "and gamma must be one", "got ndarray")
    attention = st.MultiHeadAttention(D, HEADS)
    refuses(lambda: attention(torch.ones(T, D), np.ones((T, T), bool)), TypeError, "and mask must be one")
    refuses(lambda: attention(torch.ones(T, D), memory=np.ones((T, D))), TypeError, "and memory must be one")


def test_a_state_dict_serves_numpy_as_it_is() -> None:
    block, x = st.TransformerBlock(D, HEADS, D_FF).double(), np.ones((T, D))
    np.testing.assert_array_equal(
        sn.transformer_block(x, block.state_dict(), HEADS), sn.transformer_block(x, params_of(block), HEADS)
    )


@pytest.mark.parametrize("place", [sn.residual, sn.pre_ln, sn.post_ln])
def test_a_sublayer_must_return_one_array(place: Callable[..., Any]) -> None:
    norm = [] if place is sn.residual else [lambda h: h]
    for branch, got in ((lambda h: (h, None), "tuple"), (lambda h: None, "NoneType"), (lambda h: 1.0, "float")):
        expected = ["the sublayer's output must be one array", f"got {got}", "take the first"]
        refuses(partial(place, np.ones(D), branch, *norm), TypeError, *expected)
    refuses(partial(place, [1.0], lambda h: np.ones(1), *norm), TypeError, "x must be one array", "got list")


def test_a_norm_says_that_x_has_another_width() -> None:
    for module, x in ((sn.LayerNorm, np.ones(D + 1)), (sn.RMSNorm, np.ones(D + 1))):
        refuses(partial(module(D), x), ValueError, f"must have d_model = {D} features", f"got shape ({D + 1},)")
    for module, x in ((st.LayerNorm, torch.ones(D + 1)), (st.RMSNorm, torch.ones(D + 1))):
        refuses(partial(module(D), x), ValueError, f"must have d_model = {D} features", f"got shape ({D + 1},)")


def test_a_layer_norm_block_is_not_run_with_rms_norm() -> None:
    params = params_of(st.TransformerBlock(D, HEADS, D_FF))
    expected = ["must not hold norm1.bias", "RMSNorm has no shift", "Check which norm"]
    refuses(lambda: sn.transformer_block(np.ones((T, D)), params, HEADS, norm="rms"), ValueError, *expected)


def test_whole_numbers_of_numpy_are_sizes() -> None:
    assert st.LayerNorm(np.int64(D)).weight.shape == (D,)
    assert len(sn.LayerNorm(np.int64(D)).gamma) == D


def test_softmax_needs_floats_and_a_last_axis() -> None:
    refuses(lambda: sn.softmax(np.ones(3, int)), TypeError, "x " + NOT_FLOAT[0], "int64")
    refuses(lambda: sn.softmax(np.ones((3, 0))), ValueError, "d at least 1", "got shape (3, 0)")


# Inputs that look like arrays or tensors

ARRAY_FUNCTIONS = {
    "layer_norm": sn.layer_norm,
    "rms_norm": sn.rms_norm,
    "batch_norm": sn.batch_norm,
    "softmax": sn.softmax,
    "layer_norm_backward": lambda x: sn.layer_norm_backward(np.ones((2, 3)), x),
    "gamma": lambda x: sn.layer_norm(np.ones((2, 3)), x),
    "attention": lambda x: sn.attention(x, x, x),
    "blocked": blocked.layer_norm,
}


@pytest.mark.parametrize("name", ARRAY_FUNCTIONS)
def test_a_masked_array_is_refused(name: str) -> None:
    masked = np.ma.masked_array([[1.0, 2.0, 1e6]], [[False, False, True]])
    expected = ["must be a plain array; got a masked one", "would be counted", ".compressed()"]
    refuses(lambda: ARRAY_FUNCTIONS[name](masked), TypeError, *expected)


@pytest.mark.parametrize("name", ARRAY_FUNCTIONS)
@pytest.mark.parametrize(
    "value", [[[1.0, 2.0], [3.0]], torch.ones(2, 3, dtype=torch.bfloat16)], ids=["ragged", "bfloat16"]
)
def test_what_numpy_makes_no_array_of_is_refused(name: str, value: Any) -> None:
    expected = [
        "subnorm.numpy takes arrays",
        "numbers in lists of equal length",
        type(value).__name__,
        "x.float().numpy()",
    ]
    refuses(lambda: ARRAY_FUNCTIONS[name](value), TypeError, *expected)


TENSOR_FUNCTIONS = {
    "layer_norm": st.layer_norm,
    "rms_norm": st.rms_norm,
    "batch_norm": st.batch_norm,
    "LayerNorm": st.LayerNorm(3),
    "RMSNorm": st.RMSNorm(3),
    "attention": st.MultiHeadAttention(3, 1),
}


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
@pytest.mark.parametrize("name", TENSOR_FUNCTIONS)
def test_float8_is_refused(name: str, dtype: torch.dtype) -> None:
    call = partial(TENSOR_FUNCTIONS[name], torch.ones(2, 3).to(dtype))
    refuses(call, TypeError, "x " + NOT_FLOAT[0], str(dtype), "to float16, bfloat16, float32 or float64")


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
@pytest.mark.parametrize("name", TENSOR_FUNCTIONS)
def test_nested_and_sparse_tensors_are_refused(name: str) -> None:
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.strided)
    expected = ["x must be a dense tensor, or a nested one of layout torch.jagged"]
    refuses(partial(TENSOR_FUNCTIONS[name], nested), TypeError, *expected, "a nested one of layout torch.strided")
    sparse = torch.ones(2, 3).to_sparse()
    refuses(partial(TENSOR_FUNCTIONS[name], sparse), TypeError, *expected, "a sparse one of layout torch.sparse_coo")


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "LayerNorm", "RMSNorm"])
def test_a_jagged_tensor_is_normalised_row_by_row(name: str) -> None:
    parts = [torch.randn(2, 3), torch.randn(1, 3)]
    result = TENSOR_FUNCTIONS[name](torch.nested.nested_tensor(parts, layout=torch.jagged))
    for ours, part in zip(result.unbind(), parts, strict=True):
        torch.testing.assert_close(ours, TENSOR_FUNCTIONS[name](part))
