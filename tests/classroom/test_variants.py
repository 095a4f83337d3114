"""Sheets of the students' own: handed out, checked in class and graded, all three ask each student for the same."""

import csv
import json
import re
import zipfile
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from classroom.hand_ins import LAYER_NORM, PATIENT, SET, SETUP, cell, grade_class, notebook, sheet
from helpers.parts import need

from subnorm_classroom import __main__ as command_line
from subnorm_classroom.errors import Refusal
from subnorm_classroom.files import as_json
from subnorm_classroom.grading import grade
from subnorm_classroom.sheets import class_sheets, packing, variants
from subnorm_classroom.sheets.chapters import beside_chapters
from subnorm_classroom.sheets.student_sheet import ROOT, check_line, read_notebook, source_of, student
from subnorm_classroom.sheets.variants import Release
from subnorm_lab import checks
from subnorm_lab.checks.edited import text_of

WITH = [ex for exercises in checks.SETS.values() for ex in exercises if ex.variants]
CLASS = ("Ada Lovelace", "Hopper, Grace", "Emmy Noether_1882")


def answer_to(ex):
    """The text of a right answer, with the student's own value in place of the default."""
    name = ex.template.parameter
    value = f"{name}={ex.chosen.value!r})"
    return re.sub(rf"{name}=[^)]+\)", value, text_of(getattr(checks, ex.name).reference), count=1)


