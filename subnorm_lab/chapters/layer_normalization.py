"""Figures and proofs of chapter 03, Layer normalization."""

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm_lab import diagrams, figures, live, stories
from subnorm_lab.experiments.invariances import CHANGES, PUBLISHED, invariance_table
from subnorm_lab.report import say, table
from subnorm_lab.stories import altered


def begin():
    torch.set_num_threads(1)
    figures.use_style()
    rng = np.random.default_rng(0)

    live.norms(
        "layer-norm",
        "A token on its way through LayerNorm; hollow bars show it without shift and scale",
        ["layer"],
        shift=5,
        scale=0.5,
        alt="Four groups of four bars: the token, the token without its mean, "
        "times rstd, and after gamma and beta. The token at half its size and "
        "moved up is solid, the token as it was hollow. In the first two groups "
        "they differ; in the last two they coincide.",
    )
    return rng


def row(step, values):
    return [step, *(f"{v:.3g}".replace("-", "−") for v in values)]


def tabulate_the_whole_norm_is_four_lines():
    x = np.array([2.0, 4.0, 6.0, 12.0])

    mean = x.mean()
    centred = x - mean  # (4,)
    var = (centred**2).mean()
    xhat = centred / np.sqrt(var)  # (4,)

    gamma = np.array([1.0, 1.0, 1.0, 0.5])  # chosen, to see what they do
    beta = np.array([0.0, 2.0, 0.0, 0.0])
    y = gamma * xhat + beta  # (4,)

    table(
        ["feature", "1", "2", "3", "4"],
        [
            row("the token", x),
            row("minus the mean", centred),
            row("over the root of the variance", xhat),
            row("times gamma, plus beta", y),
        ],
    )
    return x, mean, var, xhat, gamma, beta


def prove_four_numbers(mean, var, xhat):
    """Prove claim 03-four-numbers."""
    assert mean == 6
    assert var == 14
    assert np.isclose(xhat.mean(), 0, atol=1e-12, rtol=0)
    assert np.isclose((xhat**2).mean(), 1, rtol=1e-12, atol=0)
    say("twelve", xhat[3], ".2f")


def prove_no_louder(my_layer_norm, loud, rng):
    """Prove claim 03-no-louder."""
    say("loudest", my_layer_norm(loud, 1, 0)[3], ".2f")
    for d in (4, 64, 512):
        for size in 10.0 ** np.arange(9):
            token = rng.standard_normal(d)
            token[0] += size
            out = sn.layer_norm(token, eps=0)
            assert out.max() <= np.sqrt(d - 1) * (1 + 1e-9)
        assert np.isclose(out[0], np.sqrt(d - 1), rtol=1e-6, atol=0)  # almost reached


def prepare_batch(rng, x, my_layer_norm, gamma, beta):
    batch = 5 + 3 * rng.standard_normal((2, 3, 4))  # (B, T, d)
    batch[0, 0] = x
    means = batch.mean(axis=-1, keepdims=True)
    variances = ((batch - means) ** 2).mean(axis=-1, keepdims=True)
    xhats = (batch - means) / np.sqrt(variances + 1e-5)
    trace = {
        "x": batch,
        "mean": means,
        "var": variances,
        "xhat": xhats,
        "y": my_layer_norm(batch, gamma, beta),
    }
    for name, values in trace.items():
        first = ", ".join(f"{v:.2f}" for v in values[0, 0])
        print(f"{name:5}{values.shape!s:10} first token: {first}")
    return batch


def prove_five_versions(gamma, beta, batch, my_layer_norm):
    """Prove claim 03-five-versions."""
    layer = sn.LayerNorm(4)
    assert (layer.gamma == 1).all()
    assert (layer.beta == 0).all()
    layer.gamma, layer.beta = gamma, beta

    weights = {"weight": torch.from_numpy(gamma), "bias": torch.from_numpy(beta)}
    module = st.LayerNorm(4).double()
    module.load_state_dict(weights)
    builtin = torch.nn.LayerNorm(4, dtype=torch.float64)
    builtin.load_state_dict(weights)

    tokens = torch.from_numpy(batch)
    others = {
        "sn.layer_norm": sn.layer_norm(batch, gamma, beta),
        "sn.LayerNorm": layer(batch),
        "st.LayerNorm": module(tokens).detach().numpy(),
        "torch.nn.LayerNorm": builtin(tokens).detach().numpy(),
    }
    for name, result in others.items():
        gap = np.abs(result - my_layer_norm(batch, gamma, beta)).max()
        assert gap < 1e-12
        print(f"{name:18} agrees to 12 digits: {gap < 1e-12}")


