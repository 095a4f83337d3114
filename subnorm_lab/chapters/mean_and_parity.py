"""Figures and proofs of deep dive 04a, The mean, and parity."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.ticker import MaxNLocator

import subnorm.numpy as sn
from subnorm_lab import figures, stories
from subnorm_lab.chapters import begin as begin
from subnorm_lab.experiments.equivalence import mean_share
from subnorm_lab.experiments.language_model import Characters, untrained
from subnorm_lab.experiments.parity import paired_interval, recorded, windows
from subnorm_lab.report import say, table
from subnorm_lab.stories import altered

NORMS = {"layer": "LayerNorm", "rms": "RMSNorm"}
SEEDS = range(8)
TASK = Characters()


def blank(norm, seed):
    """The untrained model of a pair."""
    weights = torch.Generator().manual_seed(seed)
    return untrained(TASK.vocabulary, TASK.length, "pre", weights, 2, norm=norm)


def draw_eight_pairs(losses):
    mean, half = paired_interval(losses["layer"], losses["rms"])
    difference = losses["rms"] - losses["layer"]
    both = np.concatenate(list(losses.values()))
    lowest, width = both.min(), np.ptp(both)
    fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.4))
    axes[0].plot([0, 1], [losses["layer"], losses["rms"]], color=figures.GREY, linewidth=1)
    for at, norm in enumerate(NORMS):
        colour = figures.LOOKS[norm]["color"]
        axes[0].plot([at] * len(SEEDS), losses[norm], "o", color=colour)
    axes[0].set(
        xticks=[0, 1],
        xticklabels=NORMS.values(),
        xlim=(-0.4, 1.4),
        ylim=(lowest - 0.05 * width, lowest + 1.05 * width),
        ylabel="held-out loss (nats)",
    )
    axes[1].axhline(0, color=figures.BLACK, linewidth=1)
    axes[1].plot(np.zeros(len(SEEDS)), difference, "o", color=figures.GREY, alpha=0.6)
    axes[1].errorbar(0.5, mean, half, fmt="s", color=figures.BLACK)
    axes[1].set(
        xticks=[0, 0.5],
        xticklabels=["pairs", "mean, interval"],
        xlim=(-0.3, 0.8),
        ylim=(-0.55 * width, 0.55 * width),
        ylabel="RMSNorm − LayerNorm (nats)",
    )
    for ax in axes:
        ax.yaxis.set_major_locator(MaxNLocator(3))
        ax.grid(axis="x", visible=False)
    less = np.abs(difference).max() < np.ptp(losses["layer"]) / 5
    figures.title(fig, "The norm changes the loss less than the seed does", less)
    figures.show(
        fig,
        alt="Left: held-out loss of eight pairs of models, LayerNorm and RMSNorm, joined by nearly level "
        "lines; the lines "
        "lie further apart than their ends. Right, at the same scale: the eight differences scatter "
        "closely round zero, and "
        "the interval of their mean lies near zero.",
    )


def prove_parity(losses):
    """Prove claims 04a-parity, 04a-pairs."""
    mean, half = paired_interval(losses["layer"], losses["rms"])
    difference = losses["rms"] - losses["layer"]
    spread = losses["layer"].std(ddof=1)
    assert abs(mean) + half < 0.02
    assert difference.std(ddof=1) < spread / 2
    say("lowest", 1000 * (mean - half), ".0f", noise=1e-3)
    say("highest", 1000 * (mean + half), ".0f", noise=1e-3)
    say("spread", 1000 * spread, ".0f", noise=1e-3)
    # n pairs reach to 1.96 s / sqrt(n) on either side. Where that is 0.001 nats,
    # a difference of 0.001 is found every second time; 0.84 more: in 8 of 10.
    s = difference.std(ddof=1)
    say("even_chance", (1.96 * s / 0.001) ** 2, ".0f", noise=1e-3)
    say("needed", ((1.96 + 0.84) * s / 0.001) ** 2, ".0f", noise=1e-3)


def tabulate_longer():
    rows = []
    for steps, pairs in recorded()["held_back_loss"].items():  # steps: (seeds, norms)
        centre, reach = paired_interval(*pairs.T)
        ends = 1000 * (centre - reach), 1000 * (centre + reach)
        rows.append([str(steps), f"{pairs.mean():.2f}", "{:.0f} to {:.0f}".format(*ends)])
    table(["steps", "loss", "RMSNorm − LayerNorm, 95 % interval (thousandths)"], rows)


def prove_longer(losses):
    """Prove claims 04a-longer, 04a-three-pairs."""
    record = recorded()["held_back_loss"]  # steps: (seeds, norms)
    intervals = {steps: paired_interval(*pairs.T) for steps, pairs in record.items()}
    assert all(abs(centre) < reach for centre, reach in intervals.values())
    assert intervals[800][1] > 3 * paired_interval(losses["layer"], losses["rms"])[1]

    first_three = np.diff(record[800][:3]).ravel()
    assert first_three.min() > 0.01
    say("three", 1000 * first_three.mean(), ".0f", noise=1e-3)

    now = np.stack([losses[norm] for norm in NORMS], axis=1)
    assert np.abs(record[130] - now).max() < 1e-3


def reading():
    """Held-back tokens, (64, 32)."""
    return windows(TASK.text.validation, TASK.length)[0][:64]


def tops(models):
    """At the top of the stream, untrained and trained: {norm: three rows of (seeds,)}.

    The rows are the mean square, its part due to the mean, and the share of the mean.
    """
    read = reading()

    @torch.no_grad()
    def top_of_stream(model):
        x = model.states(read)[-1].numpy()  # what the final norm reads
        return (x**2).mean(), (x.mean(-1) ** 2).mean(), mean_share(x).mean()

    before = {norm: [blank(norm, seed) for seed in SEEDS] for norm in NORMS}
    return [{norm: np.array([*map(top_of_stream, pairs[norm])]).T for norm in NORMS} for pairs in (before, models)]


def growth(before, after):
    """Median growth of the mean square, and of the part due to the mean."""
    return {norm: np.median(after[norm][:2] / before[norm][:2], axis=1) for norm in NORMS}


def draw_share_of_the_mean(models):
    before, after = tops(models)
    fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.4), sharey=True)
    for ax, (norm, name) in zip(axes, NORMS.items(), strict=True):
        colour = figures.LOOKS[norm]["color"]
        ends = [before[norm][2], after[norm][2]]
        ax.semilogy([0, 1], ends, "o-", color=colour, linewidth=1)
        ax.axhline(1 / 32, **figures.LOOKS["theory"])
        figures.name(ax, "1/d", (1.4, 1 / 32), shift=(0, 4))
        ax.minorticks_off()
        ax.set(
            yticks=[1 / n for n in (256, 128, 64, 32, 16, 8)],
            yticklabels=[f"1/{n}" for n in (256, 128, 64, 32, 16, 8)],
            ylim=(1 / 256, 1 / 8),
            title=name,
            xticks=[0, 1],
            xticklabels=["untrained", "trained"],
            xlim=(-0.3, 1.5),
        )
        ax.grid(axis="x", visible=False)
    axes[0].set_ylabel("share of the mean")
    layer, rms = (after[norm][2] for norm in ("layer", "rms"))
    scatters = layer.max() < 1 / 32 and rms.min() < 1 / 32 < rms.max()
    figures.title(fig, "Trained with LayerNorm, all shares are below 1/d; with RMSNorm they scatter", scatters)
    figures.show(
        fig,
        alt="Share of the energy that the mean carries at the top of the stream, before and after training, "
        "eight seeds, on "
        "a logarithmic axis. Both panels start round the dotted line one over d. With LayerNorm every line "
        "falls below it. "
        "With RMSNorm the lines end scattered round it.",
    )


def tabulate_growth(models):
    grown = growth(*tops(models))
    table(
        ["median growth over the seeds", "LayerNorm", "RMSNorm"],
        [
            [words, *(f"×{grown[norm][i]:.1f}" for norm in NORMS)]
            for i, words in enumerate(("mean square", "part of the mean"))
        ],
    )


def prove_share_falls(models):
    """Prove claims 04a-share-falls, 04a-share-stays, 04a-rest-grows."""
    before, after = tops(models)
    grown = growth(before, after)
    d = 32
    assert (after["layer"][2] < 0.6 / d).all()
    assert (after["layer"][2] < before["layer"][2]).all()
    assert (after["layer"][2] < after["rms"][2]).all()  # in every pair
    assert ((after["rms"][2] > 0.25 / d) & (after["rms"][2] < 4 / d)).all()
    assert 0.5 / d < after["rms"][2].mean() < 2 / d
    for norm in NORMS:
        assert (after[norm][0] > 3 * before[norm][0]).all()
    assert grown["layer"][1] < 4 < grown["rms"][1]
    assert grown["layer"][1] < 0.7 * grown["layer"][0]
    say("mean_grew", grown["layer"][1], ".1f", noise=1e-3)
    say("rest_grew", grown["layer"][0], ".1f", noise=1e-3)


def prove_no_gradient(parts):
    """Prove claim 04a-no-gradient."""
    parts = {norm: np.array(values) for norm, values in parts.items()}  # (seeds, writers) each
    assert parts["layer"].max() < 1e-12
    assert parts["rms"].min() > 1e-6
    assert np.median(parts["rms"]) > 0.05
    say("writers", parts["rms"].shape[1], ".0f")
    say("rms_part", np.median(parts["rms"]), ".2f", noise=1e-3)


def prove_swap(cost):
    """Prove claim 04a-swap."""
    assert np.abs(cost["centred"]).max() < 1e-9
    assert cost["as it is"].min() > 1e-3
    assert cost["as it is"].max() < 0.05
    say("cost_least", 1000 * cost["as it is"].min(), ".1f", noise=1e-3)
    say("cost_most", 1000 * cost["as it is"].max(), ".1f", noise=1e-3)


def prove_angle():
    """Prove claim 04a-angle."""
    x = np.random.default_rng(0).standard_normal((200, 64))
    x -= x.mean(axis=-1, keepdims=True)
    straight, turned = sn.rms_norm(x, eps=0), sn.rms_norm(x + 0.7, eps=0)
    angle = np.arccos((straight * turned).mean(-1))
    assert np.allclose(np.tan(angle), 0.7 / x.std(-1), rtol=1e-12, atol=0)
    by_hand = np.degrees(np.arctan(6 / np.sqrt(14)))
    say("angle_by_hand", by_hand, ".0f")


def tabulate_shifts(rise):
    table(
        ["shift c", "0.25", "0.5", "1.0"],
        [
            [f"{name}, {words}", *(f"{round(v, 3) + 0:.3f}" for v in row)]
            for norm, name in NORMS.items()
            for words, row in (
                ("least", rise[norm].min(0)),
                ("most", rise[norm].max(0)),
            )
        ],
    )


def prove_shift(rise):
    """Prove claim 04a-shift."""
    assert np.abs(rise["layer"]).max() < 1e-9
    assert (np.diff(rise["rms"], axis=1) > 0).all()
    assert rise["rms"][:, 1].min() > 0.005
    assert rise["rms"][:, 2].min() > 0.05


def independent(rng):
    return rng.standard_normal((1000, 512))


def unequal(rng):
    """One of the last features is 50 times as large as the others."""
    x = independent(rng)
    x[:, -1] *= 50
    return x


KS = 2 ** np.arange(3, 10)  # 8 ... 512


def partial_errors(partial_over_full):
    """The error of the estimate for equal features, (seeds, KS), the formula's, and the estimate with a large one."""
    ratio = [
        np.array([[partial_over_full(make(rng), k) for k in KS] for rng in map(np.random.default_rng, range(5))])
        for make in (independent, unequal)
    ]  # (seeds, KS, rows) each
    return ratio[0].std(-1), np.sqrt((1 / KS - 1 / 512) / 2), ratio[1]


