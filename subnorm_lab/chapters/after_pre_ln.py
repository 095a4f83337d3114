"""Figures and proofs of chapter 07, After Pre-LN."""

from functools import cache, partial

import matplotlib.pyplot as plt
import numpy as np
import torch

import subnorm.torch as st
from subnorm.torch import STACK_PLACEMENTS
from subnorm_lab import chapters, diagrams, figures, live
from subnorm_lab.experiments import after_pre_ln
from subnorm_lab.experiments.after_pre_ln import Movable, at_start, untrained
from subnorm_lab.experiments.stack import random_tokens
from subnorm_lab.report import interval, say, table

DEPTHS, SEEDS = (3, 6, 12, 24), range(5)


def generator(seed):
    return torch.Generator().manual_seed(seed)


def begin():
    chapters.begin()
    return generator


PLACES = {
    "after the sum: BERT": "post",
    "before F: GPT-2": "pre",
    "after F: OLMo 2": "after_branch",
    "nowhere": "none",
}


POWERS = {"as it comes": 0.0, "÷ √L": 0.5, "÷ L": 1.0}


@cache
def at_each_place():
    """What a stack does before training, by place of the norm and power of the branch."""
    return {
        (place, power): at_start(partial(Movable, place=place, power=power), DEPTHS, SEEDS)
        for place in PLACES.values()
        for power in POWERS.values()
    }


KNOWN = {
    ("post", 0.0): "Post-LN",
    ("pre", 0.0): "Pre-LN",
    ("after_branch", 0.0): "the norm of OLMo 2",
    ("none", 0.0): "no norm at all",
}


def course(values):
    """How the median goes with depth, in words; values of shape (seeds, depths)."""
    medians = np.median(values, 0)
    first, last, most = (live.number(value) for value in (medians[0], medians[-1], medians.max()))
    if most not in (first, last):
        return f"rises from {first} to {most} at {DEPTHS[medians.argmax()]} blocks and falls to {last}"
    return f"stays near {first}" if first == last else f"goes from {first} to {last}"


def draw_two_knobs():
    found = at_each_place()
    blocks = live.Axis("blocks N", limits=(3, 24), ticks={k: str(k) for k in DEPTHS})
    CURVES = {
        "this": live.Curve("this", figures.BLUE, marks="too"),
        "pre": live.Curve("Pre-LN", **figures.LOOKS["theory"]),
    }

    def turned(place, power):
        panels = []
        for quantity in ("stream", "step"):
            panels.append(
                {
                    name: (DEPTHS, found[key][quantity])
                    for name, key in (
                        ("pre", ("pre", 0.0)),
                        ("this", (place, power)),
                    )
                }
            )
        stream, step = (course(found[place, power][quantity]) for quantity in ("stream", "step"))
        name = KNOWN.get((place, power), "a scaled branch")
        sentence = (
            f"With {name}, from 3 to 24 blocks the stream's mean square {stream}, and the effect of one step {step}."
        )
        return sentence, [place, *panels]

    where = live.choice("place", "the norm is", PLACES, "post")
    live.chart(
        "two-knobs",
        "Four places for the norm, three sizes of the branch: five untrained stacks, median and range",
        [where, live.choice("power", "the branch is", POWERS, 0.0)],
        [
            live.Block("one sublayer", where),
            live.Lines(
                blocks,
                live.Axis("stream's mean square", log=True, limits=(0.5, 1000)),
                CURVES,
                230,
            ),
            live.Lines(
                blocks,
                live.Axis("effect of one step", log=True, limits=(0.003, 1000)),
                CURVES,
                230,
            ),
        ],
        turned,
        "A block diagram with the norm after the plus, and two panels by the number of blocks, for Post-LN "
        "beside Pre-LN. Post-LN's stream "
        "stays at one while Pre-LN's grows in proportion to depth. The effect of one step of training "
        "grows with depth in Pre-LN; in Post-LN it grows more up to twelve blocks, and then falls.",
        side=3,
    )


