"""Figures and proofs of deep dive 03a, The backward pass of LayerNorm."""

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

import subnorm.numpy as sn
from subnorm_lab import figures, live
from subnorm_lab.chapters import begin as begin
from subnorm_lab.experiments.finite_differences import adjoint_gap, finite_difference
from subnorm_lab.experiments.jacobian import jacobian, singular_values
from subnorm_lab.report import say, table, typeset


def four_numbers_backwards(arrives=(1.0, 0.0, 0.0, 0.0)):
    """A gradient that arrives, by default of the first output, for the token (2, 4, 6, 12), term by term to dx."""
    xhat = np.array([-4.0, -2.0, 0.0, 6.0]) / np.sqrt(14)  # (4,)
    dxhat = np.array(arrives)
    no_shift = dxhat - dxhat.mean()
    no_stretch = no_shift - xhat * (xhat * dxhat).mean()
    return {"arrives": dxhat, "no shift": no_shift, "no stretch": no_stretch, "scaled": no_stretch / np.sqrt(14)}


def term_by_term(gradients, limits):
    fig, axes = plt.subplots(1, 4, figsize=(7.6, 2.8), sharey=True)
    for ax, (title, values) in zip(axes, gradients.items(), strict=True):
        ax.bar(range(1, 5), values, color=figures.BLUE, width=0.6)
        ax.axhline(0, color=figures.BLACK, linewidth=0.8)
        ax.set(title=title, xticks=range(1, 5), xlabel="feature", ylim=limits)
    axes[0].set_ylabel("gradient")
    sums = [np.isclose(sum(values), 0, rtol=0, atol=1e-12) for values in gradients.values()]
    figures.title(fig, "From the second step on, the gradient sums to zero", sums == [False, True, True, True])
    return fig


def draw_one_gradient():
    figures.show(
        term_by_term(four_numbers_backwards((1.0, 2.0, -1.0, 3.0)), (-2.5, 3.3)),
        alt="Four bar charts of a gradient over four features. Arriving, three bars are up and one is down. Without "
        "its shift, all are lower by the same, and their sum is zero. Without its stretch, the last is lower and the "
        "first two are higher. Scaled, all bars keep their form and are much shorter.",
    )


def draw_four_numbers_backwards():
    gradients = four_numbers_backwards()
    fig = term_by_term(gradients, (-0.5, 1.1))
    spreads = np.count_nonzero(gradients["arrives"]) == 1 and np.abs(gradients["scaled"]).min() > 1e-3
    figures.title(fig, "A gradient that arrives at one feature goes back to all four", spreads)
    figures.show(
        fig,
        alt="Four bar charts of a gradient over four features. Arriving, only the first bar is up. Without its "
        "shift, the "
        "first bar is lower and the other three are equally negative. Without its stretch, the first is "
        "lower still, the "
        "second is most negative and the last is above zero. Scaled, all bars keep their form and are much shorter.",
    )


def prove_by_hand(whole, by_code):
    """Prove claim 03a-by-hand."""
    x, dx = np.array([2.0, 4.0, 6.0, 12.0]), four_numbers_backwards()["scaled"]
    assert np.allclose(whole, [26, -22, -14, 10], rtol=1e-12, atol=0)
    assert np.allclose(by_code, dx, rtol=1e-12, atol=0)
    assert np.isclose(by_code.sum(), 0, rtol=0, atol=1e-12)
    assert np.isclose(by_code @ (x - 6), 0, rtol=0, atol=1e-12)


def random_case(seed):
    """A batch (B, T, d), gain and shift (d,), and two random directions."""
    rng = np.random.default_rng(seed)
    batch = 5 + 3 * rng.standard_normal((2, 3, 8))
    return batch, *rng.standard_normal((2, 8)), *rng.standard_normal((2, 2, 3, 8))


def by_autograd(dy, batch, gamma, beta):
    leaves = [torch.tensor(a, requires_grad=True) for a in (batch, gamma, beta)]
    F.layer_norm(leaves[0], (8,), *leaves[1:]).backward(torch.from_numpy(dy))
    return [leaf.grad.numpy() for leaf in leaves]  # dx, dgamma, dbeta


