"""Figures and proofs of deep dive 09d, When something breaks."""

import logging
import math
import warnings

import torch
import torch.nn.functional as F
from torch import nn


def in_one_line(message, category, *place):
    text = str(message).splitlines()[0].split(" (Triggered")[0]
    print(f"{category.__name__}: {text}")


class InOneLine(logging.Handler):
    """Prints the first line of what is logged, as a warning is printed."""

    def emit(self, record):
        print(record.getMessage().splitlines()[0])


#: the first words of warnings that no entry is about
UNRELATED = (
    "The PyTorch API of nested tensors is in prototype stage",
    "FSDP is switching to use `NO_SHARD`",
    "`torch.jit.script` is deprecated",
)


def begin():
    torch.set_num_threads(1)
    torch.manual_seed(0)

    warnings.showwarning = in_one_line
    for words in UNRELATED:
        warnings.filterwarnings("ignore", words)
    logging.getLogger("torch._dynamo").handlers = [InOneLine()]
    # what these log, the cell would show as an error of its own
    for name in ("torch.fx.experimental.symbolic_shapes", "torch.fx._symbolic_trace"):
        logging.getLogger(name).setLevel(logging.ERROR)


def prove_victim():
    """Prove claim 09d-victim."""
    finite = torch.full((1, 4), 40000.0, dtype=torch.float16)
    assert finite.isfinite().all()
    assert (finite + finite).isinf().all()
    assert F.layer_norm(finite + finite, (4,)).isnan().all()
    wide = finite.bfloat16()
    assert F.layer_norm(wide + wide, (4,)).isfinite().all()


def prove_square():
    """Prove claim 09d-square."""
    images = torch.randn(2, 64, 64, 64)
    y = nn.LayerNorm(64)(images)
    assert y.mean(-1).abs().max() < 1e-5  # each row of pixels
    assert y.mean(1).abs().max() > 0.1  # not each pixel


def with_he(linear, relu):
    nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
    nn.init.zeros_(linear.bias)
    return nn.Sequential(linear, relu)


def prove_stuck(loss_after, WithSkip):
    """Prove claim 09d-stuck."""
    for seed in range(3):
        assert abs(loss_after(nn.Sequential, seed) - math.log(16)) < 0.05
        assert loss_after(WithSkip, seed) < 0.5

    assert nn.Linear(32, 32).weight.std() < 0.5 * (2 / 32) ** 0.5  # He's
    for seed in range(3):
        assert loss_after(with_he, seed) < 0.5


def prove_strict():
    """Prove claim 09d-strict."""
    fresh = nn.LayerNorm(2)
    wrong = {"module.weight": torch.full((2,), 3.0)}
    report = fresh.load_state_dict(wrong, strict=False)
    assert report.missing_keys == ["weight", "bias"]
    assert report.unexpected_keys == ["module.weight"]
    assert (fresh.weight == 1).all()
