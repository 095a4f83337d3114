"""The live figures in a real browser: by keyboard, by pointer, on a phone, without a script, and their numbers."""

import itertools
import json
import re

import numpy as np
import pytest
from helpers.visit import DESK, PHONE, opened
from subnorm_book.live_figures import stored

from subnorm import numpy as sn
from tools.refresh import chapters

# The labels that leave the picture, and those that overlap.
OUTSIDE = """figure => [...figure.querySelectorAll("svg text")].filter((text) => {
  const box = text.getBoundingClientRect(), view = figure.querySelector("svg").getBoundingClientRect();
  return Math.max(view.left - box.left, box.right - view.right, view.top - box.top, box.bottom - view.bottom) > 1;
}).map((text) => text.textContent)"""
OVERLAPS = """figure => {
  const texts = [...figure.querySelectorAll("svg text")].filter((text) => text.textContent.trim());
  const boxes = texts.map((text) => text.getBoundingClientRect());
  const apart = (a, b) => a.right < b.left + 1 || b.right < a.left + 1 || a.bottom < b.top + 3 || b.bottom < a.top + 3;
  return texts.flatMap((text, i) => texts.slice(0, i).filter((_, j) => !apart(boxes[i], boxes[j]))
    .map((other) => `${other.textContent} | ${text.textContent}`));
}"""


SPECS = {path.stem: [json.loads(table) for table in tables.values()] for path in chapters() if (tables := stored(path))}


@pytest.fixture(params=SPECS)
def name(request):
    """A page with live figures; one visit tests all of them."""
    return request.param


def figures_on(page, server, name):
    """(table, figure) of all live figures, once their script has run."""
    page.emulate_media(reduced_motion="reduce")  # a jump arrives at once
    for spec in SPECS[name]:
        page.goto(f"{server}notebooks/{name}.html#live-{spec['name']}")  # drawn when the reader comes near
        figure = page.locator(f"#live-{spec['name']}")
        page.locator(f"#live-{spec['name']}.live-on").wait_for()
        yield spec, figure


def shown(figure):
    return json.loads(figure.get_attribute("data-state"))


def row(spec, state):
    """The row of the table for a state; the last control varies fastest."""
    positions = list(itertools.product(*(range(len(control["values"])) for control in spec["controls"])))
    return spec["frames"][positions.index(tuple(state[control["name"]] for control in spec["controls"]))]


def close(page, package):
    return np.testing.assert_allclose(page, package, rtol=1e-10, atol=1e-12)


def agree(spec, figure):
    """The page shows the right row of the table, or computes the same as the package."""
    state, numbers = shown(figure).values()
    if spec["kind"] == "chart":
        assert numbers == row(spec, state)["panels"]
        assert figure.locator(".live-say").inner_text() == row(spec, state)["say"]
        return
    x = state["scale"] * np.array([state[f"x{k}"] for k in (1, 2, 3, 4)], float) + state["shift"]
    gamma, eps = np.full(4, state["gamma"], float), 10.0 ** state["eps"]
    assert set(numbers) == set(spec["rows"])
    if "layer" in numbers:
        close(numbers["layer"]["y"], sn.layer_norm(x, gamma, np.full(4, state["beta"], float), eps=eps))
    if "rms" in numbers:
        close(numbers["rms"]["y"], sn.rms_norm(x, gamma, eps=eps))


def positions(control, figure):
    """Move a slider to its ends, or a choice to each of its values."""
    inputs = figure.locator(f"[data-control={control['name']}] input")
    if control["kind"] == "choice":
        for place in range(inputs.count()):
            inputs.nth(place).check()
            yield place
    else:
        for key in ("Home", "End"):
            inputs.press(key)
            yield key


def crowded(spec, figure):
    """Labels outside the picture or overlapping, at the ends of every control."""
    for control in spec["controls"]:
        for place in positions(control, figure):
            if words := figure.evaluate(OUTSIDE) + figure.evaluate(OVERLAPS):
                yield f"{spec['name']}, {control['name']} at {place}: {words}"


