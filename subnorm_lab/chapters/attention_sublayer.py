"""Figures and proofs of deep dive 06a, The attention sublayer, part by part."""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm_lab import chapters, diagrams, figures
from subnorm_lab.experiments import parameters
from subnorm_lab.report import claimed_table, say, table


def begin():
    chapters.begin()
    B, T, d, h = 2, 30, 512, 8
    d_head = d // h

    def draw(seed, bias=0.1):
        rng = np.random.default_rng(seed)
        shapes = {
            "self_attn.in_proj_weight": (3 * d, d),
            "self_attn.out_proj.weight": (d, d),
        }
        params = {name: rng.normal(size=(m, n)) * np.sqrt(2 / (m + n)) for name, (m, n) in shapes.items()}
        params["self_attn.in_proj_bias"] = bias * rng.normal(size=3 * d)
        params["self_attn.out_proj.bias"] = bias * rng.normal(size=d)
        params["norm.weight"] = 1 + bias * rng.normal(size=d)
        params["norm.bias"] = bias * rng.normal(size=d)
        return params, rng.normal(size=(B, T, d))

    params, x = draw(0)
    return B, T, d, h, d_head, draw, params, x


def draw_ten_steps():
    figures.show(
        diagrams.attention_sublayer(),
        alt="A block diagram in three rows, which one line runs through. First row: x, then boxes for q, k, v; heads; "
        "scores. Second row: weights, mix, merge. Third row: out, dropout, a plus sign, norm. Under each box is the "
        "shape after it. The skip path runs from x down and along the bottom to the plus sign.",
    )


def run_ten_steps(x, T, B, h, d_head, params):
    def steps(x, p):
        qkv = x @ p["self_attn.in_proj_weight"].T + p["self_attn.in_proj_bias"]
        q, k, v = (
            part.reshape(B, T, h, -1).swapaxes(1, 2)  # (B, heads, T, d_head)
            for part in np.split(qkv, 3, axis=-1)
        )
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(d_head)  # (B, heads, T, T)
        weights = sn.softmax(scores)
        mix = weights @ v  # (B, heads, T, d_head)
        merged = mix.swapaxes(1, 2).reshape(x.shape)  # (B, T, d)
        out = merged @ p["self_attn.out_proj.weight"].T
        out = out + p["self_attn.out_proj.bias"]
        total = x + out  # dropout does nothing when a model is used
        y = sn.layer_norm(total, p["norm.weight"], p["norm.bias"])
        return {
            "x": x,
            "q, k, v": qkv,
            "queries, by head": q,
            "scores": scores,
            "weights": weights,
            "mix of values": mix,
            "heads merged": merged,
            "out": out,
            "sum": total,
            "norm": y,
        }

    trace = steps(x, params)

    module = st.AttentionSubLayer(512, 8, placement="post").double().eval()
    state = {name: torch.from_numpy(w) for name, w in params.items()}
    module.load_state_dict(state)
    with torch.no_grad():
        in_torch = module(torch.from_numpy(x)).numpy()
    return steps, trace, module, in_torch


def tabulate_ten_steps(trace):
    table(
        ["step", "shape", "numbers", "mean square"],
        [[name, a.shape, f"{a.size:,}", f"{np.mean(a**2):.3f}"] for name, a in trace.items()],
    )


def prove_trace(y, trace, x, params, in_torch):
    """Prove claim 06a-trace."""
    assert np.abs(y - trace["norm"]).max() < 1e-10
    assert trace["q, k, v"].shape == (2, 30, 1536)
    assert trace["queries, by head"].shape == (2, 8, 30, 64)
    assert trace["scores"].shape == trace["weights"].shape == (2, 8, 30, 30)
    assert trace["norm"].shape == x.shape == (2, 30, 512)
    in_numpy = sn.attention_sublayer(x, params, num_heads=8, placement="post")
    assert np.abs(trace["norm"] - in_torch).max() < 1e-10
    assert np.abs(trace["norm"] - in_numpy).max() < 1e-10


def parameter_count(module):
    return sum(w.numel() for w in module.parameters())


def tabulate_name_by_name(module):
    table(
        ["parameter", "shape", "number"],
        [[f"`{name}`", tuple(w.shape), f"{w.numel():,}"] for name, w in module.named_parameters()],
    )


