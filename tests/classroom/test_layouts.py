"""What teachers and students really save: downloads in downloads, tables beside them, names with more suffixes."""

import io
import json
import struct
import zipfile
from datetime import datetime, timedelta, timezone

import pytest
from classroom.hand_ins import LAYER_NORM, MEAN_SQUARE, cell, notebook, sheet, write_zip

from subnorm_classroom.errors import Refusal
from subnorm_classroom.grading import archives, submissions
from subnorm_classroom.grading.lateness import NO_TIMES, moment
from subnorm_classroom.grading.layouts import NoSubmissions
from subnorm_classroom.grading.submissions import read_all

MOODLE = [("Ada Lovelace_12_assignsubmission_file/ex02.ipynb", b"1"), ("Bo Li_13_assignsubmission_file/b.ipynb", b"2")]
FLAT = [("Ada Lovelace_12_assignsubmission_file_ex02.ipynb", b"1"), ("Bo Li_13_assignsubmission_file_b.ipynb", b"2")]
CANVAS = [("lovelaceada_12_99_ex02.ipynb", b"1"), ("libo_LATE_13_98_b-1.ipynb", b"2")]
NBGRADER = [("submitted/ada/ex02/ex02.ipynb", b"1"), ("submitted/bo/ex02/b.ipynb", b"2")]
PLAIN = [("Ada.ipynb", b"1"), ("Bo.ipynb", b"2")]
MOODLE_IN_A = [(f"a/{name}", data) for name, data in MOODLE]
PLATFORMS = {"Moodle": MOODLE, "Moodle, flat": FLAT, "Canvas": CANVAS, "nbgrader": NBGRADER, "plain": PLAIN}
WORKSHEET = (
    "\ufeffIdentifier,Full name,Email address,Status,Grade,Maximum grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade)\r\n"
    "Participant 12,Ada Lovelace,a@x.edu,Submitted for grading,,20.00,Yes,{},-\r\n"
    "Participant 13,Bo Li,b@x.edu,Submitted for grading,,20.00,Yes,{},-\r\n"
    "Participant 14,Cy,c@x.edu,No submission,,20.00,Yes,-,-\r\n"
)


def zipped(members):
    inner = io.BytesIO()
    write_zip(inner, members)
    return inner.getvalue()


def save(folder, members):
    for name, data in members:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def found_in(source, set_name="ex02"):
    """{student: (bytes or problem)}"""
    found = {one.student: one.notebook(set_name) for one in read_all(source)}
    return {student: problem or data for student, (_, data, problem) in found.items()}


def two(found):
    return sorted(found.values()) == [b"1", b"2"]


# The chapters that a sheet was handed out with are no hand-ins


@pytest.mark.parametrize("name", ["ex02.ipynb", "homework.ipynb"])
@pytest.mark.parametrize("folder", ["submitted/ada/ex02", "Ada"])
def test_a_hand_in_with_the_chapters_is_one_notebook(tmp_path, folder, name):
    save(tmp_path, [(f"{folder}/{name}", notebook(cell("1"))), (f"{folder}/chapters/a.ipynb", notebook(cell("2")))])
    assert list(found_in(tmp_path).values()) == [notebook(cell("1"))]


def test_a_hand_in_in_the_folder_of_the_chapters_counts(tmp_path):
    save(tmp_path, [("Ada/chapters/ex02.ipynb", notebook(cell("1"))), ("Ada/chapters/a.ipynb", notebook(cell("2")))])
    assert found_in(tmp_path) == {"Ada": notebook(cell("1"))}


@pytest.mark.parametrize("members", [[*MOODLE_IN_A, ("a", b"")], [("a", b""), *MOODLE_IN_A]], ids=["last", "first"])
def test_a_file_with_the_name_of_a_folder_hides_no_class(tmp_path, members):
    (tmp_path / "class.zip").write_bytes(zipped(members))
    assert two(found_in(tmp_path / "class.zip"))


# A download is opened as what it is, wherever it lies


