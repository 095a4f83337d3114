"""Figures and proofs of chapter 03, Layer normalization."""

from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm_lab import diagrams, figures, live, stories
from subnorm_lab.chapters import begin as begin
from subnorm_lab.experiments.invariances import CHANGES, PUBLISHED, invariance_table
from subnorm_lab.report import say, table
from subnorm_lab.stories import altered


def draw_volume():
    live.norms(
        "layer-norm",
        "One token through LayerNorm: hollow before shift and scale, solid after",
        ["layer"],
        alt="Three groups of four bars: the token 2, 4, 6 and 12, the token without its mean, and the output of size "
        "1. Hollow bars show the token as it was; the solid ones coincide with them until the token is changed.",
    )


TOKEN = np.array([2.0, 4.0, 6.0, 12.0])
GAMMA = np.array([1.0, 1.0, 1.0, 0.5])  # chosen, to see what they do
BETA = np.array([0.0, 2.0, 0.0, 0.0])


def four_lines():
    """The mean and the variance of the token, and xhat, (4,)."""
    mean = TOKEN.mean()
    var = ((TOKEN - mean) ** 2).mean()
    return mean, var, (TOKEN - mean) / np.sqrt(var)


def row_of_step(step, values):
    return [step, *(f"{v:.3g}".replace("-", "−") for v in values)]


def tabulate_four_lines():
    mean, _var, xhat = four_lines()
    table(
        ["feature", "1", "2", "3", "4"],
        [
            row_of_step("the token", TOKEN),
            row_of_step("minus the mean", TOKEN - mean),
            row_of_step("divided by the root of the variance", xhat),
            row_of_step("times gamma, plus beta", GAMMA * xhat + BETA),
        ],
    )


def prove_four_numbers():
    """Prove claim 03-four-numbers."""
    mean, var, xhat = four_lines()
    assert mean == 6
    assert var == 14
    assert np.isclose(xhat.mean(), 0, atol=1e-12, rtol=0)
    assert np.isclose((xhat**2).mean(), 1, rtol=1e-12, atol=0)
    say("twelve", xhat[3], ".2f")


def prove_no_louder(my_layer_norm):
    """Prove claim 03-no-louder."""
    loud = np.array([2.0, 4.0, 6.0, 1_000_000.0])
    say("loudest", my_layer_norm(loud, 1, 0)[3], ".2f")
    rng = np.random.default_rng(0)
    for d in (4, 64, 512):
        for size in 10.0 ** np.arange(9):
            token = rng.standard_normal(d)
            token[0] += size
            out = sn.layer_norm(token, eps=0)
            assert out.max() <= np.sqrt(d - 1) * (1 + 1e-9)
        assert np.isclose(out[0], np.sqrt(d - 1), rtol=1e-6, atol=0)  # almost reached


@cache
def two_sequences():
    """Two sequences of three tokens, (B, T, d); the first token is that of the figure."""
    batch = 5 + 3 * np.random.default_rng(0).standard_normal((2, 3, 4))
    batch[0, 0] = TOKEN
    return batch


def trace_shapes(my_layer_norm):
    batch = two_sequences()
    means = batch.mean(axis=-1, keepdims=True)
    variances = ((batch - means) ** 2).mean(axis=-1, keepdims=True)
    xhats = (batch - means) / np.sqrt(variances + 1e-5)
    trace = {
        "x": batch,
        "mean": means,
        "var": variances,
        "xhat": xhats,
        "y": my_layer_norm(batch, GAMMA, BETA),
    }
    for name, values in trace.items():
        first = ", ".join(f"{v:.2f}" for v in values[0, 0])
        print(f"{name:5}{values.shape!s:10} first token: {first}")


def prove_five_versions(my_layer_norm):
    """Prove claim 03-five-versions."""
    batch = two_sequences()
    layer = sn.LayerNorm(4)
    assert (layer.gamma == 1).all()
    assert (layer.beta == 0).all()
    layer.gamma, layer.beta = GAMMA, BETA

    weights = {"weight": torch.from_numpy(GAMMA), "bias": torch.from_numpy(BETA)}
    module = st.LayerNorm(4).double()
    module.load_state_dict(weights)
    builtin = torch.nn.LayerNorm(4, dtype=torch.float64)
    builtin.load_state_dict(weights)

    as_tensor = torch.from_numpy(batch)
    others = {
        "sn.layer_norm": sn.layer_norm(batch, GAMMA, BETA),
        "sn.LayerNorm": layer(batch),
        "st.LayerNorm": module(as_tensor).detach().numpy(),
        "torch.nn.LayerNorm": builtin(as_tensor).detach().numpy(),
    }
    for name, result in others.items():
        gap = np.abs(result - my_layer_norm(batch, GAMMA, BETA)).max()
        assert gap < 1e-12
        print(f"{name:18} agrees to 12 digits: {gap < 1e-12}")


