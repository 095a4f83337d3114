"""Figures and proofs of deep dive 07a, Placements, one by one."""

import math
from functools import cache, partial

import numpy as np
import torch
import torch.nn.functional as F

import subnorm.torch as st
from subnorm.torch import STACK_PLACEMENTS, placements
from subnorm_lab.experiments import after_pre_ln, published_blocks
from subnorm_lab.experiments.after_pre_ln import at_start, untrained
from subnorm_lab.experiments.stack import mean_square
from subnorm_lab.report import say, table

DEPTHS, SEEDS = (6, 24), range(5)


def generator(seed):
    return torch.Generator().manual_seed(seed)


def tokens(seed, *shape):
    shape = shape or (2, 16, 32)
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def stack(name, num_blocks=6, seed=0, **more):
    build = partial(STACK_PLACEMENTS[name], **more)
    return untrained(build, num_blocks, generator(seed))


def size(y):
    return mean_square(y.detach())


def begin():
    torch.set_num_threads(1)
    return tokens, stack, size


def pair(values):
    six, many = np.median(values, 0)
    if np.isnan(six):
        return "0 / 0"
    return " → ".join(f"{v:.0f}" if v >= 10 else f"{v:.2g}" for v in (six, many))


QUANTITIES = ("stream", "share", "gradient", "step", "adam")


HEADS = ("placement", "stream", "share", "first/last", "one step", "Adam")


@cache
def start():
    """What each placement does before training."""
    return {name: at_start(build, DEPTHS, SEEDS) for name, build in STACK_PLACEMENTS.items()}


def share(name):
    return np.median(start()[name]["share"], 0)


def growth(name, quantity="step"):
    """From 6 to 24 blocks, the median over seeds."""
    six, many = np.median(start()[name][quantity], 0)
    return many / six


def tabulate_start():
    table(
        list(HEADS),
        [[f"`{name}`", *(pair(found[q]) for q in QUANTITIES)] for name, found in start().items()],
    )


def ten_times_the_weights(seed):
    """How much the sandwich's stream grows if all branches write ten times as much."""
    net, x = stack("sandwich", 24, seed), tokens(seed)

    def last():
        return size(net.placement.states(x, net.branches())[-1])

    before = last()
    for kind, weight in net.matrices():
        if kind in ("out", "down"):
            weight.data *= 10
    return last() / before


def scale_free(name):
    """How much the first branch changes when its input is scaled."""
    net, x = stack(name), tokens(1)
    norm, attend = net.placement.norms[0], net.branches()[0]
    return size(norm(attend(x)) - norm(attend(10 * x))) ** 0.5


def prove_norm_moves():
    """Prove claims 07a-norm-moves, 07a-mix-ln."""
    assert max(abs(np.log(ten_times_the_weights(seed))) for seed in SEEDS) < 0.01
    assert scale_free("olmo2") < 1e-3
    assert scale_free("after_branch") > 0.3
    rms_alone = partial(STACK_PLACEMENTS["after_branch"], norm=st.RMSNorm)
    alone = at_start(rms_alone, (24,), SEEDS)["step"][:, 0]
    assert (alone > 2 * start()["olmo2"]["step"][:, 1]).all()
    assert (start()["swin_v2"]["share"] == 1).all() or np.allclose(start()["swin_v2"]["share"], 1, rtol=1e-12, atol=0)
    mix, pre = (start()[k]["gradient"][:, 1] for k in ("mix_ln", "pre"))
    assert (mix < pre).sum() == 3  # of five seeds
    assert share("b2t")[0] > 3 * share("post")[0]
    assert start()["b2t"]["step"][:, 1].min() > 3 * np.median(start()["b2t"]["step"][:, 0])
    plain = F.layer_norm(tokens(2), (32,))
    g1, g2, b1, b2 = tokens(3, 4, 32)
    w1, w2 = tokens(4, 2, 8, 32)
    two_norms = (plain * g1 + b1) @ w1.T + (plain * g2 + b2) @ w2.T
    torch.testing.assert_close(two_norms, plain @ (w1 * g1 + w2 * g2).T + w1 @ b1 + w2 @ b2)


