"""Figures and proofs of chapter 09, When norms go wrong."""

import textwrap
from functools import cache, partial

import numpy as np
import torch

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm_lab import chapters, figures, live, museum, stories
from subnorm_lab.experiments import accuracy, conventions, precision
from subnorm_lab.experiments.conventions import CONVENTIONS, norm
from subnorm_lab.experiments.precision import FORMATS, VARIANCES, treated
from subnorm_lab.report import say, table
from subnorm_lab.stories.torch import Stories

ROUNDED = {
    "float32": (precision.rms_norm_inside, "float32"),
    "bfloat16": (precision.rms_norm_inside, "bfloat16"),
    "float16 (widened)": (precision.rms_norm_widened, "float16"),
    "float16": (precision.rms_norm_inside, "float16"),
}


def rounded_model(name, size):
    """The model in a number format, with a stream that is so many times as large."""
    how, fmt = ROUNDED[name]
    return treated(stories.load(), how, FORMATS[fmt], size)


def losses(model, count=12):
    with np.errstate(invalid="ignore"):  # infinite scores
        return stories.losses(model, stories.beginnings()[:count])


def begin():
    chapters.begin()
    return stories.load(), stories.beginnings(), rounded_model


def opening(model, tokens=14):
    with np.errstate(invalid="ignore"):
        return stories.generate(model, tokens=tokens)


RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SIZES = {f"2{str(k).translate(RAISED)}": 2.0**k for k in (-8, -6, 0, 4, 5, 6, 8, 12, 13)}


@cache
def losses_and_openings():
    """The losses of the model on four texts, and what it says, by format and size."""
    return {
        (name, size): (losses(p, 4), opening(p))
        for name in ROUNDED
        for size in SIZES.values()
        for p in [rounded_model(name, size)]
    }


def draw_sizes():
    usual = losses_and_openings()["float32", 1.0][1]
    sizes = list(SIZES.values())

    def cell(name, size):
        loss, said = losses_and_openings()[name, size]
        if np.isnan(loss).any():
            return "NaN", figures.PINK
        if said == usual:
            return "✓", figures.GREEN
        return ("✗", figures.ORANGE) if said else ("–", figures.BLACK)

    def frame(size):
        """What each format says, formats that say the same together."""
        told = {}
        for name in ROUNDED:
            loss, said = losses_and_openings()[name, size]
            words = "NaN" if np.isnan(loss).any() else textwrap.shorten(said, 22, placeholder=" …") or "nothing"
            told.setdefault(words, []).append(name)
        says = "; ".join(
            f"{'all' if len(names) == len(ROUNDED) else ', '.join(names)}: {words}" for words, names in told.items()
        )
        return f"{says}.", [sizes.index(size)]

    live.chart(
        "sizes",
        "The same model with a stream of a different size, in four number formats",
        [live.slider("size", "factor on the stream", SIZES, 2.0**8)],
        [
            live.Grid(
                "✓ usual story, ✗ another, – silence, NaN: NaN loss",
                list(ROUNDED),
                list(SIZES),
                [[cell(name, size) for size in sizes] for name in ROUNDED],
                corner="size ×",
                by="column",
            )
        ],
        frame,
        alt="A grid of four number formats by nine sizes of the stream, from two to the minus eight to two to the "
        "thirteen. At the smallest size all four tell a different story. float32 and bfloat16 tell the usual story at "
        "all other sizes. float16 is silent from two to the sixth on. With widened norms it is right up to two to the "
        "twelfth, and NaN at two to the thirteen.",
    )


