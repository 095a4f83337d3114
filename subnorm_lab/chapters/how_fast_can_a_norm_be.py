"""Figures and proofs of chapter 08, How fast can a norm be?."""

import itertools
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm import timing
from subnorm.numpy import blocked
from subnorm_lab import figures, live
from subnorm_lab.chapters import begin as begin
from subnorm_lab.experiments import kernel_lines, norm_share, published_times, traffic
from subnorm_lab.report import claimed_table, say, table

OURS = "AMD EPYC"
LARGE = (4096, 4096)


@cache
def records():
    return {record["device"]["name"]: record for record in timing.read_records()}


def cpu():
    """The record that this chapter quotes."""
    return records()[OURS]


def large_rows(name="forward"):
    """The rows of a table of the record, on large arrays."""
    return timing.rows(cpu(), name, LARGE)


def copies(key):
    """The times of a version, in copies, by round."""
    rows = large_rows()
    return np.array(rows[key].rounds) / np.array(rows[rows[key].copy].rounds)


RUNNERS = {"layer_builtin": "LayerNorm in one kernel", "layer_hand": "LayerNorm by hand"}


def crossings(key):
    """The arrays of the size of x that a timed version moves, in order: "read", or "written"."""
    shape = (16, 1024)  # the vectors, and a number a row, are little beside x
    inputs = timing.Inputs.draw(shape, torch.float32, "cpu", tracked=False)
    call = timing.build_cases("forward", inputs, ["hand", "builtin"])[key].prepare()
    arrays = [round(operation.bytes / inputs.x.nbytes) for operation in traffic.operations(call)]
    return [way for count in arrays for way in ("read", "written")[:count]]  # a mean writes a number a row


def draw_crossings():
    ways = {key: crossings(key) for key in RUNNERS}
    slower = ratio(large_rows(), "layer_hand", "layer_builtin")[1]

    def journeys(ways, passed):
        """A line for each array on its way; the lines of those to come have no length yet."""
        lines = {"read": ([], []), "written": ([], [])}
        for k, way in enumerate(ways):
            x, y = lines[way]
            x += [k, k + (k < passed), np.nan]
            y += [way == "written", (way == "read") == (k < passed), np.nan]
        return lines

    def frame(passed):
        kernel, hand = (min(passed, len(found)) for found in ways.values())
        says = f"One kernel has moved {kernel} of its {len(ways['layer_builtin'])} arrays, the program by hand {hand} "
        says += f"of {len(ways['layer_hand'])}. It takes {slower:.1f} times as long on our CPU."
        return says, [journeys(found, passed) for found in ways.values()]

    most = max(map(len, ways.values()))
    axis = live.Axis("arrays moved", limits=(0, most))
    look = {
        "read": live.Curve("read from memory", figures.BLUE),
        "written": live.Curve("written to memory", figures.ORANGE, "--"),
    }
    places = {0: "memory", 1: "processor"}
    live.chart(
        "crossings",
        "Every whole array that travels between memory and the processor",
        [live.slider("passed", "arrays moved", range(most + 1), most, play=True)],
        [live.Lines(axis, live.Axis(name, limits=(0, 1), ticks=places), look, 150) for name in RUNNERS.values()],
        frame,
        alt="Two panels, in which each line is an array on its way between memory and the processor. LayerNorm in one "
        "kernel has two lines: x comes in, y goes out. LayerNorm by hand has twelve, all along the axis.",
    )


