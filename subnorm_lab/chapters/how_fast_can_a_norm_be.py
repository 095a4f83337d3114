"""Figures and proofs of chapter 08, How fast can a norm be?."""

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm import timing
from subnorm.numpy import blocked
from subnorm.timing import published as others
from subnorm_lab import figures, live
from subnorm_lab.experiments import norm_share
from subnorm_lab.report import say, table


def begin():
    torch.set_num_threads(1)
    figures.use_style()


RUNNERS = {
    "a copy": "copy",
    "LayerNorm in one kernel": "layer_builtin",
    "LayerNorm in NumPy": "layer_numpy",
}


def draw_race():
    records = {r["device"]["name"]: r for r in timing.read_records()}
    cpu = records.pop("Intel(R) Xeon(R) Processor @ 2.50GHz")
    num_rows, d = 4096, 4096
    large = (num_rows, d)
    measured = timing.rows(cpu, "forward", large)
    copies = {key: np.array(row.rounds) / np.array(measured[row.copy].rounds) for key, row in measured.items()}

    def race(clock):
        """The share of its work that each has done; the clock counts copies."""
        done = {name: min(clock / np.median(copies[key]), 1) for name, key in RUNNERS.items()}
        rows = [("", name, share, share == 1) for name, share in done.items()]
        words = [f"{name} is {'done' if v == 1 else f'at {100 * v:.0f} %'}" for name, v in done.items()]
        return f"At time {clock:g}, {', '.join(words)}.", [rows]

    live.chart(
        "race",
        "A race against a copy of the same bytes",
        [
            live.slider(
                "clock",
                "time, in copies",
                [0, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 7, 8],
                1,
            )
        ],
        [live.Bars("work done", len(RUNNERS))],
        race,
        alt="Three bars after the time of one copy. The copy has finished, LayerNorm in one kernel has done "
        "three quarters of its "
        "work, LayerNorm in NumPy about a seventh.",
    )
    return records, cpu, num_rows, d, large, measured, copies


def prepare_x(layer_norm):
    x = torch.randn(256, 512, generator=torch.Generator().manual_seed(0))
    dy = torch.randn(256, 512, generator=torch.Generator().manual_seed(1))
    gamma, beta = torch.ones(512), torch.zeros(512)
    norms = {
        "LayerNorm, by hand": lambda x, g, b: layer_norm(x, g, b),
        "RMSNorm, by hand": lambda x, g, b: st.rms_norm(x, g),
        "F.layer_norm": lambda x, g, b: F.layer_norm(x, (512,), g, b),
        "F.rms_norm": lambda x, g, b: F.rms_norm(x, (512,), g, 1e-5),
    }

    def moved(operations):
        """In arrays of the size of x."""
        return sum(operation.bytes for operation in operations) / x.nbytes

    return x, dy, gamma, beta, norms, moved


def draw_arrays(x, gamma, beta, dy, norms, moved):
    def count(norm):
        """Operations forward, and backward through autograd's graph."""
        leaves = [t.clone().requires_grad_() for t in (x, gamma, beta)]
        y = norm(*leaves)
        return timing.operations(lambda: norm(x, gamma, beta)), timing.operations(
            lambda: torch.autograd.grad(y, leaves, dy, allow_unused=True)
        )

    counts = {name: count(norm) for name, norm in norms.items()}
    arrays = {name: [moved(ops) for ops in both] for name, both in counts.items()}

    def trips(backward):
        """The arrays that each version moves; the last row is the least."""
        least = 3 if backward else 2
        rows = [("", name, both[backward], False) for name, both in arrays.items()]
        rows.append(("", "the least", least, True))
        slow, fast = (f"{arrays[name][backward]:.0f}" for name in ("LayerNorm, by hand", "F.layer_norm"))
        return (
            f"The same LayerNorm moves {slow} arrays by hand, {fast} built in.",
            [rows],
        )

    live.chart(
        "arrays",
        "What each version reads and writes",
        [live.choice("backward", "pass", {"forward": False, "backward": True}, False)],
        [
            live.Bars(
                "arrays moved",
                len(norms) + 1,
                max(max(a) for a in arrays.values()),
            )
        ],
        trips,
        alt="Five bars: the arrays moved forward. LayerNorm by hand moves most, RMSNorm by hand and the "
        "built-in RMSNorm about "
        "half as many, the built-in LayerNorm as few as the least, two.",
    )
    return counts, arrays