def tabulate_growth():
    table(
        ["", "one step, 24 blocks over 6", "Adam, 24 over 6", "stream, 24 over 6"],
        [
            [
                f"`{name}`",
                *(f"{growth(name, q):.1f}" for q in ("step", "adam", "stream")),
            ]
            for name in (
                *("pre", "post", "deepnorm", "layernorm_scaling"),
                *("admin", "t_fixup", "fixup"),
            )
        ],
    )


def prove_constants():
    """Prove claim 07a-constants."""
    assert 0.6 < growth("deepnorm") < 1.5
    assert growth("layernorm_scaling", "stream") < 2
    assert growth("pre", "stream") > 3
    np.testing.assert_allclose(share("admin"), share("pre"), rtol=0.35)
    assert share("deepnorm")[1] > 0.9
    assert 1.2 < growth("t_fixup") < growth("pre")
    assert 1.2 < growth("fixup") < growth("pre")
    for name in ("t_fixup", "fixup"):
        for step in ("step", "adam"):
            assert (start()[name][step] < start()["pre"][step] / 2).all()
    for name in ("deepnorm", "layernorm_scaling", "t_fixup", "fixup"):
        assert 1.5 < growth(name, "adam") < growth("pre", "adam")


def drop_path_moments(rate):
    """Mean and variance, over samples, of what a branch adds over the branch, (seeds,) each."""
    drop = stack("drop_path", 2, rate=rate).placement.train()
    same = tokens(5, 1, 1, 32).expand(8000, 1, 32)
    shares = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        shares.append((drop.step(same, torch.sin, 2) - same)[:, 0, 0])
    added = torch.sin(drop.norms[2](same))[0, 0, 0]
    return (np.array([f(s / added).item() for s in shares]) for f in (torch.mean, torch.var))


def learning_rows():
    """Which rows of adaLN-Zero's modulation get a gradient: shift, scale and gate, of two sublayers."""
    net, x = stack("adaln_zero"), tokens(6)
    net(x, None, tokens(7, 2, 1, 32)).square().mul(torch.arange(32)).sum().backward()
    return [bool(part.any()) for part in net.placement.modulation[0].weight.grad.chunk(6)]


def prove_gates():
    """Prove claim 07a-gates."""
    for name in ("rezero", "skip_init", "adaln_zero"):
        np.testing.assert_allclose(start()[name]["stream"], 1)
        assert np.isnan(start()[name]["gradient"]).all()
    assert np.abs(start()["layer_scale"]["stream"] - 1).max() < 1e-2
    assert np.nanmin(start()["layer_scale"]["gradient"]) > 0.5
    for step in ("step", "adam"):
        many = {name: np.median(found[step][:, 1]) for name, found in start().items()}
        assert min((v, name) for name, v in many.items() if v)[1] == "layer_scale"
    mean, variance = drop_path_moments(0.4)
    np.testing.assert_allclose(mean.mean(), 1, atol=0.02)
    np.testing.assert_allclose(variance.mean(), 0.4 / 0.6, atol=0.02)
    assert learning_rows() == [False, False, True] * 2


def prove_streams():
    """Prove claim 07a-streams."""
    exact, x = partial(st.LayerNorm, eps=0), tokens(8)
    for name in ("hyper_connections", "attention_residuals"):
        assert (stack(name, 12, norm=exact)(x) - stack("pre", 12, norm=exact)(x)).abs().max() < 1e-9
    means = [start()["attention_residuals"]["stream"][:, k] for k in (0, 1)]
    assert (means[1] < means[0]).all()
    for seed in SEEDS:
        mixes = tokens(seed, 60, 4, 4)
        free, tied = (
            torch.linalg.svdvals(torch.linalg.multi_dot(list(factors)))
            for factors in (torch.eye(4) + 0.3 * mixes, placements.sinkhorn(mixes))
        )
        assert free[0] > 10
        np.testing.assert_allclose(tied[0], 1, atol=0.02)
        assert tied[1] < 1e-6
    assert np.median(start()["resi_dual"]["gradient"][:, 1]) > 0.3
    assert start()["post"]["gradient"].min() > 0.1
    assert growth("resi_dual") > 3


def largest_score(full_width):
    """Of QK-norm, with large queries and keys."""
    q, k = 100 * tokens(9, 2, 3, 4, 16, 8)
    qk = placements.QKNorm(32, 1, full_width=full_width).double()
    a, b, _ = qk.heads(q, k, k, 0, {})
    return (a @ b.mT).abs().max().item() / math.sqrt(8)


