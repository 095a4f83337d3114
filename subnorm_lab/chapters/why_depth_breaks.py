"""Figures and proofs of chapter 01, Why depth breaks."""

from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import torch

from subnorm_lab import diagrams, figures, live, stories
from subnorm_lab.chapters import begin as begin
from subnorm_lab.experiments import degradation, drift, journey, signal
from subnorm_lab.experiments.parity import paired_interval
from subnorm_lab.report import say, table

GAINS = {  # mean square out, for each unit of mean square in
    "1/6 (torch)": 1 / 6,
    "1/2 (Xavier)": 1 / 2,
    "1 (He)": 1.0,
}


WIRINGS = {
    "plain": "plain: F(x)",
    "residual": "skip: x + F(x)",
    "pre": "both: x + F(norm(x))",
}


def draw_token():
    def frame(blocks, gain):
        cells, sizes = [], []
        for wiring in WIRINGS:
            token = journey.travel(wiring, gain)[0]  # (128, 25)
            rms = np.sqrt((token**2).mean(axis=0))
            sizes.append(live.number(rms[blocks] / rms[0]))
            x = token[5::11] / rms[0]  # (12, 25)
            tens = np.log10(np.clip(np.abs(x), 1e-3, 1e3))  # -3 to 3
            shades = np.sign(x) * np.maximum(1, np.round((tens + 3) / 0.3))
            cells.append(np.where(np.arange(25) <= blocks, shades, np.nan))  # else a new column would seem to grow
        plain, skip, both = sizes
        says = (
            f"After {blocks} of 24 blocks, the size has gone from 1 to {plain} in the plain stack, to {skip} "
            f"with a skip, and to {both} with skip and norm."
        )
        return says, cells

    live.chart(
        "token",
        "Twelve numbers of one token on their way through three stacks; logarithmic colours",
        [
            live.slider(
                "blocks",
                "Blocks passed",
                range(0, 25, 2),  # each step of Play is as deep
                24,
                play=True,
            ),
            live.slider("gain", "Branch gain g", GAINS, 1 / 2),
        ],
        [
            live.Heat(
                title,
                live.Axis("after block"),
                [""] * 12,
                [str(k) if k % 8 == 0 else "" for k in range(25)],
                limits=(-20, 20),
                colors=(figures.BLUE, figures.ORANGE),
                height=230,
                bar={-20: "≤ −1000", -10: "−1", 0: "±0.001", 10: "1", 20: "≥ 1000"},
            )
            for title in WIRINGS.values()
        ],
        frame,
        alt="A bar of colours, from orange for minus 1000 over white for a thousandth to blue for 1000. Below it three "
        "pictures of one token on its way through 24 blocks: a row for each of twelve features, a column "
        "for the input and for each block passed, blue or orange by sign. All begin in middle strength. The plain "
        "one fades until nothing is left, the one with a skip grows ever stronger, the one with both keeps about "
        "its strength.",
        side=3,
    )


def prove_skip_and_norm_hold():
    """Prove claim 01-skip-and-norm-hold."""
    weak_to_strong = np.array([1 / 6, 1 / 4, 8**-0.5, 1 / 2, 2**-0.5, 1, 2**0.5, 2])
    sizes = {}  # after the last block, with 1 at the input
    for wiring in WIRINGS:
        stacks = [journey.travel(wiring, gain) for gain in weak_to_strong]
        rms = np.sqrt((np.array(stacks) ** 2).mean(axis=2))  # (gains, seeds, 25)
        sizes[wiring] = rms[..., -1] / rms[..., 0]
    tokens = journey.travel("plain", 1.0)  # at gain 1 it holds its size
    alike = [np.corrcoef(token[:, 0], token[:, -1])[0, 1] for token in tokens]

    say("plain_beyond", sizes["plain"][-1].min(), ".0f")
    say("both_low", sizes["pre"].min(), ".1f")
    say("both_high", sizes["pre"].max(), ".1f")
    assert 1 < sizes["pre"].min() < sizes["pre"].max() < 10
    root = np.sqrt(1 + 24 * weak_to_strong)[:, None]
    assert (sizes["pre"] / root).min() > 0.75
    assert (sizes["pre"] / root).max() < 1.35
    fades = weak_to_strong <= 0.5
    assert sizes["plain"][fades].max() < 0.001
    assert sizes["plain"][-1].min() > 1000
    assert sizes["residual"][~fades].min() > 100
    assert sizes["residual"].min() > 1
    xavier = {wiring: size[weak_to_strong == 0.5] for wiring, size in sizes.items()}
    assert 70 < xavier["residual"].min() < xavier["residual"].max() < 150
    assert 3 < xavier["pre"].min() < xavier["pre"].max() < 4.5
    say("alike", np.abs(alike).max(), ".2f")
    assert np.abs(alike).max() < 0.2


