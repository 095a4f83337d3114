"""The files that commands write, without grading anything."""

import contextlib
import csv
import io
import re
import unicodedata

import pytest

from subnorm_classroom.files import as_json, read_json
from subnorm_classroom.grading.sandbox import COURSE
from subnorm_classroom.reports.tables import answers_table, as_cell, as_csv, from_cell, totals_table
from subnorm_classroom.text import as_markdown, counted


def test_a_record_is_the_same_text_whatever_its_order():
    assert as_json({"b": [1], "a": "é"}) == as_json({"a": "é", "b": [1]}) == '{\n "a": "é",\n "b": [\n  1\n ]\n}\n'


def test_a_record_that_is_none_is_empty(tmp_path):
    path = tmp_path / "log.json"
    for content in (None, b"", b"{", b"[1]", b"\xff"):
        if content is not None:
            path.write_bytes(content)
        assert read_json(path) == {}
    path.write_text('{"a": "é"}', "utf-8")
    assert read_json(path) == {"a": "é"}


def test_the_totals_are_sums():
    results = [{"points": 2, "max_points": 3}, {"points": 4, "max_points": 4}]
    records = [
        {"student": "Ada", "results": results, "problem": "", "flags": ["imports os", "x"]},
        {"student": "=Bo", "results": [], "problem": "empty", "flags": []},
    ]
    assert totals_table(records) == (
        "student,points,max_points,problem,late,by_hand,flags\nAda,6,7,,,,imports os; x\n'=Bo,0,0,empty,,,\n"
    )


def test_the_column_of_variants_is_there_if_a_student_has_one():
    usual = {"exercise": "layer_norm", "points": 1.5, "max_points": 4, "diagnosis": "eps"}
    assert answers_table([{"student": "=ada", "results": [usual]}]) == (
        "student,exercise,points,max_points,diagnosis,by_hand\n'=ada,layer_norm,1.5,4,eps,\n"
    )
    own = [{"student": "ada", "results": [usual]}, {"student": "bo", "results": [{**usual, "variant": "b"}]}]
    assert answers_table(own) == (
        "student,exercise,points,max_points,diagnosis,by_hand,variant\n"
        "ada,layer_norm,1.5,4,eps,,\nbo,layer_norm,1.5,4,eps,,b\n"
    )


SIGN = set("=+-@\N{MINUS SIGN}")
ODD = [
    "=1", "x;=1+1", "x\t=1", "a\n\n +1", "a\u2028-1", "x|@f", "x, -1", 'x;"=1', "x;'=1", "'=1", "''=1", "\ufeff=1",
    "x :=1", "\uff1d1", "x;\ufe63 1", "\u207b1", "x;\u200b=1", "x (=1)", "a -1 b", "=", "x;=", "x/=1", "==1", ";;=1",
    "\x00=1",
]  # fmt: skip
PLAIN = [
    "Anne-Marie O'Neil_12", "late - by mail",
    "Zoe\u0308-Ann", "李-小龍", "a+b=c", "me@there.edu", "'quoted", "f(x)", "",
]  # fmt: skip


def cells_as_read(line, separator):
    """The cells of a line, by a reader that knows quotes and one that does not; spaces, quotes and what nobody sees
    are skipped at their beginning.
    """
    unseen = "".join(map(chr, range(33))) + '"\u200b\ufeff\xa0'
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
        with contextlib.suppress(csv.Error):
            for row in csv.reader(io.StringIO(line.replace("\0", " ")), delimiter=separator, quoting=quoting):
                yield from (unicodedata.normalize("NFKC", cell.strip(unseen)) for cell in row)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", ":", " ", "/", "(", "^"])
@pytest.mark.parametrize("text", [*ODD, *PLAIN])
def test_no_cell_is_a_formula_whatever_separates_cells(text, separator):
    line = as_csv([["1", as_cell(text), as_cell("x"), as_cell(text)]])
    found = [cell for cell in cells_as_read(line, separator) if cell[:1] in SIGN]
    assert [cell for cell in found if cell not in SIGN] == []


@pytest.mark.parametrize("text", [*ODD, *PLAIN])
def test_a_cell_comes_back_as_it_was(text):
    assert from_cell(as_cell(text)) == text
    assert from_cell(as_cell(as_cell(text))) == as_cell(text)


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_name_or_reason_stays_as_it_is(text):
    assert as_cell(text) == text


def test_a_formula_is_a_text_that_people_can_read():
    assert [as_cell(text) for text in ("=1", " -1", "x;=1+1", "a\t@b")] == ["'=1", " '-1", "x;'=1+1", "a\t'@b"]


def test_every_file_is_written_whole_or_not_at_all():
    """A full disk leaves the old file, because only `files.write` writes one. The sandbox's folder does not last."""
    paths = [path for path in (COURSE / "subnorm_classroom").rglob("*.py") if path.name != "sandbox.py"]
    assert [path.name for path in paths if re.search(r"\.write_(text|bytes)\(|open\([^)]*\"w", path.read_text())] == []


def test_words_of_a_page_and_a_sentence():
    assert as_markdown('a_b*[c]#$`"<') == r'a\_b\*\[c\]\#\$\`"&lt;'
    assert [counted(many, "sheet") for many in (0, 1, 2)] == ["0 sheets", "1 sheet", "2 sheets"]
