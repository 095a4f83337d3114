"""The class overview: it finds what was planted, says who did not hand in, and names nobody."""

import json
import re
from html import unescape
from types import SimpleNamespace

import pytest
from classroom.classes import EX02, answer, graded
from classroom.desk import desk, record, result
from classroom.hand_ins import PATIENT, grade_class, notebook, write_zip
from classroom.test_gradebook import CANVAS, MOODLE, NBGRADER
from helpers.parts import need

from subnorm_classroom import __main__ as command_line
from subnorm_classroom.files import read_json
from subnorm_classroom.reports import counts
from subnorm_classroom.reports import overview as module
from subnorm_classroom.reports.beliefs import anchor, read_beliefs
from subnorm_lab import checks

RMS_NORM = """def rms_norm(x, gamma, eps):
    wide = x.astype(float)
    rstd = 1 / np.sqrt((wide * wide).mean(-1, keepdims=True) + eps)
    return (gamma * wide * rstd).astype(x.dtype)
"""


def overview(*arguments):
    return command_line.main(["overview", *map(str, arguments)])


def page_and_text(path):
    """(page, its text)"""
    page = path.read_text("utf-8")
    text = re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)
    return page, re.sub(r"\s+", " ", unescape(text)).replace(" :", ":").replace(" .", ".").replace(" ;", ";")


def looked_at(tmp_path, *arguments):
    assert overview(*arguments, "-o", tmp_path / "page.html") == 0
    return page_and_text(tmp_path / "page.html")


def beliefs(page):
    """What to teach tomorrow, in order."""
    return [unescape(one) for one in re.findall(r"<li><strong>(.*?)</strong>", page)]


def rows(page, exercise):
    """[(sentence, students, points lost)] of the rows about an exercise."""
    section = page.split(f"<h3><code>{exercise}</code>")[1].split("</section>")[0]
    found = re.findall(r'<tr(?: class="more")?><th scope="row">(.*?)<svg.*?<td>(.*?)</td><td>(.*?)</td>', section)
    return [tuple(unescape(re.sub("<[^>]+>", "", part)) for part in row) for row in found]


def printed_rows(page, exercise):
    """[(class, students, points lost)] of the rows about an exercise, the sums of those left out in print included."""
    section = page.split(f"<h3><code>{exercise}</code>")[1].split("</section>")[0]
    found = re.findall(r'<tr(?: class="(\w+)")?><th scope="row">.*?</th><td>(.*?)</td><td>(.*?)</td></tr>', section)
    return [(look, re.sub("<[^>]+>", "", students).split()[0], lost) for look, students, lost in found]


def bar_of(page, exercise):
    """(text, box, [(kind, start, width)]) of the bar of an exercise."""
    head = page.split(f'<th scope="row"><code>{exercise}</code> ')[1].split("</th>")[0]
    (text,), (box,) = re.findall(r'"quiet">(.*?)</span>', head), re.findall(r'viewBox="(.*?)"', head)
    return text, box, re.findall(r'<rect class="(\w+)" x="(.*?)" width="(.*?)"', head)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """The page of forty students with known mistakes, and its text."""
    folder = tmp_path_factory.mktemp("planted")
    return looked_at(folder, graded(folder / "ex02", "ex02", 40, EX02))


def test_the_planted_misconceptions_are_found_in_order(tmp_path, capsys):
    page, text = looked_at(tmp_path, graded(tmp_path / "ex02", "ex02", 40, EX02))
    assert beliefs(page) == [
        "“Inside the root or outside, eps does the same.”",
        "“Layer means the whole layer, so the words share a mean.”",
        "“The standard deviation is x.std().”",
    ]
    assert "12 of 40 students (30 %); 16 of 74 lost points (22 %)" in text.replace("\N{NO-BREAK SPACE}", " ")
    assert "layer_norm: eps is added outside the root, sqrt(var) + eps; the definition is sqrt(var + eps)." in text
    assert "Named mistakes cost 38 of 74 lost points" in text
    assert "layer_norm: 22 of 40 (55 %) right" in text.replace("\N{NO-BREAK SPACE}", " ")
    assert [(row[1][:7], row[2]) for row in rows(page, "layer_norm")] == [
        ("7 of 40", "7"), ("4 of 40", "4"), ("3 of 40", "3"), ("2 of 40", "2"), ("1 of 40", "1"), ("1 of 40", "1"),
    ]  # fmt: skip
    assert [row[0].split()[-1] for row in rows(page, "invariances")] == ["watched_itself", "not_done"]
    said = capsys.readouterr().out
    assert "page.html: ex02, 40 hand-ins\n  ex02 layer_norm_backward, unknown 1: one is Student" in said
    assert re.findall(r"unknown \d", said) == ["unknown 1", "unknown 2"]  # of four


