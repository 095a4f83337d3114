"""Figures and proofs of deep dive 05b, Warm-up."""

from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from subnorm_lab import figures, live
from subnorm_lab.chapters import begin as begin
from subnorm_lab.experiments import longer_runs, warmup
from subnorm_lab.experiments.language_model import learning_rate, loss, untrained
from subnorm_lab.report import interval, say, table

ARMS = {
    "post": "Post-LN",
    "post_warmup": "Post-LN, warm-up",
    "pre": "Pre-LN",
    "pre_warmup": "Pre-LN, warm-up",
}
LOOKS = {
    "post": figures.LOOKS["post"],
    "post_warmup": {"color": figures.PINK, "linestyle": "-."},
    "pre": figures.LOOKS["pre"],
}
TEXT = warmup.MAPS["deep"]  # with four blocks, too


@cache
def record():
    return warmup.recorded()


@cache
def longer():
    return longer_runs.recorded()


def first_step(gradient):
    weight = nn.Parameter(torch.zeros_like(gradient))
    weight.grad = gradient
    torch.optim.Adam([weight], lr=0.015).step()
    return weight.detach()


def prove_first_step():
    """Prove claim 05b-first-step."""
    moved = first_step(torch.tensor([1e-3, -1e-2, 1.0, 50.0]))
    assert torch.allclose(moved.abs(), torch.tensor(0.015), rtol=1e-3, atol=0)

    tiny = torch.tensor([1e-7, 1e-8, 1e-10], dtype=torch.float64)
    share = (first_step(tiny) / -0.015).numpy()
    np.testing.assert_allclose(share, tiny / (tiny + 1e-8), rtol=1e-6)
    for power, found in zip((7, 8, 10), 100 * share, strict=True):
        say(f"share_{power}", found, ".0f")

    task = warmup.MAPS["deep"].task
    draw_weights = torch.Generator().manual_seed(0)
    small = untrained(task.vocabulary, task.length, "post", draw_weights)
    loss(small, *task.batch(8, torch.Generator().manual_seed(1000))).backward()
    size = torch.cat([w.grad.abs().flatten() for w in small.parameters()])
    full = size / (size + 1e-8) > 0.99
    say("full_steps", 100 * full.double().mean().item(), ".0f")

    typical = np.sqrt(2 / (32 + 4 * 32))  # Xavier, 32 to 128 features
    say("first_step", 100 * 0.015 / typical, ".0f")


def draw_two_runs():
    steps, chance, looks = longer()["steps"], longer()["chance"], {0: "post", 400: "post_warmup"}
    losses = {updates: longer()["parts"][f"12-post-0.002-{updates}"] for updates in looks}  # (seeds, steps)

    def frame(step):
        seen = steps.index(step) + 1
        full, slow = (live.number(np.median(found[:, seen - 1])) for found in losses.values())
        at = sorted({0, min(step, 400), step})  # a rate bends at step 400
        rates = {look: (at, [learning_rate(k, 0.002, updates) for k in at]) for updates, look in looks.items()}
        return (
            f"After {step} steps the median loss is {full} nats at the full rate and {slow} nats with warm-up. "
            f"Chance is {live.number(chance)}.",
            [
                rates,
                {looks[n]: (steps[:seen], found[:, :seen]) for n, found in losses.items()}
                | {"chance": ([0, 800], [chance, chance])},
            ],
        )

    names = {"post": "full rate", "post_warmup": "warm-up"}
    curves = {look: live.Curve(name, **LOOKS[look]) for look, name in names.items()}
    live.chart(
        "two-runs",
        "Twelve Post-LN blocks on text. Left, the learning rate; "
        "right, the training loss, median and range of five seeds",
        [live.slider("step", "step", [50, *range(100, 801, 100)], 800, play=True)],
        [
            live.Lines(live.Axis("step", limits=(0, 800)), live.Axis("learning rate", limits=(0, 0.0024)), curves),
            live.Lines(
                live.Axis("step", limits=(0, 800)),
                live.Axis("loss (nats)", limits=(2, 4.2)),
                curves | {"chance": live.Curve("chance", figures.GREY, ":")},
            ),
        ],
        frame,
        alt="Left, the learning rate up to step 800: constant for one run, and rising from near zero up to step 400 "
        "for the other. Right, their losses: at the full rate on the dotted line of chance from the first value on; "
        "with warm-up above it at first, and far below it at the end.",
        side=2,
    )


def check_schedules():
    assert learning_rate(0, 0.015, 0) == 0.015
    assert learning_rate(0, 0.015, 50) < 0.015 / 50


