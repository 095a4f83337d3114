"""Figures and proofs of chapter 05, Pre-LN or Post-LN?."""

from dataclasses import replace
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm_lab import diagrams, figures, live, stories
from subnorm_lab.chapters import begin as begin
from subnorm_lab.experiments import gradients, longer_runs, stack
from subnorm_lab.report import claimed_table, interval, say, table
from subnorm_lab.stories.torch import Stories

PLACEMENTS = {"post": "Post-LN", "pre": "Pre-LN"}


KINDS = PLACEMENTS | {"deepnorm": "DeepNorm", "after_branch": "norm after F"}


STACKS = (4, 12, 24)


SEEDS = range(6)
CURVES = {
    "pre": live.Curve("Pre-LN", **figures.LOOKS["pre"]),
    "post": live.Curve("Post-LN", **figures.LOOKS["post"]),
    "deepnorm": live.Curve("DeepNorm", figures.GREEN, "-."),
    "after_branch": live.Curve("after F", figures.PINK, ":"),
    "theory": live.Curve("theory", **figures.LOOKS["theory"]),
}
PASSED = live.Axis("blocks passed", limits=(0, 24), ticks={0: "0", 8: "8", 16: "16", 24: "24"})
AXES = {
    "mean_square": live.Axis("mean square of stream"),
    "token_cosine": live.Axis("cosine of tokens", limits=(0, 1)),
    "one_token": live.Axis("gradient in the block", log=True, limits=(0.5, 100)),
}


@cache
def measured_untrained():
    """What is measured in untrained stacks, block by block, {placement: {blocks: {what: (seeds, blocks)}}}."""
    return {k: gradients.block_by_block(k, STACKS, SEEDS) for k in KINDS}


PLACES = {
    "after the sum (Post-LN)": "post",
    "before F (Pre-LN)": "pre",
    "after F": "after_branch",
}


def draw_place():
    passed = np.arange(25)
    alike = {place: measured_untrained()[place][24]["token_cosine"] for place in PLACES.values()}  # (seeds, 25)

    def moved(place):
        curves = {k: (passed, values if k == place else np.median(values, axis=0)) for k, values in alike.items()}
        sentence = (
            f"x passes through {'a' if place == 'post' else 'no'} norm before the next sum. "
            f"After 24 blocks, two tokens have a cosine of {np.median(alike[place][:, -1]):z.3f}."
        )
        return sentence, [place, curves]

    where = live.choice("place", "the norm is", PLACES, "post")
    live.chart(
        "move-the-norm",
        "The norm's place decides whether 24 blocks make all tokens alike (cosine 1)",
        [where],
        [
            live.Block("one sublayer", where),
            live.Lines(
                PASSED,
                live.Axis("cosine of two tokens", limits=(0, 1)),
                {k: CURVES[k] for k in PLACES.values()},
            ),
        ],
        moved,
        "A block diagram in which the norm is after the plus, so that the green path of x passes it before "
        "the next sum; and the cosine of two tokens by the number of blocks passed, up to 24. For Post-LN it rises "
        "from zero to almost one halfway, and stays there. The curves of Pre-LN and of a norm after F stay below it.",
        side=2,
    )


def draw_two_blocks():
    figures.show(
        diagrams.placements(),
        narrow=diagrams.placements_upright(),
        alt="Two block diagrams. In the Post-LN block each skip path runs over the sublayer to a plus sign, and a norm "
        "follows the plus, on the main line. In the Pre-LN block the norm is before the sublayer, on the branch, and "
        "the skip path runs over both; nothing follows the plus.",
    )


def prove_formulas():
    """Prove claim 05-formulas."""
    x, reverse, norm = np.array([2.0, 4.0, 6.0, 12.0]), np.flip, sn.LayerNorm(4, eps=0.0)
    post = norm(x + reverse(x))
    pre = x + reverse(norm(x))
    np.testing.assert_array_equal(post, sn.post_ln(x, reverse, norm))
    np.testing.assert_array_equal(pre, sn.pre_ln(x, reverse, norm))
    np.testing.assert_allclose(post, [1, -1, -1, 1], atol=1e-12)
    assert np.argmax(pre) == 3
    assert np.argmin(pre) == 0
    say("pre_mean", pre.mean(), ".0f")