def test_unknown_answers_are_grouped_by_what_they_do(planted):
    found = rows(planted[0], "layer_norm_backward")
    assert [(row[0].split(":")[0], row[0].split()[-1], row[1].split()[0]) for row in found] == [
        ("Unknown 1", "value", "3"),  # two rounded in another way
        ("Unknown 2", "error", "2"),  # in two lines
        ("Unknown 3", "value", "2"),
        ("Unknown 4", "error", "1"),
        ("it ran out of time", "timeout", "2"),
    ]
    assert "raises ValueError. error" in found[1][0]


def test_an_answer_with_fewer_results_is_a_group_of_its_own(tmp_path):
    both = {"half": 1, "half, cut short": 1}
    planted = {"layer_norm": both, "fold": dict(reversed(both.items()))}
    page, _ = looked_at(tmp_path, graded(tmp_path / "ex02", "ex02", 6, planted))
    assert [[row[1].split()[0] for row in rows(page, name)] for name in planted] == [["1", "1"], ["1", "1"]]


def test_the_rows_that_are_not_printed_are_summed_up_in_one(tmp_path):
    planted = {**EX02, "layer_norm_backward": {**EX02["layer_norm_backward"], "memory": 1}}
    page, _ = looked_at(tmp_path, graded(tmp_path / "ex02", "ex02", 40, planted))
    assert printed_rows(page, "layer_norm") == [
        ("", "7", "7"), ("", "4", "4"), ("", "3", "3"),
        ("more", "2", "2"), ("more", "1", "1"), ("more", "1", "1"), ("rest", "4", "4"),
    ]  # fmt: skip
    assert printed_rows(page, "layer_norm_backward") == [
        ("", "3", "9"), ("more", "2", "6"), ("more", "2", "6"), ("more", "1", "3"), ("rest", "5", "15"),
        ("", "2", "6"), ("more", "1", "3"), ("rest", "1", "3"),
    ]  # fmt: skip
    text = page_and_text(tmp_path / "page.html")[1]
    assert all(f"{rest} " in text for rest in ("named mistakes: 3", "unknown answers: 3", "more reasons: 1"))


def test_the_bar_of_an_exercise_has_a_part_for_each_kind_of_answer(tmp_path):
    planted = {"layer_norm_backward": {"constants": 3, **EX02["layer_norm_backward"]}, "fold": {"rows": 4}}
    page, _ = looked_at(tmp_path, graded(tmp_path / "ex02", "ex02", 40, planted))
    assert bar_of(page, "layer_norm_backward") == (
        "3 with a named mistake, 8 wrong in another way, 2 without result",
        "0 0 40 1",
        [("right", "0", "27"), ("named", "27", "3"), ("unknown", "30", "8"), ("none", "38", "2")],
    )
    assert bar_of(page, "fold") == ("4 with a named mistake", "0 0 40 1", [("right", "0", "36"), ("named", "36", "4")])
    assert bar_of(page, "layer_norm") == ("", "0 0 40 1", [("right", "0", "40")])


def test_of_two_topics_that_cost_the_same_the_one_of_more_students_comes_first(tmp_path):
    planted = {"layer_norm": {"ddof1": 4}, "fold": {"rows": 2}}  # 1 and 2 points each
    page, _ = looked_at(tmp_path, graded(tmp_path / "ex02", "ex02", 6, planted))
    assert beliefs(page) == ["“The standard deviation is x.std().”", "<code>rows</code>"]


def test_what_one_student_believes_is_no_headline(tmp_path):
    planted = {"layer_norm": {"ddof1": 2}, "layer_norm_backward": {"constants": 1}, "fold": {"rows": 1}}
    page, text = looked_at(tmp_path, graded(tmp_path / "ex02", "ex02", 6, planted))
    assert beliefs(page) == ["“The standard deviation is x.std().”"]  # 2 of 7 lost points
    assert "Named mistakes cost 7 of 7 lost points." in text
    planted["layer_norm"] = {"ddof1": 1}
    page, text = looked_at(tmp_path, graded(tmp_path / "two", "ex02", 6, planted))
    assert beliefs(page) == []
    assert "Nothing cost more than one student a point." in text


