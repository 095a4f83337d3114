"""The first page: two stories at once, side by side, without a script, by keyboard, and the reader's own from there."""

import pytest
from helpers.visit import DESK, PHONE, opened
from subnorm_book.teaching.retold import at_a_word

from subnorm_lab import stories
from subnorm_lab.experiments import retold, stored
from tools import checkout

PAGE = "book/intro.html"
TRAINED, *CUTS = stored.read(retold.RECORD)["told"]
STORIES = {name: at_a_word(told["story"]) for name, told in stored.read(retold.RECORD)["told"].items()}
LAPTOP = {"width": 1280, "height": 800}

# Of both stories how many letters are seen, and of all how many there are.
LETTERS = """figure => [...figure.querySelectorAll(".retold-text")]
  .filter((text) => text.checkVisibility({ visibilityProperty: true })).map((text) => {
    const seen = [...text.childNodes].filter((node) => node.nodeType === 3 || getComputedStyle(node).opacity !== "0");
    return [seen.map((node) => node.textContent).join("").length, text.textContent.length];
  })"""
MARKS = """figure => [...figure.querySelectorAll(".retold-cuts > *")]
  .map((cut) => [...cut.querySelectorAll("mark")].map((mark) => mark.textContent))"""
PLACE = "figure => [figure, figure.nextElementSibling].map((e) => Math.round(e.getBoundingClientRect().top + scrollY))"
SEEN = (
    "e => { const box = e.getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight && box.width > 0 }"
)


def figure_on(page, address):
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    page.goto(address)
    return page.locator("figure.retold")


def lengths(cut):
    return [len(STORIES[TRAINED]), len(STORIES[cut])]


