"""Cards beside links to terms, sources, equations and proofs: shown, pinned and closed; without a script, tooltips."""

import re

import pytest
from helpers.look import accessible
from helpers.visit import CALM, DESK, PHONE, opened

PAGE = "notebooks/03a-layer-norm-backward.html"
LINKS = {
    "term": '.bd-article a[href*="glossary.html#term-"]',
    "source": '.bd-article a[href*="references.html#"]',
    "equation": '.bd-article a[href^="#equation-"]:not(.headerlink)',
    "proof": "sup.claim a",
}


@pytest.fixture(scope="module")
def desk(browser, server):
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(server + PAGE)
        yield page
    assert faults == []


@pytest.mark.parametrize("kind", LINKS)
def test_a_card_comes_with_the_pointer_and_goes_with_it(desk, kind):
    link, card = desk.locator(LINKS[kind]).locator("visible=true").first, desk.locator(".hover-card")
    assert not card.is_visible()
    link.hover()
    card.wait_for(state="visible")
    assert link.get_attribute("aria-describedby") == card.get_attribute("id")
    assert len(card.inner_text().strip()) > 10 or card.locator(".katex").count()
    if kind == "term":  # it covers what has been read
        assert card.bounding_box()["y"] + card.bounding_box()["height"] <= link.bounding_box()["y"]
    card.hover()
    assert card.is_visible()
    desk.mouse.move(0, 0)
    card.wait_for(state="hidden")
    assert link.get_attribute("aria-describedby") is None
    assert not link.get_attribute("title")


@pytest.mark.parametrize("kind", LINKS)
def test_a_click_pins_the_card_until_the_reader_is_done(desk, kind):
    link, card = desk.locator(LINKS[kind]).locator("visible=true").first, desk.locator(".hover-card")
    address, last = desk.url, card.locator("a").last
    for close in (lambda: desk.keyboard.press("Escape"), lambda: desk.locator("article h1").click()):
        link.click()
        assert card.is_visible()
        assert last.get_attribute("href") == link.evaluate("link => link.href")
        desk.mouse.move(0, 0)
        desk.evaluate("() => new Promise((done) => setTimeout(done, 400))")  # longer than a card waits for the mouse
        card.click(position={"x": 3, "y": 3})  # to select its text
        assert card.is_visible()
        close()
        assert not card.is_visible()
        assert desk.url == address
    desk.mouse.move(0, 0)


def test_keys_pin_a_card_and_lead_into_it_and_back(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + PAGE)
        page.keyboard.press("Tab")
        link, card = page.locator(LINKS["proof"]).locator("visible=true").first, page.locator(".hover-card")
        focused = "e => e === document.activeElement"
        link.focus()
        page.keyboard.press("Enter")
        assert card.locator("a").evaluate(focused)
        assert page.url == server + PAGE
        page.keyboard.press("Escape")
        assert not card.is_visible()
        assert link.evaluate(focused)
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        card.wait_for(state="hidden")
        after = "(links, link) => links.indexOf(document.activeElement) - links.indexOf(link)"
        stops = page.locator("main :is(a[href], button, input, summary, [tabindex='0']):not(.hover-card *)")
        assert 0 < stops.evaluate_all(after, link.element_handle()) < 12  # some between them are folded
        link.focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        page.wait_for_url("**/book/claims.html#row-*")


def test_every_link_to_a_source_shows_its_card(browser, server):
    """A page describes a source at the first link to it."""
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "book/claims.html")
        links = page.locator(LINKS["source"])
        described = "links => links.map(link => [link.href, link.dataset.card])"
        found = links.evaluate_all(described)
        assert len(dict(found)) < len(found) > 100
        assert all(text and text == dict(found)[source] for source, text in found)
        last = links.last
        last.scroll_into_view_if_needed()
        last.hover()
        page.locator(".hover-card").wait_for(state="visible")
        assert page.locator(".hover-card").inner_text() == last.get_attribute("data-card")


def test_a_card_follows_the_focus_and_escape_closes_it(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + PAGE)
        page.keyboard.press("Tab")  # from now on the focus is visible
        link, card = page.locator(LINKS["term"]).first, page.locator(".hover-card")
        link.focus()
        card.wait_for(state="visible")
        page.keyboard.press("Escape")
        card.wait_for(state="hidden")
        assert link.evaluate("link => link === document.activeElement")