def test_what_is_not_done_is_a_headline_by_the_points_that_it_costs(tmp_path):
    planted = {
        "layer_norm": {"ddof1": 9, "timeout": 2},
        "layer_norm_backward": {"not_done": 5, "half": 8},
        "fold": {"not_done": 2, "timeout": 1},
    }
    page, text = looked_at(tmp_path, graded(tmp_path / "ex02", "ex02", 20, planted))
    assert beliefs(page) == ["Not done", "“The standard deviation is x.std().”", "<code>timeout</code>"]
    assert "19 of 56 lost points (34" in text
    assert "Students, by exercise: layer_norm_backward 5, fold 2." in text
    assert "not done yet. Students" not in text  # the headline says it
    assert "no belief on the teacher's page" not in text
    assert "Named mistakes cost 9 of 56 lost points." in text
    first = page.split("<li>")[1].split("</li>")[0]
    assert '<rect class="none"' in first


def test_a_topic_shows_its_two_most_frequent_mistakes(tmp_path):
    planted = {"layer_norm": {"no_eps": 1, "eps_outside": 3}, "make_layer_norm": {"eps_outside": 2}}
    page, _ = looked_at(tmp_path, graded(tmp_path / "ex02", "ex02", 9, planted))
    (topic,) = re.findall(r"<li>(.*?)</li>", page, re.DOTALL)
    assert [unescape(re.sub("<[^>]+>", "", one)) for one in re.findall(r"<p>(<code>\w+</code>: .*?)</p>", topic)] == [
        "layer_norm: eps is added outside the root, sqrt(var) + eps; the definition is sqrt(var + eps).",
        "make_layer_norm: eps is added outside the root; the definition is sqrt(var + eps).",
    ]


@pytest.mark.parametrize(("many", "few"), [(4, True), (5, False), (6, False)])
def test_a_class_of_less_than_five_is_warned_about_percentages(many, few, tmp_path):
    _, text = looked_at(tmp_path, graded(tmp_path / "ex02", "ex02", many, {"layer_norm": {"ddof1": 2}}))
    assert (f"With {many} notebooks, a percentage here is a matter of single students." in text) == few
    assert ("single students" in text) == few
    assert f"2 of {many} students (" in text  # not "in ex02": there is one sheet, in which nothing can return
    assert "Beliefs that return" not in text


def test_answers_to_the_variants_of_others_are_one_group(tmp_path):
    (fold,) = [ex for ex in checks.SETS["ex02"] if ex.name == "fold"]
    tags = [one.tag for one in fold.variants]
    page, _ = looked_at(tmp_path, graded(tmp_path / "ex02", "ex02", 9, {"fold": dict.fromkeys(tags, 2)}))
    assert rows(page, "fold") == [
        ("the answer to another student's variant. variant", "4 of 9 (44\N{NO-BREAK SPACE}%)", "8")
    ]


def test_classes_with_other_inputs_have_unknown_groups_of_their_own(tmp_path):
    some = {"layer_norm": {"half": 2}}
    one = graded(tmp_path / "one", "ex02", 4, some)
    other = graded(tmp_path / "other", "ex02", 4, some, "Pupil {}", seed=8)
    page, text = looked_at(tmp_path, one, other)
    assert "ex02: 8 hand-ins." in text
    assert [row[1].split()[0] for row in rows(page, "layer_norm")] == ["2", "2"]
    page, _ = looked_at(tmp_path, other, one)
    assert [row[1].split()[0] for row in rows(page, "layer_norm")] == ["2", "2"]
    again = graded(tmp_path / "again", "ex02", 4, some, "Pupil {}")
    page, _ = looked_at(tmp_path, one, again)
    assert [row[1].split()[0] for row in rows(page, "layer_norm")] == ["4"]