def size(values):
    return values.square().mean().sqrt().item()


def tabulate_opening(plain, skip, both, x):
    rows = []
    for name, end in {"plain": plain, "skip": skip, "both": both}.items():
        (gradient,) = torch.autograd.grad(end.sum(), x, retain_graph=True)  # it starts as ones, with size 1
        rows.append([name, f"{size(end) / size(x):.2g}", f"{size(gradient):.2g}"])
    table(["stack", "size after the last block", "gradient at the input"], rows)


def draw_plain_stack():
    figures.show(
        diagrams.plain_stack(),
        alt="Four boxes in a row, F1, F2, dots, FL. Black arrows lead from x0 to the right through every box "
        "to the loss. Orange arrows lead from the loss back to the left, through every box.",
    )


def tabulate_trace(layers):
    table(
        ["after layer", "values", "size"],
        [[n, ", ".join(f"{v:.0f}" for v in h), f"{np.mean(h**2) ** 0.5:.2f}"] for n, h in enumerate(layers)],
    )


def prove_trace_keeps_size(layers, x, W):
    """Prove claim 01-trace-keeps-size."""
    assert layers[1].tolist() == [12, -4, -6, 2]
    assert np.array_equal(layers[2], x)
    assert np.array_equal(W.T @ W, np.eye(4))  # so no x changes its size


def prove_product_of_factors(x, W):
    """Prove claim 01-product-of-factors."""

    def size(row):
        return np.sqrt(np.mean(row**2))

    start = np.array([1.0, 0.0, 0.0, 0.0])  # some gradient, at the top
    h, dh = x, start
    for layer in range(1, 101):
        h = 0.9 * W @ h  # forward
        dh = 0.9 * W.T @ dh  # and back
        if layer in (10, 50, 100):
            left = size(h) / size(x)
            assert np.isclose(left, 0.9**layer, rtol=1e-12, atol=0)
            assert np.isclose(size(dh) / size(start), left, rtol=1e-12, atol=0)
            say(f"left_{layer}", left, ".6f" if layer == 100 else ".4f")


def draw_products():
    fig, ax = plt.subplots()
    depth = np.arange(101)
    looks = {
        1.1: (figures.ORANGE, "--"),
        1.01: (figures.ORANGE, "-"),
        1.0: (figures.BLACK, "-"),
        0.99: (figures.BLUE, "-"),
        0.9: (figures.BLUE, "--"),
        0.5: (figures.BLUE, ":"),
    }
    for factor, (color, line) in looks.items():
        ax.plot(depth, factor**depth, line, color=color)
    figures.title(fig, "Only a factor of 1 keeps the size", [factor for factor in looks if factor**100 == 1] == [1])
    ax.set(yscale="log", ylim=(1e-6, 1e6), xlabel="layers", ylabel="product of the factors")
    ax.set(xticks=(0, 20, 50, 100), yticks=10.0 ** np.arange(-6, 7, 3))
    inside = {factor: color for factor, (color, _) in looks.items() if factor != 0.5}
    figures.name_ends(ax, [(f"{factor:g}", (100, factor**100), color) for factor, color in inside.items()])
    figures.leave(ax, f"factor 0.5: to {live.number(0.5**100)}", depth, 0.5**depth, figures.BLUE)
    figures.show(
        fig,
        alt="The product of equal factors against the number of layers, up to 100, on a logarithmic axis, for "
        "six factors. A factor of one is a level line. The two that are a hundredth away from it leave it "
        "slowly, by less than a power of ten over the whole range. The two that are a tenth away fall to "
        "less than a ten-thousandth and rise to more than ten thousand. A half leaves the picture after 20 "
        "layers.",
    )


