"""Marks set by hand: in the file, in the tables, in the feedback, and kept."""

import re
from html.parser import HTMLParser

import pytest
from classroom.desk import desk, record, result
from classroom.hand_ins import totals

from subnorm_classroom import __main__ as command_line
from subnorm_classroom.errors import Refusal
from subnorm_classroom.files import read_json
from subnorm_classroom.reports.feedback import markdown, page
from subnorm_classroom.reports.marks import changes, marks_of_folder, with_marks
from subnorm_classroom.reports.records import read_grades

ADA, BO = record("Ada", "Ada.ipynb"), record("Bo L_12", "Bo L_12_assignsubmission_file/x.ipynb")


def set_mark(out, *arguments, reason="you explained it well"):
    return command_line.main(["mark", str(out), *arguments, "--reason", reason])


def test_a_mark_is_in_the_file_the_tables_and_the_feedback(tmp_path, capsys):
    out = desk(tmp_path / "grades", ADA, BO)
    assert set_mark(out, "Ada", "stream", "2.5") == 0
    assert capsys.readouterr().out == (
        f"Ada: stream 2.5; now 6.5 of 7 points\n1 mark set by hand in {out / 'marks.csv'}\n"
    )
    assert (out / "marks.csv").read_text("utf-8") == (
        "student,exercise,points,reason\nAda,stream,2.5,you explained it well\n"
    )
    assert totals(out, "points", "by_hand") == {"Ada": ("6.5", "stream"), "Bo L_12": ("6", "")}
    grades = (out / "grades.csv").read_text("utf-8")
    assert "\nAda,stream,2.5,3,value,you explained it well\nAda,paths,4,4,right,\n" in grades
    text = (out / "feedback/0.md").read_text("utf-8")
    assert "6.5 of 7 points." in text
    assert "## ○ stream: 2.5 of 3\n\nSet by hand: you explained it well\n\n`value`: on a batch" in text
    assert "<p>Set by hand: <bdi>you explained it well</bdi></p>" in (out / "feedback/0.html").read_text("utf-8")
    assert read_json(out / "students/0.json")["results"][0]["points"] == 2  # the grader's own


def test_a_later_mark_replaces_an_earlier_one_and_keeps_the_others(tmp_path):
    out = desk(tmp_path / "grades", ADA, BO)
    (out / "marks.csv").write_text("student,exercise,points,reason\nGone,stream,1,left us\n", "utf-8")
    for arguments in (["Ada", "stream", "1"], ["Bo L", "paths", "0"], ["Ada", "stream", "3"]):
        assert set_mark(out, *arguments) == 0
    lines = (out / "marks.csv").read_text("utf-8").splitlines()[1:]
    assert [line.rsplit(",", 1)[0] for line in lines] == ["Gone,stream,1", "Ada,stream,3", "Bo L_12,paths,0"]
    assert totals(out, "points", "by_hand") == {"Ada": ("7", "stream"), "Bo L_12": ("2", "paths")}


def test_all_marks_of_a_student_without_a_notebook(tmp_path):
    out = desk(tmp_path / "grades", record("Ada", "Ada.pdf", problem="no_notebook"))
    assert set_mark(out, "Ada", "all", "0", reason="no file by the second deadline") == 0
    assert totals(out, "points", "by_hand")["Ada"] == ("0", "stream, paths")
    text = (out / "feedback/0.md").read_text("utf-8")
    assert "`no_notebook`" in text
    assert "0 of 7 points." in text
    assert text.count("Set by hand: no file by the second deadline") == 2


@pytest.mark.parametrize(
    ("arguments", "reason", "message"),
    [
        (["Ad", "stream", "1"], "x", "there is no student called 'Ad'; did you mean Ada?"),
        (["Zoe", "stream", "1"], "x", "there is no student called 'Zoe'; totals.csv lists the students"),
        (["Ada", "stream", "nan"], "x", "points of stream must be a number from 0 to 3; got 'nan'"),
    ],
)
def test_a_wrong_mark_is_refused_and_changes_nothing(arguments, reason, message, tmp_path, capsys):
    out = desk(tmp_path / "grades", ADA, BO, record("Max_1"), record("Max_2"))
    assert set_mark(out, *arguments, reason=reason) == 1
    assert message in capsys.readouterr().err
    assert not (out / "marks.csv").exists()


TABLE = "student,exercise,points,reason\n"