def draw_named_models():
    figures.show(
        diagrams.named_blocks(),
        alt="Three sublayers side by side, from x at the bottom to y at the top, each with a green skip path "
        "from x to a plus sign. "
        "GPT-2: norm, F, plus. OLMo 2: F, norm, plus. Gemma 3: norm, F, norm, plus.",
        dpi=92,
    )


def prove_size_decides():
    """Prove claim 07-size-decides."""
    found = at_each_place()
    for place in PLACES.values():
        small, full = (np.median(found[place, power]["step"], 0) for power in (0.5, 0.0))
        assert small.max() < 2 * small.min()
        assert full[-1] > 3 * full[0]
    for power in POWERS.values():
        assert np.abs(found["post", power]["stream"] - 1).max() < 0.5
    for place in ("pre", "after_branch", "none"):
        sizes = found[place, 0.0]["stream"]
        assert (sizes[:, -1] > 2 * sizes[:, 0]).all()


def prove_one_class(Sandwich):
    """Prove claim 07-one-class."""
    x = random_tokens(generator(0), 2, 16, 32)
    written, packaged = (untrained(build, 6, generator(1)) for build in (Sandwich, STACK_PLACEMENTS["sandwich"]))
    assert torch.equal(written(x), packaged(x))
    say("placements", len(STACK_PLACEMENTS), ".0f")


NAMES = {
    "pre": "Pre-LN",
    "sandwich": "sandwich",
    "after_branch": "norm after F",
}


def streams_of(stream, factors):
    return {(name, factor): np.array([stream(name, factor, s) for s in SEEDS]) for name in NAMES for factor in factors}


def tabulate_streams(stream, factor):
    streams = streams_of(stream, (1, factor))

    def shown(values):
        return interval(values, ".0f" if values.min() > 10 else ".2g")

    table(
        ["mean square, 24 blocks, 5 seeds", "weights × 1", f"weights × {factor}"],
        [[text, *(shown(streams[name, f]) for f in (1, factor))] for name, text in NAMES.items()],
    )
    return streams


def prove_outer_norm(stream):
    """Prove claim 07-outer-norm."""
    streams = streams_of(stream, (1, 10))
    for name in NAMES:
        ratio = streams[name, 10] / streams[name, 1]
        if name == "pre":
            assert ratio.min() > 50
        else:
            assert np.abs(streams[name, 1] - 49).max() < 15  # about 1 + 2 N
            assert ratio.max() < 1.5
            assert stream(name, 1e-3, 0) < 10  # eps decides


SMALL = {
    "post": "Post-LN",
    "deepnorm": "DeepNorm",
    "pre": "Pre-LN",
    "layernorm_scaling": "LayerNorm scaling",
    "t_fixup": "T-Fixup, no norm",
    "after_branch": "RMSNorm after F",
    "olmo2": "OLMo 2: RMSNorm after F, QK-norm",
}


@cache
def first_steps():
    builds = {name: STACK_PLACEMENTS[name] for name in SMALL}
    builds["after_branch"] = partial(builds["after_branch"], norm=st.RMSNorm)
    return {name: at_start(build, DEPTHS, SEEDS) for name, build in builds.items()}


def tabulate_first_steps():
    table(
        ["effect of one step, median", *(f"N = {k}" for k in DEPTHS)],
        [
            [
                text,
                *(f"{v:.0f}" if v >= 10 else f"{v:.2g}" for v in np.median(first_steps()[name]["step"], 0)),
            ]
            for name, text in SMALL.items()
        ],
    )


def prove_deepnorm_flat():
    """Prove claims 07-deepnorm-flat, 07-olmo-pair."""
    steps = {name: measures["step"] for name, measures in first_steps().items()}
    growth = {name: v[:, -1] / v[:, 0] for name, v in steps.items()}  # (seeds,)
    assert growth["post"].min() > 4
    assert steps["deepnorm"].max() < 2 * steps["deepnorm"].min()
    assert np.median(growth["pre"]) > 3
    assert (growth["layernorm_scaling"] < growth["pre"]).all()
    apart = steps["after_branch"][:, -1] / steps["olmo2"][:, -1]  # (seeds,)
    assert apart.min() > 2
    for key, ratios in (("post", growth["post"]), ("olmo", apart)):
        say(f"{key}_low", ratios.min(), ".0f", noise=1e-4)
        say(f"{key}_high", ratios.max(), ".0f", noise=1e-4)


