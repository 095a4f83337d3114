"""Figures and proofs of deep dive 09c, Quantisation, autocast and export."""

import warnings
from collections import Counter
from dataclasses import replace
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import torch

import subnorm.numpy as sn
from subnorm_lab import chapters, figures, stories
from subnorm_lab.report import say, table
from subnorm_lab.stories import altered
from subnorm_lab.stories.torch import Stories


def begin():
    chapters.begin()
    # about PyTorch's own code, by torch.export
    warnings.filterwarnings("ignore", "`isinstance.treespec", FutureWarning)


def draw_an_outlier():
    """Twelve numbers in steps of 4 bits, without and with a large one among them."""
    usual = np.random.default_rng(0).standard_normal(11)
    fig, axes = plt.subplots(1, 2, figsize=(7.4, 2.9), sharey=True)
    for ax, (title, last) in zip(axes, {"no outlier": 1.0, "one outlier, 16": 16.0}.items(), strict=True):
        x = np.append(usual, last)
        step = np.abs(x).max() / 7
        ax.vlines(range(1, 13), np.rint(x / step) * step, x, color=figures.ORANGE, linewidth=2)
        ax.plot(range(1, 13), x, "o", color=figures.BLUE)
        ax.plot(range(1, 13), np.rint(x / step) * step, "_", color=figures.BLACK, markersize=12)
        lost = (np.rint(usual / step) == 0).sum()
        ax.set(title=title, xlabel="number", xticks=(1, 6, 12), ylim=(-2.7, 2.7))
    axes[1].annotate("16", (12, 2.6), (12, 1.6), ha="center", arrowprops={"arrowstyle": "->", "color": figures.BLACK})
    axes[0].set_ylabel("value")
    figures.name(axes[1], "number", (3, usual[2]), figures.BLUE, (0, 8))
    figures.name(axes[1], "read back", (10, -2.29), figures.BLACK, (-14, 0))
    figures.title(fig, f"One outlier of 16 makes {lost} of the 11 other numbers 0 in 4 bits")
    figures.show(
        fig,
        alt="Twelve numbers before and after rounding to 4 bits, twice. Without an outlier every number is read back "
        "close to its value. With one outlier, which is read back well, almost all of the others are read back as 0.",
    )


BITS = (8, 6, 5, 4, 3)


def losses(model):
    return stories.losses(model, stories.beginnings())


def kinds(quantised):
    """What to quantise: the model with so many bits, by name."""
    model = stories.load()

    def matrices(bits):
        return tuple({name: quantised(w, bits, -1) for name, w in weights.items()} for weights in model.weights)

    def before_norms(bits, over):
        return altered(
            model,
            norm=lambda x, gamma: sn.rms_norm(quantised(x, bits, over), gamma),
        )

    return {
        "matrices, a step for each row": lambda b: replace(model, weights=matrices(b)),
        "gains, a step for each norm": lambda b: replace(model, gains=quantised(model.gains, b, -1)),
        "into the norms, a step for each token": lambda b: before_norms(b, -1),
        "into the norms, one step": lambda b: before_norms(b, None),
    }


@cache
def rises_of(quantised):
    """How much the loss of each text rises, by kind: (bits, texts) each."""
    trained = losses(stories.load())
    return {name: np.array([losses(made(bits)) - trained for bits in BITS]) for name, made in kinds(quantised).items()}


HIGHEST = 2  # nats, of the plot


def draw_rises(quantised):
    fig, ax = plt.subplots()
    ends = []
    looks = [
        ("matrices,\na step a row", figures.GREY, ":"),
        ("gains, a step\na norm", figures.GREEN, "-."),
        ("into the norms,\na step a token", figures.BLUE, "-"),
        ("into the norms,\none step", figures.ORANGE, "--"),
    ]
    for found, (name, color, style) in zip(rises_of(quantised).values(), looks, strict=True):
        middle = found.mean(axis=1)
        ax.plot(BITS, middle, style, color=color)
        if middle[-1] < HIGHEST:
            ends.append((name, (BITS[-1], middle[-1]), color))
        else:
            leaves = f"{name.replace(chr(10), ' ')}: to {middle[-1]:.1f}", BITS, middle, color
        ax.fill_between(BITS, found.min(axis=1), found.max(axis=1), color=color, alpha=0.2)
    ax.set(
        xlabel="bits",
        ylabel="rise of the loss (nats)",
        ylim=(-0.1, HIGHEST),
        xticks=BITS,
        yticks=(0, 0.5, 1, 1.5, 2),
    )
    ax.invert_xaxis()
    figures.leave(ax, *leaves)
    figures.name_ends(ax, ends)
    *others, one_step = (found.mean(axis=1)[np.array(BITS) <= 5] for found in rises_of(quantised).values())
    figures.title(
        fig, "From 5 bits down, one step for all tokens costs most", (one_step > np.max(others, axis=0)).all()
    )
    figures.show(
        fig,
        alt="The rise of the loss against the number of bits, from 8 down to 3, for four kinds of arrays, with "
        "bands over twelve texts. All four "
        "lie on zero at 8 bits. One step for all tokens before the norms leaves the axis first, and is "
        "highest from 5 bits "
        "on. The gains stay lowest.",
    )


