"""Handing back: one zip in the layout of each platform, and its gradebook with the points of those who match."""

import io
import json
import zipfile

import nbformat
import pytest
from classroom.desk import desk, record, result
from classroom.hand_ins import PATIENT, grade_class, sheet, write_zip
from classroom.test_gradebook import CANVAS, MOODLE, NBGRADER

from subnorm_classroom import __main__ as command_line
from subnorm_classroom.reports import handback

NOTES = {"timestamp.txt": "2026-11-20 15:58:23.948203 UTC", "submission_secret.txt": "s3"}
FULL = [result("stream", 16, 16, "right"), result("paths", 1, 4)]  # 20 points at most, as in the samples


def hand_back(out, to, book=None, *options):
    path = out.parent / "Grades-C1-77.csv"
    if book is not None:
        path.write_bytes(book.encode())
        options = ["--gradebook", str(path), *options]
    return command_line.main(["handback", str(out), "--to", to, *options])


def returned(out, to):
    with zipfile.ZipFile(out / f"handback/feedback-ex01-{to}.zip") as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def points(out):
    return (out / "handback/Grades-C1-77.csv").read_bytes().decode()


def of_moodle(name, participant, **more):
    who = f"{name}_{participant}"
    return record(who, f"{who}_assignsubmission_file/lab.ipynb", **{"results": FULL, **more})


def test_moodle_gets_a_folder_for_each_participant_and_its_worksheet(tmp_path, capsys):
    out = desk(tmp_path / "grades", of_moodle("Ada ONeil the 1st", 4711), of_moodle("Bo_Li", 4712))
    assert hand_back(out, "moodle", MOODLE) == 0
    pages = returned(out, "moodle")
    assert set(pages) == {f"Participant_{number}_assignfeedback_file/feedback.html" for number in (4711, 4712)}
    assert "Ada ONeil" in pages["Participant_4711_assignfeedback_file/feedback.html"]
    assert points(out) == MOODLE.replace('- ",,,,20', '- ",,,17.00,20').replace('"5.00"', '"17.00"')
    said = capsys.readouterr().out
    assert "points of 2 of 2 students" in said
    size = (out / "handback/feedback-ex01-moodle.zip").stat().st_size
    assert f"feedback-ex01-moodle.zip: 2 files, {size / 1000:.0f} kB" in said
    assert "some versions of Moodle do not take a 0" in said


def test_those_who_do_not_match_are_listed_and_the_others_handed_back(tmp_path, capsys):
    others = [
        of_moodle("Group A", 4712), of_moodle("Una", 4799), record("Vic", "Vic.ipynb"), of_moodle("Cy", 4713),
    ]  # fmt: skip
    out = desk(tmp_path / "grades", of_moodle("Ada ONeil the 1st", 4711), *others)
    assert hand_back(out, "moodle", MOODLE) == 1
    said = capsys.readouterr()
    assert "points of 1 of 5 students" in said.out
    assert said.err.splitlines() == [
        "handback: 4 to look after by hand:",
        "  Cy_4713: Moodle says that this grade cannot be changed",
        "  Group A_4712: participant 4712 is Bo_Li in Grades-C1-77.csv; a team?",
        "  Una_4799: no row in Grades-C1-77.csv",
        "  Vic: the submission has no name of Moodle's",
    ]
    assert points(out) == MOODLE.replace('- ",,,,20', '- ",,,17.00,20')
    assert {name.split("_")[1] for name in returned(out, "moodle")} == {"4711", "4713"}


@pytest.mark.parametrize(
    ("twice", "once", "row"),
    [
        (("Ada ONeil the 1st", "Ada O'Neil, the 1st", 4711), ("Bo Li", 4712), ('"5.00"', '"17.00"')),
        (("Bo Li", "Bo_Li", 4712), ("Ada ONeil the 1st", 4711), ('- ",,,,20', '- ",,,17.00,20')),
    ],
)
def test_two_submissions_of_one_number_are_nobody_s(twice, once, row, tmp_path, capsys):
    *names, participant = twice
    out = desk(tmp_path / "grades", *(of_moodle(name, participant) for name in names), of_moodle(*once))
    assert hand_back(out, "moodle", MOODLE) == 1
    assert "submissions of one number; only one can be right" in capsys.readouterr().err
    assert points(out) == MOODLE.replace(*row)
    assert set(returned(out, "moodle")) == {f"Participant_{once[1]}_assignfeedback_file/feedback.html"}