def prove_pytorch_default():
    """Prove claim 05-pytorch-default."""
    default = nn.TransformerEncoderLayer(d_model=16, nhead=4)
    assert not default.norm_first
    assert not nn.TransformerDecoderLayer(d_model=16, nhead=4).norm_first
    attention = nn.MultiheadAttention(16, 4)
    assert [name for name, _ in attention.named_children()] == ["out_proj"]


TIMELINE = [
    (2017.45, "the transformer paper", "post"),
    (2017.45, "its code, at first", "post"),
    (2017.6, "its code, an option", "pre"),
    (2017.76, "its code, the default", "pre"),
    (2018.25, "Annotated Transformer", "post"),
    (2018.25, "its code", "pre"),
    (2018.5, "GPT", "post"),
    (2018.75, "Baevski & Auli", "pre"),
    (2018.8, "BERT", "post"),
    (2019.1, "GPT-2", "pre"),
    (2019.45, "Wang et al.", "pre"),
    (2019.8, "T5", "pre"),
    (2020.1, "Xiong et al.", "both"),
    (2021.5, "PyTorch's default", "post"),
    (2023.15, "LLaMA", "pre"),
    (2025.0, "OLMo 2", "other"),
]


LANES = {
    "post": ("Post-LN", figures.ORANGE, "s"),
    "pre": ("Pre-LN", figures.BLUE, "o"),
    "both": ("both", figures.BLACK, "D"),
    "other": ("neither", figures.GREEN, "^"),
}


def draw_timeline():
    fig, ax = plt.subplots(figsize=(7.2, 5.1))
    for lane, (label, color, marker) in LANES.items():
        events = [(year, row) for row, (year, _, its) in enumerate(TIMELINE) if its == lane]
        ax.plot(*zip(*events, strict=True), marker, color=color, markersize=8)
        for at in dict.fromkeys((events[0], events[-1])):
            figures.name(ax, label, at, color, (10, 0))
    ax.set(xlim=(2017, 2026.4), xticks=range(2018, 2025, 2), xlabel="year")
    figures.rows(ax, [who for _, who, _ in TIMELINE], [year for year, _, _ in TIMELINE], size=9.5)
    late = [who for year, who, its in TIMELINE if year > 2019 and its == "post"]
    only = late == ["PyTorch's default"]
    figures.title(fig, "Of these, only PyTorch's default is Post-LN after 2018", only)
    figures.show(
        fig,
        alt="A timeline from 2017 to 2025, one row for each event. Orange squares for Post-LN: the transformer "
        "paper, the "
        "first commit of its code, the text of the Annotated Transformer, GPT, BERT, PyTorch. Blue dots for Pre-LN: "
        "an option and soon the default of that code, the code of the Annotated Transformer, Baevski and Auli, GPT-2, "
        "Wang et al., T5, LLaMA. Xiong et al. have a black diamond, OLMo 2 a green triangle.",
    )


def correlation(x, y):
    x, y = (h - h.mean(-1, keepdim=True) for h in (x, y))
    return nn.functional.cosine_similarity(x, y, dim=-1).mean().item()


AFTER = (1, 12, 24)


@cache
def held_and_kept():
    """Of 24 blocks: four mean squares at the top, (seeds, 4), and the correlation with the input, (seeds, 25).

    The mean squares: into the last block, what its branch reads, out of it, and after the final norm.
    """
    held, memory = {}, {}
    for placement in PLACEMENTS:
        rows, kept = [], []
        for seed in SEEDS:
            generator = torch.Generator().manual_seed(seed)
            net = stack.untrained(placement, 24, generator)
            with torch.no_grad():
                states = stack.states(net, stack.random_tokens(generator))
                skip, raw = states[-2:]  # into the last block, and out of it
                normed = net.placement.norms[-2](skip)
                finished = net.placement.end(raw)
            reads = normed if placement == "pre" else skip
            rows.append([stack.mean_square(v) for v in (skip, reads, raw, finished)])
            kept.append([correlation(states[0], h) for h in states])
        held[placement] = np.array(rows)  # (seeds, 4)
        memory[placement] = np.array(kept)  # (seeds, 25)
    return held, memory


