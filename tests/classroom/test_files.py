"""The files that commands write, without grading anything."""

import re

from subnorm_classroom.files import as_json, read_json
from subnorm_classroom.grading.sandbox import COURSE
from subnorm_classroom.reports.tables import answers_table, as_cell, from_cell, totals_table
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


def test_a_cell_is_no_formula_and_comes_back_as_it_was():
    for text, cell in (("=1", "'=1"), (" -1", "' -1"), ("\uff0b1", "'\uff0b1"), ("'quoted", "'quoted"), ("", "")):
        assert as_cell(text) == cell
        assert from_cell(cell) == text


def test_every_file_is_written_whole_or_not_at_all():
    """A full disk leaves the old file, because only `files.write` writes one. The sandbox's folder does not last."""
    paths = [path for path in (COURSE / "subnorm_classroom").rglob("*.py") if path.name != "sandbox.py"]
    assert [path.name for path in paths if re.search(r"\.write_(text|bytes)\(|open\([^)]*\"w", path.read_text())] == []


def test_words_of_a_page_and_a_sentence():
    assert as_markdown('a_b*[c]#$`"<') == r'a\_b\*\[c\]\#\$\`"&lt;'
    assert [counted(many, "sheet") for many in (0, 1, 2)] == ["0 sheets", "1 sheet", "2 sheets"]