def test_points_that_nobody_gave_are_not_written(tmp_path, capsys):
    ours = [result("stream", 0, 16, "needs_library"), FULL[1]]
    out = desk(
        tmp_path / "grades",
        of_moodle("Ada ONeil the 1st", 4711, problem="two_files"),
        of_moodle("Bo Li", 4712, results=ours),
    )
    assert hand_back(out, "moodle", MOODLE) == 1
    said = capsys.readouterr().err
    assert "no points, because of two_files; set marks by hand" in said
    assert "the grader could not judge stream; repair it" in said
    assert points(out) == MOODLE
    assert len(returned(out, "moodle")) == 2  # the feedback says why
    for student in ("Ada ONeil the 1st", "Bo Li"):
        assert command_line.main(["mark", str(out), student, "stream", "10", "--reason", "seen in class"]) == 0
    assert hand_back(out, "moodle", MOODLE) == 0
    assert points(out) == MOODLE.replace('- ",,,,20', '- ",,,11.00,20').replace('"5.00"', '"11.00"')


@pytest.mark.parametrize(("most", "scaled"), [("100", "85.00"), ("33", "28.05"), ("10", "8.50"), ("11.57", "9.83")])
def test_another_maximum_is_refused_or_converted(most, scaled, tmp_path, capsys):
    out = desk(tmp_path / "grades", of_moodle("Ada ONeil the 1st", 4711))
    """11.57 · 17/20 is 9.8345: rounded once, to 9.83."""
    other = MOODLE.replace("20.00", f"{float(most):.2f}")
    assert hand_back(out, "moodle", other) == 1
    assert f"the maximum in the gradebook is {most}, that of the sheet 20: change" in capsys.readouterr().err
    assert not (out / "handback").exists()
    assert hand_back(out, "moodle", other, "--scale") == 0
    assert points(out) == other.replace(f'- ",,,,{most}', f'- ",,,{scaled},{most}')


def test_moodle_needs_its_worksheet_and_no_file_is_overwritten(tmp_path, capsys):
    out = desk(tmp_path / "grades", of_moodle("Ada ONeil the 1st", 4711))
    assert hand_back(out, "moodle") == 1
    assert "the number of a team looks like that of another student" in capsys.readouterr().err
    (out / "handback").mkdir()
    (out / "handback/a.csv").write_text(MOODLE, "utf-8")
    assert command_line.main(["handback", str(out), "--to", "moodle", "--gradebook", str(out / "handback/a.csv")]) == 1
    assert "would be overwritten" in capsys.readouterr().err
    assert (out / "handback/a.csv").read_text("utf-8") == MOODLE.replace("\r\n", "\n")
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo/a.csv").write_text(MOODLE, "utf-8", newline="")
    options = ["--to", "moodle", "--gradebook", str(tmp_path / "zoo/a.csv")]
    assert command_line.main(["handback", str(out), *options]) == 0
    assert "17.00" in (out / "handback/a.csv").read_text("utf-8")
    assert "17.00" not in (tmp_path / "zoo/a.csv").read_text("utf-8")
    assert hand_back(desk(tmp_path / "two/grades", finished=False), "moodle", MOODLE) == 1
    assert "run grade first" in capsys.readouterr().err


