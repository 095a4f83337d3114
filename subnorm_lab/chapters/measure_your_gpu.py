"""Figures and proofs of deep dive 08a, Measure your GPU."""

from copy import deepcopy

import matplotlib.pyplot as plt
import numpy as np
import torch

from subnorm import timing
from subnorm_lab import figures


def begin():
    torch.set_num_threads(1)
    figures.use_style()


NORMS = {"rms": "RMSNorm", "layer": "LayerNorm"}
VERSIONS = {"builtin": "built in", "compile": "torch.compile", "hand": "by hand"}


def draw_our_gpus():
    fig, ax = plt.subplots(figsize=(6.4, 2.9))
    compiled, ends = [], np.zeros(len(NORMS) * len(VERSIONS))
    looks = (("H200", figures.BLACK, "o", 6), ("H100", figures.GREY, "s", -6))
    names = [f"{norm}, {words}" for norm in NORMS.values() for words in VERSIONS.values()]
    for side, (device, colour, mark, up) in zip((-0.17, 0.17), looks, strict=True):
        (record,) = (r for r in timing.read_records() if device in r["device"]["name"])
        rows = timing.rows(record, "forward", max(timing.shapes(record, "forward")))
        timed = [rows[f"{kind}_{how}"] for kind in NORMS for how in VERSIONS]
        times = [row.seconds["median"] / rows[row.copy].seconds["median"] for row in timed]
        ends = np.maximum(ends, times)
        compiled += [time for time, name in zip(times, names, strict=True) if VERSIONS["compile"] in name]
        ax.plot(times, side + np.arange(len(names)), mark, color=colour, markersize=7)
        figures.name(ax, device, (times[2], side + 2), colour, (0, up))
    ax.axvline(1, color=figures.BLACK, linestyle="--", linewidth=1)
    figures.name(ax, "a copy", (1, 5.5), shift=(4, 1))
    figures.title(fig, "Compiled, both norms take as long as a copy", np.allclose(compiled, 1, atol=0.02))
    ax.set(xlabel="time, in copies of the same bytes", xlim=(0, 1.15 * ends.max()))
    figures.rows(ax, names, ends)
    figures.show(
        fig,
        alt="The times of two norms on an H200 and on an H100, in copies of the same bytes, for the largest array. "
        "Compiled, both norms take as long as the copy; built in, less than twice as long; by hand, over ten times.",
    )


def prove_one_file(path, record, on_gpu):
    """Prove claim 08a-one-file."""
    assert path.is_file()
    assert path.suffix == ".json"
    assert record["device"]["kind"] == ("cuda" if on_gpu else "cpu")
    assert path.name.startswith(record["device"]["kind"] + "-")
    assert all(len(table["rows"]) > 2 for table in record["tables"])


def prove_edited(record):
    """Prove claim 08a-edited."""
    edited = deepcopy(record)
    row = edited["tables"][0]["rows"]["rms_builtin"]
    row["rounds"] = [seconds / 2 for seconds in row["rounds"]]
    try:
        timing.validate(edited)
        answer = "accepted"
    except ValueError as error:
        answer = str(error).partition(" must be")[0]
    assert answer == "rms_builtin.seconds"