def prove_count_512(module):
    """Prove claims 06a-count-512, 06a-count-256."""
    assert module.self_attn.in_proj_weight.numel() == 3 * 512**2 == 786_432
    assert module.self_attn.in_proj_bias.numel() == 3 * 512 == 1_536
    assert module.self_attn.out_proj.weight.numel() == 512**2 == 262_144
    assert module.self_attn.out_proj.bias.numel() == 512

    assert parameter_count(module.self_attn) == parameters.attention(512) == 1_050_624
    assert parameter_count(module) == 4 * 512**2 + 6 * 512 == 1_051_648
    small = st.AttentionSubLayer(256, 8)
    assert parameter_count(small.self_attn) == parameters.attention(256) == 263_168
    assert parameter_count(small.norm) == 2 * 256 == 512
    assert parameter_count(small) == 263_168 + 512 == 263_680
    assert small(torch.randn(4, 30, 256)).shape == (4, 30, 256)


WIDTHS = (4, 16, 64, 256)


def draw_the_root_under_the_scores(T):
    def looking(seed, width):
        """Entropy and largest weight of a row: divided by the root, and not."""
        q, k = np.random.default_rng(seed).normal(size=(2, 25, T, width))
        s = q @ k.swapaxes(-1, -2)  # (25, T, T)
        w = sn.softmax(np.stack([s / np.sqrt(width), s]))  # (2, 25, T, T)
        entropy = -(w * np.log(w + 1e-300)).sum(axis=-1)
        return entropy.mean(axis=(1, 2)), w.max(axis=-1).mean(axis=(1, 2))

    found = np.array([[looking(s, n) for n in WIDTHS] for s in range(5)])
    entropy, top = np.moveaxis(found, 2, 0)  # each (seeds, widths, 2)

    scaled, unscaled = 100 * np.moveaxis(top[:, WIDTHS.index(64)], 1, 0)
    fig, ax = plt.subplots()
    looks = ({"color": figures.BLUE}, {"color": figures.ORANGE, "linestyle": "--"})
    names = ("divided by the root", "not divided")
    for column, look, name in zip((0, 1), looks, names, strict=True):
        values = entropy[..., column]
        ax.semilogx(WIDTHS, values.mean(0), marker="o", **look)
        figures.name_curve(ax, name, WIDTHS, values.mean(0), look["color"])
        ax.fill_between(
            WIDTHS,
            values.min(0),
            values.max(0),
            alpha=0.2,
            color=look["color"],
        )
    ax.axhline(np.log(T), **figures.LOOKS["theory"])
    figures.name(ax, "equal weights", (4, np.log(T)), shift=(2, 4))
    few = np.exp(entropy[..., 1].mean(0)[-1]) < 3 < np.exp(entropy[..., 0].mean(0)[-1])
    figures.title(fig, "Random scores: without the root, wide heads look at few tokens", few)
    ax.set(xlabel="features of a head", ylabel="entropy of the weights (nats)")
    ax.set(xticks=WIDTHS, xticklabels=WIDTHS, ylim=(0, 4), yticks=(0, 1, 2, 3))
    ax.minorticks_off()
    figures.show(
        fig,
        alt="Entropy of the attention weights against the number of features of a head, five seeds. Divided by "
        "the root it "
        "stays level, a little under the dotted line. Not divided it starts lower and falls towards zero.",
    )
    return entropy, scaled, unscaled


def prove_scale_saturates(scaled, unscaled, entropy):
    """Prove claim 06a-scale-saturates."""
    say("top_scaled", scaled.mean(), ".0f", noise=1e-4)
    say("top_unscaled", unscaled.mean(), ".0f", noise=1e-4)
    assert entropy.shape == (5, len(WIDTHS), 2)
    assert entropy[..., 0].min() > 2.7
    assert (np.diff(entropy[..., 1], axis=1) < -0.2).all()
    assert unscaled.min() > 70
    assert scaled.max() < 25


def prove_out_mixes(after, trace, d_head):
    """Prove claim 06a-out-mixes."""
    merged = np.abs(after["heads merged"] - trace["heads merged"])
    assert (merged[..., d_head:] == 0).all()
    assert (np.abs(after["out"] - trace["out"]).max(axis=(0, 1)) > 0).all()


def prove_key_bias_cancels(steps, x, params, trace):
    """Prove claims 06a-key-bias-cancels, 06a-query-bias-matters."""
    rng = np.random.default_rng(1)
    moved = {}
    for part, name in enumerate(("queries", "keys")):
        biased = {n: w.copy() for n, w in params.items()}
        biased["self_attn.in_proj_bias"].reshape(3, -1)[part] += 10 * rng.normal(size=x.shape[-1])
        moved[name] = np.abs(steps(x, biased)["out"] - trace["out"]).max()
    assert moved["keys"] < 1e-10
    assert moved["queries"] > 0.1