def test_a_file_sets_many_marks(tmp_path, capsys):
    out, table = desk(tmp_path / "grades", ADA, BO), tmp_path / "zeros.csv"
    assert set_mark(out, "Ada", "paths", "1") == 0
    table.write_text(f"{TABLE}Bo L,all,0,no file\n\nAda,stream,2.5,fair\n", "utf-8")
    capsys.readouterr()
    assert command_line.main(["mark", str(out), "--file", str(table)]) == 0
    assert capsys.readouterr().out == (
        "Ada: stream 2.5; now 3.5 of 7 points\nBo L_12: stream 0, paths 0; now 0 of 7 points\n"
        f"3 marks set by hand in {out / 'marks.csv'}\n"
    )
    assert totals(out, "points", "by_hand") == {"Ada": ("3.5", "stream, paths"), "Bo L_12": ("0", "stream, paths")}
    kept = (out / "marks.csv").read_text("utf-8")
    assert kept == (
        f"{TABLE}Ada,paths,1,you explained it well\nBo L_12,stream,0,no file\nBo L_12,paths,0,no file\n"
        "Ada,stream,2.5,fair\n"
    )
    assert command_line.main(["mark", str(out), "--file", str(out / "marks.csv")]) == 0
    assert (out / "marks.csv").read_text("utf-8") == kept


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("Bo,stream,1,b", "row 4 of .*zeros.csv: there is no student called 'Bo'"),
        ("Max,stream,1,b", "row 4 of .*: several students are called 'Max'; did you mean Max_1 or Max_2?"),
        ("Ada,streams,1,b", "row 4 of .*: there is no exercise 'streams'; the exercises are stream, paths, or all"),
        ("Ada,stream,4,b", "row 4 of .*: points of stream must be a number from 0 to 3; got '4'"),
        ("Ada,stream,-0.5,b", "row 4 of .*: points of stream must be a number from 0 to 3; got '-0.5'"),
        ("Ada,stream,one,b", "row 4 of .*: points of stream must be a number from 0 to 3; got 'one'"),
        ("Ada,all,4,b", "row 4 of .*: points of stream must be"),
        ("Max_1,all,1,b", "row 4 of .*: it sets stream of Max_1 a second time"),
        ("Ada,stream,1", "row 4 of .*: it must have 4 cells; it has 3"),
        ("Ada,stream,1,5,b", "row 4 of .*: it must have 4 cells; it has 5"),
        ("Ada,stream,1, ", "row 4 of .*: a mark set by hand needs a reason"),
    ],
)
def test_one_wrong_row_of_a_file_refuses_all(row, message, tmp_path, capsys):
    out, table = desk(tmp_path / "grades", ADA, BO, record("Max_1"), record("Max_2")), tmp_path / "zeros.csv"
    table.write_text(f"{TABLE}Max_1,stream,1,a\n\n{row}\n", "utf-8")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert command_line.main(["mark", str(out), "--file", str(table)]) == 1
    assert re.search(f"^mark: {message}", capsys.readouterr().err)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "words", ["Ada stream 1", "Ada stream --reason x", "Ada --file t.csv", "--file t.csv --reason x", ""]
)
def test_a_mark_is_one_or_a_file_of_them(words, tmp_path, capsys):
    assert command_line.main(["mark", str(tmp_path), *words.split()]) == 1
    assert "mark: give a student, an exercise, points and --reason; or only --file" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_no_empty_one(tmp_path, capsys):
    assert command_line.main(["mark", str(desk(tmp_path / "grades", ADA)), "--file", str(tmp_path / "t.csv")]) == 1
    assert "mark: there is no file" in capsys.readouterr().err


def test_only_the_files_that_change_are_written(tmp_path):
    out = desk(tmp_path / "grades", ADA, BO)
    before = {path: path.stat().st_ino for path in out.rglob("*.*")}  # a written file is a new one
    assert set_mark(out, "Ada", "stream", "2.5") == 0
    changed = {path.relative_to(out).as_posix() for path, inode in before.items() if path.stat().st_ino != inode}
    assert changed == {"grades.csv", "totals.csv", "feedback/0.md", "feedback/0.html"}


def test_marks_need_grades(tmp_path, capsys):
    assert set_mark(tmp_path, "Ada", "stream", "1") == 1
    assert set_mark(desk(tmp_path / "grades", ADA, finished=False), "Ada", "stream", "1") == 1
    assert capsys.readouterr().err.count("run grade first") == 2


def test_of_many_names_alike_the_five_nearest_are_proposed(tmp_path, capsys):
    out = desk(tmp_path / "grades", *(record(f"Anna{'x' * k}") for k in range(7)))
    assert set_mark(out, "Ann", "stream", "1", reason="x") == 1
    said = capsys.readouterr().err
    assert "did you mean Anna or Annax or Annaxx or Annaxxx or Annaxxxx?" in said