def prove_eps_everywhere(first_bad):
    """Prove claims 09-eps-everywhere, 09-zeros, 09-widen, 09-stream, 09-victim, 09-bfloat16-range."""
    model, texts, half = stories.load(), stories.beginnings(), FORMATS["float16"]
    usual = losses_and_openings()["float32", 1.0][1]
    guess = np.log(512)
    tiny, zero, silent, full = (2.0**k for k in (-8, 0, 8, 13))
    for name in ROUNDED:
        assert losses(rounded_model(name, tiny)).min() > 4
        assert (losses(rounded_model(name, zero)) - losses(model) < 0.02).all()
    x = np.array([300.0, -300.0, 300.0, -300.0])
    mean_square = half(x * x).mean()
    assert np.isinf(mean_square)
    assert (x / np.sqrt(mean_square + 1e-5) == 0).all()
    squares = torch.full((4096,), 5.0).half().square()
    assert squares.isfinite().all()
    assert squares.sum().isinf()
    assert np.allclose(losses(rounded_model("float16", silent)), guess, atol=1e-12, rtol=0)
    good = stories.stream(rounded_model("float32", silent), texts[0])
    assert 0 < np.abs(good).max() < 4000 < 65504
    widened = losses(rounded_model("float16 (widened)", 2.0**12))
    assert np.abs(widened - losses(model)).max() < 0.02
    broken = rounded_model("float16 (widened)", full)
    assert np.isnan(losses(broken)).all()
    assert {first_bad(broken, text) for text in texts} == {("sublayer 10", "token 0", "infinite")}
    for size in SIZES.values():
        wide, short = (losses_and_openings()[name, size][1] for name in ("float32", "bfloat16"))
        assert (short == usual) == (wide == usual)
        if size >= silent:
            assert losses_and_openings()["float16", size][1] == "" != usual
    for name in ("float32", "bfloat16"):
        assert np.isfinite(losses(rounded_model(name, full))).all()
        assert losses_and_openings()[name, full][1] == usual
    sizes = np.abs(stories.stream(model, texts[0])).max(axis=-1)  # (11, T)
    say("first_over_rest", sizes[-1, 0] / np.median(sizes[-1, 1:]), ".0f")


def prove_hooks():
    """Prove claim 09-hooks."""
    model, texts = stories.load(), stories.beginnings()
    twin = Stories(model).half()
    with torch.no_grad():
        for name, weight in twin.named_parameters():
            if name.endswith((".o", ".down", "embedding")):
                weight *= 2.0**13
    where = {st.first_non_finite(twin, torch.tensor(text)) for text in texts}
    assert where == {"output of branches.9", "input of norms.10"}
    with torch.no_grad():
        assert twin(torch.tensor(texts[0]))[0].isnan().all()
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    ones = torch.ones(2, 5, 16)
    assert st.first_non_finite(encoder, ones) is None
    with torch.no_grad():
        encoder.layers[1].linear1.weight[0, 0] = torch.nan
    assert st.first_non_finite(encoder, ones) == "output of layers.1.linear1"


MEANS = np.array([1.0, 10.0, 100.0, 1e3, 1e4, 1e5])


@cache
def errors():
    """The median error of each variance in float32, by seed and mean."""

    def median(way, seed):
        return np.median(np.abs(precision.variance_errors(way, FORMATS["float32"], MEANS, seed)), axis=1)

    return {way: np.array([median(way, seed) for seed in range(5)]) for way in VARIANCES}


def draw_one_pass():
    live.sketch(
        "one-pass",
        "Relative error of the one-pass variance in float32",
        live.Axis(
            "mean of the features, in standard deviations",
            log=True,
            limits=(1, 1e5),
        ),
        live.Axis("relative error", log=True, limits=(1e-8, 1e4)),
        (MEANS, errors()["one pass"]),
        list(MEANS),
        alt="Relative error against the mean, both axes logarithmic. The measured line rises by two powers of "
        "ten for each power of "
        "ten of the mean, and passes 1 between a thousand and ten thousand.",
    )


SHIFTS = (0.0, 1.0, 10.0, 100.0, 1000.0, 10_000.0)


def cell(loss):
    return "NaN" if np.isnan(loss).any() else f"{loss.mean():.2f}"


