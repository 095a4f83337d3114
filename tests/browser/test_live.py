"""The live figures in a real browser: by keyboard, by pointer, on a phone, without a script, and their numbers."""

import itertools
import json
import math
import re
from contextlib import contextmanager

import numpy as np
import pytest
from helpers import visit
from helpers.visit import CROWDED, DESK, PHONE
from subnorm_book.teaching.live_figures import stored_figures

from subnorm import numpy as sn
from subnorm_lab import live
from tools.checkout import chapters

# Hundreds of strokes of keys would take a minute.
SET = """const set = (input, value) => {
  if (input.type === "radio") return input.click();
  input.value = value;
  input.dispatchEvent(new Event("input", { bubbles: true }));
};"""


PLACES = {"before F": "pre", "after the plus": "post", "after F": "after_branch", "none": "none"}


def examples(monkeypatch):
    """The tables of a cloud and of a block, which every page could have."""
    published = []
    monkeypatch.setenv("SUBNORM_STORED", "1")
    monkeypatch.setattr(live, "publish_display_data", lambda data, metadata: published.append(metadata["live"]))
    points = np.array([0.9, 0.1, 0.5]) + np.random.default_rng(0).standard_normal((20, 3))
    live.cloud("space", "Tokens of three features in space", points, "A cloud of twenty points round a line.")
    where = live.choice("norm", "where the norm is", PLACES, "pre")
    axes = live.Axis("blocks passed"), live.Axis("size")
    panels = [live.Block("one sublayer", where), live.Lines(*axes, {"now": live.Curve("this place")})]
    slopes = dict(zip(PLACES.values(), (1, 0, 2, 5), strict=True))
    live.chart(
        "block",
        "A norm, and the curve of its place",
        [where],
        panels,
        lambda norm: (f"The norm is at {norm}.", [norm, {"now": ([0, 12], [1, 1 + 12 * slopes[norm]])}]),
        "A block diagram, and a line that rises.",
        side=2,
    )
    live.chart(
        "march",
        "A line that rises, step by step",
        [live.slider("step", "steps taken", range(4), 1, play=True), live.choice("sign", "sign", [1, -1], 1)],
        [live.Lines(*axes, {"now": live.Curve("the line", marks="too")})],
        lambda step, sign: (f"Step {step} of 3, {sign}.", [{"now": ([0, 12], [0, sign * step])}]),
        "A line that rises from the origin by one at each step.",
    )
    return published


with pytest.MonkeyPatch.context() as patch:
    EXAMPLES = examples(patch)
PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Examples</title>'
    '<meta name="viewport" content="width=device-width"><script>document.documentElement.classList.add("js")</script>'
    f"<style>{live.STYLE.read_text('utf-8')}</style></head><body>{''.join(map(live.markup, EXAMPLES))}"
    f"<script>{live.SCRIPT.read_text('utf-8')}</script></body></html>"
)


@contextmanager
def opened(*arguments, **settings):
    """A page of the book, or "examples"."""
    with visit.opened(*arguments, **settings) as page:
        page.route("**/notebooks/examples.html", lambda route: route.fulfill(body=PAGE, content_type="text/html"))
        yield page


@pytest.fixture(scope="module")
def windows(browser, server):
    """A page on a desk, one on a phone, and one without a script; a test opens in it what it needs."""
    faults = []
    with (
        opened(browser, server, faults, viewport=DESK) as desk,
        opened(browser, server, faults, viewport=PHONE, has_touch=True) as phone,
        opened(browser, server, faults, viewport=DESK, java_script_enabled=False) as plain,
    ):
        yield desk, phone, plain
    assert faults == []


def cleared(page, window):
    page.goto("about:blank")
    page.set_viewport_size(window)
    page.emulate_media(reduced_motion="no-preference")
    return page


@pytest.fixture
def desk(windows):
    return cleared(windows[0], DESK)


@pytest.fixture
def phone(windows):
    return cleared(windows[1], PHONE)


@pytest.fixture
def clocked(browser, server):
    """A page on a desk with a clock that a test can stop."""
    with opened(browser, server, [], viewport=DESK) as page:
        page.clock.install()
        yield page


SPECS = {
    path.stem: [json.loads(table) for table in tables.values()]
    for path in chapters()
    if (tables := stored_figures(path))
}
SPECS["examples"] = [json.loads(table) for table in EXAMPLES]


@pytest.fixture(params=SPECS, scope="module")
def name(request):
    """A page with live figures; one visit tests all of them."""
    return request.param