def tabulate_memory():
    memory = held_and_kept()[1]
    table(
        ["correlation with the input", "1 block", "12 blocks", "24 blocks"],
        [[PLACEMENTS[p], *(interval(memory[p][:, k]) for k in AFTER)] for p in PLACEMENTS],
    )


def prove_post_forgets():
    """Prove claim 05-post-forgets."""
    memory = held_and_kept()[1]
    assert np.abs(memory["post"][:, 24]).max() < 0.02
    assert memory["pre"][:, 24].min() > 0.2
    for p, depth in (("post", 1), ("pre", 1), ("post", 12)):
        say(f"memory_{p}_{depth}", np.median(memory[p][:, depth]), noise=1e-4)


def squares(placement):
    """The mean square of the stream, (seeds, 25)."""
    return measured_untrained()[placement][24]["mean_square"]


LEAST = (2 / 5) * (1 / 2) * (8 / 5)  # what a block adds to the mean square
MOST = LEAST + 1 / 2


def prove_post_stream_is_one():
    """Prove claims 05-post-stream-is-one, 05-stream-grows, 05-others."""
    growth = (squares("pre")[:, -1] - squares("pre")[:, 0]) / 24
    assert np.abs(squares("post")[:, 1:] - 1).max() < 0.01
    assert ((growth > LEAST) & (growth < MOST)).all()
    added = np.diff(squares("pre"), axis=1)  # (seeds, L)
    assert added.min() < LEAST
    assert added.max() > MOST
    third = np.diff(measured_untrained()["after_branch"][24]["mean_square"], axis=1)
    assert np.abs(third.mean(1) - 2).max() < 0.5
    assert np.abs(measured_untrained()["deepnorm"][24]["token_cosine"]).max() < 0.02
    say("least", LEAST, ".2f")
    say("most", MOST, ".2f")
    say("growth", np.median(growth), ".2f", noise=1e-4)
    say("stream_post", np.median(squares("post")[:, -1]), ".2f", noise=1e-4)
    say("stream_pre", np.median(squares("pre")[:, -1]), ".0f", noise=1e-4)


def tabulate_final_norm():
    rows = zip(("without the final norm", "with it"), held_and_kept()[0]["pre"].T[2:], strict=True)
    table(["Pre-LN, 6 seeds", "mean square"], [[name, interval(values, ".0f")] for name, values in rows])


def tabulate_last_block():
    held = held_and_kept()[0]
    table(
        ["mean square in block 24, 6 seeds", "skip path", "branch reads"],
        [[PLACEMENTS[p], *(interval(v, ".0f") for v in held[p].T[:2])] for p in PLACEMENTS],
    )


def prove_skip_carries():
    """Prove claims 05-skip-carries, 05-norm-bounds-branches."""
    held = held_and_kept()[0]
    assert held["pre"][:, 0].min() > 10
    np.testing.assert_allclose(held["pre"][:, 1], 1, atol=0.01)
    np.testing.assert_allclose(held["post"][:, :2], 1, atol=0.01)


def builtin():
    """PyTorch's block in each placement, from the same seed."""
    found = {}
    for placement in PLACEMENTS:
        torch.manual_seed(0)
        found[placement] = nn.TransformerEncoderLayer(
            d_model=16,
            nhead=4,
            dim_feedforward=64,
            dropout=0.0,
            batch_first=True,
            norm_first=placement == "pre",
            dtype=torch.float64,
        )
    return found