def batch():
    """x and dy, (256, 512), gamma and beta."""
    x, dy = (torch.randn(256, 512, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    return x, dy, torch.ones(512), torch.zeros(512)


def moved(operations):
    """In arrays of the size of x."""
    return sum(operation.bytes for operation in operations) / batch()[0].nbytes


@cache
def counts(layer_norm):
    """The operations of four norms, forward, and backward through autograd's graph."""
    x, dy, gamma, beta = batch()
    norms = {
        "LayerNorm, by hand": layer_norm,
        "RMSNorm, by hand": lambda x, g, b: st.rms_norm(x, g),
        "F.layer_norm": lambda x, g, b: F.layer_norm(x, (512,), g, b),
        "F.rms_norm": lambda x, g, b: F.rms_norm(x, (512,), g, 1e-5),
    }

    def count(norm):
        leaves = [t.clone().requires_grad_() for t in (x, gamma, beta)]
        y = norm(*leaves)
        return traffic.operations(lambda: norm(x, gamma, beta)), traffic.operations(
            lambda: torch.autograd.grad(y, leaves, dy, allow_unused=True)
        )

    return {name: count(norm) for name, norm in norms.items()}


def arrays_moved(layer_norm):
    """Forward and backward, by norm."""
    return {name: [moved(ops) for ops in both] for name, both in counts(layer_norm).items()}


def draw_arrays(layer_norm):
    arrays = arrays_moved(layer_norm)

    def trips(backward):
        """The arrays that each version moves; the last row is the least."""
        least = 3 if backward else 2
        rows = [("", name, both[backward], False) for name, both in arrays.items()]
        rows.append(("", "the least", least, True))
        slow, fast = (f"{arrays[name][backward]:.0f}" for name in ("LayerNorm, by hand", "F.layer_norm"))
        return (
            f"The same LayerNorm moves {slow} arrays by hand, and {fast} built in.",
            [rows],
        )

    live.chart(
        "arrays",
        "What each version reads and writes",
        [live.choice("backward", "pass", {"forward": False, "backward": True}, True)],
        [
            live.Bars(
                "arrays moved",
                len(arrays) + 1,
                max(max(a) for a in arrays.values()),
            )
        ],
        trips,
        alt="Five bars: the arrays moved backward. LayerNorm by hand moves most, RMSNorm by hand and the built-in "
        "RMSNorm about three quarters as many, the built-in LayerNorm as few as the least, three.",
    )


def prove_one_kernel(layer_norm):
    """Prove claims 08-one-kernel, 08-a-chain."""
    arrays = arrays_moved(layer_norm)
    for name in ("LayerNorm, by hand", "RMSNorm, by hand", "F.rms_norm"):
        assert arrays[name][0] > 6
        assert arrays[name][1] > 20
    assert [len(operations) for operations in counts(layer_norm)["F.layer_norm"]] == [1, 1]
    assert np.allclose(arrays["F.layer_norm"], [2, 3], atol=0.1, rtol=0)

    by_hand, built_in = arrays["LayerNorm, by hand"], arrays["F.rms_norm"]
    say("layer_by_hand_forward", by_hand[0], ".0f")
    say("layer_by_hand_backward", by_hand[1], ".0f")
    say("rms_built_in_forward", built_in[0], ".0f")
    say("rms_built_in_backward", built_in[1], ".0f")
    x, _, gamma, beta = batch()
    ours = traffic.operations(lambda: st.layer_norm(x, gamma, beta))
    say("layer_of_subnorm", moved(ours), ".0f")


def prove_few_operations():
    """Prove claim 08-few-operations."""
    num_rows, d = LARGE
    array = 4 * num_rows * d  # bytes of one float32 array of this shape
    norm = 7 * num_rows * d / (2 * array)
    product = 2 * num_rows * d * d / (3 * array)
    assert norm < 1 < 500 < product
    assert 1 < 2 * norm < 2  # half the bytes in bfloat16
    say("megabytes", array / 1e6, ".0f")


def tabulate_operations(layer_norm):
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
            for name, (forward, backward) in counts(layer_norm).items()
        ],
    )


def amount(line):
    if line.bytes is None:
        return "left out"
    if not line.moves:
        return ""
    return f"{line.bytes / 1e6:.1f} MB" if line.bytes > 1e6 else f"{line.bytes / 1e3:.0f} kB"


def lines_of(calls):
    return [kernel_lines.lines("_forward", arrays, *LARGE) for arrays in calls]


def show_kernel(calls):
    print("LayerNorm  sum, RMSNorm")
    for one, two in zip(*lines_of(calls), strict=True):
        columns = f"{amount(one):>9}{amount(two):>14}"
        print(f"{columns}    {'    ' * one.depth}{one.code}")


