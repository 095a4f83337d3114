"""Figures and proofs of deep dive 06c, Heads that pool: from a sequence to one number."""

import math
from functools import cache, partial

import matplotlib.pyplot as plt
import numpy as np
import torch

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm_lab import chapters, figures
from subnorm_lab.experiments import fleets, pooling
from subnorm_lab.experiments.fleets import CYCLES, FLEETS, NOISE, machines
from subnorm_lab.experiments.parity import paired_interval
from subnorm_lab.report import claimed_table, interval, say, table

LOOKS = {
    "mean": {"color": figures.BLUE, "marker": "o"},
    "last": {"color": figures.ORANGE, "marker": "s"},
    "attention": {"color": figures.GREEN, "marker": "^"},
}


SEEDS, T = fleets.SEEDS, fleets.LENGTH
HEADS = {"mean": "mean", "last": "last step", "attention": "attention"}


def begin():
    chapters.begin()
    return SEEDS, T, HEADS


def tabulate_pooled(by_hand):
    table(["head", "z"], [[k, f"{z.item():.0f}"] for k, z in by_hand.items()])


def prove_zero_query(attention, h):
    """Prove claim 06c-zero-query."""
    torch.testing.assert_close(attention(h), h.mean(0), rtol=1e-12, atol=0)
    wide = torch.randn(5, 30, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)  # (B, T, d)
    untrained = pooling.AttentionPool(16).double()
    gap = untrained(wide) - wide.mean(1)
    assert gap.abs().max() < 1e-12


@cache
def larger_model():
    """Its pooling head, the shapes in it, and the pooled vectors."""
    block = st.TransformerBlock(d_model=256, num_heads=8, d_ff=1024)
    final_norm = st.LayerNorm(256)
    pool = pooling.AttentionPool(256)

    shapes = {}
    x = torch.ones(2, 30, 3)
    shapes["x, the windows: (B, T, sensors)"] = x.shape
    embedded = torch.nn.Linear(3, 256)(x)
    shapes["embedded: (B, T, d)"] = embedded.shape
    stream = block(embedded)
    shapes["after the block"] = stream.shape
    steps_out = final_norm(stream)
    shapes["after the final norm"] = steps_out.shape
    shapes["pooling weights: (B, T)"] = pool.weights(steps_out).shape
    z = pool(steps_out)
    shapes["pooled: (B, d)"] = z.shape
    shapes["the answer: (B, 1)"] = torch.nn.Linear(256, 1)(z).shape
    return pool, shapes, z


def tabulate_shapes():
    _, shapes, _ = larger_model()
    table(["", "shape"], [[k, tuple(s)] for k, s in shapes.items()])


def prove_shapes():
    """Prove claim 06c-shapes."""
    pool, _, z = larger_model()
    assert z.shape == (2, 256)
    assert pool.query.numel() == 256


def norm(h):
    return sn.layer_norm(h, eps=0)


def cosine(a, b):
    return (a * b).sum() / math.sqrt((a * a).sum() * (b * b).sum())


def share(h, query):  # the weight of step 7 in attention pooling
    return np.exp(h[7] @ query) / np.exp(h @ query).sum()


def prove_norm_first():
    """Prove claim 06c-norm-first."""
    rng = np.random.default_rng(0)
    closeness = {"norm, then mean": [], "mean, then norm": []}  # to the loud step
    for _ in SEEDS:
        usual = rng.standard_normal((T, 256))
        loud = usual.copy()
        loud[7] *= 10
        query = usual[7] / 256  # it fits step 7: a score of about 1
        np.testing.assert_allclose(norm(loud), norm(usual), atol=1e-12)
        np.testing.assert_allclose(norm(loud)[-1], norm(loud[-1]), atol=1e-12)
        assert share(usual, query) < 0.2 < 0.9 < share(loud, query)
        closeness["norm, then mean"].append(cosine(norm(loud).mean(0), norm(loud[7])))
        closeness["mean, then norm"].append(cosine(norm(loud.mean(0)), norm(loud[7])))
    assert max(closeness["norm, then mean"]) < 0.4
    assert min(closeness["mean, then norm"]) > 0.8