def renamed(state):
    return {f"feed_forward.{name}" if name.startswith("linear") else name: w for name, w in state.items()}


def numpy_parts(state):
    w = {name: value.numpy() for name, value in renamed(state).items()}

    def under(prefix):
        return {k.removeprefix(prefix): w[k] for k in w if k.startswith(prefix)}

    return {
        "attention": lambda h: sn.multi_head_attention(h, under("self_attn."), num_heads=4),
        "feed_forward": lambda h: sn.feed_forward(h, under("feed_forward.")),
        "norm1": lambda h: sn.layer_norm(h, w["norm1.weight"], w["norm1.bias"]),
        "norm2": lambda h: sn.layer_norm(h, w["norm2.weight"], w["norm2.bias"]),
    }


def four_versions(post_ln_block, pre_ln_block):
    """For each placement and version, how far it is from PyTorch's block on the same tokens and weights."""
    tokens = torch.randn(2, 5, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))  # (B, T, d)
    gaps = {}
    blocks = {"post": post_ln_block, "pre": pre_ln_block}
    for placement, layer in builtin().items():
        state = layer.state_dict()
        ours = st.TransformerBlock(16, 4, 64, placement).double()
        ours.load_state_dict(renamed(state))
        modules = [ours.self_attn, ours.feed_forward, ours.norm1, ours.norm2]
        two_lines = blocks[placement]
        results = {
            "two lines, NumPy": two_lines(tokens.numpy(), **numpy_parts(state)),
            "two lines, PyTorch": two_lines(tokens, *modules).detach().numpy(),
            "TransformerBlock": ours(tokens).detach().numpy(),
        }
        expected = layer(tokens).detach().numpy()
        for name, y in results.items():
            gaps[PLACEMENTS[placement], name] = np.abs(y - expected).max()
    return gaps


def compare_four_versions(post_ln_block, pre_ln_block):
    for (placement, name), gap in four_versions(post_ln_block, pre_ln_block).items():
        print(f"{placement:8} {name:19} gap below 1e-12: {gap < 1e-12}")


def prove_same_parts(post_ln_block, pre_ln_block):
    """Prove claim 05-same-parts."""
    gaps = four_versions(post_ln_block, pre_ln_block)
    assert len(gaps) == 6
    assert max(gaps.values()) < 1e-12
    names = [list(layer.state_dict()) for layer in builtin().values()]
    assert names[0] == names[1]


def prove_final_norm():
    """Prove claim 05-final-norm."""
    encoder = nn.TransformerEncoder(builtin()["pre"], num_layers=2, enable_nested_tensor=False)
    encoder(torch.ones(2, 5, 16, dtype=torch.float64))  # runs, without a final norm
    raw, finished = held_and_kept()[0]["pre"].T[2:]  # each (seeds,)
    assert raw.min() > 10
    assert np.abs(finished - 1).max() < 0.01
    assert encoder.norm is None
    whole = nn.Transformer(16, 4, 1, 1, 64, batch_first=True)
    assert not whole.encoder.layers[0].norm_first
    assert isinstance(whole.encoder.norm, nn.LayerNorm)


def draw_placements():
    theory = ([24, 0, 24], [1 + 24 * MOST, 1, 1 + 24 * LEAST])  # two lines

    def frame(other, depth):
        shown = {k: measured_untrained()[k][depth] for k in ("pre", other)}
        blocks = np.arange(depth + 1)
        data = {q: {k: (blocks[-v[q].shape[1] :], v[q]) for k, v in shown.items()} for q in AXES}
        data["mean_square"]["theory"] = theory
        top = [np.median(v[q][:, -1]) for v in shown.values() for q in AXES]
        sentence = (
            f"At the top of {depth} blocks, Pre-LN has "
            "a mean square of {:.1f}, a cosine of {:z.2f} and a gradient of {:.1f}; "
            f"{KINDS[other]}: " + "{:.1f}, {:z.2f} and {:.1f}."
        )
        return sentence.format(*top), list(data.values())

    live.chart(
        "placements",
        "Untrained stacks, block by block: median and range of six seeds, and two bounds of theory",
        [
            live.choice(
                "other",
                "beside Pre-LN",
                {KINDS[k]: k for k in KINDS if k != "pre"},
                "post",
            ),
            live.slider("depth", "blocks L", STACKS, 24),
        ],
        [live.Lines(PASSED, axis, CURVES, 250) for axis in AXES.values()],
        frame,
        "Three panels by the number of blocks passed, up to 24. The stream of Pre-LN grows in a nearly straight line, "
        "between two dotted lines; that of Post-LN is flat at one. The cosine of Post-LN's tokens is almost one "
        "halfway, that of Pre-LN's climbs slowly and stays well below. The gradient is flat in Post-LN and "
        "falls towards the top in Pre-LN.",
        side=3,
    )


