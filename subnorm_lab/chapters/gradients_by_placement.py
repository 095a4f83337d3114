"""Figures and proofs of deep dive 05a, Gradients by placement."""

import matplotlib.pyplot as plt
import numpy as np
import torch

import subnorm.numpy as sn
from subnorm_lab import diagrams, figures
from subnorm_lab.experiments import amplification, deepnorm, gradients
from subnorm_lab.experiments.block_backward import gradient_sizes, post_ln_back, pre_ln_back
from subnorm_lab.experiments.finite_differences import adjoint_gap, finite_difference
from subnorm_lab.report import interval, say, table

NAMES = {"post": "Post-LN", "pre": "Pre-LN", "deepnorm": "DeepNorm"}


def begin():
    torch.set_num_threads(1)
    figures.use_style()


def draw_where_the_gradient_goes():
    figures.show(
        diagrams.gradient_routes(),
        alt="Two rows of three sublayers, with arrows that point from right to left. In the Post-LN row the "
        "green skip line "
        "runs through an orange norm box at each sublayer. In the Pre-LN row the green line runs straight "
        "to the left end, "
        "past the branches below it, each of which holds an orange norm box and a blue box F.",
    )


def reverse(h):
    return h[..., ::-1]


def norm_back_at(h):
    return lambda dh: sn.layer_norm_backward(dh, h, eps=0)[0]


def prepare_ds(pre_back, post_back):
    x = np.array([2.0, 4.0, 6.0, 12.0])
    dy = np.array([1.0, 0.0, 0.0, 0.0])

    ds = norm_back_at(x + reverse(x))(dy)  # Post-LN, behind the norm
    steps = {
        "Pre-LN, dx": pre_back(dy, reverse, norm_back_at(x)),
        "Post-LN, behind the norm": ds,
        "Post-LN, dx": post_back(dy, reverse, norm_back_at(x + reverse(x))),
    }
    return ds, steps


def tabulate_where_the_gradient_goes(steps):
    table(
        ["", "1", "2", "3", "4"],
        [[name, *(f"{v:z.2f}" for v in row)] for name, row in steps.items()],
    )


def prove_hand_example(steps, ds):
    """Prove claim 05a-hand-example."""
    assert steps["Pre-LN, dx"][0] > 1
    np.testing.assert_allclose(ds.sum(), 0, atol=1e-12)
    np.testing.assert_allclose(ds, [0.25, 0, 0, -0.25], atol=1e-12)
    np.testing.assert_allclose(steps["Post-LN, dx"], 0, atol=1e-12)


def prepare_x():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 6))
    dy = rng.standard_normal((3, 6))
    v = rng.standard_normal((3, 6))
    W = rng.standard_normal((6, 6))
    gamma, beta = rng.standard_normal((2, 6))

    def F(h):
        return np.tanh(h @ W.T)

    def norm(h):
        return sn.layer_norm(h, gamma, beta)

    def sublayer_back_at(h):
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

    return x, dy, v, F, norm, sublayer_back_at, norm_back, by_autograd


def prepare_written(pre_back, dy, sublayer_back_at, norm, x, norm_back, post_back, F, by_autograd, v):
    written = {
        "pre": pre_back(dy, sublayer_back_at(norm(x)), norm_back(x)),
        "post": post_back(dy, sublayer_back_at(x), norm_back(x + F(x))),
    }
    faults = {
        "swapped": post_back(dy, sublayer_back_at(norm(x)), norm_back(x)),
        "no skip path": sublayer_back_at(x)(norm_back(x + F(x))(dy)),
    }

    def gaps(placement, dx):
        def forward(h):
            return sn.PLACEMENTS[placement](h, F, norm)

        return (
            np.abs(dx - finite_difference(forward, x, dy)).max(),
            np.abs(dx - by_autograd(placement)).max(),
            adjoint_gap(forward, x, v, dy, dx),
        )

    right = {p: gaps(p, dx) for p, dx in written.items()}
    wrong = {"swapped": gaps("pre", faults["swapped"])}
    wrong["no skip path"] = gaps("post", faults["no skip path"])
    return written, right, wrong