@pytest.fixture(scope="module")
def heights(windows, server, name):
    """What a page without a script leaves for each picture, by window and name; there no control is dead."""
    page = windows[2]
    page.goto(f"{server}notebooks/{name}.html")
    for fold in page.locator("section.second-reading > details > summary").all():
        fold.click()
    figures = {spec["name"]: page.locator(f"#live-{spec['name']}") for spec in SPECS[name]}
    found = []
    for window in (DESK, PHONE):
        page.set_viewport_size(window)
        for figure in figures.values():
            assert figure.locator(".live-say").inner_text().strip()
            assert not figure.locator(".live-controls").is_visible()
        found.append({key: figure.locator("svg").bounding_box()["height"] for key, figure in figures.items()})
    return found


def height(figure):
    return figure.locator(".live-picture").bounding_box()["height"]


def figures_on(page, server, name):
    """(table, figure) of all live figures, once their script has run."""
    page.emulate_media(reduced_motion="reduce")  # a jump arrives at once
    for spec in SPECS[name]:
        page.goto(f"{server}notebooks/{name}.html#live-{spec['name']}")  # drawn when the reader comes near
        figure = page.locator(f"#live-{spec['name']}")
        page.locator(f"#live-{spec['name']}.live-on").wait_for()
        figure.evaluate("(figure) => figure.querySelectorAll('details').forEach((fold) => (fold.open = true))")
        yield spec, figure


def state_of(figure):
    return json.loads(figure.get_attribute("data-state"))


# The state of a figure, its sentence, and the alternative text of its picture.
SAID = """figure => [figure.dataset.state, figure.querySelector(".live-say").innerText,
  figure.querySelector("svg[role=img]").getAttribute("aria-label")]"""


def row(spec, state):
    """The row of the table for a state; the last control varies fastest."""
    positions = list(itertools.product(*(range(len(control["values"])) for control in spec["controls"])))
    return spec["frames"][positions.index(tuple(state[control["name"]] for control in spec["controls"]))]


def close(page, package):
    return np.testing.assert_allclose(page, package, rtol=1e-10, atol=1e-12)


def agree(spec, figure):
    """The page shows the right row of the table, or computes the same as the package; the alt text fits the state."""
    state, say, label = figure.evaluate(SAID)
    state, numbers = json.loads(state).values()
    first = state == {control["name"]: control["start"] for control in spec["controls"]}
    assert label == (spec["alt"] if first else f"{spec['title']}. {say}")
    if spec["kind"] == "chart":
        assert numbers == row(spec, state)["panels"]
        assert say == row(spec, state)["say"].replace(" %", "\N{NO-BREAK SPACE}%")
        return
    if spec["kind"] == "sketch":
        assert numbers["truth"] == spec["truth"]
        return
    if spec["kind"] == "cloud":
        x, part = np.array(spec["x"], float), 0 if state["norm"] else state["project"] / 100
        flat = x - part * x.mean(-1, keepdims=True)
        end = sn.layer_norm(x, eps=0) if part == 1 else sn.rms_norm(flat, eps=0)
        close(numbers, flat + state["rescale"] / 100 * (end - flat))
        return
    x = state["scale"] * (np.array([state[f"x{k}"] for k in (1, 2, 3, 4)], float) + state["shift"])
    gamma, eps = np.full(4, state["gamma"], float), 10.0 ** state["eps"]
    rows = numbers["rows"]
    assert set(rows) == set(spec["rows"])
    if "layer" in rows:
        close(rows["layer"]["y"], sn.layer_norm(x, gamma, np.full(4, state["beta"], float), eps=eps))
    if "rms" in rows:
        close(rows["rms"]["y"], sn.rms_norm(x, gamma, eps=eps))


# The labels outside the picture or overlapping, with each slider at its ends and each choice at all of its values.
CROWDED_AT_THE_ENDS = f"""figure => {{
  {SET}
  const crowded = {CROWDED}, faults = [];
  for (const box of figure.querySelectorAll("[data-control]"))
    for (const input of box.querySelectorAll("input:not(:disabled)"))
      for (const place of input.type === "radio" ? [input.value] : [input.min || 0, input.max]) {{
        set(input, place);
        const words = crowded(figure);
        if (words.length) faults.push(`${{figure.id}}, ${{box.dataset.control}} at ${{place}}: ${{words.join("; ")}}`);
      }}
  return faults;
}}"""


