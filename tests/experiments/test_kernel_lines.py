"""The bytes of a kernel's lines: each line is in the source, and their sum is the count of the whole call."""

import re
from importlib.resources import files

import pytest
import torch

from subnorm.timing import TABLES
from subnorm_lab.experiments import kernel_lines

HALF, WIDE = torch.bfloat16, torch.float32
SHAPE = (4096, 2048)
CALLS = {
    "LayerNorm": ("forward", "layer", dict.fromkeys(["x", "y", "gamma", "beta"], HALF), ["mean", "rstd"]),
    "RMSNorm": ("forward", "rms", dict.fromkeys(["x", "y", "gamma"], HALF), ["rstd"]),
    "sum and RMSNorm": ("add_norm", "rms", dict.fromkeys(["x", "f", "h", "y", "gamma"], HALF), ["rstd"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_lines_move_what_the_call_must_move_and_the_statistics(name):
    table, norm, arrays, statistics = CALLS[name]
    found = kernel_lines.lines("_forward", arrays | dict.fromkeys(statistics, WIDE), *SHAPE)
    moved = sum(line.bytes for line in found if line.bytes is not None)
    assert moved == TABLES[table].bytes(norm, SHAPE, HALF) + len(statistics) * SHAPE[0] * 4


def test_each_line_is_in_the_source_and_none_is_missing():
    text = files("subnorm.torch").joinpath("kernels.py").read_text("utf-8")
    body = text.split("def _forward(")[1].split('beta."""')[1].split("@triton.jit")[0]
    bare = [re.sub(r"\s*#.*", "", line).strip() for line in body.splitlines()]
    found = kernel_lines.lines("_forward", {"x": HALF, "y": HALF, "rstd": WIDE}, *SHAPE)
    assert [line.code for line in found] == [line for line in bare if line]


def test_a_line_that_needs_a_missing_array_is_left_out():
    found = kernel_lines.lines("_forward", {"x": HALF, "y": HALF, "rstd": WIDE}, *SHAPE)
    left_out = {line.code for line in found if line.bytes is None}
    assert "if f is not None:" in left_out
    assert "tl.store(mean + row, middle, row < rows)" in left_out
    assert "result = value * scale" not in left_out
    assert all(line.depth for line in found if line.bytes is None and not line.code.startswith("if "))
