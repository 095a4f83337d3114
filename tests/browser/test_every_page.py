"""Faults planted in a page, which must be found by what the tests of every page look for."""

import re
from urllib.parse import quote

import pytest
from helpers.look import SMALL, accessible, read_to_the_end, zoom
from helpers.visit import DESK, opened

# A white picture of 60 x 60.
LABEL = "data:image/svg+xml," + quote(
    '<svg xmlns="http://www.w3.org/2000/svg" width="100" height="50" viewBox="0 0 200 100">'
    '<text y="50" font-size="9">in a file</text></svg>'
)
WHITE = "data:image/svg+xml," + quote(
    '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="60"><rect width="60" height="60" fill="#fff"/></svg>'
)


def test_a_look_seen_before_is_looked_at_again_in_another_style(browser, server):
    faults = []

    def pale(route):
        page = route.fetch()
        style = "<style>article section p { color: #bbb }</style>"
        route.fulfill(response=page, body=page.text().replace("</head>", style + "</head>"))

    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(server + "book/changelog.html")
        faults += accessible(page, "light", "dark")
        assert faults == []
        page.route("**/changelog.html", pale)
        page.goto(server + "book/changelog.html")
        faults += accessible(page, "light", "dark")
    assert any("light: serious color-contrast: <p" in fault for fault in faults), faults


# What is planted in a good page, and what must be said of it.
PLANTED = {
    "a small target": (
        "<p>" + 2 * "<button style='width: 9px; height: 9px; padding: 0'>x</button>" + "</p>",
        "zoomed: light: .* target-size",
    ),
    "a wide element": ("<div style='width: 3000px'>x</div>", r"^dark: \d+ px wider than the window"),
    "a wide element, enlarged": ("", r"^zoomed: \d+ px wider than the window"),
    "text that is cut off": (
        "<div style='overflow: hidden'><p style='width: 600px'>x</p></div>",
        "zoomed: cut off: <p style",
    ),
    "a second header": ("<div class='bd-header-article'>x</div>", "2 visible headers"),
    "a picture without a size": ("<img src='data:,' alt='nothing' width='0' height='0'>", "no size: <img"),
    "a hidden formula": (
        "<section><p hidden><b class='math'><i class='katex'>x</i></b></p></section>",
        "hidden formula",
    ),
    "a light box": ("<div style='background: #eee; height: 2rem'>x</div>", "dark: light box"),
    "a light picture": (f"<div class='cell'><img alt='a light picture' src='{WHITE}'></div>", "dark: light picture"),
    "a field without a name": ("<input>", "zoomed: light: critical label: <input"),
    "pale text": ("<p style='color: #bbb; background: #ccc'>pale text</p>", "zoomed: dark: serious color-contrast: <p"),
    "a jump in the text": (
        # as the reader scrolls: a timer may end before the first paint, or while the text above is out of sight
        "<style>html { overflow-anchor: none }</style><div id='spacer' style='height: 500px'></div>"
        "<script>addEventListener('scroll', () => document.querySelector('article').prepend(spacer), { once: true })"
        "</script>",
        "layout shift of",
    ),
    "a small label in a file": (f"<div class=cell_output><img alt='x' src='{LABEL}'></div>", "px: in a file"),
    "a small label in the page": ("<svg width=20 height=20><text font-size=10>here</text></svg>", r"10\.0 px: here"),
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
    """The messages for a page with all these faults at once."""
    faults, planted = [], "".join(html for html, _ in PLANTED.values())

    def plant(route):
        page = route.fetch()
        route.fulfill(response=page, body=page.text().replace("</article>", planted + "</article>"))

    with opened(browser, server, faults, viewport=DESK, color_scheme="dark") as page:
        page.route("**/changelog.html", plant)
        page.route("https://example.org/*", lambda route: route.abort())
        page.goto(server + "book/changelog.html")
        faults += [*page.evaluate(SMALL), *read_to_the_end(page), *zoom(page)]
    return faults


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(planted, fault):
    assert any(re.search(PLANTED[fault][1], found) for found in planted), planted