def own_sheet(exercises):
    cells = [(answer_to(ex), cell(check_line(ex), "check")) for ex in exercises]
    return notebook(cell(SETUP, "setup"), *(one for pair in cells for one in pair))


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty checkout to write into, and a class list."""
    (tmp_path / "constraints.txt").write_text("numpy==2.0.2\n")
    (tmp_path / "class.txt").write_text("\ufeff" + "\r\n".join([*CLASS, ""]), "utf-8")
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    monkeypatch.setattr(class_sheets, "ROOT", tmp_path)
    monkeypatch.setattr(packing, "wheel_of", lambda root: ("subnorm.whl", b"the package"))
    return tmp_path


def hand_out(root, name="ex01"):
    status = command_line.main(["release", name, "--variants", str(root / "class.txt")])
    folder = root / "dist" / f"{name}-variants"
    return status, {path.parent.name: path.read_bytes() for path in folder.glob("*/*.ipynb")}


def test_every_student_gets_a_sheet_that_shows_only_their_own(root):
    plain = student(read_notebook(source_of("ex01")), "ex01")["cells"]
    status, sheets = hand_out(root)
    assert (status, set(sheets)) == (0, set(CLASS))
    release = variants.read_release(json.loads((root / "dist/ex01-variants.json").read_text()), "ex01", root)
    for who, data in sheets.items():
        cells = {c["id"]: "".join(c["source"]) for c in json.loads(data)["cells"]}
        assert list(cells) == [c["id"] for c in plain]
        exercises = release.exercises(who, checks.SETS["ex01"])
        for ex in exercises:
            assert cells[f"ex01-{ex.number}-check"] == check_line(ex)
            assert [one.label for one in ex.variants if one.label in data.decode()] == (
                [ex.chosen.label] if ex.chosen else []
            )
            for change in ex.chosen.changes if ex.chosen else ():
                old, _, new = (piece.strip() for piece in change.partition("->"))
                text = cells[f"ex01-{ex.number}-task"] + cells[f"ex01-{ex.number}-answer"]
                assert new in text
                assert old in new or old not in text
        (first, *_) = cells.values()
        assert f"#variant={class_sheets.variants_code(exercises)}" in first
        assert first.startswith(beside_chapters(plain[0]["source"]).decode() + "\n\n**This sheet belongs to ")
        assert f"belongs to {who}".replace("_", "\\_") in first
        assert not any(other.split()[0] in data.decode() for other in CLASS if other != who)
        assert str(release.seed).encode() not in data
    with zipfile.ZipFile(root / "dist/ex01-install.zip") as archive:
        assert {name.split("/")[1] for name in archive.namelist()} == {
            "HOW-TO.md", "requirements.txt", "constraints.txt", "subnorm.whl", "chapters",
        }  # fmt: skip
        assert "Put your own sheet into this folder." in archive.read("ex01/HOW-TO.md").decode()


def test_a_student_who_comes_later_changes_nobodys_sheet(root):
    _, before = hand_out(root)
    (root / "class.txt").write_text("\n".join(["Zuse", *CLASS]), "utf-8")
    _, after = hand_out(root)
    assert set(after) - set(before) == {"Zuse"}
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "must have one student on each line"),
        ("4711;Ada", "must have one student on each line"),
        ("4711,Ada,ada@x.org", "must have one student on each line"),
        ("Ada Lovelace\nAda-Lovelace", "'Ada Lovelace' and 'Ada-Lovelace'; to tell names that look alike apart"),
        ("Ada\n---", "a line without a letter, '---'"),
    ],
)
def test_a_class_list_that_names_nobody_surely_is_refused(root, text, says, capsys):
    (root / "class.txt").write_text(text)
    assert hand_out(root) == (1, {})
    assert says in capsys.readouterr().err


def test_a_release_that_cannot_be_made_is_a_sentence(root, capsys):
    (root / "class.txt").write_bytes(b"\xff")
    assert hand_out(root)[0] == 1
    assert "must be a text file in UTF-8" in capsys.readouterr().err
    (root / "class.txt").unlink()
    assert hand_out(root)[0] == 1
    assert "cannot be read: No such file or directory" in capsys.readouterr().err
    assert hand_out(root, "ex06")[0] == 1
    assert "no exercise of ex06 has variants" in capsys.readouterr().err
    assert command_line.main(["release", "--variants", "class.txt"]) == 1
    assert "--variants needs the name of one set" in capsys.readouterr().err


def test_another_version_does_not_draw_again(root, capsys):
    hand_out(root)
    kept = root / "dist/ex01-variants.json"
    data = json.loads(kept.read_text())
    for other in ("ex00", "ex02"):
        kept.write_text(json.dumps(data | {"set": other}))
        assert hand_out(root)[0] == 1
        assert f"ex01-variants.json is of {other}, not of ex01" in capsys.readouterr().err
    data["variants"]["scaled_stream"].pop()
    kept.write_text(json.dumps(data))
    assert hand_out(root)[0] == 1
    assert "ask for other variants than this version of subnorm knows" in capsys.readouterr().err
    kept.write_text("{")
    assert hand_out(root)[0] == 1
    assert "is not the file that release writes with --variants, or it is damaged" in capsys.readouterr().err


def test_every_variant_is_drawn_and_no_draw_follows_from_another():
    """Of 3 × 3 pairs, each is drawn for some of 400 students, by two seeds in different ways."""
    one, two = (Release("ex01", seed, ()) for seed in (1, 2))
    pair = [checks.scaled_stream, checks.residual_backward]
    draws = {release: [tuple(release.draw(f"s{k}", ex) for ex in pair) for k in range(400)] for release in (one, two)}
    for drawn in draws.values():
        assert len(Counter(drawn)) == 9
        assert min(Counter(drawn).values()) > 20  # 44 each, give or take 6.3
    assert sum(a == b for a, b in zip(*draws.values(), strict=True)) < 100


def test_release_class_and_grader_agree_on_every_exercise_with_variants(tmp_path, monkeypatch, capsys):
    need("bwrap")
    monkeypatch.setitem(grade.SETS, "quick", WITH)
    release = Release("quick", 5, ("Ada", "Bo"))
    own = {who: release.exercises(who, WITH) for who in release.students}
    same = {ex.name for ex, other in zip(own["Ada"], own["Bo"], strict=True) if ex.chosen is other.chosen}
    assert 3 <= len(same) < len(WITH) - 3  # with this seed
    room, out = tmp_path / "class", tmp_path / "grades"
    room.mkdir()
    for who, exercises in own.items():
        names = {"np": np, "checks": checks}
        for ex in exercises:  # in class
            exec(answer_to(ex), names)
            assert eval(check_line(ex), names).tag == "right"
        (room / f"{who}_17.ipynb").write_bytes(own_sheet(exercises))
    (tmp_path / "release.json").write_text(as_json(release.as_dict()))
    options = {"limits": PATIENT, "seed": 7, "release": tmp_path / "release.json"}
    assert grade_class("quick", room, out, **options) == 0
    rows = list(csv.DictReader((out / "grades.csv").read_text().splitlines()))
    assert {row["diagnosis"] for row in rows} == {"right"}
    assert [row["variant"] for row in rows] == [ex.chosen.label for who in own for ex in own[who]]
    # Bo hands in Ada's sheet
    (room / "Bo_17.ipynb").write_bytes(own_sheet(own["Ada"]))
    capsys.readouterr()
    assert grade_class("quick", room, out, limits=PATIENT, student="Bo") == 0  # the release is in the log
    record = json.loads((out / "students/Bo_17.json").read_text())
    theirs = {ex.name: ex.chosen for ex in own["Ada"]}
    for r in record["results"]:
        if r["exercise"] in same:
            assert r["diagnosis"] == "right"
        else:
            assert (r["diagnosis"], r["points"]) == (theirs[r["exercise"]].tag, 0)
            words = f"this is the answer for {theirs[r['exercise']].label}; yours asks for {r['variant']}."
            assert r["says"].endswith(words)
            assert f"Your variant: `{r['variant']}`." in (out / "feedback/Bo_17.md").read_text()
    (flag,) = record["flags"]
    assert flag.startswith("its checks ask for variants of another student: ")
    assert set(re.findall(r"\w+", flag.partition(": ")[2])) == {ex.name for ex in WITH} - same


@pytest.fixture
def room(tmp_path, monkeypatch):
    need("bwrap")
    monkeypatch.setitem(grade.SETS, "quick", SET)
    (tmp_path / "class").mkdir()
    return tmp_path / "class"


def released(room, *students, seed=5):
    path = room.parent / "release.json"
    path.write_text(as_json(Release("quick", seed, students).as_dict()))
    return path


def grade_quick(room, **options):
    return grade_class("quick", room, room.parent / "grades", **{"limits": PATIENT, "seed": 7, **options})


def test_no_text_in_a_file_changes_what_is_asked_for(room):
    """A student's sheet may claim every variant: the grader draws the student's own."""
    labels = [one.label for one in checks.layer_norm.variants]
    ask = 'checks.layer_norm(layer_norm, variant="{}")'.format
    for k, label in enumerate(labels):
        (room / f"s{k}.ipynb").write_bytes(sheet(LAYER_NORM, SETUP, cell(ask(label), "check"), f"variant = {label!r}"))
    release = Release("quick", 5, ("s0", "s1"))
    assert grade_quick(room, release=released(room, "s0", "s1")) == 0
    for k in range(2):
        first = json.loads((room.parent / f"grades/students/s{k}.json").read_text())["results"][0]
        mine = release.draw(f"s{k}", checks.layer_norm)
        assert first["variant"] == mine
        assert first["diagnosis"] == ("right" if mine == labels[0] else "variant_a_gain_of_gamma")


def test_who_is_not_in_the_class_list_is_listed_and_nobody_is_guessed(room, capsys):
    for name in ("Ada_1", "Ada_2", "Bo"):
        (room / f"{name}.ipynb").write_bytes(sheet())
    assert grade_quick(room, release=released(room, "Ada")) == 1
    assert "1 of the students are not in the class list of the release: Bo. Add a line" in capsys.readouterr().err
    assert grade_quick(room, release=released(room, "Ada", "Bo")) == 1
    assert "Ada_1 and Ada_2 would be one line of the class list; write their numbers" in capsys.readouterr().err
    assert not list((room.parent / "grades").glob("*.csv"))
    assert grade_quick(room, release=released(room, "Ada_1", "Ada 2", "bo")) == 0
    assert grade_quick(room, release=room / "nothing.json") == 1
    assert "is not the file that release writes" in capsys.readouterr().err


def test_the_class_list_must_name_every_student_once():
    def said(students, class_list):
        with pytest.raises(Refusal) as refused:
            Release("ex02", 1, class_list).lines_of(students)
        return str(refused.value)

    many = [f"s{k:02}" for k in range(43)]
    assert f"21 of the students are not in the class list of the release: {', '.join(many[:20])}, and 1 more. " in said(
        many[:21], ("Ada",)
    )
    assert f"{many[19]}, and 23 more. " in said(many, ("Ada",))
    assert f": {', '.join(many[:20])}. Add" in said(many[:20], ("Ada",))
    students = ["Aa", "Ada_1", "Ada_2", "Bo_1", "Bo_2"]
    assert said(students, ("Aa", "Ada", "Bo")).startswith("Ada_1 and Ada_2 would be one line of the class list")


def test_own_sheets_are_not_graded_as_if_they_were_all_alike(room, capsys):
    own = replace(checks.layer_norm, chosen=checks.layer_norm.variants[1])
    one = sheet(LAYER_NORM, SETUP, cell(check_line(own), "check"))
    (room / "Ada.ipynb").write_bytes(one)
    assert grade_quick(room) == 1
    assert "the sheets are the students' own: add --release" in capsys.readouterr().err
    (room / "Bo.ipynb").write_bytes(sheet())
    assert grade_quick(room) == 0  # one student cannot stop the grading of a class
    assert "variant" not in (room.parent / "grades/grades.csv").read_text()


def test_a_release_that_changes_marks_needs_consent(room, capsys):
    (room / "Ada.ipynb").write_bytes(sheet())
    labels = {seed: Release("quick", seed, ("Ada",)).draw("Ada", checks.layer_norm) for seed in range(20)}
    one, two = checks.layer_norm.variants
    default, other = (next(seed for seed in labels if labels[seed] == label) for label in (one.label, two.label))
    assert grade_quick(room, release=released(room, "Ada", seed=default)) == 0
    assert grade_quick(room, release=released(room, "Ada", seed=other)) == 1
    assert "Ada: layer_norm 1 of 1 (right) → 0 of 1 (variant_a_gain_of_gamma)" in capsys.readouterr().err
    assert grade_quick(room, release=released(room, "Ada", seed=other), accept=True) == 0
    assert grade_quick(room, release=released(room, "Ada", seed=default), student="Ada") == 1
    assert "to change that, grade everybody, without --student" in capsys.readouterr().err
    assert grade_quick(room, release=released(room, "Ada", "Bo", seed=other), student="Ada") == 0
