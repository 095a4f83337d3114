"""The gradebook files of Moodle, Canvas and nbgrader: the points go in, and every other byte stays.

The headers and the forms of cells are those that the platforms write: Moodle's `mod/assign/gradingtable.php` and
`mod/assign/feedback/offline/tests/fixtures/assignfeedback_offline_test_worksheet_1.csv` (the German one as in a
worksheet that a user published), Canvas's `lib/gradebook_exporter.rb`, nbgrader's `nbgrader/plugins/export.py`.
"""

import pytest
from classroom.desk import record

from subnorm_classroom.errors import Refusal
from subnorm_classroom.reports.gradebook import PLATFORMS, UnmatchedStudent, letters, like

MOODLE = (
    '\ufeff"Identifier","Full name","Email address","Status","Marker 1","Marker 2","Grade","Maximum grade",'
    '"Marking workflow state","Grade can be changed","Last modified (submission)","Online text",'
    '"Last modified (grade)","Feedback comments"\r\n'
    '"Participant 4711","Ada O\'Neil, the ""1st""",a@x.edu,"Submitted for grading - ",,,,20.00,"Not marked",Yes,'
    '"Friday, 20 November 2026, 8:00 PM",,-,"two\nlines"\r\n'
    '"Participant 4712","Bo_Li",b@x.edu,"No submission",,,"5.00",20.00,"Not marked",Yes,-,,-,\r\n'
    '"Participant 4713",Cy,c@x.edu,"Submitted for grading",,,,20.00,"Not marked",No,-,,-,\r\n'
)
OLDER = (
    'Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed",'
    '"Last modified (submission)","Last modified (grade)","Feedback comments"\n'
    "Participant 4711,Ada ONeil the 1st,a@x.edu,Submitted,,20.00,Yes,-,-,\n"
)
GERMAN = (
    'ID,"Vollständiger Name",E-Mail-Adresse,Status,Bewertung,Bestwertung,"Bewertung kann geändert werden",'
    '"Zuletzt geändert (Abgabe)","Texteingabe online","Zuletzt geändert (Bewertung)","Feedback als Kommentar"\n'
    'Teilnehmer/in4711,"Ada ONeil the 1st",a@x.de,"Zur Bewertung abgegeben",,"20,00",Ja,"Dienstag, 2. Dezember 2025, '
    '10:37",,-,\n'
)
ANONYMOUS = (
    "Identifier,Status,Grade,Maximum grade,Grade can be changed,Last modified (grade)\nParticipant 4711,,,20,Yes,-\n"
)
MANUAL = ",,,,,Manual Posting,,,\n"
CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Lab ex01 (4242),Lab ex02 (4243),Labs Current Score,Final Score\n"
    f"{MANUAL}"
    "    Points Possible,,,,,20.00,8.00,(read only),(read only)\n"
    '"Lovelace, Ada",1234,S-1,ada,Sec 1,,7.50,93.75,93.75\n'
    '"Li-Bo, Zoë",1235,S-2,bo,Sec 1,EX,,,\n'
    '"=""Cy, D""",1236,S-3,cy,"Sec 1 and 2",3.00,N/A,,\n'
    '"Student, Test",9999,,0ab1,Sec 1,,,,\n'
)
LAST_FIRST = (  # two options of a user
    "LastName;FirstName;ID;SIS Login ID;Section;Lab (4242)\n    Points Possible;;;;;20,00\n"
    "Lovelace;Ada;1234;ada;Sec 1;\n"
)
NBGRADER = (
    "assignment,duedate,timestamp,student_id,last_name,first_name,email,raw_score,late_submission_penalty,score,max_score\n"
    "ex01,,2026-11-20 15:58:23.948203,ada,Lovelace,Ada,None,0.0,1.5,0.0,20.0\n"
    "ex02,,,ada,Lovelace,Ada,None,0.0,0.0,0.0,20.0\n"
    'ex01,,,bo,"Li,Bo,,0.0,0.0,0.0,20.0\n'
    "ex01,,,cy,Lee, Jr,Cy,,0.0,0.0,0.0,20.0\n"
)
ADA = "Ada ONeil, the 1st_4711_assignsubmission_file/lab.ipynb"