def test_a_belief_that_returns_in_another_sheet(tmp_path):
    planted = {
        "rms_norm": {"eps_outside": 4, "keepdims": 3, "no_root": 1},
        "layer_norm_from_rms": {"no_centre": 5},
        "safe_rms_norm": {"overflow": 9},
    }
    ex02 = graded(tmp_path / "ex02", "ex02", 40, EX02)
    page, text = looked_at(tmp_path, graded(tmp_path / "ex03", "ex03", 38, planted), ex02)
    table = page.split('aria-label="Beliefs that return"')[1].split("</table>")[0]
    heads = [unescape(head) for head in re.findall(r'<th scope="row">(.*?)<br>', table)]
    assert heads == ["“Inside the root or outside, eps does the same.”", "<code>keepdims</code>"]
    cells = [re.sub("<[^>]+>", "", cell).split("\N{NO-BREAK SPACE}")[0] for cell in re.findall("<td>(.*?)</td>", table)]
    assert cells == ["12 of 40 (30", "4 of 38 (11", "1 of 40 (2", "3 of 38 (8"]
    notes = [
        unescape(re.sub("<[^>]+>", "", one)) for one in re.findall(r'<br><span class="quiet">(.*?)</span></th>', table)
    ]
    assert notes[0].startswith("chapter 03, “eps outside the root is a different function” · ")
    assert notes[1].startswith(
        "without keepdims=True the mean square loses its last axis, and"
    )  # the sentence of sheet ex03, where more have made it
    assert "12 of 40 students in ex02 (30 %) , 4 of 38 students in ex03 (11 %);" in text.replace(
        "\N{NO-BREAK SPACE}", " "
    )
    assert beliefs(page)[0] == "<code>overflow</code>"  # 9 students, 3 points each
    assert "chapter 04 · no belief on the teacher's page" in text
    assert beliefs(page)[1] == heads[0]
    _, text = looked_at(tmp_path, ex02, graded(tmp_path / "ex01", "ex01", 5, {"head": {}}))
    assert "No belief or named mistake occurs in two of these sheets." in text


def test_one_tag_with_two_meanings_does_not_return(tmp_path):
    ex01 = graded(tmp_path / "ex01", "ex01", 5, {"paths": {"transposed": 2}})
    ex02 = graded(tmp_path / "ex02", "ex02", 5, {"fold": {"transposed": 2}})
    assert "No belief or named mistake occurs in two" in looked_at(tmp_path, ex01, ex02)[1]


@pytest.mark.parametrize(("one", "other"), [("no_gamma", "no_beta"), ("no_beta", "no_gamma")])
def test_two_tags_in_much_the_same_words_do_not_return(one, other, tmp_path):
    ex02 = graded(tmp_path / "ex02", "ex02", 5, {"layer_norm": {one: 2}})
    ex03 = graded(tmp_path / "ex03", "ex03", 5, {"layer_norm_from_rms": {other: 2}})
    assert "No belief or named mistake occurs in two" in looked_at(tmp_path, ex02, ex03)[1]


def test_a_mistake_in_the_words_of_two_others_returns_as_the_first(monkeypatch):
    sentences = {"a": "One two three four.", "b": "Five six seven eight.", "c": "one, two, three; five, six, seven"}
    exercises = {
        name: SimpleNamespace(name=name, chapter=name, number=1, mistakes=[SimpleNamespace(tag="tag", says=says)])
        for name, says in sentences.items()
    }
    monkeypatch.setattr(counts, "SETS", {name: [ex] for name, ex in exercises.items()})
    sheets = [counts.Sheet(name, {}, [(record("Ada", results=[result(name, 0, 1, "tag")]), 7)]) for name in exercises]
    questions = {sheet.name: counts.questions_of(sheet) for sheet in sheets}
    assert [sorted(topic.students) for topic in counts.returning(questions, [])] == [["a", "c"]]


def test_words_are_the_same_if_more_than_two_thirds_of_the_shorter_sentence_are():
    assert counts.same_words("Eps is not used.", "eps is never used, or it is fixed")
    assert not counts.same_words("eps is unused", "eps is fixed")  # two of three


def test_a_mistake_counts_for_the_belief_of_its_own_sheet_and_returns_for_that_of_another(tmp_path):
    ex06 = graded(tmp_path / "ex06", "ex06", 5, {"norm": {"eps_outside": 3}})
    page, _ = looked_at(tmp_path, ex06)
    own, other = "“It speaks well, so the code is right.”", "“Inside the root or outside, eps does the same.”"
    assert beliefs(page) == [own]
    ex02 = graded(tmp_path / "ex02", "ex02", 5, {"layer_norm": {"eps_outside": 2}})
    page, _ = looked_at(tmp_path, ex02, ex06)
    assert beliefs(page) == [own, other]
    returns = page.split('aria-label="Beliefs that return"')[1].split("</table>")[0]
    assert re.findall("<span>(. of .)</span>", returns) == ["2 of 5", "3 of 5"]


