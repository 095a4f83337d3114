"""Figures and proofs of deep dive 03b, BatchNorm, GroupNorm, InstanceNorm."""

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

import subnorm.numpy as sn
from subnorm_lab import diagrams, figures
from subnorm_lab.experiments import batch_norm_gap
from subnorm_lab.experiments.parity import paired_interval
from subnorm_lab.report import say, table


def interval(values, spec=".2f"):
    return f"{np.mean(values):{spec}} [{np.min(values):{spec}}, {np.max(values):{spec}}]"


def begin():
    torch.set_num_threads(1)
    figures.use_style()


def draw_four_norms_one_arithmetic():
    figures.show(
        diagrams.normalised_axes(tuple(diagrams.SHARED)),
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
    return rng


NORMS = {"LayerNorm": sn.layer_norm, "BatchNorm": sn.batch_norm}


def changed_batches(seed):
    draw = np.random.default_rng(seed)
    batch = draw.standard_normal((4, 10, 16))  # (B, T, d)
    other = batch.copy()
    other[1:] = 3 * draw.standard_normal((3, 10, 16))
    future = batch.copy()
    future[:, -1] += 5
    padded = np.concatenate([batch, np.zeros((4, 30, 16))], axis=1)
    return batch, {
        "the other examples": other,
        "30 pads at the end": padded,
        "the last token": future,
    }


def tabulate_what_a_token_can_see(largest_move):
    moved = {}  # (change, norm): the first token's largest move, for each seed
    for seed in range(5):
        batch, changed = changed_batches(seed)
        for what, after in changed.items():
            for name, norm in NORMS.items():
                move = largest_move(norm, batch, after)
                moved.setdefault((what, name), []).append(move)
    rows = [[w, *(interval(moved[w, n]) for n in NORMS)] for w in changed]
    table(["what changes", *NORMS], rows)
    return moved, changed


def prove_layer_norm_sees_itself(moved, changed):
    """Prove claims 03b-layer-norm-sees-itself, 03b-leak-forward, 03b-padding, 03b-other-examples."""
    assert all(max(moved[w, "LayerNorm"]) == 0 for w in changed)
    assert all(min(moved[w, "BatchNorm"]) > 0.3 for w in changed)


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
        rows.append([B, *(interval(leaks[n], ".3f") for n in NORMS)])
    table(["sequences of 10 tokens", *NORMS], rows)


def prove_batch_of_one(refused, bn, two, rng):
    """Prove claim 03b-batch-of-one."""
    assert refused
    assert bn(torch.zeros(2, 16, dtype=torch.float64)).shape == (2, 16)

    assert np.allclose(np.abs(two), 1, atol=1e-9, rtol=0)
    ten = sn.batch_norm(rng.standard_normal((1, 10, 16)))
    assert np.abs(np.abs(ten) - 1).max() > 0.5  # ten rows: no such thing
    one_row = sn.batch_norm(rng.standard_normal((1, 16)), beta=np.ones(16))
    assert (one_row == 1).all()


def prove_running_averages(bn, running_mean, running_var, rows_in, in_evaluation, gap):
    """Prove claims 03b-running-averages, 03b-two-functions."""
    ln = torch.nn.LayerNorm(16, dtype=torch.float64)
    assert np.allclose(bn.running_mean.numpy(), running_mean, atol=1e-12, rtol=0)
    assert np.allclose(bn.running_var.numpy(), running_var, atol=1e-12, rtol=0)
    by_hand = (rows_in - running_mean) / np.sqrt(running_var + 1e-5)
    assert np.allclose(in_evaluation.numpy(), by_hand, atol=1e-9, rtol=0)
    same = ln.train()(torch.from_numpy(rows_in))
    assert torch.equal(same, ln.eval()(torch.from_numpy(rows_in)))
    assert gap > 1
    say("early_gap", gap, ".1f")


def prepare_sizes():
    sizes = np.array([4, 16, 64, 256, 1024])
    noise = np.empty((5, len(sizes)))
    for seed in range(5):
        draw = np.random.default_rng(seed)
        token = draw.standard_normal(64)  # the truth: mean 0, variance 1
        for i, n in enumerate(sizes):
            errors = [
                sn.batch_norm(np.vstack([token, draw.standard_normal((n - 1, 64))]))[0] - token for _ in range(10)
            ]
            noise[seed, i] = np.sqrt(np.mean(np.square(errors)))
    return sizes, noise


def prove_noise(sizes, noise):
    """Prove claim 03b-noise."""
    slopes = np.array([np.polyfit(np.log(sizes), np.log(r), 1)[0] for r in noise])
    assert ((slopes > -0.6) & (slopes < -0.4)).all()


def draw_how_noisy_a_batchs_statistics_are(sizes, noise):
    fig, ax = plt.subplots(figsize=(6.4, 3.2))
    ax.loglog(sizes, noise.T, "o", color=figures.ORANGE, markersize=4)
    ax.loglog(sizes, noise.mean(0), color=figures.ORANGE, label="BatchNorm")
    guide = noise.mean(0)[-1] * np.sqrt(sizes[-1] / sizes)
    ax.loglog(sizes, guide, label="1/√n", **figures.LOOKS["theory"])
    ax.set(
        xlabel="rows in the batch, n",
        ylabel="noise of one token's output",
        xticks=sizes,
        xticklabels=sizes,
        yticks=(levels := (0.05, 0.1, 0.2, 0.4)),
        yticklabels=levels,
    )
    ax.minorticks_off()
    ax.legend()
    figures.show(
        fig,
        alt="Noise of one token's output after BatchNorm against the number of rows in the batch, both "
        "logarithmic, five "
        "seeds. The dots fall in a straight line along the dotted guide of one over the root of n.",
    )


def prepare_record():
    record = batch_norm_gap.recorded()
    batch_sizes = record["batch_sizes"]
    losses = record["losses"]  # norm: (seeds, batch sizes, 2)
    gap = {n: losses[n][..., 1] - losses[n][..., 0] for n in losses}
    versions = record["versions"]
    print(f"measured {record['date']}, torch {versions['torch']}")
    return record, batch_sizes, losses, gap


def prove_gap_at_one(gap):
    """Prove claims 03b-gap-at-one, 03b-gap-beyond, 03b-layer-gap-zero."""
    assert gap["batch"].shape == (5, 5)
    assert (gap["layer"] == 0).all()
    assert gap["batch"][:, 0].min() > 0.02
    assert np.abs(gap["batch"][:, 1:]).max() < 0.02
    signs = np.sign(gap["batch"][:, 1:].round(4))
    assert (signs > 0).any()
    assert (signs < 0).any()


def draw_the_gap_after_training(losses, gap, batch_sizes):
    difference = losses["batch"][..., 1] - losses["layer"][..., 1]
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.3))
    for ax, values, name in (
        (left, gap["batch"], "BatchNorm, one seed"),
        (right, difference, "one seed"),
    ):
        ax.semilogx(batch_sizes, values.T, "o", color=figures.ORANGE, markersize=4)
        ax.plot([], [], "o", color=figures.ORANGE, markersize=4, label=name)
        ax.semilogx(batch_sizes, values.mean(0), color=figures.ORANGE, label="mean")
        ax.axhline(0, color=figures.BLUE, linestyle="--", linewidth=1.5)
        ax.set(xlabel="sequences in a batch", ylim=(-0.08, 0.12))
        ax.set_xticks(batch_sizes, batch_sizes)
        ax.minorticks_off()
    left.plot([], [], "--", color=figures.BLUE, label="LayerNorm")
    left.set(title="evaluation − training mode", ylabel="loss (nats)")
    right.set(title="BatchNorm − LayerNorm")
    left.legend(fontsize=9)
    figures.show(
        fig,
        alt="Two panels over the batch size, five seeds each. Left, the gap between evaluation and training "
        "mode: for BatchNorm "
        "clearly above zero at one sequence, near zero and on both sides of it from two on; LayerNorm is a "
        "line at zero. "
        "Right, the difference of the losses in evaluation: scattered round zero at one sequence, below "
        "zero at thirty-two.",
    )


