"""Figures and proofs of chapter 04, RMSNorm."""

from dataclasses import replace
from functools import cache, partial

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.ticker import MaxNLocator

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm import timing
from subnorm_lab import figures, live, stories
from subnorm_lab.chapters import begin as begin
from subnorm_lab.experiments.equivalence import (
    centre_writers,
    mean_share,
    random_model,
    swap_norms,
    tie_head,
    untie_head,
)
from subnorm_lab.experiments.finite_differences import adjoint_gap, finite_difference
from subnorm_lab.experiments.jacobian import singular_values
from subnorm_lab.report import claimed_table, interval, say, table, typeset
from subnorm_lab.stories import altered
from subnorm_lab.stories.torch import Stories


def draw_two_norms():
    live.norms(
        "two-norms",
        "One token through both norms: hollow before shift and scale, solid after",
        ["layer", "rms"],
        alt="Five groups of four bars. Above, the token 2, 4, 6 and 12, the token without its mean, and LayerNorm's "
        "output. Below, the token and RMSNorm's output. Hollow bars show the token as it was; the solid ones coincide "
        "with them until the token is changed.",
    )


TOKEN = np.array([2.0, 4.0, 6.0, 12.0])
ROWS = np.random.default_rng(0).normal(3, 2, (100, 7))


def prove_mean_square_splits():
    """Prove claim 04-mean-square-splits."""
    assert (TOKEN**2).mean() == 50 == TOKEN.mean() ** 2 + TOKEN.var()
    assert np.allclose((ROWS**2).mean(-1), ROWS.mean(-1) ** 2 + ROWS.var(-1), rtol=1e-12, atol=0)


def random_case():
    """Rows (2 sequences, 3 tokens, d), gain and shift (d,)."""
    rng = np.random.default_rng(0)
    return 5 + 3 * rng.standard_normal((2, 3, 8)), *rng.standard_normal((2, 8))


def prove_ln_is_rms():
    """Prove claims 04-ln-is-rms, 04-not-without-beta."""
    x, gamma, beta = random_case()
    layer = sn.layer_norm(x, gamma)
    centred = x - x.mean(axis=-1, keepdims=True)
    assert np.abs(sn.rms_norm(centred, gamma) - layer).max() < 1e-12

    # LayerNorm without beta is still LayerNorm; RMSNorm with beta is not one.
    without_beta = np.abs(sn.rms_norm(x, gamma) - layer).max()
    with_beta = np.abs(sn.rms_norm(x, gamma) + beta - sn.layer_norm(x, gamma, beta)).max()
    assert min(without_beta, with_beta) > 1
    say("without_beta", without_beta, ".1f")


def check_my_rms_norm(my_rms_norm):
    x_batch, gamma, _beta = random_case()
    x_torch, gamma_torch = torch.from_numpy(x_batch), torch.from_numpy(gamma)
    module = st.RMSNorm(8).double()
    module.load_state_dict({"weight": gamma_torch})

    mine = my_rms_norm(x_batch, gamma)
    others = {
        "sn.rms_norm": sn.rms_norm(x_batch, gamma),
        "st.RMSNorm": module(x_torch).detach().numpy(),
        "F.rms_norm": F.rms_norm(x_torch, (8,), gamma_torch, eps=1e-5).numpy(),
    }
    for name, y in others.items():
        gap = np.abs(y - mine).max()
        assert gap < 1e-12
        print(f"{name:12} agrees to 12 digits: {gap < 1e-12}")


def draw_arrows():
    along_ones = 2 * TOKEN.mean()  # sqrt(d) * mean
    across = np.linalg.norm(TOKEN - TOKEN.mean())
    shrink = 2 / np.hypot(along_ones, across)  # to radius sqrt(d) = 2

    fig, ax = plt.subplots(figsize=(4.8, 3.45))
    angle = np.linspace(0, np.pi / 2, 100)
    ax.plot(2 * np.cos(angle), 2 * np.sin(angle), color=figures.GREY, linewidth=1)
    arrow = {"arrowstyle": "-|>", "linewidth": 2, "shrinkA": 0, "shrinkB": 0}
    start = (along_ones, across)
    rms_at, layer_at = (along_ones * shrink, across * shrink), (0, 2)
    ax.annotate("", rms_at, start, arrowprops=arrow | {"color": figures.ORANGE})
    ax.annotate("", (0, across), start, arrowprops=arrow | {"color": figures.BLUE})
    ax.annotate("", layer_at, (0, across), arrowprops=arrow | {"color": figures.BLUE})
    for point, text, color, shift in [
        (start, "x", figures.BLACK, (8, 0)),
        (rms_at, "RMSNorm", figures.ORANGE, (10, -4)),
        (layer_at, "LayerNorm", figures.BLUE, (8, 8)),
    ]:
        ax.plot(*point, "o", color=figures.BLACK)
        figures.name(ax, text, point, color, shift)
    figures.title(fig, "Two ways to the same circle, of radius √d", np.isclose(np.hypot(*rms_at), layer_at[1]))
    ax.set(
        xlabel="along the ones: √d × mean",
        ylabel="√d × standard deviation",
        xlim=(-0.3, 13.6),
        ylim=(0, 8.6),
        aspect="equal",
        anchor="NW",
    )
    figures.show(
        fig,
        alt="A plane with the mean direction to the right and the deviations upwards, and a quarter circle. "
        "From the point "
        "x, RMSNorm goes straight towards the origin until it meets the circle. LayerNorm goes left to the vertical "
        "axis, which removes the mean, and then down along it to the same circle.",
    )