def draw_rates(warm_up):
    """An answer of sheet 04, for two lengths of the warm-up."""
    steps, peaks = np.arange(1, 20001), []
    fig, ax = plt.subplots()
    for length, look in ((4000, "pre"), (8000, "post")):
        rates = [warm_up(int(step), 512, length) for step in steps]
        assert steps[np.argmax(rates)] == length
        assert np.isclose(max(rates), (512 * length) ** -0.5, rtol=1e-12, atol=0)
        ax.plot(steps, rates, **figures.LOOKS[look])
        peaks.append((length, max(rates)))
        figures.name(ax, f"{length} steps of warm-up", peaks[-1], figures.LOOKS[look]["color"], (8, 4))
    figures.title(fig, "The longer the warm-up, the lower the peak", peaks[0][1] > peaks[1][1])
    ax.set(xlabel="step", ylabel="learning rate", ylim=(0, 8e-4), xticks=(0, 4000, 8000, 20000))
    ax.set_yticks((0, 2e-4, 4e-4, 6e-4), ("0", "0.0002", "0.0004", "0.0006"))
    figures.show(
        fig,
        alt="The learning rate against the step for two warm-ups. Each curve rises on a straight line to a sharp peak "
        "at the end of its warm-up and then falls ever more slowly. The longer warm-up has the lower peak; after it "
        "both curves coincide.",
    )


def check_chance():
    say("chance", TEXT.task.chance, ".2f")


def final(curves):
    """The final loss of each run, {arm: (seeds,)}."""
    return {arm: losses[:, -20:].mean(1) for arm, losses in curves.items()}


def draw_curves(curves):
    steps, ends = np.arange(0, TEXT.steps, 10) + 5, []
    fig, ax = plt.subplots()
    for arm, losses in curves.items():
        smooth = losses.reshape(5, -1, 10).mean(2)  # (seeds, steps / 10)
        ax.plot(steps, smooth.T, linewidth=0.9, alpha=0.8, **LOOKS[arm])
        ax.plot(steps, smooth.mean(0), **LOOKS[arm])
        ends.append((ARMS[arm].replace(", ", ",\n"), (steps[-1], smooth[:, -1].mean()), LOOKS[arm]["color"]))
    ax.axhline(TEXT.task.chance, **figures.LOOKS["theory"])
    figures.name(ax, "chance", (75, TEXT.task.chance), shift=(0, -3))
    stuck = np.abs(final(curves)["post"] - TEXT.task.chance).max() < 0.1
    figures.title(fig, "At this rate, Post-LN without warm-up ends at chance", stuck)
    ax.set(xlabel="training step", ylabel="training loss (nats)", ylim=(2.2, 4.2), yticks=(2.5, 3, 3.5, 4))
    ax.set_xlim(0, steps[-1])
    figures.name_ends(ax, ends)
    figures.show(
        fig,
        alt="Training loss on real text against the step, five seeds for each of three arms. Post-LN without warm-up "
        "comes down to the dotted chance line and stays there. Post-LN with warm-up starts slowly, then "
        "falls well below "
        "it. Pre-LN falls below it early and ends lowest.",
    )


def prove_text(curves):
    """Prove claims 05b-text, 05b-pre-learns."""
    found, chance = final(curves), TEXT.task.chance
    assert np.abs(found["post"] - chance).max() < 0.1
    assert found["post_warmup"].max() < chance - 0.1
    assert found["pre"].max() < chance - 0.1
    assert found["pre"].mean() < found["post_warmup"].mean() - 0.1


def tabulate_spread(spread):
    table(
        ["arm", "largest spread, 5 seeds"],
        [[ARMS[arm], interval(found)] for arm, found in spread.items()],
    )


def prove_stuck_is_blind(spread):
    """Prove claim 05b-stuck-is-blind."""
    assert spread["post"].max() < 0.05
    assert min(spread["post_warmup"].min(), spread["pre"].min()) > 0.1


def tabulate_final_losses(curves):
    table(
        ["text, 4 blocks", "final loss, 5 seeds"],
        [[ARMS[arm], interval(losses, ".1f")] for arm, losses in final(curves).items()],
    )