def prove_eight_bits(quantised):
    """Prove claims 09c-eight-bits, 09c-one-step, 09c-gains."""
    model, rises = stories.load(), rises_of(quantised)
    at = {bits: k for k, bits in enumerate(BITS)}
    for found in rises.values():
        assert np.abs(found[at[8]]).max() < 0.03
    each, one = (rises[name] for name in list(rises)[2:])
    assert (one[at[4]] > each[at[4]] + 0.1).all()
    assert one[at[4]].mean() > 2 * rises["matrices, a step for each row"][at[4]].mean()
    assert rises["gains, a step for each norm"][at[4]].max() < 0.15
    say("one_step", one[at[4]].mean(), ".1f")
    say("step_each", each[at[4]].mean(), ".1f")

    numbers = model.embedding.size + model.gains.size
    numbers += sum(w.size for weights in model.weights for w in weights.values())
    say("gains", model.gains.size, ".0f")
    say("gain_share", 100 * model.gains.size / numbers, ".2f")
    blocks = kinds(quantised)["matrices, a step for each row"](8)
    both = [stories.generate(m, tokens=256).split() for m in (blocks, model)]
    other = next(k for k, (a, b) in enumerate(zip(*both, strict=False), 1) if a != b)
    say("other_word", other, ".0f")


def tabulate_types(types):
    table(
        ["operation", "type of the result"],
        [[name, str(dtype).removeprefix("torch.")] for name, dtype in types.items()],
    )


def prove_autocast(types):
    """Prove claims 09c-autocast, 09c-autocast-loss."""
    wide, narrow = torch.float32, torch.bfloat16
    assert list(types.values()) == [wide, narrow, narrow, wide]
    twin = Stories(stories.load(np.float32)).requires_grad_(False)

    def by_torch():
        return np.array([float(twin.loss(torch.tensor(text))) for text in stories.beginnings()])

    plain = by_torch()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = by_torch()
    assert np.abs(cast - plain).max() < 0.03
    inside = torch.full((1, 8), 300.0, dtype=torch.float16)
    assert torch.nn.functional.rms_norm(inside, (8,)).isfinite().all()
    assert (torch.nn.functional.rms_norm(inside, (8,)) - 1).abs().max() < 0.01


SIZES = [1.0, 2.0**4, 2.0**8, 2.0**12]


def wrong(g, scale):
    "The share of entries off by more than 1 % in float16."
    kept = (g * scale).half().double() / scale
    return float(((kept - g).abs() > 0.01 * g.abs()).double().mean())


@cache
def gradients(gradient):
    """Of each text, by size of the stream; and the shares that float16 gets wrong, by scale of the loss."""
    found = [[gradient(text, size) for text in stories.beginnings()] for size in SIZES]
    shares = {scale: np.array([[wrong(g, scale) for g in row] for row in found]) for scale in (1, 4096)}
    return found, shares  # shares: (sizes, texts) each


def tabulate_gradients(gradient):
    _, shares = gradients(gradient)
    table(
        ["stream, times", "loss as it is", "loss times 4096"],
        [
            [
                f"{size:.0f}",
                *(f"{100 * s[k].mean():.1f} %" for s in shares.values()),
            ]
            for k, size in enumerate(SIZES)
        ],
    )


def prove_gradient_shrinks(gradient):
    """Prove claims 09c-gradient-shrinks, 09c-loss-scaling."""
    found, shares = gradients(gradient)
    for row, size in zip(found, SIZES, strict=True):
        for g, g1 in zip(row, found[0], strict=True):
            assert (g * size - g1).norm() < 1e-3 * g1.norm()  # eps does the rest
    as_it_is, scaled = shares.values()
    assert (np.diff(as_it_is, axis=0) > 0).all()  # in every text
    assert (as_it_is[-1] > 0.5).all()
    assert scaled.max() < 0.01
    say("wrong_large", 100 * as_it_is[-1].mean(), ".0f")


def calls(program):
    return [n for n in program.graph.nodes if n.op == "call_function"]


def names(program):
    found = [getattr(node.target, "__name__", "") for node in calls(program)]
    return [name.split(".")[0] for name in found if name != "getitem"]


def tabulate_exported(exported):
    whole, split = names(exported), names(exported.run_decompositions())
    table(
        ["graph", "operations"],
        [["exported", " → ".join(whole)], ["decomposed", " → ".join(split)]],
    )


def eps_of(dtype):
    rms, row = torch.nn.RMSNorm(8).to(dtype), torch.ones(3, 8, dtype=dtype)
    graph = torch.export.export(rms, (row,)).run_decompositions()
    return {v for n in calls(graph) for v in n.args if isinstance(v, float)}


def prove_export(exported, norms):
    """Prove claims 09c-export, 09c-export-eps, 09c-export-same."""
    model, texts = stories.load(), stories.beginnings()
    assert names(exported) == ["layer_norm", "rms_norm"]
    assert {"pow", "mean", "rsqrt"} <= set(names(exported.run_decompositions()))
    layer_call, rms_call = calls(exported)
    assert 1e-6 in layer_call.args
    assert not any(isinstance(value, float) for value in rms_call.args)
    numbers = [
        value for node in calls(exported.run_decompositions()) for value in node.args if isinstance(value, float)
    ]
    assert 1e-6 in numbers
    assert torch.finfo(torch.float64).eps in numbers

    assert eps_of(torch.float64) == {torch.finfo(torch.float64).eps}
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        assert eps_of(dtype) == {torch.finfo(torch.float32).eps}
    rows = torch.from_numpy(np.random.default_rng(0).normal(0, 1, (3, 8)))
    with torch.no_grad():
        for program in (exported, exported.run_decompositions()):
            assert (program.module()(rows) - norms(rows)).abs().max() < 1e-12
        whole_model = Stories(model).requires_grad_(False)
        tokens = torch.tensor(texts[0])
        story = torch.export.export(whole_model, (tokens,))
        assert torch.equal(story.module()(tokens), whole_model(tokens))
    kept = Counter(names(story))["rms_norm"]
    say("kept", kept, ".0f")