def prove_angle():
    """Prove claim 04-angle."""
    share = mean_share(TOKEN)
    cosine = sn.rms_norm(TOKEN, eps=0) @ sn.layer_norm(TOKEN, eps=0) / 4  # both have length 2
    assert np.isclose(cosine, np.sqrt(1 - share), rtol=1e-12, atol=0)
    y, z = sn.rms_norm(ROWS, eps=0), sn.layer_norm(ROWS, eps=0)
    assert np.allclose((y * z).mean(-1), np.sqrt(1 - mean_share(ROWS)), rtol=1e-12, atol=0)
    say("share_by_hand", share, ".2f")
    say("angle_by_hand", np.degrees(np.arccos(cosine)), ".0f")


def tabulate_invariances():
    d = 16
    rng = np.random.default_rng(1)
    x = rng.standard_normal((20, d)) + 0.5
    order = rng.permutation(d)
    turn, _ = np.linalg.qr(rng.standard_normal((d, d)))  # a random rotation

    unchanged = ("the same", lambda y: y)
    changes = {
        "times 7": (7 * x, *unchanged),
        "plus 5": (x + 5, *unchanged),
        "times -1": (-x, "its negative", lambda y: -y),
        "features in another order": (
            x[:, order],
            "in that order",
            lambda y: y[:, order],
        ),
        "rotated": (x @ turn.T, "rotated as well", lambda y: y @ turn.T),
    }
    answers, kept = [], {}
    for change, (changed, expected, follow) in changes.items():
        cells = []
        for norm in (sn.layer_norm, sn.rms_norm):
            gap = np.abs(norm(changed, eps=0) - follow(norm(x, eps=0))).max()
            assert gap < 1e-12 or gap > 0.1  # nothing in between
            cells.append(gap < 1e-12)
        kept[change] = cells
        yes_no = ("yes" if c else "no" for c in cells)
        answers.append([change, expected, *yes_no])
    table(["input", "output", "LayerNorm", "RMSNorm"], answers)
    return kept


def prove_scale(kept):
    """Prove claims 04-scale, 04-shift, 04-rotation."""
    assert kept["times 7"] == kept["times -1"] == [True, True]
    assert kept["plus 5"] == [True, False]
    assert kept["rotated"] == [False, True]


SEEDS, STREAM_DIMS = range(5), [16, 32, 64, 128, 256]
WORDS = torch.randint(0, 50, (8, 16), generator=torch.Generator().manual_seed(0))


@cache
@torch.no_grad()
def stream_share():
    """Share of the mean in an untrained stream, shape (SEEDS, STREAM_DIMS)."""
    found = np.empty((len(SEEDS), len(STREAM_DIMS)))
    for i, seed in enumerate(SEEDS):
        for j, d in enumerate(STREAM_DIMS):
            stream = random_model("layer", 2, d, seed=seed).states(WORDS)
            found[i, j] = mean_share(torch.stack(stream).numpy()).mean()
    return found


def relu(z):  # a row of zeros has no energy to share out
    return np.maximum(z, 0)[z.max(axis=-1) > 0]


DIMS = 2 ** np.arange(2, 11)  # 4 ... 1024


@cache
def shares(make):
    """Mean share of 500 rows, shape (SEEDS, DIMS)."""
    found = np.empty((len(SEEDS), len(DIMS)))
    for i, seed in enumerate(SEEDS):
        rng = np.random.default_rng(seed)
        found[i] = [mean_share(make(rng.standard_normal((500, d)))).mean() for d in DIMS]
    return found


