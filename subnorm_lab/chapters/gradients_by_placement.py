"""Figures and proofs of deep dive 05a, Gradients by placement."""

from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import torch

import subnorm.numpy as sn
from subnorm_lab import diagrams, figures
from subnorm_lab.chapters import begin as begin
from subnorm_lab.experiments import amplification, deepnorm, gradients
from subnorm_lab.experiments.block_backward import gradient_sizes, post_ln_back, pre_ln_back
from subnorm_lab.experiments.finite_differences import adjoint_gap, finite_difference
from subnorm_lab.report import interval, say, table

NAMES = {"post": "Post-LN", "pre": "Pre-LN", "deepnorm": "DeepNorm"}
SEEDS = range(5)


def draw_gradient_routes():
    figures.show(
        diagrams.gradient_routes(),
        alt="Two rows of two sublayers, with arrows that point from right to left. In the Post-LN row the "
        "green skip line "
        "runs through an orange norm box at each sublayer. In the Pre-LN row the green line runs straight "
        "to the left end, "
        "past the branches below it, each of which holds an orange norm box and a blue box F.",
    )


def prove_hand_example(pre_back, post_back):
    """Prove claim 05a-hand-example."""
    x, dy = np.array([2.0, 4.0, 6.0, 12.0]), np.array([1.0, 0.0, 0.0, 0.0])

    def norm_back(at):
        return lambda dh: sn.layer_norm_backward(dh, at, eps=0)[0]

    into_sum = norm_back(x + np.flip(x))
    assert pre_back(dy, np.flip, norm_back(x))[0] > 1
    np.testing.assert_allclose(into_sum(dy).sum(), 0, atol=1e-12)
    np.testing.assert_allclose(into_sum(dy), [0.25, 0, 0, -0.25], atol=1e-12)
    np.testing.assert_allclose(post_back(dy, np.flip, into_sum), 0, atol=1e-12)


def gaps_of_backward(pre_back, post_back):
    """How far each backward pass is from differences, autograd and the adjoint test: right ones, and planted faults."""
    rng = np.random.default_rng(0)
    x, dy, v = rng.standard_normal((3, 3, 6))
    W = rng.standard_normal((6, 6))
    gamma, beta = rng.standard_normal((2, 6))

    def F(h):
        return np.tanh(h @ W.T)

    def norm(h):
        return sn.layer_norm(h, gamma, beta)

    def sublayer_back(h):
        return lambda dh: (dh * (1 - F(h) ** 2)) @ W

    def norm_back(h):
        return lambda dh: sn.layer_norm_backward(dh, h, gamma)[0]

    def by_autograd(placement):
        leaf = torch.tensor(x, requires_grad=True)
        w = torch.tensor(W)
        y = sn.PLACEMENTS[placement](
            leaf,
            lambda h: torch.tanh(h @ w.T),
            lambda h: torch.nn.functional.layer_norm(h, (6,), torch.tensor(gamma), torch.tensor(beta)),
        )
        y.backward(torch.tensor(dy))
        return leaf.grad.numpy()

    def gaps(placement, dx):
        def forward(h):
            return sn.PLACEMENTS[placement](h, F, norm)

        return (
            np.abs(dx - finite_difference(forward, x, dy)).max(),
            np.abs(dx - by_autograd(placement)).max(),
            adjoint_gap(forward, x, v, dy, dx),
        )

    pre, post = (sublayer_back(norm(x)), norm_back(x)), (sublayer_back(x), norm_back(x + F(x)))
    right = {"pre": gaps("pre", pre_back(dy, *pre)), "post": gaps("post", post_back(dy, *post))}
    wrong = {"swapped": gaps("pre", post_back(dy, *pre)), "no skip path": gaps("post", post[0](post[1](dy)))}
    return right, wrong


def tabulate_three_proofs(pre_back, post_back):
    right, wrong = gaps_of_backward(pre_back, post_back)
    table(
        ["", "differences", "autograd", "adjoint"],
        [[name, *("agrees" if g < 1e-6 else "fails" for g in found)] for name, found in (right | wrong).items()],
    )


def prove_backward(pre_back, post_back):
    """Prove claim 05a-backward."""
    right, wrong = gaps_of_backward(pre_back, post_back)
    assert max(max(found) for found in right.values()) < 1e-6
    assert min(min(found) for found in wrong.values()) > 1e-3
    assert gaps_of_backward(pre_ln_back, post_ln_back) == (right, wrong)


DEPTH = 32


@cache
def stacks():
    """The size of the gradient on the skip path and of the whole, {placement: {part: (seeds, DEPTH + 1)}}."""
    return {p: gradient_sizes(p, DEPTH, seeds=range(8)) for p in ("post", "pre")}