def tabulate_three_proofs_and_two_faults(right, wrong):
    table(
        ["", "differences", "autograd", "adjoint"],
        [[name, *("agrees" if g < 1e-6 else "fails" for g in found)] for name, found in (right | wrong).items()],
    )


def prove_backward(right, wrong, dy, sublayer_back_at, norm, x, norm_back, written, F):
    """Prove claim 05a-backward."""
    assert max(max(found) for found in right.values()) < 1e-6
    assert min(min(found) for found in wrong.values()) > 1e-3
    np.testing.assert_array_equal(pre_ln_back(dy, sublayer_back_at(norm(x)), norm_back(x)), written["pre"])
    np.testing.assert_array_equal(
        post_ln_back(dy, sublayer_back_at(x), norm_back(x + F(x))),
        written["post"],
    )


DEPTH = 32


def prepare_stacks():
    stacks = {p: gradient_sizes(p, DEPTH, seeds=range(8)) for p in ("post", "pre")}
    layer = np.arange(DEPTH + 1)
    return stacks, layer


def draw_does_post_lns_gradient_vanish(stacks, layer):
    fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.4), sharey=True)
    for ax, part in zip(axes, ("skip", "whole"), strict=True):
        for p in stacks:
            look = figures.LOOKS[p]
            sizes = stacks[p][part]  # (seeds, L + 1)
            ax.semilogy(layer, sizes.T, linewidth=0.7, alpha=0.5, **look)
            mean = np.exp(np.log(sizes).mean(0))
            ax.semilogy(layer, mean, label=NAMES[p], **look)
        ax.semilogy(
            layer,
            0.5 ** ((DEPTH - layer) / 2),
            label="$(1/\\sqrt{2})^{L-l}$",
            **figures.LOOKS["theory"],
        )
        ax.set(
            xlabel="sublayer (0 is the bottom)",
            title={"skip": "skip path alone", "whole": "whole gradient"}[part],
        )
    axes[0].set_ylabel("gradient, over that at the top")
    axes[0].legend(loc="lower right")
    figures.show(
        fig,
        alt="Size of the gradient against the sublayer, logarithmic, eight seeds. Left, the skip path alone: "
        "Pre-LN is flat at "
        "one; Post-LN falls towards the bottom along the dotted line, by more than four orders of "
        "magnitude. Right, the "
        "whole gradient: Post-LN stays near one with some scatter, Pre-LN grows a little towards the bottom.",
    )


def prepare_factor(stacks):
    factor = {(p, part): stacks[p][part][:, 0] ** (1 / DEPTH) for p in stacks for part in ("skip", "whole")}
    return factor


def tabulate_does_post_lns_gradient_vanish(factor, stacks):
    table(
        ["factor per sublayer, 8 seeds", "skip path alone", "whole gradient"],
        [[NAMES[p], *(interval(factor[p, part]) for part in ("skip", "whole"))] for p in stacks],
    )


def prove_skip_path_decays(factor, stacks):
    """Prove claims 05a-skip-path-decays, 05a-whole-stays, 05a-pre-grows-down."""
    assert np.abs(factor["post", "skip"] - 0.5**0.5).max() < 0.03
    assert (factor["pre", "skip"] == 1).all()
    assert stacks["post"]["whole"][:, 0].min() > 0.1
    assert stacks["post"]["whole"][:, 0].max() < 10
    grown = stacks["pre"]["whole"][:, 0] / np.sqrt(DEPTH + 1)  # over theory
    assert abs(grown.mean() - 1) < 0.1
    assert grown.min() > 0.7
    say("skip_factor", factor["post", "skip"].mean(), ".2f")
    say("theory_factor", 0.5**0.5, ".2f")


def prepare_seeds():
    SEEDS, INITS = range(5), ("xavier", "he", "torch")
    by_layer = {
        (p, init): gradients.by_layer(p, 16, SEEDS, init, sequences=2) for p in ("post", "pre") for init in INITS
    }
    by_layer["deepnorm", "xavier"] = gradients.by_layer("deepnorm", 16, SEEDS, sequences=2)
    block = np.arange(1, 17)
    return SEEDS, INITS, by_layer, block