def draw_shares():
    fig, ax = plt.subplots()
    curves = [
        ("after a ReLU", DIMS, shares(relu), figures.GREEN, "-."),
        ("independent, mean 0", DIMS, shares(np.asarray), figures.ORANGE, "-"),
        ("stream, random weights", STREAM_DIMS, stream_share(), figures.BLUE, "--"),
    ]
    for label, at, values, colour, style in curves:
        ax.plot(at, values.mean(axis=0), style, color=colour)
        figures.name_curve(ax, label, at, values.mean(axis=0), colour)
        ax.fill_between(at, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.25)
    ax.plot(DIMS, 1 / DIMS, **figures.LOOKS["theory"])
    figures.name_ends(ax, [("1/d", (DIMS[-1], 1 / DIMS[-1]), figures.BLACK)])
    after_relu, *others = (values.mean(axis=0) for _, _, values, _, _ in curves)
    falls = all((np.diff(means) < 0).all() for means in others) and after_relu[-1] > 0.7 * after_relu[0]
    figures.title(fig, "The mean's share falls with d, but hardly after a ReLU", falls)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="number of features, $d$",
        ylabel="share of the mean, $s$",
        xticks=DIMS,
        xticklabels=DIMS,
        ylim=(None, 1),
    )
    ax.minorticks_off()
    figures.show(
        fig,
        alt="Share of the energy that the mean carries, against the number of features, both axes logarithmic. "
        "Independent "
        "features follow the line one over d downwards, and the residual stream stays near it. After a ReLU the "
        "share is almost flat, and far above. Bands show the range over five seeds.",
    )


def prove_share_independent():
    """Prove claims 04-share-independent, 04-share-stream, 04-share-relu."""
    random_share, relu_share = shares(np.asarray), shares(relu)
    say("share_512", random_share.mean(axis=0)[DIMS == 512][0], ".3f", noise=1e-4)
    say("share_relu", relu_share.mean(axis=0)[DIMS == 512][0], ".2f", noise=1e-4)
    times_d = stream_share() * STREAM_DIMS
    assert np.allclose(random_share.mean(axis=0) * DIMS, 1, rtol=0.1, atol=0)
    assert 0.5 < times_d.min() < times_d.max() < 2
    assert relu_share.min() > 0.25
    assert np.allclose(relu_share[:, -1], 1 / np.pi, rtol=0.02, atol=0)


def scores(body, head=None):
    """A function of tokens: the scores of the next ones."""
    return lambda t: stories.logits(head or body, stories.stream(body, t)[-1])


def opening(model):
    return stories.generate(model, tokens=90).split("\n")[0]


def tabulate_stories(model, swapped):
    told = [opening(model).split(), opening(swapped).split()]
    pairs = zip(*told, strict=False)
    parted = next(k for k, (a, b) in enumerate(pairs) if a != b)
    table(
        ["norms", "story"],
        [
            ["both", " ".join(told[0][:parted]) + " …"],
            ["RMSNorm", "… " + " ".join(told[0][parted:])],
            ["LayerNorm", "… " + " ".join(told[1][parted:])],
        ],
    )


def losses(scores):
    """The loss on each text, in nats, shape (12,)."""
    texts = np.array(stories.texts())
    z = np.stack([scores(t[:-1]).astype(float) for t in texts])  # (12, T, V)
    chosen = np.take_along_axis(z, texts[:, 1:, None], axis=-1)[..., 0]
    return (np.logaddexp.reduce(z, axis=-1) - chosen).mean(axis=-1)


def prove_trained_swap(model, swapped):
    """Prove claim 04-trained-swap."""
    swap_rise = losses(scores(swapped)) - losses(scores(model))
    assert 0 < swap_rise.min() < swap_rise.max() < 0.25
    say("trained_swap", swap_rise.mean(), ".2f")


READERS = ("q", "k", "v", "gate", "up")


def folded(model):
    """The model with each gain in the matrices that read it: its body, and a body with the final gain in its head."""
    weights = tuple(
        {n: w * gain if n in READERS else w for n, w in weights.items()}
        for weights, gain in zip(model.weights, model.gains[:-1], strict=True)
    )
    body = replace(model, weights=weights, gains=np.ones_like(model.gains))
    return body, replace(body, embedding=model.embedding * model.gains[-1])  # a copy


@cache
def story():
    """The 256 tokens of the trained model's greedy story, after the first."""
    return np.array([1, *stories.continuation(stories.load(), [stories.BOS], 256)])


def same_for(scores):
    """How many tokens of the story these scores choose as well."""
    return int(np.append(scores(story()[:-1]).argmax(-1) != story()[1:], 1).argmax())


def with_eps(eps):
    return scores(altered(stories.load(), norm=partial(sn.rms_norm, eps=eps)))


def narrow_first(norm, inputs, _y):
    return norm.weight * st.rms_norm(*inputs)