def faulty_gradients(dy, x, gamma):
    """dx by four backward passes, each with a fault that is easy to make."""
    rstd = 1 / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    xhat, dxhat = sn.layer_norm(x), dy * gamma
    shift = dxhat.mean(axis=-1, keepdims=True)
    along = xhat * (xhat * dxhat).mean(axis=-1, keepdims=True)
    return {
        "mean taken as constant": rstd * (dxhat - along),
        "variance taken as constant": rstd * (dxhat - shift),
        "gamma forgotten": sn.layer_norm_backward(dy, x)[0],
        "a wrong sign": rstd * (dxhat - shift + along),
    }


def gaps(seed, candidates):
    """For each candidate for dx, {name: dx}: how far it is from each witness."""
    batch, gamma, beta, dy, v = random_case(seed)

    def forward(x):
        return sn.layer_norm(x, gamma, beta)

    nudged = finite_difference(forward, batch, dy)
    autograd = by_autograd(dy, batch, gamma, beta)[0]
    return {
        name: {
            "finite differences": np.abs(nudged - dx).max(),
            "autograd": np.abs(autograd - dx).max(),
            "the adjoint test": adjoint_gap(forward, batch, v, dy, dx),
        }
        for name, dx in candidates.items()
    }


def prove_three_ways(layer_norm, layer_norm_backward):
    """Prove claims 03a-three-ways, 03a-checks-can-fail."""
    caught = {}  # candidate: its witnesses against it, for each seed
    for seed in range(5):
        batch, gamma, beta, dy, _v = random_case(seed)
        _y, xhat, rstd = layer_norm(batch, gamma, beta)
        dx, *parameters = layer_norm_backward(dy, xhat, rstd, gamma)
        candidates = {"the derivation": dx} | faulty_gradients(dy, batch, gamma)
        for name, found in gaps(seed, candidates).items():
            against = [witness for witness, gap in found.items() if gap > 1e-6]
            caught.setdefault(name, []).append(", ".join(against))
            assert len(against) == (0 if name == "the derivation" else 3)
            assert against or max(found.values()) < 1e-7
        expected = by_autograd(dy, batch, gamma, beta)[1:]
        assert np.allclose(parameters, expected, atol=1e-12, rtol=0)
    table(["dx by", "caught by"], [(n, c[0] or "none") for n, c in caught.items()])


def in_words(size):
    if size < 1e-12:
        return "zero"
    return "as small as eps" if size < 1e-3 else "yes"


def tabulate_gradients(losses, x_test):
    largest = {}
    for name, loss in losses.items():
        leaf = x_test.clone().requires_grad_()
        loss(F.layer_norm(leaf, (64,))).backward()
        largest[name] = leaf.grad.abs().max().item()

    table(["loss", "gradient"], [(n, in_words(g)) for n, g in largest.items()])
    return largest


def prove_sum_is_blind(largest):
    """Prove claims 03a-sum-is-blind, 03a-squares-are-nearly-blind."""
    *sums, squares, weighted = largest.values()
    assert max(sums) < 1e-12
    assert 1e-12 < squares < 1e-3
    assert weighted > 0.1


def prove_sum_misses_a_fault(layer_norm, layer_norm_backward):
    """Prove claim 03a-sum-misses-a-fault."""
    caught = set()
    for seed in range(5):
        batch = random_case(seed)[0]
        ones = np.ones_like(batch)
        expected = by_autograd(ones, batch, np.ones(8), np.zeros(8))[0]
        _y, xhat, rstd = layer_norm(batch, 1, 0)
        candidates = {"the derivation": layer_norm_backward(ones, xhat, rstd, 1)[0]} | faulty_gradients(ones, batch, 1)
        caught |= {name for name, dx in candidates.items() if np.abs(dx - expected).max() > 1e-9}
    assert caught == {"mean taken as constant"}