def prove_gate_first():
    """Prove claim 07-gate-first."""
    stack = untrained(STACK_PLACEMENTS["rezero"], 6, generator(0))
    x = random_tokens(generator(1), 2, 16, 32)
    y = stack(x)
    y.square().mul(torch.linspace(0, 1, 32)).sum().backward()
    branches = [*stack.attention.parameters(), *stack.feed_forward.parameters()]
    assert torch.equal(y, x)
    assert not any(p.grad.any() for p in branches)
    assert stack.placement.alpha.grad.all()


def tabulate_adam():
    table(
        ["effect of Adam's first step, median", *(f"N = {k}" for k in DEPTHS)],
        [[text, *(f"{v:.0f}" for v in np.median(first_steps()[name]["adam"], 0))] for name, text in SMALL.items()],
    )


def prove_adam_grows():
    """Prove claim 07-adam-grows."""
    adam = {}  # how much Adam's first step grows from 3 to 24 blocks
    for key, measures in at_each_place().items():
        middle = np.median(measures["adam"], 0)
        adam[key] = middle[-1] / middle[0]
    at_root = [adam[place, 0.5] for place in PLACES.values()]
    assert min(at_root) > 2
    assert all(0.7 < adam[place, 1.0] < 1.3 for place in PLACES.values())
    say("adam_low", min(at_root), ".1f", noise=1e-4)
    say("adam_high", max(at_root), ".1f", noise=1e-4)
    by_adam = {name: np.median(first_steps()[name]["adam"], 0) for name in ("post", "deepnorm")}
    for name, middle in by_adam.items():
        say(f"adam_{name}", middle[-1] / middle[0], ".1f", noise=1e-4)
    assert by_adam["deepnorm"][-1] > 2 * by_adam["deepnorm"][0]
    assert (by_adam["deepnorm"] < by_adam["post"] / 4).all()


ORDERS = {
    "none": (None, (1.0, 1.0)),
    "before the turn": ("before", (0.5, 2.0)),
    "after the turn": ("after", (0.5, 2.0)),
    "after, without a gain": ("after", (1.0, 1.0)),
}


def arrow(h, place, order, gain):
    """A query or key at its place, with its norm before or after the turn."""
    turn = torch.tensor(np.radians(30.0 * place)).double()
    c, s = turn.cos(), turn.sin()
    matrix = torch.stack([torch.stack([c, s]), torch.stack([-s, c])])
    gain = torch.tensor(gain).double()
    if order == "before":
        h = st.rms_norm(h, gain, eps=0)
    h = h @ matrix
    return st.rms_norm(h, gain, eps=0) if order == "after" else h


def ends(**arrows):
    return {n: np.transpose([(0, 0), tip]) for n, tip in arrows.items()}


PLACES_OF_KEY = range(13)  # a full turn, of 30 degrees for each place
QUERY, KEY = torch.tensor([[3.0, 0.5], [1.8, 1.9]]).double()


def at_place(place, order):
    """The arrows of query and key, and their score, (2,) (2,) ()."""
    q, k = arrow(QUERY, place + 3, *order), arrow(KEY, place, *order)
    return q.numpy(), k.numpy(), (q @ k / 2**0.5).item()


def pairs_move(place, order):
    q, k, score = at_place(place, order)
    ring = [at_place(p, order)[1] for p in np.linspace(0, 12, 49)]
    along = [at_place(p, order)[2] for p in PLACES_OF_KEY]
    at, low, high = (f"{value:z.2f}".replace("-", "−") for value in (score, min(along), max(along)))
    sentence = (
        f"With the key at place {place} and the query at {place + 3}, the score is {at}. Over all places it goes from "
        f"{low} to {high}."
    )
    return sentence, [
        {"ring": np.transpose(ring), **ends(q=q, k=k)},
        {"all": (PLACES_OF_KEY, along), "now": ([place], [score])},
    ]


