"""Figures and proofs of deep dive 07a, Placements, one by one."""

import math
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F

import subnorm.torch as st
from subnorm.torch import STACK_PLACEMENTS, placements
from subnorm_lab.experiments import after_pre_ln
from subnorm_lab.experiments.after_pre_ln import at_start, untrained
from subnorm_lab.experiments.stack import mean_square
from subnorm_lab.report import say, table


def generator(seed):
    return torch.Generator().manual_seed(seed)


def begin():
    torch.set_num_threads(1)
    DEPTHS, SEEDS = (6, 24), range(5)

    def tokens(seed, *shape):
        shape = shape or (2, 16, 32)
        return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)

    def stack(name, num_blocks=6, seed=0, **more):
        build = partial(STACK_PLACEMENTS[name], **more)
        return untrained(build, num_blocks, generator(seed))

    def final_state(net, x):
        return net.placement.states(x, net.branches())[-1]

    def size(y):
        return mean_square(y.detach())

    return DEPTHS, SEEDS, tokens, stack, final_state, size


def pair(values):
    six, many = np.median(values, 0)
    if np.isnan(six):
        return "0 / 0"
    return " → ".join(f"{v:.0f}" if v >= 10 else f"{v:.2g}" for v in (six, many))


QUANTITIES = ("stream", "share", "gradient", "step", "adam")


HEADS = ("placement", "stream", "share", "first/last", "one step", "Adam")


def tabulate_all_of_them_before_training(DEPTHS, SEEDS):
    start = {name: at_start(build, DEPTHS, SEEDS) for name, build in STACK_PLACEMENTS.items()}
    table(
        list(HEADS),
        [[f"`{name}`", *(pair(start[name][q]) for q in QUANTITIES)] for name in STACK_PLACEMENTS],
    )
    return start


def prove_norm_moves(ten, scale_free, SEEDS, start, share, two_norms, one_norm):
    """Prove claims 07a-norm-moves, 07a-mix-ln."""
    assert max(abs(np.log(ten))) < 0.01
    assert scale_free("olmo2") < 1e-3
    assert scale_free("after_branch") > 0.3
    rms_alone = partial(STACK_PLACEMENTS["after_branch"], norm=st.RMSNorm)
    alone = at_start(rms_alone, (24,), SEEDS)["step"][:, 0]
    assert (alone > 2 * start["olmo2"]["step"][:, 1]).all()
    assert (start["swin_v2"]["share"] == 1).all() or np.allclose(start["swin_v2"]["share"], 1, rtol=1e-12, atol=0)
    mix, pre = (start[k]["gradient"][:, 1] for k in ("mix_ln", "pre"))
    assert (mix < pre).sum() == 3  # of five seeds
    assert share("b2t")[0] > 3 * share("post")[0]
    assert start["b2t"]["step"][:, 1].min() > 3 * np.median(start["b2t"]["step"][:, 0])
    torch.testing.assert_close(two_norms, one_norm)


def tabulate_a_constant_scales(start):
    def grows(name, quantity="step"):
        six, many = np.median(start[name][quantity], 0)
        return many / six

    table(
        ["", "one step, 24 blocks over 6", "Adam, 24 over 6", "stream, 24 over 6"],
        [
            [
                f"`{name}`",
                *(f"{grows(name, q):.1f}" for q in ("step", "adam", "stream")),
            ]
            for name in (
                *("pre", "post", "deepnorm", "layernorm_scaling"),
                *("admin", "t_fixup", "fixup"),
            )
        ],
    )
    return grows


def prove_constants(grows, share, start):
    """Prove claim 07a-constants."""
    assert 0.6 < grows("deepnorm") < 1.5
    assert grows("layernorm_scaling", "stream") < 2
    assert grows("pre", "stream") > 3
    np.testing.assert_allclose(share("admin"), share("pre"), rtol=0.35)
    assert share("deepnorm")[1] > 0.9
    assert 1.2 < grows("t_fixup") < grows("pre")
    assert 1.2 < grows("fixup") < grows("pre")
    for name in ("t_fixup", "fixup"):
        for step in ("step", "adam"):
            assert (start[name][step] < start["pre"][step] / 2).all()
    for name in ("deepnorm", "layernorm_scaling", "t_fixup", "fixup"):
        assert 1.5 < grows(name, "adam") < grows("pre", "adam")


