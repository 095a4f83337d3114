"""Figures and proofs of deep dive 08a, Measure your GPU."""

from copy import deepcopy

import torch

from subnorm import timing


def begin():
    torch.set_num_threads(1)


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