def prove_biased(rng):
    """Prove claim 03-biased."""
    rows = []
    drawn = {d: rng.standard_normal(d) for d in (4, 16, 512)}
    for d, v in drawn.items():
        deviation = torch.from_numpy(v).std().item()  # divides by d - 1
        size, shrunk = (np.sqrt((y**2).mean()) for y in (sn.layer_norm(v, eps=0), (v - v.mean()) / deviation))
        assert np.isclose(size, 1, rtol=1e-12, atol=0)
        assert np.isclose(shrunk, np.sqrt((d - 1) / d), rtol=1e-12, atol=0)
        rows.append([d, f"{size:.4f}", f"{shrunk:.4f}"])
    table(["features d", "root mean square, by d", "by d − 1"], rows)


def draw_space(rng):
    cloud = np.array([1.0, -0.5, 0.5]) + rng.standard_normal((250, 3))
    live.cloud(
        "space",
        "Forty tokens of three features, and what a norm makes of them; drag to turn",
        cloud[:40],
        "A cloud of forty coloured points round the upright line (1, 1, 1), most of them above the plane "
        "at right angles to "
        "it. In the plane, a dashed circle of radius root three; round it, the outline of a sphere of that radius.",
    )
    return cloud


def prove_geometry(cloud, rng):
    """Prove claim 03-geometry."""
    for points in (cloud, rng.standard_normal((100, 512))):
        d = points.shape[-1]
        on_sphere = sn.layer_norm(points, eps=0)
        assert np.allclose(np.linalg.norm(on_sphere, axis=-1), np.sqrt(d), rtol=1e-12, atol=0)
        assert np.allclose(on_sphere @ np.ones(d), 0, atol=1e-10, rtol=0)
        projected = points - np.outer(points.mean(axis=-1), np.ones(d))
        stretched = projected / np.linalg.norm(projected, axis=-1, keepdims=True)
        assert np.allclose(on_sphere, np.sqrt(d) * stretched, rtol=0, atol=1e-12)


def tabulate_what_it_ignores(x):
    changed = {
        "$x$": x,
        "$x + 100$": x + 100,
        "$7x$": 7 * x,
        "$-7x$": -7 * x,
    }
    rows = [row(name, sn.layer_norm(v, eps=0)) for name, v in changed.items()]
    table(["LayerNorm of", "1", "2", "3", "4"], rows)


def prove_ignores_shift_and_scale(rng):
    """Prove claims 03-ignores-shift-and-scale, 03-negative-scale, 03-volume-knob."""
    v = rng.standard_normal(64)
    y = sn.layer_norm(v, eps=0)

    assert np.allclose(sn.layer_norm(v + 100, eps=0), y, atol=1e-12, rtol=0)
    assert np.allclose(sn.layer_norm(7 * v, eps=0), y, atol=1e-12, rtol=0)
    assert np.allclose(sn.layer_norm(-7 * v, eps=0), -y, atol=1e-12, rtol=0)
    assert np.abs(sn.layer_norm(-7 * v, eps=0) - y).max() > 1

    wave = np.sin(np.arange(48) * 0.5) + 0.5 * np.sin(np.arange(48) * 1.7)
    heard = sn.layer_norm(wave)  # (48,), with the usual eps
    for played in (4 * wave, wave / 4, wave + 3):
        assert np.abs(sn.layer_norm(played) - heard).max() < 1e-3


def prove_cannot_undo(one, other, rng):
    """Prove claim 03-cannot-undo."""
    assert np.abs(one - other).max() < 1e-12

    normal = rng.standard_normal((100, 512)) * np.arange(1, 513)
    restored = sn.batch_norm(normal, normal.std(0), normal.mean(0), eps=0)
    assert np.abs(restored - normal).max() < 1e-9
    another = np.random.default_rng(1).standard_normal((100, 512))  # a new batch
    missed = sn.batch_norm(another, normal.std(0), normal.mean(0), eps=0)
    assert np.abs(missed / np.arange(1, 513) - another).mean() > 0.05