@cache
def judged_machines(fleet):
    return fleets.judged_machines(fleet)


def draw_three_fleets():
    fig, axes = plt.subplots(1, 3, figsize=(7.4, 2.9), sharey=True)
    single = []
    for ax, fleet in zip(axes, FLEETS, strict=True):
        x, y = (part[2] for part in judged_machines(fleet))
        ax.plot(np.arange(1, T + 1), x[:, 0], color=figures.GREY, marker=".", lw=0.8)
        ax.axhline(-y, **figures.LOOKS["theory"])
        at = {"last": T - 1, "flagged": int(x[:, 1].argmax())}.get(fleet)
        if at is not None:
            ax.plot(at + 1, x[at, 0], "o", ms=11, mfc="none", mec=figures.ORANGE, mew=2)
            single.append(abs(x[at, 0] + y) < 0.1)
        ax.set(title=fleet, xlabel="step", xticks=(1, 10, 20, 30), yticks=(-2, 0, 2, 4), ylim=(-2.5, 4.5))
        ax.set_xlim(0, T + 1)
    figures.name_ends(axes[-1], [("the wear", (T + 1, -y), figures.BLACK)])
    axes[0].set_ylabel("reading (scaled)")
    figures.title(fig, "In two fleets, one reading alone tells the wear", single == [True, True])
    figures.show(
        fig,
        alt="Three windows of 30 noisy readings, each with a dotted line at the machine's wear. In the first "
        "the readings "
        "scatter around the line. In the second and third they scatter anywhere, and one reading, in a "
        "ring, lies on the "
        "line: the last one in the second window, one further left in the third.",
    )


def best_linear(steps):
    """From the mean of some noisy readings, shrunk toward the mean life."""
    noise, spread = 100 * NOISE / math.sqrt(steps), CYCLES
    return noise * spread / math.hypot(noise, spread)


@cache
def lines():
    """The errors of linear regression, (seeds, fleets)."""

    def fit_line(fleet, seed):
        many = machines(fleet, 2000, torch.Generator().manual_seed(200 + seed))
        return CYCLES * pooling.linear_error(many, judged_machines(fleet))

    return np.array([[fit_line(f, seed) for f in FLEETS] for seed in SEEDS])


def know_nothing(fleet):
    return CYCLES * float(judged_machines(fleet)[1].square().mean().sqrt())


def baseline():
    """The errors of both baselines, one for each fleet."""
    return {"know nothing": [*map(know_nothing, FLEETS)], "linear regression": lines().mean(0)}


def tabulate_baselines():
    table(
        ["error in cycles (RMSE)", *FLEETS],
        [[k, *(f"{v:.0f}" for v in row)] for k, row in baseline().items()],
    )


def prove_linear_first():
    """Prove claim 06c-linear-first."""
    spread, last, flagged = lines().T
    assert np.abs(spread / best_linear(T) - 1).max() < 0.1
    assert last.max() < 1e-6
    assert flagged.min() > 0.95 * know_nothing("flagged")
    say("line_spread", spread.mean(), ".0f")
    say("floor_30", best_linear(T), ".0f")
    say("floor_1", best_linear(1), ".0f")
    say("nothing", know_nothing("flagged"), ".0f")