def test_by_keyboard_every_control_changes_what_is_seen(desk, server, name, heights):
    faults = []
    for spec, figure in figures_on(desk, server, name):
        assert height(figure) == heights[0][spec["name"]]
        first, texts = state_of(figure), figure.locator(".live-controls").inner_text()
        agree(spec, figure)
        for control in spec["controls"]:
            before = state_of(figure)["state"][control["name"]]
            box = figure.locator(f"[data-control={control['name']}]")
            if box.locator("input:disabled").count():
                continue  # has no effect in this state
            said = box.inner_text()
            box.locator("input:checked" if control["kind"] == "choice" else "input").focus()
            last = len(control["values"]) - 1 if "values" in control else control["range"][1]
            desk.keyboard.press("ArrowLeft" if before == last else "ArrowRight")
            assert state_of(figure)["state"][control["name"]] != before
            if control["kind"] == "slider":
                assert box.inner_text() != said
                assert box.locator("input").get_attribute("aria-valuetext") == box.locator("output").inner_text()
            agree(spec, figure)
        assert figure.locator("[role=status]").inner_text() == figure.locator(".live-say").inner_text()
        assert all(handle.is_visible() for handle in figure.locator(".grip, .handle").all())
        faults += figure.evaluate(CROWDED_AT_THE_ENDS)
        figure.get_by_role("button", name="Reset").press("Enter")
        assert state_of(figure) == first
        assert figure.locator(".live-controls").inner_text() == texts
    assert faults == []


def test_on_a_phone_nothing_is_crowded_or_hidden_and_features_follow_the_finger(phone, server, name, heights):
    """Picture, controls and sentence are seen together, even on a low phone."""
    faults = []
    for spec, figure in figures_on(phone, server, name):
        assert height(figure) == heights[1][spec["name"]]
        faults += figure.evaluate(CROWDED_AT_THE_ENDS)
        faults += [f"{spec['name']}: {fault}" for fault in figure.evaluate(EMPTY)]
        figure.get_by_role("button", name="Reset").click()
        if spec["kind"] == "norms":
            drag(phone, figure)
            figure.get_by_role("button", name="Reset").click()
    for window in (PHONE, LOW):
        phone.set_viewport_size(window)
        faults += [f"{window['height']} px high: {fault}" for fault in phone.evaluate(HIDDEN)]
    assert faults == []


# The columns of a figure's controls that no control takes: its rows end before the figure does.
EMPTY = """figure => {
  const box = figure.querySelector(".live-controls"), style = getComputedStyle(box);
  const parts = [...box.children].map((part) => part.getBoundingClientRect()).filter(({ width }) => width);
  let x = box.getBoundingClientRect().left + parseFloat(style.paddingLeft);
  return style.gridTemplateColumns.split(" ").map(parseFloat).flatMap((wide, k) => {
    const [left, right] = [x, x + wide];
    x = right + (wide && parseFloat(style.columnGap));
    const taken = parts.some((part) => part.left <= left + 1 && part.right > left + 1);
    return wide && !taken ? [`column ${k + 1} of its controls is empty`] : [];
  });
}"""


LOW = {"width": 390, "height": 667}  # a phone whose browser shows its bars

# For each figure, as it comes into sight, and with the top of its picture below the bar of the page: what is not in
# sight, and where text is small.
HIDDEN = """async () => {
  document.documentElement.classList.remove("fresh");
  document.querySelectorAll("section.second-reading > details").forEach((fold) => { fold.open = true });
  document.querySelectorAll(".foretold[hidden]").forEach((part) => { part.hidden = false });
  const faults = [], box = (e) => e.getBoundingClientRect(), frame = () => new Promise(requestAnimationFrame);
  for (const figure of document.querySelectorAll("figure[data-live]")) {
    const [picture, controls, say] = ["picture", "controls", "say"].map((p) => figure.querySelector(`.live-${p}`));
    figure.querySelectorAll("details").forEach((fold) => { fold.open = false });
    figure.scrollIntoView();
    while (!figure.matches(".live-on")) await frame();
    for (const top of [innerHeight / 2, document.querySelector(".bd-header-article")?.offsetHeight ?? 0]) {
      scrollBy(0, box(picture).top - top);
      for (let k = 0; k < 2; k++) await frame();
      const over = box(picture).bottom - box(controls).top;
      if (over > 1) faults.push(`${figure.id}: the controls cover ${Math.round(over)} px of the picture`);
    }
    const under = box(say).bottom - innerHeight;
    if (under > 1) faults.push(`${figure.id}: ${Math.round(under)} px of the sentence are below the window`);
    const scale = picture.firstChild.getScreenCTM().a;
    if (Math.abs(scale - 1) > 0.02) faults.push(`${figure.id}: drawn at ${scale.toFixed(2)} of its size`);
  }
  return faults;
}"""


PLANTED = {
    "the controls cover": ".live-bar { position: sticky; bottom: 0 }",
    "of the sentence are below": ".live-controls { height: 900px }",
    "of its size": ".live-picture svg { width: 50% !important }",
}


def test_what_is_not_seen_on_a_phone_is_found(phone, server):
    phone.emulate_media(reduced_motion="reduce")
    phone.goto(f"{server}notebooks/04-rmsnorm.html")
    for fault, style in PLANTED.items():
        planted = phone.add_style_tag(content=style)
        assert any(fault in found for found in phone.evaluate(HIDDEN))
        planted.evaluate("style => style.remove()")