def shrunk_values():
    """The spread of a later block's values, mixed with the first block's, over their own."""
    first, later = tokens(10, 2, 3, 4, 16, 8)
    values, shared = stack("value_residual").placement, {}
    values.heads(first, first, first, 0, shared)
    mixed = values.heads(first, first, later, 1, shared)[2]
    return (mixed.std() / later.std()).item()


def slope_at_0(norm):
    at = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(norm(1).double()(at), at)[0].item()


def ten_times_the_input(norm):
    """How much the output changes."""
    x, layer = tokens(11), norm(32).double()
    return size(layer(10 * x) - layer(x)) ** 0.5


def prove_inside():
    """Prove claim 07a-inside."""
    assert largest_score(full_width=False) < math.sqrt(8) + 1e-6
    assert largest_score(full_width=True) < 4 * math.sqrt(8)
    np.testing.assert_allclose(shrunk_values(), math.sqrt(0.5), atol=0.03)
    turn = math.cos(math.atan(0.05 / 0.95))  # of one sublayer
    np.testing.assert_allclose(share("ngpt"), [turn**24, turn**96], rtol=0.02)
    np.testing.assert_allclose(slope_at_0(placements.DynamicTanh), 0.5)
    np.testing.assert_allclose(slope_at_0(placements.DynamicErf), 1 / math.sqrt(math.pi))
    assert ten_times_the_input(st.LayerNorm) < 1e-3
    assert ten_times_the_input(placements.DynamicTanh) > 0.3
    x = tokens(11)
    g = placements.ScaleNorm(32).double()(x)
    np.testing.assert_allclose(g.detach(), st.rms_norm(x, eps=0), rtol=1e-6)
    image = tokens(12, 2, 16, 5, 5)
    pixels = placements.ChannelsFirstLayerNorm(16).double()(image)
    moved = F.layer_norm(image.movedim(1, -1), (16,), eps=1e-6).movedim(-1, 1)
    torch.testing.assert_close(pixels, moved)
    assert size(pixels - F.group_norm(image, 1)) > 0.01


def spread(values):
    return f"{np.median(values):.2f} ({values.min():.2f} to {values.max():.2f})"


def less_pre(rows):
    """The last loss less Pre-LN's, (seeds,)."""
    return rows[:, -1] - after_pre_ln.recorded()["loss"]["pre"][:, -1]


def tabulate_runs():
    record = after_pre_ln.recorded()
    table(
        [
            "placement",
            *(f"{k} steps" for k in (*record["steps"], record["longer_steps"][1])),
            "120 steps, minus Pre-LN's",
        ],
        [
            [
                f"`{name}`",
                *(spread(rows[:, k]) for k in (0, 1)),
                spread(record["longer_loss"][name][:, 1]) if name in record["longer_loss"] else "",
                f"{less_pre(rows).mean():+z.3f} ± {less_pre(rows).std(ddof=1):.3f}",
            ]
            for name, rows in record["loss"].items()
        ],
    )
    print(f"chance: {record['chance']:.2f} nats")


def prove_runs():
    """Prove claims 07a-runs, 07a-paired."""
    record = after_pre_ln.recorded()
    for name in ("pre", "deepnorm", "rezero"):
        again = after_pre_ln.at(after_pre_ln.train_one(name, 0, 40), (40,))
        np.testing.assert_allclose(again, record["loss"][name][0, :1], atol=5e-3)
    learned = [k for k, rows in record["loss"].items() if rows[:, 1].max() < record["chance"] - 0.1]
    assert set(STACK_PLACEMENTS) - set(learned) == {"post", "ngpt"}
    for name, sign in (("t_fixup", -1), ("deepnorm", 1)):
        paired = less_pre(record["loss"][name])
        assert (sign * paired > 0).all()
        assert abs(paired.mean()) > 4 * paired.std(ddof=1)
    say("rate", record["learning_rate"], ".3f")


def tabulate_added(TokenGate):
    added = at_start(TokenGate, DEPTHS, SEEDS)
    table(
        list(HEADS),
        [["`TokenGate`", *(pair(added[q]) for q in QUANTITIES)]],
    )