@pytest.mark.parametrize("layout", PLATFORMS)
@pytest.mark.parametrize(
    "saved",
    ["as it is", "unpacked", "beside its table", "zip in a zip", "unpacked in a folder", "as it is and unpacked"],
)
def test_a_download_saved_into_the_folder_is_a_class(layout, saved, tmp_path, capsys):
    folder, members = tmp_path / "week", PLATFORMS[layout]
    download = ("C1-ex02-77.zip", zipped(members))
    save(
        folder,
        {
            "as it is": [download],
            "unpacked": members,
            "beside its table": [download, ("Grades-C1-ex02-77.csv", WORKSHEET.format("-", "-").encode())],
            "zip in a zip": [("again.zip", zipped([download]))],
            "unpacked in a folder": [(f"C1-ex02-77/{name}", data) for name, data in members],
            "as it is and unpacked": [download, *members],
        }[saved],
    )
    if layout == "plain" and saved == "as it is and unpacked":
        return  # nobody can tell whether C1-ex02-77 is a student
    found = found_in(folder)
    assert two(found), found
    said = capsys.readouterr().err
    assert ("not a hand-in: Grades-C1-ex02-77.csv." in said) == (saved == "beside its table")


def test_two_downloads_side_by_side_are_one_class(tmp_path):
    groups = [(f"C1-group {k}.zip", zipped([one])) for k, one in enumerate(MOODLE)]
    assert two(found_in(save(tmp_path / "week", groups)))
    later = [("C1 (1).zip", zipped([(MOODLE[0][0], b"3")])), ("C1.zip", zipped(MOODLE))]
    assert found_in(save(tmp_path / "more", later)) == {"Ada Lovelace_12": "two_files", "Bo Li_13": b"2"}


def test_who_hands_in_by_mail_is_in_the_class_too(tmp_path):
    mailed = [("Cy.ipynb", b"3"), ("Di.zip", zipped([("x.ipynb", b"4")])), ("Ed/notes.txt", b"")]
    found = found_in(save(tmp_path / "week", [("C1.zip", zipped(MOODLE)), *mailed]))
    assert found == {"Ada Lovelace_12": b"1", "Bo Li_13": b"2", "Cy": b"3", "Di": b"4", "Ed": "no_notebook"}


def test_a_student_s_zip_is_no_class_whatever_is_in_it(tmp_path):
    """Eve packs a folder that looks like Ada's."""
    theirs = zipped([("Ada_12_assignsubmission_file/x.ipynb", b"3")])
    found = found_in(save(tmp_path / "week", [*MOODLE, ("Eve_15_assignsubmission_file/x.zip", theirs)]))
    assert found == {"Ada Lovelace_12": b"1", "Bo Li_13": b"2", "Eve_15": b"3"}
    found = found_in(save(tmp_path / "flat", [*FLAT, ("Eve_15_assignsubmission_file_x.zip", theirs)]))
    assert found == {"Ada Lovelace_12": b"1", "Bo Li_13": b"2", "Eve_15": b"3"}
    mine = zipped([("lab_1_2_a.ipynb", b"5"), ("data.csv", b"")])  # as if Canvas had made the name
    assert found_in(save(tmp_path / "plain", [("Ada.zip", mine), ("Bo.ipynb", b"2")])) == {
        "Ada": b"5",
        "Bo": b"2",
    }


def test_a_table_or_a_stray_file_is_no_student_and_is_named(tmp_path, capsys):
    tables = [("Grades-C1.csv", b"Identifier"), ("gradebook.xlsx", b"PK"), ("notes.txt", b"")]
    assert two(found_in(save(tmp_path / "week", [*MOODLE, *tables])))
    assert capsys.readouterr().err == "not a hand-in: Grades-C1.csv, gradebook.xlsx, notes.txt.\n"
    with pytest.raises(NoSubmissions, match="holds no files"):
        found_in(save(tmp_path / "tables", tables[:2]))


def test_a_download_that_was_cut_off_is_named(tmp_path):
    folder = save(tmp_path / "week", [("C1.zip", zipped(MOODLE)[:-30])])
    with pytest.raises(NoSubmissions, match=r"C1\.zip is a damaged zip: download it from the platform again"):
        found_in(folder)


# Everybody is in the results