@cache
def shifted():
    """The losses of the model with LayerNorms, by way to a variance and shift."""
    found = {}
    for way in VARIANCES:
        layer = partial(precision.layer_norm_by, way)
        shiftings = [treated(stories.load(), layer, FORMATS["float32"], shift=shift) for shift in SHIFTS]
        found[way] = [losses(model, 3) for model in shiftings]
    return found


def tabulate_shifted():
    table(
        ["shifted by", *(f"{s:.0f}" for s in SHIFTS)],
        [[way, *map(cell, found)] for way, found in shifted().items()],
    )


def prove_one_pass():
    """Prove claims 09-one-pass, 09-two-pass, 09-shift."""
    one, two, running = errors().values()  # (seeds, means)
    growth = one[:, 2:5] / one[:, 1:4]
    assert ((growth > 30) & (growth < 300)).all()
    assert (one[:, -1] > 1).all()
    assert two.max() < 1e-4
    assert running.max() < 1e-2
    signs = precision.variance_errors("one pass", FORMATS["float32"], [1e5], 0)
    assert (signs < -1).any()

    fails = [np.isnan(loss).any() for loss in shifted()["one pass"]]
    assert fails == [False] * 4 + [True] * 2
    assert np.isnan(shifted()["one pass"][4]).all()
    say("one_pass_fails", SHIFTS[fails.index(True)], ".0f")
    for way in ("two passes", "Welford"):
        moved = np.array(shifted()[way]) - shifted()[way][0]
        assert np.abs(moved).max() < 0.05


def prove_eps_lost():
    """Prove claims 09-eps-lost, 09-rms-immune."""
    half, float32, row = FORMATS["float16"], FORMATS["float32"], np.zeros(4)
    least = 2.0**-24  # of float16's positive numbers
    assert half(least) == least
    assert half(least / 2) == 0 == half(1e-12)
    one_row = torch.zeros(1, 4, dtype=torch.float16)
    eps16 = torch.tensor(1e-12).half()
    by_hand = one_row * torch.rsqrt((one_row * one_row).mean(-1) + eps16)
    assert torch.isnan(by_hand).all()
    for eps, lost in [(1e-12, True), (1e-8, True), (1e-7, False), (1e-5, False)]:
        y = precision.rms_norm_inside(row, np.ones(4), half, eps)
        assert np.isnan(y).all() == lost
        assert (precision.rms_norm_widened(row, np.ones(4), half, eps) == 0).all()
    big = np.random.default_rng(0).normal(1e4, 1, (9, 64))
    exact = sn.rms_norm(big, eps=0)
    narrow = precision.rms_norm_inside(float32(big), np.ones(64), float32, 0.0)
    assert np.abs(narrow - exact).max() < 1e-6


ORDERS = {
    "gain, then round": precision.rms_norm_widened,
    "round, then gain": precision.rms_norm_narrowed_first,
    "round every step": precision.rms_norm_inside,
}


def prove_orders():
    """Prove claim 09-orders."""
    model, texts, bfloat16 = stories.load(), stories.beginnings(), FORMATS["bfloat16"]
    for order in ORDERS.values():
        assert np.abs(losses(treated(model, order, bfloat16)) - losses(model)).max() < 0.02
    states = [bfloat16(stories.stream(model, text)[:-1]) for text in texts]  # (10, T, d)
    gains = model.gains[:-1, None, :]  # (10, 1, d)
    once, twice = ORDERS["gain, then round"], ORDERS["round, then gain"]
    shares = [(twice(x, gains, bfloat16) != once(x, gains, bfloat16)).mean() for x in states]
    assert 0.1 < min(shares) < max(shares) < 0.4
    say("orders_differ", 100 * np.mean(shares), ".0f", 1e-3)