def cosine_12():
    """The cosine of two tokens after 12 blocks, {placement: (seeds,)}."""
    return {p: measured_untrained()[p][24]["token_cosine"][:, 12] for p in PLACEMENTS}


def prove_tokens_align():
    """Prove claim 05-tokens-align."""
    for p in PLACEMENTS:
        say(f"cosine_{p}", np.median(cosine_12()[p]), ".2f", noise=1e-4)
    assert cosine_12()["post"].min() > 0.9
    assert cosine_12()["pre"].max() < 0.8


@cache
@torch.no_grad()
def cosine_after_12(placement, change):
    found = []
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        net = stack.untrained(placement, 12, generator)
        for name, weight in net.named_parameters():
            if weight.ndim == 2:
                change(name, weight)
        states = stack.states(net, stack.random_tokens(generator))
        found.append(stack.token_cosine(states[-1]))
    return np.array(found)


def silence_attention(name, weight):
    if name.endswith("out_proj.weight"):
        weight.zero_()


def shrink(name, weight):
    weight.mul_(0.02 / weight.std())


def tabulate_cosines():
    table(
        ["cosine, 5 seeds", *PLACEMENTS.values()],
        [
            [name, *(interval(cosine_after_12(p, change)) for p in PLACEMENTS)]
            for name, change in (("no attention", silence_attention), ("small weights", shrink))
        ],
    )


def prove_init_decides():
    """Prove claim 05-init-decides."""
    silent, small = ({p: cosine_after_12(p, change) for p in PLACEMENTS} for change in (silence_attention, shrink))
    assert min(values.min() for values in silent.values()) > 0.2
    assert (silent["post"] > silent["pre"]).all()
    assert max(np.abs(values).max() for values in small.values()) < 0.02


DEPTHS = (4, 8, 16, 32)
LOSSES = {"one_token": "loss of one token", "average": "averaged loss"}


@cache
def last_gradients():
    """The size of the last layer's gradient, {placement: {loss: (seeds, DEPTHS)}}."""
    return {p: gradients.last_layer(p, DEPTHS, seeds=SEEDS) for p in PLACEMENTS}


def slopes(placement, loss):
    """How that size goes with the depth, on logarithmic axes, (seeds,)."""
    return gradients.log_slopes(DEPTHS, last_gradients()[placement][loss])


