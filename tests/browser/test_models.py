"""The table of models: its filter and its sorting, by keyboard, and the plain table without a script."""

from helpers.visit import DESK, PHONE, opened

PAGE = "book/models.html"


def rows(page):
    return page.locator("table.models tbody tr").locator("visible=true")


def column(page, k):
    return [text.strip() for text in rows(page).locator(f"td:nth-child({k})").all_text_contents()]


def test_words_and_placements_choose_models(browser, server):
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(server + PAGE)
        total = rows(page).count()
        assert total >= 50
        page.get_by_label("both sides").check()
        assert 0 < rows(page).count() < total
        assert {text.split(" (")[0] for text in column(page, 4)} == {"both sides"}
        status = page.locator(".row-filter [role=status]")
        assert status.inner_text() == f"{rows(page).count()} of {total} models"
        page.get_by_label("Find", exact=True).press_sequentially("glm rms")
        assert column(page, 1) == ["GLM-4-0414"]
        page.get_by_label("all", exact=True).check()
        page.get_by_label("Find", exact=True).fill("")
        assert rows(page).count() == total
        assert status.inner_text() == ""
    assert faults == []


def test_words_of_no_model_say_so_and_are_cleared(browser, server):
    faults = []
    with opened(browser, server, faults, viewport=PHONE) as page:
        page.goto(server + PAGE)
        total = rows(page).count()
        page.get_by_label("both sides").check()
        page.get_by_label("Find", exact=True).fill("zzzz")
        line = page.locator(".row-filter .nothing")
        assert line.is_visible()
        assert "None of the models matches this" in line.inner_text()
        line.get_by_role("button", name=f"Show all {total} models").press("Enter")
        assert rows(page).count() == total
        assert not line.is_visible()
        assert page.evaluate("document.activeElement.id") == "row-words"
    assert faults == []


# For each row: the words that are marked, and whether its folded notes show.
FOUND = """() => [...document.querySelectorAll("table.models tbody tr:not([hidden])")].map((row) => [
  [...CSS.highlights.get("found")].filter(({ startContainer }) => row.contains(startContainer)
    && startContainer.parentElement.checkVisibility({ contentVisibilityAuto: true })).length,
  [...row.querySelectorAll("details")].map((fold) => fold.open)])"""


def test_each_row_shows_the_words_that_it_was_found_by(browser, server):
    """A word in a folded note opens the note, until another word is typed."""
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(server + PAGE)
        page.get_by_label("Find", exact=True).fill("lama")
        found = page.evaluate(FOUND)
        assert len(found) > 2
        assert all(marks for marks, _ in found)
        assert any(True in folds for _, folds in found)
        assert any(False in folds for _, folds in found)
        page.get_by_label("Find", exact=True).fill("measured")
        found = page.evaluate(FOUND)
        assert all(marks for marks, _ in found)
        assert not any(True in folds for _, folds in found)
        page.get_by_label("Find", exact=True).fill("")
        assert not any(marks for marks, _ in page.evaluate(FOUND))
    assert faults == []


def test_a_heading_sorts_by_its_column_and_back(browser, server):
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(server + PAGE)
        stored = column(page, 1)
        eps = page.get_by_role("button", name="eps")
        eps.press("Enter")
        numbers = [float(text.split()[0]) for text in column(page, 6) if text[0].isdigit()]
        assert numbers == sorted(numbers)
        assert numbers[0] == 1e-12
        assert page.locator("th[aria-sort=ascending]").inner_text().startswith("eps")
        eps.press("Enter")
        assert [float(text.split()[0]) for text in column(page, 6) if text[0].isdigit()] == numbers[::-1]
        page.get_by_role("button", name="model").click()
        assert column(page, 1) == sorted(stored, key=str.lower)
        assert page.locator("th[aria-sort]").count() == 1
    assert faults == []


def test_on_a_phone_each_model_is_a_card(browser, server):
    """A card has its name, and below it a line for each column; the words and the sorting work as in the table."""
    faults = []
    with opened(browser, server, faults, viewport=PHONE) as page:
        page.goto(server + PAGE)
        card = rows(page).first
        places = card.locator("td").evaluate_all(
            """cells => cells.map((cell) => {
              const [label, box] = [getComputedStyle(cell, "::before").content, cell.getBoundingClientRect()];
              return [label, box.left >= 0 && box.right <= innerWidth, Math.round(box.top)];
            })"""
        )
        heads = [head.split(" \N{UP DOWN ARROW}")[0] for head in page.locator("table.models th").all_inner_texts()]
        assert [label.strip('"') for label, _, _ in places] == ["none", *heads[1:]]
        assert all(whole for _, whole, _ in places)
        assert [top for _, _, top in places] == sorted({top for _, _, top in places})
        page.get_by_label("Find", exact=True).fill("glm rms")
        page.get_by_label("both sides").check()
        assert column(page, 1) == ["GLM-4-0414"]
        page.get_by_label("Find", exact=True).fill("")
        page.get_by_role("button", name="model").click()
        assert column(page, 1) == sorted(column(page, 1), key=str.lower)
    assert faults == []


def test_without_a_script_there_is_the_table(browser, server):
    with opened(browser, server, [], viewport=DESK, java_script_enabled=False) as page:
        page.goto(server + PAGE)
        assert not page.locator(".row-filter").is_visible()
        assert rows(page).count() >= 50