def prove_gates(start, mean, variance, rate, keep, learns):
    """Prove claim 07a-gates."""
    for name in ("rezero", "skip_init", "adaln_zero"):
        np.testing.assert_allclose(start[name]["stream"], 1)
        assert np.isnan(start[name]["gradient"]).all()
    assert np.abs(start["layer_scale"]["stream"] - 1).max() < 1e-2
    assert np.nanmin(start["layer_scale"]["gradient"]) > 0.5
    for step in ("step", "adam"):
        many = {name: np.median(found[step][:, 1]) for name, found in start.items()}
        assert min((v, name) for name, v in many.items() if v)[1] == "layer_scale"
    np.testing.assert_allclose(mean.mean(), 1, atol=0.02)
    np.testing.assert_allclose(variance.mean(), rate / keep, atol=0.02)
    assert learns == [False, False, True] * 2


def prove_streams(same_as_pre, start, free, tied, second, grows):
    """Prove claim 07a-streams."""
    assert max(same_as_pre.values()) < 1e-9
    means = [start["attention_residuals"]["stream"][:, k] for k in (0, 1)]
    assert (means[1] < means[0]).all()
    assert min(free) > 10
    np.testing.assert_allclose(tied, 1, atol=0.02)
    assert max(second) < 1e-6
    assert np.median(start["resi_dual"]["gradient"][:, 1]) > 0.3
    assert start["post"]["gradient"].min() > 0.1
    assert grows("resi_dual") > 3


def prove_inside(largest, shrunk, share, turn, slope, scaled, x, image, pixels, size, groups):
    """Prove claim 07a-inside."""
    assert largest[False] < math.sqrt(8) + 1e-6
    assert largest[True] < 4 * math.sqrt(8)
    np.testing.assert_allclose(shrunk, math.sqrt(0.5), atol=0.03)
    np.testing.assert_allclose(share("ngpt"), [turn**24, turn**96], rtol=0.02)
    np.testing.assert_allclose(slope["dyt"], 0.5)
    np.testing.assert_allclose(slope["derf"], 1 / math.sqrt(math.pi))
    assert scaled["norm"] < 1e-3
    assert scaled["dyt"] > 0.3
    g = placements.ScaleNorm(32).double()(x)
    np.testing.assert_allclose(g.detach(), st.rms_norm(x, eps=0), rtol=1e-6)
    moved = F.layer_norm(image.movedim(1, -1), (16,), eps=1e-6).movedim(-1, 1)
    torch.testing.assert_close(pixels, moved)
    assert size(pixels - groups) > 0.01


def spread(values):
    return f"{np.median(values):.2f} ({values.min():.2f} to {values.max():.2f})"


def tabulate_the_training_runs():
    record = after_pre_ln.recorded()

    def less_pre(rows):
        return rows[:, -1] - record["loss"]["pre"][:, -1]  # (seeds,)

    table(
        [
            "placement",
            *(f"{k} steps" for k in (*record["steps"], record["longer_steps"][1])),
            "less Pre-LN's, 120 steps",
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
    return record, less_pre


def prove_runs(record, less_pre):
    """Prove claims 07a-runs, 07a-paired."""
    for name in ("pre", "deepnorm", "rezero"):
        again = after_pre_ln.at(after_pre_ln.run(name, 0, 40), (40,))
        np.testing.assert_allclose(again, record["loss"][name][0, :1], atol=5e-3)
    learned = [k for k, rows in record["loss"].items() if rows[:, 1].max() < record["chance"] - 0.1]
    assert set(STACK_PLACEMENTS) - set(learned) == {"post", "ngpt"}
    for name, sign in (("t_fixup", -1), ("deepnorm", 1)):
        paired = less_pre(record["loss"][name])
        assert (sign * paired > 0).all()
        assert abs(paired.mean()) > 4 * paired.std(ddof=1)
    say("rate", record["learning_rate"], ".3f")


def tabulate_add_one(TokenGate, DEPTHS, SEEDS):
    added = at_start(TokenGate, DEPTHS, SEEDS)
    table(
        list(HEADS),
        [["`TokenGate`", *(pair(added[q]) for q in QUANTITIES)]],
    )
    return added


def check_add_one(added, start):
    assert (added["stream"] < start["pre"]["stream"]).all()  # gates of a half
