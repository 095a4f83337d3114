"""The pages for students and teachers agree with the package's exercises and show its real output."""

import contextlib
import io
import re
import shlex

import numpy as np
import pytest
from helpers.built import up_to_date

from subnorm_classroom.reports import beliefs
from subnorm_lab import checks
from subnorm_lab.checks import exercise
from tools import checkout

STUDENT = (checkout.ROOT / "book/exercises.md").read_text("utf-8")
TEACHER = (checkout.ROOT / "book/teaching.md").read_text("utf-8")
GRADING = (checkout.ROOT / "book/grading.md").read_text("utf-8")
LESSON = 90  # minutes
COMPUTED = {  # numbers in answers, and how to compute them
    "about 1024": lambda: f"about {2**10}",
    "8008000": lambda: str(exercise_named("bytes_moved").reference(1000, 1000, 4, "layer")),
    "90000": lambda: str(300**2),
}


def exercise_named(name):
    return next(ex for exercises in checks.SETS.values() for ex in exercises if ex.name == name)


# Listings show real output

LISTING = re.compile(
    r"^( *)```(python|\{code-block\} text)\n(?:\1:class: said\n\n)?(.*?)^\1```$", flags=re.MULTILINE | re.DOTALL
)


def listings(page):
    """(code, shown) of each pair of consecutive listings; code is empty if there is none."""
    code = ""
    for indent, kind, body in LISTING.findall(page):
        body = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
        if kind != "python":
            yield code, body
        code = body if kind == "python" else ""


def printed(page):
    """(shown, printed) of each listing; one without code shows the feedback to a right answer."""
    names = {}
    exercise.SEEN.clear()
    for code, shown in listings(page):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code or "checks.layer_norm(checks.layer_norm.reference)", names)
        yield shown, out.getvalue()
    exercise.SEEN.clear()


def test_every_sheet_has_its_heading_and_its_list():
    lists = re.findall(r"\(sheet-(ex\d\d)\)=\n### (ex\d\d) · .+\n\n```\{exercises\} (ex\d\d)\n```\n", STUDENT)
    assert lists == [(name, name, name) for name in checks.SETS]


def test_the_page_shows_what_the_checks_print():
    found = list(printed(STUDENT))
    assert [out for _, out in found] == [shown for shown, _ in found]
    assert {shown[0] for shown, _ in found} >= {"✓", "○", "✗"}
    assert sum("→" in shown for shown, _ in found) >= 2  # with a name, and with facts


def test_a_listing_that_is_not_printed_is_found():
    said = "```{code-block} text\n:class: said\n\n"
    page = f"```python\nprint(2)\n```\n\n{said}2\n```\n\n```python\nprint(3)\n```\n\n{said}4\n```\n"
    assert list(printed(page)) == [("2\n", "2\n"), ("4\n", "3\n")]


def test_the_inputs_of_class_are_those_that_the_page_draws():
    assert f"default_rng({exercise.CLASS_SEED})" in STUDENT


# The teacher's page

PARTS = ["Objectives", "The lesson", "What students believe", "Exit questions"]
ROW = re.compile(r"^\| (\d+) \| (.+) \|$", flags=re.MULTILINE)
BELIEF = re.compile(r"^(\*\*\".*)\n: ((?:.*\n)(?:  .*\n)*)", flags=re.MULTILINE)
CAUGHT = re.compile(r"Caught\s+by\s+((?:`\w+`:\s+`\w+`(?:,\s+`\w+`)*;?\s*)+)\.$")
SECTION = re.compile(r'Read\s+"\[\]\(\.\./notebooks/[\w/-]+\.ipynb#[\w-]+\)"\.')
RETURNS = re.compile(r"The\s+belief\s+returns\s+as\s+(.+?)\s+in\s+(ex\d\d[^.]*)\.")
QUESTION = re.compile(r"^\d\. (.*?)(?=^\d\. |\Z)", flags=re.MULTILINE | re.DOTALL)
ANSWER = re.compile(r"^   :::\{dropdown\} Answer\n   \S.*?^   :::$", flags=re.MULTILINE | re.DOTALL)


