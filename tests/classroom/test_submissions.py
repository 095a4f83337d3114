"""What is read of hand-ins, at its limits, without grading anything."""

import random
import zipfile
from pathlib import Path

import pytest

from subnorm_classroom.grading import archives
from subnorm_classroom.grading.archives import TooLarge, files_of_zip, read_file
from subnorm_classroom.grading.summary import print_class


def test_a_hundred_mebibytes_are_read_and_no_byte_more(tmp_path):
    path = tmp_path / "sheet.ipynb"
    path.write_bytes(bytes(100 * 1024 * 1024))
    assert len(read_file(path)) == 100 * 1024 * 1024
    path.write_bytes(bytes(100 * 1024 * 1024 + 1))
    with pytest.raises(TooLarge):
        read_file(path)


def test_what_is_read_is_no_bomb_and_a_larger_empty_file_is(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "LARGEST", 2 << 20)
    pictures = random.Random(1).randbytes(2 << 20)
    with zipfile.ZipFile(tmp_path / "class.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Ada.ipynb", pictures)
        archive.writestr("Bo.ipynb", bytes(3 << 20))  # a thousandth, packed
        archive.writestr("Cy.ipynb", bytes(2 << 20))  # as densely packed: a line printed a million times
    with zipfile.ZipFile(tmp_path / "class.zip") as archive:
        found = {str(file.path): file for file in files_of_zip(archive)}
        assert {name: file.problem for name, file in found.items()} == {
            "Ada.ipynb": "",
            "Bo.ipynb": "unsafe_archive",
            "Cy.ipynb": "",
        }
        assert found["Ada.ipynb"].read() == pictures


def test_of_many_problems_twenty_are_named_and_the_rest_counted(capsys):
    records = [
        {"student": f"s{k:02}", "problem": "no_notebook", "results": [], "flags": [], "late": None} for k in range(23)
    ]
    print_class("ex01", [], records, Path("grades"))
    said = capsys.readouterr().out
    assert "23 without a notebook to grade: s00 (no_notebook), s01" in said
    assert "s19 (no_notebook), and 3 more in totals.csv" in said
    print_class("ex01", [], records[:20], Path("grades"))
    assert "s19 (no_notebook)\n" in capsys.readouterr().out