def edited(tmp_path, content):
    out = desk(tmp_path / "grades", ADA, BO, record("=1+1"))
    (out / "marks.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    return marks_of_folder(out, read_grades(out)[1].values())


def test_the_file_may_come_from_a_spreadsheet(tmp_path, capsys):
    text = "\ufeffstudent;exercise;points;reason\r\nAda;stream;2,5;\"two\nlines\"\r\n;;;\r\n'=1+1;paths;0;'=x\r\n"
    text += "No;a;1;b\r\n"
    assert edited(tmp_path, text) == {("Ada", "stream"): (2.5, "two lines"), ("=1+1", "paths"): (0, "=x")}
    said = capsys.readouterr().err
    assert said.startswith("row 5 of ")  # the first one is the titles, and the empty one counts
    assert "there is no student called 'No'; totals.csv lists the students. The mark is not used" in said


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("student,exercise,points\nAda,stream,1\n", "the first row of .* must be student,exercise,points,reason"),
        ("who,exercise,points,reason\nAda,stream,1,a\n", "the first row of"),
        ("", "the first row of"),
        (f"{TABLE}Ada,stream,1,a\nAda,stream,9,b\n", "row 3 of .*: points of stream must be"),
        ('student,exercise,points,reason\nAda,"stream,1,a\n', "is not a CSV file in UTF-8"),
        (b"student,exercise,points,reason\nAda,stream,1,gr\xfc\xdfe\n", "is not a CSV file in UTF-8.* Save it as one"),
    ],
)
def test_a_wrong_line_in_the_file_is_named(content, message, tmp_path):
    with pytest.raises(Refusal, match=message):
        edited(tmp_path, content)


def test_points_have_two_decimals(tmp_path):
    assert edited(tmp_path, f"{TABLE}Ada,stream,2.456,a\n") == {("Ada", "stream"): (2.46, "a")}


def test_a_file_that_is_no_record_is_not_graded(tmp_path):
    out = desk(tmp_path / "grades", ADA)
    (out / "students/my notes.json").write_text('{"student": "Ada", "key": "k"}', "utf-8")
    assert set(read_grades(out)[1]) == {"0"}


def test_what_a_new_check_would_change_is_listed():
    new = {**ADA, "results": [result(points=3, diagnosis="right"), result("more", 0, 1, "missing")]}
    assert changes(ADA, ADA, {}) == []
    assert (
        changes(ADA, {**ADA, "results": [result(says="other words", diagnosis="shape"), ADA["results"][1]]}, {}) == []
    )
    fewer = {**ADA, "results": [result(points=1), ADA["results"][1]]}
    assert changes(ADA, fewer, {}) == ["Ada: stream 2 of 3 (value) → 1 of 3 (value)"]
    assert changes(ADA, new, {("Ada", "stream"): (1, "x")}) == [
        "Ada: stream 2 of 3 (value) → 3 of 3 (right), but it is set by hand",
        "Ada: more none → 0 of 1 (missing)",
        "Ada: paths is no longer in the set",
    ]


EVIL = "<script>alert(1)</script><img src=//e.example/x>\"'&`*_[a](b)$"


def test_feedback_takes_every_name_file_and_reason_for_text():
    one = with_marks(record(EVIL, EVIL, problem="two_files"), {(EVIL, "stream"): (1, EVIL)})
    text = page("ex01", one)
    assert text.count("&lt;script&gt;alert(1)") == 4  # title, heading, file, reason
    seen = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: seen.append((tag, dict(attributes)))
    parser.feed(text)
    assert {tag for tag, _ in seen} == {
        "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "b", "bdi", "p", "section", "code",
    }  # fmt: skip
    assert {name for tag, attributes in seen if tag != "meta" for name in attributes} == {"lang", "class"}
    assert "url(" not in text
    assert "default-src 'none'" in text
    text = markdown("ex01", one)
    assert "<" not in text
    assert "\\`\\*\\_\\[a\\](b)\\$" in text


def test_a_page_shows_right_part_and_wrong():
    results = [result("a", 3), result("b", 1), result("c", 0), result("d", 0, diagnosis="not_done")]
    text = page("ex01", record("Ada", results=results))
    assert [line.split('"')[1] for line in text.splitlines() if line.startswith("<section")] == [
        "right", "open", "wrong", "open",
    ]  # fmt: skip
    assert "<code>value</code>: on a batch" in text