def prove_biased():
    """Prove claim 03-biased."""
    rng = np.random.default_rng(0)
    rows = []
    drawn = {d: rng.standard_normal(d) for d in (4, 16, 512)}
    for d, v in drawn.items():
        deviation = torch.from_numpy(v).std().item()  # divides by d - 1
        size, shrunk = (np.sqrt((y**2).mean()) for y in (sn.layer_norm(v, eps=0), (v - v.mean()) / deviation))
        assert np.isclose(size, 1, rtol=1e-12, atol=0)
        assert np.isclose(shrunk, np.sqrt((d - 1) / d), rtol=1e-12, atol=0)
        rows.append([d, f"{size:.4f}", f"{shrunk:.4f}"])
    table(["features d", "root mean square, divided by d", "divided by d − 1"], rows)


@cache
def cloud():
    """Points about (1, -0.5, 0.5), (250, 3)."""
    return np.array([1.0, -0.5, 0.5]) + np.random.default_rng(0).standard_normal((250, 3))


def draw_space():
    live.cloud(
        "space",
        "Forty tokens of three features, and what a norm makes of them",
        cloud()[:40],
        "A cloud of forty coloured points round the upright line (1, 1, 1), most of them above the plane "
        "at right angles to "
        "it. In the plane, a dashed circle of radius root three; round it, the outline of a sphere of that radius.",
    )


def prove_geometry():
    """Prove claim 03-geometry."""
    for points in (cloud(), np.random.default_rng(1).standard_normal((100, 512))):
        d = points.shape[-1]
        on_sphere = sn.layer_norm(points, eps=0)
        assert np.allclose(np.linalg.norm(on_sphere, axis=-1), np.sqrt(d), rtol=1e-12, atol=0)
        assert np.allclose(on_sphere @ np.ones(d), 0, atol=1e-10, rtol=0)
        projected = points - np.outer(points.mean(axis=-1), np.ones(d))
        stretched = projected / np.linalg.norm(projected, axis=-1, keepdims=True)
        assert np.allclose(on_sphere, np.sqrt(d) * stretched, rtol=0, atol=1e-12)


def tabulate_ignored():
    changed = {
        "$x$": TOKEN,
        "$x + 100$": TOKEN + 100,
        "$7x$": 7 * TOKEN,
        "$-7x$": -7 * TOKEN,
    }
    rows = [row_of_step(name, sn.layer_norm(v, eps=0)) for name, v in changed.items()]
    table(["LayerNorm of", "1", "2", "3", "4"], rows)


def prove_ignores_shift_and_scale():
    """Prove claims 03-ignores-shift-and-scale, 03-negative-scale, 03-volume-knob."""
    v = np.random.default_rng(0).standard_normal(64)
    y = sn.layer_norm(v, eps=0)

    assert np.allclose(sn.layer_norm(v + 100, eps=0), y, atol=1e-12, rtol=0)
    assert np.allclose(sn.layer_norm(7 * v, eps=0), y, atol=1e-12, rtol=0)
    assert np.allclose(sn.layer_norm(-7 * v, eps=0), -y, atol=1e-12, rtol=0)
    assert np.abs(sn.layer_norm(-7 * v, eps=0) - y).max() > 1

    wave = np.sin(np.arange(48) * 0.5) + 0.5 * np.sin(np.arange(48) * 1.7)
    heard = sn.layer_norm(wave)  # (48,), with the usual eps
    for played in (4 * wave, wave / 4, wave + 3):
        assert np.abs(sn.layer_norm(played) - heard).max() < 1e-3


