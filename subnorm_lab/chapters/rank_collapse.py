"""Figures and proofs of deep dive 05c, Rank collapse."""

from functools import cache

import matplotlib.pyplot as plt
import numpy as np

import subnorm.numpy as sn
from subnorm_lab import figures, live
from subnorm_lab.experiments import rank_collapse as rc
from subnorm_lab.report import interval, say, table

SEEDS = range(8)
TOKENS = [rc.draw_tokens(seed) for seed in SEEDS]  # each (T, d) = (16, 64)
DEEP = [rc.draw_layers(24, seed) for seed in SEEDS]
SHALLOW = [(layers[:6], heads) for layers, heads in DEEP]


def begin():
    figures.use_style()


def positions(states):
    """Each token in the plane in which the tokens differ most."""
    seen = []
    for x in states:
        u, s, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
        plane = u[:, :2] * s[:2] / np.sqrt(np.mean(np.sum(x**2, axis=1)))
        if seen:  # an axis has no direction of its own: turn to the last plane
            a, _, b = np.linalg.svd(plane.T @ seen[-1])
            plane = plane @ a @ b
        else:
            plane *= np.sign(plane[0])
        seen.append(plane)
    return np.round(seen, 3)  # (layers + 1, T, 2)


@cache
def spread_by_skip():
    """How much the tokens differ after each layer, {wiring: (seeds, layers + 1)}."""
    return {wiring: rc.residual_by_layer(TOKENS, SHALLOW, skip=wiring == "skip") for wiring in ("alone", "skip")}


WIRINGS = {
    "attention": {},
    "+ norm": {"norm": "post"},
    "+ FFN": {"feed_forward": True},
    "+ FFN + norm": {"feed_forward": True, "norm": "post"},
}
WIRINGS |= {
    f"skip{ffn}{norm}": {
        "skip": True,
        "feed_forward": bool(ffn),
        "norm": {"": "", " + Pre-LN": "pre", " + Post-LN": "post"}[norm],
    }
    for ffn in ("", " + FFN")
    for norm in ("", " + Pre-LN", " + Post-LN")
}
#: The wirings that open the page, by their titles there.
OPENING = {
    "attention alone": "attention",
    "with a skip path": "skip",
    "skip, Post-LN": "skip + Post-LN",
    "skip, Pre-LN": "skip + Pre-LN",
}


def distances(x):
    """From each token to each: 0 if they are equal, about 1 if they have nothing in common."""
    far = np.linalg.norm(x[:, None] - x, axis=-1)  # (T, T)
    return far / np.sqrt(2 * np.mean(np.sum(x**2, axis=-1)))


def draw_fading():
    passed = [rc.states(TOKENS[0], DEEP[0], **WIRINGS[wiring]) for wiring in OPENING.values()]

    def frame(layers):
        left = [rc.token_residual(found[layers]) for found in passed]
        alone, skip, post, pre = (f"{100 * r:.2g} %" if r > 0.001 else "under 0.1 %" for r in left)
        return (
            f"After {layers} of 24 layers these tokens differ by {alone} of their size with attention alone, {skip} "
            f"with a skip path, {post} with Post-LN and {pre} with Pre-LN.",
            [np.round(np.log10(np.maximum(distances(found[layers]), 1e-4)), 2) for found in passed],
        )

    names = ["1", *[""] * 14, "16"]
    shades = {-4: "≤ 10⁻⁴", -3: "0.001", -2: "0.01", -1: "0.1", 0: "1"}
    live.chart(
        "fading",
        "The distance between any two tokens, on a logarithmic scale; 1 if they have nothing in common",
        [live.slider("layers", "layers passed", (0, 1, 2, 4, 8, 16, 24), 2, play=True)],
        [live.Heat(name, live.Axis("token"), names, names, (-4, 0.1), height=270, bar=shades) for name in OPENING],
        frame,
        alt="Four maps of sixteen by sixteen squares after two layers. The map of attention alone is the palest: its "
        "tokens are the closest. The three with a skip path are dark off the diagonal, where a token meets itself.",
        side=4,
    )


