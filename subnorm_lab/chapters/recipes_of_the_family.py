"""Figures and proofs of deep dive 02a, Recipes of the family."""

import numpy as np
import torch
from torch.nn import functional as F

import subnorm.torch as st
from subnorm_lab import chapters, diagrams, figures
from subnorm_lab.report import claimed_table, say, table


def equal(a, b):
    return torch.allclose(a, b, rtol=1e-12, atol=1e-12)


def begin():
    chapters.begin()
    torch.set_default_dtype(torch.float64)


def random(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def kernel(seed):
    return random(4, 4, 3, 3, seed=seed) / 6


def identity_kernel():
    """The convolution with it returns its input."""
    found = torch.zeros(4, 4, 3, 3)
    found[range(4), range(4), 1, 1] = 1
    return found


def draw_add_or_put_beside():
    figures.show(
        diagrams.add_or_concatenate(),
        alt="Two diagrams. Add: a column of four features forks; one way goes through F, a green arc goes over "
        "it, and both meet "
        "at a plus sign; the result has four features. Concatenate: the same fork, but the green line ends "
        "on top of the four "
        "features that come from F, and the result has eight.",
    )


def tabulate_both_ways(added, beside):
    table(
        ["", "values"],
        [
            ["add", ", ".join(f"{v:.0f}" for v in added)],
            ["concatenate", ", ".join(f"{v:.0f}" for v in beside)],
        ],
    )


def prove_concatenation_keeps(beside, x, added):
    """Prove claims 02a-concatenation-keeps, 02a-sum-is-a-concatenation."""
    assert torch.equal(beside[:4], x)
    mix = torch.cat([torch.eye(4), torch.eye(4)], dim=1)  # (4, 8)
    assert torch.equal(mix @ beside, added)


def prove_basic_block(basic, image, w1, silent, preactivation):
    """Prove claims 02a-basic-block, 02a-preactivation."""
    assert torch.equal(basic(image, w1, silent), torch.relu(image))
    assert not torch.equal(basic(image, w1, silent), image)
    assert torch.equal(preactivation(image, w1, silent), image)


def prove_two_are_one(conv, basic, image):
    """Prove claims 02a-two-are-one, 02a-side-by-side-is-linear, 02a-basic-is-not-linear."""

    def side_by_side(x, w1, w2):
        return x + conv(x, w1) + conv(x, w2)

    def in_a_row(x, w1, w2):  # the basic block without its norms and last ReLU
        return x + conv(torch.relu(conv(x, w1)), w2)

    def not_additive(block, *weights):
        """How far block(a + b) is from block(a) + block(b)."""
        a, b = random(2, 2, 4, 8, 8, seed=7)
        together = block(a + b, *weights)
        apart = block(a, *weights) + block(b, *weights)
        return float((together - apart).norm() / together.norm())

    blocks = {"side": side_by_side, "row": in_a_row, "basic": basic}
    gaps = {name: [] for name in blocks}
    for seed in range(5):
        w1, w2 = kernel(10 + seed), kernel(20 + seed)
        one = conv(image, identity_kernel() + w1 + w2)
        assert equal(side_by_side(image, w1, w2), one)
        for name, block in blocks.items():
            gaps[name].append(not_additive(block, w1, w2))

    assert max(gaps["side"]) < 1e-12
    for name in ("row", "basic"):
        assert min(gaps[name]) > 0.1
        say(f"{name}_low", min(gaps[name]), ".2f")
        say(f"{name}_high", max(gaps[name]), ".2f")


def prove_highway(highway):
    """Prove claims 02a-highway, 02a-highway-is-residual, 02a-plain-residual-needs-both-gates."""
    x16 = random(5, 16, seed=1)  # (T, d)
    W_H, W_T = (random(16, 16, seed=s) / 4 for s in (2, 3))
    H = torch.tanh(x16 @ W_H.T)
    assert torch.equal(highway(x16, W_H, W_T, b_T=-1000.0), x16)
    assert equal(highway(x16, W_H, W_T, b_T=1000.0), H)

    T = torch.sigmoid(x16 @ W_T.T - 2)
    assert equal(highway(x16, W_H, W_T, b_T=-2.0), x16 + T * (H - x16))
    half = highway(x16, W_H, torch.zeros(16, 16), b_T=0.0)
    assert equal(half, (x16 + H) / 2)
    alike = x16 * H > 0  # there, no value between x and H is as big as x + H
    for b_T in range(-8, 9):
        y = highway(x16, W_H, W_T, b_T)
        assert (y.abs() < (x16 + H).abs())[alike].all()
    T_hit = H / (H - x16)  # with opposite signs one gate hits the sum
    hit = (T_hit * H + (1 - T_hit) * x16)[~alike]
    assert equal(hit, (x16 + H)[~alike])
    say("carry", torch.sigmoid(torch.tensor(2.0)), ".2f")


def prove_densenet(out, k, layers, image):
    """Prove claim 02a-densenet."""
    assert out.shape[1] == 4 + k * layers
    assert torch.equal(out[:, :4], image)


def upsample(x):
    return F.interpolate(x, scale_factor=2, mode="nearest")


def prove_unet(conv, image):
    """Prove claims 02a-unet, 02a-linknet."""

    def across(x, join):
        """One step down and up again; join brings both sides of the U together."""
        encoder = torch.relu(conv(x, kernel(1)))
        bottom = torch.relu(conv(F.max_pool2d(encoder, 2), kernel(2)))
        return encoder, upsample(bottom), join(upsample(bottom), encoder)

    e, _, u_net = across(image, lambda d, e: torch.cat([e, d], dim=1))
    assert u_net.shape[1] == 2 * e.shape[1]
    assert torch.equal(u_net[:, :4], e)
    e, _, link_net = across(image, torch.add)
    assert link_net.shape == e.shape
    assert equal(conv(u_net, torch.cat([identity_kernel()] * 2, dim=1)), link_net)


def sublayers(seed, scale=1.0):
    torch.manual_seed(seed)
    block = st.TransformerBlock(16, 4, 64)
    with torch.no_grad():
        for last in (block.self_attn.out_proj, block.feed_forward.linear2):
            last.weight.mul_(scale)
            last.bias.mul_(scale)
    return block.self_attn, block.feed_forward


def prove_gpt2(sequential, parallel):
    """Prove claims 02a-gpt2, 02a-parallel, 02a-parallel-second-order."""
    scales = np.array([1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64])
    powers = []
    with torch.no_grad():
        for seed in range(5):
            x_t = random(2, 5, 16, seed=100 + seed)  # (B, T, d)
            differ = [
                (sequential(x_t, *parts) - parallel(x_t, *parts)).norm()
                for parts in (sublayers(seed, s) for s in scales)
            ]
            powers.append(np.polyfit(np.log(scales), np.log(differ), 1)[0])
            for silent_form in (sequential, parallel):
                assert torch.equal(silent_form(x_t, *sublayers(seed, 0.0)), x_t)
            L = 6
            whole, small = sublayers(seed), sublayers(seed, (2 * L) ** -0.5)
            for full, scaled in zip(whole, small, strict=True):
                ratio = full(x_t).square().mean() / scaled(x_t).square().mean()
                assert equal(ratio, torch.tensor(2.0 * L))
    powers = np.array(powers)
    assert np.abs(powers - 2).max() < 0.1
    say("power_low", powers.min(), ".2f")
    say("power_high", powers.max(), ".2f")


def mix_with_previous(x):
    """The mean of each token and the one before it, (T, d); before the first there are zeros."""
    return (x + torch.cat([torch.zeros_like(x[:1]), x[:-1]])) / 2


def prove_rwkv(rwkv, time_mix, ln, channel_mix):
    """Prove claims 02a-rwkv, 02a-rwkv-starts-silent."""
    shapes = dict.fromkeys(("r", "k", "v", "out", "cr"), (16, 16))
    shapes |= {"ck": (16, 64), "cv": (64, 16)}
    for seed in range(5):
        w = {
            name: random(*shape, seed=50 * seed + i) / shape[0] ** 0.5 for i, (name, shape) in enumerate(shapes.items())
        }
        tokens = random(7, 16, seed=seed)  # (T, d)
        y = rwkv(tokens, w)
        step = st.pre_ln(tokens, lambda h, w=w: time_mix(h, w), ln)
        assert equal(y, st.pre_ln(step, lambda h, w=w: channel_mix(h, w), ln))
        printed = ln(tokens + time_mix(tokens, w) + channel_mix(tokens, w))
        assert (y - printed).norm() / y.norm() > 0.1
        changed = tokens.clone()
        changed[-1] += 1
        assert torch.equal(rwkv(changed, w)[:-1], y[:-1])
        start = w | {"out": torch.zeros(16, 16), "cv": torch.zeros(64, 16)}
        assert torch.equal(rwkv(tokens, start), tokens)


RECIPES = [
    ("ResNet", "relu(x + B(x))", "adding", "on the branch (BN)", "relu(x)"),
    ("ResNet, 2nd", "x + B(x)", "adding", "on the branch (BN)", "x"),
    ("highway", "T·H + (1 − T)·x", "adding, gated", "none", "x if T = 0"),
    ("DenseNet", "[x, B(x)]", "concatenating", "on the branch (BN)", "[x, 0]"),
    ("U-Net", "[e, up(d)]", "concatenating", "not on the skip", "no branch"),
    ("LinkNet", "e + up(d)", "adding", "not on the skip", "no branch"),
    ("GPT-2", "x + B(LN(x)), twice", "adding", "on the branch; final", "x"),
    (
        "GPT-J, PaLM",
        "x + A(LN(x)) + M(LN(x))",
        "adding",
        "on the branch; GPT-J: final",
        "x",
    ),
    ("RWKV", "x + B(LN(x)), twice", "adding", "on the branch; final", "x"),
]


SUPPORT = {  # row: (its name in the ledger, the claim it rests on, paper)
    "ResNet": ("basic-block", "basic-block", "he2016deep"),
    "ResNet, 2nd": ("preactivation", "preactivation", "he2016identity"),
    "highway": ("highway", "highway", "srivastava2015highway"),
    "DenseNet": ("densenet", "densenet", "huang2017densely"),
    "U-Net": ("unet", "unet", "ronneberger2015unet"),
    "LinkNet": ("linknet", "linknet", "chaurasia2017linknet"),
    "GPT-2": ("gpt2", "parallel", "radford2019language"),
    "GPT-J, PaLM": ("parallel", "parallel", "chowdhery2023palm"),
    "RWKV": ("rwkv", "rwkv", "peng2023rwkv"),
}


PAPERS = {
    "he2016deep": "[He et al., 2016](https://arxiv.org/abs/1512.03385)",
    "he2016identity": "[He et al., 2016](https://arxiv.org/abs/1603.05027)",
    "srivastava2015highway": "[Srivastava et al., 2015](https://arxiv.org/abs/1505.00387)",
    "huang2017densely": "[Huang et al., 2017](https://arxiv.org/abs/1608.06993)",
    "ronneberger2015unet": "[Ronneberger et al., 2015](https://arxiv.org/abs/1505.04597)",
    "chaurasia2017linknet": "[Chaurasia and Culurciello, 2017](https://arxiv.org/abs/1707.03718)",
    "radford2019language": "[Radford et al., "
    "2019](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf)",
    "chowdhery2023palm": "[Chowdhery et al., 2023](https://arxiv.org/abs/2204.02311)",
    "peng2023rwkv": "[Peng et al., 2023](https://arxiv.org/abs/2305.13048)",
}


def tabulate_recipes():
    rows = []
    for name, *cells in RECIPES:
        row, claim, paper = SUPPORT[name]
        ledger = f"<!-- claim: 02a-row-{row} claim:02a-{claim} bib:{paper} -->"
        rows.append([f"{name} ({PAPERS[paper]})", *cells, ledger])
    claimed_table(["", "formula", "x is kept by", "norm", "silent branch"], rows)


def check_quick_checks(basic, image, beside, added):
    w1, silent = kernel(1), torch.zeros(4, 4, 3, 3)
    twice = basic(basic(image, w1, silent), w1, silent)
    assert torch.equal(twice, torch.relu(image))
    W = random(3, 4, seed=0)
    assert equal(torch.cat([W, W], dim=1) @ beside, W @ added)