def gradebook(tmp_path, platform, text, column=None):
    path = tmp_path / "book.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return PLATFORMS[platform](path, "ex01", column)


@pytest.mark.parametrize(
    ("platform", "text", "handed_in", "column", "was", "now"),
    [
        ("moodle", MOODLE, ADA, None, '- ",,,,20.00', '- ",,,12.50,20.00'),
        ("moodle", MOODLE, "Bo Li_4712_assignsubmission_file_/lab.ipynb", None, '"5.00"', '"12.50"'),
        ("moodle", MOODLE, "Bo_Li_4712_assignsubmission_file_/lab.ipynb", None, '"5.00"', '"12.50"'),
        ("moodle", OLDER, ADA, None, "Submitted,,20", "Submitted,12.50,20"),
        ("moodle", OLDER.replace(",", ";"), ADA, None, "Submitted;;20", "Submitted;12.50;20"),
        ("moodle", GERMAN, ADA, "Bewertung", 'abgegeben",,"20,00"', 'abgegeben","12,50","20,00"'),
        ("moodle", ANONYMOUS, "Participant_4711_assignsubmission_file_lab.ipynb", None, "4711,,,20", "4711,,12.5,20"),
        ("canvas", CANVAS, "lovelaceada_LATE_1234_98765_lab.ipynb", None, "Sec 1,,7.50", "Sec 1,12.50,7.50"),
        ("canvas", CANVAS, "lovelaceada_1234_98765_lab.ipynb", "4243", "Sec 1,,7.50", "Sec 1,,12.50"),
        ("canvas", CANVAS, "cyd_1236_98_a.ipynb", "Lab ex01", '2",3.00', '2",12.50'),
        ("canvas", CANVAS.replace(MANUAL, ""), "libozoë_1235_1_x.ipynb", "4243", "Sec 1,EX,,", "Sec 1,EX,12.50,"),
        ("canvas", LAST_FIRST, "lovelaceada_1234_98_a.ipynb", "Lab", "Sec 1;", "Sec 1;12,50"),
        ("nbgrader", NBGRADER, "ada/ex01/lab.ipynb", None, "0.0,1.5,0.0,20.0", "12.5,1.5,11.0,20.0"),
        ("nbgrader", f"\ufeff{NBGRADER}", "ada/ex01/lab.ipynb", None, "0.0,1.5,0.0,20.0", "12.5,1.5,11.0,20.0"),
        ("nbgrader", NBGRADER, "ada/ex01/lab.ipynb", "score", "1.5,0.0,20.0", "1.5,12.5,20.0"),
        ("nbgrader", NBGRADER, "ada/ex01/lab.ipynb", "email", "None,0.0,1.5", "12.5,0.0,1.5"),
        (
            "nbgrader",
            NBGRADER.replace("1.5,0.0", ",0.0"),
            "ada/ex01/lab.ipynb",
            None,
            "0.0,,0.0,20.0",
            "12.5,,12.5,20.0",
        ),
        ("nbgrader", NBGRADER.replace("1.5", "13.0"), "ada/ex01/lab.ipynb", None, "0.0,13.0,0.0", "12.5,13.0,0.0"),
        ("moodle", OLDER.replace(",", "\t"), ADA, None, "Submitted\t\t20", "Submitted\t12.50\t20"),
        ("moodle", OLDER.replace("Participant", "\n\nParticipant"), ADA, None, "Submitted,,20", "Submitted,12.50,20"),
    ],
)
def test_only_the_cell_of_the_points_changes(platform, text, handed_in, column, was, now, tmp_path):
    table = gradebook(tmp_path, platform, text, column)
    table.put(table.find(record("x", handed_in)), 12.5)
    assert was in text
    assert table.edited() == text.replace(was, now, 1)


def test_canvas_gets_no_byte_order_mark(tmp_path):
    assert gradebook(tmp_path, "canvas", "\ufeff" + CANVAS).edited() == CANVAS