def prove_one_kernel(arrays, counts, x, gamma, beta, moved):
    """Prove claims 08-one-kernel, 08-a-chain."""
    for name in ("LayerNorm, by hand", "RMSNorm, by hand", "F.rms_norm"):
        assert arrays[name][0] > 6
        assert arrays[name][1] > 20
    assert [len(operations) for operations in counts["F.layer_norm"]] == [1, 1]
    assert np.allclose(arrays["F.layer_norm"], [2, 3], atol=0.1, rtol=0)

    by_hand, built_in = arrays["LayerNorm, by hand"], arrays["F.rms_norm"]
    say("layer_by_hand_forward", by_hand[0], ".0f")
    say("layer_by_hand_backward", by_hand[1], ".0f")
    say("rms_built_in_forward", built_in[0], ".0f")
    say("rms_built_in_backward", built_in[1], ".0f")
    ours = timing.operations(lambda: st.layer_norm(x, gamma, beta))
    say("layer_of_subnorm", moved(ours), ".0f")


def tabulate_the_roofline_and_the_counts_in_full(work, per_byte):
    table(
        ["", "operations", "bytes", "operations for each byte", "in bfloat16"],
        [
            [name, f"{ops:.1e}", f"{moved:.1e}", f"{each:.2f}", f"{2 * each:.2f}"]
            for (name, (ops, moved)), each in zip(work.items(), per_byte.values(), strict=True)
        ],
    )


def prove_few_operations(per_byte, array):
    """Prove claim 08-few-operations."""
    assert per_byte["LayerNorm"] < 1 < 500 < per_byte["matrix product"]
    assert 1 < 2 * per_byte["LayerNorm"] < 2  # half the bytes in bfloat16
    say("megabytes", array / 1e6, ".0f")


def tabulate_the_roofline_and_the_counts_in_full_2(moved, counts):
    table(
        ["version", "forward", "arrays", "backward", "arrays"],
        [
            [
                name,
                len(forward),
                f"{moved(forward):.1f}",
                len(backward),
                f"{moved(backward):.1f}",
            ]
            for name, (forward, backward) in counts.items()
        ],
    )


def amount(line):
    if line.bytes is None:
        return "left out"
    if not line.moves:
        return ""
    return f"{line.bytes / 1e6:.1f} MB" if line.bytes > 1e6 else f"{line.bytes / 1e3:.0f} kB"


def show_a_fused_kernel_line_by_line(listed):
    print("LayerNorm  sum, RMSNorm")
    for one, two in zip(*listed, strict=True):
        columns = f"{amount(one):>9}{amount(two):>14}"
        print(f"{columns}    {'    ' * one.depth}{one.code}")


def prove_kernel_lines(listed, half):
    """Prove claim 08-kernel-lines."""
    counted = [sum(line.bytes or 0 for line in lines) for lines in listed]
    must = [
        timing.TABLES[name].bytes(norm, (4096, 4096), half)
        for name, norm in [("forward", "layer"), ("add_norm", "rms")]
    ]
    statistics = [2 * 4096 * 4, 4096 * 4]  # float32: mean and rstd, or rstd
    assert counted == [m + s for m, s in zip(must, statistics, strict=True)]
    arrays_moved = [c / (2 * 4096 * 4096) for c in counted]
    assert np.allclose(arrays_moved, [2, 4], rtol=1e-3, atol=0)
    say("kernel_alone", arrays_moved[0], ".3f")
    say("kernel_summed", arrays_moved[1], ".3f")
    for lines in listed:
        assert sum(bool(line.moves) and bool(line.bytes) for line in lines) < 8


def quartiles(values):
    return np.quantile(values, (0.25, 0.5, 0.75))


def ratio(rows, slow, fast):
    """How many times faster: quartiles over the rounds."""
    return quartiles(np.array(rows[slow].rounds) / np.array(rows[fast].rounds))


def prepare_passes(arrays):
    # what each moves, in copies: counted above, or the least where it is one loop
    passes = {}
    for kind, name in [("layer", "LayerNorm"), ("rms", "RMSNorm")]:
        passes[f"{kind}_hand"] = arrays[f"{name}, by hand"][0] / 2
        passes[f"{kind}_builtin"] = arrays[f"F.{kind}_norm"][0] / 2
        passes[f"{kind}_compile"] = passes[f"{kind}_numba"] = 1
    return passes


MARKS = {"hand": "o", "builtin": "s", "compile": "^", "numba": "D"}


NAMES = {
    "hand": "by hand",
    "builtin": "built in",
    "compile": "torch.compile",
    "numba": "Numba",
}