# The smallest gap in px between two numbers below neighbouring bars, as all sliders go to one end, then to the other.
GAP = f"""figure => {{
  {SET}
  const gap = () => {{
    const boxes = [...figure.querySelectorAll("svg text.small")].map((text) => text.getBoundingClientRect());
    const gaps = boxes.slice(1).map((box, k) => ({{ gap: box.left - boxes[k].right, row: box.top - boxes[k].top }}));
    return Math.min(...gaps.filter(({{ gap, row }}) => Math.abs(row) < 3 && gap > -20).map(({{ gap }}) => gap));
  }};
  return Math.min(...["min", "max"].flatMap((end) => [...figure.querySelectorAll("input[type=range]")].map((input) => {{
    set(input, input[end] || 0);
    return gap();
  }})));
}}"""


# The picture has the width of its place.
DRAWN = (
    "figure => figure.querySelector('svg').viewBox.baseVal.width === figure.querySelector('.live-picture').clientWidth"
)


def test_a_figure_follows_its_window_and_the_numbers_below_bars_do_not_touch(desk, server):
    _, figure = next(figures_on(desk, server, "03-layer-normalization"))
    for width in (320, 530, 608, 633, 640, 1280):
        desk.set_viewport_size({"width": width, "height": 800})
        desk.wait_for_function(DRAWN, arg=figure.element_handle())
        figure.get_by_role("button", name="Reset").click()
        assert figure.evaluate(GAP) >= 3, width
        drawn = figure.locator("svg").evaluate("svg => svg.viewBox.baseVal.height")
        assert figure.locator("svg").bounding_box()["height"] == drawn  # the place that the style keeps