def check_added(TokenGate):
    added = at_start(TokenGate, DEPTHS, SEEDS)
    assert (added["stream"] < start()["pre"]["stream"]).all()  # gates of a half


TO_KNOW = {
    "BERT": "no final norm; `eps` of 1e-12; GELU",
    "GPT-2": "matrices are stored transposed; GELU's tanh form",
    "GPT-J": "one norm a block; positions turn neighbouring features",
    "LLaMA": "positions turn feature i with i + d/2 of a head; gated feed-forward; `eps` of 1e-6",
    "OLMo 2": "as LLaMA, and QK-norm over the full width; `eps` of 1e-5 in the class, 1e-6 in training",
    "Gemma 2": "as LLaMA, and gains stored less 1; scores capped at 50; heads share keys and values",
}


def published_distances():
    """How far the course's blocks are from the library's, by family."""
    found = {}
    for name in published_blocks.FAMILIES:
        model = published_blocks.recorded(name)
        placed, branches = published_blocks.blocks(name, model.weights)
        found[name] = published_blocks.distance(placed(model.x, branches), model.y)
    return found


def tabulate_published():
    placed = {name: family.placement for name, family in published_blocks.FAMILIES.items()}
    table(
        ["family", "placement", "what a loader has to know", "difference"],
        [
            [name, f"`{placed[name]}`", TO_KNOW[name], "below 1e-14" if gap < 1e-14 else f"{gap:.0e}"]
            for name, gap in published_distances().items()
        ],
    )


def prove_published():
    """Prove claim 07a-published."""
    epsilon = {name: torch.finfo(torch.float32).eps for name in published_blocks.FAMILIES}
    for name in ("BERT", "GPT-2"):  # nothing in them is computed in float32
        epsilon[name] = torch.finfo(torch.float64).eps
    for name, gap in published_distances().items():
        assert gap < 8 * epsilon[name], name
    for name, others in {"LLaMA": ("post", "after_branch", "layernorm_scaling"), "BERT": ("b2t", "deepnorm")}.items():
        model = published_blocks.recorded(name)
        for other in others:
            placed, branches = published_blocks.blocks(name, model.weights, other)
            assert published_blocks.distance(placed(model.x, branches), model.y) > 0.1


@torch.no_grad()
def prove_loaded_block(to_block, sizes, y):
    """Prove claim 07a-block."""
    gpt2 = published_blocks.recorded("GPT-2")
    assert published_blocks.distance(y, gpt2.y) < 8 * torch.finfo(torch.float64).eps

    causal = torch.ones(y.shape[-2], y.shape[-2], dtype=torch.bool).tril()
    first = {name.removeprefix("h.0."): weight for name, weight in gpt2.weights.items()}
    right, wrong = (st.TransformerBlock(**sizes).double() for _ in range(2))
    right.load_state_dict(to_block(first))
    wrong.load_state_dict(to_block({**first, "attn.c_proj.weight": first["attn.c_proj.weight"].t()}))
    assert published_blocks.distance(wrong(gpt2.x, causal), right(gpt2.x, causal)) > 0.1

    weights = published_blocks.recorded("BERT")
    x = weights.x
    for i in range(published_blocks.BLOCKS):
        block = st.TransformerBlock(**sizes, placement="post", eps=1e-12, activation=F.gelu).double()
        block.load_state_dict(bert_block(weights.weights, f"encoder.layer.{i}."))
        x = block(x)
    assert published_blocks.distance(x, weights.y) < 8 * torch.finfo(torch.float64).eps


def bert_block(weights, block):
    """The weights of a BERT layer by the names of `st.TransformerBlock`."""
    dense = {
        "attention.output.dense": "self_attn.out_proj",
        "attention.output.LayerNorm": "norm1",
        "intermediate.dense": "feed_forward.linear1",
        "output.dense": "feed_forward.linear2",
        "output.LayerNorm": "norm2",
    }
    ours = {}
    for kind in ("weight", "bias"):
        parts = [weights[f"{block}attention.self.{name}.{kind}"] for name in ("query", "key", "value")]
        ours[f"self_attn.in_proj_{kind}"] = torch.cat(parts)
        ours |= {f"{new}.{kind}": weights[f"{block}{old}.{kind}"] for old, new in dense.items()}
    return ours
