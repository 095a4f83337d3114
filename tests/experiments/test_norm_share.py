import numpy as np
import pytest

from subnorm_lab.experiments import norm_share
from subnorm_lab.experiments.norm_share import LENGTHS, ROUNDS, calls


def test_the_record_has_a_value_for_every_run() -> None:
    record = norm_share.recorded()
    assert record["device"]
    assert record["dtype"] == "float32"
    assert tuple(record["shares"]) == LENGTHS
    for found in record["shares"].values():
        assert list(found) == ["NumPy", "PyTorch"]
        assert all(row.shape == (ROUNDS,) and row.min() > 0 and row.max() < 1 for row in found.values())


@pytest.mark.parametrize("length", LENGTHS)
def test_both_libraries_compute_the_same_pass_and_the_same_norms(length: int) -> None:
    (whole, norms), (twin_whole, twin_norms) = calls(length).values()
    scores = np.asarray(whole())
    assert scores.shape == (length, 512)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(twin_whole(), scores, rtol=0, atol=1e-4)
    read, twin_read = np.array(norms()), np.array([y.numpy() for y in twin_norms()])
    assert read.shape == (11, length, 64)
    np.testing.assert_allclose(twin_read, read, rtol=0, atol=1e-4)


def test_a_share_is_the_norms_over_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(norm_share, "calls", lambda length: {"NumPy": (3.0, 1.0), "PyTorch": (8.0, 2.0)})
    monkeypatch.setattr(norm_share, "clock", lambda call, timer: lambda: call)
    found = norm_share.shares(1, rounds=2)
    assert {library: list(row) for library, row in found.items()} == {"NumPy": [1 / 3, 1 / 3], "PyTorch": [0.25, 0.25]}


def test_more_threads_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(norm_share, "shares", lambda length, rounds: {"NumPy": np.array([0.12345])})
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert norm_share.take()["shares"] == {"1": {"NumPy": [0.123]}, "120": {"NumPy": [0.123]}}
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    with pytest.raises(ValueError, match="one thread"):
        norm_share.take()