def draw_partial_rmsnorm(partial_over_full):
    error, theory, spoilt = partial_errors(partial_over_full)
    fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.4))
    axes[0].plot(KS, theory, **figures.LOOKS["theory"])
    axes[0].plot(KS, error.mean(0), "o", color=figures.BLUE)
    axes[0].fill_between(KS, error.min(0), error.max(0), color=figures.BLUE, alpha=0.25)
    figures.name(axes[0], "measured,\nand the formula", (32, error.mean(0)[list(KS).index(32)]), figures.BLUE, (8, 8))
    axes[0].set(ylabel="std of partial / full", title="equal features", ylim=(-0.01, 0.27), yticks=(0, 0.1, 0.2))
    low, middle, high = np.quantile(spoilt, [0.05, 0.5, 0.95], axis=(0, 2))
    axes[1].plot(KS, middle, "o-", color=figures.ORANGE)
    axes[1].fill_between(KS, low, high, color=figures.ORANGE, alpha=0.25)
    axes[1].axhline(1, color=figures.BLACK, linewidth=1)
    figures.name(axes[1], "median", (32, middle[list(KS).index(32)]), figures.ORANGE, (0, 7))
    figures.name(axes[1], "5 to 95\N{NO-BREAK SPACE}%", (32, low[list(KS).index(32)]), figures.ORANGE, (0, 7))
    axes[1].set(ylabel="partial / full", title="one large feature", ylim=(0, 1.2), yticks=(0, 0.5, 1))
    for ax in axes:
        ax.set(xscale="log", xlabel="features looked at, k")
        ax.set_xticks(KS, KS)
        ax.minorticks_off()
    misses = np.allclose(middle[:-1], 0.55, atol=0.06)
    figures.title(fig, "With one large feature, the median is near 1/2 until k = d", misses)
    figures.show(
        fig,
        alt="Left: error of the estimate against the number of features looked at, falling along the dotted "
        "formula to zero "
        "at all 512. Right: partial over full when one feature is large. The median stays about one half and the "
        "band reaches from about one fifth to about one for every k but the last, where it jumps to one.",
    )