def draw_collapse():
    drawn = {wiring: positions(rc.states(TOKENS[0], SHALLOW[0], skip=wiring == "skip")) for wiring in spread_by_skip()}

    def frame(layers, wiring):
        r, passed = spread_by_skip()[wiring][0, layers], np.arange(7)
        differ = f"by {live.number(r)} of their size" if r > 1e-15 else "only by rounding"
        kind = "a skip path" if wiring == "skip" else "attention alone"
        return (
            f"After {layers} of 6 layers with {kind}, these tokens differ {differ}.",
            [
                {"tokens": drawn[wiring][layers].T},
                {name: (passed, r) for name, r in spread_by_skip().items()} | {"now": ([layers], [r])},
            ],
        )

    live.chart(
        "collapse",
        "Left, sixteen tokens round their mean, in the two directions in which they differ most. Right, "
        "how much they differ: median and range of eight seeds",
        [
            live.slider("layers", "layers passed", range(7), 0, play=True),
            live.choice(
                "wiring",
                "skip path",
                {"without": "alone", "with": "skip"},
                "alone",
            ),
        ],
        [
            live.Lines(
                live.Axis("first direction", limits=(-1.1, 1.1)),
                live.Axis("second direction (sizes of a token)", limits=(-1.1, 1.1)),
                {"tokens": live.Curve("a token", marks="only")},
                equal=True,
            ),
            live.Lines(
                live.Axis("layers passed", limits=(0, 6)),
                live.Axis("r, down to rounding", log=True, limits=(3e-16, 3)),
                {
                    "alone": live.Curve("attention", figures.GREY, "--"),
                    "skip": live.Curve("with skip", figures.GREEN),
                    "now": live.Curve("shown left", marks="only"),
                },
            ),
        ],
        frame,
        alt="Left, a cloud of sixteen points before the first layer, nearly one unit wide in each direction. "
        "Right, the measure r by layer on a logarithmic axis. Of attention alone it falls from one, slowly "
        "in the first layer and then ever faster, to the floor of rounding at layer four. With a skip path "
        "it stays near one for all six layers. A dot marks layer zero.",
        side=2,
    )


def say_pair():
    x = np.array([2.0, 4.0, 6.0, 12.0])
    r = rc.token_residual(np.stack([x, x / 2]))
    np.testing.assert_allclose(r, np.sqrt(2 / 4**2) / np.sqrt(1 + 1 / 2**2))
    say("pair", r, ".3f")


def tabulate_collapse():
    alone = spread_by_skip()["alone"]
    table(
        ["layers passed", "r, lowest to highest of 8 seeds"],
        [[k, interval(alone[:, k], ".2g")] for k in range(4)] + [[4, "rounding error, below 10⁻¹⁴"]],
    )


def prove_alone_collapses():
    """Prove claim 05c-alone-collapses."""
    alone = spread_by_skip()["alone"]
    assert alone[:, 2].max() < 0.1
    assert alone[:, 3].max() < 1e-4
    assert alone[:, 4].max() < 1e-14

    first = [rc.states(t, s)[1] for t, s in zip(TOKENS, SHALLOW, strict=True)]
    sizes = np.mean(np.square(first), axis=(1, 2))  # (seeds,)
    assert sizes.max() < 0.25
    say("size_low", sizes.min(), ".2f")
    say("size_high", sizes.max(), ".2f")


def one_layer(shrink):
    """What one sublayer leaves of the differences, {sublayer: [seeds of (halvings,)]}."""
    found = {"attention": [], "attention, skip": [], "feed-forward": []}
    for seed in SEEDS:
        layer, heads = DEEP[seed][0][0], DEEP[seed][1]

        def attend(h, w=layer["attention"], heads=heads):
            return sn.multi_head_attention(h, w, heads)

        def feed(h, w=layer["feed_forward"]):
            return sn.feed_forward(h, w)

        found["attention"].append(shrink(seed, attend))
        found["attention, skip"].append(shrink(seed, lambda h: h + attend(h)))
        found["feed-forward"].append(shrink(seed, feed))
    return found


def powers(found, halvings):
    """The slope on two logarithmic axes, {sublayer: (seeds,)}."""
    return {name: np.polyfit(np.log(halvings), np.log(np.transpose(left)), 1)[0] for name, left in found.items()}


def prove_one_layer_cubes(shrink, halvings):
    """Prove claim 05c-one-layer-cubes."""
    power = powers(one_layer(shrink), halvings)
    assert np.abs(power["attention"] - 3).max() < 0.02
    assert np.abs(power["attention, skip"] - 1).max() < 0.02
    assert np.abs(power["feed-forward"] - 1).max() < 0.1


