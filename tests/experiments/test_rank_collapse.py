"""The effect of attention on the spread of tokens, against closed forms, the plain forward pass, and counting."""

import math

import numpy as np
import pytest

import subnorm.numpy as sn
from subnorm_lab.experiments.rank_collapse import (
    attention_paths,
    draw_layers,
    draw_tokens,
    exact_residuals,
    one_layer_exactly,
    residual_by_layer,
    states,
    token_residual,
)

STACK = draw_layers(2, seed=0, d_model=8, num_heads=2)
X = draw_tokens(0, length=5, d_model=8)


def test_the_residual_is_0_for_equal_tokens_and_1_for_tokens_that_cancel() -> None:
    token = np.array([2.0, 4.0, 6.0, 12.0])
    assert token_residual(np.stack([token, token])) == 0
    assert token_residual(np.stack([token, -token])) == 1
    assert token_residual(np.stack([3 * token, token])) == pytest.approx(1 / math.sqrt(5))  # spread ±1, mean 2


def test_the_residual_of_a_batch_is_that_of_each_sequence_and_knows_no_scale() -> None:
    batch = np.stack([X, -7 * X, X[::-1]])
    np.testing.assert_allclose(token_residual(batch), np.full(3, token_residual(X)), rtol=1e-12)


def test_layers_have_the_variances_they_promise() -> None:
    (layer,), heads = draw_layers(1, seed=3, d_model=64, num_heads=8, qk_gain=2.0)
    assert heads == 8
    q, k, v = np.split(layer["attention"]["in_proj_weight"], 3)
    squares = [np.mean(w**2) * 64 for w in (q, k, v, layer["attention"]["out_proj.weight"])]
    np.testing.assert_allclose(squares, [4, 4, 1, 1], rtol=0.1)
    fed = layer["feed_forward"]
    assert fed["linear1.weight"].shape == (256, 64)
    assert np.mean(fed["linear1.weight"] ** 2) * 64 == pytest.approx(2, rel=0.05)
    assert np.mean(fed["linear2.weight"] ** 2) * 256 == pytest.approx(1, rel=0.05)


def test_a_stack_needs_a_depth_and_heads_that_fit() -> None:
    with pytest.raises(ValueError, match="num_layers"):
        draw_layers(0, seed=0)
    with pytest.raises(ValueError, match="num_heads"):
        draw_layers(1, seed=0, d_model=8, num_heads=3)


def test_each_wiring_is_its_formula() -> None:
    def attention(h: np.ndarray) -> np.ndarray:
        return sn.multi_head_attention(h, STACK[0][0]["attention"], 2)

    def feed_forward(h: np.ndarray) -> np.ndarray:
        return sn.feed_forward(h, STACK[0][0]["feed_forward"])

    def norm(h: np.ndarray) -> np.ndarray:
        return sn.layer_norm(h)

    one = ([STACK[0][0]], 2)
    pre = sn.pre_ln(X, attention, norm)
    post = sn.post_ln(X, attention, norm)
    for wiring, expected in (
        ({}, attention(X)),
        ({"skip": True}, X + attention(X)),
        ({"feed_forward": True}, feed_forward(attention(X))),
        ({"norm": "pre"}, attention(norm(X))),
        ({"norm": "post"}, norm(attention(X))),
        ({"skip": True, "norm": "pre"}, pre),
        ({"skip": True, "norm": "post", "feed_forward": True}, sn.post_ln(post, feed_forward, norm)),
    ):
        first, last = states(X, one, **wiring)  # type: ignore[arg-type]
        np.testing.assert_array_equal(first, X)
        np.testing.assert_allclose(last, expected, rtol=1e-12)


def test_an_unknown_norm_is_refused() -> None:
    with pytest.raises(ValueError, match=r'norm must be "", "pre" or "post"; got \'both\''):
        states(X, STACK, norm="both")


def test_residuals_by_layer_are_those_of_the_states_and_stop_at_the_floor() -> None:
    deep = draw_layers(8, seed=1, d_model=8, num_heads=2)
    r = residual_by_layer([X, X], [deep, deep])
    assert r.shape == (2, 9)
    assert r[0, 0] == token_residual(X)
    assert r[0, 1] == pytest.approx(float(token_residual(states(X, deep)[1])))
    assert (r[:, -1] == 1e-15).all()


@pytest.mark.parametrize("gain", [1.0, 6.0])  # small scores, and large ones
def test_the_exact_layer_is_the_plain_one(gain: float) -> None:
    (layer,), heads = draw_layers(1, seed=2, d_model=8, num_heads=2, qk_gain=gain)
    middle = X.mean(axis=0, keepdims=True)
    mean, spread = one_layer_exactly(middle, X - middle, layer, heads)
    np.testing.assert_allclose(spread.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(mean + spread, sn.multi_head_attention(X, layer["attention"], heads), atol=1e-12)


def test_a_tenth_of_the_spread_becomes_a_thousandth_far_below_rounding() -> None:
    (layer,), heads = STACK[0][:1], 2
    middle = X.mean(axis=0, keepdims=True)
    before, after = (
        np.linalg.norm(one_layer_exactly(middle, size * (X - middle), layer, heads)[1]) for size in (1e-20, 1e-21)
    )
    assert before > 0
    assert after / before == pytest.approx(1e-3, rel=1e-9)


def test_exact_residuals_are_the_plain_ones_and_go_on_below_their_floor() -> None:
    stack = draw_layers(7, seed=0)
    x = draw_tokens(0)
    r = exact_residuals(x, stack)
    np.testing.assert_allclose(r[:4], token_residual(np.stack(states(x, stack)))[:4], rtol=1e-9)
    assert 0 < r[6] < 1e-150  # its square is below every float
    np.testing.assert_allclose(np.log(r[6] / r[5]) / np.log(r[5] / r[4]), 3, atol=0.1)


@pytest.mark.parametrize("skip", [False, True])
def test_all_paths_together_are_the_network(skip: bool) -> None:
    lengths, terms = attention_paths(X, STACK, skip)
    np.testing.assert_allclose(terms.sum(axis=0), states(X, STACK, skip=skip)[-1], rtol=1e-12, atol=1e-12)
    counts = [1, 4, 4] if skip else [0, 0, 4]
    assert np.bincount(lengths).tolist() == counts


def test_the_path_past_every_head_is_the_input() -> None:
    lengths, terms = attention_paths(X, STACK, skip=True)
    np.testing.assert_array_equal(terms[lengths == 0][0], X)
