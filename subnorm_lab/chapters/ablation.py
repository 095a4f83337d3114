"""Figures and proofs of deep dive 06b, Ablation: take the parts out."""

from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import torch

import subnorm.numpy as sn
from subnorm_lab import chapters, diagrams, figures
from subnorm_lab.experiments import ablation, language_model, stack
from subnorm_lab.experiments.parity import paired_interval
from subnorm_lab.report import claimed_table, interval, say, table

LOOKS = {
    "neither": {"color": figures.GREY, "linestyle": ":", "marker": "x"},
    "residual": {"color": figures.GREEN, "linestyle": "-.", "marker": "s"},
    "norm": {"color": figures.ORANGE, "linestyle": "--", "marker": "v"},
    "both": {"color": figures.BLUE, "linestyle": "-", "marker": "o"},
    "scaled": {"color": figures.PINK, "linestyle": "-", "marker": "^"},
}


SEEDS = range(5)
NAMES = {
    "neither": "neither",
    "residual": "residual only",
    "norm": "norm only",
    "both": "both (Pre-LN)",
    "scaled": "residual, scaled",
}
TASK = ablation.TASK
DEPTHS = (1, 12)


def begin():
    chapters.begin()
    return SEEDS, NAMES


def draw_five_ways():
    figures.show(
        diagrams.five_sublayers(),
        alt="Five sublayers from x at the bottom to y. Neither: F alone. Residual: a green skip path runs past F to a "
        "plus. Norm: a norm before F, and no skip path. Both: the norm before F, and the skip path. Scaled: F, then "
        "one over the root of 2L, and the skip path.",
        dpi=105,
    )


def prove_four_ways(five_ways):
    """Prove claim 06b-four-ways."""
    x = np.array([2.0, 4.0, 6.0, 12.0])

    def reverse(h):
        return h[..., ::-1]

    def norm(h):
        return sn.layer_norm(h, eps=0)

    ways = five_ways(x, reverse, norm)
    assert list(ways) == list(NAMES)
    for arm, y in ways.items():
        package = ablation.ARMS[arm].sublayer(x, reverse, norm, num_blocks=2)
        assert np.allclose(package, y, rtol=0, atol=1e-12)


def windows():
    return TASK.batch(10, torch.Generator().manual_seed(7))[0]  # (B, T)


def prove_both_is_pre_ln():
    """Prove claim 06b-both-is-pre-ln."""
    both = ablation.build_model("both", num_blocks=2, seed=0)
    pre_ln = language_model.untrained(
        TASK.vocabulary,
        TASK.length,
        "pre",
        torch.Generator().manual_seed(0),
        num_blocks=2,
    )
    assert torch.equal(both(windows()), pre_ln(windows()))
    for arm in NAMES:
        model = ablation.build_model(arm, num_blocks=2, seed=0)
        for name, weight in model.named_parameters():
            assert torch.equal(weight, pre_ln.get_parameter(name))


@torch.no_grad()
def at_the_top(arm, num_blocks, seed):
    """The mean square of an untrained model's stream after the last block, and the cosine between its tokens."""
    h = ablation.build_model(arm, num_blocks, seed).states(windows())[-1]  # (B, T, d)
    return stack.mean_square(h), stack.token_cosine(h)


@cache
def top_of_untrained(arm, num_blocks):
    """The two numbers at the top, each for five seeds."""
    return np.array([at_the_top(arm, num_blocks, seed) for seed in SEEDS]).T