def draw_skip_path_and_whole():
    layer = np.arange(DEPTH + 1)
    fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.4), sharey=True)
    for ax, part in zip(axes, ("skip", "whole"), strict=True):
        for p in stacks():
            look = figures.LOOKS[p]
            sizes = stacks()[p][part]  # (seeds, L + 1)
            ax.semilogy(layer, sizes.T, linewidth=0.7, alpha=0.5, **look)
            mean = np.exp(np.log(sizes).mean(0))
            ax.semilogy(layer, mean, **look)
            figures.name_curve(ax, NAMES[p], layer, mean, look["color"])
        ax.semilogy(layer, 0.5 ** ((DEPTH - layer) / 2), **figures.LOOKS["theory"])
        figures.name_curve(ax, "1/√2 a sublayer", layer, 0.5 ** ((DEPTH - layer) / 2))
        ax.set(
            xlabel="sublayer (0 is the bottom)",
            title={"skip": "skip path alone", "whole": "whole gradient"}[part],
        )
    axes[0].set_ylabel("gradient, over that at the top")
    post = stacks()["post"]
    lost = post["skip"][:, 0].max() < 1e-4 and post["whole"][:, 0].min() > 0.3
    figures.title(fig, "Untrained Post-LN: the skip path alone loses the gradient", lost)
    figures.show(
        fig,
        alt="Size of the gradient against the sublayer, logarithmic, eight seeds. Left, the skip path alone: "
        "Pre-LN is flat at "
        "one; Post-LN falls towards the bottom along the dotted line, by more than four orders of "
        "magnitude. Right, the "
        "whole gradient: Post-LN stays near one with some scatter, Pre-LN grows a little towards the bottom.",
    )


def factor(placement, part):
    """By what a sublayer multiplies the gradient on its way down, (seeds,)."""
    return stacks()[placement][part][:, 0] ** (1 / DEPTH)


def tabulate_factors():
    table(
        ["factor per sublayer, 8 seeds", "skip path alone", "whole gradient"],
        [[NAMES[p], *(interval(factor(p, part)) for part in ("skip", "whole"))] for p in stacks()],
    )


def prove_skip_path_decays():
    """Prove claims 05a-skip-path-decays, 05a-whole-stays, 05a-pre-grows-down."""
    assert np.abs(factor("post", "skip") - 0.5**0.5).max() < 0.03
    assert (factor("pre", "skip") == 1).all()
    assert stacks()["post"]["whole"][:, 0].min() > 0.1
    assert stacks()["post"]["whole"][:, 0].max() < 10
    grown = stacks()["pre"]["whole"][:, 0] / np.sqrt(DEPTH + 1)  # over theory
    assert abs(grown.mean() - 1) < 0.1
    assert grown.min() > 0.7
    say("skip_factor", factor("post", "skip").mean(), ".2f")
    say("theory_factor", 0.5**0.5, ".2f")


INITS = ("xavier", "he", "torch")


@cache
def by_layer():
    """The size of the gradient in each of 16 blocks, {(placement, init): {loss: (seeds, blocks)}}."""
    found = {(p, init): gradients.by_layer(p, 16, SEEDS, init, sequences=2) for p in ("post", "pre") for init in INITS}
    return found | {("deepnorm", "xavier"): gradients.by_layer("deepnorm", 16, SEEDS, sequences=2)}


def top_over_bottom(found):
    """The gradient of the top block over that of the bottom block, {what: {loss: (seeds,)}}."""
    return {key: {loss: sizes[:, -1] / sizes[:, 0] for loss, sizes in losses.items()} for key, losses in found.items()}


LOOKS = figures.LOOKS | {"deepnorm": {"color": figures.GREEN, "linestyle": "-."}}


LOSSES = {"one_token": "one token", "average": "average"}