@cache
def changed():
    """For each change of the trained model: the rise of its loss on each text, the tokens the same, and a bound.

    The bound is how far the loss may move where it hardly does, and None elsewhere.
    """
    model = stories.load()
    body, head = folded(model)
    ones = np.ones_like(model.gains)

    def in_bfloat16(hook=None):
        twin = Stories(model).to(torch.bfloat16)
        for norm in twin.norms:
            if hook:
                norm.register_forward_hook(hook)
        return lambda t: twin(torch.tensor(t)).detach().double().numpy()

    one_each = replace(model, gains=model.gains.mean(-1, keepdims=True) * ones)
    changes = {
        "gains folded, head apart": (scores(body, head), 1e-12),
        "gains folded, head tied": (scores(head), None),
        "every gain 1": (scores(replace(model, gains=ones)), None),
        "each norm's mean gain": (scores(one_each), None),
        "eps = 1e-8": (with_eps(1e-8), 1e-3),
        "eps = 0.001": (with_eps(1e-3), 2e-3),
        "eps = 0.01": (with_eps(1e-2), None),
        "eps = 0.1": (with_eps(0.1), None),
        "eps = 1": (with_eps(1.0), None),
        "float32": (scores(stories.load(np.float32)), 1e-5),
        "float16": (scores(stories.load(np.float16)), 2e-3),
        "bfloat16": (in_bfloat16(), 0.02),
        "bfloat16, narrowed before the gain": (in_bfloat16(narrow_first), 0.02),
    }
    trained = losses(scores(model))
    return {name: (losses(other) - trained, same_for(other), bound) for name, (other, bound) in changes.items()}


def tabulate_rises():
    rows = []
    for name, (rise, same, bound) in changed().items():
        text = f"less than {bound:g}" if bound else f"{rise.mean():.2f} [{rise.min():.2f}, {rise.max():.2f}]"
        # where bfloat16 leaves the story depends on the processor
        rows.append([name, text, "not all" if name.startswith("bfloat16") else same])
    table(["change", "rise of the loss (nats)", "tokens the same"], rows)


def prove_trained_share():
    """Prove claims 04-trained-share, 04-trained-gains, 04-trained-eps, 04-trained-precision, 04-trained-fold."""
    model = stories.load()
    streams = np.array([stories.stream(model, t) for t in stories.texts()])  # (12, 11, T, d)
    share = 64 * mean_share(streams).mean(axis=-1)  # in units of 1/d
    assert 0.4 < share.min() < share.max() < 1.3
    say("trained_share_least", share.min(), ".1f")
    say("trained_share_most", share.max(), ".1f")

    for name, (rise, same, bound) in changed().items():
        assert bound is None or np.abs(rise).max() < bound
        assert same < 256 or not name.startswith("bfloat16")
    for name in ("gains folded, head apart", "eps = 1e-8", "float32", "float16"):
        assert changed()[name][1] == 256
    trained = losses(scores(model))
    for eps in (1e-7, 1e-6, 1e-4):
        assert same_for(with_eps(eps)) == 256
        assert np.abs(losses(with_eps(eps)) - trained).max() < 1e-3
    rise = {name: found[0] for name, found in changed().items()}
    assert rise["gains folded, head tied"].min() > 0.1
    assert rise["eps = 1"].min() > 3
    say("trained_loss", trained.mean(), ".2f")
    say("smallest", (streams**2).mean(axis=-1).min(), ".2f")
    say("largest", np.abs(streams).max(), ".0f")

    silent = altered(model, norm=partial(sn.rms_norm, eps=1.0))
    assert stories.generate(silent) == ""
    stutter = stories.generate(replace(model, gains=np.ones_like(model.gains)), tokens=9)
    assert stutter.startswith("Once upon upon upon")

    first = model.gains.copy()
    first[1] = 1
    alone = losses(scores(replace(model, gains=first))) - trained
    loudest = (streams**2).mean(axis=(0, 2)).argmax(axis=-1)[1::2]  # (5,)
    assert (model.gains[1::2].argmin(axis=-1) == loudest).all()
    assert rise["each norm's mean gain"].max() < rise["every gain 1"].min() / 3
    say("gain_least", model.gains.min(), ".2f")
    say("gain_most", model.gains.max(), ".1f")
    say("gain_first", model.gains[1].mean(), ".2f")
    say("first_alone", alone.mean(), ".1f")

    half = np.ones(4096)  # a float16 sum would stop at 2048, a bfloat16 sum at 256
    assert half.astype(np.float16) @ half.astype(np.float16) == 4096
    assert torch.ones(4096).bfloat16() @ torch.ones(4096).bfloat16() == 4096
    best = np.sort(scores(model)(story()[:-1]), axis=-1)[:, -2:]  # (256, 2)
    step = torch.finfo(torch.bfloat16).eps * 16  # from 16 to 32
    assert best[:, 1].max() < 32
    say("step", step, ".3f")
    say("close", (best[:, 1] - best[:, 0] < step).sum(), ".0f")