@pytest.mark.parametrize(
    ("platform", "text", "handed_in", "reason"),
    [
        ("moodle", MOODLE, "Ada ONeil the 1st_4799_assignsubmission_file/lab.ipynb", "no row in book.csv"),
        ("moodle", MOODLE, "Group A_4711_assignsubmission_file/lab.ipynb", "participant 4711 is Ada .* a team"),
        ("moodle", MOODLE, "Ada.ipynb", "no name of Moodle's"),
        ("moodle", MOODLE, "", "no name of Moodle's"),
        ("moodle", OLDER + OLDER.splitlines()[1] + "\n", ADA, "2 rows in book.csv"),
        ("canvas", CANVAS, "bob_1234_1_9999_98765_lab.ipynb", "user 1234 is Lovelace, Ada"),
        ("canvas", CANVAS, "zed_1234_98765_lab.ipynb", "user 1234 is Lovelace, Ada"),
        ("canvas", CANVAS, "lovelaceada_1299_98765_lab.ipynb", "no row"),
        ("canvas", CANVAS, "lovelaceada_1234_text.html", "no name of Canvas's"),
        ("canvas", CANVAS, "anon_x7Kp2_98765_lab.ipynb", "no name of Canvas's"),
        ("nbgrader", NBGRADER, "ada/ex03/lab.ipynb", "no row"),
        ("nbgrader", NBGRADER, "Ada/ex01/lab.ipynb", "no row"),
        ("nbgrader", NBGRADER, "cy/ex01/lab.ipynb", "no row"),
        ("nbgrader", NBGRADER + "ex01,,,di\n", "di/ex01/lab.ipynb", "no row"),
        ("nbgrader", NBGRADER, "ada.ipynb", "not in a folder of nbgrader"),
        ("nbgrader", NBGRADER, "ada/ex01/new/lab.ipynb", "not in a folder of nbgrader"),
    ],
)
def test_a_student_who_does_not_match_is_not_guessed(platform, text, handed_in, reason, tmp_path):
    table = gradebook(tmp_path, platform, text)
    with pytest.raises(UnmatchedStudent, match=reason):
        table.find(record("x", handed_in))
    assert table.edited() == text


def test_what_the_student_named_inside_a_folder_does_not_count(tmp_path):
    table = gradebook(tmp_path, "moodle", MOODLE)
    inside = "Bo Li_4712_assignsubmission_file/Ada ONeil the 1st_4711_assignsubmission_file/x.ipynb"
    assert table.find(record("x", inside)) == 2


def test_the_first_thing_handed_in_names_the_student(tmp_path):
    table = gradebook(tmp_path, "moodle", MOODLE)
    assert table.find(record("x", ADA, "Bo Li_4712_assignsubmission_file/lab.ipynb")) == 1


def test_the_students_are_all_who_may_hand_in(tmp_path):
    """Without those whom Canvas excuses, its own student, other assignments, and rows of another form."""
    assert gradebook(tmp_path, "moodle", MOODLE).students() == [1, 2, 3]
    later = CANVAS + '"Young, Xu",1240,S-5,xu,Sec 1,,,,\n'
    assert gradebook(tmp_path, "canvas", later).students() == [3, 5, 7]
    assert gradebook(tmp_path, "canvas", later, "4243").students() == [3, 4, 7]
    assert gradebook(tmp_path, "canvas", later.replace(MANUAL, "")).students() == [2, 4, 6]
    assert gradebook(tmp_path, "nbgrader", NBGRADER + "ex00,,,ada,,,,,,,20.0\nex01,,,di\n").students() == [1, 3]