def draw_powers(shrink, halvings):
    found = one_layer(shrink)
    fig, ax = plt.subplots()
    looks = {
        "attention": {"color": figures.BLACK, "marker": "o"},
        "attention, skip": {**figures.LOOKS["residual"], "marker": "o", "markersize": 10, "markerfacecolor": "white"},
        "feed-forward": {"color": figures.BLUE, "linestyle": "-.", "marker": "^"},
    }
    for kind, left in found.items():
        ax.loglog(halvings, np.transpose(left), lw=0.7, alpha=0.5, **looks[kind])
    alone, kept = (np.mean(found[kind], axis=0) for kind in ("attention", "attention, skip"))
    figures.name(ax, "attention alone: slope 3", (halvings[2], alone[2]), figures.BLACK, (-6, 10))
    figures.name(ax, "with a skip path: slope 1", (halvings[2], kept[2]), figures.GREEN, (-4, 10))
    figures.name(ax, "feed-forward: slope 1", (halvings[3], kept[3]), figures.BLUE, (4, -12))
    cubes = np.allclose(powers(found, halvings)["attention"], 3, atol=0.1)
    figures.title(fig, "Untrained, attention alone cubes small differences", cubes)
    ax.set(xticks=(1e-3, 1e-2), yticks=10.0 ** np.arange(-10, 0, 3))
    ax.set(xlabel="differences that go in", ylabel="differences that come out")
    figures.show(
        fig,
        alt="Differences between tokens after one sublayer against those before it, both logarithmic, eight "
        "seeds. The lines "
        "of attention with a skip path and of the feed-forward lie on top of each other; those of "
        "attention alone lie far below them and are much steeper.",
    )
    table(
        ["one sublayer", "power, 8 seeds"],
        [[n, interval(p)] for n, p in powers(found, halvings).items()],
    )


@cache
def spreads():
    """How much the tokens differ after each layer, {wiring: (seeds, layers + 1)}."""
    return {
        name: rc.residual_by_layer(TOKENS, DEEP if wiring.get("skip") else SHALLOW, **wiring)
        for name, wiring in WIRINGS.items()
    }


def wiring_color(wiring):
    """That of the placement in the whole book, pink for the norms of a stack without a skip path."""
    if wiring.endswith("Pre-LN"):
        return figures.LOOKS["pre"]["color"]
    if wiring.endswith("Post-LN"):
        return figures.LOOKS["post"]["color"]
    if wiring.endswith("norm"):
        return figures.PINK
    return figures.LOOKS["residual" if "skip" in wiring else "plain"]["color"]


def draw_wirings():
    fig, axes = plt.subplots(1, 2, figsize=(7.2, 4.2))
    curves = {}
    for wiring, r in spreads().items():
        ax, color = axes[int(wiring.startswith("skip"))], wiring_color(wiring)
        layers, middle = np.arange(r.shape[1]), np.exp(np.log(r).mean(0))
        ax.fill_between(layers, r.min(0), r.max(0), color=color, alpha=0.12, linewidth=0)
        ax.semilogy(layers, middle, color=color, linestyle="--" if "FFN" in wiring else "-")
        if "FFN" not in wiring or color == figures.ORANGE:  # of two Post-LN curves the outer one
            curves[wiring.startswith("skip"), color] = layers, middle
    axes[0].set(title="r, without a skip path", xlabel="layers", yticks=10.0 ** np.arange(-15, 1, 5))
    axes[1].set(title="r, with a skip path", xlabel="layers", ylim=(1e-4, 2), xticks=(0, 8, 16, 24))
    names = {figures.GREY: "attention", figures.PINK: "with\nnorms", figures.BLUE: "Pre-LN"}
    names |= {figures.GREEN: "skip path\nalone", figures.ORANGE: "Post-LN"}
    for (skip, color), (layers, middle) in curves.items():
        figures.name_curve(axes[int(skip)], names[color], layers, middle, color)
    last = {wiring: r[:, -1] for wiring, r in spreads().items()}
    lasts = {wiring for wiring, r in last.items() if r.max() > 0.1}
    pre = {wiring for wiring in last if wiring_color(wiring) == figures.BLUE}
    figures.title(fig, "With random weights, only Pre-LN keeps tokens apart over 24 layers", lasts == pre)
    figures.name(axes[0], "dashed: with\na feed-forward", (0, 1e-13))
    figures.show(
        fig,
        alt="The token residual on a logarithmic axis, eight seeds with their range, for ten wirings. Left, "
        "without a skip "
        "path, all four curves fall off to the floor of rounding within four to six layers, whether there are norms or "
        "feed-forward sublayers or not. Right, with a skip path, over 24 layers: the two Pre-LN curves "
        "stay nearly level near "
        "the top; the other four fall in about straight lines, lowest of all Post-LN with feed-forward.",
    )