def test_a_card_stays_in_the_window(browser, server):
    with opened(browser, server, [], viewport={"width": 390, "height": 844}) as page:
        page.goto(server + PAGE)
        page.keyboard.press("Tab")
        card = page.locator(".hover-card")
        for link in page.locator(LINKS["term"]).all():
            link.focus()
            page.wait_for_function("link => link.matches('[aria-describedby]')", arg=link.element_handle())
            box = card.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 390


def test_a_card_of_the_focus_stays_whatever_the_mouse_does(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + PAGE)
        page.keyboard.press("Tab")
        page.locator(LINKS["term"]).first.focus()
        card = page.locator(".hover-card")
        card.wait_for(state="visible")
        for place in (3, 5):
            page.mouse.move(place, 700)
        page.evaluate("() => new Promise((done) => setTimeout(done, 400))")  # longer than a card waits for the mouse
        assert card.is_visible()


@pytest.mark.parametrize("kind", ["term", "proof"])
def test_without_a_script_a_card_is_a_tooltip_and_its_link_leads_on(browser, server, kind):
    with opened(browser, server, [], viewport=DESK, java_script_enabled=False) as page:
        page.goto(server + PAGE)
        assert all(len(link.get_attribute("title")) > 20 for link in page.locator(LINKS[kind]).all())
        link = page.locator(LINKS[kind]).locator("visible=true").first
        place = link.get_attribute("href").partition("#")[2]
        link.click()
        page.locator(f"[id='{place}']").wait_for()


def test_the_mark_of_a_claim_shows_its_proof(browser, server):
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(server + PAGE)
        page.keyboard.press("Tab")
        mark, card = page.locator("sup#claim-03a-by-hand a"), page.locator(".hover-card")
        assert page.locator("sup.claim").get_by_role("link", name="computed", exact=True).count()
        mark.focus()
        card.wait_for(state="visible")
        words, how, *code = card.inner_text().split("\n")
        sentence = page.locator("p:has(sup#claim-03a-by-hand)").inner_text()
        assert re.fullmatch("Checked: “(.+)”", words)[1] in sentence
        assert how == "Computed by a cell of 03a-layer-norm-backward"
        assert [line.split()[0] for line in code if line.strip()] == ["assert"] * 4
        described = page.locator("#hover-card").aria_snapshot()
        assert "assert" not in described  # nobody has to listen to code
        faults += accessible(page, "light", "dark")
        page.keyboard.press("Enter")
        page.locator(".hover-card a").wait_for()
        faults += accessible(page, "light", "dark")
        page.keyboard.press("Enter")
        page.wait_for_url("**/book/claims.html#row-03a-by-hand")
    assert faults == []


@pytest.mark.parametrize("kind", LINKS)
def test_a_tap_opens_the_card_and_stays_on_the_page(browser, server, kind):
    with opened(browser, server, [], viewport=PHONE, has_touch=True, **CALM) as page:
        page.goto(server + PAGE)
        link, card = page.locator(LINKS[kind]).locator("visible=true").first, page.locator(".hover-card")
        link.tap()
        card.wait_for(state="visible")
        assert page.url == server + PAGE
        read, box = link.bounding_box(), card.bounding_box()  # what is read is above the link
        assert read["y"] + read["height"] <= box["y"] < box["y"] + box["height"] <= PHONE["height"]
        assert card.locator("a").last.get_attribute("href") == link.evaluate("link => link.href")


def test_a_tap_shows_the_proof_and_a_second_one_the_ledger(browser, server):
    faults = []
    with opened(browser, server, faults, viewport=PHONE, has_touch=True) as page:
        page.goto(server + PAGE)
        first, second = (page.locator("sup.claim a").locator("visible=true").nth(k) for k in (0, 1))
        card = page.locator(".hover-card")
        first.tap()
        card.wait_for(state="visible")
        assert card.locator("a").get_attribute("href") == first.evaluate("link => link.href")
        box = card.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
        second.tap()
        page.wait_for_function("link => link.matches('[aria-describedby]')", arg=second.element_handle())
        page.locator("article h1").tap()
        card.wait_for(state="hidden")
        second.tap()
        card.locator("a").tap()
        page.wait_for_url("**/book/claims.html#row-*")
    assert faults == []