@pytest.mark.parametrize(
    "left",
    [".ipynb_checkpoints/ex02-checkpoint.ipynb", ".DS_Store", "__MACOSX/x.ipynb", ".mine/x.ipynb", "__pycache__/x.pyc"],
)
@pytest.mark.parametrize("zip_too", [False, True])
def test_a_student_of_whom_all_is_ignored_is_named(left, zip_too, tmp_path):
    members = [*MOODLE, (f"Cy_14_assignsubmission_file/{left}", b"3"), ("__MACOSX/._Di_15", b""), (".DS_Store", b"")]
    write_zip(tmp_path / "a.zip", members)
    place = tmp_path / "a.zip" if zip_too else save(tmp_path / "week", members)
    assert found_in(place) == {"Ada Lovelace_12": b"1", "Bo Li_13": b"2", "Cy_14": "no_notebook"}
    (cy,) = [one for one in read_all(place) if one.student == "Cy_14"]
    assert cy.notebook("ex02")[0] == f"Cy_14_assignsubmission_file/{left}"
    assert cy.names("") == [f"Cy_14_assignsubmission_file/{left}"]  # its feedback finds the way back


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.zip", zipped([(".venv/bin/x.ipynb", b"3")])),
        ("x.zip", zipped([])),
        ("x.zip", b"PK broken"),
        ("onlinetext.html", b"<p>"),
    ],
)
def test_a_student_with_nothing_to_read_is_named(name, data, tmp_path):
    found = found_in(save(tmp_path / "week", [*MOODLE, (f"Cy_14_assignsubmission_file/{name}", data)]))
    assert found["Cy_14"] in ("no_notebook", "unreadable_file")


def test_a_name_that_begins_with_a_dot_is_a_student_on_moodle(tmp_path):
    assert "._net_15" not in found_in(save(tmp_path / "a", [*MOODLE, ("._net_15_assignsubmission_file/x.ipynb", b"")]))
    assert found_in(save(tmp_path / "b", [*MOODLE, (".net_15_assignsubmission_file/x.ipynb", b"3")]))[".net_15"] == b"3"


def test_a_text_on_canvas_is_its_student_s(tmp_path):
    found = found_in(save(tmp_path / "week", [*CANVAS, ("cy_14_text.html", b"<p>"), ("di_LATE_15_link.html", b"")]))
    assert (found["cy_14"], found["di_15"]) == ("no_notebook", "no_notebook")
    assert [one.late(None) for one in read_all(tmp_path / "week")][1] == "marked late by Canvas"


# A student's own zip and names


def environment(many):
    yield "ex02/.venv/bin/python -> ", b"/usr/bin/python3"
    for k in range(many):
        yield f"ex02/.venv/lib/python3.11/site-packages/p/{k}.py", b""
    yield "ex02/env/lib/python3.11/site-packages/p/ex02-demo.ipynb", b"7"


def test_a_zip_of_the_whole_folder_with_its_environment_is_one_notebook(tmp_path):
    members = [*environment(3_000), ("ex02/ex02-layer-norm.ipynb", b"3"), ("ex02/scratch.ipynb", b"4")]
    members += [("__MACOSX/ex02/._ex02-layer-norm.ipynb", b"5"), ("ex02/.ipynb_checkpoints/ex02-c.ipynb", b"6")]
    handed_in = [("Cy_14_assignsubmission_file/ex02.zip", zipped(members))]
    assert found_in(save(tmp_path / "week", [*MOODLE, *handed_in]))["Cy_14"] == b"3"
    write_zip(tmp_path / "a.zip", [*MOODLE, *handed_in])
    assert found_in(tmp_path / "a.zip")["Cy_14"] == b"3"


def test_a_zip_in_a_student_s_zip_is_opened_if_it_is_all(tmp_path):
    inside = ("ex02.zip", zipped([("ex02-layer-norm.ipynb", b"3"), ("__MACOSX/._ex02-layer-norm.ipynb", b"5")]))
    for members, wanted in {
        (inside, ("__MACOSX/._ex02.zip", b"")): b"3",
        (("again.zip", zipped([inside])),): "no_notebook",
        (inside, ("ex02.ipynb", b"4")): b"4",
        (inside, ("more.zip", inside[1])): "no_notebook",
    }.items():
        handed_in = [("Cy_14_assignsubmission_file/x.zip", zipped(members))]
        write_zip(tmp_path / "a.zip", [*MOODLE, *handed_in])
        assert found_in(tmp_path / "a.zip")["Cy_14"] == wanted