def prove_cannot_undo(one, other):
    """Prove claim 03-cannot-undo."""
    assert np.abs(one - other).max() < 1e-12

    normal = np.random.default_rng(0).standard_normal((100, 512)) * np.arange(1, 513)
    restored = sn.batch_norm(normal, normal.std(0), normal.mean(0), eps=0)
    assert np.abs(restored - normal).max() < 1e-9
    another = np.random.default_rng(1).standard_normal((100, 512))  # a new batch
    missed = sn.batch_norm(another, normal.std(0), normal.mean(0), eps=0)
    assert np.abs(missed / np.arange(1, 513) - another).mean() > 0.05


def draw_gradient():
    e1, e2 = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])  # (3,) each
    point = sn.layer_norm(np.array([2.0, -1.0, 0.5]), eps=0)  # (3,)
    arriving = np.array([1.2, 0.6, -0.5])
    passed = sn.layer_norm_backward(arriving, point, eps=0)[0]

    def flat(v):
        return np.array([v @ e1, v @ e2])

    fig, ax = plt.subplots(figsize=(4.2, 3.6))
    angle = np.linspace(0, 2 * np.pi, 200)
    radius = np.sqrt(3)
    ax.plot(radius * np.cos(angle), radius * np.sin(angle), color=figures.GREY)
    ax.plot(*flat(point), "o", color=figures.BLACK)
    ax.plot(*zip((0, 0), flat(point), strict=True), ":", color=figures.BLACK)
    arrows = [
        (arriving, figures.ORANGE, "arrives", np.array([0.05, 0.1])),
        (passed, figures.BLUE, "goes on", np.array([-0.5, 0.2])),
    ]
    for vector, color, name, aside in arrows:
        tip = flat(point) + flat(vector)
        style = {"arrowstyle": "-|>", "color": color, "lw": 2, "shrinkA": 0}
        ax.annotate("", xy=tip, xytext=flat(point), arrowprops=style)
        ax.text(*(tip + aside), name, color=color)
    ax.text(*(0.45 * flat(point) + (0.1, -0.25)), "$\\hat{x}$")
    ax.set(aspect="equal", xlim=(-2, 3.6), ylim=(-2, 2.4))
    ax.axis("off")
    figures.show(
        fig,
        alt="A circle with a point on it and a dotted line from the centre to the point. From the point an "
        "orange arrow, "
        "marked arrives, points outwards and upwards. A blue arrow, marked goes on, leaves the same point "
        "along the circle.",
    )