def prove_ffn_no_rescue():
    """Prove claims 05c-ffn-no-rescue, 05c-skip-rescues, 05c-norm-delays."""
    no_skip = [r for name, r in spreads().items() if "skip" not in name]
    skip = [r for name, r in spreads().items() if "skip" in name]
    assert (spreads()["+ FFN"][:, 3] < spread_by_skip()["alone"][:, 3]).all()
    assert max(r[:, 6].max() for r in no_skip) < 1e-13
    reached = {  # layers until r < 1e-4, for each seed
        name: np.argmax(spreads()[name] < 1e-4, axis=1) for name in ("attention", "+ norm", "+ FFN", "+ FFN + norm")
    }
    for plain, normed in (("attention", "+ norm"), ("+ FFN", "+ FFN + norm")):
        delay = reached[normed] - reached[plain]
        assert delay.min() >= 1
        assert delay.max() <= 2
    assert min((r[:, 1:] / r[:, :-1]).min() for r in skip) > 0.5
    assert min(r[:, 6].min() for r in skip) > 0.1


def last():
    """What is left after 24 layers with a skip path, {wiring: (seeds,)}."""
    return {name: r[:, 24] for name, r in spreads().items() if "skip" in name}


def tabulate_last():
    table(
        ["wiring", "r after 24 layers, 8 seeds"],
        [[n, interval(r, ".1g")] for n, r in last().items()],
    )


def prove_pre_keeps():
    """Prove claims 05c-pre-keeps, 05c-post-loses, 05c-ffn-with-pre, 05c-halves."""
    left = last()
    pre = [left["skip + Pre-LN"], left["skip + FFN + Pre-LN"]]
    assert np.min(pre) > 0.2
    assert (pre[1] > pre[0]).mean() >= 7 / 8
    assert np.median(pre[1]) > 1.3 * np.median(pre[0])

    falling = [name for name in left if "Pre-LN" not in name]
    assert max(left[name].max() for name in falling) < 0.01
    # layers in which r halves, from layer 12 to layer 24; predicted: 2
    halves = np.array([12 / np.log2(spreads()[n][:, 12] / left[n]) for n in falling])
    assert 1.5 < halves.min() < halves.max() < 3
    assert (np.abs(halves.mean(axis=1) - 2) < 0.4).all()
    say("halves_low", halves.min(), ".1f")
    say("halves_high", halves.max(), ".1f")


def prove_softmax_shift():
    """Prove claim 05c-softmax-shift."""
    x = np.array([2.0, 4.0, 6.0, 12.0])
    assert np.allclose(sn.softmax(x + 100), sn.softmax(x), rtol=1e-12, atol=0)


def prove_first_order(differs):
    """Prove claim 05c-first-order."""
    for seed in SEEDS:
        w = rc.draw_layers(1, seed, num_heads=1)[0][0]["attention"]
        wq, wk, wv = np.split(w["in_proj_weight"], 3)
        W = wq.T @ wk / np.sqrt(64)  # the package stores transposed matrices
        mean = TOKENS[seed].mean(axis=0)
        R = 0.001 * differs(TOKENS[seed])
        a, E = sn.softmax(mean @ W @ R.T), R @ W @ R.T  # (T,), (T, T)
        D = a * (E - (a * E).sum(axis=1, keepdims=True))
        formula = differs(D @ R @ wv.T @ w["out_proj.weight"].T)
        layer = differs(sn.multi_head_attention(mean + R, w, 1))
        assert np.linalg.norm(layer - formula) < 1e-4 * np.linalg.norm(layer)


@cache
def exact():
    """How much the tokens differ after each layer of attention, not limited by rounding, (seeds, layers + 1)."""
    return np.array([rc.exact_residuals(t, s) for t, s in zip(TOKENS, SHALLOW, strict=True)])