def test_canvas_gets_its_own_file_names_and_kinds_back(tmp_path, capsys):
    given = [
        "lovelaceada_LATE_1234_98_lab.ipynb",
        "libozoë_1235_97_lab.zip",
        "cyd_1236_96_a.HTML",
        "LATE_anon_x7K_95_l.ipynb",
    ]
    lost = ["di_1237_text.html", "ed_1238_94_a.pdf", "Flo.ipynb"]
    out = desk(tmp_path / "grades", *[record(name, name, results=FULL) for name in given + lost])
    assert hand_back(out, "canvas") == 1
    with zipfile.ZipFile(out / "handback/feedback-ex01-canvas.zip") as archive:
        assert sorted(archive.namelist()) == sorted(given)
        book = json.loads(archive.read(given[0]))
        with archive.open(given[1]) as inner, zipfile.ZipFile(inner) as pages:
            assert pages.namelist() == ["feedback.html"]
        assert archive.read(given[2]).startswith(b"<!DOCTYPE html>")
    nbformat.validate(book)
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)  # from 4.5 on, a cell has an id
    assert "17 of 20 points." in book["cells"][0]["source"]
    said = capsys.readouterr().err
    assert all(name in said for name in lost)
    assert "Canvas would show the feedback as a file .pdf" in said
    assert not (out / "handback/Grades-C1-77.csv").exists()


def test_canvas_s_gradebook_takes_the_points_and_keeps_what_is_excused(tmp_path, capsys):
    given = ["lovelaceada_1234_98_lab.ipynb", "libozoë_1235_97_lab.ipynb", "bob_1236_1_1237_96_lab.ipynb"]
    out = desk(tmp_path / "grades", *[record(name, name, results=FULL) for name in given])
    assert hand_back(out, "canvas", CANVAS) == 1
    assert points(out) == CANVAS.replace("Sec 1,,7.50", "Sec 1,17.00,7.50")
    said = capsys.readouterr().err
    assert "libozoë_1235_97_lab.ipynb: Canvas says EX" in said
    assert "user 1236 is" in said


def test_nbgrader_gets_its_feedback_folders_with_what_it_needs_to_release_them(tmp_path, capsys):
    ada = record("ada", "ada/ex01/lab.ipynb", results=FULL, **NOTES)
    out = desk(tmp_path / "grades", ada)
    assert hand_back(out, "nbgrader", NBGRADER) == 0
    files = returned(out, "nbgrader")
    folder = "feedback/ada/ex01"
    assert set(files) == {f"{folder}/lab.html", f"{folder}/timestamp.txt", f"{folder}/submission_secret.txt"}
    assert (files[f"{folder}/submission_secret.txt"], files[f"{folder}/timestamp.txt"]) == (
        "s3",
        NOTES["timestamp.txt"],
    )
    assert points(out) == NBGRADER.replace("0.0,1.5,0.0,20.0", "17.0,1.5,15.5,20.0")
    bo = record("bo", "bo/ex01/lab.ipynb", results=FULL)
    out = desk(tmp_path / "two/grades", ada, bo, record("cy", "cy/ex01/lab.pdf", results=FULL))
    capsys.readouterr()
    assert hand_back(out, "nbgrader") == 1
    assert "feedback/bo/ex01/lab.html" in returned(out, "nbgrader")
    assert capsys.readouterr().err.splitlines()[1:] == [
        "  bo: nbgrader cannot release the feedback, because the submission has no submission_secret.txt and "
        "timestamp.txt",
        "  cy: there is no file .ipynb where nbgrader looks for it; send the page from feedback/",
    ]


def test_nbgrader_gets_a_page_for_each_notebook_at_its_place_and_for_nothing_else(tmp_path):
    given = ["ada/ex01/b.ipynb", "ada/ex01/a.IPYNB", "ada/ex01/data.csv", "ada/c.ipynb", "ada/ex01/old/d.ipynb"]
    out = desk(tmp_path / "grades", record("ada", *given, "cy/ex02/e.ipynb", results=FULL, **NOTES))
    assert hand_back(out, "nbgrader") == 0
    names = ["a.html", "b.html", "e.html", "submission_secret.txt", "timestamp.txt"]
    assert sorted(returned(out, "nbgrader")) == [f"feedback/ada/ex01/{name}" for name in names]


def test_the_size_of_the_zip_is_printed_in_rounded_kilobytes(tmp_path, capsys, monkeypatch):
    out = desk(tmp_path / "grades", of_moodle("Ada ONeil the 1st", 4711))
    monkeypatch.setattr(handback, "zipped", lambda files: b"0" * 1_600_600)
    assert hand_back(out, "moodle", MOODLE) == 0
    assert "feedback-ex01-moodle.zip: 1 files, 1601 kB" in capsys.readouterr().out