def draw_before_the_first_step():
    fig, axes = plt.subplots(2, 1, figsize=(6.4, 5.0), sharex=True)
    found = {}
    for place, arm in enumerate(NAMES):
        for shift, depth in zip((-0.17, 0.17), DEPTHS, strict=True):
            color = LOOKS[arm]["color"]
            fill = color if depth == 12 else "white"
            found[arm, depth] = squares, cosines = top_of_untrained(arm, depth)
            where = np.full(5, place + shift)
            for ax, values in zip(axes, (squares, cosines), strict=True):
                if depth == 12:  # from the median of one block to that of twelve
                    ends = np.median(found[arm, 1][int(ax is axes[1])]), np.median(values)
                    ax.plot([place - 0.17, place + 0.17], ends, color=color, linewidth=1.2)
                ax.plot(where, values, "o", color=color, markerfacecolor=fill)
    both = [(3 + side, np.median(found["both", depth][1])) for side, depth in zip((-0.17, 0.17), DEPTHS, strict=True)]
    figures.name(axes[1], "1 block", both[0], figures.BLUE, (-8, 0))
    figures.name(axes[1], "12 blocks", both[1], figures.BLUE, (8, 0))
    axes[0].set(yscale="log", title="mean square of the stream", yticks=10.0 ** np.arange(-9, 4, 3))
    axes[0].minorticks_off()
    axes[1].set(ylim=(0, 1.05), yticks=(0, 0.5, 1), title="cosine between tokens")
    axes[1].set(xticks=range(5), xticklabels=NAMES.values())
    *others, scaled = (found[arm, 12][1] for arm in NAMES)
    apart = scaled.max() < 0.2 and np.min(others) > 0.4
    figures.title(fig, "Before training, 12 blocks keep tokens apart only if the residual is scaled", apart)
    figures.show(
        fig,
        alt="Two panels, one above the other, five ways, five seeds each; open marks for one block, and a line "
        "to filled marks for twelve. Mean square: with one block all are "
        "near one; with twelve, neither has fallen to about a billionth, residual only has risen to "
        "thousands, the others stay "
        "between a tenth and ten. Cosine: with twelve blocks neither and norm only are at one, residual "
        "only is high, both is in the middle, "
        "residual scaled is low.",
    )


def tabulate_filled_marks():
    claimed_table(
        ["12 blocks, 5 seeds", "mean square", "cosine"],
        [
            [
                NAMES[arm],
                interval(
                    top_of_untrained(arm, 12)[0],
                    ".0e" if arm in ("neither", "residual") else ".1f",
                ),
                interval(top_of_untrained(arm, 12)[1], ".2f"),
                f"<!-- claim: 06b-row-{arm} -->",
            ]
            for arm in NAMES
        ],
    )


def prove_alike():
    """Prove claims 06b-alike, 06b-explodes, 06b-scaled-calm, 06b-row-neither, 06b-row-residual, 06b-row-norm,
    06b-row-both, 06b-row-scaled.
    """
    deep = {arm: top_of_untrained(arm, 12) for arm in NAMES}  # mean squares, cosines
    assert min(deep["neither"][1].min(), deep["norm"][1].min()) > 0.999
    assert deep["neither"][0].max() < 1e-6
    assert deep["residual"][0].min() > 1000
    assert deep["scaled"][0].max() < 3
    assert deep["both"][0].max() < 20
    assert deep["both"][1].max() < 0.7
    assert deep["scaled"][1].max() < 0.3
    start = 1.25  # tokens of variance 1, positions of 0.25
    per_block = (deep["residual"][0] / start) ** (1 / 12)
    assert 1.6 < per_block.min() < per_block.max() < 2.5
    say("per_block", per_block.mean(), ".0f", noise=1e-4)


FAR = 30  # nats: a bound for the chaotic "residual only", which ends elsewhere on each processor


