"""The page on the course's own speed, as a one-page book: how it shows a record, and what it rejects."""

import copy
import json

import pytest
from bs4 import BeautifulSoup
from helpers.small_book import build, html, page
from subnorm_book.speed_record import TARGETS, faults, size, time

from tools import speed

MEASURE = {"date": "2026-11-21", "commit": "0123456789" * 4, "load": 0.25}


def measure(name, **rows):
    return {**MEASURE, "command": f"python3 course.py speed {name}", "rows": rows}


RECORD = {
    "schema": 1,
    "machine": {"cpu": "An 8080", "cores": 2, "system": "CP/M"},
    "versions": dict.fromkeys(["python", "torch", "numpy", "subnorm", "jupyter-book"], "1.0"),
    "measures": {
        "import": measure(
            "import",
            **{
                "numpy": {"seconds": [0.1, 0.2, 0.1], "cpu": [0.1, 0.2, 0.1]},
                "subnorm": {"seconds": [0.3, 0.1, 0.3], "cpu": [0.3, 0.1, 0.3]},
                "subnorm.numpy": {"seconds": [0.5, 0.2, 0.5], "cpu": [0.12, 0.25, 0.13]},
            },
        ),
        "pages": measure("pages", a={"bytes": 100_000}, b={"bytes": 250_000}, c={"bytes": 120_000}),
        "in-page": measure(
            "in-page",
            **{
                "chromium: first result": {
                    "seconds": [1.6, 1.4, 3.0],
                    "cpu": None,
                    "bytes": 7_740_000,
                    "version": "156.0",
                },
                "chromium: over 10 Mbit/s": {"seconds": [9.25], "cpu": None},
                "chromium: next results": {"seconds": [0.021], "cpu": None},
                "chromium: after Stop": {"seconds": [0.9], "cpu": None},
                "chromium: memory": {"bytes": 141_000_000},
            },
        ),
        "notebooks": measure("notebooks", first={"seconds": [3], "cpu": None}, second={"seconds": [50.4], "cpu": [49]}),
    },
}


@pytest.fixture
def shown(tmp_path):
    """The text that a page shows for a record, and the warnings."""
    (tmp_path / "book").mkdir()

    def shown(record, *names):
        if record is not None:
            text = record if isinstance(record, str) else json.dumps(record)
            (tmp_path / "book" / "speed.json").write_text(text, "utf-8")
        page(tmp_path, "\n\n".join(f"```{{speed}} {name}\n```" for name in names))
        warnings = build(tmp_path)
        rows = BeautifulSoup(html(tmp_path), "html.parser").select("tr, p")
        return [
            [cell.text.strip() for cell in row.select("td")] if row.name == "tr" else row.text for row in rows
        ], warnings

    return shown


def test_targets_stand_beside_what_was_measured(shown):
    rows, warnings = shown(RECORD, "targets")
    assert warnings == ""
    assert ["import subnorm", "200 ms", "300 ms (100 ms to 300 ms), missed"] in rows
    assert ["the slowest notebook", "60 s", "50 s"] in rows
    assert ["build the book from nothing", "15 s", "not yet measured"] in rows


def test_every_target_is_of_a_measure():
    assert {name for name, *_ in TARGETS} <= set(speed.MEASURES)


def test_times_pages_and_the_machine(shown):
    rows, warnings = shown(RECORD, "import", "pages", "notebooks", "build", "machine")
    assert warnings == ""
    assert ["subnorm.numpy", "500 ms (200 ms to 500 ms)", "130 ms, 1.25 of import numpy"] in rows
    assert ["the heaviest, b", "250 kB"] in rows
    assert ["the lightest, a", "100 kB"] in rows
    assert ["the median of 3", "120 kB"] in rows
    assert ["first", "3.0 s", ""] in rows
    assert "Not yet measured: python3 course.py speed build does it." in rows
    assert any(isinstance(row, str) and row.startswith("An 8080, 2 cores, CP/M; python 1.0, ") for row in rows)
    command = "python3 course.py speed pages"
    assert f"Measured by {command}: 2026-11-21, commit 0123456, load 0.2." in rows