@cache
@torch.no_grad()
def swap_moves():
    """How far a swap of all norms moves logits, in standard deviations, {how: (seeds, largest and root mean square)}.

    As the model is, and with its writers centred first.
    """
    found = {"naive": [], "centred": []}
    for seed in range(5):
        layer = random_model("layer", seed=seed)
        logits = layer(WORDS)  # (8, 16, 50)
        for name, start in (("naive", layer), ("centred", centre_writers(layer))):
            change = (swap_norms(start)(WORDS) - logits) / logits.std()
            found[name].append([float(change.abs().max()), float(change.square().mean().sqrt())])
    return {name: np.array(moves) for name, moves in found.items()}


def tabulate_swaps():
    worst = {name: moves[:, 0] for name, moves in swap_moves().items()}
    assert worst["centred"].max() < 1e-12
    table(
        ["norms swapped", "the worst logit moves by"],
        [
            ["as it is", interval(worst["naive"])],
            ["centred first", "less than 1e-12"],
        ],
    )


def prove_equivalent():
    """Prove claims 04-equivalent, 04-naive-swap."""
    worst, typical = swap_moves()["naive"].T
    assert swap_moves()["centred"].max() < 1e-12
    assert worst.min() > 0.8
    assert typical.min() > np.sqrt(1 / 32)
    say("naive_least", worst.min(), ".1f", noise=1e-4)
    say("typical_least", typical.min(), ".2f", noise=1e-4)
    say("typical_most", typical.max(), ".2f", noise=1e-4)
    say("root_of_share", np.sqrt(1 / 32), ".2f")


@torch.no_grad()
def prove_untie_first():
    """Prove claim 04-untie-first."""
    tied = {"tied": [], "untied first": []}
    for seed in range(5):
        model = tie_head(random_model("layer", seed=seed))
        logits = model(WORDS)
        for name, start in (("tied", model), ("untied first", untie_head(model))):
            change = swap_norms(centre_writers(start))(WORDS) - logits
            tied[name].append(float((change / logits.std()).abs().max()))
    assert min(tied["tied"]) > 0.1
    assert max(tied["untied first"]) < 1e-12
    say("tied_least", min(tied["tied"]), ".1f", noise=1e-4)
    say("tied_most", max(tied["tied"]), ".1f", noise=1e-4)


def prove_fold(before, after):
    """Prove claim 04-fold."""
    assert np.abs(before - after).max() < 1e-12


SHOWN = ["layer_hand", "rms_hand", "layer_builtin", "rms_builtin"]
NAMES = [timing.LABELS[key] for key in SHOWN]


def in_copies(record, shape):
    """The time of each version in copies of the same bytes: first quartile, median, third quartile."""
    measured = timing.rows(record, "forward", shape)
    rounds = [np.divide(measured[key].rounds, measured["copy"].rounds) for key in SHOWN]
    return [np.quantile(times, (0.25, 0.5, 0.75)) for times in rounds]


def draw_times():
    looks = [(figures.BLUE, "o"), (figures.ORANGE, "o"), (figures.BLUE, "s"), (figures.ORANGE, "s")]
    for record in timing.read_records():
        small, *_, large = timing.shapes(record, "forward")
        longest = max(np.max(in_copies(record, shape)) for shape in (large, small))
        fig, axes = plt.subplots(1, 2, figsize=(7.6, 2.9), sharex=True, sharey=True)
        for ax, shape in zip(axes, (large, small), strict=True):
            times = in_copies(record, shape)
            for y, ((q1, median, q3), (color, mark)) in enumerate(zip(times, looks, strict=True)):
                ax.plot([q1, q3], [y, y], color=color, linewidth=5)
                ax.plot(median, y, mark, color=color, markersize=8)
                figures.name(ax, f"{median:.1f}", (q3, y), color, (9, 0))
            ax.axvline(1, color=figures.BLACK, linewidth=1, linestyle="--")
            figures.name(ax, "a copy", (1, -0.5), shift=(4, -1))
            ax.set(
                title=f"{shape[0]} × {shape[1]}",
                xlabel="time, in copies of the same bytes",
                xlim=(0, 1.2 * longest),
            )
            figures.rows(ax, NAMES, [median for _, median, _ in times])
            ax.xaxis.set_major_locator(MaxNLocator(3, integer=True))
        layer, rms = (in_copies(record, large)[row][1] for row in (2, 3))
        on_gpu = record["device"]["kind"] == "cuda"
        device = f"a GPU, {record['device']['name']}" if on_gpu else "one thread of a CPU"
        named = record["device"]["name"] if on_gpu else "One CPU thread"
        figures.title(fig, f"{named}, large array: F.rms_norm / F.layer_norm = {rms / layer:.2f}")
        figures.show(
            fig,
            alt=f"Times of four norms on {device}, as multiples of the time of a copy of the same bytes, with "
            "quartiles, for "
            "a large and a small array. The dashed line marks the copy. The numbers are in a table below.",
        )