def draw_last_gradients():
    last = last_gradients()
    guide = np.array(DEPTHS, dtype=float) ** -0.5
    fig, axes = plt.subplots(1, 2, figsize=(7.8, 3.5))
    for ax, (loss, title) in zip(axes, LOSSES.items(), strict=True):
        for name in PLACEMENTS:
            look = figures.LOOKS[name]
            ax.loglog(DEPTHS, last[name][loss].T, linewidth=0.7, alpha=0.5, **look)
            ax.loglog(DEPTHS, last[name][loss].mean(0), **look)
        start = last["pre"][loss][:, 0].mean()
        ax.loglog(DEPTHS, start * guide / guide[0], **figures.LOOKS["theory"])
        for name, words in PLACEMENTS.items():
            figures.name_curve(ax, words, DEPTHS, last[name][loss].mean(0), figures.LOOKS[name]["color"])
        figures.name_curve(ax, "1/√L", DEPTHS, start * guide / guide[0])
        ax.set(title=title, xlabel="blocks L", xticks=DEPTHS, xticklabels=DEPTHS)
        ax.minorticks_off()
    axes[0].set_yticks([2, 4, 6], ["2", "4", "6"])
    axes[1].set_yticks([0.1, 0.3, 0.9], ["0.1", "0.3", "0.9"])
    axes[0].set_ylabel("size of the gradient")
    means = {name: np.array([last[name][loss].mean(0) for loss in LOSSES]) for name in PLACEMENTS}
    only_pre = (np.diff(means["pre"]) < 0).all() and (means["post"][:, -1] > 0.95 * means["post"][:, 0]).all()
    figures.title(fig, "Before training, only Pre-LN's last gradient falls with depth", only_pre)
    figures.show(
        fig,
        alt="Size of the last layer's gradient against depth, both axes logarithmic, six seeds. Left, for the "
        "loss of one "
        "token: Post-LN is flat, Pre-LN falls along the dotted guide. Right, for the averaged loss: "
        "Post-LN grows at first, "
        "then levels off while its seeds scatter, and "
        "Pre-LN falls less steeply than the guide.",
    )


def tabulate_slopes():
    table(
        ["loss of one token", "slope, 6 seeds"],
        [[PLACEMENTS[p], interval(slopes(p, "one_token"))] for p in PLACEMENTS],
    )


def prove_last_gradient():
    """Prove claim 05-last-gradient."""
    assert np.abs(slopes("post", "one_token")).max() < 0.1
    assert np.abs(slopes("pre", "one_token") + 0.5).max() < 0.1
    say("slope_pre", slopes("pre", "one_token").mean(), ".2f", noise=1e-4)


def tabulate_last_gradients():
    table(
        ["mean over 6 seeds", *(f"L = {L}" for L in DEPTHS)],
        [
            [f"{PLACEMENTS[p]}, {LOSSES[k]}"] + [f"{v:.1f}" for v in last_gradients()[p][k].mean(0)]
            for p in PLACEMENTS
            for k in LOSSES
        ],
    )


def prove_averaged_loss():
    """Prove claims 05-averaged-loss, 05-no-vanishing-at-the-top."""
    last = last_gradients()
    averaged = last["post"]["average"]  # (seeds, depths)
    assert (averaged < 0.3 * last["post"]["one_token"]).all()
    assert averaged[:, 2].mean() > 1.2 * averaged[:, 0].mean()
    for loss in LOSSES:
        assert (last["post"][loss] >= last["pre"][loss]).all()
    assert slopes("pre", "average").max() < -0.2
    assert slopes("pre", "average").mean() > slopes("pre", "one_token").mean()


RATES = (0.001, 0.002, 0.005)


def draw_loss_curves():
    record = longer_runs.recorded()
    steps, parts = record["steps"], record["parts"]
    RUNS = {
        "post": live.Curve("Post-LN", **figures.LOOKS["post"]),
        "warm": live.Curve("Post-LN, warm-up", figures.PINK, "-."),
        "pre": live.Curve("Pre-LN", **figures.LOOKS["pre"]),
        "chance": live.Curve("chance", **figures.LOOKS["theory"]),
    }

    def trained_at(rate):
        runs = {
            "post": (steps, parts[f"12-post-{rate}-0"]),
            "warm": (steps, parts[f"12-post-{rate}-400"]),
            "pre": (steps, parts[f"12-pre-{rate}-0"]),
            "chance": ([0, 800], [record["chance"]] * 2),
        }
        post, warm, pre = (np.median(runs[name][1][:, -1]) for name in ("post", "warm", "pre"))
        return (
            f"At rate {rate:g}, after 800 steps, the median loss is {post:.1f} nats for Post-LN, "
            f"{warm:.1f} for Post-LN with warm-up, and {pre:.1f} for Pre-LN.",
            [runs],
        )

    live.chart(
        "loss-curves",
        "12 blocks learn a real text: median and range of five recorded runs",
        [live.choice("rate", "learning rate", RATES, 0.002)],
        [
            live.Lines(
                live.Axis("training step", limits=(0, 800)),
                live.Axis("loss (nats)", limits=(1.8, 4.2)),
                RUNS,
            )
        ],
        trained_at,
        "Training loss against the step, at learning rate 0.002. Post-LN stays on the dotted line of "
        "chance for all 800 steps. With warm-up it comes down from above, crosses the line by step 200 "
        "and falls far below it. Pre-LN, without warm-up, falls from the first steps on and ends lowest.",
    )