def prove_conventions():
    """Prove claims 09-conventions, 09-ddof."""
    token = np.array([1.0, 0.0, 0.0, 0.0])
    theirs, copied = norm(token, eps=0.0), norm(token, eps=0.0, ddof=1)
    assert np.isclose(theirs[0] / copied[0], np.sqrt(4 / 3), rtol=1e-12, atol=0)
    wide = np.random.default_rng(0).standard_normal(512)
    ratio = norm(wide, eps=0.0)[0] / norm(wide, eps=0.0, ddof=1)[0]
    assert 1 < ratio < 1.001
    apart = {name: min(conventions.difference(c, seed) for seed in range(5)) for name, c in CONVENTIONS.items()}
    assert min(apart.values()) > 0.005
    say("conventions", len(CONVENTIONS), ".0f")
    say("over_copied", theirs[0] / copied[0], ".2f")


def prove_silent_branch(norm_first):
    """Prove claim 09-silent-branch."""
    x = np.random.default_rng(0).normal(0, 10, (4, 6))
    out = norm_first(x, lambda h: 0 * h, sn.rms_norm)
    assert out.shape == x.shape
    assert np.isfinite(out).all()
    assert not np.allclose(out, x, rtol=0.1, atol=0.1)
    assert np.array_equal(sn.pre_ln(x, lambda h: 0 * h, sn.rms_norm), x)
    assert not museum.norm_first(norm_first)
    say("exhibits", len(museum.EXHIBITS), ".0f")


def tabulate_formats():
    table(
        [
            "",
            "digits",
            "largest",
            "least normal",
            "least",
            "1 + ... is more than 1",
        ],
        [
            [
                name,
                fmt.digits,
                f"{fmt.largest:.1e}",
                f"{2.0**fmt.least:.1e}",
                f"{2.0 ** (fmt.least - fmt.digits + 1):.1e}",
                f"{2.0 ** (1 - fmt.digits):.1e}",
            ]
            for name, fmt in FORMATS.items()
            if name != "float64"
        ],
    )


@cache
def half_sums():
    """How wrong a variance is, in words, by format, way and mean."""
    rows = []
    for name in ("float32", "bfloat16", "float16"):
        for way in VARIANCES:
            found = [precision.variance_errors(way, FORMATS[name], [1.0, 10.0, 100.0], s) for s in range(5)]
            typical = np.median(np.abs(found), axis=(0, 2))  # (means,)
            rows.append(
                [
                    name,
                    way,
                    *("under 5 %" if t < 0.05 else "over 100 %" if t > 1 else "5 to 100 %" for t in typical),
                ]
            )
    return rows


def tabulate_half_sums():
    table(["format", "variance", "mean 1", "mean 10", "mean 100"], half_sums())


def prove_half_sums():
    """Prove claim 09-half-sums."""
    told = {(name, way): cells for name, way, *cells in half_sums()}
    assert told["float32", "one pass"] == ["under 5 %"] * 3
    assert told["bfloat16", "one pass"][1] == "over 100 %"
    assert told["bfloat16", "two passes"][2] == "over 100 %"
    assert told["bfloat16", "Welford"] == ["under 5 %"] * 3


def tabulate_exact_norms():
    record = accuracy.recorded()
    table(
        ["error, in units of the last digit", "mean 0", "mean 1000", "mean 10⁶"],
        [[name, *(f"{e:,.0f}" if e > 10 else f"{e:.1f}" for e in errors)] for name, errors in record["errors"].items()],
    )


def prove_exact_norms():
    """Prove claim 09-exact-norms."""
    recorded = {name: errors[-1] for name, errors in accuracy.recorded()["errors"].items()}
    assert all(recorded[name] < 4 for name in ("sn.layer_norm", "st.layer_norm"))
    assert all(recorded[name] > 1e4 for name in set(recorded) - {"sn.layer_norm", "st.layer_norm"})
    again = {
        name: accuracy.error(norm, accuracy.rows_about(accuracy.MEANS[-1]))
        for name, norm in accuracy.installed_norms().items()
    }
    assert again["sn.layer_norm"] < 4
    assert again["st.layer_norm"] < 4
    assert again["F.layer_norm"] > 1e4