def prove_kernel_lines(calls):
    """Prove claim 08-kernel-lines."""
    listed = lines_of(calls)
    counted = [sum(line.bytes or 0 for line in lines) for lines in listed]
    must = [
        timing.TABLES[name].bytes(norm, LARGE, torch.bfloat16)
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


def passes_of(layer_norm):
    """What each moves, in copies: counted, or the least where it is one loop."""
    arrays, passes = arrays_moved(layer_norm), {}
    for kind, name in [("layer", "LayerNorm"), ("rms", "RMSNorm")]:
        passes[f"{kind}_hand"] = arrays[f"{name}, by hand"][0] / 2
        passes[f"{kind}_builtin"] = arrays[f"F.{kind}_norm"][0] / 2
        passes[f"{kind}_compile"] = passes[f"{kind}_numba"] = 1
    return passes


NAMES = {
    "hand": "by hand",
    "builtin": "built in",
    "compile": "torch.compile",
    "numba": "Numba",
}


def draw_bytes_and_seconds(layer_norm):
    passes = passes_of(layer_norm)
    fig, ax = plt.subplots(figsize=(6.4, 3.4))
    rows = [(kind, how) for kind in NORM for how in NAMES]
    for y, (kind, how) in enumerate(rows):
        key, color = f"{kind}_{how}", figures.LOOKS[kind]["color"]
        q1, q2, q3 = quartiles(copies(key))
        ax.plot([q1, q3], [y, y], color=color, linewidth=4, alpha=0.5)
        ax.plot(q2, y, "o" if kind == "layer" else "s", color=color, markersize=8)
        ax.plot(passes[key], y, "|", color=figures.BLACK, markersize=18, markeredgewidth=2)
    figures.name(ax, "predicted\nfrom its bytes", (passes["layer_hand"], 0), shift=(0, -24), point_out=True)
    figures.name(ax, "measured", (np.median(copies("layer_hand")), 0), figures.BLUE, (-8, 0))
    worst = f"{worst_prediction(layer_norm):.1f}"
    figures.title(fig, f"On this CPU, bytes predict time to a factor of {worst}")
    ax.set(xlabel="time, in copies")
    ax.set(xlim=(0, 6.6), xticks=(0, 1, 2, 4, 6))
    medians = [quartiles(copies(f"{kind}_{how}"))[1] for kind, how in rows]
    figures.rows(ax, [f"{NORM[kind]}, {NAMES[how]}" for kind, how in rows], medians)
    figures.show(
        fig,
        alt="Eight versions of two norms, one below the other, with the time of each in copies, and a line where its "
        "bytes predict it. LayerNorm by hand is far to the right, just before its line; the built-in RMSNorm and "
        "the one by hand are in the middle, just before theirs. All others are at one copy, on theirs.",
    )
    print(timing.heading(cpu()))


def worst_prediction(layer_norm):
    """The largest factor between a measured and a predicted time."""
    off = {key: np.median(copies(key)) / count for key, count in passes_of(layer_norm).items()}
    return max(max(off.values()), 1 / min(off.values()))


def prove_bytes_predict(layer_norm):
    """Prove claims 08-bytes-predict, 08-not-the-root."""
    worst = worst_prediction(layer_norm)
    assert worst < 1.8
    for kind in ("layer", "rms"):
        chain, kernel = copies(f"{kind}_hand"), copies(f"{kind}_numba")
        assert np.quantile(chain / kernel, 0.1) > 2
    assert np.quantile(copies("rms_hand") / copies("layer_builtin"), 0.1) > 1.5
    say("worst_prediction", worst, ".1f")
    say("layer_hand_of_copy", np.median(copies("layer_hand")), ".1f")
    say("layer_of_copy", np.median(copies("layer_builtin")), ".1f")
    say("rms_hand_of_copy", np.median(copies("rms_hand")), ".1f")


def speeds(name, key):
    """Bytes that must move, and 1e9 bytes a second: three quartiles, (3, sizes)."""
    rows = [timing.rows(cpu(), name, s)[key] for s in timing.shapes(cpu(), name)]
    moved = np.array([row.bytes for row in rows])
    seconds = [[row.seconds[q] for row in rows] for q in ("q1", "median", "q3")]
    return moved, moved / np.array(seconds) / 1e9


def draw_copy_speed():
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


TABLES = {
    "forward": "forward",
    "forward and backward": "training",
    "sum and norm, both ways": "add_norm_training",
}


def draw_speeds():
    CURVES = {
        "copy": live.Curve("a copy", figures.BLACK, ":", marks="too"),
        "numba": live.Curve("Numba", figures.ORANGE, "-.", marks="too"),
        "module": live.Curve("subnorm's module", figures.GREEN, marks="too"),
        "compile": live.Curve("torch.compile", figures.PINK, "-", marks="too"),
        "builtin": live.Curve("built in", figures.BLUE, "--", marks="too"),
        "hand": live.Curve("by hand", figures.GREY, ":", marks="too"),
    }

    def frame(kind, name):
        known = large_rows(name)
        drawn = {
            how: speeds(name, key) for how in CURVES if (key := "copy" if how == "copy" else f"{kind}_{how}") in known
        }
        last = {how: speed[1, -1] for how, (_moved, speed) in drawn.items()}
        words = ", ".join(f"{CURVES[how].label} {v:.2g}" for how, v in last.items())
        return f"Speeds on the largest array, in GB/s: {words}.", [drawn]

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


def prove_three_regimes():
    """Prove claim 08-three-regimes."""
    slow, speed, fast = speeds("forward", "copy")[1][::-1]  # quartiles, (sizes,)
    middle = speed.argmax()
    assert 0 < middle < len(speed) - 1
    assert slow[middle] > 1.5 * fast[0]
    assert slow[middle] > 1.5 * fast[-1]
    smallest, next_size = timing.shapes(cpu(), "forward")[:2]
    assert next_size[0] == 16 * smallest[0]
    time_at = {
        shape: np.array(timing.rows(cpu(), "forward", shape)["rms_builtin"].rounds) for shape in (smallest, next_size)
    }
    growth = time_at[next_size] / time_at[smallest]
    assert growth.max() < 4
    say("small_growth", np.median(growth), ".0f")
    say("cache_over_memory", speed[middle] / speed[-1], ".0f")

    one_row = timing.rows(cpu(), "forward", (1, LARGE[1]))["rms_builtin"]
    say("small_microseconds", 1e6 * one_row.seconds["median"], ".0f")
    say("small_copies", 1 / one_row.share["median"], ".0f")


def copy_times():
    """Into a new array, a new one with larger pages, and an old one, by round."""
    rows = large_rows()
    return (np.array(rows[key].rounds) for key in ("copy", "copy_numpy", "copy_out"))


def tabulate_new_memory():
    new, larger_pages, old = copy_times()
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


def prove_new_memory():
    """Prove claim 08-new-memory."""
    new, _, old = copy_times()
    assert np.quantile(new / old, 0.1) > 1.3
    say("new_over_old", np.median(new / old), ".1f")


def tabulate_blocks():
    rows = []
    for kind, name in [("layer", "LayerNorm"), ("rms", "RMSNorm")]:
        gains = [ratio(large_rows(), f"{kind}_numpy", f"{kind}_{how}") for how in ("blocked", "blocked_out")]
        rows.append([name, *("{1:.1f} [{0:.1f}, {2:.1f}]".format(*gain) for gain in gains)])
    table(["NumPy, times faster than plain", "in blocks", "and into an old array"], rows)


def prove_blocks():
    """Prove claim 08-blocks."""
    for kind in ("layer", "rms"):
        gain, out = (ratio(large_rows(), f"{kind}_numpy", f"{kind}_{how}") for how in ("blocked", "blocked_out"))
        assert min(gain[0], out[0]) > 1.3
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


ONE_LOOP = ("compile", "numba")


def rms_over_layer():
    """The time of RMSNorm over that of LayerNorm, by way: quartiles."""
    return {how: ratio(large_rows(), f"rms_{how}", f"layer_{how}") for how in WAYS}


def draw_without_the_mean():
    fig, ax = plt.subplots(figsize=(6.4, 2.9))
    ax.axvline(1, color=figures.BLACK, linestyle="--", linewidth=1)
    for y, (how, (q1, q2, q3)) in enumerate(rms_over_layer().items()):
        color = figures.ORANGE if how in ONE_LOOP else figures.GREY
        ax.plot([q1, q3], [y, y], color=color, linewidth=4, alpha=0.5)
        ax.plot(q2, y, "o", color=color, markersize=8)
        figures.name(ax, f"{q2:.2f}", (3.2, y), color)  # in one column, where no mark is
    figures.name(ax, "LayerNorm's", (1, -0.5), shift=(4, -1))
    nearly = min(rms_over_layer()[how][1] for how in ONE_LOOP) > 0.9
    figures.title(fig, "On this CPU, in one loop, RMSNorm takes nearly as long", nearly)
    ax.set(xlabel="time of RMSNorm, over LayerNorm's")
    ax.set(xlim=(0, 3.2), xticks=(0, 1, 2, 3))
    figures.rows(ax, list(WAYS.values()), [median for _, median, _ in rms_over_layer().values()])
    figures.show(
        fig,
        alt="The time of RMSNorm over that of LayerNorm for six versions, with a dashed line at 1. In plain "
        "NumPy and by hand the marks are at about six tenths, built into PyTorch at 3, in blocks below six tenths. "
        "The two versions in one loop, in orange, are just below 1.",
    )


def prove_mean():
    """Prove claims 08-mean, 08-mean-bytes."""
    rows, times = large_rows(), rms_over_layer()
    fewer_bytes = rows["rms_hand"].bytes / rows["layer_hand"].bytes
    say("mean_bytes", fewer_bytes, ".4f")
    for how in ("hand", "builtin", "compile", "numba"):
        say(f"mean_{how}", times[how][1], ".2f")
    assert 0.999 < fewer_bytes < 1
    assert times["hand"][2] < 0.8
    assert times["builtin"][0] > 1.5
    assert all(0.8 < times[how][1] < 1.05 for how in ONE_LOOP)


def tabulate_without_the_mean():
    times = rms_over_layer()
    table(
        ["version", "time, RMSNorm over LayerNorm"],
        [[name, "{1:.2f} [{0:.2f}, {2:.2f}]".format(*times[how])] for how, name in WAYS.items()],
    )


def prove_borrowed_kernel():
    """Prove claim 08-borrowed-kernel."""
    x, dy, *_ = batch()
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


def prove_training():
    """Prove claim 08-training."""
    training = large_rows("training")
    gain_training = ratio(training, "rms_builtin", "rms_module")
    assert gain_training[0] > 2
    say("training_gain", gain_training[1], ".1f")
    say("training_q1", gain_training[0], ".1f")
    say("training_q3", gain_training[2], ".1f")
    say("compile_gain", ratio(training, "rms_builtin", "rms_compile")[1], ".1f")


SUMS = {"forward": "add_norm", "forward and backward": "add_norm_training"}


def sum_gains():
    """How many times faster: a fused norm than the chain, and then one loop for sum and norm; quartiles."""
    found = {}
    for name, key in SUMS.items():
        rows = large_rows(key)
        found[name] = ratio(rows, "rms_builtin", "rms_module"), ratio(rows, "rms_module", "rms_compile")
    return found


def tabulate_sum_in_front():
    table(
        [
            "sum and RMSNorm, times faster",
            "st.RMSNorm for F.rms_norm",
            "then one loop for the sum and the norm",
        ],
        [[name, *("{1:.2f} [{0:.2f}, {2:.2f}]".format(*q) for q in both)] for name, both in sum_gains().items()],
    )


def prove_sum_in_front():
    """Prove claim 08-sum-in-front."""
    gains = sum_gains()
    for replaced, together in gains.values():
        assert replaced[0] > 1.3 * together[2]
        assert together[2] < 1.5
    say("fused_forward", gains["forward"][1][1], ".2f")
    say("fused_both", gains["forward and backward"][1][1], ".2f")
    say("limit_forward", 5 / 4, ".2f")
    say("limit_backward", 6 / 4, ".1f")
    say("limit_not_kept", 5 / 3, ".2f")


def by_halves(values):
    while values.shape[-1] > 1:
        half = values.shape[-1] // 2
        values = values[:, :half] + values[:, half:]
    return values[:, 0]


@cache
def orders_of_sums():
    """The sums of 200 rows in three orders, and their relative errors, (200,) each."""
    squares = np.random.default_rng(0).standard_normal((200, 4096)) ** 2
    squares = squares.astype(np.float32)
    exact = squares.sum(axis=-1, dtype=np.float64)

    sums = {
        "one after the other": np.cumsum(squares, axis=-1)[:, -1],
        "32 lanes, then their sum": by_halves(np.cumsum(squares.reshape(200, -1, 32), axis=1)[:, -1]),
        "by halves": by_halves(squares),
    }
    return sums, {name: np.abs(found / exact - 1) for name, found in sums.items()}


def draw_orders_of_sums():
    _, errors = orders_of_sums()
    fig, ax = plt.subplots(figsize=(6.4, 2.9))
    spread_out = np.linspace(-0.3, 0.3, 200)
    for y, error in enumerate(errors.values()):
        color = figures.GREY if y else figures.ORANGE
        ax.plot(np.maximum(error, 1e-10), y + spread_out, ".", color=color, markersize=4, alpha=0.6)
        ax.plot(2 * [np.median(error)], [y - 0.35, y + 0.35], color=figures.BLACK, linewidth=2)
    in_order, lanes, _ = (np.median(error) for error in errors.values())
    figures.name(ax, "median", (in_order, -0.35), shift=(0, 2))
    figures.title(fig, f"One after the other: {in_order / lanes:.0f} times the median error of 32 lanes")
    ax.set(xscale="log")
    ax.set(xlabel="relative error of a sum")
    figures.rows(ax, list(errors))
    ax.set_ylim(2.5, -0.85)
    figures.show(
        fig,
        alt="The errors of 200 sums in each of three orders, on a logarithmic axis. The cloud of the sums one "
        "after the other, in orange, is about one power of ten to the right of the other two, which overlap. A stroke "
        "marks the median of each.",
    )


def prove_order_of_sums():
    """Prove claim 08-order-of-sums."""
    sums, errors = orders_of_sums()
    in_order, lanes, halves = (np.median(e) for e in errors.values())
    assert in_order > 5 * lanes
    assert lanes > halves
    say("order_over_lanes", in_order / lanes, ".0f")
    first, second, third = sums.values()
    for a, b in ((first, second), (first, third), (second, third)):
        assert (a != b).any()


def versions_of_rms_norm():
    """x in float32, and five versions of its RMSNorm, (256, 512) each."""
    x32 = 5 + torch.randn(256, 512, generator=torch.Generator().manual_seed(3))
    return x32, {
        "NumPy, plain": sn.rms_norm(x32.numpy()),
        "NumPy, in blocks": blocked.rms_norm(x32.numpy()),
        "PyTorch, by hand": st.rms_norm(x32).numpy(),
        "F.rms_norm": F.rms_norm(x32, (512,), eps=1e-5).numpy(),
        "st.RMSNorm": st.RMSNorm(512)(x32).detach().numpy(),
    }


def all_equal(versions):
    first, *others = versions.values()
    return all((first == y).all() for y in others)


def roundings_off(x32, versions):
    """The largest error of a version, in roundings of float32."""
    exact = sn.rms_norm(x32.double().numpy())
    spacing = np.finfo(np.float32).eps  # between 1 and the next number
    return max(np.abs(y - exact).max() / np.abs(exact).max() / spacing for y in versions.values())


def show_versions():
    x32, versions = versions_of_rms_norm()
    fewer = "less" if roundings_off(x32, versions) < 4 else "not less"
    print(f"largest error of each version: {fewer} than 4 roundings of float32")
    print("all versions equal to the last bit:", all_equal(versions))


def prove_all_right():
    """Prove claim 08-all-right."""
    x32, versions = versions_of_rms_norm()
    assert roundings_off(x32, versions) < 4
    assert not all_equal(versions)


ROOF = 3350


def prove_above_the_roof():
    """Prove claim 08-above-the-roof."""
    published = [  # rows, features, seconds, 1e9 bytes a second, as printed
        (16384, 1024, 0.000042, 3195.660),
        (16384, 1024, 0.000030, 4473.924),
        (16384, 2048, 0.000051, 5263.440),
    ]
    for count, features, seconds, printed in published:
        numbers = 2 * count * features
        assert abs(printed * 1e9 * seconds / numbers - 4) < 0.01
        assert 2 * numbers / seconds / 1e9 < ROOF
    assert sum(printed > ROOF for *_, printed in published) == 2


def tabulate_predictions(PASSES, predicted, gpus):
    table(
        ["GPU", "GB/s", *(f"{name}, µs" for name in PASSES)],
        [
            [
                gpu.name,
                f"{gpu.bandwidth / 1e9:.0f} ({published_times.sources()[gpu.source]})",
                *(f"{1e6 * seconds:.1f}" for seconds in predicted[key]),
            ]
            for key, gpu in gpus.items()
        ],
    )


KINDS = {
    "large": ("o", figures.BLUE, "large arrays", (-70, 10)),
    "chain": ("s", figures.PINK, "a chain, by its own count", (-8, 5)),
    "small": ("^", figures.ORANGE, "small arrays", (-10, 4)),
    "more": ("D", figures.GREY, "more timed\nthan the norm", (-10, 0)),
    "cache": ("v", figures.GREEN, "array still\nin the cache", (8, 0)),
}


def draw_published():
    fig, ax = plt.subplots(figsize=(6.4, 4))
    ax.plot([4e-3, 4e3], [4e-3, 4e3], "--", color=figures.BLACK, linewidth=1)
    for kind, (mark, color, words, shift) in KINDS.items():
        points = [
            (1e6 * row.predicted, 1e6 * row.seconds) for row in published_times.measurements() if row.group == kind
        ]
        ax.plot(*zip(*points, strict=True), mark, color=color)
        figures.name(ax, words, points[0], color, shift)
    figures.name(ax, "as predicted", (4, 4), shift=(8, 0))
    outside = [row for row in published_times.measurements() if row.group in KINDS and row.group != "cache"]
    slower = all(row.seconds > row.predicted for row in outside)
    figures.title(fig, "Outside the cache, none of these takes less than its bytes predict", slower)
    ax.set(xscale="log", yscale="log", ylim=(3, 4000))
    ax.set(xlabel="predicted from bytes and bandwidth, µs", ylabel="published, µs", xticks=10.0 ** np.arange(-2, 4))
    figures.show(
        fig,
        alt="Published against predicted microseconds on logarithmic axes. From twenty microseconds on, the "
        "large arrays lie just "
        "above the dashed line of equal times, and so does the chain. The two small arrays lie above it, "
        "the single row far above "
        "at the left. One point lies below the line: an array that was still in the cache.",
    )


def prove_published_forward():
    """Prove claims 08-published-forward, 08-published-backward."""

    def ratios(group, forward=True, own=True):
        """Published over predicted: forward or backward, PyTorch's or others'."""
        return [
            row.ratio
            for row in published_times.measurements()
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
    h100 = published_times.devices()["H100"].seconds("forward", "rms", LARGE, torch.bfloat16)
    say("h100_least", 1e6 * h100, ".0f")
    (liger,) = (
        row.ratio
        for row in published_times.measurements()
        if (row.group, row.table, row.norm) == ("large", "forward", "layer")
        and (row.kernel, row.device.name) == ("Liger", "H100 SXM")
    )
    say("liger_of_predicted", liger, ".2f")


def prove_published_not_bytes():
    """Prove claim 08-published-not-bytes."""
    by_group = {}
    for row in published_times.measurements():
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


def tabulate_published():
    KEYS = {gpu.name: key for key, gpu in published_times.devices().items()}

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
                published_times.sources()[row.source],
            ]
            for row in published_times.measurements()
        ],
    )


