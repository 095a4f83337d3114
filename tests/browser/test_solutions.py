"""Answers are visible on request on the screen, and come last on paper."""

import pytest
from helpers.visit import DESK, opened

from tools import course

SHEETS = sorted(path.stem for path in (course.ROOT / "notebooks/exercises").glob("*.ipynb"))

# Whether an element is visible. (A part that is not laid out yet counts as visible.)
SHOWN = "e => e.checkVisibility() && e.getBoundingClientRect().height > 0"


@pytest.mark.parametrize("sheet", SHEETS)
def test_a_solution_is_shown_to_those_who_ask_for_it(browser, server, sheet):
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(f"{server}notebooks/exercises/{sheet}.html")
        answers = page.locator(".cell.tag_answer")
        boxes = page.locator(".admonition.solution > :not(.admonition-title)")
        labels = answers.locator("summary")
        assert answers.count() == labels.count() == page.locator(".admonition.solution").count() >= 6
        assert set(labels.all_inner_texts()) == {"Show the solution"}
        for part in (*answers.locator("pre").all(), *boxes.all()):
            assert not part.evaluate(SHOWN)
        for label in (*labels.all(), *page.locator(".admonition.solution > summary").all()):
            label.press("Enter")
        assert set(labels.all_inner_texts()) == {"Hide the solution"}
        assert all(part.evaluate(SHOWN) for part in (*answers.locator("pre").all(), *boxes.all()))
        assert "SOLUTION" not in page.locator("article").inner_text()
    assert faults == []


def test_code_that_is_no_solution_keeps_its_label(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "notebooks/03-layer-normalization.html")
        labels = page.locator(".cell:not(.tag_checked) details.hide summary:visible")
        page.get_by_label("Read with code").check()
        assert set(labels.all_inner_texts()) == {"Hide the code"}


@pytest.mark.parametrize("name", ["notebooks/03-layer-normalization", "notebooks/exercises/ex02-layer-norm"])
def test_on_paper_the_solutions_come_last(browser, server, name):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(f"{server}{name}.html")
        solutions = page.locator(".solution")
        solutions.first.wait_for(state="attached")
        places = "list => list.map(e => e.parentElement.outerHTML.slice(0, 200))"
        before = solutions.evaluate_all(places)
        page.emulate_media(media="print")
        last = page.locator(".printed-answers .solution")
        last.first.wait_for(state="attached")
        assert last.count() == solutions.count() == len(before) >= 2
        assert page.locator(".bd-article > :last-child").get_attribute("class") == "printed-answers"
        assert all(part.evaluate(SHOWN) for part in last.locator("p:not(.admonition-title), pre").all())
        assert not any(label.evaluate(SHOWN) for label in last.locator("summary").all())
        hints = page.locator(".admonition.dropdown:not(.solution) p, details.sd-dropdown:not(.solution) p").all()
        assert hints
        assert all(hint.evaluate(SHOWN) for hint in hints)
        page.emulate_media(media="screen")
        page.locator(".printed-answers").wait_for(state="detached")
        assert solutions.evaluate_all(places) == before


def test_each_solution_on_paper_names_its_task(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "notebooks/03-layer-normalization.html")
        page.emulate_media(media="print")
        names = page.locator(".printed-answers .rubric")
        names.first.wait_for(state="attached")
        assert [name.replace("#", "") for name in names.all_text_contents()] == ["Exercises 1", "Exercises 3"]


@pytest.mark.parametrize("asked", [False, True])
def test_on_paper_the_answers_of_quick_checks_come_last(browser, server, asked):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "notebooks/03-layer-normalization.html")
        if asked:
            page.locator("#all-answers").check()
        page.emulate_media(media="print")
        last = page.locator(".printed-answers .why")
        last.first.wait_for(state="attached")
        assert last.count() == page.locator(".quick-check").count()
        assert all(why.evaluate(SHOWN) for why in last.all())
        assert page.locator(".quick-check .why").evaluate_all(f"list => list.filter({SHOWN}).length") == 0
        assert page.locator(".quick-check label").first.evaluate(SHOWN)
        first = page.locator(".printed-answers > div").first.inner_text()
        assert first.startswith("1. It should be the last axis alone")
