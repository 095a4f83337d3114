"""The search: it finds what the book explains, and is at hand on every page."""

import pytest
from visit import DESK, PHONE, opened

import course

# The terms of the glossary that a search for their own name does not lead to the glossary.
LOST = """async (terms) => {
  while (!Search.hasIndex()) await new Promise((r) => setTimeout(r, 20));
  const found = (term) => Search._performSearch(...Search._parseQuery(term)).map((result) => result[0]);
  return terms.filter((term) => !found(term).includes("book/glossary"));
}"""


@pytest.fixture(scope="module")
def terms(browser, server):
    with opened(browser, server, []) as page:
        page.goto(server + "book/glossary.html")
        return page.locator("dl.glossary > dt").evaluate_all(
            "(list) => list.map((e) => e.firstChild.textContent.trim())"
        )


def test_search_finds_every_term_of_the_glossary(browser, server, terms):
    assert len(terms) > 30
    with opened(browser, server, []) as page:
        page.goto(server + "search.html?q=x")
        assert page.evaluate(LOST, [*terms, "a term of no book"]) == ["a term of no book"]


@pytest.mark.parametrize("kind", ["server", "file"])
def test_results_are_shown(browser, server, kind):
    faults, base = [], server if kind == "server" else course.PAGES.as_uri() + "/"
    with opened(browser, base, faults, color_scheme="dark", viewport=PHONE) as page:
        page.goto(base + "search.html?q=warm-up")
        page.locator("#search-results li a").first.wait_for()
        assert page.locator("#search-results li a", has_text="Glossary").count() >= 1
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert faults == []


def test_search_by_keyboard(browser, server):
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(server + "notebooks/03-layer-normalization.html")
        field = page.locator("#pst-search-dialog input")
        page.keyboard.press("Control+k")
        field.wait_for(state="visible")
        assert page.evaluate("document.activeElement.name") == "q"
        page.keyboard.press("Escape")
        field.wait_for(state="hidden")
        page.keyboard.press("Control+k")
        page.keyboard.type("epsilon")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search.html?q=epsilon")
        page.locator("#search-results li a").first.wait_for()
    assert faults == []
