"""Every page of the book in a real browser: light and dark, on a desk and on a phone, from a server and from a file."""

from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from threading import Event
from urllib.parse import quote

import pytest
from helpers.visit import DESK, PHONE, opened

from tools import course

LOOK = Path(__file__).with_name("look.js").read_text("utf-8")
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")

# A white picture of 60 x 60.
WHITE = "data:image/svg+xml," + quote(
    '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="60"><rect width="60" height="60" fill="#fff"/></svg>'
)

# A formula has the colour of the text round it, and axe has no rule for MathML: it need not walk its many elements.
# Contrast takes axe milliseconds for each element, and follows from tags, classes and styles: of elements that share
# these, and share them all the way up, the first is enough, also of those on several pages with the same style sheets.
# So the browser keeps what it has seen from page to page, for one window and scheme. Names, roles and sizes are the
# same in the dark: the other rules run in the light, those for best practice too. The size of targets (WCAG 2.2) is off
# unless asked for. One run for all rules: axe goes through the whole page before the first.
ACCESSIBLE = """async (scheme) => {
  document.querySelectorAll(".katex").forEach((e) => e.replaceChildren("formula"));
  const sheets = [...document.querySelectorAll("style, link[rel=stylesheet]")].map((e) => e.href || e.textContent);
  const known = new Map(JSON.parse(sessionStorage.getItem("looks") || "[]"));
  const number = (key) => known.get(key) ?? known.set(key, known.size).get(key);
  const numbers = new Map([[null, number(sheets.join())]]);
  const look = (e) => [path(e.parentElement), e.tagName, e.getAttribute("class"), e.getAttribute("style")].join();
  const path = (e) => numbers.get(e) ?? numbers.set(e, number(look(e))).get(e);
  const first = [];
  for (const e of document.querySelectorAll("body *")) {
    const text = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
    if (!text || !e.checkVisibility() || known.has(`text in ${path(e)}`)) continue;
    number(`text in ${path(e)}`);
    first.push(e);
  }
  sessionStorage.setItem("looks", JSON.stringify([...known]));
  first.forEach((e) => e.setAttribute("data-first", ""));
  axe.configure({ rules: [{ id: "color-contrast", selector: "[data-first]" }] });
  const all = { rules: { "target-size": { enabled: true } } };
  const only = scheme === "light" ? all : { runOnly: ["color-contrast"] };
  const { violations } = await axe.run({ resultTypes: ["violations"], ...only });
  return violations.flatMap(({ id, impact, nodes }) => nodes.map((n) => `${impact} ${id}: ${n.html.slice(0, 100)}`));
}"""


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_every_page_from_a_server(browser, server, pages, window):
    faults = []
    with both(browser, server, faults, window) as schemes:
        for name in pages:
            faults += [f"{name}: {fault}" for fault in visit(server + name, **schemes)]
    assert faults == []


@contextmanager
def both(browser, base, faults, window):
    """A page for a reader who prefers light, and one for dark."""
    with (
        opened(browser, base, faults, color_scheme="light", viewport=window) as light,
        opened(browser, base, faults, color_scheme="dark", viewport=window) as dark,
    ):
        yield {"light": light, "dark": dark}


def visit(address, **schemes):
    """Faults of one page in several colour schemes at once: two pages at work use two cores."""
    for page in schemes.values():
        page.goto(address)
        page.evaluate(AXE)
    faults = []
    for script in (LOOK, ACCESSIBLE):
        for scheme, page in schemes.items():
            page.evaluate(f"() => {{ found = ({script})('{scheme}') }}")  # and do not wait for it
        for scheme, page in schemes.items():
            faults += [f"{scheme}: {fault}" for fault in page.evaluate("found")]
    return faults


def test_a_look_seen_before_is_looked_at_again_in_another_style(browser, server):
    faults = []

    def pale(route):
        page = route.fetch()
        style = "<style>article section p { color: #bbb }</style>"
        route.fulfill(response=page, body=page.text().replace("</head>", style + "</head>"))

    with both(browser, server, faults, DESK) as schemes:
        faults += visit(server + "book/changelog.html", **schemes)
        assert faults == []
        for page in schemes.values():
            page.route("**/changelog.html", pale)
        faults += visit(server + "book/changelog.html", **schemes)
    assert any("light: serious color-contrast: <p" in fault for fault in faults), faults