def draw_errors(errors):
    fig, axes = plt.subplots(3, 1, figsize=(6.4, 4.6), sharex=True)
    for k, (ax, fleet) in enumerate(zip(axes, FLEETS, strict=True)):
        for place, head in enumerate(HEADS):
            shift = place + np.linspace(-0.2, 0.2, len(SEEDS))
            ax.plot(errors[fleet, head], shift, linestyle="", **LOOKS[head])
        ax.axvline(know_nothing(fleet), **figures.LOOKS["theory"])
        ax.axvline(lines().mean(0)[k], color=figures.GREY, ls="--", lw=1.2)
        ax.set(title=fleet, xlim=(-1, 34), xticks=(0, 10, 20, 30))
        figures.rows(ax, list(HEADS.values()), [max(errors[fleet, head]) for head in HEADS])
    figures.name(axes[0], "linear regression", (lines().mean(0)[0], 2), figures.GREY, (12, 0))
    figures.name(axes[0], "knowing\nnothing", (know_nothing(FLEETS[0]), 0.7), shift=(4, 0))
    axes[-1].set_xlabel("error in cycles (RMSE)")
    good = [head for head in HEADS if all(errors[f, head].max() < know_nothing(f) / 2 for f in FLEETS)]
    figures.title(fig, "Only attention halves the error of knowing nothing in each fleet", good == ["attention"])
    figures.show(
        fig,
        alt="Test error in cycles after 150 steps for three fleets, one below the other, and three heads, five marks "
        "each. Spread: mean and attention are on the dashes of linear regression, far to the left of the last step, "
        "which is near the dotted line of knowing nothing. Last: mean is at the dotted line, last step and attention "
        "are near zero. Flagged: mean and last step are at the dotted line, attention is near zero.",
    )


def tabulate_errors(errors):
    claimed_table(
        ["head, 150 steps", *FLEETS],
        [
            [
                words,
                *(interval(errors[f, head], ".0f") for f in FLEETS),
                f"<!-- claim: 06c-row-{head} -->",
            ]
            for head, words in HEADS.items()
        ],
    )


def least_of_nothing():
    """What it costs to know nothing on the fleet where it costs least."""
    return min(map(know_nothing, FLEETS))


def prove_spread(errors):
    """Prove claims 06c-spread, 06c-last, 06c-last-rate, 06c-flagged, 06c-tie, 06c-line-keeps-up, 06c-row-mean,
    06c-row-last, 06c-row-attention.
    """
    margin, nothing = 5, least_of_nothing()  # cycles
    for head in ("mean", "attention"):
        assert (errors["spread", head] < errors["spread", "last"] - margin).all()
    assert (errors["last", "last"] < errors["last", "mean"] - margin).all()
    for head in ("mean", "last"):
        best = errors["flagged", "attention"]
        assert (best < errors["flagged", head] - margin).all()
    tie, half = paired_interval(errors["spread", "mean"], errors["spread", "attention"])
    assert abs(tie) + half < 1
    for head, readings in (("mean", T), ("attention", T), ("last", 1)):
        assert np.abs(errors["spread", head] / best_linear(readings) - 1).max() < 0.1
    for head in ("last", "attention"):
        assert errors["last", head].max() < 3
    hasty = [pooling.train(partial(machines, "last"), "attention", seed, False, lr=0.1) for seed in SEEDS[:3]]
    assert min(fleets.judge(model, "last") for model, _ in hasty) > 0.9 * nothing
    best_network = min(errors["spread", head].min() for head in HEADS)
    assert lines()[:, 0].max() < 1.1 * best_network
    assert lines()[:, 1].max() < min(errors["last", head].min() for head in HEADS)
    for lost in (("last", "mean"), ("flagged", "mean"), ("flagged", "last")):
        assert errors[lost].min() > 0.9 * nothing
    say("last_on_spread", errors["spread", "last"].mean(), ".0f", noise=1e-4)


@cache
def recorded():
    """The numbers of steps on record, and the errors, (seeds, steps), for each fleet and head."""
    record = fleets.recorded()
    return record["steps"], record["errors"]


def tabulate_longer_training():
    budgets, later = recorded()
    table(
        ["fleet, head", *(f"{steps} steps" for steps in budgets)],
        [
            [
                f"{fleet}, {HEADS[head]}",
                *(interval(found, ".1f") for found in later[fleet][head].T),
            ]
            for fleet in FLEETS
            for head in HEADS
        ],
    )


