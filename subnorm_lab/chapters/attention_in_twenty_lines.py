"""Figures and proofs of deep dive 01a, Attention in twenty lines."""

import itertools
from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np

import subnorm.numpy as sn
from subnorm_lab import figures, live
from subnorm_lab.report import say, table


def begin():
    figures.use_style()


def draw_one_token_looks_around():
    values = (2, 4, 6, 12)

    def frame(times):
        weights = [Fraction(part, 4 + times) for part in (1, 1, 2, times)]
        terms = " + ".join(f"{weight} · {value}" for weight, value in zip(weights, values, strict=True))
        new = float(sum(weight * value for weight, value in zip(weights, values, strict=True)))
        rows = [(f"of {v}", f"{w}", float(w), False) for v, w in zip(values, weights, strict=True)]
        return f"The new number is {terms} = {new:.2f}.", [rows]

    live.chart(
        "weights",
        "One token looks at the numbers of all four, itself included, and takes their weighted mean",
        [live.slider("times", "weight of 12 over that of 2", (0, 1, 2, 4, 8, 16), 4)],
        [live.Bars("weight", len(values))],
        frame,
        alt="Four bars for the numbers 2, 4, 6 and 12, with the weights one eighth, one eighth, one quarter and one "
        "half. The new number, their weighted mean, is 8.25.",
    )


def tabulate_weights(values, scores, weights):
    table(
        ["", "1", "2", "3", "4"],
        [
            ["value", *(f"{v:.0f}" for v in values)],
            ["score", *(f"{s:.3f}" for s in scores)],
            ["weight", *(f"{w:.3f}" for w in weights)],
        ],
    )


def check_weights(weights, values):
    say("by_hand", weights @ values, ".2f")
    np.testing.assert_allclose(weights @ values, 66 / 8)


def prove_rows_sum_to_one(softmax):
    """Prove claims 01a-rows-sum-to-one, 01a-only-differences."""
    rng = np.random.default_rng(0)
    scores = rng.normal(scale=10, size=(1000, 30))
    rows = softmax(scores)
    assert rows.min() > 0
    assert np.abs(rows.sum(axis=-1) - 1).max() < 1e-12
    higher = softmax(scores + 100)
    assert np.abs(higher - rows).max() < 1e-12


HEADS = 4


def prove_twenty_lines(lines, multi_head, x, w_in, w_out, causal):
    """Prove claim 01a-twenty-lines."""
    assert lines <= 20
    d = x.shape[-1]
    params = {
        "in_proj_weight": w_in,
        "in_proj_bias": np.zeros(3 * d),
        "out_proj.weight": w_out,
        "out_proj.bias": np.zeros(d),
    }
    for mask in (None, causal):
        ours = multi_head(x, w_in, w_out, HEADS, mask)
        expected = sn.multi_head_attention(x, params, HEADS, mask)
        np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12)


def draw_weights(attention, x, w_in, causal):
    T, d = x.shape[1:]
    q, k, _v = (part[0, :, : d // HEADS] for part in np.split(x @ w_in.T, 3, axis=-1))  # of the first head
    fig, axes = plt.subplots(1, 2, figsize=(6.4, 3.2), sharey=True)
    for ax, title, mask in zip(
        axes,
        ("no mask", "causal mask"),
        (np.ones_like(causal), causal),
        strict=True,
    ):
        w = attention(q, k, np.eye(T), mask)  # (T, T): values that give the weights themselves
        seen = np.where(mask, w, np.nan)  # what is masked stays white
        ax.imshow(seen, cmap="Blues", vmin=0, vmax=1)
        for (i, j), weight in np.ndenumerate(w):
            if mask[i, j]:
                colour = "white" if weight > 0.5 else figures.BLACK
                ax.text(
                    j,
                    i,
                    f"{weight:.1f}",
                    ha="center",
                    va="center",
                    color=colour,
                    fontsize=11,
                )
        ax.set(title=title, xticks=range(T), yticks=range(T))
        ax.spines["bottom"].set_visible(False)
        ax.grid(visible=False)
    axes[0].set_ylabel("weights of attention: a row looks at each column")
    later = np.triu(np.ones((T, T), dtype=bool), 1)
    figures.title(fig, "The causal mask lets no token look at a later one", not causal[later].any())
    figures.show(
        fig,
        alt="Two squares of six by six weights. Without a mask every cell holds a weight. With the causal mask "
        "only the "
        "lower triangle does, the rest is empty, and the first row has a single cell with weight one.",
    )


def draws(d):
    """Five generators, each with two sequences of six tokens of d features, (B, T, d)."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        yield rng, rng.normal(size=(2, 6, d))


def prove_no_order(multi_head, w_in, w_out):
    """Prove claim 01a-no-order."""
    for rng, x in draws(len(w_out)):
        order = rng.permutation(x.shape[1])
        shuffled_first = multi_head(x[:, order], w_in, w_out, HEADS)
        shuffled_last = multi_head(x, w_in, w_out, HEADS)[:, order]
        assert np.abs(shuffled_first - shuffled_last).max() < 1e-12


def prove_mask_hides(multi_head, w_in, w_out, causal):
    """Prove claim 01a-mask-hides."""
    for rng, x in draws(len(w_out)):
        changed = x.copy()
        changed[:, -1] = 1e3 * rng.normal(size=x[:, -1].shape)
        before = multi_head(x, w_in, w_out, HEADS, causal)
        after = multi_head(changed, w_in, w_out, HEADS, causal)
        np.testing.assert_array_equal(before[:, :-1], after[:, :-1])
        assert np.abs(before[:, -1] - after[:, -1]).max() > 1


def prove_in_the_hull(inside, narrower):
    """Prove claim 01a-in-the-hull."""
    assert all(inside)
    assert all(narrower)


def prove_heads_are_free(multi_head, x, w_in, w_out):
    """Prove claim 01a-heads-are-free."""
    results = [multi_head(x, w_in, w_out, heads) for heads in (1, 2, 4, 8, 16)]
    assert w_in.size + w_out.size == 4 * x.shape[-1] ** 2
    for one, other in itertools.pairwise(results):
        assert one.shape == other.shape == x.shape
        assert np.abs(one - other).max() > 0.1


def check_quick_checks(softmax, attention):
    check_one = softmax(np.log([1.0, 3.0])) @ np.array([2.0, 6.0])
    np.testing.assert_allclose(check_one, 5)
    q, k, v = np.random.default_rng(0).normal(size=(3, 6, 16))  # (T, d) each
    np.testing.assert_allclose(attention(q, k, v, np.tri(6, dtype=bool))[0], v[0])