def draw_no_gradient_flows_along_what_is_ignored():
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


def prove_backward_removes_two(rng):
    """Prove claim 03-backward-removes-two."""
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


def prove_decay_gain(rng):
    """Prove claim 03-decay-gain."""
    lr, decay, steps = 0.01, 0.1, 1000

    def decayed(p):
        for _ in range(steps):
            p = p - lr * decay * p
        return p

    h, W = rng.standard_normal((5, 8)), rng.standard_normal((64, 8))
    gain = np.ones(64)
    before = sn.layer_norm(h @ W.T, gain, eps=0)  # (5, 64)
    small_matrix = sn.layer_norm(h @ decayed(W).T, gain, eps=0)
    small_gain = sn.layer_norm(h @ W.T, decayed(gain), eps=0)

    left = (1 - lr * decay) ** steps
    assert np.abs(small_matrix - before).max() < 1e-9
    assert np.allclose(small_gain, left * before, rtol=1e-9, atol=0)
    say("gain_left", left, ".2f")


def draw_over_which_axes():
    figures.show(
        diagrams.normalised_axes(),
        alt="Two tables with the tokens of two examples as rows and their features as columns. For LayerNorm "
        "one row is "
        "coloured: one token, all features. For BatchNorm one column is coloured: one feature, all tokens "
        "of all examples.",
    )


def torch_norm(values, shape):
    return F.layer_norm(torch.from_numpy(values), shape).numpy()


def tabulate_over_which_axes(batch):
    moves = {(4,): [], (3, 4): []}  # normalized_shape: how far each token moves
    for seed in range(5):
        changed = batch.copy()
        changed[:, -1] += np.random.default_rng(seed).standard_normal(4)
        for shape, moved in moves.items():
            change = torch_norm(changed, shape) - torch_norm(batch, shape)
            moved.append(np.abs(change).max(axis=-1)[:, :-1])  # (B, T - 1)
    table(
        ["in PyTorch", "do the other tokens move?"],
        [[f"`layer_norm(x, {shape})`", "yes" if np.max(moved) > 0 else "no"] for shape, moved in moves.items()],
    )
    return moves


def prove_which_axes(moves):
    """Prove claim 03-which-axes."""
    assert np.max(moves[(4,)]) == 0
    assert np.min(moves[(3, 4)]) > 1e-3


def draw_size_out(scales, measured):
    live.sketch(
        "size-out",
        "How wide a token comes out of LayerNorm, against how wide it went in",
        live.Axis("standard deviation of the input", True, (1e-4, 10)),
        live.Axis("standard deviation of the output", limits=(0, 1.5)),
        (scales, measured),
        knots=[1e-4, 1e-3, 1e-2, 0.1, 1, 10],
        alt="Standard deviation of the output against that of the input, on a "
        "logarithmic axis. The curve starts near zero, rises most steeply "
        "between a thousandth and a hundredth, and is flat at one from there on.",
    )


def prove_output_std(scales, measured):
    """Prove claim 03-output-std."""
    inside = scales / np.sqrt(scales**2 + 1e-5)
    outside = scales / (scales + 1e-5)
    assert np.allclose(measured, inside, rtol=1e-9, atol=0)
    assert (measured < 1).all()
    return inside, outside


def draw_eps_outside_the_root_is_another_function(scales, inside, measured, outside):
    fig, ax = plt.subplots()
    ax.semilogx(
        scales,
        inside,
        color=figures.BLUE,
        label="eps inside the root: $\\sigma/\\sqrt{\\sigma^2+\\varepsilon}$",
    )
    ax.semilogx(scales[::4], measured[::4], "o", color=figures.BLUE, label="measured")
    ax.semilogx(
        scales,
        outside,
        "--",
        color=figures.ORANGE,
        label="eps outside: $\\sigma/(\\sigma+\\varepsilon)$",
    )
    ax.axvline(np.sqrt(1e-5), color=figures.GREY, linewidth=1, linestyle=":")
    ax.set(
        xlabel="standard deviation of the input, σ",
        ylabel="standard deviation of the output",
    )
    ax.legend(loc="lower right")
    figures.show(
        fig,
        alt="Standard deviation after LayerNorm against that before, on a logarithmic axis. With eps inside "
        "the root the "
        "curve rises from zero to one, most steeply near the dotted line where the variance equals eps, "
        "and the measured "
        "dots lie on it. With eps outside the root the dashed curve is near one everywhere in the picture.",
    )