GPUS = {"H200": "NVIDIA H200", "H100": "NVIDIA H100 80GB HBM3"}
MIDDLE, LARGEST = (16384, 4096), (16384, 16384)


def gpu_rounds(gpu, name, shape=LARGEST):
    """Rounds on a recorded GPU, in copies."""
    rows = timing.rows(records()[GPUS[gpu]], name, shape)
    return {key: np.array(row.rounds) / np.array(rows[row.copy].rounds) for key, row in rows.items() if row.rounds}


def tabulate_gpus():
    for gpu in GPUS.values():
        print(timing.heading(records()[gpu]))
    passes = {
        "forward": "forward",
        "add_norm": "sum and norm",
        "backward": "backward",
        "add_norm_backward": "backward of sum and norm",
    }
    found = {(gpu, name): gpu_rounds(gpu, name) for gpu in GPUS for name in passes}

    def median(gpu, name, key):
        if key not in found[gpu, name]:
            return "–"
        copies = np.median(found[gpu, name][key])
        return f"{copies:.1f}" if copies > 10 else f"{copies:.2f}"

    table(
        ["copies: H200, H100", *passes.values()],
        [
            [
                timing.LABELS[key],
                *(",\N{NO-BREAK SPACE}".join(median(gpu, name, key) for gpu in GPUS) for name in passes),
            ]
            for norm in ("rms", "layer")
            for key in (f"{norm}_{rival}" for rival in ("hand", "builtin", "compile", "liger", "quack", "triton"))
        ],
    )