@pytest.mark.parametrize("window", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_both_stories_and_their_controls_are_on_the_first_screen_within_five_seconds(browser, server, window):
    faults, asked = [], []
    with opened(browser, server, faults, viewport=window) as page:
        page.on("request", lambda request: asked.append(request.url))
        figure = figure_on(page, server + PAGE)
        first = figure.evaluate(LETTERS)
        assert all(0.1 < seen / whole < 0.4 for seen, whole in first)  # the first words do not keep a reader waiting
        page.clock.run_for(1000)
        for (before, _), (seen, whole) in zip(first, figure.evaluate(LETTERS), strict=True):
            assert before < seen < whole
        page.clock.run_for(4000)
        assert figure.evaluate(LETTERS) == [[n, n] for n in lengths(CUTS[0])]
        boxes = [box.bounding_box() for box in figure.locator(".retold-panes > *").all()]
        side_by_side = boxes[0]["y"] == boxes[1]["y"]
        assert side_by_side == (window == LAPTOP)
        for part in [
            figure.locator(".retold-panes"),
            *figure.locator(":is(input, form button, .retold-name button)").all(),
            figure.locator(".retold-notes"),
        ]:
            assert part.evaluate(SEEN), part
        assert [url for url in asked if "stories/" in url or "storyteller" in url or "python" in url] == []
    assert faults == []


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_each_pair_appears_a_few_letters_at_a_time_in_its_place(browser, server, window):
    faults = []
    with opened(browser, server, faults, viewport=window) as page:
        figure = figure_on(page, server + PAGE)
        place = figure.evaluate(PLACE)
        for k, cut in enumerate(CUTS):
            figure.get_by_role("radio").nth(k).check()
            seen = []
            while not seen or figure.get_by_role("button").first.inner_text() == "Stop":
                letters = figure.evaluate(LETTERS)
                assert [whole for _, whole in letters] == lengths(cut)
                assert figure.evaluate(PLACE) == place
                seen.append([shown for shown, _ in letters])
                page.clock.run_for(500)
            assert all(0 < shown < whole for shown, whole in zip(seen[0], lengths(cut), strict=True))
            assert len(seen) > 3
            assert sorted(seen) == seen
            assert figure.evaluate(LETTERS) == [[n, n] for n in lengths(cut)]
            assert figure.evaluate("figure => figure.scrollWidth <= figure.clientWidth")
    assert faults == []


def test_it_can_be_stopped_and_told_again_by_keyboard(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        figure = figure_on(page, server + PAGE)
        button = figure.get_by_role("button").first
        page.clock.run_for(500)
        button.press("Enter")
        assert figure.evaluate(LETTERS) == [[n, n] for n in lengths(CUTS[0])]
        button.press("Enter")
        assert all(seen < 0.4 * whole for seen, whole in figure.evaluate(LETTERS))
        assert button.inner_text() == "Stop"


def test_a_choice_by_keyboard_is_announced_once_and_the_text_is_there_to_read(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        figure = figure_on(page, server + PAGE)
        status = figure.get_by_role("status")
        page.clock.run_for(1000)
        assert status.inner_text() == ""  # no letter is announced
        figure.get_by_role("radio").first.press("ArrowRight")
        assert figure.get_by_role("radio").nth(1).is_checked()
        assert status.inner_text() == figure.locator(".retold-notes > .chosen").inner_text()
        assert figure.locator(".retold-text").all_text_contents() == list(STORIES.values())
        assert figure.locator("[aria-live], [role=status]").count() == 1  # it does not hold the text


def test_without_motion_it_is_there_at_once(browser, server):
    with opened(browser, server, [], viewport=DESK, reduced_motion="reduce") as page:
        figure = figure_on(page, server + PAGE)
        for k, cut in enumerate(CUTS):
            figure.get_by_role("radio").nth(k).check()
            assert figure.evaluate(LETTERS) == [[n, n] for n in lengths(cut)]
        assert not figure.locator(".retold-name button").is_visible()


def test_without_a_script(browser, server):
    with opened(browser, server, [], viewport=PHONE, java_script_enabled=False) as page:
        page.goto(server + PAGE)
        figure = page.locator("figure.retold")
        shown = [text for text in figure.locator(".retold-text").all() if text.is_visible()]
        assert [text.inner_text() for text in shown] == [STORIES[TRAINED], STORIES[CUTS[0]]]
        assert shown[1].locator("mark").inner_text() == STORIES[CUTS[0]]
        assert [part for part in figure.locator(".live-controls, button").all() if part.is_visible()] == []


def test_it_marks_what_the_build_marks(browser, server):
    with opened(browser, server, [], java_script_enabled=False) as page:
        page.goto(server + PAGE)
        built = page.evaluate(f"({MARKS})(document.querySelector('.retold'))")
    with opened(browser, server, [], reduced_motion="reduce") as page:
        page.goto(server + PAGE)
        figure = page.locator("figure.retold")
        for radio in figure.get_by_role("radio").all():
            radio.check()
        assert figure.evaluate(MARKS) == built
    assert [bool(cut) for cut in built] == [name != "no final division" for name in CUTS]


CHOICES = "figure => Math.round(figure.querySelector('fieldset').getBoundingClientRect().top + scrollY)"


@pytest.mark.parametrize("words", ["", "One day, a dog", "Ça va, 日本 🐶?"])
def test_the_readers_own_words_go_on_as_in_python_from_a_file(browser, words):
    faults, models = [], retold.models()
    told = {name: at_a_word(stories.generate(model, words, retold.TOKENS)) for name, model in models.items()}
    with opened(browser, "file://", faults, viewport=PHONE, reduced_motion="reduce") as page:
        page.goto((checkout.PAGES / PAGE).as_uri())
        figure = page.locator("figure.retold")
        figure.get_by_label("Your own first words").fill(words)
        choices = figure.evaluate(CHOICES)
        page.keyboard.press("Enter")
        figure.get_by_role("button", name="Continue", exact=True).wait_for()
        assert figure.get_by_text("only English stories").is_visible() == (not words.isascii())
        assert figure.locator(".retold-text b").all_text_contents() == [words] * 2 * bool(words)
        for k, cut in enumerate(CUTS):
            figure.get_by_role("radio").nth(k).check()
            seen = figure.locator(".retold-panes > :first-child .retold-text, .chosen .retold-text").all_text_contents()
            assert seen == [told[TRAINED], told[cut]]
            assert figure.evaluate(CHOICES) == choices
    assert faults == []


def test_a_part_that_does_not_arrive_is_said_and_tried_again(browser, server):
    with opened(browser, server, [], viewport=DESK, reduced_motion="reduce") as page:
        page.goto(server + PAGE)
        page.route("**/stories/3.js", lambda route: route.abort())
        figure = page.locator("figure.retold")
        button = figure.locator("form button")
        button.click()
        figure.get_by_role("button", name="It did not arrive: try again").wait_for()
        assert figure.get_by_role("status").inner_text() == "It did not arrive: try again"
        page.unroute("**/stories/3.js")
        figure.get_by_label("Your own first words").fill("One day, a dog")
        button.click()
        figure.get_by_role("button", name="Continue", exact=True).wait_for()
        assert figure.locator(".retold-text").first.inner_text().startswith("One day, a dog named")