@pytest.mark.parametrize("name", ["ex02.ipynb (1)", "ex02.ipynb(2)", "ex02.ipynb.txt (1)"])
def test_a_name_with_a_number_at_its_end_is_that_of_a_notebook(name, tmp_path):
    assert found_in(save(tmp_path / "week", [("Cy_14_assignsubmission_file/" + name, b"3")])) == {"Cy_14": b"3"}


def test_a_student_s_zip_may_be_larger_than_a_notebook(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "LARGEST", 1000)
    monkeypatch.setattr(archives, "IN_MEMORY", 1000)
    inside = [("ex02/.venv/x.so", bytes(range(256)) * 40), ("ex02.ipynb", b"3")]
    write_zip(tmp_path / "a.zip", [*MOODLE, ("Cy_14_assignsubmission_file/x.zip", zipped(inside))])
    assert found_in(tmp_path / "a.zip")["Cy_14"] == b"3"
    monkeypatch.setattr(archives, "LARGEST_ARCHIVE", 100)
    assert found_in(tmp_path / "a.zip")["Cy_14"] == "too_large"


def test_names_in_the_zips_of_one_student_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(submissions, "MOST_NAMES", 50)
    inside = zipped([*((f"{k}.py", b"") for k in range(29)), ("x.ipynb", b"3")])
    files = [(f"Cy_14_assignsubmission_file/{k}.zip", inside) for k in "ab"]
    assert found_in(save(tmp_path / "one", files[:1])) == {"Cy_14": b"3"}
    assert found_in(save(tmp_path / "two", files)) == {"Cy_14": "too_large"}


def without_flag(data):
    """A zip as macOS writes it: names in UTF-8, without the flag."""
    for sign, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        start = 0
        while (start := data.find(sign, start)) >= 0:
            flags = struct.unpack_from("<H", data, start + at)[0]
            data = data[: start + at] + struct.pack("<H", flags & ~archives.IN_UTF8) + data[start + at + 2 :]
            start += 4
    return data


@pytest.mark.parametrize("name", ["Zoë", "Zoe\u0308", "李小龍", "Ada", "🐉"])
def test_a_name_from_a_mac_stays_itself(name, tmp_path):
    members = [(f"{name}_14_assignsubmission_file/ex02 {name}.ipynb", b"3")]
    (tmp_path / "a.zip").write_bytes(without_flag(zipped(members)))
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert (archive.namelist()[0] == members[0][0]) == name.isascii()  # zipfile alone does not know
    (one,) = read_all(tmp_path / "a.zip")
    assert one.student == f"{archives.clean(name)}_14"
    assert one.notebook("ex02")[1] == b"3"


def test_a_name_in_an_old_code_page_is_as_zipfile_reads_it(tmp_path):
    data = zipped([("Xoe.ipynb", b"3")]).replace(b"Xoe", b"Z\x94e")
    (tmp_path / "a.zip").write_bytes(data)
    assert list(found_in(tmp_path / "a.zip")) == ["Zöe"]


@pytest.mark.parametrize("suffix", ["ipynb.txt", "ipynb.json", "IPYNB", "ipynb.TXT", "ipynb.download"])
def test_a_notebook_with_one_more_suffix_is_one(suffix, tmp_path):
    members = [*MOODLE, (f"Cy_14_assignsubmission_file/ex02.{suffix}", b"3")]
    assert found_in(save(tmp_path / "week", members))["Cy_14"] == b"3"
    (one,) = read_all(save(tmp_path / "plain", [(f"Zoë.{suffix}", b"3")]))
    assert (one.student, one.notebook("ex02")[1]) == ("Zoë", b"3")