def prove_rounding_is_no_gradient(x_test, weights):
    """Prove claim 03a-rounding-is-no-gradient."""
    leaf = x_test.float().requires_grad_()
    (0.99 * F.layer_norm(leaf, (64,))).sum().backward()
    ordinary = x_test.float().requires_grad_()
    (weights.float() * F.layer_norm(ordinary, (64,))).sum().backward()
    assert leaf.grad.abs().max() < 1e-5 * ordinary.grad.abs().max()


D = 16


def row_of(seed):
    return 2 * np.random.default_rng(seed).standard_normal(D)


def prove_rank():
    """Prove claims 03a-rank, 03a-symmetric."""
    for seed in range(5):
        row = row_of(seed)
        sigma = row.std()
        J = jacobian("layer", row, eps=0)  # (d, d)
        singular = singular_values("layer", row, eps=0)
        assert np.allclose(J, J.T, atol=1e-12, rtol=0)
        assert np.allclose(J @ J, J / sigma, atol=1e-12, rtol=0)
        assert np.allclose(singular[:-2], 1 / sigma, rtol=1e-12, atol=0)
        assert (singular[-2:] < 1e-12).all()


SHOWN = 4  # the seed of the row in the figures


def draw_jacobian():
    row = row_of(SHOWN)
    index, floor = np.arange(1, D + 1), 1e-12  # below it there is only rounding
    powers = ("0", "1e-8", "1e-6", "1e-5", "1e-4", "1e-2", "1", "100")

    def frame(eps):
        J = jacobian("layer", row, eps)
        values = np.maximum(singular_values("layer", row, eps), floor)
        blocked = int((values == floor).sum())
        assert blocked == (2 if eps == 0 else 1)
        crack = live.number(values[-1 - blocked])
        along = f"{crack} along x̂ and " if eps else ""
        return (
            f"The norm blocks {blocked} of {D} directions. A gradient passes with strength {along}"
            f"{live.number(values[0])} along the others.",
            [J, {"values": (index, values)}],
        )

    most = float(np.abs(jacobian("layer", row, 0)).max())
    live.chart(
        "jacobian",
        "The Jacobian of LayerNorm for a row of 16 features, with eps to choose",
        [live.slider("eps", "eps", {typeset(e): float(e) for e in powers}, 0.0)],
        [
            live.Heat(
                "J: blue positive, orange negative",
                live.Axis("columns: input features, rows: output"),
                [""] * D,
                [""] * D,
                limits=(-most, most),
                colors=(figures.BLUE, figures.ORANGE),
            ),
            live.Lines(
                live.Axis(
                    "index of the singular value",
                    ticks={k: str(k) for k in (1, 4, 8, 12, 16)},
                ),
                live.Axis(
                    "singular value; 0 is rounding",
                    log=True,
                    limits=(2e-13, 5),
                    ticks={floor: "0", 1e-8: "10⁻⁸", 1e-4: "10⁻⁴", 1: "1"},
                ),
                {"values": live.Curve("singular values of J", marks="only")},
            ),
        ],
        frame,
        side=2,
        alt="Left, the Jacobian of LayerNorm as coloured cells: a strong diagonal "
        "on weak stripes. Right, its sixteen singular values on a logarithmic "
        "axis: fourteen are equal, and the last two lie at the bottom, which "
        "stands for zero.",
    )


def prove_crack():
    """Prove claim 03a-crack."""
    rows = []
    for eps in (1e-5, 1e-2):
        for seed in range(5):
            row = row_of(seed)
            variance, xhat = row.var(), (row - row.mean()) / row.std()
            predicted = eps / (variance + eps) ** 1.5
            values = singular_values("layer", row, eps)
            assert np.isclose(values[-2], predicted, rtol=1e-6, atol=0)
            assert values[-1] < 1e-12
            along = jacobian("layer", row, eps) @ xhat
            np.testing.assert_allclose(along, predicted * xhat, atol=1e-12)
        rows.append([f"{eps:g}", f"{values[-2]:.1e}", f"{predicted:.1e}"])
    table(["eps", "smallest but one", "formula"], rows)


SIZES = np.logspace(-4, 3, 36)


def strength(eps):
    """The largest singular value of the Jacobian, for a row of each size."""
    row = row_of(SHOWN)
    return np.array([np.linalg.norm(jacobian("layer", s * row / row.std(), eps), 2) for s in SIZES])