def test_every_belief_is_linked_to_its_section_and_its_entry(tmp_path):
    for folder in ("book/teaching.html", "notebooks/x.html"):
        (tmp_path / "built site" / folder).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "built site" / folder).write_text("", "utf-8")
    (eps,) = [one for one in read_beliefs() if one.text.startswith('"Inside the root')]
    paths = [f"{eps.page}.html#{anchor(eps.section)}", f"book/teaching.html#{anchor(eps.text)}"]
    ex02 = graded(tmp_path / "ex02", "ex02", 40, EX02)
    page, _ = looked_at(tmp_path, ex02, "--book", tmp_path / "built site")
    assert all(f'href="built%20site/{path}"' in page for path in paths)
    page, _ = looked_at(tmp_path, ex02, "--book", "https://course.example/main")
    assert all(f'href="https://course.example/main/{path}"' in page for path in paths)
    assert page.count("chapter 03, “eps outside the root is a different function”</a>") == 1


def test_a_book_on_another_drive_is_linked_by_its_whole_address(tmp_path, monkeypatch):
    def no_way(*_):
        raise ValueError("path is on mount 'D:', start on mount 'C:'")

    (tmp_path / "built site/book").mkdir(parents=True)
    (tmp_path / "built site/book/teaching.html").write_text("", "utf-8")
    monkeypatch.setattr("os.path.relpath", no_way)
    assert module.link_base(str(tmp_path / "built site"), tmp_path / "page.html") == f"file://{tmp_path}/built%20site/"


def test_without_a_built_book_the_page_names_the_section_and_links_nowhere(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "COURSE", tmp_path / "course")
    page, text = looked_at(tmp_path, graded(tmp_path / "ex02", "ex02", 40, EX02))
    assert "<a " not in page
    assert "chapter 03, “eps outside the root is a different function” · teacher’s page, ex02" in text


def test_marks_set_by_hand_count_as_decided(tmp_path):
    out = graded(tmp_path / "ex02", "ex02", 4, {"layer_norm": {"eps_outside": 2}, "fold": {"half": 1}})
    names = {read_json(path)["student"]: read_json(path)["results"] for path in (out / "students").iterdir()}
    wrong = [who for who, results in names.items() if results[0]["diagnosis"] == "eps_outside"]
    right = [who for who, results in names.items() if results[2]["diagnosis"] == "right"]
    (out / "marks.csv").write_text(
        f"student,exercise,points,reason\n{wrong[0]},layer_norm,1,spoken\n{right[0]},fold,0.25,copied\n", "utf-8"
    )
    page, text = looked_at(tmp_path, out)
    assert "2 marks set by hand" in text
    assert [row[1].split()[0] for row in rows(page, "layer_norm")] == ["1"]
    assert "fold: 2 of 4" in text
    assert rows(page, "fold")[1][0].startswith("points taken off by hand")
    assert rows(page, "fold")[1][2] == "1.75"
    assert "Named mistakes cost 1 of 4.75 lost points." in text  # and half of fold costs 2
    assert "spoken" not in page


def test_hand_ins_without_a_notebook_and_answers_that_we_could_not_judge(tmp_path):
    lost = [answer(ex, "no_notebook") for ex in checks.SETS["ex02"]]
    more = {
        "z1": record("Zed", "Zed/x.pdf", results=lost, problem="no_notebook", late="0 days 00:10"),
        "z2": record("Zoe", "Zoe/x.pdf", results=lost, problem="two_files"),
        "z3": record("Una", "Una.ipynb", results=[answer(ex, "needs_library") for ex in checks.SETS["ex02"]]),
    }
    page, text = looked_at(tmp_path, graded(tmp_path / "ex02", "ex02", 2, {"layer_norm": {"ddof1": 1}}, **more))
    assert "ex02: 5 hand-ins; 2 without a notebook to grade (no_notebook 1, two_files 1); 1 late;" in text
    assert "6 answers could not be judged by the grader" in text
    assert "layer_norm: 1 of 2" in text
    assert "With 3 notebooks, a percentage here is a matter of single students." in text
    assert "no_notebook" not in page.split("<h3>", 1)[1]


