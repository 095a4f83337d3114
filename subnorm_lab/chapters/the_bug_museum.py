"""Figures and proofs of deep dive 09a, The bug museum."""

from collections import Counter
from functools import cache

import matplotlib.pyplot as plt
import numpy as np

from subnorm.numpy import layer_norm
from subnorm_lab import figures, live, museum, stories
from subnorm_lab.report import say
from subnorm_lab.stories import altered


def begin():
    figures.use_style()


ROOMS = ("in the statistics", "in the block", "in the gains", "in the gradient")


#: The norms that open the page: the title of the exhibit there, and the function's arguments after x.
SHOWN = {
    "rms_norm": ("An RMSNorm for Llama", (1.0, 1e-5)),
    "unit_rms": ("An RMSNorm without a gain", (1e-5,)),
    "affine_norm": ("The LayerNorm that everybody copied", (1.0, 1e-5)),
    "one_read_norm": ("A LayerNorm that reads once", (1e-5,)),
    "root_mean_square": ("A LayerNorm with an option", (1.0, 1e-5)),
    "block_variance": ("A kernel and its lanes", (8,)),
}
TIDY = layer_norm(np.array([2.0, 4.0, 6.0, 12.0]), eps=0.0)  # mean 0, size 1
TESTED = {
    "mean 0, size 1": TIDY,
    "mean 10": TIDY + 10,
    "mean 10 000": TIDY + 10_000,
    "size 0.001": TIDY / 1000,
}


def wrong_by(exhibit, x, rest):
    """How far the bug is from the right values, as a share of the largest."""
    x = x.astype(np.float32)
    right = np.asarray(exhibit.fixed(x, *rest))
    return float(np.abs(exhibit.bug(x, *rest) - right).max() / np.abs(right).max())


def draw_hiding():
    def frame(token):
        rows, hidden = [], []
        for name, (title, rest) in SHOWN.items():
            exhibit = getattr(museum, name)
            number = str(museum.EXHIBITS.index(exhibit) + 1)
            error = wrong_by(exhibit, TESTED[token], rest)
            if error < 0.005:
                hidden.append(number)
            rows.append((number, title, min(error, 1.0), False))
        return f"A test with this token misses {len(hidden)} of six bugs: {', '.join(hidden)}.", [rows]

    live.chart(
        "hiding",
        "The error of six exhibits, as a share of the right values, cut at 1",
        [live.choice("token", "a token with", list(TESTED), "mean 10")],
        [live.Bars("exhibit, and its error", len(SHOWN))],
        frame,
        alt="Six bars, one for each bug, on a token of mean 10. Three are full. That of exhibit 5 is short, and those "
        "of exhibits 3 and 6 have no length.",
    )


BEGINNINGS = {0: 5, 3: 5, 8: 9}  # three of the texts, and how many tokens of each the model reads first


def draw_one_character():
    """Exhibit 4, in a trained model."""
    model, _, bugs = patients()
    sick = bugs["divided by rstd"]
    texts = stories.texts()

    def frame(storyteller):
        rows = []
        for k, first in BEGINNINGS.items():
            begun = storyteller.tokenizer.decode(texts[k][:first]).strip()
            story = stories.generate(storyteller, begun, tokens=24)
            rows.append(("", f"{story[:32].rstrip()} …", stories.loss(storyteller, texts[k]), storyteller is model))
        losses = [loss for _, _, loss, _ in rows]
        low, high = (live.number(bound(losses)) for bound in (min, max))
        sign = "*" if storyteller is model else "/"
        return f"With x {sign} rstd at its norms, the model's loss is {low} to {high} nats.", [rows]

    live.chart(
        "one-character",
        "How a trained model goes on with three texts",
        [live.choice("storyteller", "the norm returns", {"x / rstd": sick, "x * rstd": model}, sick)],
        [live.Bars("its story; bar: its loss (shorter is better)", len(BEGINNINGS), full=6.5)],
        frame,
        alt="Three stories, each above a bar. With the bug each story repeats one word or letter, as in once upon a "
        "time time time, and its bar is long.",
    )


def draw_years():
    """The number of each exhibit, stacked where a room has several of a year."""
    fig, ax = plt.subplots(figsize=(6.4, 2.7))
    years = []
    for room, shown in enumerate(museum.ROOMS):
        seen = Counter()
        for exhibit in vars(shown).values():
            if isinstance(exhibit, museum.Exhibit):
                height = room - 0.2 + 0.4 * seen[exhibit.year]
                seen[exhibit.year] += 1
                years.append(exhibit.year)
                dot = {"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": figures.BLUE}
                ax.text(exhibit.year, height, str(len(years)), ha="center", va="center", bbox=dot)
    recent = sum(year >= 2021 for year in years)
    figures.title(fig, f"{recent} of {len(years)} bugs were reported in 2021 or later")
    ax.set(xlabel="year of the report", xlim=(2016.5, 2026.5), xticks=range(2017, 2027, 3))
    figures.rows(ax, ROOMS)
    figures.show(
        fig,
        alt="The numbers of the 21 bugs, by the year of their report, 2017 to 2026, in four rows: eight in the "
        "statistics, seven in the block, four in the gains, two in the gradient. Most are from 2021 on.",
    )