def keep_gain(x, gamma):
    return gamma * x


def beginning(story):
    return " ".join(story.split())[:64].strip()


@cache
def wirings():
    """The trained model and its rewired copies."""
    model = stories.load()
    post = stories.altered(model, place=sn.post_ln)
    return {
        "Pre-LN, as trained": model,
        "Pre-LN, no final division": stories.altered(model, keep_gain, at=[10]),
        "Post-LN": post,
        "Post-LN, gains folded": stories.altered(folded(), place=sn.post_ln),
        "Post-LN, no final norm": stories.altered(post, nothing, at=[10]),
        "Pre-LN, no final norm": stories.altered(model, nothing, at=[10]),
    }


@cache
def nats(name):
    """The loss of a wiring on each text."""
    return stories.losses(wirings()[name], stories.texts())


def tabulate_stories(names):
    rows = [[name, f"{nats(name).mean():.1f}", beginning(stories.generate(wirings()[name]))] for name in names]
    table(["wiring", "loss", "its story begins"], rows)


def tabulate_wirings():
    tabulate_stories(["Pre-LN, as trained", "Pre-LN, no final division", "Post-LN"])


def tabulate_more_wirings():
    tabulate_stories([name for name in wirings() if name != "Pre-LN, no final division"])


def scores(wired):
    """The scores of the next token, for each text."""
    return [stories.logits(wired, stories.stream(wired, text)[-1]) for text in stories.texts()]


def prove_trained_as_post():
    """Prove claims 05-trained-as-post, 05-trained-no-final-norm."""
    trained, undivided = (wirings()[name] for name in ("Pre-LN, as trained", "Pre-LN, no final division"))
    for a, c in zip(scores(trained), scores(undivided), strict=True):
        np.testing.assert_array_equal(a.argmax(-1), c.argmax(-1))
    assert stories.generate(undivided) == stories.generate(trained)
    assert nats("Post-LN").min() > np.log(512)
    say("loss_trained", nats("Pre-LN, as trained").mean(), ".1f")
    say("loss_unnormed", nats("Pre-LN, no final division").mean(), ".1f")
    say("loss_as_post", nats("Post-LN").mean(), ".1f")
    say("guessing", np.log(512), ".2f")


READERS = {"q", "k", "v", "gate", "up"}  # the matrices behind a norm


def folded():
    """The trained model with each gain but the last in the matrices that read it."""
    model = stories.load()
    weights = tuple(
        {k: w * gain if k in READERS else w for k, w in weights.items()}
        for weights, gain in zip(model.weights, model.gains[:-1], strict=True)
    )
    return replace(model, weights=weights, gains=np.vstack([np.ones((10, 64)), model.gains[-1:]]))


def nothing(x, gamma):
    return x


def prove_trained_folded():
    """Prove claim 05-trained-folded."""
    for a, b in zip(scores(stories.load()), scores(folded()), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)
    assert nats("Post-LN, no final norm").max() < np.log(512)
    assert (nats("Post-LN, gains folded") < nats("Post-LN") - 2).all()
    assert (nats("Post-LN, gains folded") > nats("Pre-LN, as trained") + 1).all()
    say("loss_folded", nats("Post-LN, gains folded").mean(), ".1f")
    say("loss_bare", nats("Post-LN, no final norm").mean(), ".1f")