def test_an_exercise_that_nobody_could_be_judged_in_has_an_empty_bar(tmp_path):
    lost = [answer(ex, "needs_library" if ex.name == "fold" else "right") for ex in checks.SETS["ex02"]]
    page, text = looked_at(tmp_path, graded(tmp_path / "ex02", "ex02", 0, {}, a=record("Una", "a.ipynb", results=lost)))
    assert "fold: 0 of 0 right" in text
    said, box, parts = bar_of(page, "fold")
    assert (said, parts) == ("", [])
    assert int(box.split()[2]) > 0  # a box without a width is no valid one


def test_zeros_for_a_file_that_is_no_notebook_are_no_misunderstanding(tmp_path):
    lost = [answer(ex, "no_notebook") for ex in checks.SETS["ex02"]]
    more = {name: record(name, f"{name}/x.pdf", results=lost, problem="no_notebook") for name in ("Zed", "Zoe")}
    out = graded(tmp_path / "ex02", "ex02", 2, {"layer_norm": {"ddof1": 1}}, **more)
    marks = "student,exercise,points,reason\nZed,all,0,no file\nZoe,all,0,on paper\n"
    (out / "marks.csv").write_text(marks, "utf-8")
    assert "layer_norm: 1 of 2" in looked_at(tmp_path, out)[1]
    (out / "marks.csv").write_text(marks.replace("Zoe,all,0", "Zoe,all,1"), "utf-8")
    assert "layer_norm: 2 of 3" in looked_at(tmp_path, out)[1]
    (out / "marks.csv").write_text(f"{marks}Zed,layer_norm,1,shown\n".replace("Zed,all", "Zed,fold"), "utf-8")
    assert "layer_norm: 2 of 3" in looked_at(tmp_path, out)[1]  # a single point


@pytest.mark.parametrize(
    ("book", "handed_in", "absent", "strangers"),
    [
        (MOODLE, ["Ada ONeil the 1st_4711_assignsubmission_file/a.ipynb"], 2, 0),
        (CANVAS, ["lovelaceada_1234_9_a.ipynb"], 1, 0),  # one is excused
        (NBGRADER, ["ada/ex01/a.ipynb", "zoe/ex01/a.ipynb"], 1, 1),
    ],
)
def test_who_did_not_hand_in_is_a_number(book, handed_in, absent, strangers, tmp_path):
    both = [result("stream", 1, 1, "right"), result("paths", 0, 3, "nested")]
    out = desk(tmp_path / "ex01", *(record(f"S{k}", path, results=both) for k, path in enumerate(handed_in)))
    (tmp_path / "book.csv").write_bytes(book.encode())
    _, text = looked_at(tmp_path, out, "--gradebook", tmp_path / "book.csv")
    assert f"{absent} student{'s' * (absent != 1)} of the gradebook did not hand in" in text
    assert ("1 hand-in matched no row of it, so up to 1 fewer are missing" in text) == bool(strangers)


def test_each_folder_may_have_a_gradebook_of_its_own_or_all_have_one(tmp_path):
    both = [result("stream", 1, 1, "right"), result("paths", 0, 3, "nested")]
    paths = ["Ada ONeil the 1st_4711_assignsubmission_file/a.ipynb", "lovelaceada_1234_9_a.ipynb"]
    moodle, canvas = (desk(tmp_path / str(k), record("A", path, results=both)) for k, path in enumerate(paths))
    (tmp_path / "moodle.csv").write_bytes(MOODLE.encode())
    (tmp_path / "canvas.csv").write_bytes(CANVAS.encode())
    options = ["--gradebook", tmp_path / "moodle.csv", "--gradebook", tmp_path / "canvas.csv"]
    _, text = looked_at(tmp_path, moodle, canvas, *options)
    assert "ex01: 2 hand-ins; 3 students of the gradebook did not hand in." in text
    right = [answer(ex, "right") for ex in checks.SETS["ex02"]]
    ex02 = graded(tmp_path / "ex02", "ex02", 0, {}, a=record("A", paths[1], results=right))
    _, text = looked_at(tmp_path, canvas, ex02, *options[2:])
    assert "ex01: 1 hand-in; 1 student of the gradebook did not hand in." in text
    assert "ex02: 1 hand-in; 1 student of the gradebook did not hand in." in text  # one has no such sheet