def test_python_in_a_page_has_a_row_for_each_engine(shown):
    rows, warnings = shown(RECORD, "in-page", "targets")
    assert warnings == ""
    cells = ["1.6 s (1.4 s to 3.0 s)", "9.2 s", "21 ms", "900 ms", "7.7 MB", "141 MB"]
    assert ["Chromium 156.0", *cells] in rows
    assert ["Firefox", "not on that machine", *[""] * 5] in rows
    assert ["the first result of Python in a page", "2.0 s", "1.6 s (1.4 s to 3.0 s)"] in rows
    assert ["the same over 10 Mbit/s", "10 s", "9.2 s"] in rows


def test_without_a_record_the_page_says_so(shown):
    rows, warnings = shown(None, "machine", "import", "targets")
    assert warnings == ""
    assert "Nothing is measured yet." in rows
    assert "Not yet measured: python3 course.py speed import does it." in rows
    assert ["import subnorm", "200 ms", "not yet measured"] in rows


def put(*path_and_value):
    *path, key, value = path_and_value

    def plant(record):
        for step in path:
            record = record[step]
        record[key] = value

    return plant


ROW = ("measures", "import", "rows", "numpy")
FAULTS = {
    "schema": (put("schema", 2), "and schema 1"),
    "no machine": (lambda record: record.pop("machine"), "a record has the keys"),
    "no processor": (put("machine", "cpu", ""), "machine must say"),
    "a name of the machine": (put("machine", "host", "a"), "machine must say"),
    "no version": (lambda record: record["versions"].pop("torch"), "versions must be"),
    "a key more": (put("measures", "pages", "by", "me"), "pages: must have the keys"),
    "no day": (put("measures", "pages", "date", "yesterday"), "pages: 'yesterday' is not a day"),
    "no commit": (put("measures", "pages", "commit", "main"), "pages: 'main' is not a commit"),
    "another command": (put("measures", "pages", "command", "make"), "pages: 'make' does not repeat it"),
    "load": (put("measures", "pages", "load", -1), "pages: -1 is not a load"),
    "no rows": (put("measures", "pages", "rows", {}), "pages: has no rows"),
    "an odd row": (put("measures", "pages", "rows", "a", {"kB": 3}), "pages: a: a row has"),
    "no rounds": (put(*ROW, "seconds", []), "import: numpy: seconds must be positive"),
    "no time at all": (put(*ROW, "seconds", [1, 0, 1]), "import: numpy: seconds must be positive"),
    "a round without cpu": (put(*ROW, "cpu", [1, 2]), "import: numpy: cpu must be given"),
    "no weight": (put("measures", "pages", "rows", "a", "bytes", 0), "pages: a: bytes must be positive"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_record_is_said(fault):
    plant, says = FAULTS[fault]
    record = copy.deepcopy(RECORD)
    assert faults(record) == []
    plant(record)
    assert any(says in found for found in faults(record))


def test_a_faulty_record_warns_in_every_build_and_is_not_shown(shown):
    for _ in range(2):
        rows, warnings = shown({**RECORD, "machine": {}}, "pages")
        assert "speed.json: machine must say its cpu, cores and system" in warnings
        assert not any("100 kB" in row for row in rows)


def test_a_file_cut_off_warns(shown):
    assert "speed.json: Expecting" in shown('{"schema": 1', "pages")[1]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.00012, "0.1 ms"), (0.0994, "99 ms"), (0.9961, "1.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (702, "11.7 min")],
)
def test_a_time_has_two_digits(seconds, said):
    assert time(seconds) == said


def test_a_size():
    assert [size(n) for n in (1234, 389_000_000, 1_700_000_000)] == ["1 kB", "0.39 GB", "1.70 GB"]