def prove_spectral_norm():
    """Prove claim 03a-spectral-norm."""
    assert np.allclose(strength(0), 1 / SIZES, rtol=1e-9, atol=0)
    assert np.allclose(strength(1e-5), (SIZES**2 + 1e-5) ** -0.5, rtol=1e-9, atol=0)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        for d in (4, 16, 64):
            v = rng.standard_normal(d) + rng.standard_normal()
            length = np.linalg.norm(v - v.mean())
            spectral = np.linalg.norm(jacobian("layer", v, 0), 2)
            assert np.isclose(spectral, np.sqrt(d) / length, rtol=1e-9, atol=0)


def draw_eps_is_a_ceiling():
    fig, ax = plt.subplots()
    ax.loglog(SIZES, strength(1e-5), color=figures.BLUE)
    ax.loglog(SIZES, 1 / SIZES, **figures.LOOKS["theory"])
    ax.axvline(np.sqrt(1e-5), color=figures.GREY, linewidth=1, linestyle="--")
    figures.name(ax, "σ² = eps", (np.sqrt(1e-5), 2e-3), figures.GREY)
    figures.name(ax, "eps =\n10⁻⁵", (1e-4, strength(1e-5)[0]), figures.BLUE, (2, -6))
    figures.name(ax, "eps = 0: 1/σ", (3e-4, 1 / 3e-4), shift=(8, 4))
    figures.title(fig, "eps puts a ceiling on the Jacobian", strength(1e-5).max() < 1.001 / np.sqrt(1e-5))
    ax.set(xlabel="standard deviation of the row, σ", ylabel="largest singular value of J")
    ax.set(xticks=10.0 ** np.arange(-4, 4, 2), yticks=10.0 ** np.arange(-2, 5, 2))
    figures.show(
        fig,
        alt="Largest singular value of the Jacobian against the standard deviation of the row, both logarithmic. The "
        "dotted line for eps zero falls straight. The curve for eps of one in a hundred thousand lies on "
        "it at the right, and "
        "turns flat left of the dashed line where the variance equals eps.",
    )


def prove_keeps_two_numbers(tokens, gain, kept_mean, kept_rstd):
    """Prove claim 03a-keeps-two-numbers."""
    batch, gamma, mean, rstd = (kept.numpy() for kept in (tokens, gain, kept_mean, kept_rstd))
    dy = np.random.default_rng(1).standard_normal(batch.shape)
    xhat_again = (batch - mean) * rstd
    dxhat = dy * gamma
    dx_again = rstd * (
        dxhat - dxhat.mean(axis=-1, keepdims=True) - xhat_again * (xhat_again * dxhat).mean(axis=-1, keepdims=True)
    )
    exact = sn.layer_norm_backward(dy, batch, gamma)[0]
    assert mean.shape == rstd.shape == (2, 3, 1)
    assert np.allclose(dx_again, exact, atol=1e-12, rtol=0)


def prove_memory():
    """Prove claim 03a-memory."""
    tokens = torch.zeros(8, 1024, 768)  # float32
    out, kept_mean, kept_rstd = torch.native_layer_norm(tokens, (768,), None, None, 1e-5)
    statistics = kept_mean.nbytes + kept_rstd.nbytes
    activations = out.nbytes  # xhat has the shape and the type of out
    assert statistics < activations / 100
    say("kept_kib", statistics / 2**10, ".0f")
    say("xhat_mib", activations / 2**20, ".0f")


def check_quick_checks():
    for seed in range(5):
        batch, gamma, _beta, dy, _v = random_case(seed)
        right = sn.layer_norm_backward(dy, batch, gamma)[0]
        rstd = 1 / np.sqrt(batch.var(axis=-1, keepdims=True) + 1e-5)
        naive = rstd * dy * gamma
        assert np.linalg.norm(naive - right) > 0.2 * np.linalg.norm(naive)
        assert np.abs(right.sum(axis=-1)).max() < 1e-12
        assert np.abs((right * sn.layer_norm(batch)).sum(axis=-1)).max() > 1e-9