def prove_partial_error(partial_over_full):
    """Prove claims 04a-partial-error, 04a-partial-bad."""
    error, theory, spoilt = partial_errors(partial_over_full)
    assert np.allclose(error[:, :-1], theory[:-1], rtol=0.15, atol=0)
    assert error[:, -1].max() < 1e-12
    assert (np.median(spoilt[:, :-1], axis=-1) < 0.7).all()
    assert spoilt[:, :-1].std(-1).min() > 0.1
    say("partial_8", error[:, 0].mean(), ".2f", noise=1e-3)
    say("partial_bad", np.median(spoilt[:, -2]), ".1f", noise=1e-3)


def prove_partial_trained(partial_over_full, models):
    """Prove claim 04a-partial-trained."""

    def scatter(model):
        """Relative error of the estimate from 8 features, between tokens."""
        with torch.no_grad():
            x = model.states(reading())[-1].flatten(0, 1).numpy()  # (tokens, d)
        factor = partial_over_full(x, 8)
        return factor.std() / factor.mean()

    measured = np.array([scatter(m) for m in models["rms"]])
    equal = np.sqrt((1 / 8 - 1 / 32) / 2)
    assert (np.abs(measured / equal - 1) < 0.5).all()
    say("scatter_least", measured.min(), ".2f", noise=1e-3)
    say("scatter_most", measured.max(), ".2f", noise=1e-3)
    say("scatter_equal", equal, ".2f")


