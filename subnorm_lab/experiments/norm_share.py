"""What share of the time of a forward pass of the trained model goes into its norms?

Chapter 08 predicts the share from bytes. The measurement depends on the machine, so it is a record:

    OPENBLAS_NUM_THREADS=1 python -m subnorm_lab.experiments.norm_share

writes ``records/norm_share.json`` beside this file. NumPy reads the variable when it is imported: with a second thread
in its matrix products, the first one would spend its time waiting.
"""

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from subnorm.provenance import cpu_model, load
from subnorm.timing.measure import CPU_CLOCK, clock, interleave
from subnorm_lab import stories
from subnorm_lab.experiments import stored
from subnorm_lab.stories import files as story_files
from subnorm_lab.stories.torch import Stories

RECORD = stored.file("norm_share")

#: One token, as when the model writes, and a prompt.
LENGTHS = (1, 120)
ROUNDS = 40

Call = Callable[[], object]


def tokens(length: int) -> list[int]:
    """The first tokens of a published story."""
    return story_files.tokenizer().encode(story_files.published()[0])[:length]


def calls(length: int) -> dict[str, tuple[Call, Call]]:
    """A forward pass in float32, and its eleven norms alone on the same stream, with NumPy and with PyTorch.

    The pass computes the scores of the next token behind every token, without a cache of keys and values.
    """
    model, text = stories.load(np.float32), tokens(length)
    twin, ids = Stories(model).requires_grad_(False), torch.tensor(text)
    states = stories.stream(model, text)  # (11, T, d)
    tensors = torch.from_numpy(states)
    return {
        "NumPy": (
            lambda: stories.logits(model, stories.stream(model, text)[-1]),
            lambda: [norm(x, gamma=gain) for norm, x, gain in zip(model.norms, states, model.gains, strict=True)],
        ),
        "PyTorch": (
            lambda: twin(ids),
            lambda: [norm(x) for norm, x in zip(twin.norms, tensors, strict=True)],
        ),
    }


def shares(length: int, rounds: int) -> dict[str, npt.NDArray[np.float64]]:
    """The norms' share of the thread's processor time, shape (rounds,), with NumPy and with PyTorch."""
    timer, found = getattr(time, CPU_CLOCK), {}
    for library, (whole, norms) in calls(length).items():
        seconds = interleave({"whole": clock(whole, timer), "norms": clock(norms, timer)}, rounds)
        found[library] = np.array(seconds["norms"]) / np.array(seconds["whole"])
    return found


def take() -> dict[str, Any]:
    """Measure both libraries at all lengths.

    Raises:
        ValueError: NumPy may use more than one thread.
    """
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        raise ValueError("NumPy must run on one thread; set the environment variable OPENBLAS_NUM_THREADS to 1.")
    found = {str(length): shares(length, ROUNDS) for length in LENGTHS}
    return {
        **stored.origin("OPENBLAS_NUM_THREADS=1 python -m subnorm_lab.experiments.norm_share"),
        "device": cpu_model(),
        "load": load(),
        "dtype": "float32",
        "shares": {
            length: {library: [float(f"{share:.3g}") for share in row] for library, row in rows.items()}
            for length, rows in found.items()
        },
    }


def recorded() -> dict[str, Any]:
    """The record, with each ``["shares"][length][library]`` as an array of shape (rounds,)."""
    record = stored.read(RECORD)
    record["shares"] = {
        int(length): {name: np.array(row) for name, row in found.items()} for length, found in record["shares"].items()
    }
    return record


if __name__ == "__main__":
    torch.set_num_threads(1)
    stored.write(RECORD, take())