def show_rotary_key_bias(B, T, h, d_head, d, trace, turn):
    def looked_at(qkv, positions):
        q, k = (positions(part.reshape(B, T, h, -1).swapaxes(1, 2)) for part in np.split(qkv, 3, axis=-1)[:2])
        return sn.softmax(q @ k.swapaxes(-1, -2) / np.sqrt(d_head))

    key_bias = np.zeros(3 * d)
    key_bias[d : 2 * d] = 10 * np.random.default_rng(2).normal(size=d)
    qkv = trace["q, k, v"]
    change = {}
    for name, positions in {"plain": lambda part: part, "rotary": turn}.items():
        before = looked_at(qkv, positions)
        after = looked_at(qkv + key_bias, positions)
        change[name] = np.abs(after - before).max()
        print(f"{name:6} weights move: {change[name] > 1e-6}")
    return change


def prove_rotary_key_bias(change):
    """Prove claim 06a-rotary-key-bias."""
    assert change["plain"] < 1e-10
    assert change["rotary"] > 0.1


def prove_key_bias_gradient(grad, steps, x, folded, trace):
    """Prove claims 06a-key-bias-gradient, 06a-value-bias-folds."""
    assert grad[1] < 1e-10
    assert min(grad[0], grad[2]) > 1e-3
    gap = np.abs(steps(x, folded)["out"] - trace["out"]).max()
    assert gap < 1e-10


def measure_skip_and_norm(T, draw, steps):
    def token_cosine(a):
        unit = a / np.linalg.norm(a, axis=-1, keepdims=True)
        pairs = unit @ unit.swapaxes(-1, -2)  # (B, T, T)
        return pairs[:, ~np.eye(T, dtype=bool)].mean()

    draws = [draw(seed, bias=0) for seed in range(5)]
    runs = [steps(z, p) for p, z in draws]
    branch = [token_cosine(run["out"]) for run in runs]
    summed = [token_cosine(run["sum"]) for run in runs]

    def growth(name):
        big = (steps(100 * z, p)[name] for p, z in draws)
        pairs = zip(big, runs, strict=True)
        return [np.mean(b**2) / np.mean(r[name] ** 2) for b, r in pairs]

    grown, kept = growth("sum"), growth("norm")
    return branch, summed, grown, kept


def tabulate_skip_and_norm(branch, summed, grown, kept):
    table(
        ["", "without", "with"],
        [
            [
                "residual: cosine between tokens",
                f"{np.mean(branch):.2f}",
                f"{np.mean(summed):.2f}",
            ],
            [
                "norm: factor of the mean square",
                f"{np.mean(grown):,.0f}",
                f"{np.mean(kept):.2f}",
            ],
        ],
    )


def prove_skip_keeps_tokens(branch, summed, grown, kept):
    """Prove claims 06a-skip-keeps-tokens, 06a-norm-fixes-size."""
    assert min(branch) > 0.7
    assert np.abs(summed).max() < 0.1
    assert min(grown) > 100**2
    assert np.abs(np.array(kept) - 1).max() < 0.01
    say("branch_cosine", np.mean(branch), ".1f", noise=1e-4)


def prove_mask_conventions(d, h, module, x, T):
    """Prove claims 06a-mask-conventions, 06a-mask-hides."""
    builtin = nn.MultiheadAttention(d, h, batch_first=True, dtype=torch.float64)
    builtin.load_state_dict(module.self_attn.state_dict())
    tokens = torch.from_numpy(x)
    causal = torch.ones(T, T, dtype=torch.bool).tril()
    with torch.no_grad():
        ours = module.self_attn(tokens, causal)
        theirs, _ = builtin(tokens, tokens, tokens, attn_mask=~causal)
        assert (ours - theirs).abs().max() < 1e-10

        real = torch.arange(T) < 20  # the last ten are padding
        other = torch.where(real[:, None], tokens, 7.0)
        masked = [module.self_attn(t, real.expand(T, T)) for t in (tokens, other)]
        free = [module.self_attn(t) for t in (tokens, other)]
    assert torch.equal(masked[0][:, real], masked[1][:, real])
    assert (free[0] - free[1])[:, real].abs().max() > 0.01
    with torch.no_grad():
        early = [module.self_attn(t, causal)[:, :20] for t in (tokens, other)]
    assert torch.equal(*early)  # the last ten are the future of these
    return builtin, tokens