def draw_gradient_by_layer():
    block = np.arange(1, 17)
    fig, axes = plt.subplots(2, 3, figsize=(7.6, 5.0), sharex=True, sharey="row", squeeze=False)
    for row, loss in enumerate(("one_token", "average")):
        for ax, init in zip(axes[row], INITS, strict=True):
            for p in NAMES:
                if (p, init) not in by_layer():
                    continue
                sizes = by_layer()[p, init][loss]  # (seeds, blocks)
                ax.semilogy(block, sizes.T, linewidth=0.6, alpha=0.4, **LOOKS[p])
                ax.semilogy(block, sizes.mean(0), **LOOKS[p])
            ax.set(title=f"{init}, {LOSSES[loss]}", xticks=(1, 8, 16))
            ax.minorticks_off()
    for p in ("post", "pre", "deepnorm"):
        for ax, loss in zip(axes[:, 0], LOSSES, strict=True):
            figures.name_curve(ax, NAMES[p], block, by_layer()[p, "xavier"][loss].mean(0), LOOKS[p]["color"])
    for ax in axes[1]:
        ax.set_xlabel("block")
    for ax in axes[:, 0]:
        ax.set_ylabel("size of the gradient")
    means = [by_layer()["pre", init][loss].mean(0) for init in INITS for loss in LOSSES]
    falls = all(mean[0] > 1.3 * mean[-1] for mean in means)
    figures.title(fig, "Before training, Pre-LN's gradient falls from the bottom to the top", falls)
    figures.show(
        fig,
        alt="Six panels: size of the gradient against the block, logarithmic, five seeds. In every panel "
        "Pre-LN falls from the "
        "bottom block to the top block, most with He's init. Post-LN is nearly flat in the upper row, with "
        "scatter, and "
        "falls a little with He's init. In the panels for Xavier's init DeepNorm is flat and far below the other two.",
    )


def tabulate_ratios():
    ratio = top_over_bottom(by_layer())
    table(
        ["top over bottom, 5 seeds", "one token", "averaged"],
        [[f"{NAMES[p]}, {init}", *(interval(r, ".1f") for r in found.values())] for (p, init), found in ratio.items()],
    )


def prove_pre_falls():
    """Prove claims 05a-pre-falls, 05a-post-in-range, 05a-deepnorm-flat, 05a-xavier-averaged."""
    ratio = top_over_bottom(by_layer())
    for (p, _), found in ratio.items():
        for r in found.values():
            if p == "pre":
                assert r.max() < 0.8
            if p == "post":
                assert r.min() > 0.2
                assert r.max() < 5
            if p == "deepnorm":
                assert np.abs(r - 1).max() < 0.2
    _one_token, averaged = ratio["post", "xavier"].values()
    assert averaged.min() > 1
    ten = gradients.by_layer("post", 16, range(5, 15), sequences=2)["average"]
    assert 2 <= (ten[:, -1] < ten[:, 0]).sum() <= 8
    say("bottom_larger", (ten[:, -1] < ten[:, 0]).sum(), ".0f")


TERM = {depth: 1.5 ** ((depth - 1) / 2) for depth in (6, 32)}  # of their bound


@cache
def their_ratio():
    """The same ratio in the setting of Xiong et al., by placement and depth."""
    return top_over_bottom(
        {
            (p, depth): gradients.by_layer(p, depth, SEEDS, "square", sequences=2, plain_average=True)
            for p, depth in (("post", 6), ("post", 32), ("pre", 6))
        }
    )


def tabulate_their_setting():
    table(
        ["top over bottom, 5 seeds", "one token", "averaged", "by the term"],
        [
            [f"{NAMES[p]}, {depth} blocks"]
            + [interval(r, ".1f") for r in found.values()]
            + [f"{TERM[depth]:.0f}" if p == "post" else ""]
            for (p, depth), found in their_ratio().items()
        ],
    )


def prove_their_setting():
    """Prove claim 05a-their-setting."""
    for r in their_ratio()["post", 6].values():
        assert 1 / 2 < r.min() < r.max() < 2
    for r in their_ratio()["post", 32].values():
        assert TERM[32] > 20 * r.max()
    for r in their_ratio()["pre", 6].values():
        assert r.max() < 0.8
    say("their_term", TERM[32], ".0f")


DECODERS = {
    "Post-LN, 6 and 6 blocks": ("post", 6, True),
    "Post-LN, 18 and 18 blocks": ("post", 18, True),
    "Post-LN, 18 blocks, random tokens": ("post", 18, False),
    "Pre-LN, 18 and 18 blocks": ("pre", 18, True),
}


@cache
def in_decoders():
    """The same ratio in decoders, {decoder: {loss: (seeds,)}}."""
    return top_over_bottom(
        {
            name: gradients.in_a_decoder(placement, depth, SEEDS, encoder)
            for name, (placement, depth, encoder) in DECODERS.items()
        }
    )


def tabulate_decoders():
    table(
        ["decoder: top over bottom, 5 seeds", "one token", "averaged"],
        [[name, *(interval(r, ".1f") for r in found.values())] for name, found in in_decoders().items()],
    )


def prove_decoder_vanishes():
    """Prove claims 05a-decoder-vanishes, 05a-decoder-reads-the-encoder."""
    small, deep, alone, pre = in_decoders().values()
    for loss in ("one_token", "average"):
        assert 1.5 < small[loss].min() < small[loss].max() < 5
        assert deep[loss].min() > 10
        assert 0.4 < alone[loss].min() < alone[loss].max() < 2
        assert pre[loss].max() < 1
    say("decoder_term", 1.5 ** (17 / 2), ".0f")
    say("decoder_median", np.median(deep["one_token"]), ".0f", noise=1e-3)