def streams():
    """The stream of the trained model for its texts, (texts, depths, T, d)."""
    model = stories.load()
    return np.array([stories.stream(model, t) for t in stories.texts()])


def draw_llama_share():
    share = 64 * mean_share(streams()).mean(axis=-1)  # in units of 1/d, (texts, depths)
    fig, ax = plt.subplots(figsize=(6.4, 3.2))
    depth = np.arange(11)
    colour = figures.LOOKS["rms"]["color"]
    ax.plot(depth, share.mean(axis=0), "o-", color=colour)
    ax.fill_between(depth, share.min(axis=0), share.max(axis=0), color=colour, alpha=0.25)
    ax.axhline(1, **figures.LOOKS["theory"])
    figures.name(ax, "1/d, as with independent features", (5, 1), shift=(0, 5))
    figures.name(ax, "mean of the texts", (5, share.min(axis=0)[5]), colour, (0, -4))
    ax.set(
        ylim=(0, 1.5),
        yticks=(0, 0.5, 1),
        xticks=range(0, 11, 2),
        xlabel="sublayers passed",
        ylabel="share of the mean, in 1/d",
    )
    stays = (share.mean(axis=0) < 1).all()
    figures.title(fig, "In the trained stream, the mean's share is below 1/d on average", stays)
    figures.show(
        fig,
        alt="Share of the energy that the mean carries in the trained stream, in units of one over d, after 0 "
        "to 10 sublayers. "
        "The line stays between two thirds and one at every depth; the band of the texts reaches from one "
        "half to a little above one.",
    )


def rise_on_texts(other):
    """The rise of the loss on each text when the trained model becomes another one."""
    model = stories.load()
    return stories.losses(other, stories.texts()) - stories.losses(model, stories.texts())


def prove_trained_share(models, cost, rise):
    """Prove claims 04a-trained-share, 04a-trained-swap, 04a-trained-shift."""
    model = stories.load()
    with torch.no_grad():
        toys = np.mean([m.embed(reading()).std(dim=-1).mean() for m in models["rms"]])
    share = 64 * mean_share(streams()).mean(axis=-1)
    assert 0.4 < share.min() < share.max() < 1.3

    swap = rise_on_texts(altered(model, norm=sn.layer_norm))
    assert swap.min() > 3 * cost["as it is"].max()
    say("llama_swap", swap.mean(), ".2f")
    say("llama_swap_least", swap.min(), ".2f")
    say("llama_swap_most", swap.max(), ".2f")
    c = streams()[:, 0].std(axis=-1).mean() / toys
    # The head is the embedding: its shift adds the same to all scores of a token.
    shifted = rise_on_texts(replace(model, embedding=model.embedding + c))
    assert shifted.min() > 3 * rise["rms"][:, 2].max()
    say("degrees", np.degrees(np.arctan(1 / toys)), ".0f", noise=1e-3)
    say("llama_c", c, ".1f", noise=1e-3)
    say("llama_shift", shifted.mean(), ".1f", noise=1e-3)
    say("llama_shift_least", shifted.min(), ".1f", noise=1e-3)
    say("llama_shift_most", shifted.max(), ".1f", noise=1e-3)
    say("toys_shift_most", rise["rms"][:, 2].max(), ".1f", noise=1e-3)