def draw_train_all_five(runs):
    curves = {
        key: np.array([ablation.tens(losses) for _, losses in pairs]) for key, pairs in runs.items()
    }  # (seeds, steps / 10)
    judged = {key: np.array([ablation.judge(model) for model, _ in pairs]) for key, pairs in runs.items()}

    fig, axes = plt.subplots(1, 2, figsize=(7.6, 3.6), sharey=True)
    end = 10 * len(curves["both", 12][0])
    steps = np.arange(5, end, 10)
    for ax, depth in zip(axes, DEPTHS, strict=True):
        for arm in NAMES:
            losses, look = curves[arm, depth], LOOKS[arm]
            if depth > 1:
                ax.plot(steps, losses.T, lw=0.9, alpha=0.8, color=look["color"])
            else:  # the curves of one block are too close for their seeds and marks
                look = look | {"marker": ""}
            ax.plot(steps, losses.mean(0), **look)
        ax.axhline(TASK.chance, **figures.LOOKS["theory"])
        ax.set(
            xlabel="training step",
            title=f"{depth} block{'s' if depth > 1 else ''}",
            xticks=(0, end // 2, end),
            xlim=(0, end),
            ylim=(2.5, 5.8),
            yticks=(3, 4, 5),
        )
    last = {arm: curves[arm, 12].mean(0)[-1] for arm in NAMES}
    figures.name(axes[0], "all five", (15, 3.05), shift=(14, 40), point_out=True)
    figures.name(axes[0], "blind", (end, TASK.chance), shift=(-2, 4))
    ends = [(arm, (end, last[arm]), LOOKS[arm]["color"]) for arm in ("both", "scaled")]
    figures.name_ends(axes[1], [("neither,\nnorm only", (end, TASK.chance), figures.GREY), *ends])
    figures.name(axes[1], f"residual only:\nabove {FAR} ↑", (end, 5.8), LOOKS["residual"]["color"], (-2, -4))
    axes[0].set_ylabel("training loss (nats)")
    learn = [arm for arm in NAMES if (curves[arm, 12].mean(0)[-1] < TASK.chance - 0.1)]
    figures.title(fig, "With 12 blocks, only both and the scaled residual learn", learn == ["both", "scaled"])
    figures.show(
        fig,
        alt="Training loss against the step for five ways: means of five seeds, and with twelve blocks the seeds. "
        "With one block all five curves fall "
        "below the dotted blind line. With twelve blocks, a note says that residual only is far above the "
        "picture; neither and norm only come down to the "
        "blind line and stay; both and residual scaled fall below it.",
    )
    return curves, judged


def say_the_blind_loss():
    say("blind", ablation.blind_loss(), ".2f")


@cache
def recorded():
    """The record, its held-out losses, (seeds, depths) for each arm, and the column of each depth."""
    record = ablation.recorded()
    return record, record["held_back"], {depth: k for k, depth in enumerate(record["depths"])}


EDGE = 4.25  # of the plot, in places of depths


def draw_from_which_depth_on():
    record, held, _ = recorded()
    depths = np.array(record["depths"])
    fig, ax = plt.subplots(figsize=(6.4, 3.8))
    ends = []
    for k, arm in enumerate(NAMES):
        losses = held[arm]  # (seeds, depths)
        where = np.arange(len(depths)) + 0.07 * (k - 2)
        look = {"color": LOOKS[arm]["color"], "linestyle": LOOKS[arm]["linestyle"]}
        ax.plot(where, losses.T, "o", color=look["color"], markersize=3, alpha=0.5)
        ax.plot(where, np.median(losses, 0), **look)
        if arm != "residual":
            ends.append((NAMES[arm].replace(" (", "\n("), (EDGE, np.median(losses, 0)[-1]), look["color"]))
    ax.axhline(record["blind"], **figures.LOOKS["theory"])
    figures.name_ends(ax, [*ends, ("blind", (EDGE, record["blind"]), figures.BLACK)])
    without = np.stack([held[arm][:, depths >= 4] for arm in ("neither", "norm")])
    figures.title(
        fig,
        f"Without a skip path, four blocks or more are blind after {record['steps']} steps",
        np.abs(without - record["blind"]).max() < 0.05,
    )
    ax.set(
        xlabel="blocks",
        ylabel="held-out loss (nats)",
        xticks=range(len(depths)),
        xticklabels=depths,
        xlim=(-0.3, EDGE),
        ylim=(2.35, 3.75),
        yticks=(2.5, 3, 3.5),
    )
    high = np.median(held["residual"], 0)
    figures.leave(ax, f"residual only: to {high[-1]:.0f}", np.arange(len(depths)), high, LOOKS["residual"]["color"])
    figures.show(
        fig,
        alt="Held-back loss against the number of blocks, five ways with five seeds each, and a dotted blind "
        "line. Neither and norm only are below the "
        "line at one block and on it from two blocks on. Residual only lies with the two best up to four "
        "blocks, rises at "
        "eight, and leaves the picture after it. Both and residual scaled stay low at all depths.",
    )
    print(f"measured {record['date']}, torch {record['versions']['torch']},")
    print(f"Adam at {record['learning_rate']}, batch {record['batch']}")


def prove_skip_from_two():
    """Prove claims 06b-skip-from-two, 06b-norm-from-eight."""
    record, held, column = recorded()
    for arm in ("neither", "norm"):
        assert held[arm][:, column[1]].max() < record["blind"] - 0.3
        assert np.abs(held[arm][:, 1:] - record["blind"]).max() < 0.15
    for arm in ("both", "scaled"):
        assert held[arm].max() < record["blind"] - 0.4
    residual = held["residual"]
    for depth in (1, 2, 4):
        k = column[depth]
        behind, half = paired_interval(held["both"][:, k], residual[:, k])
        assert behind + half < 0.05
    assert residual[:, column[8]].min() > held["both"][:, column[8]].max() + 0.1
    assert (residual[:, column[8]] > 3.75).sum() == 1  # above the picture
    assert residual[:, column[12]].min() > 100


def tabulate_held_back_losses(judged):
    table(
        ["held-out loss, 5 seeds", "1 block", "12 blocks"],
        [
            [
                NAMES[arm],
                interval(judged[arm, 1]),
                f"over {FAR}" if arm == "residual" else interval(judged[arm, 12]),
            ]
            for arm in NAMES
        ],
    )


def prove_one_block(judged, curves):
    """Prove claims 06b-one-block, 06b-stuck, 06b-residual-only, 06b-learn, 06b-scaled-first."""
    blind = ablation.blind_loss()
    gap, half = paired_interval(judged["both", 12], judged["scaled", 12])
    for arm in NAMES:
        assert judged[arm, 1].max() < blind - 0.1
    with_skip = [judged[arm, 1].max() for arm in ("residual", "both", "scaled")]
    without = [judged[arm, 1].min() for arm in ("neither", "norm")]
    assert max(with_skip) < min(without)
    for arm in ("neither", "norm"):
        assert np.abs(judged[arm, 12] - blind).max() < 0.1
    assert judged["residual", 12].min() > FAR
    assert curves["residual", 12].min() > FAR
    for arm in ("both", "scaled"):
        assert judged[arm, 12].max() < blind - 0.1
    assert gap + half < -0.05


def prove_record(curves):
    """Prove claim 06b-record."""
    record, _, column = recorded()
    for (arm, depth), measured in curves.items():
        kept = record["training"][arm][:, column[depth], : measured.shape[1]]
        if (arm, depth) != ("residual", 12):  # chaotic
            assert np.abs(measured - kept).max() < 2e-3


def failures():
    """Held-back losses of the other runs on record: longer ones, at other rates, and with a final norm alone."""
    record, held, column = recorded()
    final = held["final"][:, column[8] :]  # residual, one norm at the end
    return record["late"]["held_back"], record["held_back_other_rates"], final


def tabulate_what_the_failure_depends_on():
    _, held, column = recorded()
    late, rates, final = failures()
    table(
        ["held-out loss, 5 seeds", "lowest to highest"],
        [
            ["scaled, no norm, 12 blocks", interval(held["scaled"][:, column[12]])],
            ["both, 12 blocks", interval(held["both"][:, column[12]])],
            ["neither, 2 blocks, 400 steps", interval(late["neither"])],
            ["norm only, 2 blocks, 400 steps", interval(late["norm"])],
            ["residual only, 12 blocks, lr 0.001", interval(rates["residual"][:, 0], ".0f")],
            ["neither, 12 blocks, both other lr", interval(rates["neither"])],
            ["residual and final norm, 8 and 12 blocks", interval(final)],
        ],
    )


def prove_not_a_law():
    """Prove claims 06b-not-a-law, 06b-late, 06b-rates, 06b-final-norm."""
    record, held, column = recorded()
    late, rates, final = failures()  # the rates are 1e-3 and 1e-2
    for pair in (held["scaled"][:, column[12]], rates["scaled"]):
        assert pair.max() < record["blind"] - 0.4
    for arm in ("neither", "norm"):
        assert late[arm].max() < record["blind"] - 0.1
        assert np.abs(rates[arm] - record["blind"]).max() < 0.1
    assert rates["residual"].min() > 10
    beginning = record["training"]  # (seeds, depths, steps / 10)
    assert beginning["residual"][:, column[12], 0].min() > 100
    assert beginning["final"][:, column[12], 0].max() < 5
    assert np.abs(final - record["blind"]).max() < 0.1