def draw_from_bytes_to_seconds(copies, passes, cpu):
    fig, ax = plt.subplots(figsize=(6.4, 3.8))
    ax.plot([0.8, 8], [0.8, 8], "--", color=figures.BLACK, linewidth=1)
    for kind, color in [("layer", figures.BLUE), ("rms", figures.ORANGE)]:
        for how, mark in MARKS.items():
            key, side = f"{kind}_{how}", -0.06 if kind == "layer" else 0.06
            q1, q2, q3 = quartiles(copies[key])
            at = passes[key] + side
            ax.plot([at, at], [q1, q3], color=color, linewidth=4, alpha=0.5)
            label = f"{'LayerNorm' if kind == 'layer' else 'RMSNorm'}, {NAMES[how]}"
            ax.plot(at, q2, mark, color=color, markersize=8, label=label)
    ax.set(
        xlabel="bytes that the operations move, in copies",
        ylabel="time, in copies",
        xlim=(0.6, 6.6),
        ylim=(0, None),
    )
    ax.legend(fontsize=9, ncols=2)
    figures.show(
        fig,
        alt="Time against bytes moved, both in copies, for two norms in four versions each. The dashed line is "
        "time equal to "
        "bytes. The versions in one kernel are at the left end near one copy, the built-in RMSNorm and the "
        "versions by hand "
        "further right and higher.",
    )
    print(timing.heading(cpu))


def prepare_off(copies, passes):
    off = {key: np.median(copies[key]) / count for key, count in passes.items()}
    return off


def prove_bytes_predict(off, copies):
    """Prove claims 08-bytes-predict, 08-not-the-root."""
    worst = max(max(off.values()), 1 / min(off.values()))
    assert worst < 1.8
    for kind in ("layer", "rms"):
        chain, kernel = copies[f"{kind}_hand"], copies[f"{kind}_numba"]
        assert np.quantile(chain / kernel, 0.1) > 2
    assert np.quantile(copies["rms_hand"] / copies["layer_builtin"], 0.1) > 1.5
    say("worst_prediction", worst, ".1f")
    say("layer_hand_of_copy", np.median(copies["layer_hand"]), ".1f")
    say("layer_of_copy", np.median(copies["layer_builtin"]), ".1f")
    say("rms_hand_of_copy", np.median(copies["rms_hand"]), ".1f")


def draw_copy_speed(cpu):
    def speeds(name, key):
        """Bytes that must move, and 1e9 bytes a second: three quartiles, (3, sizes)."""
        rows = [timing.rows(cpu, name, s)[key] for s in timing.shapes(cpu, name)]
        moved = np.array([row.bytes for row in rows])
        seconds = [[row.seconds[q] for row in rows] for q in ("q1", "median", "q3")]
        return moved, moved / np.array(seconds) / 1e9

    copied, copy_speed = speeds("forward", "copy")
    live.sketch(
        "copy-speed",
        "Draw how fast a copy is, from a small array to a large one",
        live.Axis("million bytes read and written", log=True, limits=(0.01, 300)),
        live.Axis("GB/s", log=True, limits=(1, 100)),
        truth=(copied / 1e6, copy_speed[1]),
        knots=[0.033, 0.52, 17, 134],
        alt="The speed of a copy on logarithmic axes. It rises from the smallest array to the second, by a "
        "factor of about five, "
        "and falls from there to the largest, to well below where it began.",
    )
    return speeds, copy_speed


TABLES = {
    "forward": "forward",
    "forward and backward": "training",
    "sum and norm, both ways": "add_norm_training",
}


def draw_numba(cpu, large, speeds):
    CURVES = {
        "copy": live.Curve("a copy", figures.BLACK, ":", marks="too"),
        "numba": live.Curve("Numba", figures.ORANGE, "-.", marks="too"),
        "module": live.Curve("subnorm's module", figures.GREEN, marks="too"),
        "compile": live.Curve("torch.compile", figures.PINK, "-", marks="too"),
        "builtin": live.Curve("built in", figures.BLUE, "--", marks="too"),
        "hand": live.Curve("by hand", figures.GREY, ":", marks="too"),
    }

    def frame(kind, name):
        known = timing.rows(cpu, name, large)
        drawn = {
            how: speeds(name, key) for how in CURVES if (key := "copy" if how == "copy" else f"{kind}_{how}") in known
        }
        last = {how: speed[1, -1] for how, (_moved, speed) in drawn.items()}
        words = ", ".join(f"{CURVES[how].label} {v:.2g}" for how, v in last.items())
        return f"On the largest array, in GB/s: {words}.", [drawn]

    live.chart(
        "roofline",
        "How fast each version is: medians, with the quartiles of the rounds",
        [
            live.choice("kind", "norm", {"LayerNorm": "layer", "RMSNorm": "rms"}, "rms"),
            live.choice("name", "pass", TABLES, "training"),
        ],
        [
            live.Lines(
                live.Axis("bytes that must move", log=True),
                live.Axis("GB/s", log=True),
                CURVES,
            )
        ],
        frame,
        alt="Speed over bytes for RMSNorm, forward and backward, on logarithmic axes. The copy rises from the "
        "small arrays to those "
        "that fit a cache and falls at the largest. The module of this course lies below the copy, the "
        "built-in norm and the one "
        "by hand further below it.",
    )