def prove_mean_waits():
    """Prove claims 06c-mean-waits, 06c-last-is-blind, 06c-between."""
    (_, later), nothing = recorded(), least_of_nothing()
    for fleet in ("last", "flagged"):
        slow = later[fleet]["mean"]
        assert slow[:, 0].min() > 0.9 * nothing
        assert slow[:, -1].max() < 1.5
        for head in ("mean", "attention"):
            assert later[fleet][head][:, -1].max() < 1.5
    assert np.ptp(later["flagged"]["mean"][:, 1]) > 10
    assert later["flagged"]["last"].min() > 0.9 * nothing
    assert np.ptp(later["spread"]["last"]) < 1


def prove_mean_waits_again(patient):
    """Prove claim 06c-mean-waits."""
    budgets, later = recorded()
    kept = later["flagged"]["mean"][0, budgets.index(2000)]
    assert abs(fleets.judge(patient, "flagged") - kept) < 0.5


def prove_quiet_votes(votes, marked):
    """Prove claim 06c-quiet-votes."""
    assert votes[marked].std() > 25
    assert votes[~marked].std() < 0.5


@torch.no_grad()
def pool_weights(models, fleet, seed):
    """The weights of a trained attention pool on the test machines, (n, T)."""
    model = models[fleet, "attention"][seed]
    return model.pool.weights(model.encode(judged_machines(fleet)[0]))


def draw_pool_weights(models):
    fig, axes = plt.subplots(1, 3, figsize=(7.4, 3.5), sharey=True)
    right = []
    for ax, fleet in zip(axes, FLEETS, strict=True):
        weights = pool_weights(models, fleet, 0)[:6]
        foot = np.arange(6)[:, None] + 0.4  # of the sticks, for each machine
        tops = foot - weights.numpy()
        ax.vlines(np.tile(range(T), 6), tops.ravel(), np.repeat(foot, T), color=figures.BLUE, linewidth=2)
        ax.hlines(foot, -0.5, T - 0.5, color=figures.PALE, linewidth=0.8)
        if fleet != "spread":
            flags = judged_machines(fleet)[0][:6, :, 1].argmax(1)
            at = flags if fleet == "flagged" else np.full(6, T - 1)
            ax.plot(at, tops[range(6), at], "o", ms=9, mfc="none", mec=figures.ORANGE, mew=1.5, clip_on=False)
            right.append((weights.argmax(1) == at).all())
        ax.set(
            title=fleet,
            xlabel="step",
            xticks=(0, 9, 19, 29),
            xticklabels=(1, 10, 20, 30),
        )
        figures.rows(ax, range(1, 7))
    axes[0].set_ylabel("a row for each of six machines; a stick as high as its row is a weight of 1")
    figures.title(fig, "Where one reading tells the wear, the largest weight is on it", all(right))
    figures.show(
        fig,
        alt="Pooling weights as sticks, six machines by thirty steps, three times. Spread: all sticks are equally low. "
        "Last: one long stick at step 30, longer in some machines than in others. Flagged: one long stick in each "
        "row, at a different step each time, and a ring on its tip.",
    )


def prove_weights(on_mark, largest):
    """Prove claim 06c-weights."""
    assert min(on_mark) > 0.5
    assert max(largest) < 0.1


def tabulate_with_attention(alone, mixed):
    table(
        ["mean pooling on last, 150 steps", "error in cycles, 5 seeds"],
        [
            ["no attention in the encoder", interval(alone, ".0f")],
            ["attention in the encoder", interval(mixed, ".0f")],
        ],
    )


def prove_mixing(mixed, alone, errors):
    """Prove claim 06c-mixing."""
    assert mixed.max() < 10 < alone.min()
    assert mixed.mean() > errors["last", "last"].mean() + 1


def check_quick_checks(weights, by_hand):
    scores = torch.tensor([0, 0, 0, math.log(3)], dtype=torch.float64)
    torch.testing.assert_close(scores.softmax(0), weights)
    assert abs(by_hand["attention, weights 1/6 1/6 1/6 1/2"].item() - 8) < 1e-12