def draw_map(name, title, measured, low, alt):
    rates, chance = measured["learning_rates"], measured["chance"]
    panels = [
        live.Heat(
            f"{placement}: final loss (nats)",
            live.Axis("learning rate"),
            [f"seed {seed}" for seed in record()["seeds"]],
            [f"{rate:g}" for rate in rates],
            (low, chance),
            colors=[color],
            digits=1,
            height=220,
        )
        for placement, color in (
            ("Post-LN", figures.ORANGE),
            ("Pre-LN", figures.BLUE),
        )
    ]

    def frame(warm):
        post, pre = (measured["final_loss"][f"{placement}{warm}"] for placement in ("post", "pre"))
        words = "With warm-up" if warm else "Without warm-up"
        medians = (", ".join(f"{np.median(losses):.1f}" for losses in found.T) for found in (post, pre))
        return (
            f"{words}, from the smallest rate to the largest, the median losses of five seeds are {next(medians)} nats "
            f"for Post-LN and {next(medians)} for Pre-LN. "
            f"Chance is {chance:.1f}.",
            [post, pre],
        )

    warm = live.choice("warm", "warm-up", {"off": "", "on": "_warmup"}, "")
    live.chart(name, title, [warm], panels, frame, alt, side=2)


def draw_map_of_copying():
    draw_map(
        "copying",
        "Final loss of every recorded run of copying, 4 blocks: no colour at 0 nats, full colour at chance",
        record()["maps"]["copy"],
        0,
        "Two grids of cells, five seeds by four learning rates, without warm-up. Post-LN is pale at the "
        "two small rates and "
        "strong at the two large ones. Pre-LN is pale everywhere.",
    )
    print(f"measured {record()['date']}, torch {record()['versions']['torch']}, Adam")


def prove_below_the_band():
    """Prove claims 05b-below-the-band, 05b-band, 05b-above-the-band, 05b-pre-range."""
    measured = record()["maps"]["copy"]
    post, warm, pre, pre_warm = (measured["final_loss"][arm] for arm in ARMS)  # (seeds, rates)
    chance = measured["chance"]
    assert post[:, 0].max() < 0.5
    assert warm[:, 0].min() > post[:, 0].max()
    assert max(post[:, 1].max(), warm[:, 1].max()) < 0.5
    assert post[:, 2].min() > 2
    assert warm[:, 2].max() < 1
    assert np.abs(post[:, 3] - chance).max() < 0.1
    assert np.abs(warm[:, 3] - chance).min() < 0.1
    assert warm[:, 3].min() < 1
    assert pre.max() < 0.1
    assert pre_warm.max() < 1
    assert pre_warm[:, 0].mean() > pre[:, 0].mean()


def prove_pre_band(beyond):
    """Prove claim 05b-pre-band."""
    assert min(beyond["pre"]) > 1.5
    assert max(beyond["pre_warmup"]) < 1


def draw_twelve_blocks():
    runs_of = longer()["parts"]  # each (seeds, steps)
    WARM_UPS = {0: LOOKS["post"], 400: LOOKS["post_warmup"]}
    fig, axes = plt.subplots(1, 3, figsize=(7.6, 3.2), sharey=True)
    for ax, rate in zip(axes, (0.001, 0.002, 0.005), strict=True):
        for updates, look in WARM_UPS.items():
            losses, at = runs_of[f"12-post-{rate}-{updates}"], longer()["steps"]
            ax.plot(at, losses.T, linewidth=0.9, alpha=0.8, **look)
            ax.plot(at, np.median(losses, 0), **look)
        ax.axhline(longer()["chance"], **figures.LOOKS["theory"])
        ax.set(title=f"learning rate {rate:g}", xlabel="training step", xticks=(0, 400, 800))
    axes[0].set(ylabel="training loss (nats)", ylim=(1.6, 4.4), yticks=(2, 3, 4))
    for ax in axes[1:]:
        figures.name(ax, "no warm-up", (480, longer()["chance"]), LOOKS["post"]["color"], (0, 8))
        figures.name(ax, "warm-up over\n400 updates", (420, 1.9), LOOKS["post_warmup"]["color"], (0, 0))
    figures.name(axes[0], "chance", (480, longer()["chance"]), shift=(0, 6))
    high = {n: np.stack([runs_of[f"12-post-{rate}-{n}"] for rate in (0.002, 0.005)]) for n in WARM_UPS}
    needed = high[0].min() > longer()["chance"] - 0.1 and high[400].min(axis=-1).max() < longer()["chance"] - 0.4
    figures.title(fig, "At the two higher rates, only warm-up takes Post-LN far below chance", needed)
    figures.show(
        fig,
        alt="Training loss of 12 Post-LN blocks against the step, up to 800, five seeds for each arm. Left, "
        "rate 0.001: with "
        "and without warm-up the loss is at chance or below it by step 250, and far below it at step 800. "
        "Middle, rate 0.002: "
        "with warm-up it falls as far, without it stays on the dotted chance line. Right, rate 0.005: "
        "without warm-up it "
        "stays on that line, too. With warm-up it falls below chance in every seed; after step 400 it rises again in "
        "some.",
    )


