"""A page of each kind on a desk, from a file, as it opens in the dark, and all that axe asks of it.

Each other page has the same scripts, and nothing more beside its text. It gets a phone, which has it from a server,
turns it to the light on a desk, and shows it to axe.
"""

import re
from threading import Event

from helpers.look import accessible, look
from helpers.visit import DESK, KINDS, opened

from tools import checkout

# Together they have all scripts of the book, and all attributes that a script may read.
PAGES = KINDS | {
    "notebooks/05-pre-ln-or-post-ln.html",
    "book/models.html",
    "book/playground.html",
    "book/story.html",
    "search.html",
}
READABLE = "document.readyState !== 'loading' && !document.documentElement.matches('.typesetting')"
HEIGHTS = "[...document.querySelectorAll('article section > *')].map((e) => e.offsetHeight)"


def hooks(name):
    """The scripts of a page, and the attributes that they may read."""
    text = (checkout.PAGES / name).read_text("utf-8")
    return set(re.findall(r'\s(data-[\w-]+)=|<script[^>]* src="[^"]*?([\w.-]+\.js)', text))


def test_the_pages_of_each_kind_have_all_scripts(pages):
    """A new script, or a new place for one, needs a page on which it is tried."""
    assert set().union(*map(hooks, pages)) - set().union(*map(hooks, PAGES)) == set()


def test_each_kind_of_page_on_a_desk(browser):
    """Scripts run when the page can be read already, as on a slow machine: they must not move its text."""
    faults, held, readable, base = [], [], Event(), checkout.PAGES.as_uri() + "/"
    with opened(browser, base, faults, viewport=DESK) as page:
        page.route("**/*.js*", lambda route: route.continue_() if readable.is_set() else held.append(route))
        for name in sorted(PAGES):
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
            faults += [f"{name}: {fault}" for fault in (*look(page, "dark"), *accessible(page, "light", "dark"))]
    assert faults == []