def draw_qk_order():
    live.chart(
        "qk-order",
        "A query and a key of two features, three tokens apart, on their way along the text; gains of "
        "QK-norm: 0.5 and 2",
        [
            live.slider("place", "place of the key", PLACES_OF_KEY, 0, play=True),
            live.choice("order", "QK-norm", ORDERS, ORDERS["after the turn"]),
        ],
        [
            live.Lines(
                live.Axis("first feature", limits=(-4.2, 4.2)),
                live.Axis("second feature", limits=(-3.2, 3.2)),
                {
                    "ring": live.Curve("the key's way", figures.GREY, ":"),
                    "q": live.Curve("query", figures.BLUE, marks="too"),
                    "k": live.Curve("key", figures.ORANGE, marks="too"),
                },
                equal=True,
            ),
            live.Lines(
                live.Axis("place of the key", limits=(0, 12)),
                live.Axis("score", limits=(-1, 6)),
                {
                    "all": live.Curve("at every place", figures.GREY, marks="only"),
                    "now": live.Curve("now", figures.GREEN, marks="only"),
                },
            ),
        ],
        pairs_move,
        "Two panels, for a norm after the turn. Left, a query and a key as arrows from the origin, and the "
        "way of the key's tip: an upright "
        "ellipse. Right, the score against the place of the key: it goes up and down twice on a full turn.",
        side=2,
    )


def rotate(h, shift=0):  # pairs of neighbours, each at a rate of its own
    t = torch.arange(h.shape[-2]).double()[:, None] + shift
    angle = t * 100.0 ** -torch.arange(0, 1, 2 / h.shape[-1])
    a, b = h[..., 0::2], h[..., 1::2]
    pair = a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()
    return torch.stack(pair, -1).flatten(-2)


def prove_qk_order(scores):
    """Prove claims 07-qk-order, 07-qk-bound."""

    def score(order, shift, gain):
        """The score of query 6 and key 3, with both positions shifted."""
        if order == "before":
            a, b = (rotate(st.rms_norm(h, gain, eps=0), shift) for h in (q, k))
        else:
            a, b = (st.rms_norm(rotate(h, shift), gain, eps=0) for h in (q, k))
        return (a[6] @ b[3]).item() / 4

    q, k = torch.randn(2, 8, 16, generator=generator(2), dtype=torch.float64)
    gain = torch.tensor([0.5, 2.0]).double().repeat(8)
    paired = torch.tensor([0.5, 0.5, 2.0, 2.0]).double().repeat(4)
    CASES = {
        "no gain, after": ("after", None),
        "gain before": ("before", gain),
        "gain after": ("after", gain),
        "gain after, equal in each pair": ("after", paired),
    }
    for case, (order, g) in CASES.items():
        moves = np.ptp([score(order, shift, g) for shift in (0, 5, 50)])
        assert moves > 0.5 if case == "gain after" else moves < 1e-9
    np.testing.assert_allclose(score("after", 5, None), score("before", 5, None), atol=1e-9)
    for name, order in ORDERS.items():
        moves = np.ptp([at_place(place, order)[2] for place in PLACES_OF_KEY])
        assert moves > 0.5 if name == "after the turn" else moves < 1e-9
    before = scores(q, k, gain, gain)[6, 3].item()
    np.testing.assert_allclose(before, score("before", 0, gain), rtol=1e-4)
    long = scores(1000 * q, q, torch.ones(16), torch.ones(16))
    assert 3.9 < long.abs().max() <= 16**0.5
    one = torch.eye(16)[[1]].double()  # a query, and a key, along a gain of 2
    largest = scores(one, one, gain, gain).abs().max().item()
    np.testing.assert_allclose(largest, 16**0.5 * 2 * 2, rtol=1e-3)
    assert scores(1000 * q, q, gain, gain).abs().max() <= 16**0.5 * 2 * 2


def prove_starts_as_pre_ln():
    """Prove claim 07-starts-as-pre-ln."""
    x, norm = random_tokens(generator(1), 2, 16, 32), partial(st.LayerNorm, eps=0)
    outputs = {
        name: untrained(partial(STACK_PLACEMENTS[name], norm=norm), 12, generator(0))(x)
        for name in ("pre", "hyper_connections", "attention_residuals", "parallel")
    }
    for name, y in outputs.items():
        assert torch.allclose(y, outputs["pre"], rtol=0, atol=1e-9) == (name != "parallel")


