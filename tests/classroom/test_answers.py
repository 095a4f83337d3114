"""The answers of a class as Python files: whose cells are where, and what every student has."""

from classroom.hand_ins import LAYER_NORM, MEAN_SQUARE, SET, cell, notebook, sheet

from subnorm_classroom.grading import answers
from subnorm_classroom.grading.submissions import file_names, read_all
from subnorm_lab.checks import SETS

DDOF = LAYER_NORM.replace("wide.var(-1,", "wide.var(-1, ddof=1,")


def left(folder, out, set_name="quick", exercises=SET):
    """{path in the folder of the answers: its text}"""
    found = read_all(folder)
    answers.leave(out, set_name, exercises, found, file_names([one.student for one in found]))
    return {p.relative_to(out / "answers").as_posix(): p.read_text("utf-8") for p in (out / "answers").rglob("*.py")}


def test_each_answer_is_in_a_folder_of_the_student_in_that_of_the_exercise(tmp_path):
    folder, out = tmp_path / "class", tmp_path / "grades"
    folder.mkdir()
    (folder / "Ada.ipynb").write_bytes(sheet())
    (folder / "Bo.ipynb").write_bytes(sheet(DDOF, "pass"))
    (folder / "Cy.ipynb").write_bytes(b"[")
    found = left(folder, out)
    del found["given/quick.py"]
    assert found == {
        "layer_norm/Ada/answer.py": f"{LAYER_NORM}\n",
        "layer_norm/Bo/answer.py": f"{DDOF}\n",
        "mean_square/Ada/answer.py": f"{MEAN_SQUARE}\n",
    }


def test_a_second_run_removes_the_files_of_a_student_who_is_gone(tmp_path):
    folder, out = tmp_path / "class", tmp_path / "grades"
    folder.mkdir()
    for name in ("Ada", "Bo"):
        (folder / f"{name}.ipynb").write_bytes(sheet())
    (out / "answers/layer_norm/Bo").mkdir(parents=True)
    (out / "answers/layer_norm/Bo/notes.txt").write_text("the teacher's", "utf-8")
    assert len(left(folder, out)) == 5
    (folder / "Bo.ipynb").unlink()
    assert sorted(left(folder, out)) == ["given/quick.py", "layer_norm/Ada/answer.py", "mean_square/Ada/answer.py"]
    assert (out / "answers/layer_norm/Bo/notes.txt").is_file()
    assert not (out / "answers/mean_square/Bo").exists()


def test_one_student_alone_leaves_the_others_as_they_were(tmp_path):
    folder, out = tmp_path / "class", tmp_path / "grades"
    folder.mkdir()
    for name in ("Ada", "Bo"):
        (folder / f"{name}.ipynb").write_bytes(sheet())
    before = left(folder, out)
    for name in ("Ada", "Bo"):
        (folder / f"{name}.ipynb").write_bytes(sheet("pass"))
    found = read_all(folder)
    answers.leave(out, "quick", SET, [one for one in found if one.student == "Ada"], {"Ada": "Ada", "Bo": "Bo"})
    gone = out / "answers/layer_norm/Ada/answer.py"
    assert not gone.exists()
    assert (out / "answers/layer_norm/Bo/answer.py").read_text("utf-8") == before["layer_norm/Bo/answer.py"]


def test_a_hostile_notebook_stops_nothing_and_stays_text_in_its_folder(tmp_path):
    folder, out = tmp_path / "class", tmp_path / "grades"
    folder.mkdir()
    (folder / "Eve.ipynb").write_bytes(notebook(cell("def layer_norm(x):\n    return '\ud800'")))
    (folder / "a:b*.ipynb").write_bytes(sheet())
    found = left(folder, out)
    assert found["layer_norm/Eve/answer.py"] == "def layer_norm(x):\n    return '?'\n"
    assert sorted(found) == [
        "given/quick.py",
        "layer_norm/Eve/answer.py",
        "layer_norm/a_b_/answer.py",
        "mean_square/a_b_/answer.py",
    ]


def test_what_is_given_has_the_sheet_its_solution_and_the_named_mistakes(tmp_path):
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "Ada.ipynb").write_bytes(notebook("def residual(x, sublayer): ..."))
    text = left(folder, tmp_path / "grades", "ex01", SETS["ex01"])["given/ex01.py"]
    assert "raise NotImplementedError" in text
    assert "return x + sublayer(x)" in text
    assert any(mistake.answer.text in text for mistake in SETS["ex01"][0].mistakes if hasattr(mistake.answer, "text"))
