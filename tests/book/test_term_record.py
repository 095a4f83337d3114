"""The record of a synthetic term, on a book of one page: what it shows, and what it refuses."""

import copy
import json

import pytest
from bs4 import BeautifulSoup
from helpers.small_book import build, html, page
from subnorm_book.term_record import faults

from tools import term

RECORD = {
    "schema": 1,
    "date": "2026-11-23",
    "commit": "0123456789" * 4,
    "load": 1.5,
    "command": "python -m tools.term --students 2000 --record",
    "machine": {"cpu": "a CPU", "cores": 2, "system": "Linux"},
    "versions": {"python": "3.11.7", "subnorm": "0.5.0"},
    "students": 2000,
    "rows": {"grade ex01": {"seconds": 600.0}, "handback ex01": {"seconds": 20.0, "bytes": 8_000_000}},
}
FAULTS = {
    "a key more": (lambda record: record.update(more=1), "a record has the keys"),
    "no day": (lambda record: record.update(date="today"), "'today' is not a day"),
    "no commit": (lambda record: record.update(commit="main"), "'main' is not a commit"),
    "another class": (lambda record: record.update(students=24), "does not repeat it"),
    "no time": (lambda record: record["rows"]["grade ex01"].pop("seconds"), "grade ex01: a row has positive seconds"),
    "no size": (lambda record: record["rows"]["handback ex01"].update(bytes=0), "handback ex01: a row has positive"),
}


def shown(folder, record):
    """The page of a record, and the warnings of its build."""
    (folder / "book").mkdir()
    if record is not None:
        (folder / "book/term.json").write_text(record if isinstance(record, str) else json.dumps(record), "utf-8")
    page(folder, "```{synthetic-term}\n```")
    warnings = build(folder)
    return BeautifulSoup(html(folder), "html.parser"), warnings


def test_the_page_shows_each_command_and_the_time_for_each_student(tmp_path):
    soup, warnings = shown(tmp_path, RECORD)
    assert warnings == ""
    assert [[cell.text for cell in row.select("td")] for row in soup.select("tbody tr")] == [
        ["grade ex01", "10.0 min", "300 ms", ""],
        ["handback ex01", "20 s", "10 ms", "8000 kB"],
    ]
    assert "2,000 students; a CPU, 2 cores, Linux; python 3.11.7, subnorm 0.5.0; measured by" in soup.text
    assert "2026-11-23, commit 0123456, load 1.5." in soup.text


def test_without_a_record_the_page_says_how_to_make_it_and_with_half_of_one_it_warns(tmp_path):
    for name, record in (("none", None), ("half", "{")):
        (tmp_path / name).mkdir()
        soup, warnings = shown(tmp_path / name, record)
        assert ("Not yet measured" in soup.text) == (name == "none")
        assert ("term.json" in warnings) == (name == "half")


@pytest.mark.parametrize(("spoil", "says"), FAULTS.values(), ids=FAULTS)
def test_an_inconsistent_record_is_refused(spoil, says):
    record = copy.deepcopy(RECORD)
    assert list(faults(record)) == []
    spoil(record)
    (fault,) = faults(record)
    assert says in fault


def test_the_record_of_the_book_is_of_a_commit():
    if term.RECORD.exists():
        record = json.loads(term.RECORD.read_text("utf-8"))
        assert list(faults(record)) == []
        assert record["commit"].isalnum()