def prepare_slow(copy_speed):
    slow, speed, fast = copy_speed[::-1]  # quartiles, (sizes,)
    return slow, speed, fast


def prove_three_regimes(speed, slow, fast, cpu, d):
    """Prove claim 08-three-regimes."""
    middle = speed.argmax()
    assert 0 < middle < len(speed) - 1
    assert slow[middle] > 1.5 * fast[0]
    assert slow[middle] > 1.5 * fast[-1]
    smallest, next_size = timing.shapes(cpu, "forward")[:2]
    assert next_size[0] == 16 * smallest[0]
    time_at = {
        shape: np.array(timing.rows(cpu, "forward", shape)["rms_builtin"].rounds) for shape in (smallest, next_size)
    }
    growth = time_at[next_size] / time_at[smallest]
    assert growth.max() < 4
    say("small_growth", np.median(growth), ".0f")
    say("cache_over_memory", speed[middle] / speed[-1], ".0f")

    one_row = timing.rows(cpu, "forward", (1, d))["rms_builtin"]
    say("small_microseconds", 1e6 * one_row.seconds["median"], ".0f")
    say("small_copies", 1 / one_row.share["median"], ".0f")


def prepare_new(measured):
    new, larger_pages, old = (np.array(measured[key].rounds) for key in ("copy", "copy_numpy", "copy_out"))
    return new, larger_pages, old


def tabulate_new_memory_has_a_price(old, new, larger_pages):
    table(
        ["copy", "times the last, with quartiles"],
        [
            [name, "{1:.1f} [{0:.1f}, {2:.1f}]".format(*quartiles(taken / old))]
            for name, taken in [
                ("into a new array", new),
                ("into a new array with larger pages", larger_pages),
                ("into an array that is there", old),
            ]
        ],
    )


def prove_new_memory(new, old):
    """Prove claim 08-new-memory."""
    assert np.quantile(new / old, 0.1) > 1.3
    say("new_over_old", np.median(new / old), ".1f")


def prove_blocks(measured):
    """Prove claim 08-blocks."""
    rows_shown = []
    for kind, name in [("layer", "LayerNorm"), ("rms", "RMSNorm")]:
        cells = [name]
        for how in ("blocked", "blocked_out"):
            gain = ratio(measured, f"{kind}_numpy", f"{kind}_{how}")
            assert gain[0] > 1.3
            cells.append("{1:.1f} [{0:.1f}, {2:.1f}]".format(*gain))
        rows_shown.append(cells)
    return rows_shown


def tabulate_new_memory_has_a_price_2(rows_shown):
    table(
        ["NumPy, times faster than plain", "in blocks", "and into an old array"],
        rows_shown,
    )


def prove_blocks_2(measured):
    """Prove claim 08-blocks."""
    for kind in ("layer", "rms"):
        gain = ratio(measured, f"{kind}_numpy", f"{kind}_blocked")
        say(f"{kind}_blocked", gain[1], ".1f")
    x_big = np.random.default_rng(0).standard_normal((600, 512), np.float32)
    assert np.allclose(blocked.layer_norm(x_big), sn.layer_norm(x_big), atol=1e-6, rtol=0)


WAYS = {
    "numpy": "NumPy, plain",
    "hand": "PyTorch, by hand",
    "builtin": "PyTorch, built in",
    "blocked": "NumPy, in blocks",
    "compile": "torch.compile",
    "numba": "Numba, one loop",
}


def prepare_times(measured):
    times = {how: ratio(measured, f"rms_{how}", f"layer_{how}") for how in WAYS}
    return times


