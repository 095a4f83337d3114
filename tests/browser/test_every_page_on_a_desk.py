"""Every page of the book on a desk, from a file, as it opens in the dark; one page of each kind has all that axe asks.

The phone gets every page from a server, on another core, turns it to the light, and shows it to axe.
"""

from threading import Event

from helpers.look import accessible, look
from helpers.visit import DESK, KINDS, opened

from tools import checkout

READABLE = "document.readyState !== 'loading' && !document.documentElement.matches('.typesetting')"
HEIGHTS = "[...document.querySelectorAll('article section > *')].map((e) => e.offsetHeight)"


def test_every_page_on_a_desk(browser, pages):
    """Scripts run when the page can be read already, as on a slow machine: they must not move its text.

    Beside the text a desk has the same on every page of a kind; axe, which takes a second, looks at one of each.
    """
    assert set(pages) >= KINDS
    faults, held, readable, base = [], [], Event(), checkout.PAGES.as_uri() + "/"
    with opened(browser, base, faults, viewport=DESK) as page:
        page.route("**/*.js*", lambda route: route.continue_() if readable.is_set() else held.append(route))
        for name in pages:
            readable.clear()
            page.emulate_media(color_scheme="dark")
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
            found = [*look(page, "dark"), *(accessible(page, "light", "dark") if name in KINDS else [])]
            faults += [f"{name}: {fault}" for fault in found]
    assert faults == []