@pytest.mark.parametrize(
    ("platform", "text", "column", "message"),
    [
        ("moodle", CANVAS, None, "is not Moodle's grading worksheet"),
        ("moodle", GERMAN, None, "name the column of the grade with --column, one of ID, Vollst"),
        ("moodle", GERMAN, "Note", "has no column 'Note'; its columns are ID, "),
        ("moodle", OLDER.replace("20.00", '"fail, pass"'), None, "there must be the maximum"),  # a scale
        ("moodle", "Identifier,Maximum grade,Grade\nParticipant 1,20,\n", None, "there must be the maximum"),
        ("moodle", MOODLE, "Marker 2", "right of the column 'Marker 2' in .* there must be the maximum"),
        ("moodle", MOODLE.replace("Marker 2", "Grade"), None, "has more than one column 'Grade'"),
        ("moodle", MOODLE.replace("Participant 4711", "Participant"), None, "is not Moodle's"),
        ("moodle", MOODLE.replace("Participant 4712", "Participant"), None, "is not Moodle's"),
        ("moodle", OLDER.replace("Participant 4711", '"P\n4711"').replace(",-,-,", ",-,-"), None, "line 2 of"),
        ("moodle", OLDER.replace(",-,-,", ",-,-"), None, "line 2 of .* has 9 cells, but the header has 10"),
        ("moodle", OLDER.replace(",-,-,", ",-,-,,"), None, "line 2 of .* has 11 cells, but the header has 10"),
        ("moodle", OLDER + ",x\n", None, "line 3 of .* has 2 cells, but the header has 10"),
        ("moodle", OLDER.replace("Ada ", '"Ada '), None, "line 2 of .* a quote is not closed"),
        ("moodle", OLDER.splitlines()[0], None, "has no row below its header"),
        ("moodle", "", None, "has no row below its header"),
        ("moodle", GERMAN.encode("cp1252"), None, "is not in UTF-8"),
        ("moodle", b"PK\3\4xlsx", None, "is a spreadsheet or a zip"),
        ("canvas", MOODLE, None, "is not a gradebook of Canvas"),
        ("canvas", CANVAS.replace(",ID,", ",Id,"), None, "is not a gradebook of Canvas"),
        ("canvas", CANVAS.replace("Points Possible", "Points"), None, "is not a gradebook of Canvas"),
        ("canvas", CANVAS.replace("Points Possible", "Total"), None, "is not a gradebook of Canvas"),
        ("canvas", "Student,ID,Lab ex01 (1)\nAda,1,\n", None, "is not a gradebook of Canvas"),
        ("canvas", CANVAS.replace("ex01", "one"), None, "one assignment with ex01 in its title; .* Lab one"),
        ("canvas", CANVAS.replace("ex02", "ex01"), None, "must have one assignment with ex01"),
        ("canvas", CANVAS, "Final Score", "one assignment called Final Score"),
        ("nbgrader", OLDER, None, "has no column 'assignment'"),
    ],
)  # fmt: skip
def test_a_file_of_another_form_is_refused_with_the_fix(platform, text, column, message, tmp_path):
    with pytest.raises(Refusal, match=message):
        gradebook(tmp_path, platform, text, column)


def test_canvas_s_number_of_an_assignment_is_no_name_of_a_set(tmp_path):
    (tmp_path / "book.csv").write_text(CANVAS, "utf-8")
    with pytest.raises(Refusal, match="one assignment with 4242 in its title"):
        PLATFORMS["canvas"](tmp_path / "book.csv", "4242", None)


def test_a_gradebook_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(Refusal, match="cannot be read: No such file or directory"):
        PLATFORMS["moodle"](tmp_path / "no.csv", "ex01", None)


def test_a_grade_that_the_platform_would_not_take_is_named(tmp_path):
    assert [gradebook(tmp_path, "moodle", MOODLE).closed(row) != "" for row in (1, 2, 3)] == [False, False, True]
    assert gradebook(tmp_path, "moodle", MOODLE.replace('"Not marked",No', '"Not marked",')).closed(3) == ""
    assert [gradebook(tmp_path, "canvas", CANVAS).closed(row) for row in (3, 4, 5)] == ["", "Canvas says EX", ""]
    assert gradebook(tmp_path, "canvas", CANVAS, "4243").closed(5) == "Canvas says N/A"


@pytest.mark.parametrize(
    ("points", "cell", "text"),
    [(7, "20", "7"), (7, "20.00", "7.00"), (7.5, "20", "7.5"), (7.5, "20,00", "7,50"), (0, "100,0", "0,0"),
     (6.67, "3.0", "6.67"), (10, "100", "10")],
)  # fmt: skip
def test_points_look_like_the_platform_s_numbers(points, cell, text):
    assert like(points, cell) == text


def test_names_agree_without_what_platforms_drop():
    assert letters("O'Neil, Zoe\u0308_B") == letters("oneilzoëb")
    assert letters("王 明") != letters("王 民")
