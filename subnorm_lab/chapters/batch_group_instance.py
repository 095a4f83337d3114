"""Figures and proofs of deep dive 03b, BatchNorm, GroupNorm, InstanceNorm."""

from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

import subnorm.numpy as sn
from subnorm_lab import diagrams, figures
from subnorm_lab.chapters import begin as begin
from subnorm_lab.experiments import batch_norm_gap
from subnorm_lab.experiments.parity import paired_interval
from subnorm_lab.report import say, table


def mean_and_interval(values, spec=".2f"):
    return f"{np.mean(values):{spec}} [{np.min(values):{spec}}, {np.max(values):{spec}}]"


def draw_four_norms_one_arithmetic():
    figures.show(
        diagrams.normalised_axes(tuple(diagrams.SHARED), beside=4),
        narrow=diagrams.normalised_axes(tuple(diagrams.SHARED)),
        alt="Four tables with the tokens of two examples as rows and their features as columns; in each, some "
        "entries are "
        "coloured. LayerNorm: one row. BatchNorm: one column through both examples. "
        "GroupNorm: the first two columns of the first example. InstanceNorm: the first column of the first example.",
    )


def prove_turned_on_its_side(my_batch_norm, x, column):
    """Prove claim 03b-turned-on-its-side."""
    rng = np.random.default_rng(0)
    sentences = rng.standard_normal((2, 3, 5))  # (B, T, d)
    mine = my_batch_norm(sentences)
    assert np.allclose(mine, sn.batch_norm(sentences), atol=1e-12, rtol=0)
    tokens = sentences.reshape(6, 5)  # 6 tokens, 5 features
    turned = sn.layer_norm(tokens.T).T
    assert np.allclose(sn.batch_norm(tokens), turned, atol=1e-12, rtol=0)
    assert np.allclose(sn.batch_norm(x[:, None], eps=0)[:, 0], column, atol=1e-12, rtol=0)
    assert np.allclose(column, sn.layer_norm(x, eps=0), atol=1e-12, rtol=0)


NORMS = {"LayerNorm": sn.layer_norm, "BatchNorm": sn.batch_norm}


CHANGES = ("the other examples", "30 pads at the end", "the last token")


def changed_batches(seed):
    draw = np.random.default_rng(seed)
    batch = draw.standard_normal((4, 10, 16))  # (B, T, d)
    other = batch.copy()
    other[1:] = 3 * draw.standard_normal((3, 10, 16))
    future = batch.copy()
    future[:, -1] += 5
    padded = np.concatenate([batch, np.zeros((4, 30, 16))], axis=1)
    return batch, dict(zip(CHANGES, (other, padded, future), strict=True))


def tabulate_moves(largest_move):
    moved = {}  # (change, norm): the first token's largest move, for each seed
    for seed in range(5):
        batch, changed = changed_batches(seed)
        for what, after in changed.items():
            for name, norm in NORMS.items():
                move = largest_move(norm, batch, after)
                moved.setdefault((what, name), []).append(move)
    rows = [[w, *(mean_and_interval(moved[w, n]) for n in NORMS)] for w in CHANGES]
    table(["what changes", *NORMS], rows)
    return moved


def prove_layer_norm_sees_itself(moved):
    """Prove claims 03b-layer-norm-sees-itself, 03b-leak-forward, 03b-padding, 03b-other-examples."""
    assert all(max(moved[w, "LayerNorm"]) == 0 for w in CHANGES)
    assert all(min(moved[w, "BatchNorm"]) > 0.3 for w in CHANGES)


def prove_leak_gradient():
    """Prove claim 03b-leak-gradient."""
    rows = []
    for B in (1, 4, 32):
        leaks = {name: [] for name in NORMS}
        for seed in range(5):
            draw = np.random.default_rng(seed)
            batch = draw.standard_normal((B, 10, 16))
            dy = np.zeros_like(batch)
            dy[0, 0] = draw.standard_normal(16)
            for name, backward in (
                ("LayerNorm", sn.layer_norm_backward),
                ("BatchNorm", sn.batch_norm_backward),
            ):
                dx = backward(dy, batch)[0]
                own, future = np.linalg.norm(dx[0, [0, -1]], axis=-1)
                leaks[name].append(future / own)
        assert max(leaks["LayerNorm"]) == 0
        assert min(leaks["BatchNorm"]) > 0.5 / (10 * B)  # 10 B rows in all
        assert max(leaks["BatchNorm"]) < 3 / (10 * B)
        rows.append([B, *(mean_and_interval(leaks[n], ".3f") for n in NORMS)])
    table(["sequences of 10 tokens", *NORMS], rows)


