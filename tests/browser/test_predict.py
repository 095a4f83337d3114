"""Predict boxes as a reader uses them: what follows waits for an answer or a skip, and the answer is kept."""

import re

import numpy as np
import pytest
from helpers.visit import DESK, KEEPS_NOTHING, PHONE, opened

from tools.checkout import PAGES

KINDS = {}  # {kind: (page, box)}, the first of each kind
for path in sorted((PAGES / "notebooks").glob("*.html")):
    for box, kind in re.findall(r'data-predict="([^"]+)" data-kind="(\w+)"', path.read_text("utf-8")):
        KINDS.setdefault(kind, (f"notebooks/{path.name}", box))
SEEN = "parts => parts.map((part) => part.checkVisibility({contentVisibilityAuto: true}))"
SHOWN = """name => [...document.querySelectorAll(`.foretold[data-for='${name}'] > :not(script)`)]
  .some((part) => part.checkVisibility({contentVisibilityAuto: true}))"""


class Box:
    """A box on a page."""

    def __init__(self, page, name):
        self.page, self.name = page, name
        self.box = page.locator(f"[data-predict='{name}']")
        self.follows = page.locator(f".foretold[data-for='{name}']")

    def is_open(self):
        return not self.follows.get_attribute("hidden")

    def shows(self):
        return any(self.follows.locator(":scope > :not(script)").evaluate_all(SEEN))

    def wait_until_shown(self):
        """After a change that no script of the page makes: Chromium may lay the page out a frame later."""
        self.page.wait_for_function(SHOWN, arg=self.name)

    def press(self, words):
        self.box.get_by_role("button", name=words).press("Enter")

    def said(self):
        return self.box.get_by_role("status").inner_text()


def test_there_are_boxes_of_every_kind():
    assert set(KINDS) == {"choice", "number", "curve"}


@pytest.fixture(params=["choice", "number", "curve"])
def kind(request):
    return request.param


def visit(page, server, kind):
    path, name = KINDS[kind]
    page.goto(f"{server}{path}#predict-{name}")
    return Box(page, name)


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_what_follows_waits_and_a_skip_opens_it(browser, server, kind, window):
    faults = []
    with opened(browser, server, faults, viewport=window) as page:
        box = visit(page, server, kind)
        assert not box.is_open()
        assert not box.shows()
        box.press("Skip")
        assert box.is_open()
        assert box.shows()
        page.reload()
        assert box.is_open()
        box.press("Predict again")
        assert not box.shows()
        page.reload()
        assert not box.is_open()
    assert faults == []


def test_a_click_on_the_blurred_line_skips(browser, server, kind):
    with opened(browser, server, [], viewport=DESK) as page:
        box = visit(page, server, kind)
        box.follows.locator("xpath=following-sibling::*[1]").click()
        assert box.is_open()
        assert box.box.get_by_role("button", name="Predict again").is_visible()


def test_without_a_script_and_on_paper_everything_is_open(browser, server, kind):
    with opened(browser, server, [], viewport=DESK, java_script_enabled=False) as page:
        box = visit(page, server, kind)
        assert box.is_open()
        assert not box.box.locator("input, button").locator("visible=true").count()
        assert not page.get_by_label("Skip all predictions").is_visible()
    with opened(browser, server, [], viewport=DESK) as page:
        box = visit(page, server, kind)
        assert not box.shows()
        page.emulate_media(media="print")
        box.wait_until_shown()