@pytest.mark.parametrize("to", ["canvas", "nbgrader", "moodle"])
def test_handing_back_twice_gives_the_same_bytes(to, tmp_path):
    out = desk(tmp_path / "grades", record("a", "lovelaceada_1234_98_lab.ipynb", results=FULL))
    books = {"canvas": CANVAS, "nbgrader": NBGRADER, "moodle": MOODLE}
    found = []
    for _ in range(2):
        hand_back(out, to, books[to])
        found.append({path.name: path.read_bytes() for path in (out / "handback").iterdir()})
    assert found[0] == found[1]


def test_a_full_disk_is_a_sentence_and_leaves_the_old_file(tmp_path, capsys, monkeypatch):
    from subnorm_lab import _files

    out = desk(tmp_path / "grades", of_moodle("Ada ONeil the 1st", 4711))
    assert hand_back(out, "moodle", MOODLE) == 0
    before = points(out)
    real = _files.Path.write_bytes

    def full(path, data):
        if path.parent.name == "handback":
            raise OSError(28, "No space left on device", str(path))
        return real(path, data)

    capsys.readouterr()
    (out.parent / "Grades-C1-77.csv").write_bytes(MOODLE.replace("Bo_Li", "Bo_Ly").encode())
    monkeypatch.setattr(_files.Path, "write_bytes", full)
    path = out.parent / "Grades-C1-77.csv"
    assert command_line.main(["handback", str(out), "--to", "moodle", "--gradebook", str(path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("handback: the grades cannot be written to")
    assert "No space left on device. Make room there" in said
    assert said.count("\n") == 1
    assert points(out) == before
    monkeypatch.undo()
    assert hand_back(out, "moodle", MOODLE) == 0


def in_zip(**files):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"my sheet/{name}.ipynb", content)
    return inner.getvalue()


WEEKS = {  # what a platform's download holds, its gradebook, what changes in it, and the names in the feedback zip
    "moodle": (
        [("Ada ONeil the 1st_4711_assignsubmission_file/a.ipynb", sheet()),
         ("Bo Li_4712_assignsubmission_file_b.zip", in_zip(b=sheet()))],
        MOODLE.replace("20.00", "3.00"), [('- ",,,,3', '- ",,,3.00,3'), ('"5.00"', '"3.00"')],
        ["Participant_4711_assignfeedback_file/feedback.html", "Participant_4712_assignfeedback_file/feedback.html"],
    ),
    "canvas": (
        [("lovelaceada_LATE_1234_98_a.ipynb", sheet()), ("cyd_1236_97_b-1.zip", in_zip(b=sheet()))],
        CANVAS.replace("ex01", "quick").replace("20.00", "3.00"), [("Sec 1,,7.50", "Sec 1,3.00,7.50")],
        ["cyd_1236_97_b-1.zip", "lovelaceada_LATE_1234_98_a.ipynb"],
    ),
    "nbgrader": (
        [("submitted/ada/ex01/a.ipynb", sheet()), *[(f"submitted/ada/ex01/{k}", v.encode()) for k, v in NOTES.items()]],
        NBGRADER.replace("20.0", "3.0"), [("0.0,1.5,0.0,3.0", "3.0,1.5,1.5,3.0")],
        [f"feedback/ada/ex01/{name}" for name in ("a.html", "submission_secret.txt", "timestamp.txt")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("to", WEEKS)
def test_the_week_from_the_platform_s_download_to_what_it_takes_back(to, quick_set, tmp_path):
    download, book, changed, names = WEEKS[to]
    write_zip(tmp_path / "download.zip", download)
    assert grade_class("quick", tmp_path / "download.zip", tmp_path / "grades", limits=PATIENT) == 0
    assert hand_back(tmp_path / "grades", to, book) == 0
    for was, now in changed:
        assert was in book
        book = book.replace(was, now, 1)
    assert points(tmp_path / "grades") == book
    with zipfile.ZipFile(tmp_path / f"grades/handback/feedback-quick-{to}.zip") as archive:
        assert sorted(archive.namelist()) == names