def prove_batch_of_one():
    """Prove claim 03b-batch-of-one."""
    rng = np.random.default_rng(0)
    bn = torch.nn.BatchNorm1d(16, dtype=torch.float64)
    refused = False
    try:
        bn(torch.zeros(1, 16, dtype=torch.float64))
    except ValueError:
        refused = True
    assert refused
    assert bn(torch.zeros(2, 16, dtype=torch.float64)).shape == (2, 16)

    two = sn.batch_norm(rng.standard_normal((1, 2, 16)), eps=0)
    assert np.allclose(np.abs(two), 1, atol=1e-9, rtol=0)
    ten = sn.batch_norm(rng.standard_normal((1, 10, 16)))
    assert np.abs(np.abs(ten) - 1).max() > 0.5  # ten rows: no such thing
    one_row = sn.batch_norm(rng.standard_normal((1, 16)), beta=np.ones(16))
    assert (one_row == 1).all()


def prove_running_averages():
    """Prove claims 03b-running-averages, 03b-two-functions."""
    bn = torch.nn.BatchNorm1d(16, dtype=torch.float64)
    running_mean, running_var = np.zeros(16), np.ones(16)
    for seed in range(3):
        rows_in = 2 + 3 * np.random.default_rng(seed).standard_normal((40, 16))
        in_training = bn.train()(torch.from_numpy(rows_in)).detach()
        running_mean = 0.9 * running_mean + 0.1 * rows_in.mean(0)
        running_var = 0.9 * running_var + 0.1 * rows_in.var(0, ddof=1)
    in_evaluation = bn.eval()(torch.from_numpy(rows_in)).detach()
    gap = (in_training - in_evaluation).abs().max().item()

    ln = torch.nn.LayerNorm(16, dtype=torch.float64)
    assert np.allclose(bn.running_mean.numpy(), running_mean, atol=1e-12, rtol=0)
    assert np.allclose(bn.running_var.numpy(), running_var, atol=1e-12, rtol=0)
    by_hand = (rows_in - running_mean) / np.sqrt(running_var + 1e-5)
    assert np.allclose(in_evaluation.numpy(), by_hand, atol=1e-9, rtol=0)
    same = ln.train()(torch.from_numpy(rows_in))
    assert torch.equal(same, ln.eval()(torch.from_numpy(rows_in)))
    assert gap > 1
    say("early_gap", gap, ".1f")


SIZES = np.array([4, 16, 64, 256, 1024])


@cache
def noise():
    """How far one token's output is from that for the true statistics, shape (seeds, SIZES)."""
    found = np.empty((5, len(SIZES)))
    for seed in range(5):
        draw = np.random.default_rng(seed)
        token = draw.standard_normal(64)  # the truth: mean 0, variance 1
        for i, n in enumerate(SIZES):
            errors = [
                sn.batch_norm(np.vstack([token, draw.standard_normal((n - 1, 64))]))[0] - token for _ in range(10)
            ]
            found[seed, i] = np.sqrt(np.mean(np.square(errors)))
    return found


def prove_noise():
    """Prove claim 03b-noise."""
    slopes = np.array([np.polyfit(np.log(SIZES), np.log(r), 1)[0] for r in noise()])
    assert ((slopes > -0.6) & (slopes < -0.4)).all()


def draw_noise():
    middle = noise().mean(0)
    fig, ax = plt.subplots(figsize=(6.4, 3.2))
    ax.loglog(SIZES, noise().T, "o", color=figures.ORANGE, markersize=4)
    ax.loglog(SIZES, middle, color=figures.ORANGE)
    guide = middle[-1] * np.sqrt(SIZES[-1] / SIZES)
    ax.loglog(SIZES, guide, **figures.LOOKS["theory"])
    figures.name(ax, "BatchNorm, five seeds", (SIZES[1], middle[1]), figures.ORANGE, (8, 6))
    figures.name(ax, "dotted: 1/√n", (SIZES[2], guide[2]), shift=(-8, -8))
    figures.title(fig, "Noise falls like one over the root of n", np.allclose(middle, guide, rtol=0.06))
    ax.set(
        xlabel="rows in the batch, n",
        ylabel="noise of one token's output",
        xticks=SIZES,
        xticklabels=SIZES,
        yticks=(levels := (0.05, 0.1, 0.2, 0.4)),
        yticklabels=levels,
    )
    ax.minorticks_off()
    figures.show(
        fig,
        alt="Noise of one token's output after BatchNorm against the number of rows in the batch, both "
        "logarithmic, five "
        "seeds. The dots fall in a straight line along the dotted guide of one over the root of n.",
    )