def draw_what_dropping_the_mean_really_buys(times):
    fig, ax = plt.subplots(figsize=(6.4, 2.7))
    ax.axvline(1, color=figures.BLACK, linestyle="--", linewidth=1)
    for y, (how, (q1, q2, q3)) in enumerate(times.items()):
        color = figures.ORANGE if how in ("compile", "numba") else figures.BLUE
        ax.plot([q1, q3], [y, y], color=color, linewidth=4, alpha=0.5)
        ax.plot(q2, y, "o", color=color, markersize=8)
    ax.set(
        xlabel="time of RMSNorm, where LayerNorm takes 1",
        xlim=(0, 3),
        yticks=range(len(WAYS)),
        yticklabels=WAYS.values(),
    )
    ax.invert_yaxis()
    figures.show(
        fig,
        alt="The time of RMSNorm over that of LayerNorm for six versions, with a dashed line at 1. In plain "
        "NumPy and by hand the "
        "mark is at about six tenths, built into PyTorch far beyond 2, in blocks at three quarters. The "
        "two versions in "
        "one loop, in orange, are just below 1.",
    )


def prove_mean(measured, times):
    """Prove claims 08-mean, 08-mean-bytes."""
    fewer_bytes = measured["rms_hand"].bytes / measured["layer_hand"].bytes
    say("mean_bytes", fewer_bytes, ".4f")
    for how in ("hand", "builtin", "compile", "numba"):
        say(f"mean_{how}", times[how][1], ".2f")
    assert 0.999 < fewer_bytes < 1
    assert times["hand"][2] < 0.8
    assert times["builtin"][0] > 1.5
    assert all(0.8 < times[how][1] < 1.05 for how in ("compile", "numba"))


def tabulate_a_fast_rmsnorm_from_layernorms_kernel(times):
    table(
        ["version", "time, RMSNorm over LayerNorm"],
        [[name, "{1:.2f} [{0:.2f}, {2:.2f}]".format(*times[how])] for how, name in WAYS.items()],
    )