def rms_of_layer():
    """Rounds of the recorded CPU on its largest array: RMSNorm's time over LayerNorm's, by hand and built in."""
    large = largest_rounds()
    return large["rms_hand"] / large["layer_hand"], large["rms_builtin"] / large["layer_builtin"]


def largest_rounds(device="AMD EPYC"):
    record = next(r for r in timing.read_records() if r["device"]["name"] == device)
    rows = timing.rows(record, "forward", timing.shapes(record, "forward")[-1])
    return {key: np.array(row.rounds) for key, row in rows.items()}


def prove_by_hand():
    """Prove claims 04-by-hand, 04-built-in."""
    large = largest_rounds()
    by_hand, built_in = rms_of_layer()
    assert np.quantile(by_hand, 0.9) < 0.8
    assert np.quantile(built_in, 0.1) > 1.5
    say("rms_of_layer_by_hand", np.median(by_hand), ".2f")
    say("rms_of_layer_built_in", np.median(built_in), ".1f")
    say("layer_of_copy", np.median(large["layer_builtin"] / large["copy"]), ".1f")
    say("rms_of_copy", np.median(large["rms_builtin"] / large["copy"]), ".1f")


def prove_on_a_gpu():
    """Prove claim 04-on-a-gpu."""
    medians = []
    for gpu in ("NVIDIA H200", "NVIDIA H100 80GB HBM3"):
        large = largest_rounds(gpu)
        ratio = large["rms_builtin"] / large["layer_builtin"]
        assert max(large["layer_builtin"] / large["copy"]) < 2  # a kernel, not a chain
        assert max(ratio) < 1
        medians.append(np.median(ratio))
    say("rms_of_layer_gpu", min(medians), ".2f")
    say("rms_of_layer_gpu_high", max(medians), ".2f")


def tabulate_times():
    records = timing.read_records()
    for record in records:
        print(timing.heading(record))
        small, *_, large = timing.shapes(record, "forward")
        columns = [
            [f"{m:.2f} [{q1:.2f}, {q3:.2f}]" for q1, m, q3 in in_copies(record, shape)] for shape in (large, small)
        ]
        table(
            [f"time in copies, {record['device']['name']}", *(f"{rows} × {d}" for rows, d in (large, small))],
            [list(row) for row in zip(NAMES, *columns, strict=True)],
        )
    if not any(record["device"]["kind"] == "cuda" for record in records):
        print("Not yet measured on a GPU: the package has no GPU record.")


def tabulate_operations(made_of):
    table(
        ["version", "operations on tensors"],
        [[timing.LABELS[key], ", ".join(ops)] for key, ops in made_of.items()],
    )


def check_operations(made_of):
    assert made_of["layer_builtin"] == ["native_layer_norm"]
    assert len(made_of["rms_builtin"]) > 1


def check_at_right_angles(dx, x):
    assert np.allclose(dx * 50**1.5, [49, -2, -3, -6], rtol=1e-12, atol=0)  # r^3 (50 dy - x/2)
    assert np.isclose(dx @ x, 0, rtol=0, atol=1e-12)
    assert abs(dx.sum()) > 0.1


def gaps(my_rms_norm, backward, seed):
    """How far a backward pass is from each witness, on a random case."""
    rng = np.random.default_rng(seed)
    x, gamma = 5 + 3 * rng.standard_normal((2, 3, 8)), rng.standard_normal(8)
    dy, v = rng.standard_normal((2, *x.shape))
    dx, dgamma = backward(dy, x, gamma)[:2]

    def forward(x):
        return my_rms_norm(x, gamma)

    leaves = [torch.tensor(a, requires_grad=True) for a in (x, gamma)]
    y = F.rms_norm(leaves[0], (8,), leaves[1], eps=1e-5)
    y.backward(torch.from_numpy(dy))
    dx_autograd, dgamma_autograd = (leaf.grad.numpy() for leaf in leaves)
    return [
        np.abs(dx - finite_difference(forward, x, dy)).max(),
        np.abs(dx - dx_autograd).max(),
        adjoint_gap(forward, x, v, dy, dx),
        np.abs(dgamma - dgamma_autograd).max(),
    ]


def prove_backward(my_rms_norm, my_rms_norm_backward):
    """Prove claim 04-backward."""
    right = np.array([gaps(my_rms_norm, my_rms_norm_backward, seed) for seed in range(5)])
    assert (right < [1e-7, 1e-12, 1e-7, 1e-12]).all()


def check_extra_term_is_caught(my_rms_norm):
    wrong = np.array([gaps(my_rms_norm, sn.layer_norm_backward, seed) for seed in range(5)])
    assert (wrong[:, :3] > 1e-3).all()