@pytest.mark.parametrize("name", ["ex02.json", "ex02.txt", "ex02"])
def test_a_notebook_of_any_name_is_known_by_its_content(name, tmp_path):
    found = found_in(save(tmp_path / "week", [("Cy_14_assignsubmission_file/" + name, sheet())]))
    assert found == {"Cy_14": sheet()}
    found = found_in(save(tmp_path / "none", [("Cy_14_assignsubmission_file/" + name, b'{"cells": 3}')]))
    assert found == {"Cy_14": "no_notebook"}


# Several notebooks of one student


def test_two_notebooks_with_the_same_code_are_one(tmp_path):
    book = json.loads(sheet())
    book["cells"].insert(0, {"cell_type": "markdown", "metadata": {}, "source": "Me."})
    book["cells"].append(cell("  \n"))
    book["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "hello"}]
    again = json.dumps(book).encode()
    folder = save(tmp_path / "week", [("Ada/a.ipynb", sheet()), ("Ada/b.ipynb", again), ("Bo/x.ipynb", b"2")])
    assert found_in(folder)["Ada"] == sheet()
    save(folder, [("Ada/b.ipynb", sheet(LAYER_NORM, MEAN_SQUARE + "# changed"))])
    assert found_in(folder)["Ada"] == "two_files"


@pytest.fixture
def several(tmp_path):
    books = [("Ada Lovelace_12_assignsubmission_file/ex02.ipynb", sheet()), *MOODLE[1:]]
    books += [("Ada Lovelace_12_assignsubmission_file/old/ex02.ipynb", notebook("x = 1"))]
    books += [("Ada Lovelace_12_assignsubmission_file/ex02 (1).ipynb", notebook("x = 2"))]
    return save(tmp_path / "week", [("C1.zip", zipped(books))])


def which(folder, *rows):
    (folder / "which.csv").write_text("\n".join(["student,notebook", *rows, ""]), "utf-8")
    return folder


@pytest.mark.parametrize(
    "row", ["Ada Lovelace,ex02 (1).ipynb", "Ada Lovelace_12,Ada Lovelace_12_assignsubmission_file/ex02 (1).ipynb"]
)
def test_the_teacher_says_which_notebook_counts(row, several, tmp_path):
    assert found_in(several)["Ada Lovelace_12"] == "two_files"
    assert found_in(which(several, row)) == {"Ada Lovelace_12": notebook("x = 2"), "Bo Li_13": b"2"}
    (several / "C1.zip").rename(tmp_path / "C1.zip")  # beside a zip that is named itself
    (several / "which.csv").rename(tmp_path / "which.csv")
    assert found_in(tmp_path / "C1.zip")["Ada Lovelace_12"] == notebook("x = 2")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["Adda Lovelace,ex02 (1).ipynb"], "row 2 of .*which.csv: there is no student called 'Adda Lovelace'; did you"),
        (["Bo Li,b.ipynb", "Ada Lovelace,x.ipynb"], "row 3 of .*: Ada Lovelace_12 handed in no 'x.ipynb'; their files"),
        (["Ada Lovelace,ex02.ipynb"], "Ada Lovelace_12 handed in more than one 'ex02.ipynb'; their files are Ada"),
        (["Ada Lovelace"], "row 2 of .* must have 2 cells, student and notebook; it has 1"),
        (["Ada Lovelace,ex02 (1).ipynb", "Ada Lovelace_12,old/ex02.ipynb"], "row 3 of .*handed in no 'old/ex02.ipynb'"),
        (["Bo Li,b.ipynb", "Bo Li_13,Bo Li_13_assignsubmission_file/b.ipynb", "Ada Lovelace,ex02 (1).ipynb",
          "Ada Lovelace,Ada Lovelace_12_assignsubmission_file/ex02.ipynb"], "row 5 of .*has a row already; remove"),
    ],
)  # fmt: skip
def test_a_bad_row_is_named_with_the_fix(rows, message, several):
    with pytest.raises(Refusal, match=message):
        found_in(which(several, *rows))


# When a hand-in came

ZONE = timezone(timedelta(hours=1))
DEADLINE = datetime(2026, 11, 20, 18, 0, tzinfo=ZONE)
ON_TIME = "Friday, 20 November 2026, 5:59 PM"


