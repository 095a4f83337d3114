"""Every page of the book on a desk, from a file: as it opens in the light, and when the reader turns to the dark.

The phone gets every page from a server, on another core.
"""

from threading import Event

from helpers.look import accessible, look
from helpers.visit import DESK, opened

from tools import checkout

READABLE = "document.readyState !== 'loading' && !document.documentElement.matches('.typesetting')"
HEIGHTS = "[...document.querySelectorAll('article section > *')].map((e) => e.offsetHeight)"


def test_every_page_on_a_desk(browser, pages):
    """Scripts run when the page can be read already, as on a slow machine: they must not move its text."""
    faults, held, readable, base = [], [], Event(), checkout.PAGES.as_uri() + "/"
    with opened(browser, base, faults, viewport=DESK) as page:
        page.route("**/*.js*", lambda route: route.continue_() if readable.is_set() else held.append(route))
        for name in pages:
            readable.clear()
            page.emulate_media(color_scheme="light")
            page.goto(base + name, wait_until="commit")
            page.wait_for_function(READABLE)
            before = page.evaluate(HEIGHTS)
            assert held, name
            readable.set()
            while held:
                held.pop().continue_()
            page.wait_for_load_state()
            if page.evaluate(HEIGHTS) != before:
                faults.append(f"{name}: a script changes the height of the text")
            found = [*look(page, "light"), *look(page, "dark", first=False), *accessible(page, "dark", "light")]
            faults += [f"{name}: {fault}" for fault in found]
    assert faults == []