def gaps(losses):
    """Loss in evaluation mode less loss in training mode, {norm: (seeds, batch sizes)}."""
    return {norm: both[..., 1] - both[..., 0] for norm, both in losses.items()}


def prove_gap_at_one():
    """Prove claims 03b-gap-at-one, 03b-gap-beyond, 03b-layer-gap-zero."""
    gap = gaps(batch_norm_gap.recorded()["losses"])
    assert gap["batch"].shape == (5, 5)
    assert (gap["layer"] == 0).all()
    assert gap["batch"][:, 0].min() > 0.02
    assert np.abs(gap["batch"][:, 1:]).max() < 0.02
    signs = np.sign(gap["batch"][:, 1:].round(4))
    assert (signs > 0).any()
    assert (signs < 0).any()


def draw_gap_after_training():
    record = batch_norm_gap.recorded()
    batch_sizes, losses = record["batch_sizes"], record["losses"]
    print(f"measured {record['date']}, torch {record['versions']['torch']}")
    gap, difference = gaps(losses)["batch"], losses["batch"][..., 1] - losses["layer"][..., 1]
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.4), sharey=True)
    for ax, values in ((left, gap), (right, difference)):
        ax.semilogx(batch_sizes, values.T, "o", color=figures.ORANGE, markersize=4, alpha=0.6)
        ax.semilogx(batch_sizes, values.mean(0), color=figures.ORANGE)
        ax.axhline(0, color=figures.BLUE, linestyle="--", linewidth=1.5)
        ax.set(xlabel="sequences in a batch", ylim=(-0.08, 0.12), yticks=(-0.05, 0, 0.05, 0.1))
        ax.set_xticks(batch_sizes, batch_sizes)
        ax.minorticks_off()
    figures.name(left, "BatchNorm, mean\nof five seeds", (1, gap[:, 0].mean()), figures.ORANGE, (12, 6))
    figures.name(left, "LayerNorm", (11, 0), figures.BLUE, (0, -8))
    figures.name(right, "LayerNorm", (11, 0), figures.BLUE, (0, 5))
    left.set(title="evaluation − training mode", ylabel="loss (nats)")
    right.set(title="BatchNorm − LayerNorm")
    costs = gap[:, 0].min() > 0.03 > 0.01 > np.abs(gap.mean(0)[1:]).max()
    figures.title(fig, "With one sequence in a batch, evaluation mode costs BatchNorm most", costs)
    figures.show(
        fig,
        alt="Two panels over the batch size, five seeds each. Left, the gap between evaluation and training "
        "mode: for BatchNorm "
        "clearly above zero at one sequence, near zero and on both sides of it from two on; LayerNorm is a "
        "line at zero. "
        "Right, the difference of the losses in evaluation: scattered round zero at one sequence, below "
        "zero at thirty-two.",
    )


def tabulate_longer_runs():
    longer = batch_norm_gap.recorded()["longer"]
    gap = gaps(longer["losses"])["batch"]
    rows = []
    for i, size in enumerate(longer["batch_sizes"]):
        mean, half = difference(longer["losses"], i)
        rows.append([size, f"{gap[:, i].min():+.2f} to {gap[:, i].max():+.2f}", f"{mean:+.3f} ± {half:.3f}"])
    table(["sequences in a batch", "gap", "BatchNorm − LayerNorm, nats"], rows)


def difference(losses, i):
    """BatchNorm's loss in evaluation less LayerNorm's at batch size i: the mean over pairs, and half its interval."""
    return paired_interval(losses["layer"][:, i, 1], losses["batch"][:, i, 1])


def prove_worse_with_one():
    """Prove claims 03b-worse-with-one, 03b-undecided-with-four."""
    record = batch_norm_gap.recorded()
    longer, later = record["longer"], record["longer"]["losses"]
    assert longer["batch_sizes"] == [1, 4]
    (with_one, half_one), (with_four, half_four) = difference(later, 0), difference(later, 1)
    assert with_one - half_one > 0
    assert with_four - half_four < 0 < with_four + half_four
    harm = later["batch"][:, 0, 1] - later["layer"][:, 0, 1]
    assert longer["steps"] == 600
    assert harm.min() > 0.05  # in every seed
    in_training = {n: later[n][:, 0, 0] for n in later}
    assert (in_training["batch"] < in_training["layer"]).all()
    gap_later = gaps(later)["batch"]
    assert (gap_later[:, 0] > gaps(record["losses"])["batch"][:, 0]).all()
    assert np.abs(gap_later[:, 1]).max() < 0.03
    say("harm_low", harm.min(), ".2f", noise=1e-3)
    say("harm_high", harm.max(), ".2f", noise=1e-3)