def prove_backward_removes_two():
    """Prove claim 03-backward-removes-two."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((10, 64))
    cotangents = rng.standard_normal((10, 64))
    dx = sn.layer_norm_backward(cotangents, points, eps=0)[0]  # (10, 64)
    on_sphere = sn.layer_norm(points, eps=0)
    assert np.abs(dx.sum(axis=-1)).max() < 1e-12
    assert np.abs((dx * on_sphere).sum(axis=-1)).max() < 1e-12
    removed = cotangents - dx * points.std(axis=-1, keepdims=True)
    for r, xhat in zip(removed, on_sphere, strict=True):
        basis = np.stack([np.ones(64), xhat], axis=1)  # (64, 2)
        left_over = r - basis @ np.linalg.lstsq(basis, r, rcond=None)[0]
        assert np.abs(left_over).max() < 1e-12


def prove_table_1():
    """Prove claim 03-table-1."""
    runs = [invariance_table(seed) for seed in range(5)]
    columns = {}
    for norm in ("LayerNorm", "BatchNorm", "WeightNorm"):
        largest = np.max([run[norm] for run in runs], axis=0)  # over the seeds
        smallest = np.min([run[norm] for run in runs], axis=0)
        same = largest < 1e-9
        assert (same == PUBLISHED[norm]).all()
        assert (smallest[~same] > 1e-2).all()  # what moves, moves visibly
        columns[norm] = ["same" if s else "moves" for s in same]
    table(["change", *columns], zip(CHANGES, *columns.values(), strict=True))


def prove_decay_gain():
    """Prove claim 03-decay-gain."""
    lr, decay, steps = 0.01, 0.1, 1000

    def decayed(p):
        for _ in range(steps):
            p = p - lr * decay * p
        return p

    rng = np.random.default_rng(0)
    h, W = rng.standard_normal((5, 8)), rng.standard_normal((64, 8))
    gain = np.ones(64)
    before = sn.layer_norm(h @ W.T, gain, eps=0)  # (5, 64)
    small_matrix = sn.layer_norm(h @ decayed(W).T, gain, eps=0)
    small_gain = sn.layer_norm(h @ W.T, decayed(gain), eps=0)

    left = (1 - lr * decay) ** steps
    assert np.abs(small_matrix - before).max() < 1e-9
    assert np.allclose(small_gain, left * before, rtol=1e-9, atol=0)
    say("gain_left", left, ".2f")


def draw_axes():
    figures.show(
        diagrams.normalised_axes(),
        alt="Two tables with the tokens of two examples as rows and their features as columns. For LayerNorm "
        "one row is "
        "coloured: one token, all features. For BatchNorm one column is coloured: one feature, all tokens "
        "of all examples.",
    )


def torch_norm(values, shape):
    return F.layer_norm(torch.from_numpy(values), shape).numpy()


def prove_which_axes():
    """Prove claim 03-which-axes."""
    batch = two_sequences()
    moves = {(4,): [], (3, 4): []}  # normalized_shape: how far each token moves
    for seed in range(5):
        changed = batch.copy()
        changed[:, -1] += np.random.default_rng(seed).standard_normal(4)
        for shape, moved in moves.items():
            change = torch_norm(changed, shape) - torch_norm(batch, shape)
            moved.append(np.abs(change).max(axis=-1)[:, :-1])  # (B, T - 1)
    assert np.max(moves[(4,)]) == 0
    assert np.min(moves[(3, 4)]) > 1e-3


SCALES = np.logspace(-4, 1, 60)


@cache
def unit_row():
    """A token of 512 features with standard deviation 1."""
    return sn.layer_norm(np.random.default_rng(0).standard_normal(512), eps=0)


@cache
def sizes_out():
    """The standard deviation of a token after LayerNorm, by that before, SCALES, (60,)."""
    return np.array([sn.layer_norm(scale * unit_row()).std() for scale in SCALES])


INSIDE = SCALES / np.sqrt(SCALES**2 + 1e-5)  # what eps inside the root, or outside, would give
OUTSIDE = SCALES / (SCALES + 1e-5)


def draw_size_out():
    live.sketch(
        "size-out",
        "The spread of a token after LayerNorm, against its spread before",
        live.Axis("standard deviation of the input", True, (1e-4, 10)),
        live.Axis("standard deviation of the output", limits=(0, 1.5)),
        (SCALES, sizes_out()),
        knots=[1e-4, 1e-3, 1e-2, 0.1, 1, 10],
        alt="Standard deviation of the output against that of the input, on a "
        "logarithmic axis. The curve starts near zero, rises most steeply "
        "between a thousandth and a hundredth, and is flat at one from there on.",
    )


def prove_output_std():
    """Prove claim 03-output-std."""
    assert np.allclose(sizes_out(), INSIDE, rtol=1e-9, atol=0)
    assert (sizes_out() < 1).all()


def draw_eps_outside():
    fig, ax = plt.subplots()
    ax.semilogx(SCALES, INSIDE, color=figures.BLUE)
    ax.semilogx(SCALES[::4], sizes_out()[::4], "o", color=figures.BLUE)
    ax.semilogx(SCALES, OUTSIDE, "--", color=figures.ORANGE)
    where = np.sqrt(1e-5)
    ax.axvline(where, color=figures.GREY, linewidth=1, linestyle=":")
    figures.name(ax, "eps inside the root\n(dots: measured)", (where, 0.7), figures.BLUE, (12, -8))
    figures.name(ax, "eps outside", (1e-4, 0.9), figures.ORANGE, (2, -8))
    figures.name(ax, "σ² = eps", (where, 0.05), figures.GREY, (6, 0))
    figures.title(fig, "Inside the root, eps shrinks small rows far more than outside", INSIDE[0] < 0.1 * OUTSIDE[0])
    ax.set(xlabel="standard deviation of the input, σ", ylabel="standard deviation of the output")
    ax.set(xticks=10.0 ** np.arange(-4, 2), yticks=(0, 0.5, 1))
    figures.show(
        fig,
        alt="Standard deviation after LayerNorm against that before, on a logarithmic axis. With eps inside "
        "the root the "
        "curve rises from zero to one, most steeply near the dotted line where the variance equals eps, "
        "and the measured "
        "dots lie on it. With eps outside the root the dashed curve is near one everywhere in the picture.",
    )


def prove_eps_inside():
    """Prove claim 03-eps-inside."""
    sigma = 1e-3
    small = torch.from_numpy(sigma * unit_row())
    std_inside = F.layer_norm(small, (512,)).numpy().std()
    std_outside = (small / (small.std(correction=0) + 1e-5)).numpy().std()
    assert np.isclose(std_inside, sn.layer_norm(small.numpy()).std(), rtol=1e-9, atol=0)
    assert std_outside > 3 * std_inside
    say("std_inside", std_inside, ".3f")
    say("std_outside", std_outside, ".3f")


def say_without_cache(teller, prompt, count):
    """What a model says after a prompt, with every norm seeing the whole text each time."""
    said = teller.tokenizer.encode(prompt)
    for _ in range(count):
        scores = stories.logits(teller, stories.stream(teller, said)[-1])
        said = [*said, int(scores[-1].argmax())]
    return teller.tokenizer.decode(said)


@cache
def losses(norm, at=None):
    """Of the twelve texts, with another norm everywhere or at the given places, (12,)."""
    return stories.losses(altered(stories.load(), norm=norm, at=at), stories.texts())


def tabulate_trained(over_all, over_tokens):
    model = stories.load()
    norms = {
        "RMSNorm, as trained": sn.rms_norm,
        "LayerNorm": sn.layer_norm,
        "over tokens and features": over_all,
        "over tokens": over_tokens,
        "BatchNorm": sn.batch_norm,
    }
    prompt, rows = "Once upon a time", []
    for name, norm in norms.items():
        nats = "{:.2f} [{:.2f}, {:.2f}]".format(*(f(losses(norm)) for f in (np.mean, np.min, np.max)))
        story = say_without_cache(altered(model, norm=norm), prompt, 12)
        rows.append([name, nats, f"`{story.removeprefix(prompt)}`"])
    table(["norm", "loss (nats)", prompt], rows)


def prove_trained_layer(over_all, over_tokens):
    """Prove claims 03-trained-layer, 03-trained-axes, 03-trained-cache."""
    model = stories.load()
    cost = losses(sn.layer_norm) - losses(sn.rms_norm)
    assert (cost > 0).all()
    assert cost.max() < 0.2
    for wrong in (over_all, over_tokens, sn.batch_norm):
        assert losses(wrong).mean() > np.log(512)
    published, as_layer, cached = (
        stories.continuation(altered(model, norm=norm), [stories.BOS], 256) for norm in (None, sn.layer_norm, over_all)
    )
    assert cached == published
    pairs = zip(published, as_layer, strict=False)
    same = next(k for k, (a, b) in enumerate(pairs) if a != b)
    say("guessing", np.log(512), ".2f")
    say("layer_cost", cost.mean(), ".2f")
    say("layer_least", cost.min(), ".2f")
    say("layer_most", cost.max(), ".2f")
    say("same_tokens", same, ".0f")


def prove_trained_one(over_all):
    """Prove claims 03-trained-one, 03-trained-loud."""
    model, texts = stories.load(), stories.texts()

    def gain_alone(x, gamma):
        return gamma * x

    def one_at_a_time(norm):
        return np.array([(losses(norm, (k,)) - losses(sn.rms_norm)).mean() for k in range(11)])

    def first_share(model):
        """The first token's share of the energy at the top of the stream."""
        energy = [(stories.stream(model, t)[-1] ** 2).sum(-1) for t in texts]
        return np.array([e[0] / e.sum() for e in energy])

    widened, left_out = one_at_a_time(over_all), one_at_a_time(gain_alone)
    assert widened.max() < 0.25
    assert 0 < left_out.min() < left_out.max() < 0.6
    shares = first_share(model), first_share(altered(model, norm=over_all))
    assert shares[0].max() < 0.05 < 0.2 < shares[1].min()
    say("widened_most", widened.max(), ".2f")
    say("left_out_least", left_out.min(), ".2f")
    say("left_out_most", left_out.max(), ".2f")
    say("first_trained", shares[0].mean(), ".2f")
    say("first_widened", shares[1].mean(), ".2f")


def check_quick_checks():
    assert (sn.layer_norm([3.0, 3.0, 3.0, 3.0]) == 0).all()
    assert np.allclose(sn.rms_norm([3.0, 3.0, 3.0, 3.0]), 1, atol=1e-5, rtol=0)
    tripled = sn.layer_norm(TOKEN * [1, 3, 1, 1]) - sn.layer_norm(TOKEN)
    assert (np.abs(tripled) > 0.01).all()
