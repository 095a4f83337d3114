"""The files that grading writes, without grading anything."""

from subnorm.classroom.results import as_json, as_totals, read_json, write


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
    assert as_totals(records) == (
        "student,points,max_points,problem,late,by_hand,flags\nAda,6,7,,,,imports os; x\n'=Bo,0,0,empty,,,\n"
    )


def test_two_files_go_into_one_folder(tmp_path):
    for name in "ab":
        write(tmp_path / "grades/students" / name, name)
    assert sorted(path.read_text("utf-8") for path in (tmp_path / "grades/students").iterdir()) == ["a", "b"]
