"""Ticks in the contents of a page: for sections whose end was seen and that were on the screen for a while."""

from helpers.visit import DESK, opened

PAGE = "notebooks/06d-counting-parameters.html"  # no Predict box waits in its first section
# Resolves when the end of a section is on the screen, and the observers of the page, which are older, have seen it.
OBSERVED = """id => new Promise((done) => new IntersectionObserver((entries) => {
  if (entries.some(({ isIntersecting }) => isIntersecting)) done();
}).observe(document.getElementById(id).lastElementChild))"""
FIRST = "document.querySelector('article section section')"


def sections_read(page):
    return page.locator(".page-toc a.read").evaluate_all("links => links.map(link => link.hash.slice(1))")


def test_a_section_is_ticked_when_it_has_been_read_and_stays_ticked(browser, server):
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(server + PAGE)
        first = page.evaluate(f"{FIRST}.id")
        assert sections_read(page) == []
        page.evaluate(f"{FIRST}.lastElementChild.scrollIntoView()")
        page.locator(f".page-toc a.read[href='#{first}']").wait_for()
        link = page.locator(f".page-toc a[href='#{first}']")
        assert "(read)" in link.get_attribute("aria-label")
        page.reload()
        assert first in sections_read(page)
    assert faults == []


def test_a_section_that_was_only_passed_is_not_ticked(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.clock.install()
        page.goto(server + PAGE)
        first = page.evaluate(f"{FIRST}.id")
        page.evaluate(f"{FIRST}.lastElementChild.scrollIntoView()")
        page.evaluate(OBSERVED, first)
        page.clock.run_for(2000)
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        last = page.locator(".page-toc .toc-h2 > a").last.get_attribute("href").removeprefix("#")
        page.evaluate(OBSERVED, last)
        page.clock.run_for(60_000)
        assert first not in sections_read(page)
        assert last in sections_read(page)


def test_a_page_read_to_its_end_is_ticked_in_the_list_of_pages(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + PAGE)
        ids = page.locator(".page-toc .toc-h2 > a").evaluate_all("links => links.map((link) => link.hash.slice(1))")
        name = PAGE.split("/")[-1]
        store = "([name, ids]) => localStorage.setItem(`subnorm.read.${name}`, JSON.stringify(ids))"
        page.evaluate(store, [name, ids[1:]])
        page.reload()
        link = page.locator(f".bd-links a[href='#'], .bd-links a[href$='{name}']").first
        assert "read" not in (link.get_attribute("class") or "").split()
        page.evaluate(f"{FIRST}.lastElementChild.scrollIntoView()")
        page.locator(f".page-toc a.read[href='#{ids[0]}']").wait_for()
        page.goto(server + "book/glossary.html")
        page.locator(f".bd-links a.read[href$='{name}']").first.wait_for(state="attached")


def test_the_first_page_continues_with_the_last_chapter(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "book/intro.html")
        link = page.locator(".ways a").first
        assert link.inner_text() == "Start with chapter\u00a001"
        page.goto(server + "notebooks/03-layer-normalization.html")
        page.goto(server + PAGE)  # a deep dive is no chapter
        page.goto(server + "book/intro.html")
        assert link.inner_text() == "Continue with chapter 3"
        link.click()
        page.wait_for_url("**/notebooks/03-layer-normalization.html")
