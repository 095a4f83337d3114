"""Figures and proofs of deep dive 06d, Counting parameters."""

import matplotlib.pyplot as plt
import numpy as np

import subnorm.numpy as sn
from subnorm_lab import figures
from subnorm_lab.experiments import parameters
from subnorm_lab.experiments.parameters import Sizes
from subnorm_lab.report import claimed_table, say, table


def begin():
    figures.use_style()
    d, d_ff, vocabulary, positions = 4, 8, 5, 3
    embeddings = {
        "token embedding": (vocabulary, d),
        "position embedding": (positions, d),
    }
    block = {
        "self_attn.in_proj_weight": (3 * d, d),
        "self_attn.in_proj_bias": (3 * d,),
        "self_attn.out_proj.weight": (d, d),
        "self_attn.out_proj.bias": (d,),
        "feed_forward.linear1.weight": (d_ff, d),
        "feed_forward.linear1.bias": (d_ff,),
        "feed_forward.linear2.weight": (d, d_ff),
        "feed_forward.linear2.bias": (d,),
        "norm1.weight": (d,),
        "norm1.bias": (d,),
        "norm2.weight": (d,),
        "norm2.bias": (d,),
    }
    final_norm = {"final norm, weight": (d,), "final norm, bias": (d,)}
    shapes = embeddings | block | final_norm
    return d, d_ff, vocabulary, positions, shapes


def tabulate_shapes(shapes, counts):
    table(
        ["array", "shape", "parameters"],
        [[f"`{name}`", shapes[name], counts[name]] for name in shapes] + [["all", "", sum(counts.values())]],
    )


def check_parts(shapes, d, in_attention, in_feed_forward, in_norms):
    rng = np.random.default_rng(0)
    block = {name: shape for name, shape in shapes.items() if "." in name}
    arrays = {name: rng.normal(size=shape) for name, shape in block.items()}
    x = rng.normal(size=(2, 3, d))  # (B, T, d)
    assert sn.transformer_block(x, arrays, num_heads=2).shape == x.shape
    total = sum(np.prod(shape) for shape in shapes.values())
    assert total == 212
    assert in_attention == 80
    assert in_feed_forward == 76
    assert in_norms == 24 > total / 10


def prove_form_is_the_list(toy, counts, in_attention, in_feed_forward, in_norms):
    """Prove claim 06d-form-is-the-list."""
    assert sum(toy.values()) == sum(counts.values()) == 212
    assert toy["attention"] == in_attention
    assert toy["feed-forward"] == in_feed_forward
    assert toy["norms"] == in_norms


def prove_odd_width():
    """Prove claim 06d-odd-width."""
    assert parameters.gated_width(4096) == 11008
    assert parameters.gated_width(4096, 1024, multiplier=1.3) == 14336


def part_of(name):
    words = {"self_attn": "attention", "feed_forward": "feed-forward", "norm": "norms"}
    return next((part for word, part in words.items() if word in name), "embeddings")


def draw_one_square_each(shapes):
    """Every parameter of the small model as a square."""
    rows, gap, left = 8, 1.5, 0.0
    fig, ax = plt.subplots(figsize=(figures.PHONE, 1.9))
    for part in ("embeddings", "attention", "feed-forward", "norms"):
        count = sum(int(np.prod(shape)) for name, shape in shapes.items() if part_of(name) == part)
        column, row = np.divmod(np.arange(count), rows)
        ax.plot(left + column, -row, "s", color=COLOURS[part], markersize=5)
        for y, text in ((3.2, part), (1.2, count)):
            ax.text(left - 0.5, y, text, fontsize=10)
        left += max(column.max() + 1, 9) + gap  # room for the name
    ax.set(xlim=(-2, left - gap), ylim=(-rows + 0.4, 4), aspect="equal")  # the margin of a text beside it
    ax.axis("off")
    figures.show(
        fig,
        alt="Squares in four groups, one for each parameter of a small model: 32 in the embeddings, 80 in attention, "
        "76 in the feed-forward, 24 in the norms.",
    )


COLOURS = {
    "embeddings": figures.GREY,
    "attention": figures.BLUE,
    "feed-forward": figures.GREEN,
    "pooler": figures.PINK,
    "norms": figures.ORANGE,
}


def count(models):
    """The parameters of each model, by part and in all."""
    parts = {name: getattr(parameters, family)(sizes) for name, (family, sizes) in models.items()}
    return parts, {name: sum(p.values()) for name, p in parts.items()}


def norm_shares(models):
    """The share of each model's parameters that its norms have, in percent."""
    parts, total = count(models)
    return {name: 100 * parts[name]["norms"] / total[name] for name in models}


def draw_shares(MODELS):
    parts, total = count(MODELS)
    fig, ax = plt.subplots(figsize=(6.4, 4.4))
    shares = {part: np.array([100 * parts[m][part] / total[m] for m in MODELS]) for part in COLOURS}
    left = np.zeros(len(MODELS))
    for part, colour in COLOURS.items():
        ax.barh(
            list(MODELS),
            shares[part],
            left=left,
            color=colour,
            edgecolor="white",
            linewidth=0.8,
        )
        left += shares[part]
    last = len(MODELS) - 1
    figures.name(ax, "embeddings", (0, -0.4), figures.GREY, (0.1, 3))
    figures.name(ax, "feed-forward", (100, -0.4), figures.GREEN, (-0.1, 3))
    figures.name(ax, "attention", (shares["embeddings"][last], last + 0.4), figures.BLUE, (0.1, -3))
    figures.name(ax, "pooler", (100, int(shares["pooler"].argmax())), figures.PINK, (4, 0))
    ax.set(xlabel="share of the parameters (%)", xlim=(0, 100), xticks=(0, 50, 100), ylim=(last + 1, -1))
    ax.grid(axis="y", visible=False)
    most = f"{shares['norms'].max():.2f}\N{NO-BREAK SPACE}%"
    figures.title(fig, f"The norms, too thin to see, have {most} of the parameters at most")
    figures.show(
        fig,
        alt="Nine stacked bars, one for each model, cut into embeddings, attention, feed-forward, pooler and norms. "
        "Embeddings take a third of GPT-2 and a fifth of BERT-base, and a few per cent of LLaMA-7B. The "
        "feed-forward is the largest piece of every bar. The norms cannot be seen in any bar.",
    )