D = 16
DRAWN = [0.5 + np.random.default_rng(seed).standard_normal(D) for seed in range(5)]


@cache
def rank():
    """The ranks of each norm's Jacobian that occur, at eps = 0."""
    return {norm: {int((singular_values(norm, x, 0) > 1e-12).sum()) for x in DRAWN} for norm in ("layer", "rms")}


def prove_rank():
    """Prove claim 04-rank."""
    assert rank() == {"layer": {D - 2}, "rms": {D - 1}}


def draw_singular_values():
    floor, index = 1e-12, np.arange(1, D + 1)  # below the floor it is rounding
    looks = {"layer": ("LayerNorm", -0.18), "rms": ("RMSNorm", 0.18)}
    as_token = {
        "as drawn": lambda x: x,
        "10 added": lambda x: x + 10,
        "divided by 1000": lambda x: x / 1000,
    }
    sizes = ("0", "1e-8", "1e-6", "1e-5", "1e-4", "1e-2", "1", "100")

    def frame(eps, change):
        says, dots = [], {}
        for norm, (name, aside) in looks.items():
            cases = [singular_values(norm, change(x), eps) for x in DRAWN]
            relative = [np.maximum(v / v[0], floor) for v in cases]
            (blocked,) = {int((v == floor).sum()) for v in relative}  # in all five
            assert blocked == (norm == "layer") + (eps == 0)
            dots[norm] = (index + aside, relative[0])
            weakest = relative[0][D - blocked - 1]
            rest = f"the weakest of the rest has {live.number(weakest)} of the"
            rest = "the rest pass alike" if weakest > 0.999 else f"{rest} strongest"
            says.append(f"{name} blocks {blocked}, {rest}.")
        return f"Of {D} directions: " + " ".join(says), [dots]

    live.chart(
        "singular-values",
        "Singular values of the two Jacobians, relative to the largest",
        [
            live.slider("eps", "eps", {typeset(e): float(e) for e in sizes}, 1e-5),
            live.choice("change", "token", as_token, as_token["as drawn"]),
        ],
        [
            live.Lines(
                live.Axis(
                    "index of the singular value",
                    ticks={k: str(k) for k in (1, 4, 8, 12, 16)},
                ),
                live.Axis(
                    "relative to the largest; 0 is rounding",
                    log=True,
                    limits=(2e-13, 5),
                    ticks={floor: "0", 1e-8: "10⁻⁸", 1e-4: "10⁻⁴", 1: "1"},
                ),
                {
                    norm: live.Curve(name, figures.LOOKS[norm]["color"], marks="only")
                    for norm, (name, _aside) in looks.items()
                },
            )
        ],
        frame,
        alt="Singular values of two Jacobians with 16 features, relative to the "
        "largest, on a logarithmic axis. For LayerNorm fourteen are equal, the "
        "fifteenth is smaller by orders of magnitude, and the last is zero. For "
        "RMSNorm fifteen are equal and only the last is small, but not zero.",
    )


def prove_crack():
    """Prove claim 04-crack."""
    eps = 1e-5
    for x in DRAWN:
        m, var = (x**2).mean(), x.var()
        rms, layer = (singular_values(n, x, eps) for n in ("rms", "layer"))
        assert np.isclose(rms[-1] / rms[0], eps / (m + eps), rtol=1e-6, atol=0)
        assert np.isclose(layer[-2] / layer[0], eps / (var + eps), rtol=1e-6, atol=0)
        assert layer[-1] < 1e-12


def prove_overflow():
    """Prove claim 04-overflow."""
    x_half = 25 * torch.tensor(TOKEN, dtype=torch.float16)
    mean_square = (x_half * x_half).mean()  # in float16: 300 squared is inf
    naive = x_half * torch.rsqrt(mean_square + 1e-5)
    assert torch.isinf(mean_square)
    assert (naive == 0).all()
    by_rms = torch.from_numpy(sn.rms_norm(TOKEN, eps=0))
    assert torch.allclose(st.rms_norm(x_half).double(), by_rms, rtol=1e-3, atol=0)


def relative_error(y, exact):
    return float(((y.double() - exact) / exact).square().mean().sqrt())