def prove_worse_with_one(record):
    """Prove claims 03b-worse-with-one, 03b-undecided-with-four."""
    longer = record["longer"]
    later = longer["losses"]  # norm: (seeds, 2 batch sizes, 2)
    gap_later = later["batch"][..., 1] - later["batch"][..., 0]
    rows = []
    for i, size in enumerate(longer["batch_sizes"]):
        mean, half = paired_interval(later["layer"][:, i, 1], later["batch"][:, i, 1])
        gaps = f"{gap_later[:, i].min():+.2f} to {gap_later[:, i].max():+.2f}"
        rows.append([size, gaps, f"{mean:+.3f} ± {half:.3f}"])
        assert mean - half > 0 if size == 1 else mean - half < 0 < mean + half
    table(["sequences in a batch", "gap", "BatchNorm − LayerNorm, nats"], rows)
    return longer, later, gap_later


def prove_worse_with_one_2(later, longer, gap_later, gap):
    """Prove claims 03b-worse-with-one, 03b-undecided-with-four."""
    harm = later["batch"][:, 0, 1] - later["layer"][:, 0, 1]
    assert longer["steps"] == 600
    assert harm.min() > 0.05  # in every seed
    in_training = {n: later[n][:, 0, 0] for n in later}
    assert (in_training["batch"] < in_training["layer"]).all()
    assert (gap_later[:, 0] > gap["batch"][:, 0]).all()
    assert np.abs(gap_later[:, 1]).max() < 0.03
    say("harm_low", harm.min(), ".2f", noise=1e-3)
    say("harm_high", harm.max(), ".2f", noise=1e-3)


