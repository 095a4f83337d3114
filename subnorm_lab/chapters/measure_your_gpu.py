"""Figures and proofs of deep dive 08a, Measure your GPU."""

import torch


def begin():
    torch.set_num_threads(1)


def prove_one_file(path, record, on_gpu):
    """Prove claim 08a-one-file."""
    assert path.is_file()
    assert path.suffix == ".json"
    assert record["device"]["kind"] == ("cuda" if on_gpu else "cpu")
    assert path.name.startswith(record["device"]["kind"] + "-")
    assert all(len(table["rows"]) > 2 for table in record["tables"])


def prove_edited(answer):
    """Prove claim 08a-edited."""
    assert answer == "refused for rms_builtin.seconds"