def lessons(page):
    """{set: {heading: text}} of the teacher's page."""
    found = re.findall(r"^## (ex\d\d) · .*?\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
    return {
        name: dict(re.findall(r"^### (.*?)\n(.*?)(?=^### |\Z)", text, re.M | re.S)) | {"": text} for name, text in found
    }


def lesson_faults(page, sets):
    """Missing parts of the teacher's page, and references to unknown exercises or mistakes."""
    found = lessons(page)
    if list(found) != list(sets):
        yield f"the page has lessons for {list(found)}, the package has {list(sets)}"
        return
    for name, parts in found.items():
        tags = {ex.name: {mistake.tag for mistake in ex.mistakes} for ex in sets[name]}
        minutes = {ex.name: ex.minutes for ex in sets[name]}
        if list(parts)[:-1] != PARTS:
            yield f"{name} has the parts {list(parts)[:-1]}, not {PARTS}"
            continue
        if not parts[""].lstrip().startswith(f"{{exercises}}`{name}`."):
            yield f"{name} does not begin with: {{exercises}}`{name}`."
        plan = [(int(time), text) for time, text in ROW.findall(parts["The lesson"])]
        if sum(time for time, _ in plan) != LESSON:
            yield f"the plan of {name} takes {sum(time for time, _ in plan)} minutes, not {LESSON}"
        in_class = set(re.findall(r"`(\w+)`", " ".join(text for _, text in plan).split("Homework")[0])) & set(minutes)
        if not 2 <= len(in_class) <= 4:  # as the page says
            yield f"the plan of {name} does {sorted(in_class)} in class"
        for time, text in plan:
            work = sum(minutes[word] for word in set(re.findall(r"`(\w+)`", text.split("Homework")[0])) & set(minutes))
            if work > time:
                yield f"{name}: {time} minutes for exercises of {work}: {text[:40]}"
        if "**Live figure**" not in parts["The lesson"] and name != "ex05":
            yield f"the plan of {name} shows no live figure"
        yield from belief_faults(name, parts["What students believe"], tags)
        questions = QUESTION.findall(parts["Exit questions"])
        if not 2 <= len(questions) <= 3:
            yield f"{name} has {len(questions)} exit questions"
        yield from (f"{name}: no answer to {text[:40]}" for text in questions if not ANSWER.search(text))


def belief_faults(name, text, tags):
    beliefs = BELIEF.findall(text)
    if len(beliefs) < 3 or len(beliefs) != len(re.findall(r'^\*\*"', text, flags=re.MULTILINE)):
        yield f"{name} has {len(beliefs)} beliefs that can be read"
    for belief, body in beliefs:
        links = re.findall(r"(?<!\[)\]\(([^)]*)\)", body)
        if not links or not all(link.startswith("https://") for link in links):
            yield f"{belief} has no thread, or one without https: {links}"
        caught = CAUGHT.search(body.rstrip())
        if not caught:
            yield f"{belief} does not end with the exercise and the mistake that catch it"
            continue
        if len(SECTION.findall(body)) != 1:
            yield f"{belief} does not name one section to read"
        for listed, sheets in RETURNS.findall(body):
            for sheet in re.findall(r"ex\d\d", sheets):
                there = {mistake.tag for ex in checks.SETS.get(sheet, ()) for mistake in ex.mistakes}
                yield from (f"{belief}: {sheet} has no {tag}" for tag in set(re.findall(r"`(\w+)`", listed)) - there)
        for ex, list_of_tags in re.findall(r"`(\w+)`:\s+((?:`\w+`(?:,\s+)?)+)", caught[1]):
            for tag in re.findall(r"\w+", list_of_tags):
                if tag not in tags.get(ex, ()):
                    yield f"{belief}: {name} has no mistake {tag} of {ex}"


def test_every_set_has_its_lesson():
    assert list(lesson_faults(TEACHER, checks.SETS)) == []


def test_every_link_is_safe():
    for page in (STUDENT, TEACHER, GRADING):
        assert re.findall(r"\]\((?!https://|[\w-]+\)|\.\./notebooks/)[^)]*\)", page) == []


@pytest.mark.parametrize("text", COMPUTED)
def test_a_number_in_an_answer_is_computed(text):
    assert text in TEACHER
    assert text == COMPUTED[text]()


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("## ex03 · RMSNorm", "## RMSNorm"),
        ("### The lesson", "### The plan"),
        ("| 17 | **Alone:** `layer_norm`.", "| 16 | **Alone:** `layer_norm`."),
        ("| 10 | **Alone:** `pre_ln`.", "| 7 | **Alone:** `pre_ln`."),
        ("**Alone:** `bytes_moved`.", "**Alone:** `bytes_moved`, `faults`."),
        ("`layer_norm`: `ddof1`;", "`layer_norm`: `ddof2`;"),
        ("`layer_norm`: `ddof1`;", "`rms_norm`: `layer_norm`;"),
        ("Caught by `stream`: `not_updated`, `skips_from_first`.", "So it is."),
        ('Read "[](../notebooks/02-residual-connections.ipynb#how-the-stream-grows)".', "Read chapter 02."),
        (
            "The belief returns as `eps_outside` and `no_eps` in ex03",
            "The belief returns as `eps_outside` and `no_esp` in ex03",
        ),
        ("in ex03, ex04 and ex06.", "in ex03, ex05 and ex06."),
        ("(https://github.com/oracle/tribuo/pull/215)", "(http://github.com/oracle/tribuo/pull/215)"),
        ("[This kernel](https://github.com/nntrainer/nntrainer/issues/3935)", "A kernel"),
        ('**"Every square fits, so the sum does."**\n: ', '**"Every square fits, so the sum does."**\n\n'),
        (":::{dropdown} Answer\n   You timed the launch. The work may not have begun.\n", ":::{dropdown} Answer\n"),
        ("{exercises}`ex02`", "{exercises}`ex01`"),
    ],
)
def test_a_planted_fault_of_the_teachers_page_is_found(was, now):
    assert was in TEACHER
    assert set(lesson_faults(TEACHER.replace(was, now), checks.SETS)) - set(lesson_faults(TEACHER, checks.SETS))


