"""Answers are visible on request on the screen, and come last on paper."""

import pytest
from helpers.visit import DESK, opened

from tools import checkout

SHEETS = sorted(path.stem for path in (checkout.ROOT / "notebooks/exercises").glob("*.ipynb"))

# Which elements are visible. (A part that is not laid out yet counts as visible.)
SHOWN = "list => list.map((e) => e.checkVisibility() && e.getBoundingClientRect().height > 0)"


@pytest.mark.parametrize("sheet", SHEETS)
def test_a_solution_is_shown_to_those_who_ask_for_it(browser, server, sheet):
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(f"{server}notebooks/exercises/{sheet}.html")
        answers = page.locator(".cell.tag_answer")
        labels = answers.locator("summary")
        assert answers.count() == labels.count() == page.locator(".admonition.solution").count() >= 6
        assert set(labels.all_inner_texts()) == {"Show the solution"}
        parts = page.locator(".cell.tag_answer pre, .admonition.solution > :not(.admonition-title)")
        assert not any(parts.evaluate_all(SHOWN))
        explained = page.locator(".admonition.solution > summary")
        assert set(explained.all_inner_texts()) == {"Explanation"}  # two labels "solution" would be one too many
        for label in (*labels.all(), *explained.all()):
            label.press("Enter")
        assert set(labels.all_inner_texts()) == {"Hide the solution"}
        assert all(parts.evaluate_all(SHOWN))
        assert "SOLUTION" not in page.locator("article").inner_text()
    assert faults == []


def test_code_that_is_no_solution_keeps_its_label(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "notebooks/03-layer-normalization.html")
        labels = page.locator(".cell:not(.tag_checked) details.hide summary:visible")
        page.get_by_label("Read with code").check()
        assert set(labels.all_inner_texts()) == {"Show the code"}  # that draws


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
        ends = page.locator(".bd-article > :nth-last-child(-n + 2)").evaluate_all("all => all.map((e) => e.className)")
        assert ends == ["printed-hints", "printed-answers"]
        assert all(last.locator("p:not(.admonition-title), pre").evaluate_all(SHOWN))
        assert not any(last.locator("summary").evaluate_all(SHOWN))
        hints = page.locator(".admonition.dropdown:not(.solution) p, details.sd-dropdown:not(.solution) p")
        assert hints.count()
        assert all(hints.evaluate_all(SHOWN))
        assert all(hints.evaluate_all("list => list.map((e) => !!e.closest('.printed-hints'))"))
        page.emulate_media(media="screen")
        page.locator(".printed-answers").wait_for(state="detached")
        assert solutions.evaluate_all(places) == before


def test_each_answer_on_paper_follows_its_question(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "notebooks/03-layer-normalization.html")
        tasks = page.locator("#exercises > ol > li")
        solved = [n for n, task in enumerate(tasks.all(), 1) if task.locator(".solution").count()]
        questions = page.locator(".predict:has(+ .cell [data-live=sketch]) > p:not([class])").all_text_contents()
        questions += page.locator(".quick-check legend").all_text_contents()
        questions += [f"{n}. {tasks.nth(n - 1).locator('p').first.text_content()}" for n in solved]
        assert len(questions) > len(solved) > 1
        page.emulate_media(media="print")
        asked = page.locator(".printed-answers .asked")
        asked.first.wait_for(state="attached")
        assert asked.all_text_contents() == questions
        headings = [heading.rstrip("#") for heading in page.locator(".printed-answers h3").all_text_contents()]
        assert headings == ["Predictions", "Quick checks", "Exercises"]

        page.emulate_media(media="screen")
        page.goto(server + "notebooks/exercises/ex02-layer-norm.html")
        names = page.locator("section:has(> .solution) > h2").all_text_contents()
        page.emulate_media(media="print")
        for part in (".printed-hints", ".printed-answers"):
            page.locator(part).wait_for(state="attached")
            assert page.locator(f"{part} .rubric").all_text_contents() == names


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
        assert all(last.evaluate_all(SHOWN))
        assert not any(page.locator(".quick-check .why").evaluate_all(SHOWN))
        assert page.locator(".quick-check label").evaluate_all(SHOWN)[0]
        assert last.first.inner_text().startswith("It should be the last axis alone")
