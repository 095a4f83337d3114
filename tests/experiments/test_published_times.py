"""Published measurements: each has its source and its words, and no prediction is typed."""

import dataclasses
import json
import re
from pathlib import Path

import pytest
import torch

import subnorm.torch as st
from subnorm_lab.experiments import published_times
from subnorm_lab.experiments.published_times import chain_bytes, devices, measurements, sources

BIBLIOGRAPHY = Path(__file__).parents[2] / "book/references.bib"
STORED = json.loads(Path(published_times.__file__).with_suffix(".json").read_text("utf-8"))
BIG = 10**6


def number(text):
    """A number in a quote, whole: 1434 is not in 14345."""
    return rf"(?<![\d.]){re.escape(text)}(?![\d]|\.\d)"


@pytest.mark.parametrize("entry", [*STORED["devices"].values(), *STORED["rows"]], ids=lambda e: e["printed"])
def test_every_number_is_in_its_quote_and_has_a_source(entry):
    assert re.search(number(entry["printed"]), entry["quote"])
    assert len(entry["quote"]) > len(entry["printed"]) + 10  # words around the number
    assert re.fullmatch(r"\[[^][]+, \d{4}\]\(https://\S+\)", sources()[entry["source"]])


def test_the_quote_of_a_stored_table_names_what_was_measured():
    for row in STORED["rows"]:
        if row["source"] == "liger2026data":
            kernel, _provider, mode, metric, unit, *_ = row["quote"].split(",")
            assert {"layer": "layer_norm", "rms": "rms_norm"}[row["norm"]] in kernel
            assert ("add" in kernel) == row["table"].startswith("add_norm")
            assert (mode == "backward") == row["table"].endswith("backward")
            assert (metric, unit) == ("speed", row["unit"])
            assert row["quote"].split(",")[7] == str(row["shape"][1])


def test_every_source_is_used_and_in_the_bibliography():
    used = {entry["source"] for entry in [*STORED["devices"].values(), *STORED["rows"]]}
    assert used == set(sources())
    entries = dict(re.findall(r"^@\w+\{(\w+),(.*?)^\}", BIBLIOGRAPHY.read_text("utf-8"), re.MULTILINE | re.DOTALL))
    addresses = {key: about["address"] for key, about in STORED["sources"].items()}
    assert {key: url for key, url in addresses.items() if f"{{{url}}}" not in entries.get(key, "")} == {}


def test_no_result_of_ours_is_stored():
    fields = {field.name for field in dataclasses.fields(published_times.Published)}
    assert {key for row in STORED["rows"] for key in row} == fields
    assert not fields & {"predicted", "seconds", "ratio"}


def test_a_prediction_is_bytes_over_bandwidth():
    rows = {(r.device.name, r.kernel, r.table, r.dtype, r.shape): r for r in measurements()}
    row = rows["H100 SXM", "Liger", "forward", torch.bfloat16, (4096, 16384)]
    assert row.predicted == pytest.approx((2 * 4096 * 16384 + 16384) * 2 / 3.35e12, rel=1e-12)
    assert row.seconds == pytest.approx(95.008e-6, rel=1e-5)
    for row in measurements():
        twice = dataclasses.replace(row.device, printed=str(2 * float(row.device.printed)))
        assert dataclasses.replace(row, device=twice).ratio == pytest.approx(2 * row.ratio)


def test_a_speed_becomes_the_time_of_its_bytes():
    for row in measurements():
        if "/" in row.unit:
            ratio = row.device.bandwidth / (float(row.printed) * published_times.UNITS[row.unit])
            assert row.ratio == pytest.approx(ratio)


def test_the_chain_is_counted_by_hand():
    """In bytes of an entry: to float32 2 + 4, square 4 + 4, mean 4, scale 4 + 4, back 4 + 2, gain 2 + 4."""
    shape = (BIG, 1024)
    assert chain_bytes(shape, torch.bfloat16) / (shape[0] * shape[1]) == pytest.approx(38, rel=1e-2)
    x, gamma = torch.randn(3, 8), 1 + torch.rand(8)
    assert torch.allclose(published_times.llama_rms_norm(x, gamma), st.rms_norm(x, gamma, eps=1e-6), atol=1e-6)


def test_only_a_warm_cache_beats_the_roof():
    assert {row.group for row in measurements() if row.ratio < 1} == {"cache"}


def test_the_devices_are_in_the_order_of_their_memory():
    speeds = {key: device.bandwidth for key, device in devices().items()}
    assert speeds["RTX 3090"] < speeds["RTX 5090"] < speeds["A100"] < speeds["H100"] < speeds["H200"] < speeds["B200"]