def prove_not_worse_here(batch_sizes, losses):
    """Prove claim 03b-not-worse-here."""
    rows = []
    for i, size in enumerate(batch_sizes):
        mean, half = paired_interval(losses["layer"][:, i, 1], losses["batch"][:, i, 1])
        rows.append([size, f"{mean:+.3f} ± {half:.3f}"])
        assert mean - half < 0  # nowhere does the interval lie above 0
    table(["sequences in a batch", "BatchNorm − LayerNorm, nats"], rows)
    return mean, half


def prove_not_worse_here_2(mean, half):
    """Prove claim 03b-not-worse-here."""
    assert mean + half < 0  # at 32, the last one, it lies below


def show_what_these_runs_can_tell_and_what_larger_studies_say(losses, batch_sizes):
    for norm in batch_norm_gap.NORMS:
        for size in (1, 4):
            again = batch_norm_gap.held_back(norm, size, seed=0)
            kept = losses[norm][0, batch_sizes.index(size)]
            assert np.abs(again - kept).max() < 1e-3
            print(f"{norm:5} {size}: as on record")


def prove_row_buffers(bn_buffers, ln_buffers):
    """Prove claim 03b-row-buffers."""
    assert {"running_mean", "running_var"} < set(bn_buffers)
    assert not ln_buffers


def prove_group_norm(rng, group_norm):
    """Prove claim 03b-group-norm."""
    images = rng.standard_normal((2, 8, 10))  # (N, C, L)
    for groups in (1, 2, 4, 8):
        expected = F.group_norm(torch.from_numpy(images), groups).numpy()
        assert np.allclose(group_norm(images, groups), expected, atol=1e-12, rtol=0)
    return images


def prove_one_group(images):
    """Prove claims 03b-one-group, 03b-group-of-a-token."""
    tensor = torch.from_numpy(images)
    one_group = F.group_norm(tensor, 1).numpy()
    whole_example = F.layer_norm(tensor, (8, 10)).numpy()
    each_token = sn.layer_norm(images.transpose(0, 2, 1)).transpose(0, 2, 1)
    assert np.allclose(one_group, whole_example, atol=1e-12, rtol=0)
    assert np.abs(one_group - each_token).max() > 0.1

    per_token = images.transpose(0, 2, 1).reshape(-1, 8)  # (N * L, C)
    as_tokens = F.group_norm(torch.from_numpy(per_token), 1).numpy()
    assert np.allclose(as_tokens, sn.layer_norm(per_token), atol=1e-12, rtol=0)
    return tensor


def prove_instance_norm(instance_norm, tensor, images, group_norm):
    """Prove claim 03b-instance-norm."""
    expected = F.instance_norm(tensor).numpy()
    assert np.allclose(instance_norm(images), expected, atol=1e-12, rtol=0)
    assert np.allclose(instance_norm(images), group_norm(images, 8), atol=1e-12, rtol=0)


def tabulate_instancenorm_in_five_lines(group_norm, instance_norm):
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