def test_by_keyboard_every_control_changes_what_is_seen(browser, server, name):
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        for spec, figure in figures_on(page, server, name):
            first, texts = shown(figure), figure.locator(".live-controls").inner_text()
            agree(spec, figure)
            for control in spec["controls"]:
                before = shown(figure)["state"][control["name"]]
                box = figure.locator(f"[data-control={control['name']}]")
                said = box.inner_text()
                box.locator("input:checked" if control["kind"] == "choice" else "input").focus()
                last = len(control["values"]) - 1 if "values" in control else control["range"][1]
                page.keyboard.press("ArrowLeft" if before == last else "ArrowRight")
                assert shown(figure)["state"][control["name"]] != before
                if control["kind"] == "slider":
                    assert box.inner_text() != said
                    assert box.locator("input").get_attribute("aria-valuetext") == box.locator("output").inner_text()
                agree(spec, figure)
            assert figure.locator("[role=status]").inner_text() == figure.locator(".live-say").inner_text()
            faults += crowded(spec, figure)
            figure.get_by_role("button", name="Start again").press("Enter")
            assert shown(figure) == first
            assert figure.locator(".live-controls").inner_text() == texts
    assert faults == []


def test_on_a_phone_nothing_is_crowded_and_features_follow_the_finger(browser, server, name):
    faults = []
    with opened(browser, server, faults, viewport=PHONE, has_touch=True) as page:
        for spec, figure in figures_on(page, server, name):
            faults += crowded(spec, figure)
            figure.get_by_role("button", name="Start again").click()
            if spec["kind"] == "norms":
                drag(page, figure)
    assert faults == []


# The smallest gap between two numbers below neighbouring bars, in px.
GAP = """figure => {
  const boxes = [...figure.querySelectorAll("svg text.small")].map((text) => text.getBoundingClientRect());
  const gaps = boxes.slice(1).map((box, k) => ({ gap: box.left - boxes[k].right, row: box.top - boxes[k].top }));
  return Math.min(...gaps.filter(({ gap, row }) => Math.abs(row) < 3 && gap > -20).map(({ gap }) => gap));
}"""


@pytest.mark.parametrize("width", [320, 530, 608, 633, 640, 1280])
def test_the_numbers_below_bars_do_not_touch(browser, server, width):
    with opened(browser, server, [], viewport={"width": width, "height": 800}) as page:
        _, figure = next(figures_on(page, server, "03-layer-normalization"))
        for key in ("Home", "End"):
            for control in figure.locator("input[type=range]").all():
                control.press(key)
                assert figure.evaluate(GAP) >= 3
        height = figure.locator("svg").evaluate("svg => svg.viewBox.baseVal.height")
        assert figure.locator("svg").bounding_box()["height"] == height  # the place that the style keeps