@cache
def steepness():
    """The last block's gradient over the first's, for each text or seed."""

    def last_over_first(wired):
        """The gradient of the mean loss: last block's over first block's."""
        net, ratios = Stories(wired), []
        seconds = [branch.down for branch in net.branches[1::2]]
        for text in stories.texts():
            grads = torch.autograd.grad(net.loss(torch.tensor(text)), seconds)
            ratios.append(grads[-1].norm().item() / grads[0].norm().item())
        return np.array(ratios)

    found = {
        name: last_over_first(wirings()[name]) for name in ("Pre-LN, as trained", "Post-LN", "Post-LN, gains folded")
    }
    new = gradients.by_layer("pre", 5, SEEDS)["average"]
    return found | {"Pre-LN, untrained": new[:, -1] / new[:, 0]}


def compare_steepness():
    for name, ratios in steepness().items():
        print(f"{name:22} {np.median(ratios):.1f} [{interval(ratios, '.1f')}]")


def prove_trained_gradient():
    """Prove claim 05-trained-gradient."""
    trained, as_post, as_folded, untrained_five = steepness().values()
    assert untrained_five.max() < 0.8
    assert 0.8 < np.median(trained) < 1.2
    assert as_post.max() < 0.8
    assert as_folded.min() > 1


def tabulate_the_two_compared():
    claimed_table(
        ["", "Post-LN", "Pre-LN"],
        [
            [
                "formula",
                *("`norm(x + F(x))`", "`x + F(norm(x))`"),
                "<!-- claim: 05-row-formula claim:05-formulas -->",
            ],
            [
                "the skip path carries",
                *("the last norm's output", "the raw stream"),
                "<!-- claim: 05-row-skip claim:05-skip-carries -->",
            ],
            [
                "mean square of the stream, 24 blocks",
                *(f"{np.median(squares(p)[:, -1]):.0f}" for p in PLACEMENTS),
                "<!-- claim: 05-row-stream claim:05-stream-grows -->",
            ],
            [
                "final norm",
                *("not needed", "needed"),
                "<!-- claim: 05-row-final claim:05-final-norm -->",
            ],
            [
                "cosine between tokens, 12 blocks",
                *(f"{np.median(cosine_12()[p]):.2f}" for p in PLACEMENTS),
                "<!-- claim: 05-row-cosine claim:05-tokens-align -->",
            ],
            [
                "last gradient, one token: slope in depth",
                *(f"{slopes(p, 'one_token').mean():z.1f}" for p in PLACEMENTS),
                "<!-- claim: 05-row-gradient claim:05-last-gradient -->",
            ],
            [
                "squared output change, 16 blocks against 1",
                *("grows faster", "grows slower"),
                "<!-- claim: 05-row-change claim:05a-amplification -->",
            ],
            [
                "copying, 4 blocks, rate 0.01, 200 steps",
                *("learns with warm-up only", "learns"),
                "<!-- claim: 05-row-warm-up claim:05b-band claim:05b-pre-range -->",
            ],
            [
                "text, 12 blocks, 100 steps",
                *("at chance, also with warm-up", "learns"),
                "<!-- claim: 05-row-deep claim:05b-deep-100-steps claim:05b-pre-learns -->",
            ],
            [
                "`torch.nn.TransformerEncoderLayer`",
                "default",
                "`norm_first=True`",
                "<!-- claim: 05-row-torch claim:05-pytorch-default -->",
            ],
        ],
    )


def check_quick_checks():
    x, norm = np.array([2.0, 4.0, 6.0, 12.0]), sn.LayerNorm(4, eps=0.0)
    shifted, usual = x, norm(x)
    for _ in range(6):
        h = norm(shifted)
        shifted = h + np.cos(h)
        usual = sn.post_ln(usual, np.cos, norm)
    np.testing.assert_allclose(norm(shifted), usual, atol=1e-12)