def prove_gpu_kernels():
    """Prove claims 08-gpu-kernels, 08-gpu-sum, 08-gpu-backward, 08-gpu-call, 08-gpu-middle."""
    forward, both, back = ([gpu_rounds(gpu, name) for gpu in GPUS] for name in ("forward", "add_norm", "backward"))

    def medians(tables, *keys):
        return [np.median(rounds[key]) for rounds in tables for key in keys]

    for rounds in forward:
        assert max(rounds["rms_triton"]) < 1.05
        assert max(rounds["layer_triton"]) < 1.15
        assert min(*rounds["rms_builtin"], *rounds["layer_builtin"]) > 1.5
    for end, rounds in zip(["", "_h100"], forward, strict=True):
        say(f"gpu_rms_kernel{end}", np.median(rounds["rms_triton"]), ".2f")
        say(f"gpu_layer_kernel{end}", np.median(rounds["layer_triton"]), ".2f")
    say("gpu_compiled", max(medians(forward, "rms_compile", "layer_compile")), ".2f")
    say("gpu_builtin_low", min(medians(forward, "rms_builtin", "layer_builtin")), ".1f")
    say("gpu_builtin_high", max(medians(forward, "rms_builtin", "layer_builtin")), ".1f")
    quack, narrower = forward[1], gpu_rounds("H100", "forward", MIDDLE)["layer_quack"]
    assert max(quack["rms_quack"]) < 1.05
    assert min(quack["layer_quack"]) > 10 * max(narrower)
    say("gpu_quack_middle", np.median(narrower), ".1f")
    say("gpu_quack_largest", np.median(quack["layer_quack"]), ".1f")

    assert max(max(rounds["rms_triton"]) for rounds in both) < 1.05
    say("gpu_sum_kernel", max(medians(both, "rms_triton")), ".1f")
    say("gpu_sum_builtin", min(medians(both, "rms_builtin")), ".1f")

    for rounds in back:
        kernels = [f"rms_{key}" for key in ("triton", "liger", "compile", "builtin")]
        assert all(max(rounds[first]) < min(rounds[then]) for first, then in itertools.pairwise(kernels))
        others = {key for key in rounds if key.startswith("layer_")} - {"layer_triton", "layer_hand"}
        assert min(rounds["layer_triton"]) > max(max(rounds[key]) for key in others)
    say("gpu_back_rms_kernel", np.median(back[0]["rms_triton"]), ".1f")
    say("gpu_back_rms_kernel_h100", np.median(back[1]["rms_triton"]), ".1f")
    say("gpu_back_builtin", min(medians(back, "rms_builtin", "layer_builtin")), ".1f")
    say("gpu_back_layer_kernel", min(medians(back, "layer_triton")), ".1f")
    say("gpu_back_layer_quack", np.median(back[1]["layer_quack"]), ".1f")

    middle = gpu_rounds("H200", "forward", MIDDLE)["layer_triton"]
    assert np.median(middle) < 1.1
    assert max(middle) > 1.5
    say("gpu_middle", np.median(middle), ".1f")
    say("gpu_middle_worst", max(middle), ".1f")

    calls = [timing.rows(records()[gpu], "host", (1, 4096)) for gpu in GPUS.values()]
    micro = {
        key: sorted(1e6 * np.median(rows[f"rms_{key}"].rounds) for rows in calls)
        for key in ("builtin", "compile", "triton")
    }
    small, small_h100 = (gpu_rounds(gpu, "forward", (4096, 1024)) for gpu in GPUS)
    assert micro["builtin"][1] < micro["compile"][0] < micro["compile"][1] < micro["triton"][0]
    assert min(small["rms_triton"]) > 5 * max(small["rms_builtin"])
    assert min(small_h100["rms_triton"]) > max(small_h100["rms_builtin"])
    for key, name in (("builtin", "builtin"), ("compile", "compiled"), ("triton", "kernel")):
        say(f"gpu_call_{name}_low", micro[key][0], ".0f")
        say(f"gpu_call_{name}", micro[key][1], ".0f")
    say("gpu_small_builtin", max(medians([small, small_h100], "rms_builtin")), ".1f")
    say("gpu_small_kernel", np.median(small["rms_triton"]), ".1f")
    say("gpu_small_kernel_h100", np.median(small_h100["rms_triton"]), ".1f")
    say("gpu_small_best_h100", min(small_h100["rms_triton"]), ".1f")