def drag(page, figure):
    """Drag the second of four bars to half the height of the panel's upper half, which is 7."""
    area = figure.locator(".drag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    x, zero = box["x"] + box["width"] * 0.375, box["y"] + box["height"] / 2
    page.mouse.move(x, zero)
    page.mouse.down()
    page.mouse.move(x, 0, steps=4)
    assert shown(figure)["state"]["x2"] == 14  # the end of its slider
    page.mouse.move(x, zero - box["height"] / 4)
    page.mouse.up()
    state = shown(figure)["state"]
    assert state["scale"] * state["x2"] + state["shift"] == pytest.approx(7, abs=0.5 * state["scale"])
    page.mouse.move(x, zero)
    assert shown(figure)["state"] == state  # let go, it stays


def test_the_keys_of_a_figure_are_its_own(browser, server):
    """Otherwise JupyterLab would take the arrow keys."""
    with opened(browser, server, [], viewport=DESK) as page:
        _, figure = next(figures_on(page, server, "03-layer-normalization"))
        page.evaluate("document.body.addEventListener('keydown', ({ key }) => (document.title = key))")
        figure.locator("input").first.press("ArrowLeft")
        assert page.title() != "ArrowLeft"
        page.locator("#all-answers").press("ArrowRight")
        assert page.title() == "ArrowRight"


def test_the_text_of_the_picture_follows_the_controls(browser, server, name):
    with opened(browser, server, [], viewport=DESK) as page:
        for spec, figure in figures_on(page, server, name):
            picture, said = figure.locator("svg[role=img]"), figure.locator(".live-say")
            assert picture.get_attribute("aria-label") == spec["alt"]
            last = spec["controls"][-1]
            control = figure.locator(f"[data-control={last['name']}] input:not(:checked)").last
            if last["kind"] == "choice":
                control.check()
            else:
                control.press("Home" if last["start"] > last.get("range", [0])[0] else "End")
            assert picture.get_attribute("aria-label") == f"{spec['title']}. {said.inner_text()}"
            figure.get_by_role("button", name="Start again").click()
            assert picture.get_attribute("aria-label") == spec["alt"]


# The mean colour strength of the last column in each panel.
ENDS = """figure => [...figure.querySelectorAll("svg rect.grid")].map((frame) => {
  const { right, top, height } = frame.getBoundingClientRect();
  const cells = Array.from({ length: 16 }, (_, k) => {
    const cell = document.elementsFromPoint(right - 4, top + (k + 0.5) * height / 16).find((e) => e.matches("path"));
    return Number(cell?.getAttribute("fill-opacity") ?? NaN);
  });
  return cells.reduce((sum, v) => sum + v, 0) / cells.length;
})"""


def test_the_first_picture_of_the_book_shows_what_its_sentence_says(browser, server):
    """At every gain: strong colours for the stack that blows up, pale for the one that fades, between for the other."""
    bands = {"fades": (0, 0.25), "holds": (0.35, 0.7), "blows up": (0.7, 1)}
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "book/intro.html")
        figure = page.locator("#live-token.live-on")
        slider = figure.locator("input")
        slider.press("Home")
        seen = set()
        for _ in range(int(slider.get_attribute("max")) + 1):
            fates = re.findall(r"it (fades|holds|blows up)", figure.locator(".live-say").inner_text())
            strengths = figure.evaluate(ENDS)
            for fate, strength in zip(fates, strengths, strict=True):
                low, high = bands[fate]
                assert low <= strength <= high, (slider.get_attribute("aria-valuetext"), fates, strengths)
            seen.update(fates)
            slider.press("ArrowRight")
        assert seen == set(bands)


def test_a_figure_follows_its_window(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        _, figure = next(figures_on(page, server, "03-layer-normalization"))
        page.set_viewport_size(PHONE)
        page.wait_for_function(
            "figure => figure.querySelector('svg').viewBox.baseVal.width < 400", arg=figure.element_handle()
        )
        page.set_viewport_size(DESK)
        page.wait_for_function(
            "figure => figure.querySelector('svg').viewBox.baseVal.width > 500", arg=figure.element_handle()
        )


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_without_a_script_the_picture_has_its_place_and_no_control_is_dead(browser, server, name, window):
    with opened(browser, server, [], viewport=window) as page:
        heights = [f.locator(".live-picture").bounding_box()["height"] for _, f in figures_on(page, server, name)]
    with opened(browser, server, [], viewport=window, java_script_enabled=False) as page:
        page.goto(f"{server}notebooks/{name}.html")
        for spec, height in zip(SPECS[name], heights, strict=True):
            figure = page.locator(f"#live-{spec['name']}")
            assert figure.locator("svg").bounding_box()["height"] == height
            assert figure.locator(".live-say").inner_text().strip()
            assert not figure.locator(".live-controls").is_visible()