@pytest.mark.parametrize(
    ("cell", "time"),
    [
        ("Friday, 20 November 2026, 8:05 PM", (20, 20, 5)),
        ("Friday, November 20, 2026, 8:05 PM", (20, 20, 5)),  # American English
        ("Friday, 20 November 2026, 8:05\u202fPM", (20, 20, 5)),
        ("Friday, 20 November 2026, 12:05 AM", (20, 0, 5)),
        ("Friday, 20 November 2026, 12:05 pm", (20, 12, 5)),
        ("Friday, 20 November 2026, 20:05", (20, 20, 5)),
        ("Tuesday, 3 November 2026, 08:05:59", (3, 8, 5, 59)),
    ],
)
def test_the_times_of_moodle_s_worksheet_are_read(cell, time, tmp_path):
    assert moment(cell, tmp_path) == datetime(2026, 11, *time)


@pytest.mark.parametrize("cell", ["Freitag, 20. November 2026, 18 Uhr", "20/11/26, 20:05", "gestern, 20:05", "1 May"])
def test_a_time_in_another_form_is_named_with_the_fix(cell, tmp_path):
    with pytest.raises(Refusal, match="Set Moodle's language to English"):
        moment(cell, tmp_path / "Grades.csv")


def lates(folder):
    return {one.student: one.late(DEADLINE) for one in read_all(folder)}


def test_on_moodle_lateness_is_the_worksheet_s_and_never_that_of_the_zip(tmp_path):
    with zipfile.ZipFile(tmp_path / "C1.zip", "w") as archive:  # downloaded a week later
        for name, data in MOODLE:
            archive.writestr(zipfile.ZipInfo(name, (2026, 11, 27, 9, 0, 0)), data)
    assert lates(tmp_path / "C1.zip") == {"Ada Lovelace_12": NO_TIMES, "Bo Li_13": NO_TIMES}
    assert {one.late(None) for one in read_all(tmp_path / "C1.zip")} == {""}
    (tmp_path / "Grades-C1.csv").write_text(WORKSHEET.format("gestern", "-"), "utf-8", newline="")
    assert {one.late(None) for one in read_all(tmp_path / "C1.zip")} == {""}
    with pytest.raises(Refusal, match="cannot be read: 'gestern'"):
        lates(tmp_path / "C1.zip")
    sheets = WORKSHEET.format(f'"{ON_TIME}"', '"Friday, 20 November 2026, 6:30 PM"')
    (tmp_path / "Grades-C1.csv").write_text(sheets, "utf-8", newline="")
    late = {"Ada Lovelace_12": "", "Bo Li_13": "30 min after the deadline, by Moodle's worksheet"}
    assert lates(tmp_path / "C1.zip") == late
    folder = save(tmp_path / "week", [("C1.zip", (tmp_path / "C1.zip").read_bytes())])
    assert lates(folder)["Bo Li_13"] == NO_TIMES
    (folder / "Grades-C1.csv").write_text(sheets, "utf-8", newline="")
    assert lates(folder) == late


def test_a_worksheet_of_another_assignment_knows_nobody(tmp_path):
    """Participants have other numbers there; and a team's number may be a student's."""
    folder = save(tmp_path / "week", [(name.replace("Bo Li", "Group B"), data) for name, data in MOODLE])
    sheets = WORKSHEET.format(f'"{ON_TIME}"', f'"{ON_TIME}"').replace("Participant 12", "Participant 99")
    (folder / "Grades-C1.csv").write_text(sheets, "utf-8", newline="")
    assert set(lates(folder).values()) == {NO_TIMES}


def test_of_two_worksheets_the_later_time_counts(tmp_path):
    folder = save(tmp_path / "week", MOODLE)
    for k, hour in enumerate((7, 8, 6)):
        text = WORKSHEET.format(f'"{ON_TIME}"', f'"Friday, 20 November 2026, {hour}:00 PM"')
        (folder / f"Grades ({k}).csv").write_text(text, "utf-8", newline="")
    assert lates(folder)["Bo Li_13"].startswith("2 h 0 min after")