def prove_tests_tell():
    """Prove claim 09a-tests-tell."""
    with np.errstate(all="ignore"):
        for exhibit in museum.EXHIBITS:
            assert not exhibit.test(exhibit.bug)
            assert exhibit.test(exhibit.fixed)
    say("exhibits", len(museum.EXHIBITS), ".0f")
    years = [exhibit.year for exhibit in museum.EXHIBITS]
    assert (min(years), max(years)) == (2017, 2026)


def over_tokens(x, gamma):
    return gamma * museum.token_norm.bug(x[None], 1e-5)[0]


def divided(x, gamma):
    return gamma * museum.unit_rms.bug(x, 1e-5)


@cache
def patients():
    """The trained model, the beginnings of twelve texts, and the model with each bug."""
    model = stories.load()
    texts = stories.beginnings()

    def reads(norm):
        return altered(model, norm=lambda x, gamma: norm(x, gamma, 1e-5))

    bugs = {
        "d - 1 in the variance": reads(museum.affine_norm.bug),
        "eps outside the root": reads(museum.rms_norm.bug),
        "RMS by the variance": reads(museum.root_mean_square.bug),
        "no final norm": altered(model, norm=lambda x, gamma: x, at=[10]),
        "divided by rstd": altered(model, norm=divided),
        "normalised skip": altered(model, place=museum.norm_first.bug),
        "gain read as 1 + w": reads(museum.gemma_norm.fixed),
        "over the sentence": altered(model, norm=over_tokens),
    }
    return model, texts, bugs


@cache
def compared():
    """What each bug is compared with, and how much it raises the loss of each text."""
    model, texts, bugs = patients()
    well = dict.fromkeys(bugs, model)
    well["d - 1 in the variance"] = altered(model, norm=layer_norm)
    return well, {
        name: np.array([stories.loss(sick, t) - stories.loss(well[name], t) for t in texts])
        for name, sick in bugs.items()
    }


def draw_rises():
    _, rises = compared()
    fig, ax = plt.subplots(figsize=(6.4, 3.2))
    for y, found in enumerate(rises.values()):
        ax.plot(found, np.full(12, y), "o", color=figures.ORANGE if found.min() > 3 else figures.GREY, alpha=0.5)
    figures.name(ax, "these hide", (0, 1), figures.GREY, (24, 0))
    hidden = [found.max() for found in rises.values() if found.min() < 3]
    figures.title(fig, f"{len(hidden)} of {len(rises)} bugs raise the loss by {max(hidden):.2f} nats at most")
    ax.set(
        xlabel="rise of the loss (nats), a mark for each of 12 texts",
        xticks=range(0, 10, 2),
    )
    figures.rows(ax, [bug.replace(" - ", " − ") for bug in rises], [found.min() for found in rises.values()])
    figures.show(
        fig,
        alt="The rise of the loss for eight bugs, with twelve marks each. Three lie on zero and the missing final norm "
        "just beside it. The division by rstd, the normalised skip, the gain read as one plus w, and the norm "
        "over the sentence lie far to the right, beyond three nats.",
    )


FIRST, LONG = 14, 256  # tokens


def show_first_words():
    _, _, bugs = patients()
    for name, sick in bugs.items():
        said = stories.generate(sick, tokens=FIRST)
        print(f"{name:22} {said or '(nothing)'}")


def prove_quiet():
    """Prove claims 09a-quiet, 09a-loud, 09a-no-final-norm."""
    (model, _, bugs), (well, rises) = patients(), compared()
    quiet = list(bugs)[:3]
    loud = list(bugs)[4:]
    usual = stories.generate(model, tokens=FIRST)
    for name in quiet:
        assert np.abs(rises[name]).max() < 0.03
    assert 0 < rises["no final norm"].min() < rises["no final norm"].max() < 0.4
    for name in (*quiet, "no final norm"):
        assert stories.generate(bugs[name], tokens=FIRST) == usual
    for name in loud:
        assert rises[name].min() > 3
        assert stories.generate(bugs[name], tokens=FIRST) != usual

    def first_other_word(sick, sound):
        """Of two long stories, counted from 1; None if they are the same."""
        both = [stories.generate(m, tokens=LONG).split() for m in (sick, sound)]
        if both[0] == both[1]:
            return None
        return next(k for k, (a, b) in enumerate(zip(*both, strict=False), 1) if a != b)

    others = {name: first_other_word(bugs[name], well[name]) for name in (*quiet, "no final norm")}
    same = [name for name, word in others.items() if word is None]
    assert same == ["eps outside the root"]
    undivided = altered(model, norm=lambda x, gamma: gamma * x, at=[10])
    assert first_other_word(undivided, model) is None
    say("first", FIRST, ".0f")
    say("long", LONG, ".0f")
    for key, name in (
        ("d_word", "d - 1 in the variance"),
        ("rms_word", "RMS by the variance"),
        ("final_word", "no final norm"),
    ):
        say(key, others[name], ".0f")
    say("no_final_norm", rises["no final norm"].mean(), ".2f")
