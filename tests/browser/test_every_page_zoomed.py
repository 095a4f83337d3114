"""The book at 400 % zoom, and with large letters: one page of each kind, and faults planted in a page.

The phone zooms in on every page.
"""

import pytest
from helpers.look import CUT, accessible
from helpers.visit import PHONE, ZOOMED, opened

# Axe takes a second for each.
KINDS = [
    "book/intro.html",
    "notebooks/03-layer-normalization.html",
    "notebooks/05a-gradients-by-placement.html",
    "notebooks/exercises/ex02-layer-norm.html",
    "book/claims.html",
    "book/api/torch.html",
    "book/glossary.html",
]


def zoomed(page, address):
    page.goto(address)
    return [*page.evaluate(CUT), *accessible(page, "dark", "light")]


def test_each_kind_of_page_is_accessible(browser, server):
    faults = []
    with opened(browser, server, faults, viewport=ZOOMED) as page:
        for name in KINDS:
            faults += [f"{name}: {fault}" for fault in zoomed(page, server + name)]
    assert faults == []


def test_a_phone_with_letters_twice_as_large_shows_each_kind_of_page_whole(browser, server):
    with opened(browser, server, [], viewport=PHONE) as page:
        page.context.new_cdp_session(page).send("Page.setFontSizes", {"fontSizes": {"standard": 32}})
        for name in KINDS:
            page.goto(server + name)
            assert page.evaluate("getComputedStyle(document.documentElement).fontSize") == "32px"
            assert page.evaluate(CUT) == [], name


PLANTED = {
    "a wide element": ("<div style='width: 3000px'>x</div>", "px wider than the window"),
    "text that is cut off": ("<div style='overflow: hidden'><p style='width: 600px'>x</p></div>", "cut off: <p style"),
    "a field without a name": ("<input>", "light: critical label: <input"),
    "pale text": ("<p style='color: #bbb; background: #ccc'>pale text</p>", "dark: serious color-contrast: <p"),
}


@pytest.fixture(scope="module")
def planted(browser, server):
    """The messages for a page with all these faults at once."""
    planted = "".join(html for html, _ in PLANTED.values())

    def plant(route):
        page = route.fetch()
        route.fulfill(response=page, body=page.text().replace("</article>", planted + "</article>"))

    with opened(browser, server, [], viewport=ZOOMED) as page:
        page.route("**/changelog.html", plant)
        return zoomed(page, server + "book/changelog.html")


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(planted, fault):
    assert any(PLANTED[fault][1] in found for found in planted), planted