def prove_deepnorm_is_post_ln():
    """Prove claim 05a-deepnorm-is-post-ln."""
    alpha, beta_w = deepnorm.constants(16)
    h = np.random.default_rng(1).standard_normal((5, 8))
    branch = np.tanh(h[:, ::-1])
    one, other = (sn.layer_norm(total, eps=0) for total in (alpha * h + branch, h + branch / alpha))
    assert np.abs(one - other).max() < 1e-12
    say("alpha", alpha, ".2f")
    say("beta", beta_w, ".2f")


DEPTHS = (2, 4, 8)


@cache
def last_gradients():
    """The size of DeepNorm's last gradient, {loss: (seeds, DEPTHS)}."""
    return gradients.last_layer("deepnorm", DEPTHS, seeds=SEEDS)


def slope():
    """How that size goes with the depth, on logarithmic axes, for the loss of one token, (seeds,)."""
    return gradients.log_slopes(DEPTHS, last_gradients()["one_token"])


def tabulate_deepnorm():
    table(
        ["DeepNorm, loss of one token", *(f"L = {L}" for L in DEPTHS), "slope"],
        [
            [
                "mean over 5 seeds",
                *(f"{v:.1f}" for v in last_gradients()["one_token"].mean(0)),
                interval(slope(), ".1f"),
            ]
        ],
    )


def prove_deepnorm_last_layer():
    """Prove claim 05a-deepnorm-last-layer."""
    assert np.abs(slope() + 0.5).max() < 0.15


GROWING = (1, 2, 4, 8, 16)
AT_DEPTHS = {"post": GROWING, "pre": GROWING, "deepnorm": (1, 3, 8)}


@cache
def change():
    """The squared change of the output over the squared step, {placement: (seeds, AT_DEPTHS)}."""
    return {p: amplification.output_change(p, depths, range(12)) for p, depths in AT_DEPTHS.items()}


def draw_output_change():
    fig, ax = plt.subplots()
    for p, sizes in change().items():
        ax.loglog(AT_DEPTHS[p], sizes.T, linewidth=0.7, alpha=0.5, **LOOKS[p])
        ax.loglog(AT_DEPTHS[p], np.median(sizes, 0), **LOOKS[p])
    start = np.median(change()["post"][:, 0])
    ax.loglog(GROWING, start * np.array(GROWING), **figures.LOOKS["theory"])
    least = max(change()["deepnorm"].max(axis=0)) < min(change()[p].min() for p in ("post", "pre"))
    figures.title(fig, "Before training, DeepNorm's output changes least of the three", least)
    ax.set(
        xlabel="blocks L",
        ylabel="squared change / squared step",
        xticks=GROWING,
        xticklabels=GROWING,
    )
    ax.minorticks_off()
    ends = [(NAMES[p], (AT_DEPTHS[p][-1], np.median(sizes, 0)[-1]), LOOKS[p]["color"]) for p, sizes in change().items()]
    figures.name_ends(ax, [*ends, ("like L", (GROWING[-1], start * GROWING[-1]), figures.BLACK)])
    figures.show(
        fig,
        alt="Squared change of the output after a random one per cent change of all weights, against depth, both axes "
        "logarithmic. Post-LN and Pre-LN start together; Post-LN rises along or above the dotted line "
        "proportional to depth, "
        "Pre-LN rises less. DeepNorm starts far below them and falls.",
    )


def powers():
    """How the change goes with the depth, on logarithmic axes, {placement: (seeds,)}."""
    return {p: gradients.log_slopes(AT_DEPTHS[p], sizes) for p, sizes in change().items()}


def tabulate_powers():
    table(
        ["slope", "lowest to highest, 12 seeds"],
        [[NAMES[p], interval(found, ".1f")] for p, found in powers().items()],
    )


def prove_amplification():
    """Prove claims 05a-amplification, 05a-deepnorm-is-calm."""
    power = powers()
    assert power["post"].min() > power["pre"].max()
    assert power["deepnorm"].max() < 0
    further = np.sqrt(change()["post"][:, -1] / change()["pre"][:, -1])  # (seeds,)
    assert further.min() > 1
    for p in ("post", "pre"):
        deeper = change()[p][:, -1] / change()[p][:, 0]
        say(f"amplified_{p}_low", deeper.min(), ".0f", noise=1e-3)
        say(f"amplified_{p}_high", deeper.max(), ".0f", noise=1e-3)
    say("further_low", further.min(), ".1f", noise=1e-3)
    say("further_high", further.max(), ".1f", noise=1e-3)