def test_every_page_from_a_file(browser, pages):
    faults, base = [], course.PAGES.as_uri() + "/"
    with opened(browser, base, faults, color_scheme="light", viewport=DESK) as page:
        for name in pages:
            page.goto(base + name)
            faults += [f"{name}: {fault}" for fault in page.evaluate(f"({LOOK})('light')")]
    assert faults == []


# How many fonts came as files, how many of them before the first text was shown, and how far the text moved.
MOVED = """async () => {
  let shift = 0;
  const add = (list) => list.forEach(({ value }) => { shift += value });
  const observer = new PerformanceObserver((list) => add(list.getEntries()));
  observer.observe({ type: "layout-shift", buffered: true });
  await document.fonts.ready;
  for (let k = 0; k < 2; k++) await new Promise(requestAnimationFrame);
  add(observer.takeRecords());
  const [shown] = performance.getEntriesByName("first-contentful-paint");
  const fonts = performance.getEntriesByType("resource").filter(({ name }) => name.includes(".woff2"));
  return [fonts.length, fonts.filter(({ responseEnd }) => responseEnd < shown.startTime).length, shift];
}"""


def test_every_page_keeps_its_layout_when_fonts_come_late(browser, server, pages):
    """On a phone, where a word that grows breaks most lines: no font is answered before the page is shown."""
    faults, held, shown = [], [], Event()
    with opened(browser, server, faults, viewport=PHONE) as page:
        page.route("**/*.woff2", lambda route: route.continue_() if shown.is_set() else held.append(route))
        for name in pages:
            shown.clear()
            page.goto(server + name, wait_until="domcontentloaded")
            page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
            shown.set()
            while held:
                held.pop().continue_()
            page.wait_for_load_state()
            fonts, early, shift = page.evaluate(MOVED)
            assert (fonts > 0, early) == (True, 0), name  # the measurement is what it says
            if shift > 0.01:
                faults.append(f"{name}: layout shift of {shift:.3f}")
    assert faults == []


# What is planted in a good page, and what the visit must say of it.
PLANTED = {
    "a small target": (
        "<p>" + 2 * "<button style='width: 9px; height: 9px; padding: 0'>x</button>" + "</p>",
        "target-size",
    ),
    "a wide element": ("<div style='width: 3000px'>x</div>", "px wider than the window"),
    "a second header": ("<div class='bd-header-article'>x</div>", "2 visible headers"),
    "a picture without a size": ("<img src='data:,' alt='nothing' width='0' height='0'>", "no size: <img"),
    "a hidden formula": (
        "<section><p hidden><b class='math'><i class='katex'>x</i></b></p></section>",
        "hidden formula",
    ),
    "a light box": ("<div style='background: #eee; height: 2rem'>x</div>", "dark: light box"),
    "a light picture": (f"<div class='cell'><img alt='a light picture' src='{WHITE}'></div>", "dark: light picture"),
    "a field without a name": ("<input>", "critical label: <input"),
    "pale text": ("<p style='color: #bbb; background: #ccc'>pale text</p>", "dark: serious color-contrast: <p"),
    "a jump in the text": (
        "<script>setTimeout(() => document.querySelector('article').prepend(spacer), 50)</script>"
        "<div id='spacer' style='height: 500px'></div>",
        "layout shift of",
    ),
    "an error": ("<script>console.error('planted')</script>", "console: planted"),
    "a warning": ("<script>console.warn('planted too')</script>", "console: planted too"),
    "an exception": ("<script>throw Error('thrown')</script>", "error: thrown"),
    "a request that leaves the book": (
        "<img alt='x' src='https://example.org/x.png'>",
        "elsewhere: https://example.org",
    ),
    "a request that fails": ("<img alt='x' src='gone.png'>", "404: "),
}


@pytest.fixture(scope="module")
def planted(browser, server):
    """What is said of a page with all these faults at once."""
    faults, planted = [], "".join(html for html, _ in PLANTED.values())

    def plant(route):
        page = route.fetch()
        route.fulfill(response=page, body=page.text().replace("</article>", planted + "</article>"))

    with both(browser, server, faults, DESK) as schemes:
        for page in schemes.values():
            page.route("**/changelog.html", plant)
            page.route("https://example.org/*", lambda route: route.abort())
        faults += visit(server + "book/changelog.html", **schemes)
    return faults


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(planted, fault):
    assert any(PLANTED[fault][1] in found for found in planted), planted