def prove_borrowed_kernel(x, dy):
    """Prove claim 08-borrowed-kernel."""
    w = 1 + 0.1 * torch.randn(512, generator=torch.Generator().manual_seed(2))
    x64, w64, dy64 = x.double(), w.double(), dy.double()
    rstd = (x64.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    with_one_term_too_many, dgamma, _ = torch.ops.aten.native_layer_norm_backward(
        dy64, x64, [512], 0 * rstd, rstd, w64, None, [True, True, False]
    )
    dx = with_one_term_too_many + rstd * (dy64 * w64).mean(-1, keepdim=True)

    leaf, gain = x64.clone().requires_grad_(), w64.clone().requires_grad_()
    expected = torch.autograd.grad(st.rms_norm(leaf, gain), (leaf, gain), dy64)
    assert (dx - expected[0]).abs().max() < 1e-12
    assert (dgamma - expected[1]).abs().max() < 1e-11
    assert (with_one_term_too_many - expected[0]).abs().max() > 0.1


def prove_training(cpu, large):
    """Prove claim 08-training."""
    training = timing.rows(cpu, "training", large)

    gain_training = ratio(training, "rms_builtin", "rms_module")
    assert gain_training[0] > 2
    say("training_gain", gain_training[1], ".1f")
    say("training_q1", gain_training[0], ".1f")
    say("training_q3", gain_training[2], ".1f")
    say("compile_gain", ratio(training, "rms_builtin", "rms_compile")[1], ".1f")


def prepare_sums(cpu, large):
    sums = {
        "forward": timing.rows(cpu, "add_norm", large),
        "forward and backward": timing.rows(cpu, "add_norm_training", large),
    }
    rows_shown, gains = [], []
    for name, rows in sums.items():
        replaced = ratio(rows, "rms_builtin", "rms_module")
        together = ratio(rows, "rms_module", "rms_compile")
        gains.append((replaced, together))
        cells = ("{1:.2f} [{0:.2f}, {2:.2f}]".format(*q) for q in (replaced, together))
        rows_shown.append([name, *cells])
    return sums, rows_shown, gains


def tabulate_the_sum_in_numbers_and_when_nobody_needs_it(rows_shown):
    table(
        [
            "sum and RMSNorm, times faster",
            "st.RMSNorm for F.rms_norm",
            "then one loop for the sum and the norm",
        ],
        rows_shown,
    )


def prove_sum_in_front(sums, gains):
    """Prove claim 08-sum-in-front."""
    forward_rows, both_rows = sums.values()
    for replaced, together in gains:
        assert replaced[0] > 1.3 * together[2]
        assert together[2] < 1.5
    say("fused_forward", ratio(forward_rows, "rms_module", "rms_compile")[1], ".2f")
    say("fused_both", ratio(both_rows, "rms_module", "rms_compile")[1], ".2f")
    say("limit_forward", 5 / 4, ".2f")
    say("limit_backward", 6 / 4, ".1f")
    say("limit_not_kept", 5 / 3, ".2f")


def by_halves(values):
    while values.shape[-1] > 1:
        half = values.shape[-1] // 2
        values = values[:, :half] + values[:, half:]
    return values[:, 0]


def prepare_exact():
    squares = np.random.default_rng(0).standard_normal((200, 4096)) ** 2
    squares = squares.astype(np.float32)
    exact = squares.sum(axis=-1, dtype=np.float64)

    sums_found = {
        "one after the other": np.cumsum(squares, axis=-1)[:, -1],
        "32 lanes, then their sum": by_halves(np.cumsum(squares.reshape(200, -1, 32), axis=1)[:, -1]),
        "by halves": by_halves(squares),
    }
    errors = {name: np.abs(found / exact - 1) for name, found in sums_found.items()}
    return exact, sums_found, errors


def draw_two_right_answers_that_differ(exact, errors):
    fig, ax = plt.subplots(figsize=(6.4, 2.5))
    spread_out = np.linspace(-0.3, 0.3, len(exact))
    for y, error in enumerate(errors.values()):
        ax.plot(np.maximum(error, 1e-10), y + spread_out, ".", markersize=4)
    ax.set(
        xscale="log",
        xlabel="relative error of a sum",
        yticks=range(len(errors)),
        yticklabels=errors,
    )
    ax.invert_yaxis()
    figures.show(
        fig,
        alt="The errors of 200 sums in each of three orders, on a logarithmic axis. The cloud of the sums one "
        "after the other is "
        "about one power of ten to the right of the other two, which overlap.",
    )


def prove_order_of_sums(errors, sums_found):
    """Prove claim 08-order-of-sums."""
    in_order, lanes, halves = (np.median(e) for e in errors.values())
    assert in_order > 5 * lanes
    assert lanes > halves
    say("order_over_lanes", in_order / lanes, ".0f")
    first, second, third = sums_found.values()
    for a, b in ((first, second), (first, third), (second, third)):
        assert (a != b).any()


def prepare_x32():
    generator = torch.Generator().manual_seed(3)
    x32 = 5 + torch.randn(256, 512, generator=generator)
    module = st.RMSNorm(512)
    versions = {
        "NumPy, plain": sn.rms_norm(x32.numpy()),
        "NumPy, in blocks": blocked.rms_norm(x32.numpy()),
        "PyTorch, by hand": st.rms_norm(x32).numpy(),
        "F.rms_norm": F.rms_norm(x32, (512,), eps=1e-5).numpy(),
        "st.RMSNorm": module(x32).detach().numpy(),
    }
    bitwise = [(versions["NumPy, plain"] == y).all() for y in versions.values()]
    print("largest error of each version: less than 4 roundings of float32")
    print("all versions equal to the last bit:", all(bitwise))
    return x32, versions, bitwise


def prove_all_right(x32, versions, bitwise):
    """Prove claim 08-all-right."""
    exact = sn.rms_norm(x32.double().numpy())
    spacing = np.finfo(np.float32).eps  # between 1 and the next number
    off = {name: np.abs(y - exact).max() / np.abs(exact).max() / spacing for name, y in versions.items()}
    assert max(off.values()) < 4
    assert not all(bitwise)


ROOF = 3350


def prove_above_the_roof():
    """Prove claim 08-above-the-roof."""
    published = [  # rows, features, seconds, 1e9 bytes a second, as printed
        (16384, 1024, 0.000042, 3195.660),
        (16384, 1024, 0.000030, 4473.924),
        (16384, 2048, 0.000051, 5263.440),
    ]
    rows_shown = []
    for count, features, seconds, printed in published:
        bytes_each = printed * 1e9 * seconds / (2 * count * features)
        float16 = 2 * count * features * 2 / seconds / 1e9
        rows_shown.append(
            [
                f"{count} × {features}",
                printed,
                f"{bytes_each:.2f}",
                f"{float16:.0f}",
            ]
        )
        assert abs(bytes_each - 4) < 0.01
        assert float16 < ROOF
    table(["shape", "printed", "bytes for each entry", "with 2 bytes"], rows_shown)
    return published


def prove_above_the_roof_2(published):
    """Prove claim 08-above-the-roof."""
    assert sum(printed > ROOF for *_, printed in published) == 2


def tabulate_the_same_count_on_a_gpu(PASSES, predicted, gpus):
    table(
        ["GPU", "GB/s", *(f"{name}, µs" for name in PASSES)],
        [
            [
                gpu.name,
                f"{gpu.bandwidth / 1e9:.0f} ({others.sources()[gpu.source]})",
                *(f"{1e6 * seconds:.1f}" for seconds in predicted[key]),
            ]
            for key, gpu in gpus.items()
        ],
    )


KINDS = {
    "large": ("o", figures.BLUE, "large array"),
    "chain": ("s", figures.PINK, "a chain, by its own count"),
    "small": ("^", figures.ORANGE, "small array"),
    "more": ("D", figures.GREY, "more timed than the norm"),
    "cache": ("v", figures.GREEN, "array still in the cache"),
}


def draw_the_same_count_on_a_gpu():
    rows_of_others = others.published()
    fig, ax = plt.subplots(figsize=(6.4, 4))
    ax.plot([4e-3, 4e3], [4e-3, 4e3], "--", color=figures.BLACK, linewidth=1)
    for kind, (mark, color, label) in KINDS.items():
        points = [(1e6 * row.predicted, 1e6 * row.seconds) for row in rows_of_others if row.group == kind]
        ax.plot(*zip(*points, strict=True), mark, color=color, label=label)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="predicted from bytes and bandwidth, µs",
        ylabel="published, µs",
        ylim=(3, 4000),
    )
    ax.legend(fontsize=9)
    figures.show(
        fig,
        alt="Published against predicted microseconds on logarithmic axes. From twenty microseconds on, the "
        "large arrays lie just "
        "above the dashed line of equal times, and so does the chain. The two small arrays lie above it, "
        "the single row far above "
        "at the left. One point lies below the line: an array that was still in the cache.",
    )
    return rows_of_others