def tabulate_exact():
    table(
        ["layers", "r, seed 0"],
        [[k, f"{r:.0e}"] for k, r in enumerate(exact()[0])],
    )


def prove_exact_is_plain():
    """Prove claim 05c-exact-is-plain."""
    alone = spread_by_skip()["alone"]
    np.testing.assert_allclose(exact()[:, :3], alone[:, :3], rtol=1e-9)
    assert (exact()[:, 3] / alone[:, 3]).max() < 1.001
    assert (exact()[:, 3] / alone[:, 3]).min() > 0.999


def prove_doubly_exponential():
    """Prove claim 05c-doubly-exponential."""
    before, after = np.log(exact()[:, :-1]), np.log(exact()[:, 1:])
    small = before < np.log(0.1)
    slopes = np.array([np.polyfit(b[s], a[s], 1)[0] for b, a, s in zip(before, after, small, strict=True)])
    say("steps", small.sum(), ".0f")
    say("slope_low", slopes.min(), ".2f")
    say("slope_high", slopes.max(), ".2f")
    assert np.abs(slopes - 3).max() < 0.05


def draw_doubly_exponential():
    layers = np.arange(2, 7)
    fig, ax = plt.subplots()
    fallen = np.log(-np.log(exact()[:, 2:]))  # (seeds, layers)
    ax.plot(layers, fallen.T, color=figures.GREY, marker="o", lw=0.8, alpha=0.7)
    law = fallen[:, -1].mean() + 0.5 + np.log(3) * (layers - 6)
    ax.plot(layers, law, **figures.LOOKS["theory"])
    figures.name(ax, "the law: slope ln 3", (4, law[2]), shift=(-10, 8))
    figures.name(ax, "eight seeds", (4, fallen[:, 2].mean()), figures.GREY, (12, -8))
    slopes = np.diff(fallen, axis=1)
    approaches = (np.diff(slopes.mean(0)) < 0).all() and np.allclose(slopes[:, -1], np.log(3), rtol=0.02)
    figures.title(fig, "The slope approaches ln 3: r falls doubly exponentially", approaches)
    ax.set(xlabel="attention layers", ylabel="ln(−ln r)")
    ax.set(xticks=layers, yticks=(2, 4, 6))
    figures.show(
        fig,
        alt="The double logarithm of r against the number of attention layers, two to six, for eight seeds. "
        "All eight rise in "
        "almost straight lines, nearly parallel to a dotted guide of slope log three above them.",
    )


def prove_paths_sum(counts):
    """Prove claim 05c-paths-sum."""
    assert counts.tolist() == [1, 6, 12, 8]


def tabulate_paths(counts, by_length):
    table(
        ["heads on the path", "paths", "mean r, 8 seeds"],
        [[k, counts[k], interval(r)] for k, r in enumerate(by_length.T)],
    )


def prove_short_paths(by_length):
    """Prove claim 05c-short-paths."""
    assert (np.diff(by_length, axis=1) < 0).all()
    assert by_length[:, 0].min() > 0.9
    assert by_length[:, 3].max() < 0.3


def tabulate_gains(needed):
    table(
        ["factor on queries and keys", "layers until r < 1e-6, 8 seeds"],
        [[g, interval(n, "d")] for g, n in needed.items()],
    )


def prove_gain_postpones(needed):
    """Prove claim 05c-gain-postpones."""
    assert needed[1].max() < needed[2].min()
    assert needed[2].max() < needed[4].min()
    assert needed[8].min() > 0  # every seed got there


def check_causal_mask():
    causal = np.tril(np.ones((16, 16), dtype=bool))
    for seed in SEEDS:
        x, r = TOKENS[seed], []
        for layer in DEEP[seed][0]:
            x = sn.multi_head_attention(x, layer["attention"], 4, mask=causal)
            r.append(float(rc.token_residual(x)))
        assert r[7] > 0.003  # without a mask: 3 to 4 layers until 1e-6
        assert 1e-10 < r[23] < 1e-3


def check_orthogonal_tokens():
    for pair in ([[1.0, 0.0], [0.0, 1.0]], [[10.0, 0.0], [0.0, 1.0]]):
        np.testing.assert_allclose(rc.token_residual(pair), np.sqrt(1 / 2))