def draw_map_of_text():
    draw_map(
        "deep-text",
        "Final loss of every recorded run on text, 12 blocks, 100 steps: no colour at 2.4 nats, full colour at chance",
        record()["maps"]["deep"],
        2.4,
        "Two grids of cells, five seeds by four learning rates, without warm-up. Post-LN is strong "
        "everywhere, Pre-LN paler "
        "everywhere.",
    )


def tabulate_map_of_text():
    deep = record()["maps"]["deep"]
    table(
        [
            "text, 12 blocks, 100 steps",
            *(f"lr {rate}" for rate in deep["learning_rates"]),
        ],
        [[ARMS[arm], *(interval(rates, ".1f") for rates in losses.T)] for arm, losses in deep["final_loss"].items()],
    )


def prove_deep_100_steps():
    """Prove claims 05b-deep-100-steps, 05b-pre-learns."""
    deep = record()["maps"]["deep"]
    deep_post, deep_warm, deep_pre, deep_pre_warm = (deep["final_loss"][arm] for arm in ARMS)  # (seeds, rates)
    for losses in (deep_post, deep_warm):
        assert losses.min() > deep["chance"] - 0.05
    for losses in (deep_pre, deep_pre_warm):
        assert losses.max() < deep["chance"] - 0.1


def settled():
    """The final loss of the longer runs, {part: (seeds,)}."""
    return {part: losses[:, -1] for part, losses in longer()["parts"].items()}


def tabulate_longer_runs():
    table(
        ["5 seeds", "final loss"],
        [
            [
                "{1}-LN, {0} blocks, rate {2}, warm-up over {3} of {4} steps".format(
                    *part.title().split("-")[:4], longer_runs.steps_of(part)[-1]
                ),
                interval(losses),
            ]
            for part, losses in settled().items()
        ],
    )


def prove_more_steps():
    """Prove claims 05b-more-steps, 05b-deep-learns, 05b-deep-stuck, 05b-deep-pre, 05b-deep-band,
    05b-deep-falls-back.
    """
    chance, runs_of, at_end = longer()["chance"], longer()["parts"], settled()
    after_100 = longer()["steps"].index(100)
    after_400 = longer()["steps"].index(400)
    for stuck in ("4-post-0.015-0", "12-post-0.002-0", "12-post-0.005-0"):
        assert np.abs(runs_of[stuck][:, after_100:] - chance).max() < 0.1
    for slow in ("12-post-0.001-0", "12-post-0.001-400"):
        assert runs_of[slow][:, after_100].min() > chance - 0.05
        assert at_end[slow].max() < chance - 0.5
    for rate in (0.001, 0.002, 0.005):
        post = [at_end[f"12-post-{rate}-{updates}"] for updates in (0, 400)]
        assert at_end[f"12-pre-{rate}-0"].max() < np.min(post)
    assert at_end["12-post-0.002-400"].max() < chance - 0.5
    rescued = runs_of["12-post-0.005-400"]
    assert rescued[:, after_400].max() < chance - 0.3
    assert np.sum(rescued[:, -1] > chance - 0.3) == 1
    onward = runs_of["12-post-0.005-400-3200"]
    assert onward[:, :4].min(1).max() < chance - 0.3  # learned by step 800
    assert np.abs(onward[:, -1] - chance).max() < 0.2


def prove_four_learn(four):
    """Prove claim 05b-four-learn."""
    assert four.max() < TEXT.task.chance - 0.1


def again(name, arm, lr):
    return warmup.final_loss(warmup.MAPS[name], arm, lr, seed=0)


def repeat_recorded_runs():
    assert again("copy", "post_warmup", 1e-2) < 1 < 2 < again("copy", "post", 1e-2)
    for name, arm, lr in (("copy", "post_warmup", 5e-3), ("deep", "pre", 5e-3)):
        measured = record()["maps"][name]
        rate = measured["learning_rates"].index(lr)
        kept = measured["final_loss"][arm][0, rate]
        assert abs(again(name, arm, lr) - kept) < 1e-3
        print(f"{name}, {ARMS[arm]}, at {lr:g}: {kept:.2f} nats, as on record")

    part = "12-post-0.005-400"
    first_100 = longer_runs.train_one(part, seed=4, steps=100)
    kept = longer()["parts"][part][4, longer()["steps"].index(100)]
    assert abs(warmup.settled(first_100) - kept) < 1e-3
    print(f"{part}, after 100 steps: {kept:.2f} nats, as on record")