def tabulate_norms(MODELS):
    share, (parts, _) = norm_shares(MODELS), count(MODELS)
    table(
        ["model", "norms", "parameters in norms", "share (%)"],
        [
            [
                name,
                2 * sizes.layers + 1,
                f"{parts[name]['norms']:,}",
                f"{share[name]:.4f}",
            ]
            for name, (_, sizes) in MODELS.items()
        ],
    )


def prove_norm_share(MODELS):
    """Prove claim 06d-norm-share."""
    share, (parts, _) = norm_shares(MODELS), count(MODELS)
    say("norm_share_llama", share["LLaMA-7B"], ".3f")
    say("norm_share_gpt2", share["GPT-2"], ".3f")
    assert max(share.values()) < 0.05
    assert share["LLaMA-7B"] < 0.005
    wide = Sizes(12, 2 * 768, 4 * 2 * 768, 50257, 1024)
    ratio = parameters.gpt2(wide)["attention"] / parts["GPT-2"]["attention"]
    assert parameters.gpt2(wide)["norms"] == 2 * parts["GPT-2"]["norms"]
    assert 3.9 < ratio < 4


def prove_rms_saves_little(MODELS):
    """Prove claim 06d-rms-saves-little."""
    parts, total = count(MODELS)
    extra = parts["LLaMA-7B"]["norms"]  # the shifts that RMSNorm has not
    say("extra_norm", extra, ",.0f", noise=0)
    say("total_llama", total["LLaMA-7B"], ",.0f", noise=0)
    assert extra / total["LLaMA-7B"] < 1e-4


PUBLISHED = {  # the rounded figure, its last digit, and the exact count
    "GPT-2": (124e6, 1e6, 124_439_808),
    "GPT-2 medium": (355e6, 1e6, 354_823_168),
    "GPT-2 large": (774e6, 1e6, 774_030_080),
    "GPT-2 XL": (1558e6, 1e6, 1_557_611_200),
    "BERT-base": (110e6, 10e6, 109_482_240),
    "LLaMA-7B": (6.7e9, 0.1e9, None),
    "Llama-2-7B": (7e9, 1e9, 6_738_415_616),
    "Mistral-7B": (7e9, 1e9, 7_241_732_096),
    "Llama-3-8B": (8e9, 1e9, 8_030_261_248),
}


def rounded_count(figure):
    if figure < 2e9:
        return f"{figure / 1e6:.0f}M"
    return f"{figure / 1e9:.1f}B".replace(".0B", "B")


def verdict(counted, exact):
    if exact is None:
        return "none used"
    return "equal" if counted == exact else "differs"


def tabulate_published(MODELS):
    _, total = count(MODELS)
    rows = []
    for name, (figure, _, exact) in PUBLISHED.items():
        rows.append(
            [
                name,
                f"{total[name]:,}",
                rounded_count(figure),
                verdict(total[name], exact),
                f"<!-- claim: 06d-count-{name.lower().replace(' ', '-')} -->",
            ]
        )
    claimed_table(["model", "closed form", "published", "exact count"], rows)


def prove_counts(MODELS):
    """Prove claims 06d-count-gpt-2, 06d-count-gpt-2-medium, 06d-count-gpt-2-large, 06d-count-gpt-2-xl,
    06d-count-bert-base, 06d-count-llama-7b, 06d-count-llama-2-7b, 06d-count-mistral-7b, 06d-count-llama-3-8b.
    """
    _, total = count(MODELS)
    for name, (figure, last_digit, exact) in PUBLISHED.items():
        assert abs(total[name] - figure) <= last_digit / 2
        assert exact is None or total[name] == exact
    more = total["Mistral-7B"] - total["Llama-2-7B"]
    say("mistral_more", more / 1e6, ".0f")


def tabulate_gaps(MODELS, WRONG):
    _, total = count(MODELS)
    table(
        ["model", "d", "gap (millions)", "gap / d"],
        [
            [
                name,
                MODELS[name][1].d_model,
                f"{(total[name] - wrong) / 1e6:.1f}",
                f"{(total[name] - wrong) / MODELS[name][1].d_model:,.0f}",
            ]
            for name, wrong in WRONG.items()
        ],
    )


def check_gaps(MODELS, WRONG):
    _, total = count(MODELS)
    gaps = [(total[n] - w) / MODELS[n][1].d_model for n, w in WRONG.items()]
    assert 9_000 < min(gaps) < max(gaps) < 10_000


def prove_one_vocabulary_explains(fits):
    """Prove claim 06d-one-vocabulary-explains."""
    assert len(fits) == fits[-1] - fits[0] + 1 < 500
    assert 40_478 in fits  # the vocabulary of the first GPT
    say("fit_count", len(fits), ".0f")


def check_quick_checks(MODELS):
    saved, (parts, _) = 25 * 768, count(MODELS)
    assert saved == parts["GPT-2"]["norms"] // 2 == 19_200
