"""The live figures in a real browser: by keyboard, by pointer, on a phone, without a script, and their numbers."""

import itertools
import json

import numpy as np
import pytest
from refresh import chapters
from visit import DESK, PHONE, opened

from subnorm import numpy as sn

# What does not fit into the picture; what a reader without a script sees; where each figure is.
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
HEIGHTS = """() => [...document.querySelectorAll(".live-picture")].map((box) => Math.round(box.offsetHeight))"""


def figures_of(path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    tables = [
        output["metadata"]["live"] for c in cells for output in c.get("outputs", []) if "live" in output["metadata"]
    ]
    return [json.loads(table) for table in tables]


SPECS = {(path.stem, spec["name"]): spec for path in chapters() for spec in figures_of(path)}
NAMES = [f"{page}:{name}" for page, name in SPECS]


@pytest.fixture(params=SPECS, ids=NAMES)
def named(request):
    return request.param


def address(server, page):
    return f"{server}notebooks/{page}.html"


def shown(figure):
    return json.loads(figure.get_attribute("data-state"))


def row(spec, state):
    """The row of the table that belongs to a state: the last control changes first."""
    sizes = [len(control["values"]) for control in spec["controls"]]
    positions = list(itertools.product(*map(range, sizes)))
    return spec["frames"][positions.index(tuple(state[control["name"]] for control in spec["controls"]))]


def close(page, package):
    return np.testing.assert_allclose(page, package, rtol=1e-10, atol=1e-12)


def agree(spec, seen, sentence):
    """What the page shows is the row of the table; what it computes is what the package computes."""
    state, numbers = seen["state"], seen["numbers"]
    if spec["kind"] == "chart":
        assert numbers == row(spec, state)["panels"]
        assert sentence == row(spec, state)["say"]
        return
    x = state["scale"] * np.array([state[f"x{k}"] for k in (1, 2, 3, 4)]) + state["shift"]
    gamma, eps = np.full(4, state["gamma"], float), 10.0 ** state["eps"]
    if "layer" in numbers:
        close(numbers["layer"]["y"], sn.layer_norm(x, gamma, np.full(4, state["beta"], float), eps=eps))
    if "rms" in numbers:
        close(numbers["rms"]["y"], sn.rms_norm(x, gamma, eps=eps))


def test_by_keyboard_every_control_changes_what_is_seen(browser, server, named):
    page_name, figure_name = named
    spec, faults = SPECS[named], []
    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(address(server, page_name))
        figure = page.locator(f"#live-{figure_name}.live-on")
        figure.wait_for()
        say = figure.locator(".live-say")
        first = shown(figure)
        agree(spec, first, say.inner_text())
        for control in spec["controls"]:
            before = shown(figure)["state"][control["name"]]
            box = figure.locator(f"[data-control={control['name']}]")
            (box.locator("input:checked") if control["kind"] == "choice" else box.locator("input")).focus()
            last = len(control["values"]) - 1 if "values" in control else control["range"][1]
            page.keyboard.press("ArrowLeft" if before == last else "ArrowRight")
            assert shown(figure)["state"][control["name"]] != before
            agree(spec, shown(figure), say.inner_text())
        assert figure.locator("[role=status]").inner_text() == say.inner_text()
        figure.get_by_role("button", name="Start again").press("Enter")
        assert shown(figure) == first
    assert faults == []


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_in_every_state_all_text_is_inside_the_picture_and_apart(browser, server, named, window):
    page_name, figure_name = named
    spec, found = SPECS[named], {}
    with opened(browser, server, [], viewport=window) as page:
        page.goto(address(server, page_name))
        figure = page.locator(f"#live-{figure_name}.live-on")
        figure.wait_for()
        for control in spec["controls"]:
            inputs = figure.locator(f"[data-control={control['name']}] input")
            count = inputs.count()
            places = range(count) if control["kind"] == "choice" else [0, 1]
            for place in places:
                if control["kind"] == "choice":
                    inputs.nth(place).check()
                else:
                    inputs.press("End" if place else "Home")
                faults = figure.evaluate(OUTSIDE) + figure.evaluate(OVERLAPS)
                if faults:
                    found[control["name"], place] = faults
    assert found == {}


def test_a_script_changes_neither_the_height_nor_the_place_of_a_picture(browser, server, named):
    page_name, _ = named
    for window in (DESK, PHONE):
        heights = []
        for script in (True, False):
            with opened(browser, server, [], viewport=window, java_script_enabled=True) as page:
                if not script:
                    page.route("**/live.js*", lambda route: route.fulfill(body="", content_type="text/javascript"))
                page.goto(address(server, page_name))
                heights.append(page.evaluate(HEIGHTS))
        assert heights[0] == heights[1] != []


def test_without_a_script_picture_and_sentence_are_there_and_no_dead_control(browser, server, named):
    page_name, figure_name = named
    with opened(browser, server, [], java_script_enabled=False) as page:
        page.goto(address(server, page_name))
        figure = page.locator(f"#live-{figure_name}")
        assert figure.locator("svg").is_visible()
        assert figure.locator(".live-say").inner_text().strip()
        assert not figure.locator(".live-controls").is_visible()


@pytest.mark.parametrize("named", [key for key, spec in SPECS.items() if spec["kind"] == "norms"], ids="-".join)
def test_a_feature_follows_the_pointer(browser, server, named):
    page_name, figure_name = named
    with opened(browser, server, [], viewport=PHONE, has_touch=True) as page:
        page.goto(address(server, page_name))
        figure = page.locator(f"#live-{figure_name}.live-on")
        figure.locator(".drag").first.scroll_into_view_if_needed()
        box = figure.locator(".drag").first.bounding_box()
        x, middle = box["x"] + box["width"] * 0.375, box["y"] + box["height"] / 2  # the second of four bars
        page.mouse.move(x, middle)
        page.mouse.down()
        page.mouse.move(x, middle - box["height"] / 4, steps=4)
        page.mouse.up()
        state = shown(figure)["state"]
        assert state["scale"] * state["x2"] + state["shift"] == pytest.approx(7, abs=0.5 * state["scale"])
        page.mouse.move(x, middle)  # let go: it stays
        assert shown(figure)["state"] == state