def tabulate_differences():
    record = batch_norm_gap.recorded()
    rows = []
    for i, size in enumerate(record["batch_sizes"]):
        mean, half = difference(record["losses"], i)
        rows.append([size, f"{mean:+.3f} ± {half:.3f}"])
    table(["sequences in a batch", "BatchNorm − LayerNorm, nats"], rows)


def prove_not_worse_here():
    """Prove claim 03b-not-worse-here."""
    record = batch_norm_gap.recorded()
    ends = []
    for i in range(len(record["batch_sizes"])):
        mean, half = difference(record["losses"], i)
        assert mean - half < 0  # nowhere does the interval lie above 0
        ends.append(mean + half)
    assert ends[-1] < 0  # with 32 sequences, the last, it lies below


def train_two_points_again():
    record = batch_norm_gap.recorded()
    for norm in batch_norm_gap.NORMS:
        for size in (1, 4):
            again = batch_norm_gap.held_back(norm, size, seed=0)
            kept = record["losses"][norm][0, record["batch_sizes"].index(size)]
            assert np.abs(again - kept).max() < 1e-3
            print(f"{norm:5} {size}: as on record")


def prove_row_buffers(bn_buffers, ln_buffers):
    """Prove claim 03b-row-buffers."""
    assert {"running_mean", "running_var"} < set(bn_buffers)
    assert not ln_buffers


IMAGES = np.random.default_rng(0).standard_normal((2, 8, 10))  # (N, C, L)


def prove_group_norm(group_norm):
    """Prove claim 03b-group-norm."""
    for groups in (1, 2, 4, 8):
        expected = F.group_norm(torch.from_numpy(IMAGES), groups).numpy()
        assert np.allclose(group_norm(IMAGES, groups), expected, atol=1e-12, rtol=0)


def prove_one_group():
    """Prove claims 03b-one-group, 03b-group-of-a-token."""
    tensor = torch.from_numpy(IMAGES)
    one_group = F.group_norm(tensor, 1).numpy()
    whole_example = F.layer_norm(tensor, (8, 10)).numpy()
    each_token = sn.layer_norm(IMAGES.transpose(0, 2, 1)).transpose(0, 2, 1)
    assert np.allclose(one_group, whole_example, atol=1e-12, rtol=0)
    assert np.abs(one_group - each_token).max() > 0.1

    per_token = IMAGES.transpose(0, 2, 1).reshape(-1, 8)  # (N * L, C)
    as_tokens = F.group_norm(torch.from_numpy(per_token), 1).numpy()
    assert np.allclose(as_tokens, sn.layer_norm(per_token), atol=1e-12, rtol=0)


def prove_instance_norm(instance_norm, group_norm):
    """Prove claim 03b-instance-norm."""
    expected = F.instance_norm(torch.from_numpy(IMAGES)).numpy()
    assert np.allclose(instance_norm(IMAGES), expected, atol=1e-12, rtol=0)
    assert np.allclose(instance_norm(IMAGES), group_norm(IMAGES, 8), atol=1e-12, rtol=0)


def tabulate_who_sees_the_future(group_norm, instance_norm):
    four = {
        "LayerNorm, each token": lambda x: sn.layer_norm(x.transpose(0, 2, 1)),
        "BatchNorm": lambda x: sn.batch_norm(x.transpose(0, 2, 1)),
        "GroupNorm, 2 groups": lambda x: group_norm(x, 2).transpose(0, 2, 1),
        "InstanceNorm": lambda x: instance_norm(x).transpose(0, 2, 1),
    }  # each gives (N, L, C)
    sees = {name: [] for name in four}  # the first position's largest move
    for seed in range(5):
        now = np.random.default_rng(seed).standard_normal((2, 8, 10))
        later = now.copy()
        later[:, :, -1] += 5
        for name, norm in four.items():
            sees[name].append(np.abs(norm(later) - norm(now))[:, 0].max())
    rows = [[name, "yes" if max(v) else "no"] for name, v in sees.items()]
    table(["norm", "the first position feels the last"], rows)
    return sees


def prove_who_sees_the_future(sees):
    """Prove claim 03b-who-sees-the-future."""
    assert max(sees["LayerNorm, each token"]) == 0
    assert all(min(v) > 0.1 for name, v in sees.items() if "Layer" not in name)