def prove_dropout_on_the_branch(x, trace, module, in_torch):
    """Prove claim 06a-dropout-on-the-branch."""
    dropout = nn.Dropout(0.1)  # in training mode
    on_branch, on_sum = [], []
    for seed in range(5):
        torch.manual_seed(seed)
        skip, out = torch.from_numpy(x), torch.from_numpy(trace["out"])
        on_branch.append((skip + dropout(out) == skip).double().mean())
        on_sum.append((dropout(skip + out) == 0).double().mean())
    assert all(0.09 < share < 0.11 for share in on_branch + on_sum)
    say("survives", 100 * 0.9**24, ".0f")

    module.train()
    torch.manual_seed(0)
    in_training = module(torch.from_numpy(x))
    module.eval()
    assert (in_training - torch.from_numpy(in_torch)).abs().max() > 0.01


def prove_mha_has_no_norm(inside, builtin, d, y, arguments):
    """Prove claims 06a-mha-has-no-norm, 06a-encoder-layer-is-post."""
    assert len(inside) == 1
    assert "Linear" in inside[0]
    assert parameter_count(builtin) == 4 * d**2 + 4 * d
    assert (y == 0).all()  # with a residual connection this would be x
    assert arguments["norm_first"].default is False


def prove_need_weights(averaged, B, T, none, y, lean, h):
    """Prove claims 06a-need-weights, 06a-same-output."""
    assert averaged.shape == (B, T, T)
    assert none is None
    assert (y - lean).abs().max() < 1e-10
    words = " ".join(nn.MultiheadAttention.forward.__doc__.split())
    assert "Set ``need_weights=False`` to use the optimized ``scaled_dot_product_attention``" in words
    say("weights_gb", 4 * B * h * 4096**2 / 1e9, ".1f")


def prove_global_is_not_per_token(B, T, d):
    """Prove claims 06a-global-is-not-per-token, 06a-std-is-below-one, 06a-sign-is-rounding, 06a-not-per-feature."""
    eps, ranges = 1e-5, []
    for seed in range(5):
        z = np.random.default_rng(seed).normal(size=(B, T, d))
        assert abs(z.std() - 1) < 0.02
        ranges.append([z.std(axis=-1).min(), z.std(axis=-1).max()])
        y = sn.layer_norm(z, eps=eps)
        v = z.var(axis=-1)
        np.testing.assert_allclose(y.std(axis=-1), np.sqrt(v / (v + eps)))
        assert (y.std(axis=-1) < 1).all()
        means = y.mean(axis=-1)  # (B, T)
        assert np.abs(means).max() < 1e-12
        assert 0 < (means < 0).sum() < B * T  # both signs
        per_feature = y.std(axis=(0, 1))  # (d,)
        assert per_feature.min() < 0.85
        assert per_feature.max() > 1.15
    tiny = 1e-3 * z  # variance near 1e-6
    v = tiny.var(axis=-1)
    low, high = np.array(ranges).T
    assert low.max() < 0.97
    assert high.min() > 1.03
    expected = np.sqrt(v / (v + eps))
    np.testing.assert_allclose(sn.layer_norm(tiny).std(axis=-1), expected)
    say("tiny_std", np.sqrt(1e-6 / (1e-6 + eps)), ".2f")


def tabulate_every_part(unscaled, scaled, d_head, d):
    claimed_table(
        ["part", "without it", "with it"],
        [
            [
                "root under the scores",
                f"the favourite token gets {unscaled.mean():.0f} %",
                f"it gets {scaled.mean():.0f} %",
                "<!-- claim: 06a-row-root claim:06a-scale-saturates -->",
            ],
            [
                "output matrix",
                f"a head writes to {d_head} features",
                f"a head writes to all {d}",
                "<!-- claim: 06a-row-out claim:06a-out-mixes -->",
            ],
            [
                "bias of the keys, no rotary positions",
                "the same output",
                "the same output",
                "<!-- claim: 06a-row-key-bias claim:06a-key-bias-cancels -->",
            ],
            [
                "bias of the values",
                "the same, if the output's bias takes it over",
                "the same",
                "<!-- claim: 06a-row-value-bias claim:06a-value-bias-folds -->",
            ],
            [
                "residual connection",
                "tokens become nearly alike",
                "tokens stay apart",
                "<!-- claim: 06a-row-skip claim:06a-skip-keeps-tokens -->",
            ],
            [
                "norm",
                "a larger input makes a larger output",
                "the output has one size",
                "<!-- claim: 06a-row-norm claim:06a-norm-fixes-size -->",
            ],
            [
                "dropout before the sum",
                "x has holes after the sum",
                "x stays whole",
                "<!-- claim: 06a-row-dropout claim:06a-dropout-on-the-branch -->",
            ],
            [
                "mask",
                "tokens read padding and future",
                "they do not",
                "<!-- claim: 06a-row-mask claim:06a-mask-hides -->",
            ],
        ],
    )