L = 32
INITS = {  # init of the experiment, factor on its weights
    "twice He": ("he", np.sqrt(2)),
    "He": ("he", 1.0),
    "Xavier": ("xavier", 1.0),
    "torch default": ("torch", 1.0),
}


def gain_of(name):
    init, scale = INITS[name]
    return scale**2 * signal.gain(init)


def tabulate_inits():
    variances = ["4/d", "2/d", "1/d", "1/(3d)"]
    table(
        ["init", "variance of a weight", "branch gain g"],
        [[name, v, f"{gain_of(name):.2f}"] for name, v in zip(INITS, variances, strict=True)],
    )


def prove_inits_and_gains():
    """Prove claim 01-inits-and-gains."""
    drawn = torch.nn.Linear(1000, 1000).weight.var().item()
    assert abs(1000 * drawn - 1 / 3) < 0.01  # what torch really draws
    assert np.allclose([gain_of(name) for name in INITS], [2, 1, 1 / 2, 1 / 6], rtol=1e-12, atol=0)


def prove_init_decides():
    """Prove claim 01-init-decides."""
    traces = {name: signal.propagate("plain", init, L, scale) for name, (init, scale) in INITS.items()}
    orders = {  # of the sizes, in powers of ten, over the whole stack, for each seed; a trace has the mean square
        name: (np.log10(t.signal[:, -1]) / 2, np.log10(t.gradient[:, 0])) for name, t in traces.items()
    }
    for name, (forward, back) in orders.items():
        assert abs(forward.mean() - L / 2 * np.log10(gain_of(name))) < 0.3
        assert abs(back.mean() - L / 2 * np.log10(gain_of(name))) < 0.2
        if name != "He":
            short = name.split()[0].lower()
            say(f"{short}_signal", forward.mean(), "+.1f")
            say(f"{short}_gradient", back.mean(), "+.1f")


def inside(values):  # what leaves the picture is not drawn
    size = np.log10(np.median(np.atleast_2d(values), axis=0))
    return np.where(np.abs(size) < 13, values, np.nan)