def drag(page, figure):
    """Drag the second of four bars to 7, half of its slider's end."""
    area = figure.locator(".drag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    x, zero = box["x"] + box["width"] * 0.375, box["y"] + box["height"] * 14 / 22  # from -8 to 14
    page.mouse.move(x, zero)
    page.mouse.down()
    page.mouse.move(x, 0, steps=4)
    assert state_of(figure)["state"]["x2"] == 14  # the end of its slider
    page.mouse.move(x, zero - box["height"] * 7 / 22)
    page.mouse.up()
    state = state_of(figure)["state"]
    assert state["scale"] * (state["x2"] + state["shift"]) == pytest.approx(7, abs=0.5 * state["scale"])
    page.mouse.move(x, zero)
    assert state_of(figure)["state"] == state  # let go, it stays


def example(page, server, which, motion="reduce"):
    """The figure of a kind, or of a name, among the examples."""
    specs = SPECS["examples"]
    [name] = [spec["name"] for spec in specs if which == spec["name"] or which == spec["kind"] != "chart"]
    page.emulate_media(reduced_motion=motion)
    page.goto(f"{server}notebooks/examples.html#live-{name}")
    figure = page.locator(f"#live-{name}.live-on")
    figure.evaluate("(figure) => figure.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    figure.scroll_into_view_if_needed()
    return figure


def middle(element):
    box = element.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def at_place(figure, k):
    """The place on the screen of value k of the control that the handle sets."""
    corner, handle = figure.locator("svg").bounding_box(), figure.locator(".handle")
    x, y = json.loads(handle.get_attribute("data-places"))[k]
    return corner["x"] + x, corner["y"] + y


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_a_norm_follows_the_pointer_and_goes_to_the_nearest_place(browser, server, window):
    with opened(browser, server, [], viewport=window) as page:
        figure = example(page, server, "block")
        table = json.loads(EXAMPLES[1])
        for k in (1, 3, 2, 0):
            page.mouse.move(*middle(figure.locator(".handle")))
            page.mouse.down()
            x, y = at_place(figure, k)
            page.mouse.move(x + 12, y - 9, steps=5)
            assert middle(figure.locator(".handle")) == pytest.approx((x + 12, y - 9), abs=1)
            assert state_of(figure)["state"] == {"norm": k}  # the curve changes while the norm is on its way
            page.mouse.up()
            assert middle(figure.locator(".handle")) == pytest.approx((x, y), abs=1)
            assert figure.locator("input").nth(k).is_checked()
            assert figure.locator("[role=status]").inner_text() == f"The norm is at {list(PLACES.values())[k]}."
            agree(table, figure)
        page.mouse.move(*at_place(figure, 2))
        assert state_of(figure)["state"] == {"norm": 0}  # let go, it stays
        page.mouse.down()  # an empty place takes the norm, too
        page.mouse.up()
        assert state_of(figure)["state"] == {"norm": 2}


@contextmanager
def still(page):
    """The page's clock, which only the test moves; the animation frames follow it."""
    page.clock.pause_at(page.evaluate("Date.now()") + 10_000)
    yield page.clock
    page.clock.resume()


BEAT = 700  # ms between two steps
HEIGHTS = """figure => {
  const points = figure.querySelector("polyline").getAttribute("points").split(" ");
  return points.map((point) => Number(point.split(",")[1]));
}"""
GLIDES = "figure => figure.classList.contains('live-glides')"  # and shows no number of the next step


def test_a_picture_glides_to_the_next_state_unless_motion_is_to_be_reduced(clocked, server):
    figure = example(clocked, server, "march", "no-preference")
    first = figure.evaluate(HEIGHTS)
    with still(clocked) as clock:
        figure.locator("input[type=range]").press("End")
        assert state_of(figure)["state"]["step"] == 3
        assert figure.locator(".live-say").inner_text() == "Step 3 of 3, 1."
        assert figure.evaluate(HEIGHTS) == first
        clock.run_for(100)
        halfway = figure.evaluate(HEIGHTS)
        clock.run_for(150)
        last = figure.evaluate(HEIGHTS)
        assert 0.3 < (first[1] - halfway[1]) / (first[1] - last[1]) < 0.7  # a frame takes 16 ms
        figure.locator(".live-play").click()  # at once from step 0, and on until the next beat
        level = figure.evaluate(HEIGHTS)
        for said in (0, 1):  # the words name the step that the line has reached
            clock.run_for(0.5 * BEAT)
            passed = 3 * (level[1] - figure.evaluate(HEIGHTS)[1]) / (level[1] - last[1])
            assert said + 0.3 < passed < said + 0.7
            assert figure.locator(".live-say").inner_text() == f"Step {said} of 3, 1."
            assert figure.evaluate(GLIDES)
            clock.run_for(0.5 * BEAT)
            assert state_of(figure)["state"]["step"] == said + 1
        figure.get_by_role("button", name="Reset").click()
        assert not figure.evaluate(GLIDES)
        clock.run_for(100)
        clocked.emulate_media(reduced_motion="reduce")
        figure.locator("input[type=range]").press("End")
        assert figure.evaluate(HEIGHTS) == last
        clock.run_for(250)
        assert figure.evaluate(HEIGHTS) == last  # the glide before has ended


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_a_norm_glides_unless_motion_is_to_be_reduced(clocked, server, motion):
    figure = example(clocked, server, "block", motion)
    first = middle(figure.locator(".handle"))
    with still(clocked) as clock:
        figure.locator("input").nth(1).check()
        last = pytest.approx(at_place(figure, 1), abs=1)
        assert middle(figure.locator(".handle")) == (first if motion == "no-preference" else last)
        clock.run_for(250)
        assert middle(figure.locator(".handle")) == last
        figure.locator("input").nth(0).check()
        clocked.set_viewport_size(PHONE)
        narrow = "figure => figure.querySelector('svg').viewBox.baseVal.width < 400"
        clocked.wait_for_function(narrow, arg=figure.element_handle())
        assert middle(figure.locator(".handle")) == pytest.approx(at_place(figure, 0), abs=1)  # at once


def swipe(page, start, by):
    """One finger, as the browser itself sees it; it may scroll the page instead."""
    touch = page.context.new_cdp_session(page)
    for k in range(9):
        point = {"x": start[0] + by[0] * k / 8, "y": start[1] + by[1] * k / 8}
        touch.send("Input.dispatchTouchEvent", {"type": "touchMove" if k else "touchStart", "touchPoints": [point]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_a_finger_moves_a_feature_and_not_the_page(phone, server):
    _, figure = next(figures_on(phone, server, "03-layer-normalization"))
    area = figure.locator(".drag").first
    area.scroll_into_view_if_needed()
    box, top, handle = area.bounding_box(), phone.evaluate("scrollY"), middle(figure.locator("circle.grip").nth(1))
    swipe(phone, handle, (0, box["y"] + box["height"] * 7 / 22 - handle[1]))
    state = state_of(figure)["state"]
    assert state["scale"] * (state["x2"] + state["shift"]) == pytest.approx(7, abs=0.5 * state["scale"])
    assert phone.evaluate("scrollY") == top


DRAGGED = {"norms": "03-layer-normalization", "sketch": "02-residual-connections"}


@pytest.mark.parametrize("kind", DRAGGED)
def test_a_finger_that_begins_away_from_the_handles_scrolls_the_page(phone, server, kind):
    figure = next(figure for spec, figure in figures_on(phone, server, DRAGGED[kind]) if spec["kind"] == kind)
    area = figure.locator(".drag").first
    area.scroll_into_view_if_needed()
    before, top, box = state_of(figure)["state"], phone.evaluate("scrollY"), area.bounding_box()
    handles = [middle(handle) for handle in figure.locator("circle.grip").all()]
    steps = [
        (box["x"] + box["width"] * k / 40, box["y"] + box["height"] * j / 40) for k in range(41) for j in range(41)
    ]
    start = max(steps, key=lambda at: min(math.dist(at, handle) for handle in handles))
    swipe(phone, start, (0, -120))
    phone.wait_for_function(f"scrollY > {top}")
    assert state_of(figure)["state"] == before


def test_a_finger_moves_the_norm_and_turns_the_cloud_but_can_scroll_past_it(phone, server):
    figure = example(phone, server, "block")
    start, end = middle(figure.locator(".handle")), at_place(figure, 1)
    swipe(phone, start, (end[0] - start[0], end[1] - start[1]))
    assert state_of(figure)["state"] == {"norm": 1}
    figure = example(phone, server, "cloud")
    first, top = state_of(figure)["state"], phone.evaluate("scrollY")
    swipe(phone, middle(figure.locator("svg")), (80, 0))
    assert state_of(figure)["state"]["turn"] == pytest.approx(first["turn"] + 40, abs=8)  # Chromium waits for 15 px
    turned = state_of(figure)["state"]
    swipe(phone, middle(figure.locator("svg")), (0, -120))
    phone.wait_for_function(f"scrollY > {top}")
    assert state_of(figure)["state"]["turn"] == turned["turn"]


def test_a_cloud_turns_with_the_pointer_and_with_sliders(desk, server):
    figure = example(desk, server, "cloud")
    first = state_of(figure)
    x, y = middle(figure.locator("svg"))
    desk.mouse.move(x, y)
    desk.mouse.down()
    assert state_of(figure) == first
    desk.mouse.move(x + 100, y + 40, steps=3)
    desk.mouse.up()
    state = state_of(figure)["state"]
    assert (state["turn"], state["tilt"]) == (first["state"]["turn"] + 50, first["state"]["tilt"] + 20)
    assert state_of(figure)["numbers"] == first["numbers"]
    desk.mouse.move(x, y)
    desk.mouse.down()
    desk.mouse.move(x + 300, y + 1000, steps=3)
    desk.mouse.up()
    state = state_of(figure)["state"]
    assert (state["turn"], state["tilt"]) == (first["state"]["turn"] + 200 - 360, 90)  # on and on; up to the pole
    points = figure.locator("svg").inner_html()
    figure.locator("[data-control=turn] input").press("ArrowRight")
    assert state_of(figure)["state"]["turn"] == state["turn"] + 2
    assert figure.locator("svg").inner_html() != points


def test_a_cloud_projects_only_for_layer_norm(desk, server):
    figure = example(desk, server, "cloud")
    project, rescale = (figure.locator(f"[data-control={name}] input") for name in ("project", "rescale"))
    project.press("End")
    rescale.press("End")
    assert "one circle" in figure.locator(".live-say").inner_text()
    agree(json.loads(EXAMPLES[0]), figure)
    figure.get_by_label("RMSNorm").check()
    assert project.is_disabled()
    assert "one sphere" in figure.locator(".live-say").inner_text()
    agree(json.loads(EXAMPLES[0]), figure)
    figure.get_by_role("button", name="Reset").click()
    assert project.is_enabled()


def test_play_goes_step_by_step_to_the_end_and_begins_anew(clocked, server):
    """By the page's own clock, which stands still between two lines."""
    figure = example(clocked, server, "march")
    heard, play = figure.locator("[role=status]"), figure.locator(".live-play")
    assert play.inner_text() == "Play"
    with still(clocked) as clock:
        play.press("Enter")  # it started at step 1: play all
        assert play.inner_text() == "Pause"
        assert state_of(figure)["state"] == {"step": 0, "sign": 0}
        clock.run_for(3 * BEAT - 1)
        assert state_of(figure)["state"]["step"] == 2
        assert heard.inner_text() == ""
        clock.run_for(1)
        assert state_of(figure)["state"]["step"] == 3
        assert figure.locator("input[type=range]").input_value() == "3"
        assert heard.inner_text() == "Step 3 of 3, 1."
        assert play.inner_text() == "Play again"
        clock.run_for(5 * BEAT)
        assert state_of(figure)["state"]["step"] == 3
        play.press("Space")
        assert state_of(figure)["state"]["step"] == 0
        clock.run_for(3 * BEAT)
        assert state_of(figure)["state"]["step"] == 3
        agree(json.loads(EXAMPLES[2]), figure)


STOPS = {
    "pause": (lambda figure: figure.get_by_role("button", name="Pause").click(), 0),
    "the slider": (lambda figure: figure.locator("input[type=range]").press("ArrowRight"), 1),
    "the choice": (lambda figure: figure.locator("input[type=radio]").last.check(), 0),
    "the start": (lambda figure: figure.get_by_role("button", name="Reset").click(), 1),
}


@pytest.mark.parametrize("how", STOPS)
def test_any_input_stops_the_play(clocked, server, how):
    figure = example(clocked, server, "march")
    act, step = STOPS[how]
    with still(clocked) as clock:
        figure.get_by_role("button", name="Play").click()
        act(figure)
        clock.run_for(5 * BEAT)
    assert state_of(figure)["state"]["step"] == step
    assert figure.locator(".live-play").inner_text() == "Play"
    assert figure.locator("[role=status]").inner_text() == figure.locator(".live-say").inner_text()


def test_a_pointer_near_a_point_sees_its_value(desk, server):
    figure = example(desk, server, "march")
    corner, value = figure.locator("svg").bounding_box(), figure.locator(".live-value")
    x, y = map(float, (figure.locator("svg circle").nth(1).get_attribute(name) for name in ("cx", "cy")))
    desk.mouse.move(corner["x"] + x + 9, corner["y"] + y + 9)
    assert value.inner_text() == "the line, blocks passed 12: 1"
    assert middle(value) == pytest.approx((corner["x"] + x, corner["y"] + y), abs=1)
    desk.mouse.move(corner["x"] + x - 60, corner["y"] + y + 60)
    assert value.count() == 0
    desk.mouse.move(corner["x"] + x, corner["y"] + y)
    figure.locator("input[type=range]").press("End")
    assert value.count() == 0  # it was the value of another state
    desk.mouse.move(corner["x"] + x, 5)
    assert value.count() == 0


def test_the_arrow_keys_read_the_values_aloud(desk, server):
    figure = example(desk, server, "march")
    heard, value = figure.locator("[role=status]"), figure.locator(".live-value")
    values = [f"the line, blocks passed {x}: {y}" for x, y in ((0, 0), (12, 1))]
    for key, k in zip(["ArrowRight"] * 3 + ["ArrowLeft"] * 2, (0, 1, 0, 1, 0), strict=True):
        figure.locator(".live-read").press(key)
        assert heard.inner_text() == value.inner_text() == values[k]
    desk.keyboard.press("Tab")
    assert value.count() == 0


def test_a_value_has_its_unit_and_its_range_and_the_name_of_its_tick(desk, server):
    desk.emulate_media(reduced_motion="reduce")
    desk.goto(f"{server}notebooks/05-pre-ln-or-post-ln.html#live-loss-curves")
    figure = desk.locator("#live-loss-curves.live-on")
    figure.locator(".live-read").press("ArrowRight")
    rate = next(spec for spec in SPECS["05-pre-ln-or-post-ln"] if spec["name"] == "loss-curves")
    first = state_of(figure)["numbers"][0]["post"]
    low, y, high = (f"{first[key][0]:.3g}" for key in ("low", "y", "high"))
    assert rate["panels"][0]["y"]["label"] == "loss (nats)"
    words = f"Post-LN, training step {first['x'][0]}: {y} nats ({low} to {high})"
    assert figure.locator("[role=status]").inner_text() == words
    desk.goto(f"{server}notebooks/06-the-block-assembled.html#live-writes")
    figure = desk.locator("#live-writes.live-on")
    figure.locator(".live-read").press("ArrowRight")
    label, word, share, _ = state_of(figure)["numbers"][0][0]
    assert figure.locator("[role=status]").inner_text() == f"{label} {word}: {share:.3g}"
    desk.goto(f"{server}notebooks/02-residual-connections.html#live-lens")
    figure = desk.locator("#live-lens.live-on")
    figure.locator(".live-read").press("ArrowLeft")
    cells = next(spec for spec in SPECS["02-residual-connections"] if spec["name"] == "lens")["panels"][0]["cells"]
    assert figure.locator("[role=status]").inner_text() == f"block 5, reads it: {cells[5][4][0]}"
    desk.goto(f"{server}notebooks/10-norms-at-work.html#live-halves")
    figure = desk.locator("#live-halves.live-on")
    figure.locator(".live-read").press("ArrowLeft")
    panel, last = SPECS["10-norms-at-work"][0]["panels"][-1], state_of(figure)["numbers"][-1]
    words = f"{panel['title']}, feature 2: {round(last['bars'][1], 2):g}, right is {round(last['ghost'][1], 2):g}"
    assert figure.locator("[role=status]").inner_text() == words


def test_the_handle_of_a_bar_is_at_its_end(desk, server):
    _, figure = next(figures_on(desk, server, "03-layer-normalization"))
    tops = figure.locator(".bar").first.bounding_box(), middle(figure.locator(".grip").first)
    assert tops[0]["y"] == pytest.approx(tops[1][1], abs=1)


def test_a_phrase_in_the_text_sets_its_figure_and_brings_it_into_view(desk, server):
    desk.emulate_media(reduced_motion="reduce")
    desk.goto(f"{server}notebooks/03-layer-normalization.html")
    figure = desk.locator("#live-layer-norm.live-on")
    first = state_of(figure)
    figure.locator("summary").click()
    figure.locator("[data-control=x1] input").press("End")
    figure.locator("[data-control=scale] input").press("End")
    phrase = desk.get_by_role("button", name="at half the volume and moved up by 5")
    phrase.evaluate("phrase => document.querySelector('article').append(phrase)")  # far away
    phrase.press("Space")
    desk.wait_for_function("""() => {
      const { top, bottom } = document.querySelector("#live-layer-norm .live-picture").getBoundingClientRect();
      return top >= 0 && bottom <= innerHeight;
    }""")
    assert state_of(figure)["state"] == {**first["state"], "x1": 14, "scale": 0.5, "shift": 5}
    figure.locator("[data-control=scale] input").press("End")
    phrase.press("Enter")
    assert figure.locator("[data-control=scale] input").input_value() == "0.5"
    assert figure.locator("[role=status]").inner_text() == figure.locator(".live-say").inner_text()


def test_without_a_script_a_phrase_is_text_and_nothing_has_a_handle(windows, server):
    page = windows[2]
    page.goto(f"{server}notebooks/03-layer-normalization.html")
    assert page.locator("span.live-set").inner_text() == "at half the volume and moved up by 5"
    assert page.locator("a.live-set").count() == 0
    grips = page.locator(".grip")
    assert grips.count() > 0
    assert not any(grip.is_visible() for grip in grips.all())


def test_the_keys_of_a_figure_are_its_own(desk, server):
    """Otherwise JupyterLab would take the arrow keys."""
    _, figure = next(figures_on(desk, server, "03-layer-normalization"))
    desk.evaluate("document.body.addEventListener('keydown', ({ key }) => (document.title = key))")
    figure.locator("input").first.press("ArrowLeft")
    assert desk.title() != "ArrowLeft"
    desk.locator("#all-answers").press("ArrowRight")
    assert desk.title() == "ArrowRight"


# The mean colour strength of column `at` in each panel.
# elementsFromPoint sees only what is in the window
COLUMN = """(figure, at) => {
  figure.scrollIntoView({ block: "center", behavior: "instant" });
  return [...figure.querySelectorAll("svg rect.grid")].map((frame) => {
    const { left, width, top, height } = frame.getBoundingClientRect();
    const cells = Array.from({ length: 12 }, (_, k) => {
      const seen = document.elementsFromPoint(left + (at + 0.5) * width / 25, top + (k + 0.5) * height / 12);
      return Number(seen.find((e) => e.matches("path"))?.getAttribute("fill-opacity") ?? NaN);
    });
    return cells.every(Number.isNaN) ? null : cells.reduce((sum, v) => sum + v, 0) / cells.length;
  });
}"""


def number_in(words):
    """The number in a sentence of the figure: 0.27, or 3.8 × 10⁻⁴."""
    digits, _, power = words.partition("\u00a0×\u00a010")
    return float(digits) * 10.0 ** int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)


def test_the_picture_of_a_token_shows_what_its_sentence_says(desk, server):
    """In every state, the shade of the last block passed is that of the size; what comes after is empty."""
    desk.emulate_media(reduced_motion="reduce")
    desk.goto(server + "notebooks/01-why-depth-breaks.html")
    figure = desk.locator("#live-token.live-on")
    blocks, gain = (figure.locator(f"[data-control={name}] input") for name in ("blocks", "gain"))
    gain.press("Home")
    for _ in range(int(gain.get_attribute("max")) + 1):
        blocks.press("Home")
        for _ in range(int(blocks.get_attribute("max")) + 1):
            said = figure.locator(".live-say").inner_text()
            passed = int(re.match(r"After (\d+) of 24 blocks", said)[1])
            sizes = re.findall(r"(\d[\d.]*(?:\u00a0×\u00a010[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?) (?:in|with)", said)
            strengths = figure.evaluate(COLUMN, passed)
            for words, strength in zip(sizes, strengths, strict=True):
                expected = np.clip(0.5 + np.log10(number_in(words)) / 6, 0.05, 1)
                assert strength == pytest.approx(expected, abs=0.13), (said, strengths)
            if passed < 24:
                assert figure.evaluate(COLUMN, passed + 1) == [None] * 3
            blocks.press("ArrowRight")
        gain.press("ArrowRight")