LOOKS = figures.LOOKS | {"deepnorm": {"color": figures.GREEN, "linestyle": "-."}}


def draw_gradient_by_layer_in_a_transformer(INITS, by_layer, block):
    fig, axes = plt.subplots(2, 3, figsize=(7.6, 5.0), sharex=True, sharey="row", squeeze=False)
    for row, loss in enumerate(("one_token", "average")):
        for ax, init in zip(axes[row], INITS, strict=True):
            for p in NAMES:
                if (p, init) not in by_layer:
                    continue
                sizes = by_layer[p, init][loss]  # (seeds, blocks)
                ax.semilogy(block, sizes.T, linewidth=0.6, alpha=0.4, **LOOKS[p])
                ax.semilogy(block, sizes.mean(0), label=NAMES[p], **LOOKS[p])
            if row == 0:
                ax.set_title(init)
            else:
                ax.set_xlabel("block")
        axes[row, 0].set_ylabel({"one_token": "gradient, one token", "average": "gradient, averaged"}[loss])
    fig.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=3,
    )
    figures.show(
        fig,
        alt="Six panels: size of the gradient against the block, logarithmic, five seeds. In every panel "
        "Pre-LN falls from the "
        "bottom block to the top block, most with He's init. Post-LN is nearly flat in the upper row, with "
        "scatter, and "
        "falls a little with He's init. In the panels for Xavier's init DeepNorm is flat and far below the other two.",
    )


def prepare_ratio(by_layer):
    ratio = {
        key: {loss: sizes[:, -1] / sizes[:, 0] for loss, sizes in found.items()} for key, found in by_layer.items()
    }
    return ratio


def tabulate_the_ratios_and_where_xiong_et_al_see_a_decay(ratio):
    table(
        ["top over bottom, 5 seeds", "one token", "averaged"],
        [[f"{NAMES[p]}, {init}", *(interval(r, ".1f") for r in found.values())] for (p, init), found in ratio.items()],
    )


def prove_pre_falls(ratio):
    """Prove claims 05a-pre-falls, 05a-post-in-range, 05a-deepnorm-flat, 05a-xavier-averaged."""
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


def prepare_their_ratio(SEEDS):
    theirs = {
        (p, depth): gradients.by_layer(p, depth, SEEDS, "square", sequences=2, plain_average=True)
        for p, depth in (("post", 6), ("post", 32), ("pre", 6))
    }
    their_ratio = {
        key: {loss: sizes[:, -1] / sizes[:, 0] for loss, sizes in found.items()} for key, found in theirs.items()
    }
    term = {depth: 1.5 ** ((depth - 1) / 2) for depth in (6, 32)}
    return their_ratio, term


def tabulate_the_ratios_and_where_xiong_et_al_see_a_decay_2(term, their_ratio):
    table(
        ["top over bottom, 5 seeds", "one token", "averaged", "by the term"],
        [
            [f"{NAMES[p]}, {depth} blocks"]
            + [interval(r, ".1f") for r in found.values()]
            + [f"{term[depth]:.0f}" if p == "post" else ""]
            for (p, depth), found in their_ratio.items()
        ],
    )


def prove_their_setting(their_ratio, term):
    """Prove claim 05a-their-setting."""
    for r in their_ratio["post", 6].values():
        assert 1 / 2 < r.min() < r.max() < 2
    for r in their_ratio["post", 32].values():
        assert term[32] > 20 * r.max()
    for r in their_ratio["pre", 6].values():
        assert r.max() < 0.8
    say("their_term", term[32], ".0f")


DECODERS = {
    "Post-LN, 6 and 6 blocks": ("post", 6, True),
    "Post-LN, 18 and 18 blocks": ("post", 18, True),
    "Post-LN, 18 blocks, random tokens": ("post", 18, False),
    "Pre-LN, 18 and 18 blocks": ("pre", 18, True),
}


def prepare_decoders(SEEDS):
    decoders = {
        name: gradients.in_a_decoder(placement, depth, SEEDS, encoder)
        for name, (placement, depth, encoder) in DECODERS.items()
    }
    return decoders


