"""The story on the first page: word by word, at once, without a script, by keyboard, and always in its place."""

import pytest
from helpers.visit import DESK, PHONE, opened

from subnorm_lab.experiments import retold, stored
from tools import checkout

PAGE = "book/intro.html"
TOLD = stored.read(retold.RECORD)["told"]
STORIES = [told["story"] for told in TOLD.values()]

# How many letters of the chosen text are seen, and of all how many there are.
LETTERS = """figure => {
  const told = figure.querySelector(".retold-texts > .chosen");
  const seen = [...told.childNodes].filter((node) => node.nodeType === 3 || getComputedStyle(node).opacity !== "0");
  return [seen.map((node) => node.textContent).join("").length, told.textContent.length];
}"""
PLACE = "figure => [figure, figure.nextElementSibling].map((e) => Math.round(e.getBoundingClientRect().top + scrollY))"


def figure_on(page, server):
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    page.goto(server + PAGE)
    return page.locator("figure.retold")


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_each_story_appears_word_by_word_in_its_place(browser, server, window):
    faults = []
    with opened(browser, server, faults, viewport=window) as page:
        figure = figure_on(page, server)
        place = figure.evaluate(PLACE)
        for k, story in enumerate(STORIES):
            figure.get_by_role("radio").nth(k).check()
            seen = []
            while not seen or figure.get_by_role("button").inner_text() == "Stop":
                letters, whole = figure.evaluate(LETTERS)
                assert whole == len(story)
                assert figure.evaluate(PLACE) == place
                seen.append(letters)
                page.clock.run_for(500)
            assert seen[0] == 0
            assert len(seen) > 3
            assert sorted(set(seen)) == seen
            assert figure.evaluate(LETTERS) == [len(story), len(story)]
            assert figure.locator(".retold-texts > .chosen").inner_text() == story
            assert figure.evaluate("figure => figure.scrollWidth <= figure.clientWidth")
    assert faults == []


def test_it_can_be_stopped_and_told_again_by_keyboard(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        figure = figure_on(page, server)
        button = figure.get_by_role("button")
        page.clock.run_for(500)
        letters, whole = figure.evaluate(LETTERS)
        assert 0 < letters < whole
        button.press("Enter")
        assert figure.evaluate(LETTERS) == [whole, whole]
        button.press("Enter")
        assert figure.evaluate(LETTERS) == [0, whole]
        assert button.inner_text() == "Stop"


def test_a_choice_by_keyboard_is_announced_once_and_the_text_is_there_to_read(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        figure = figure_on(page, server)
        status = figure.get_by_role("status")
        assert status.inner_text() == ""
        figure.get_by_role("radio").first.press("ArrowRight")
        assert figure.get_by_role("radio").nth(1).is_checked()
        assert status.inner_text() == figure.locator(".retold-notes > .chosen").inner_text()
        assert figure.locator(".retold-texts").text_content() == "".join(STORIES)
        assert figure.locator("[aria-live], [role=status]").count() == 1  # it does not hold the text


def test_without_motion_it_is_there_at_once(browser, server):
    with opened(browser, server, [], viewport=DESK, reduced_motion="reduce") as page:
        figure = figure_on(page, server)
        for k, story in enumerate(STORIES):
            figure.get_by_role("radio").nth(k).check()
            assert figure.evaluate(LETTERS) == [len(story), len(story)]
        assert not figure.locator("button").is_visible()


def test_without_a_script_and_from_a_file(browser, server):
    with opened(browser, server, [], viewport=PHONE, java_script_enabled=False) as page:
        page.goto(server + PAGE)
        figure = page.locator("figure.retold")
        assert figure.locator(".retold-texts > .chosen").inner_text() == STORIES[0]
        assert not figure.locator(".live-controls").is_visible()
    faults = []
    with opened(browser, "file://", faults, viewport=PHONE) as page:
        page.goto((checkout.PAGES / PAGE).as_uri())
        figure = page.locator("figure.retold")
        figure.get_by_role("button", name="Tell it again").wait_for()
        assert figure.evaluate(LETTERS) == [len(STORIES[0])] * 2
    assert faults == []