def prove_doubly_stochastic():
    """Prove claim 07-doubly-stochastic."""
    mixes = torch.randn(5, 60, 4, 4, generator=generator(3), dtype=torch.float64)
    products = {"free": [], "doubly stochastic": []}
    for mix in mixes:
        for key, factors in (
            ("free", torch.eye(4) + 0.3 * mix),
            ("doubly stochastic", st.placements.sinkhorn(mix)),
        ):
            product = torch.linalg.multi_dot(list(factors))
            products[key].append(torch.linalg.matrix_norm(product, ord=2).item())
    assert min(products["free"]) > 10
    np.testing.assert_allclose(products["doubly stochastic"], 1, atol=0.02)


@cache
def trained():
    """The record, the last losses of each placement, by the median loss, and the placements still at chance."""
    record = after_pre_ln.recorded()
    last = {name: rows[:, -1] for name, rows in record["loss"].items()}
    last = {name: last[name] for name in sorted(last, key=lambda name: np.median(last[name]))}
    return record, last, [name for name in last if np.median(last[name]) > record["chance"] - 0.1]


def scheme_names():
    """The names of the placements in the literature."""
    schemes = [name for _, names, _ in TREE for name in names.split(", ")]
    written = {"".join(filter(str.isalnum, name.lower())): name for name in schemes}
    written |= {"pre": "Pre-LN", "post": "Post-LN", "parallel": "parallel blocks"}
    written |= {"droppath": "stochastic depth", "afterbranch": "after the branch"}
    return {name: written[name.replace("_", "")] for name in trained()[1]}


def draw_losses():
    record, last, _ = trained()
    order = list(last)
    fig, ax = plt.subplots(figsize=(7.2, 5.6))
    for row, name in enumerate(order):
        values = last[name]
        color = figures.LOOKS[name]["color"] if name in ("pre", "post") else figures.GREY
        ax.plot([values.min(), values.max()], [row, row], color=color, lw=1.5)
        ax.plot(np.median(values), row, "o", color=color)
    ax.axvline(record["chance"], **figures.LOOKS["theory"])
    figures.name(ax, "chance", (record["chance"], 1), shift=(-6, 0))
    below = sum(values.max() < record["chance"] for values in last.values())
    figures.title(fig, f"After 120 steps, {below} of {len(order)} are below chance with every seed")
    ax.set(xlabel="loss after 120 steps (nats)", xticks=(2.5, 2.75, 3, 3.25))
    figures.rows(ax, list(scheme_names().values()), [last[name].min() for name in order], size=9)
    for name in ("pre", "post"):
        ax.get_yticklabels()[order.index(name)].set_color(figures.ink(figures.LOOKS[name]["color"]))
    figures.show(
        fig,
        alt=f"The loss of {len(order)} placements after 120 steps, each with the range of three seeds, sorted. "
        "All but two lie close together, far below the dotted "
        "line of chance. Post-LN is at the line, and nGPT without its scale of the scores above it.",
    )


def prove_most_train():
    """Prove claims 07-most-train, 07-longer."""
    record, last, at_chance = trained()
    assert sorted(at_chance) == ["ngpt", "post"]
    others = np.concatenate([last[name] for name in last if name not in at_chance])
    assert others.max() < record["chance"] - 0.25
    longer = record["longer_loss"]
    assert np.median(longer["ngpt"][:, -1]) < record["chance"] - 0.2
    assert np.median(longer["post"][:, -1]) > record["chance"] - 0.1
    medians = [np.median(last[name]) for name in last if name not in at_chance]
    spread = [np.ptp(rows) for rows in last.values()]
    assert set(last) == set(STACK_PLACEMENTS)
    say("rate", record["learning_rate"], ".3f")
    say("blocks", record["blocks"], ".0f")
    say("steps", record["steps"][-1], ".0f")
    say("seeds", np.median(spread), ".2f", noise=1e-4)
    say("half", np.median(medians) - np.min(medians), ".2f", noise=1e-4)
    say("longer_post", np.median(longer["post"][:, -1]), ".1f", noise=1e-4)
    say("longer_ngpt", np.median(longer["ngpt"][:, -1]), ".1f", noise=1e-4)