def test_a_choice_is_judged_and_kept(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        box = visit(page, server, "choice")
        right = box.box.locator("label[data-right] input")
        wrong = box.box.locator("label:not([data-right]) input").first
        ticked = "label => getComputedStyle(label, '::after').content"
        assert box.box.locator("label[data-right]").evaluate(ticked) == "none"
        wrong.press("Space")
        assert box.said().startswith("Not quite. ")
        assert '"not right"' in box.box.locator("label:has(input:checked)").evaluate(ticked)
        heard = box.box.aria_snapshot()
        assert (heard.count('(not right)" [checked]'), heard.count('(right)"')) == (1, 1)
        assert '"right"' in box.box.locator("label[data-right]").evaluate(ticked)
        assert box.shows()
        right.check()
        assert box.said() == "Right."
        assert "not right" not in "".join(box.box.locator("label").evaluate_all("all => all.map(" + ticked + ")"))
        page.reload()
        assert right.is_checked()
        assert box.said() == "Right."


def test_an_arrow_key_moves_between_the_options_and_enter_or_space_chooses(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        box = visit(page, server, "choice")
        options = box.box.get_by_role("radio")
        last = options.count() - 1
        has_focus = "radio => radio === document.activeElement"
        options.first.focus()
        for arrow, i in [("ArrowDown", 1), ("ArrowLeft", 0), ("ArrowUp", last), ("ArrowRight", 0)]:
            page.keyboard.press(arrow)
            assert options.nth(i).evaluate(has_focus)
            assert not box.is_open()
            assert not box.box.locator("input:checked").count()
        page.keyboard.press("Enter")
        assert options.first.is_checked()
        assert box.shows()
        page.keyboard.press("ArrowDown")
        assert options.first.is_checked()
        page.keyboard.press("Space")
        assert options.nth(1).is_checked()


def test_a_field_for_any_number_says_so(browser, server):
    with opened(browser, server, []) as page:
        page.goto(f"{server}notebooks/04-rmsnorm.html")
        field = page.locator("[data-most=Infinity]").first
        field.fill("much")
        field.press("Enter")
        assert page.get_by_text("Type a number").is_visible()


def test_a_number_is_compared_with_the_measured_one(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        box = visit(page, server, "number")
        field = box.box.get_by_label("Your guess")
        truth = float(re.sub(r"[\s%×x]", "", field.get_attribute("data-truth").replace("−", "-")))
        for refused in ("much", "3", "300 %"):  # it asks for a share
            field.fill(refused)
            field.press("Enter")
            assert "between 0 and 1" in box.said()
            assert not box.is_open()
        field.fill(f"{1000 * truth:.6g} %".replace(".", ","))
        field.press("Enter")
        assert "10 times too large" in box.said()
        assert f"It is {truth:.3g}".replace("-", "−") in box.said()
        assert box.box.locator("svg circle").count() == 2
        assert box.shows()
        page.reload()
        assert "10 times too large" in box.said()
        field.fill(f"{1.02 * truth:.6g}")
        field.press("Enter")
        assert box.said().startswith("Close. You: ")
        guess, measured = (float(dot.get_attribute("cx")) for dot in box.box.locator("svg circle").all())
        assert abs(guess - measured) < 2


def test_a_drawn_curve_is_compared_and_kept(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        box = visit(page, server, "curve")
        figure = box.follows.locator("xpath=preceding-sibling::*[1]").locator("figure[data-live=sketch]")
        figure.scroll_into_view_if_needed()
        page.wait_for_function("f => f.classList.contains('live-on')", arg=figure.element_handle())
        truth, guess = figure.locator("g.truth polyline"), figure.locator("g.guess polyline")
        hidden = "line => getComputedStyle(line).visibility"
        assert truth.evaluate(hidden) == "hidden"
        before = guess.get_attribute("points")
        compare = figure.get_by_role("button", name="Compare")
        compare.press("Enter")
        assert figure.locator(".live-say").inner_text().startswith("Draw first")
        assert not box.is_open()
        area = figure.locator(".drag").bounding_box()
        page.mouse.move(area["x"] + 3, area["y"] + area["height"] / 2)
        page.mouse.down()
        page.mouse.move(area["x"] + 3, area["y"] + 5)
        page.mouse.up()
        drawn = guess.get_attribute("points")
        assert drawn != before
        figure.locator("summary").press("Enter")
        figure.locator("input[type=range]").last.press("End")
        assert guess.get_attribute("points") != drawn
        drawn = guess.get_attribute("points")
        assert not box.is_open()
        assert compare.bounding_box()["y"] > figure.locator(".live-picture").bounding_box()["y"]
        compare.press("Enter")
        assert truth.evaluate(hidden) == "visible"
        assert box.shows()
        said = figure.locator(".live-say").inner_text()
        assert re.search(r"at (\d+ layers|block \d+):", said)
        at, drew, measured = map(float, re.findall(r"\d+(?:\.\d+)?", said))
        guesses, curve = figure.evaluate(
            "f => [JSON.parse(f.dataset.state).numbers.guess, JSON.parse(f.dataset.state).numbers.truth]"
        )
        gaps = [abs(y - np.interp(x, curve["x"], curve["y"])) for x, y in zip(guesses["x"], guesses["y"], strict=True)]
        furthest = int(np.argmax(gaps))
        assert at == guesses["x"][furthest]
        assert drew == pytest.approx(guesses["y"][furthest], rel=0.01)
        assert measured == pytest.approx(np.interp(at, curve["x"], curve["y"]), rel=0.01)
        page.reload()
        page.wait_for_function("f => f.classList.contains('compared')", arg=figure.element_handle())
        assert guess.get_attribute("points") == drawn
        box.press("Predict again")
        assert truth.evaluate(hidden) == "hidden"


def test_a_skipped_curve_shows_the_measured_one_alone(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        box = visit(page, server, "curve")
        figure = box.follows.locator("xpath=preceding-sibling::*[1]").locator("figure[data-live=sketch]")
        box.press("Skip")
        visibility = "line => getComputedStyle(line).visibility"
        assert figure.locator("g.truth polyline").first.evaluate(visibility) == "visible"
        assert figure.locator("g.guess").count() == 0
        assert figure.locator(".live-say").inner_text() == "This is the measured curve."


def test_just_let_me_read_opens_all_and_is_remembered(browser, server):
    path, _ = KINDS["choice"]
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(server + path)
        names = page.locator("[data-predict]").evaluate_all("boxes => boxes.map((box) => box.dataset.predict)")
        boxes = [Box(page, name) for name in names]
        boxes[0].press("Skip")
        switch = page.get_by_label("Skip all predictions")
        switch.press("Space")
        assert all(box.is_open() for box in boxes)
        page.reload()
        assert switch.is_checked()
        assert all(box.is_open() for box in boxes)
        switch.press("Space")
        assert [box.is_open() for box in boxes] == [True] + [False] * (len(boxes) - 1)  # only what was answered
        page.reload()
        assert not switch.is_checked()
        assert [box.is_open() for box in boxes] == [True] + [False] * (len(boxes) - 1)
    assert faults == []


def test_just_let_me_read_is_never_painted_closed(browser, server):
    """What waits is open before the script that answers it has come."""
    path, _ = KINDS["choice"]
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + path)
        page.get_by_label("Skip all predictions").press("Space")
        page.route("**/predict.js*", lambda route: route.abort())
        page.reload()
        assert page.locator(".foretold[hidden]").count() == 0


def test_a_browser_that_stores_nothing_still_opens(browser, server, kind):
    with opened(browser, server, [], viewport=DESK) as page:  # the theme's own scripts fail in such a browser
        page.add_init_script(KEEPS_NOTHING)
        box = visit(page, server, kind)
        assert not box.is_open()
        box.press("Skip")
        assert box.shows()


def test_a_link_to_what_waits_opens_it(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        box = visit(page, server, "choice")
        target = box.follows.locator("[id]").first
        if not target.count():
            target = box.follows.locator(":scope > :not(script)").first
            target.evaluate("element => (element.id = 'planted')")
        page.evaluate("id => (location.hash = id)", target.get_attribute("id"))
        page.wait_for_function("box => !box.hidden", arg=box.follows.element_handle())
        assert box.shows()


@pytest.mark.parametrize(
    ("chapter", "name", "offer"),
    [
        ("02-residual-connections", "02-sublayer-or-skip", "Try it"),
        ("05c-rank-collapse", "05c-one-token-left", "Play it"),
    ],
)
def test_an_answer_offers_the_figure_that_shows_it(browser, server, chapter, name, offer):
    with opened(browser, server, [], viewport=DESK, reduced_motion="reduce") as page:
        page.goto(f"{server}notebooks/{chapter}.html#predict-{name}")
        box = Box(page, name)
        play = box.box.locator(".play")
        assert not play.is_visible()
        box.press("Skip")
        assert play.inner_text() == offer
        play.press("Enter")
        figure = box.follows.locator("figure.live").first
        page.wait_for_function(
            "e => e.getBoundingClientRect().top < innerHeight && e.getBoundingClientRect().bottom > 0",
            arg=figure.element_handle(),
        )
        box.press("Predict again")
        assert not play.is_visible()


def test_a_wrong_answer_is_told_why(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "notebooks/01a-attention-in-twenty-lines.html#predict-01a-scores-plus-hundred")
        box = Box(page, "01a-scores-plus-hundred")
        assert "Only differences" not in box.box.inner_text()
        box.box.locator("label:not([data-right]) input").first.check()
        assert box.said().startswith("Not quite. Only differences of scores matter")
        box.box.locator("label[data-right] input").check()
        assert "Only differences" not in box.box.inner_text()


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_a_box_is_its_question_and_its_answer_for_who_just_reads(browser, server, kind, window):
    with opened(browser, server, [], viewport=window) as page:
        box = visit(page, server, kind).box
        question = " ".join(box.locator(":scope > p:not([class])").all_inner_texts())
        answer = {
            "choice": lambda: box.locator("label[data-right]").inner_text(),
            "number": lambda: box.locator("[data-truth]").get_attribute("data-truth"),
            "curve": lambda: "",  # the figure below shows it
        }[kind]()
        switch = page.get_by_label("Skip all predictions")
        switch.press("Space")
        shown = box.inner_text().split()
        assert shown == f"Predict {question} {answer}".split()
        assert box.evaluate("box => [...box.querySelectorAll('p')].every((p) => p.scrollWidth <= p.clientWidth)")
        assert not box.locator("button, input").locator("visible=true").count()
        switch.press("Space")
        assert box.locator("button").locator("visible=true").count()