def test_the_anchors_of_the_overview_are_in_the_book():
    assert up_to_date()
    teacher = (checkout.PAGES / "book/teaching.html").read_text("utf-8")
    for belief in beliefs.read_beliefs():
        page = (checkout.PAGES / f"{belief.page}.html").read_text("utf-8")
        assert f'id="{beliefs.anchor(belief.section)}"' in page
        assert f'<dt id="{beliefs.anchor(belief.text)}">' in teacher


# Release and grade


def test_the_commands_are_those_of_the_package(tmp_path, monkeypatch, capsys):
    from subnorm_classroom import __main__
    from subnorm_classroom.grading import grade
    from subnorm_classroom.reports import handback, mark, overview
    from subnorm_classroom.sheets import class_sheets, release

    calls = []
    monkeypatch.setattr(release, "release", lambda *given: calls.append(("release", *given)) or 0)
    monkeypatch.setattr(class_sheets, "hand_out", lambda *given: calls.append(("release", *given)) or 0)
    monkeypatch.setattr(grade, "grade", lambda *given, **_: calls.append(("grade", *given)) or 0)
    monkeypatch.setattr(mark, "mark", lambda *given: calls.append(("mark", *given)) or 0)
    monkeypatch.setattr(handback, "hand_back", lambda *given: calls.append(("handback", *given)) or 0)
    monkeypatch.setattr(overview, "overview", lambda *given: calls.append(("overview", *given)) or 0)
    short = (checkout.ROOT / "book/grade-a-class.md").read_text("utf-8")
    lines = re.findall(r"-m subnorm_classroom ([^\n`]+)", GRADING) + re.findall(r"_classroom (\w[^\n`]+)", short)
    assert {line.split()[0] for line in lines} == {"release", "grade", "mark", "overview", "handback"}
    for line in lines:
        assert __main__.main(shlex.split(line)) == 0
    assert [call[0] for call in calls] == [line.split()[0] for line in lines]


def test_the_limits_are_those_of_the_grader():
    from subnorm_classroom.grading.sandbox import Limits

    said = (
        f"A cell has {{given}}`{Limits().cell:g}` seconds, a call for one exercise {{given}}`{Limits().question:g}`, "
    )
    assert said + f"a student {{given}}`{Limits().total:g}` in all." in GRADING


def test_the_diagnoses_are_those_of_the_grader():
    from subnorm_classroom.grading.verdict import SAYS

    table = GRADING.split("| Diagnosis | What to do |\n")[1].split("\n\n")[0]
    named = {tag for row in table.splitlines()[1:] for tag in re.findall(r"`(\w+)`", row.split("|")[1])}
    of_checks = {"error", "cell_error", "needs_library", "no_reference"}
    assert named - {*SAYS} == of_checks
    alone = {
        "output",
        "unreadable",
        "unreadable_file",
        "no_function",
        "not_done",
    }  # rare or plain, and their text says what to do
    of_values = {"type", "keys", "count", "list_length", "in_place", "calls", "no_error", "message"}
    assert set(SAYS) - named == alone | of_values


def test_what_grade_writes_is_named():
    for name in ("`grades.csv`", "`totals.csv`", "`feedback/`", "`log.json`"):
        assert f"\n{name}\n: " in GRADING


def test_the_options_that_the_page_names_are_options_of_grade(capsys):
    from subnorm_classroom import __main__

    with pytest.raises(SystemExit):
        __main__.main(["grade", "--help"])
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    named = {"--seed", "--no-sandbox", "--student", "--accept", "--deadline", "--scheduler"}
    assert named <= options
    assert all(f"`{option}`" in GRADING for option in named)


def test_the_random_inputs_of_class_are_drawn_by_numpy():
    names = [case.name for case in checks.layer_norm.cases(np.random.default_rng(exercise.CLASS_SEED))]
    assert "\n".join(f"   {name}" for name in names) in STUDENT