def prove_paired():
    """Prove claim 07-paired."""
    _, last, at_chance = trained()
    rows = np.array([last[name] for name in last if name not in at_chance])
    first, second = np.triu_indices(len(rows), 1)
    signs = np.sign(rows[first] - rows[second])  # (pairs, seeds)
    same = np.abs(signs.sum(axis=1)) == 3
    ranks = rows.argsort(axis=0).argsort(axis=0)  # (placements, seeds)
    assert np.corrcoef(ranks.T).min() > 0.9
    assert same.mean() > 0.8
    say("same_order", 100 * same.mean(), ".0f")


TREE = [
    (2016, "stochastic depth", "gate"),
    (2017, "Post-LN", "norm"),
    (2019, "Fixup", "constant"),
    (2019, "ScaleNorm", "instead"),
    (2020, "SkipInit", "gate"),
    (2020, "Admin", "constant"),
    (2020, "T-Fixup", "constant"),
    (2020, "QK-norm", "attention"),
    (2021, "ReZero", "gate"),
    (2021, "LayerScale", "gate"),
    (2021, "sandwich", "norm"),
    (2021, "parallel blocks (GPT-J)", "norm"),
    (2022, "Swin v2", "norm"),
    (2022, "ConvNeXt's LayerNorm", "instead"),
    (2022, "DeepNorm", "constant"),
    (2022, "adaLN-Zero", "gate"),
    (2023, "B2T", "norm"),
    (2023, "ResiDual", "streams"),
    (2024, "hyper-connections", "streams"),
    (2024, "value residual", "attention"),
    (2024, "Mix-LN", "norm"),
    (2024, "OLMo 2", "norm"),
    (2025, "nGPT", "instead"),
    (2025, "Peri-LN", "norm"),
    (2025, "LayerNorm scaling", "constant"),
    (2025, "DyT, Derf", "instead"),
    (2025, "mHC", "streams"),
    (2026, "attention residuals", "streams"),
]


FAMILIES = {
    "norm": ("the norm moves", figures.BLUE),
    "constant": ("a constant scales", figures.ORANGE),
    "gate": ("a gate scales", figures.GREEN),
    "attention": ("inside attention", figures.PINK),
    "streams": ("more streams", figures.BLACK),
    "instead": ("instead of the norm", figures.GREY),
}


def draw_family_tree():
    fig, ax = plt.subplots(figsize=(figures.PHONE, 7.2))
    names = []
    for key, (family, color) in FAMILIES.items():
        ax.text(2015.6, len(names), family, weight="bold", color=figures.ink(color), va="center")
        schemes = [(year, name) for year, name, its in TREE if its == key]
        ax.plot([year for year, _ in schemes], range(len(names) + 1, len(names) + 1 + len(schemes)), "o", color=color)
        names += ["", *(name for _, name in schemes)]
    ax.set(xlim=(2015.5, 2026.5), xticks=range(2016, 2027, 3))
    year_of = {name: year for year, name, _ in TREE}
    figures.rows(ax, names, [year_of.get(name, np.nan) for name in names], size=9.5)
    streams = [year for year, _, family in TREE if family == "streams"]
    figures.title(fig, f"No scheme with more streams before {min(streams)}")
    figures.show(
        fig,
        alt="A chart with the years from 2016 to 2026 from left to right, and a row for each scheme, in six families: "
        "the norm moves, a constant scales, a gate scales, inside attention, more "
        "streams, instead of the norm. Gates and constants are mostly older, from 2016 to 2022; more "
        "streams come mostly after 2023; norms move throughout.",
        dpi=100,
    )


def prove_four_knobs():
    """Prove claim 07-four-knobs."""
    # rows are not placements: Peri-LN has the sandwich's class, and DyT and Derf share a row
    say("instead", sum(family == "instead" for *_, family in TREE), ".0f")
    assert {family for *_, family in TREE} == set(FAMILIES)
