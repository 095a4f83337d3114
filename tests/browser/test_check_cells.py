"""What proves is out of sight until the reader reads with code: then it is unfolded, below the names of its claims."""

import re

from helpers.visit import DESK, opened

PAGE, SHEET = "notebooks/05b-warm-up.html", "notebooks/exercises/ex02-layer-norm.html"
KINDS = "not", "is"  # the proofs and what sets up, and what draws
OPEN = "folds => folds.map(f => f.open)"


def visit(page, server):
    """The page, with everything shown that waits for a prediction."""
    page.goto(server + PAGE)
    page.locator(".predict .skip").evaluate_all("buttons => buttons.forEach((button) => button.click())")


def test_proofs_and_the_ids_of_claims_are_for_those_who_read_with_code(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        visit(page, server)
        checks, text = page.locator(".cell.tag_checked"), page.locator("article").inner_text()
        assert checks.count() >= 6
        assert not checks.locator("visible=true").count()
        assert not page.locator("p.supports").locator("visible=true").count()
        assert not re.search(r"^\s*assert |checked ✓|05b-first-step", text, re.MULTILINE)
        marks = page.locator("sup.claim .kinds")
        assert max(mark["width"] for mark in (mark.bounding_box() for mark in marks.all()) if mark) <= 1
        page.get_by_label("Read with code").press("Space")
        assert max(mark["width"] for mark in (mark.bounding_box() for mark in marks.all()) if mark) > 30
        labels = checks.locator("summary").all_text_contents()
        assert {label.split("\n")[0] for label in map(str.strip, labels)} == {"checked ✓"}
        check = checks.filter(has_text="05b-first-step").first
        assert "assert" in check.inner_text()
        assert check.locator("p.supports a").inner_text() == "05b-first-step"


def test_one_box_unfolds_all_code_and_is_remembered(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + PAGE)
        folds, drawn = (page.locator(f".cell:{kind}(.tag_hide-input:has(.cell_output)) details.hide") for kind in KINDS)
        box = page.get_by_label("Read with code")
        assert not any(folds.evaluate_all(OPEN))
        box.press("Space")
        assert all(folds.evaluate_all(OPEN))
        assert drawn.first.is_visible()
        assert not any(drawn.evaluate_all(OPEN))
        page.reload()
        assert box.is_checked()
        assert all(folds.evaluate_all(OPEN))
        page.goto(server + SHEET)
        assert not any(page.locator(".cell.solution details").evaluate_all(OPEN))
        page.goto(server + PAGE)
        box.press("Space")
        page.reload()
        assert not box.is_checked()
        assert not any(folds.evaluate_all(OPEN))


def test_folded_code_is_for_those_who_read_with_code(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        visit(page, server)
        setup = page.locator(".cell", has_text="warm_up as chapter")
        drawn = page.locator(".cell.tag_hide-input:has(img) summary").first
        assert not setup.is_visible()
        assert not drawn.is_visible()
        page.get_by_label("Read with code").press("Space")
        assert setup.is_visible()
        assert drawn.is_visible()
    with opened(browser, server, [], viewport=DESK, java_script_enabled=False) as page:
        page.goto(server + PAGE)
        assert page.locator(".cell", has_text="warm_up as chapter").is_visible()


def test_a_link_to_a_folded_cell_opens_it(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "book/claims.html")
        page.locator("#row-05b-first-step a", has_text="a cell of 05b").click()
        page.wait_for_selector(".cell:target details[open]")
        assert "assert" in page.locator(".cell:target").inner_text()
        assert page.locator(".cell.tag_checked details[open]").count() == 1


def test_paper_has_no_checks(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + PAGE)
        page.get_by_label("Read with code").press("Space")
        page.emulate_media(media="print")
        assert not page.locator(".cell.tag_checked, .opening label, sup.claim").locator("visible=true").count()