def prove_published_forward(predicted, rows_of_others):
    """Prove claims 08-published-forward, 08-published-backward."""

    def ratios(group, forward=True, own=True):
        """Published over predicted: forward or backward, PyTorch's or others'."""
        return [
            row.ratio
            for row in rows_of_others
            if row.group == group and ("backward" not in row.table) == forward and (own or row.kernel != "PyTorch")
        ]

    every, tuned = ratios("large"), ratios("large", own=False)
    back = ratios("large", forward=False)
    assert 1.1 < min(every) < max(every) < 2
    assert max(tuned) < 1.7
    assert 1.2 < min(back) < max(back) < 6
    say("published_low", min(every), ".1f")
    say("published_high", max(every), ".1f")
    say("published_rows", len(every), ".0f")
    say("published_fast", np.median(tuned), ".1f")
    say("published_fast_high", max(tuned), ".1f")
    say("published_back_low", min(back), ".1f")
    say("published_back_high", max(back), ".1f")
    say("h100_least", 1e6 * predicted["H100"][0], ".0f")
    (liger,) = (
        row.ratio
        for row in rows_of_others
        if (row.group, row.table, row.norm) == ("large", "forward", "layer")
        and (row.kernel, row.device.name) == ("Liger", "H100 SXM")
    )
    say("liger_of_predicted", liger, ".2f")


def prove_published_not_bytes(rows_of_others):
    """Prove claim 08-published-not-bytes."""
    by_group = {}
    for row in rows_of_others:
        by_group.setdefault(row.group, []).append(row)
    (chain_row,), (warm,), (cold,) = (by_group[g] for g in ("chain", "cache", "flushed"))
    one_kernel = chain_row.seconds / chain_row.device.seconds("forward", "rms", chain_row.shape, chain_row.dtype)
    assert one_kernel > 10 > 2 > chain_row.ratio > 1
    say("chain_of_one_kernel", one_kernel, ".0f")
    say("chain_of_its_count", chain_row.ratio, ".1f")

    thousand, one_row = by_group["small"]
    assert thousand.ratio > 2
    assert one_row.ratio > 500
    assert one_row.seconds > 5e-6
    say("one_row_predicted", 1e9 * one_row.predicted, ".0f")
    say("one_row_published", 1e6 * one_row.seconds, ".0f")

    assert warm.ratio < 0.5 < 1 < cold.ratio < 1.5
    say("warm_ratio", warm.ratio, ".2f")
    say("cold_ratio", cold.ratio, ".2f")

    with_copy, labelled = by_group["more"]
    assert with_copy.ratio > 2.5
    assert labelled.ratio > 4
    say("copied_ratio", with_copy.ratio, ".1f")
    say("copied_with_copy", with_copy.ratio / 2, ".1f")
    say("labelled_ratio", labelled.ratio, ".1f")


NORM = {"layer": "LayerNorm", "rms": "RMSNorm"}


PASS = {
    "forward": "",
    "add_norm": "sum and ",
    "backward": "backward, ",
    "add_norm_backward": "backward, sum and ",
}


BITS = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}


def short(seconds):
    micro = 1e6 * seconds
    return f"{micro:.0f}" if micro >= 100 else f"{micro:.2g}"