def test_who_handed_in_to_another_group_of_the_sheet_is_not_absent(tmp_path):
    both = [result("stream", 1, 1, "right"), result("paths", 0, 3, "nested")]
    groups = [desk(tmp_path / who, record(who, f"{who}/ex01/a.ipynb", results=both)) for who in ("ada", "cy")]
    (tmp_path / "all.csv").write_text(NBGRADER.replace('"Li,', "Li,").replace("Lee, Jr", "Lee"), "utf-8")
    _, text = looked_at(tmp_path, *groups, "--gradebook", tmp_path / "all.csv")
    assert "ex01: 2 hand-ins; 1 student of the gradebook did not hand in." in text  # Bo


def test_without_a_name_the_page_is_in_a_folder_of_grades_where_git_ignores_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("ex02", "ex03"):
        graded(tmp_path / "grades" / name, name, 4, {})
    assert overview("grades/ex02") == 0
    assert overview("grades/ex02", "grades/ex03") == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "grades/ex02/overview.html", "grades/ex03/overview-ex02-ex03.html",
    ]  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["grades"]
    assert "/grades/" in (module.COURSE / ".gitignore").read_text("utf-8").splitlines()


def test_a_mark_set_by_hand_is_in_the_overview_at_once(tmp_path, capsys):
    out = graded(tmp_path / "ex02", "ex02", 4, {"layer_norm": {"ddof1": 4}})
    mark = ["mark", str(out), "Student 001", "layer_norm", "1", "--reason", "spoken"]
    assert command_line.main(mark) == 0
    assert "layer_norm: 1 of 4" in page_and_text(out / "overview.html")[1]
    unknown_exercise(out)
    assert command_line.main([*mark[:3], "bend", "0.5", "--reason", "spoken"]) == 0
    assert "mark: the overview is as before: ex02 has no exercise bend" in capsys.readouterr().err


def test_no_student_is_named(tmp_path):
    planted = {"layer_norm": {"ddof1": 3, "half": 2, "raises": 1}, "fold": {"cell_error": 1}}
    out = graded(tmp_path / "ex02", "ex02", 12, planted, "Zsofia{:03} Quill_4711")
    for path in (out / "students").iterdir():
        one = read_json(path)
        for r in one["results"]:  # what a student can put into the grader's sentences
            if r["diagnosis"] == "error":
                r["says"] = r["says"][:-1] + ": there is no module quill here. Cell 3 failed: there is no module quill."
            if r["diagnosis"] == "cell_error":
                r["says"] = "the cell that defines it (3) raises ImportError: there is no module quill here."
        path.write_text(json.dumps(one), "utf-8")
    reason = "Zsofia000 Quill_4711,fold,0,Quill copied\n"
    (out / "marks.csv").write_text(f"student,exercise,points,reason\n{reason}", "utf-8")
    (out / "quill.csv").write_text(MOODLE.replace("Ada", "Zsofia"), "utf-8")
    page, _ = looked_at(tmp_path, out, "--gradebook", out / "quill.csv")
    assert not re.search(r"zsofia|quill|4711|lab of|\.ipynb", page, re.IGNORECASE)
    assert str(tmp_path) not in page


def test_the_page_asks_for_nothing_has_no_script_and_is_always_the_same(tmp_path, planted):
    page, _ = looked_at(tmp_path, graded(tmp_path / "ex02", "ex02", 40, EX02))
    assert page == planted[0]
    assert "default-src 'none'" in page
    assert not re.search(r"<script|<link|<img|\ssrc=|url\(|@import|javascript:", page)


def test_nothing_wrong_is_said_so(tmp_path):
    page, text = looked_at(tmp_path, graded(tmp_path / "ex02", "ex02", 6, {}))
    assert "No answer lost a point." in text
    assert rows(page + "</section>", "fold") == []


def in_records(was, now, which="*"):
    """Change the records of the students, or of one."""

    def change(out):
        for path in (out / "students").glob(f"{which}.json"):
            path.write_text(path.read_text("utf-8").replace(was, now), "utf-8")

    return change


unknown_exercise = in_records('"fold"', '"bend"')


def unknown_mistake(out):
    in_records('"points": 1', '"points": 0', "0001")(out)
    in_records('"right"', '"of_old"', "0001")(out)


