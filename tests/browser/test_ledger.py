"""The filter of the ledger: by words and by kind, by keyboard, and out of the way without a script."""

from helpers.visit import DESK, opened

LEDGER = "book/claims.html"


def shown(page):
    return page.locator("ul.ledger > li").locator("visible=true").count()


def test_words_and_kinds_choose_claims(browser, server):
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(server + LEDGER)
        total = shown(page)
        status = page.locator(".row-filter [role=status]")
        page.get_by_label("Find", exact=True).press_sequentially("RMSNorm ")
        found = shown(page)
        assert 0 < found < total
        assert status.inner_text() == f"{found} of {total} claims"
        rows = page.locator("ul.ledger > li").locator("visible=true")
        assert all("rmsnorm" in text.lower() for text in rows.all_text_contents())
        assert page.locator("p.rubric").locator("visible=true").count() < page.locator("p.rubric").count()
        page.get_by_label("cited").check()
        assert 0 < shown(page) < found
        page.get_by_label("all", exact=True).check()
        assert shown(page) == found
        page.get_by_label("Find", exact=True).fill("")
        assert shown(page) == total
        assert status.inner_text() == ""
        counted = page.locator("p.count").inner_text()
        for kind in ("computed", "recorded", "tested", "cited"):
            page.get_by_label(kind).check()
            assert f"{shown(page)} {kind}" in counted
    assert faults == []


def test_a_link_to_a_hidden_claim_shows_it(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + LEDGER)
        page.get_by_label("Find", exact=True).fill("no claim has these words")
        assert shown(page) == 0
        row = page.locator("ul.ledger > li").last.get_attribute("id")
        page.evaluate("id => (location.hash = id)", row)
        page.locator(f"#{row}").wait_for(state="visible")


def test_without_a_script_there_is_no_filter(browser, server):
    with opened(browser, server, [], viewport=DESK, java_script_enabled=False) as page:
        page.goto(server + LEDGER)
        assert not page.locator(".row-filter").is_visible()
        assert shown(page) > 100