def tabulate_the_same_count_on_a_gpu_2(gpus, rows_of_others):
    KEYS = {gpu.name: key for key, gpu in gpus.items()}

    table(
        [
            "by others",
            "GPU",
            "shape",
            "µs, predicted → published",
            "ratio",
            "source",
        ],
        [
            [
                f"{row.kernel}: {PASS[row.table]}{NORM[row.norm]}"
                + (f" ({row.group})" if row.group != "large" else ""),
                KEYS[row.device.name],
                f"{row.shape[0]} × {row.shape[1]}, {BITS[row.dtype]}",
                f"{short(row.predicted)} → {short(row.seconds)}",
                f"{row.ratio:.2f}" if row.ratio < 10 else f"{row.ratio:.0f}",
                others.sources()[row.source],
            ]
            for row in rows_of_others
        ],
    )


def tabulate_our_kernels_on_a_gpu(records):
    for record in records.values():  # of readers' devices
        print(timing.table(record), "\n")
    if not any(r["device"]["kind"] == "cuda" for r in records.values()):
        print("Not yet measured on a GPU: the package has no GPU record.")


RECORD = "record:subnorm/timing/records/cpu-*.json"


def count_of(moved_arrays):
    return f"{moved_arrays:.0f}", f"{moved_arrays / 2:.1f}"


def tabulate_what_each_rmsnorm_moves_and_how_long_it_takes(copies, arrays, moved, x):
    def mark(*claim):
        return f"<!-- claim: {' '.join(claim)} -->"

    fast = st.RMSNorm(512).requires_grad_(False)

    def in_copies(key):
        return f"{np.median(copies[key]):.1f}"

    table(
        [
            "RMSNorm, forward",
            "arrays moved",
            "in copies",
            "time in copies",
            "claim",
        ],
        [
            [
                "by hand",
                *count_of(arrays["RMSNorm, by hand"][0]),
                in_copies("rms_hand"),
                mark("08-t-hand", "claim:08-a-chain"),
            ],
            [
                "F.rms_norm",
                *count_of(arrays["F.rms_norm"][0]),
                in_copies("rms_builtin"),
                mark("08-t-builtin", "claim:08-bytes-predict"),
            ],
            [
                "st.RMSNorm",
                *count_of(moved(timing.operations(lambda: fast(x)))),
                in_copies("rms_module"),
                mark("08-t-module", RECORD),
            ],
            [
                "Numba, one loop",
                *count_of(2),
                in_copies("rms_numba"),
                mark("08-t-numba", RECORD),
            ],
        ],
    )


def prove_t_module(copies):
    """Prove claims 08-t-module, 08-t-numba."""
    assert np.quantile(copies["rms_hand"] / copies["rms_module"], 0.1) > 1.2
    assert np.quantile(copies["rms_module"] / copies["rms_numba"], 0.1) > 1


def percent(share):
    return f"{100 * share:.1f} %"


def tabulate_in_a_trained_model(counted):
    record = norm_share.recorded()

    def spread(rows):
        q1, q2, q3 = (f"{100 * q:.1f}" for q in quartiles(rows))
        return f"{q2} % [{q1}, {q3}]"

    table(
        ["the norms' share", *("one token", "120 tokens")],
        [
            ["of the bytes", *(percent(each[0]) for each in counted.values())],
            ["of the operations", *(percent(e[1]) for e in counted.values())],
            *(
                [f"of {name}'s time", *(spread(s[name]) for s in shares)]
                for shares in [record["shares"].values()]
                for name in ("PyTorch", "NumPy")
            ),
        ],
    )
    return record, spread


def check_in_a_trained_model(record):
    say("share_load", record["load"], ".0f")


def prove_trained_one_token(record, counted):
    """Prove claims 08-trained-one-token, 08-trained-prompt."""
    one, prompt = record["shares"].values()
    assert counted[1][0] < 0.03 < 0.05 < counted[120][0] < 0.1
    for name in ("PyTorch", "NumPy"):
        assert np.quantile(one[name], 0.1) > 3 * counted[1][0]
        assert counted[120][0] / 3 < np.median(prompt[name])
        assert np.quantile(prompt[name], 0.9) < counted[120][0]
    say("share_bytes_one", 100 * counted[1][0], ".1f")
    say("share_bytes_prompt", 100 * counted[120][0], ".0f")
    say("share_calls", 100 * counted[1][1], ".0f")
    for name in ("PyTorch", "NumPy"):
        for length, found in (("one", one), ("prompt", prompt)):
            share = 100 * np.median(found[name])
            say(f"share_{name.lower()}_{length}", share, ".2g", noise=0)