def nobody(out):
    for path in (out / "students").iterdir():
        path.unlink()


def no_such_set(out):
    log = out / "log.json"
    log.write_text(log.read_text("utf-8").replace("ex02", "ex99"), "utf-8")


TWO_RELEASES = "the grades of ex02 are of two releases of the course; grade all of them again with one"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (in_records("}", "", "0001"), "0001.json cannot be read, so its student would be missing; run grade again"),
        (unknown_mistake, "layer_norm has no mistake 'of_old' in this version of the course"),
        (unknown_exercise, "ex02 has no exercise bend in this version"),
        (in_records('"fold"', '"bend"', "0001"), TWO_RELEASES),
        (in_records('"fold"', '"unfold"', "0001"), TWO_RELEASES),
        (lambda out: (out / "log.json").write_text("{}", "utf-8"), "there are no finished grades in"),
        (nobody, "there are no hand-ins in"),
        (no_such_set, "holds grades of ex99; this version of the course has ex01"),
    ],
)
def test_bad_grades_are_a_sentence_and_leave_the_last_page(fault, message, tmp_path, capsys):
    out = graded(tmp_path / "ex02", "ex02", 3, {"layer_norm": {"ddof1": 1}})
    page, _ = looked_at(tmp_path, out)
    fault(out)
    assert overview(out, "-o", tmp_path / "page.html") == 1
    said = capsys.readouterr().err
    assert said.startswith("overview: ")
    assert message in said
    assert (tmp_path / "page.html").read_text("utf-8") == page


def test_folders_of_two_releases_are_refused(tmp_path, capsys):
    one, other = (graded(tmp_path / name, "ex02", 3, {}) for name in ("one", "other"))
    (other / "log.json").write_text((other / "log.json").read_text("utf-8").replace('"c"', '"d"'), "utf-8")
    assert overview(one, other, "-o", tmp_path / "page.html") == 1
    assert "are of two releases of the course" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--book", "nowhere"], "there is no book/teaching.html in nowhere"),
        (
            ["--gradebook", "nowhere.csv"],
            "no platform's gradebook:\n  moodle: the gradebook nowhere.csv cannot",
        ),
        (["--gradebook", "a", "--gradebook", "b"], "give --gradebook once, or once for each folder; got 2 for 1"),
    ],
)
def test_bad_options_are_a_sentence(options, message, tmp_path, capsys):
    out = graded(tmp_path / "ex02", "ex02", 3, {})
    assert overview(out, "-o", tmp_path / "page.html", *options) == 1
    assert message in capsys.readouterr().err


def test_from_notebooks_to_the_page(tmp_path):
    need("bwrap")
    answers = {
        "Ada": RMS_NORM,
        "Bo": RMS_NORM.replace("(wide * wide).mean(-1,", "wide.var(-1,"),
        "Cy": RMS_NORM.replace("(wide * wide).mean(-1,", "np.var(wide, -1,"),
        "Di": RMS_NORM.replace("gamma * wide", "3 * gamma * wide"),
        "Ed": RMS_NORM.replace("gamma * wide", "gamma * (wide + wide + wide)"),  # the same, rounded in another way
        "Flo": RMS_NORM.replace("gamma * wide", "4 * gamma * wide"),
        "Gus": RMS_NORM.replace("    wide =", "    import gus\n    wide ="),
    }
    books = [(f"{who}.ipynb", notebook("import numpy as np", source)) for who, source in answers.items()]
    write_zip(tmp_path / "in.zip", books)
    assert grade_class("ex03", tmp_path / "in.zip", tmp_path / "grades", limits=PATIENT) == 0
    page, text = looked_at(tmp_path, tmp_path / "grades")
    assert beliefs(page) == [
        "<code>missing</code>",
        "“RMSNorm divides by the standard deviation, without subtracting the mean.”",
    ]
    assert "ex03: 7 hand-ins." in text
    found = [(row[0].split(":")[0], row[0].split()[-1], row[1].split()[0]) for row in rows(page, "rms_norm")]
    assert [found[0][1:], *found[1:]] == [
        ("variance", "2"), ("Unknown 1", "value", "2"), ("Unknown 2", "error", "1"), ("Unknown 3", "value", "1"),
    ]  # fmt: skip
    assert "gus" not in page.lower()
    assert not any(who in page for who in ("Ada", "Flo"))