def prepare_in_decoder(decoders):
    in_decoder = {
        name: {loss: sizes[:, -1] / sizes[:, 0] for loss, sizes in found.items()} for name, found in decoders.items()
    }
    return in_decoder


def tabulate_in_a_decoder_it_does_vanish(in_decoder):
    table(
        ["decoder: top over bottom, 5 seeds", "one token", "averaged"],
        [[name, *(interval(r, ".1f") for r in found.values())] for name, found in in_decoder.items()],
    )


def prove_decoder_vanishes(in_decoder):
    """Prove claims 05a-decoder-vanishes, 05a-decoder-reads-the-encoder."""
    small, deep, alone, pre = in_decoder.values()
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


def prepare_last(SEEDS):
    last = gradients.last_layer("deepnorm", DEPTHS, seeds=SEEDS)
    slope = gradients.log_slopes(DEPTHS, last["one_token"])
    return last, slope


def tabulate_the_last_layer_and_what_deepnorm_does_to_it(slope, last):
    table(
        ["DeepNorm, loss of one token", *(f"L = {L}" for L in DEPTHS), "slope"],
        [
            [
                "mean over 5 seeds",
                *(f"{v:.1f}" for v in last["one_token"].mean(0)),
                interval(slope, ".1f"),
            ]
        ],
    )


def prove_deepnorm_last_layer(slope):
    """Prove claim 05a-deepnorm-last-layer."""
    assert np.abs(slope + 0.5).max() < 0.15


GROWING = (1, 2, 4, 8, 16)


THREE = (1, 3, 8)


def prepare_change():
    TWELVE = range(12)
    change = {p: amplification.output_change(p, GROWING, TWELVE) for p in ("post", "pre")}
    change["deepnorm"] = amplification.output_change("deepnorm", THREE, TWELVE)
    axis = {"post": GROWING, "pre": GROWING, "deepnorm": THREE}
    return change, axis


def draw_move_every_weight_by_one_per_cent(change, axis):
    fig, ax = plt.subplots()
    for p, sizes in change.items():
        ax.loglog(axis[p], sizes.T, linewidth=0.7, alpha=0.5, **LOOKS[p])
        ax.loglog(axis[p], np.median(sizes, 0), label=f"{NAMES[p]}, median", **LOOKS[p])
    start = np.median(change["post"][:, 0])
    ax.loglog(
        GROWING,
        start * np.array(GROWING),
        label="grows like L",
        **figures.LOOKS["theory"],
    )
    ax.set(
        xlabel="blocks L",
        ylabel="squared change / squared step",
        xticks=GROWING,
        xticklabels=GROWING,
    )
    ax.minorticks_off()
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    fig.set_size_inches(7.4, 3.6)
    figures.show(
        fig,
        alt="Squared change of the output after a random one per cent change of all weights, against depth, both axes "
        "logarithmic. Post-LN and Pre-LN start together; Post-LN rises along or above the dotted line "
        "proportional to depth, "
        "Pre-LN rises less. DeepNorm starts far below them and falls.",
    )


def prepare_power(axis, change):
    power = {p: gradients.log_slopes(axis[p], sizes) for p, sizes in change.items()}
    return power


def tabulate_move_every_weight_by_one_per_cent(power):
    table(
        ["slope", "lowest to highest, 12 seeds"],
        [[NAMES[p], interval(found, ".1f")] for p, found in power.items()],
    )


def prove_amplification(power, change):
    """Prove claims 05a-amplification, 05a-deepnorm-is-calm."""
    assert power["post"].min() > power["pre"].max()
    assert power["deepnorm"].max() < 0
    further = np.sqrt(change["post"][:, -1] / change["pre"][:, -1])  # (seeds,)
    assert further.min() > 1
    for p in ("post", "pre"):
        deeper = change[p][:, -1] / change[p][:, 0]
        say(f"amplified_{p}_low", deeper.min(), ".0f", noise=1e-3)
        say(f"amplified_{p}_high", deeper.max(), ".0f", noise=1e-3)
    say("further_low", further.min(), ".1f", noise=1e-3)
    say("further_high", further.max(), ".1f", noise=1e-3)
