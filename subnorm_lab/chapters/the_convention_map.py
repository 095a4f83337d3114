"""Figures and proofs of deep dive 09b, The convention map."""

from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

from subnorm_lab import figures, live
from subnorm_lab.experiments import conventions
from subnorm_lab.experiments.conventions import CONVENTIONS, norm
from subnorm_lab.report import say, table


def begin():
    torch.set_num_threads(1)
    figures.use_style()


READINGS = {
    "PyTorch's LayerNorm": {},
    "RMSNorm": {"centre": False},
    "d − 1 in the variance": {"ddof": 1},
    "a gain stored less 1": {"gain_plus": 1.0},
}


def draw_four_readings():
    """One token and one stored gain, read by four norms."""
    x, gain = np.array([2.0, 4.0, 6.0, 12.0]), np.array([0.5, 1.0, 1.5, 1.0])
    fig, axes = plt.subplots(1, 4, figsize=(7.6, 2.6), sharey=True)
    colours = (figures.BLUE, figures.ORANGE, figures.GREY, figures.GREY)
    for ax, (name, choice), colour in zip(axes, READINGS.items(), colours, strict=True):
        ax.bar(range(1, 5), norm(x, gain, **choice), color=colour, width=0.6)
        ax.axhline(0, color=figures.BLACK, linewidth=0.8)
        ax.set_title(name.replace(" in ", "\nin ").replace(" stored ", "\nstored ").replace("'s ", "'s\n"), fontsize=11)
        ax.set(xticks=range(1, 5), xlabel="feature")
    axes[0].set_ylabel("output")
    read = [tuple(norm(x, gain, **choice)) for choice in READINGS.values()]
    figures.title(fig, "One token, one stored gain: four conventions, four outputs", len(set(read)) == 4)
    figures.show(
        fig,
        alt="Four bar charts of the outputs of four norms for one token and one gain. PyTorch's LayerNorm has two bars "
        "below zero, RMSNorm none. With d minus 1 in the variance all bars are shorter than PyTorch's. With the gain "
        "read as stored less 1 they are twice as high, or more.",
    )


def prove_one_norm(x, gain, pytorch, rms, annotated, gemma):
    """Prove claim 09b-one-norm."""
    t, g = torch.from_numpy(x), torch.from_numpy(gain)
    by_std = g * (t - t.mean(-1, True)) / (t.std(-1, keepdim=True) + 1e-6)
    grouped = norm(x, groups=(2, "blocks"))
    theirs = {
        "PyTorch": (pytorch, F.layer_norm(t, (8,), g)),
        "RMSNorm": (rms, F.rms_norm(t, (8,), g, eps=1e-5)),
        "Annotated Transformer": (annotated, by_std),
        "Gemma": (gemma, F.rms_norm(t, (8,), g, eps=1e-6)),
        "groups": (grouped, F.group_norm(t, 2)),
    }
    for name, (ours, reference) in theirs.items():
        assert np.abs(ours - reference.numpy()).max() < 1e-12, name


def source(convention):
    name = convention.file.split(": ")[1].rpartition("/")[2]
    return f"{convention.library}, in [{name}]({convention.address})"


def span(found):
    least, most = (live.number(f(found)) for f in (min, max))
    return least if least == most else f"{least} to {most}"


@cache
def differences():
    """Between each choice and the usual one, for five seeds."""
    return {name: [conventions.difference(choice, seed) for seed in range(5)] for name, choice in CONVENTIONS.items()}


def tabulate_choices():
    table(
        ["the choice", "found in", "the question", "difference, five seeds"],
        [[name, source(c), c.question, span(differences()[name])] for name, c in CONVENTIONS.items()],
    )


def prove_differ():
    """Prove claims 09b-differ, 09b-least."""
    assert len(CONVENTIONS) >= 14
    least = {name: min(found) for name, found in differences().items()}
    assert min(least, key=least.get) == "rounded before the gain"
    assert least.pop("rounded before the gain") > 0.005
    assert min(least.values()) > 0.1
    assert least["a gain stored less 1"] > 5
    assert max(differences()["rounded before the gain"]) < 0.03
    norms = {c.function for c in CONVENTIONS.values()}
    say("conventions", len(CONVENTIONS), ".0f")
    say("norms", len(norms), ".0f")


def closest(found):
    return min(found, key=lambda pair: max(found[pair]))


@cache
def apart():
    """The difference between two choices, by input and pair, for each of five seeds."""
    found = {}
    for name, draw in conventions.SAME_INPUTS.items():
        runs = [conventions.pairs(draw, seed) for seed in range(5)]
        found[name] = {pair: [run[pair] for run in runs] for pair in runs[0]}
    return found


def tabulate_pairs():
    table(
        [
            "rows",
            "pairs that agree to 0.0002 %",
            "to 1 %",
            "the closest pair",
            "apart",
        ],
        [
            [
                name,
                *(sum(max(d) < limit for d in found.values()) for limit in (2e-6, 0.01)),
                " / ".join(closest(found)),
                span(found[closest(found)]),
            ]
            for name, found in apart().items()
        ],
    )


def prove_pairs():
    """Prove claims 09b-pairs, 09b-alike."""
    names = apart()["of size 1"].keys()
    assert len(names) == len(CONVENTIONS) * (len(CONVENTIONS) - 1) // 2
    # the input that shows a pair best, in the draw that shows it least
    best = {pair: max(min(found[pair]) for found in apart().values()) for pair in names}
    hardest = min(best, key=best.get)
    assert hardest == ("eps outside, in RMSNorm", "a least length")
    assert best.pop(hardest) > 0.004
    assert min(best.values()) > 0.3
    same = {pair for pair, found in apart()["of size 1"].items() if max(found) < 2e-6}
    only_eps = ("eps outside, in RMSNorm", "the machine's eps", "a least length")
    assert {name for pair in same for name in pair} == set(only_eps)
    assert len(same) == 3
    assert max(max(apart()["of mean 1000"][pair]) for pair in same) < 1e-10
    most = max(max(found[hardest]) for found in apart().values())
    assert most < 0.01
    say("pairs", len(names), ".0f")
    say("alike", len(same), ".0f")
    say("hardest", 100 * most, ".1f")


def tabulate_quotes():
    table(
        ["the choice", "the line"],
        [[name, f"`{c.quote}`"] for name, c in CONVENTIONS.items()],
    )