RECORD = "record:subnorm/timing/records/cpu-*.json"


def count_of(moved_arrays):
    return f"{moved_arrays:.0f}", f"{moved_arrays / 2:.1f}"


def tabulate_rms_norms(layer_norm):
    arrays, (x, *_) = arrays_moved(layer_norm), batch()

    def mark(*claim):
        return f"<!-- claim: {' '.join(claim)} -->"

    fast = st.RMSNorm(512).requires_grad_(False)

    def in_copies(key):
        return f"{np.median(copies(key)):.1f}"

    claimed_table(
        [
            "RMSNorm, forward",
            "arrays moved",
            "in copies",
            "time in copies",
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
                *count_of(moved(traffic.operations(lambda: fast(x)))),
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


def prove_t_module():
    """Prove claims 08-t-module, 08-t-numba."""
    assert np.quantile(copies("rms_hand") / copies("rms_module"), 0.1) > 1.2
    assert np.quantile(copies("rms_module") / copies("rms_numba"), 0.1) > 1


def percent(share):
    return f"{100 * share:.1f} %"


def spread(rows):
    q1, q2, q3 = (f"{100 * q:.1f}" for q in quartiles(rows))
    return f"{q2} % [{q1}, {q3}]"


def tabulate_trained(shares_counted):
    counted = [shares_counted(length) for length in norm_share.LENGTHS]
    record = norm_share.recorded()
    table(
        ["the norms' share", *("one token", "120 tokens")],
        [
            ["of the bytes", *(percent(each[0]) for each in counted)],
            ["of the operations", *(percent(each[1]) for each in counted)],
            *(
                [f"of {name}'s time", *(spread(s[name]) for s in shares)]
                for shares in [record["shares"].values()]
                for name in ("PyTorch", "NumPy")
            ),
        ],
    )


def check_load():
    say("share_load", norm_share.recorded()["load"], ".0f")


def prove_trained_one_token(shares_counted):
    """Prove claims 08-trained-one-token, 08-trained-prompt."""
    counted = {length: shares_counted(length) for length in norm_share.LENGTHS}
    one, prompt = norm_share.recorded()["shares"].values()
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