def draw_two_gains():
    names = {"1": " (He)", "2": " (2 × He)", "1/2": " (Xavier)"}
    names["1/6"] = " (torch default)"

    def frame(f, depth):
        layer = np.arange(0, depth + 1, max(1, depth // 16))
        few = layer[::4]
        signals, gradients, laws, ends = {}, {}, ([], []), {}
        for curve, g in (("large", f), ("small", 1 / f)):
            trace = signal.propagate("plain", "he", depth, np.sqrt(g))
            sizes = np.sqrt(trace.signal)
            signals[curve] = (layer, inside(sizes[:, layer]))
            gradients[curve] = (layer, inside(trace.gradient[:, layer]))
            laws[0].append(np.sqrt(g) ** few)
            laws[1].append(np.sqrt(g) ** (depth - few))
            label = f"{f:g}" if g >= 1 else f"1/{f:g}"
            end, first = (live.number(np.median(values)) for values in (sizes[:, -1], trace.gradient[:, 0]))
            times = f"multiplies the signal by {end} and the gradient by {first}"
            ends[label] = f"g = {label}{names.get(label, '')} {times}"
        for panel, law in zip((signals, gradients), laws, strict=True):
            panel["theory"] = (np.tile(few, 2), inside(np.concatenate(law)))
        return f"Over {depth} layers, {'; '.join(ends.values())}.", [signals, gradients]

    curves = {
        "large": live.Curve("g = f", figures.ORANGE, "--"),
        "small": live.Curve("g = 1/f", figures.BLUE),
        "theory": live.Curve("theory", figures.BLACK, marks="only"),
    }
    live.chart(
        "gain",
        "A plain stack of branch gain f and one of 1/f: the median of eight seeds,"
        " and a band from the smallest to the largest",
        [
            live.slider("f", "factor f", [1, 1.1, 1.25, 1.5, 2, 6], 2),
            live.choice("depth", "layers", [8, 16, 32], 32),
        ],
        [
            live.Lines(
                live.Axis("layer", limits=(0, 32)),
                live.Axis(label, log=True, limits=(1e-13, 1e13)),
                curves,
            )
            for label in ("size of the signal", "size of the gradient")
        ],
        frame,
        "Two panels on logarithmic axes, with two stacks of 32 layers; the branch gain of one is 2, that of the "
        "other its inverse. Left, the size of the signal by layer: both start at one; the first rises by "
        "more than four powers of ten, the second falls by as many. Right, the size of the gradient: both are "
        "at one in the last layer; towards the first layer one rises and the other falls, by as many powers of "
        "ten as on the left. The dots of the theory lie on all four curves, or close to "
        "them.",
        side=2,
    )


@cache
def ends_by_width():
    """The mean square at the end of sixteen stacks of each width, the smallest first."""
    ends = {}
    for d in (8, 32, 128):
        ends[d] = np.sort(signal.propagate("plain", "he", L, d=d, tokens=16, seeds=range(16)).signal[:, -1])
    return ends


def tabulate_widths():
    rows = []
    for d, ends in ends_by_width().items():
        low, high = ends[2], ends[-3]  # all but two at either end
        rows.append([d, f"{(ends == 0).sum()} of 16", f"{low:.0e}", f"{high:.0e}"])
    table(["features", "silent stacks", "third smallest mean square", "third largest"], rows)


def prove_width_holds_the_product():
    """Prove claim 01-width-holds-the-product."""
    ends = ends_by_width()
    ratio = [one[-3] / one[2] for one in ends.values()]
    assert ends[8][0] == 0 < ends[32][0]
    assert ratio[0] > 100 * ratio[1] > 300 * ratio[2]


@cache
def train(stack, blocks):
    """The loss at every step, (seeds, steps); ten seeds of two blocks, five of more."""
    return degradation.train(stack, "he", blocks, seeds=range(10 if blocks == 2 else 5))


def final(stack, blocks):
    """The mean loss of the last 50 steps, (seeds,)."""
    return train(stack, blocks)[:, -50:].mean(axis=1)


DEPTHS = (2, 8, 20, 50)


def final_of_five(stack):
    """:func:`final` of the same five seeds at every depth, (seeds, depths)."""
    return np.array([final(stack, blocks)[:5] for blocks in DEPTHS]).T


def draw_loss_by_depth():
    live.sketch(
        "loss-by-depth",
        "Training loss of plain networks over the number of layers, median and range of five seeds",
        live.Axis("layers", log=True, limits=(1.8, 56), ticks={b: str(b) for b in DEPTHS}),
        live.Axis("training loss after 250 steps", limits=(0, 1)),
        (DEPTHS, final_of_five("plain").round(3)),
        DEPTHS,
        "A curve over the number of layers, on a logarithmic axis, with a band over five seeds. From two "
        "to eight layers the training loss is level, a little above a third. From eight to fifty layers it "
        "rises to about a half, and the band widens.",
    )


def draw_degradation():
    fig, ax = plt.subplots(figsize=(5.6, 3.6))
    for stack, shift, label in (("plain", 0.96, "replaces:\nplain"), ("residual", 1.04, "adds")):
        look, at, ends = figures.LOOKS[stack], shift * np.array(DEPTHS), final_of_five(stack)
        middle = np.median(ends, axis=0)
        ax.plot(at, middle, **look)
        ax.plot(at, ends.T, "o", color=look["color"], ms=4)
        figures.name(ax, label, (50, middle[-1]), look["color"], (12, 0))
    ax.axhline(1, color=figures.BLACK, linewidth=0.8)
    figures.name(ax, "always answer 0", (2, 1), shift=(2, -4))
    worse = (np.diff(np.median(final_of_five("plain"), axis=0)[1:]) > 0).all()
    figures.title(fig, "From 8 to 50 layers, plain networks end worse", worse)
    ax.set(
        xscale="log",
        xlabel="layers",
        ylabel="training loss, five seeds and their median",
        ylim=(0, 1.1),
        yticks=(0, 0.5, 1),
    )
    ax.set_xticks(DEPTHS, map(str, DEPTHS))
    ax.minorticks_off()
    figures.show(
        fig,
        alt="Loss after training against the number of layers, with a dot for each seed and a line through their "
        "medians. The networks that "
        "replace end lower than those that add at two layers; at eight the two groups overlap; from eight "
        "to fifty layers those that replace end higher and higher, those that add lower. All stay below "
        "the line of always answering zero.",
    )


def report(name, values):
    say(f"{name}_low", values.min(), ".2f", noise=1e-4)
    say(f"{name}_high", values.max(), ".2f", noise=1e-4)


def prove_degradation():
    """Prove claims 01-degradation, 01-shallow-plain-can-win, 01-twenty-plain-layers-train,
    01-batch-norm-plain-sticks.
    """
    plain, residual = ({b: final(stack, b) for b in DEPTHS} for stack in ("plain", "residual"))
    report("plain_50", plain[50])
    report("residual_50", residual[50])
    report("plain_20", plain[20])
    assert (plain[50] > plain[8] + 0.05).all()  # rises, in every seed
    assert (residual[50] < residual[8] - 0.01).all()  # falls, in every seed
    assert residual[50].max() < plain[50].min()
    assert plain[8].min() < residual[8].max()  # at 8 they overlap

    gap, half = paired_interval(residual[2], plain[2])  # the same seeds
    assert gap + half < 0  # at 2 the plain ones are better
    assert plain[20].max() < 0.6  # 20 plain layers train
    batch = final("batch", 20)
    assert batch.min() > plain[20].max() + 0.2
    assert np.abs(batch - 1).max() < 0.1


def draw_twenty_layers():
    fig, ax = plt.subplots(figsize=(5.6, 3.3))
    ends = [("always\nanswer 0", (250, 1), figures.BLACK)]
    for stack, label, look in (
        ("plain", "plain", figures.LOOKS["plain"]),
        ("batch", "plain, with\nBatchNorm", {"color": figures.ORANGE, "linestyle": "--"}),
    ):
        smooth = np.apply_along_axis(np.convolve, 1, train(stack, 20), np.ones(20) / 20, "valid")
        low, high = smooth.min(axis=0), smooth.max(axis=0)
        step = range(20, 251)
        ax.fill_between(step, low, high, color=look["color"], alpha=0.25)
        ax.plot(step, smooth.mean(axis=0), **look)
        ends.append((label, (250, smooth[:, -1].mean()), look["color"]))
    ax.axhline(1, color=figures.BLACK, linewidth=0.8)
    figures.name_ends(ax, ends)
    last = {stack: train(stack, 20)[:, -20:].mean(axis=1) for stack in ("plain", "batch")}
    figures.title(
        fig,
        "In 250 steps, 20 plain layers learn; with BatchNorm they do not",
        last["plain"].max() < 0.5 and last["batch"].min() > 0.9,
    )
    ax.set(
        xlabel="step (mean of the last 20)",
        ylabel="loss",
        xlim=(0, 250),
        ylim=(0, 1.6),
        xticks=(20, 100, 250),
        yticks=(0, 0.5, 1, 1.5),
    )
    figures.show(
        fig,
        alt="Loss during training of two kinds of plain networks with twenty layers, with the range over five "
        "seeds. One falls to about four tenths; the one with BatchNorm stays near the line of always "
        "answering zero.",
    )


def prove_batch_norm_gradient_explodes():
    """Prove claim 01-batch-norm-gradient-explodes."""
    trace = signal.propagate("batch", "he", 50)
    first = trace.gradient[:, 0]  # (seeds,); the last is 1
    per_layer = first ** (1 / 50)
    law = np.sqrt(np.pi / (np.pi - 1))

    say("bn_low", first.min() / 1000, ".0f")
    say("bn_high", first.max() / 1000, ".0f")
    say("bn_factor", per_layer.mean(), ".2f")
    say("bn_law", law, ".2f")
    assert np.allclose(trace.signal[:, 1:], 1, rtol=1e-3, atol=0)
    assert np.abs(per_layer - law).max() < 0.03


NETS = {  # activation, variance of a weight times d
    "linear, 4/d": ("linear", 4),
    "tanh, 1/d": ("tanh", 1),
    "ReLU, 2/d (He)": ("relu", 2),
    "ReLU, 8/d": ("relu", 8),
}
RELU = "ReLU, 2/d (He)"
SHARE = 1 / np.sqrt(np.pi - 1)  # mean / std of relu(z), for a standard normal z


@cache
def follow(name):
    return drift.follow(*NETS[name])


def tabulate_drift():
    rows = []
    for name in NETS:
        net = follow(name)
        std = net.std.mean(axis=0)  # over the seeds
        share = (net.mean / net.std).mean(axis=0)
        cells = [f"{std[k]:.1f}" for k in (1, 10)]
        cells += [f"{share[k]:z.2f}" for k in (1, 10)]
        rows.append([name, *cells])
    table(["stack", "std, layer 1", "10", "mean / std, layer 1", "10"], rows)


def prove_mean_does_not_drift():
    """Prove claims 01-mean-does-not-drift, 01-examples-grow-alike."""
    say("relu_ratio", SHARE, ".2f")
    for name, (activation, _) in NETS.items():
        net = follow(name)
        measured = (net.mean / net.std)[:, 1:]  # (seeds, layers)
        if activation == "relu":
            assert 0.5 < measured.min() < measured.max() < 0.9
            assert abs(measured.mean() - SHARE) < 0.05
        else:
            assert np.abs(measured).max() < 0.05
    common = {name: follow(name).common for name in NETS}  # (seeds, 51)
    first, tenth, last = common["ReLU, 2/d (He)"][:, [1, 10, 50]].T
    for depth, alike in ((1, first), (10, tenth), (50, last)):
        say(f"common_{depth}", 100 * alike.mean(), ".0f")
    assert first.max() < 0.4 < 0.7 < tenth.min() < 0.9 < last.min()
    assert common["linear, 4/d"].max() < 0.2
    assert common["tanh, 1/d"].max() < 0.2


def draw_drift():
    fig, axes = plt.subplots(1, 2, figsize=(7.6, 3.4))
    looks = {"linear, 4/d": (figures.GREY, "--"), "tanh, 1/d": (figures.GREY, "-."), RELU: (figures.BLUE, "-")}
    for name, (color, line) in looks.items():
        net = follow(name)
        for ax, values in ((axes[0], net.mean / net.std), (axes[1], net.common)):
            ax.fill_between(range(51), values.min(axis=0), values.max(axis=0), color=color, alpha=0.25)
            ax.plot(values.mean(axis=0), line, color=color, linewidth=2 if name == RELU else 1)
    axes[0].axhline(SHARE, **figures.LOOKS["theory"])
    figures.name(axes[0], RELU, (25, 0.55), figures.BLUE, (0, -4))
    figures.name(axes[0], "dotted: 1/√(π − 1)", (25, SHARE), shift=(0, 26))
    for ax in axes:
        figures.name(ax, "linear, 4/d, and tanh, 1/d", (25, 0.06), figures.GREY, (0, 4))
        ax.set(xlabel="layer", xticks=(0, 10, 30, 50), ylim=(-0.1, 1.05), yticks=(0, 0.5, 1))
    common = follow(RELU).common.mean(axis=0)
    axes[1].plot(10, common[10], "o", color=figures.BLUE)
    tenth = f"{100 * common[10]:.0f}\N{NO-BREAK SPACE}% after ten layers"
    figures.name(axes[1], tenth, (10, common[10]), figures.BLUE, (12, -14))
    axes[0].set(title="mean / std")
    axes[1].set(title="share in common")
    ratio = (follow(RELU).mean / follow(RELU).std).mean(axis=0)[1:]
    stays = np.ptp(ratio) < 0.1 and common[50] > 2 * common[1]
    figures.title(fig, "Untrained ReLU layers: the mean does not drift, but the examples grow alike", stays)
    figures.show(
        fig,
        alt="Two panels against the layer, up to 50, with the spread of eight seeds. Left, mean over standard "
        "deviation: the linear and the tanh stack stay at zero, the ReLU stack jumps to about two thirds "
        "in its first layer and stays there, close to a dotted line. Right, the share that all examples "
        "have in common: near zero throughout for the linear and the tanh stack; in the ReLU stack it "
        "rises from a third in the first layer to more than nine tenths.",
    )


def without_skip(x, sublayer, norm):
    return sublayer(norm(x))


@cache
def tokens_and_losses():
    """Of the trained model, with its skips and without: size and likeness of its tokens, (texts, 11); loss, (texts,).

    And how much larger the first token is, (11,).
    """

    def rms(x):
        return np.sqrt((x**2).mean(axis=-1))

    def alike(x, y):
        x, y = (v - v.mean(axis=-1, keepdims=True) for v in (x, y))
        return (x * y).mean(axis=-1) / (rms(x) * rms(y))

    trained = stories.load()
    texts = stories.texts()
    sizes, likeness, losses = {}, {}, {}
    for name, model in (("with its skips", trained), ("without", stories.altered(trained, place=without_skip))):
        streams = np.stack([stories.stream(model, text) for text in texts])
        tokens = streams[:, :, 1:]  # (texts, 11, 119, 64)
        sizes[name] = rms(tokens.reshape(len(texts), 11, -1))
        likeness[name] = alike(tokens, tokens[:, :1]).mean(axis=-1)
        losses[name] = stories.losses(model, texts)
        if model is trained:
            outlier = rms(streams[0, :, 0]) / sizes[name].mean(axis=0)
    return sizes, likeness, losses, outlier


def draw_size_and_likeness():
    sizes, likeness, _losses, _outlier = tokens_and_losses()
    fig, axes = plt.subplots(1, 2, figsize=(7.6, 3.3))
    labels = ("RMS of the stream", "correlation with the embedding")
    for ax, values, label in zip(axes, (sizes, likeness), labels, strict=True):
        for name, look in (("with its skips", "residual"), ("without", "plain")):
            low, high = values[name].min(axis=0), values[name].max(axis=0)
            color = figures.LOOKS[look]["color"]
            ax.fill_between(range(11), low, high, color=color, alpha=0.25)
            mean = values[name].mean(axis=0)
            ax.plot(mean, **figures.LOOKS[look])
            figures.name_curve(ax, name, range(11), mean, color)
        ax.set(xlabel="sublayers", title=label, xticks=(0, 5, 10), ylim=(-0.2, None))
    axes[0].set(yticks=(0, 0.5, 1, 1.5))
    axes[1].set(yticks=(0, 0.5, 1))
    lost = np.abs(likeness["without"].mean(axis=0)[2:]).max() < 0.15
    figures.title(fig, "Without its skips, two sublayers leave a token unlike its embedding", lost)
    figures.show(
        fig,
        alt="Two panels against the number of sublayers, with narrow bands over twelve texts. Left, the root "
        "mean square of the stream: with its skips it rises from a quarter to 1.6, steeper and steeper; "
        "without them it zigzags between 0.15 and 1. Right, the correlation of a token with its embedding: "
        "with skips it falls slowly from 1 to about a fifth; without, it is at zero after two sublayers.",
    )


def prove_trained_needs_its_skips():
    """Prove claims 01-trained-needs-its-skips, 01-trained-stream-grows."""
    sizes, likeness, losses, outlier = tokens_and_losses()
    bare, whole = losses["without"], losses["with its skips"]
    say("trained_loss", whole.mean(), ".2f")
    say("bare_loss", bare.mean(), ".1f")
    say("guessing", np.log(512), ".2f")
    assert bare.min() > np.log(512) > whole.max()
    assert 0.1 < sizes["without"].min() < sizes["without"].max() < 1.5
    gone = np.abs(likeness["without"][:, 2:])
    say("bare_alike", gone.max(), ".2f")
    assert gone.max() < 0.15
    assert likeness["with its skips"].min() > 0.15

    size = sizes["with its skips"]
    growth = size[:, -1] / size[:, 0]
    say("growth_low", growth.min(), ".1f")
    say("growth_high", growth.max(), ".1f")
    assert (np.diff(size) > 0).all()
    added = np.diff(size[:, ::2] ** 2)  # (texts, 5): by each block
    assert (added.min(axis=0)[1:] > added.max(axis=0)[:-1]).all()
    say("outlier", outlier.max(), ".1f")
    assert outlier.argmax() == 2  # after the first block
    assert (outlier > 1).all()