def prove_one_rounding():
    """Prove claim 04-one-rounding."""
    errors, differ, steps = [], [], []
    for seed in range(5):
        draw = torch.Generator().manual_seed(seed)
        x16 = torch.randn(200, 512, generator=draw).bfloat16()
        w16 = (1 + 0.2 * torch.randn(512, generator=draw)).bfloat16()
        wide = st.rms_norm(x16.float())  # xhat in float32
        llama = w16 * wide.bfloat16()
        gemma = (w16.float() * wide).bfloat16()
        by_torch = F.rms_norm(x16, (512,), w16, eps=1e-5)
        for same in (by_torch, st.rms_norm(x16, w16)):
            assert (gemma == same).double().mean() > 0.999
        differ.append((llama != gemma).double().mean())
        apart = llama.view(torch.int16) - gemma.view(torch.int16)
        steps.append(int(apart.abs().max()))  # between neighbours: 1
        exact = w16.double() * st.rms_norm(x16.double())
        errors.append([relative_error(y, exact) for y in (llama, gemma)])
    before_gain, after_gain = np.array(errors).T  # (seeds,) each
    ratio = before_gain / after_gain
    assert ((ratio > 1.35) & (ratio < 1.5)).all()
    assert steps == [1] * 5
    say("rounding", ratio.mean(), ".1f", noise=1e-3)
    say("differ", np.mean(differ), ".2f", noise=1e-3)


EPS_OF_TORCH = torch.finfo(torch.float32).eps
SIZES = (1.0, 1e-2, 1e-3, 1e-4)


def size_after(norm, size):
    """The root mean square after a norm, of a row with this one."""
    row = size * torch.from_numpy(sn.rms_norm(TOKEN, eps=0)).float()
    return norm(row).detach().square().mean().sqrt()


def tabulate_eps():
    norms = st.RMSNorm(4), torch.nn.RMSNorm(4)
    rows = [[f"{size:g}", *(f"{size_after(norm, size):.2f}" for norm in norms)] for size in SIZES]
    table(["rms of the input", "eps = 1e-5", "torch's default"], rows)


def prove_wide_gain():
    """Prove claims 04-wide-gain, 04-stored-less-one, 04-eps-default."""
    for norm, eps in ((st.RMSNorm(4), 1e-5), (torch.nn.RMSNorm(4), EPS_OF_TORCH)):
        for size in SIZES:
            assert np.isclose(size_after(norm, size), size / np.sqrt(size**2 + eps), rtol=1e-4, atol=0)
    narrow = torch.ones(4, dtype=torch.bfloat16)
    assert (torch.ones(4) * narrow).dtype == torch.float32  # a wide gain wins
    gain = 1.001
    assert torch.tensor(gain).bfloat16() == 1  # the gain is lost, w is not
    assert abs(1 + float(torch.tensor(gain - 1).bfloat16()) - gain) < 1e-5
    narrow_types = (torch.float32, torch.bfloat16, torch.float16)
    for dtype in (torch.float64, *narrow_types):
        tiny = torch.full((1, 4), 1e-3, dtype=dtype)
        y = torch.nn.RMSNorm(4, dtype=dtype)(tiny).detach()
        found = (tiny.double() / y.double()).square() - tiny.double().square()
        computed_in = torch.float32 if dtype in narrow_types else dtype
        expected = torch.full_like(found, torch.finfo(computed_in).eps)
        assert torch.allclose(found, expected, rtol=0.1, atol=0)
    say("eps_of_torch", EPS_OF_TORCH, ".1e")


CPU = "record:subnorm/timing/records/cpu-*.json"


def mark(claim):
    return f"<!-- claim: {claim} -->"


def parameters():
    return [sum(p.numel() for p in norm(512).parameters()) for norm in (torch.nn.LayerNorm, torch.nn.RMSNorm)]


def tabulate_both_norms():
    by_hand, built_in = map(np.median, rms_of_layer())
    claimed_table(
        ["", "LayerNorm", "RMSNorm"],
        [
            [
                "subtracts",
                "the mean",
                "nothing",
                mark("04-t-step claim:04-ln-is-rms"),
            ],
            [
                "parameters",
                *parameters(),
                mark("04-parameters"),
            ],
            ["positive scale of x", "ignored", "ignored", mark("04-scale")],
            ["shift of x", "ignored", "felt", mark("04-shift")],
            [
                "rotation of x",
                "not kept",
                "kept",
                mark("04-rotation"),
            ],
            [
                "rank",
                *rank()["layer"],
                *rank()["rms"],
                mark("04-t-rank claim:04-rank"),
            ],
            [
                "centred x",
                "the same",
                "the same",
                mark("04-t-same claim:04-ln-is-rms"),
            ],
            ["time by hand", "1", f"{by_hand:.2f}", mark(f"04-by-hand {CPU}")],
            ["time built in", "1", f"{built_in:.1f}", mark(f"04-built-in {CPU}")],
            [
                "loss after 130 steps",
                "reference",
                "within 0.02<!-- chosen --> nats",
                mark("04-t-parity claim:04a-parity"),
            ],
        ],
    )


def prove_parameters():
    """Prove claim 04-parameters."""
    assert parameters() == [2 * 512, 512]


def check_quick_checks():
    threes = np.full(4, 3.0)
    np.testing.assert_array_equal(sn.layer_norm(threes), 0)
    np.testing.assert_allclose(sn.rms_norm(threes), 1, atol=1e-6)
