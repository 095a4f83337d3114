"""The page for a teacher in a hurry: its commands print what it shows, and it is plain Markdown of one screen."""

import re
import shlex

import pytest
from classroom import thirty
from helpers.parts import need

from subnorm_classroom import __main__ as command_line
from subnorm_classroom.sheets import packing, release
from tools import checkout

PAGE = (checkout.ROOT / "book/grade-a-class.md").read_text("utf-8")
LISTING = re.compile(r"```bash\n(.*)\n```\n\n```text\n((?:.*\n)*?)```", re.MULTILINE)
CHOSEN = "student,notebook\nDana Scott,ex01-residuals.ipynb\n"


@pytest.mark.slow
def test_each_command_prints_what_the_page_shows(tmp_path, monkeypatch, capsys):
    need("bwrap")
    download, gradebook = thirty.moodle()
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions/C1-ex01-77.zip").write_bytes(download)
    (tmp_path / "submissions/Grades-C1-ex01-77.csv").write_text(gradebook, "utf-8", newline="")
    for module in (release, packing):  # the sheets of this checkout stay
        monkeypatch.setattr(module._files, "write", lambda *given: None)
    monkeypatch.chdir(tmp_path)
    prepared, *listings = LISTING.findall(PAGE)
    assert prepared[0] == "python3 course.py prepare"  # what it prints: tests/test_course.py
    found = []
    for command, _ in listings:
        words = shlex.split(command.removeprefix(".venv/bin/python -m subnorm_classroom "))
        if words[0] == "grade":
            monkeypatch.undo()
            monkeypatch.chdir(tmp_path)
        status = command_line.main(words)
        said = capsys.readouterr()
        heard = re.sub(r"^grade: \d+ of \d+ graded\n|^(?!handback|  ).*\n", "", said.err, flags=re.MULTILINE)
        found.append((command, said.out + heard))
        assert status == (words[0] == "handback")  # one student is to be looked after by hand
        if words[0] == "grade":
            (tmp_path / "submissions/which.csv").write_text(CHOSEN, "utf-8")
            assert command_line.main(words) == 0
            again = capsys.readouterr().out
            assert "without a notebook to grade: Cy Young_4706 (no_notebook)\n" in again
            assert "which.csv" not in again
    assert found == listings


@pytest.mark.slow
@pytest.mark.parametrize("platform", thirty.PLATFORMS)
def test_thirty_are_graded_and_handed_back_on_every_platform(platform, tmp_path, capsys):
    need("bwrap")
    download, gradebook = thirty.PLATFORMS[platform]()
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions/download.zip").write_bytes(download)
    (tmp_path / "submissions/book.csv").write_text(gradebook, "utf-8", newline="")
    out, source = str(tmp_path / "grades"), str(tmp_path / "submissions")
    grade = ["grade", thirty.SHEET, source, "-o", out, "--deadline", "2026-11-20T18:00+00:00"]
    assert command_line.main(grade) == 0
    said = capsys.readouterr().out
    assert "30 submissions of ex01" in said
    assert "  2 late:" in said
    assert "(two_files)" in said
    book = ["--to", platform, "--gradebook", f"{source}/book.csv"]
    assert command_line.main(["handback", out, *book]) == 1
    nobody = 1 if platform == "canvas" else 2  # Canvas has no folders, so no checkpoint is hidden
    assert f"book.csv: points of {30 - nobody} of 30 students" in capsys.readouterr().out
    feedback = {path.stem: path.read_text("utf-8") for path in (tmp_path / "grades/feedback").glob("*.md")}
    assert len(feedback) == 30
    assert sum("rename `projectedresidual` if that is your answer" in text for text in feedback.values()) == 1


def test_the_page_is_plain_markdown_of_one_screen():
    text = re.sub(r"^```.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert not re.search(r"\{[\w-]+\}|^:::|^\(.*\)=", text, re.MULTILINE)
    assert len(text.split()) < 260
    assert PAGE.count("\n") < 100
    steps = ["Prepare", "Release", "Collect", "Grade", "Look", "Hand back"]
    assert re.findall(r"^## (.+)$", PAGE, re.MULTILINE) == steps
    commands = re.findall(r"-m subnorm_classroom (\w+) ", PAGE)
    assert commands == ["release", "grade", "handback"]


def test_the_readme_leads_to_it():
    assert "(book/grade-a-class.md)" in (checkout.ROOT / "README.md").read_text("utf-8")