def prove_eps_inside(unit_row):
    """Prove claim 03-eps-inside."""
    sigma = 1e-3
    small = torch.from_numpy(sigma * unit_row)
    std_inside = F.layer_norm(small, (512,)).numpy().std()
    std_outside = (small / (small.std(correction=0) + 1e-5)).numpy().std()
    assert np.isclose(std_inside, sn.layer_norm(small.numpy()).std(), rtol=1e-9, atol=0)
    assert std_outside > 3 * std_inside
    say("std_inside", std_inside, ".3f")
    say("std_outside", std_outside, ".3f")


def goes_on(model, prompt, count):
    """Without a cache: every norm sees the whole text each time."""
    begin = tokens = model.tokenizer.encode(prompt)
    for _ in range(count):
        scores = stories.logits(model, stories.stream(model, tokens)[-1])
        tokens = [*tokens, int(scores[-1].argmax())]
    return model.tokenizer.decode(tokens[len(begin) :])


def tabulate_in_a_trained_model(model, over_all, over_tokens):
    texts = stories.texts(model)

    def losses(model):
        return np.array([stories.loss(model, tokens) for tokens in texts])

    norms = {
        "RMSNorm, as trained": sn.rms_norm,
        "LayerNorm": sn.layer_norm,
        "over tokens and features": over_all,
        "over tokens": over_tokens,
        "BatchNorm": sn.batch_norm,
    }
    found, rows = {}, []
    for name, norm in norms.items():
        other = altered(model, norm=norm)
        found[name] = losses(other)
        nats = "{:.2f} [{:.2f}, {:.2f}]".format(*(f(found[name]) for f in (np.mean, np.min, np.max)))
        rows.append([name, nats, f"`{goes_on(other, 'Once upon a time', 12)}`"])
    table(["norm", "loss (nats)", "Once upon a time"], rows)

    trained, layer, *wrong = found.values()
    return texts, losses, trained, layer, wrong


def prove_trained_layer(layer, trained, wrong, model, over_all):
    """Prove claims 03-trained-layer, 03-trained-axes, 03-trained-cache."""
    cost = layer - trained
    assert (cost > 0).all()
    assert cost.max() < 0.2
    assert np.mean(wrong, axis=1).min() > np.log(512)
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


def prove_trained_one(losses, model, trained, texts, over_all):
    """Prove claims 03-trained-one, 03-trained-loud."""

    def one_at_a_time(norm):
        at = [losses(altered(model, norm=norm, at=[k])) for k in range(11)]
        return (np.array(at) - trained).mean(axis=1)  # (11,)

    def first_share(model):
        """The first token's share of the energy at the top of the stream."""
        energy = [(stories.stream(model, t)[-1] ** 2).sum(-1) for t in texts]
        return np.array([e[0] / e.sum() for e in energy])

    widened = one_at_a_time(over_all)
    left_out = one_at_a_time(lambda x, gamma: gamma * x)
    assert widened.max() < 0.25
    assert 0 < left_out.min() < left_out.max() < 0.6
    shares = first_share(model), first_share(altered(model, norm=over_all))
    assert shares[0].max() < 0.05 < 0.2 < shares[1].min()
    say("widened_most", widened.max(), ".2f")
    say("left_out_least", left_out.min(), ".2f")
    say("left_out_most", left_out.max(), ".2f")
    say("first_trained", shares[0].mean(), ".2f")
    say("first_widened", shares[1].mean(), ".2f")


def check_quick_checks(x):
    assert (sn.layer_norm([3.0, 3.0, 3.0, 3.0]) == 0).all()
    assert np.allclose(sn.rms_norm([3.0, 3.0, 3.0, 3.0]), 1, atol=1e-5, rtol=0)
    tripled = sn.layer_norm(x * [1, 3, 1, 1]) - sn.layer_norm(x)
    assert (np.abs(tripled) > 0.01).all()
