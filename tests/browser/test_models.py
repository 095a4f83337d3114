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
        page.get_by_role("combobox", name="placement").select_option("both sides")
        assert 0 < rows(page).count() < total
        assert {text.split(" (")[0] for text in column(page, 4)} == {"both sides"}
        status = page.locator(".row-filter [role=status]")
        assert status.inner_text() == f"{rows(page).count()} of {total} models"
        page.get_by_label("Find", exact=True).press_sequentially("glm rms")
        assert column(page, 1) == ["GLM-4-0414"]
        page.get_by_role("combobox", name="placement").select_option("any")
        for typed, models in {"gemma 3": ["Gemma 3", "Gemma 3n"], "gpt-2": ["GPT-2"]}.items():  # not fp32, not Qwen2.5
            page.get_by_label("Find", exact=True).fill(typed)
            assert column(page, 1)[: len(models)] == models
            assert len(column(page, 1)) < 4
        for typed, meant, model in [("gemmma", "gemma", "Gemma 3"), ("lamma", "llama", "Llama 3")]:
            page.get_by_label("Find", exact=True).fill(typed)
            assert model in column(page, 1)
            assert f"has “{typed}”. For “{meant}”: {rows(page).count()} of" in status.inner_text()
        found = {}
        for typed in ("qk-norm", "QK norm yes", "sandwich norm"):  # whatever the cells say
            page.get_by_label("Find", exact=True).fill(typed)
            found[typed] = column(page, 1)
        page.get_by_label("Find", exact=True).fill("")
        page.get_by_role("combobox", name="QK-norm").select_option("yes")
        assert found["qk-norm"] == found["QK norm yes"] == column(page, 1)
        assert not any(text.startswith("no") for text in column(page, 7))
        page.get_by_role("combobox", name="QK-norm").select_option("no")
        page.get_by_role("combobox", name="bias").select_option("yes")
        assert {"BERT", "GPT-2"} <= {*column(page, 1)}
        assert all("bias" in text for text in column(page, 3))
        for name in ("QK-norm", "bias"):
            page.get_by_role("combobox", name=name).select_option("any")
        assert "Gemma 3" in found["sandwich norm"]
        page.get_by_label("Find", exact=True).fill("modeling_llama")  # a file of several models' sources
        assert column(page, 1) == []
        page.get_by_label("Find", exact=True).fill("")
        assert rows(page).count() == total
        assert status.inner_text() == ""
    assert faults == []


def test_words_of_no_model_say_so_and_are_cleared(browser, server):
    faults = []
    with opened(browser, server, faults, viewport=PHONE) as page:
        page.goto(server + PAGE)
        total = rows(page).count()
        page.get_by_role("combobox", name="placement").select_option("both sides")
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
        page.get_by_label("Find", exact=True).fill("transformers")
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
        page.locator("th", has_text="model").click(position={"x": 100, "y": 20})  # beside its words
        assert column(page, 1) == sorted(stored, key=str.lower)
        assert page.locator("th[aria-sort]").count() == 1
    assert faults == []


# What a card shows: its button's words, and the columns below it.
CARD = """row => [row.querySelector("button").innerText.split(/\\s*\\n\\s*/), [...row.cells].slice(1)
  .filter((cell) => cell.checkVisibility()).map((cell) => {
    const [label, box] = [getComputedStyle(cell, "::before").content, cell.getBoundingClientRect()];
    return [label.replaceAll('"', ""), box.left >= 0 && box.right <= innerWidth, Math.round(box.top)];
  })]"""
FIELD = """() => { const box = document.querySelector("#row-words").getBoundingClientRect();
  return document.elementFromPoint(box.left + 5, box.top + 5)?.id === "row-words" }"""


def test_on_a_phone_each_model_is_a_card_that_a_tap_opens(browser, server):
    """Closed it has a name, a placement and a norm; open, a line for each column. The whole list is short."""
    faults = []
    with opened(browser, server, faults, viewport=PHONE) as page:
        page.goto(server + PAGE)
        assert page.evaluate("document.documentElement.scrollHeight") < 10 * PHONE["height"]
        heads = page.locator("table.models th").all_text_contents()
        card = page.locator("table.models tbody tr").nth(3)
        words, cells = card.evaluate(CARD)
        assert [" ".join(words).split(), cells] == [["GPT-2", "Pre", "LayerNorm"], []]
        button = card.get_by_role("button").first
        assert button.get_attribute("aria-expanded") == "false"
        button.press("Enter")
        assert button.get_attribute("aria-expanded") == "true"
        _, cells = card.evaluate(CARD)
        assert [label for label, _, _ in cells] == heads[1:]
        assert all(whole for _, whole, _ in cells)
        assert [top for _, _, top in cells] == sorted({top for _, _, top in cells})
        button.press("Enter")
        assert card.evaluate(CARD)[1] == []
        page.evaluate("scrollTo({ top: 3000, behavior: 'instant' })")
        assert page.evaluate(FIELD)
        page.set_viewport_size(DESK)  # a table again: a name is no button
        assert page.locator("table.models td button").count() == 0
        assert column(page, 1)[3] == "GPT-2"
    assert faults == []


# The lower edge of the field, and the upper one of each heading that shows, and whether nothing covers it.
HEADS = """() => {
  const box = (e) => e.getBoundingClientRect(), field = document.querySelector(".row-filter label:has([type=search])");
  const heads = [...document.querySelectorAll("table.models th")].filter((e) => e.checkVisibility()).map((e) => {
    const { left, top, bottom } = box(e);
    return [Math.round(top), e.contains(document.elementFromPoint(left + 5, (top + bottom) / 2))];
  });
  return [Math.round(box(field).bottom), heads];
}"""


def test_on_a_phone_the_headings_stay_below_the_field(browser, server):
    with opened(browser, server, [], viewport=PHONE) as page:
        page.goto(server + PAGE)
        page.evaluate("scrollTo({ top: 3000, behavior: 'instant' })")
        field, heads = page.evaluate(HEADS)
        assert len(heads) == 3
        assert all(seen and field - 2 <= top <= field + 4 for top, seen in heads)


def test_on_a_phone_words_choose_cards_and_open_the_last_two(browser, server):
    faults = []
    with opened(browser, server, faults, viewport=PHONE) as page:
        page.goto(server + PAGE)
        field, first = page.get_by_label("Find", exact=True), "td:first-child button span:first-child"
        field.fill("nanochat, gpt-oss")
        assert sorted(rows(page).locator(first).all_text_contents()) == ["gpt-oss", "nanochat"]
        assert all(len(row.evaluate(CARD)[1]) == 8 for row in rows(page).all())
        field.fill("fp32")
        shown = [row.evaluate(CARD)[1] for row in rows(page).all()]
        assert len(shown) > 2
        assert all(1 <= len(cells) < 8 for cells in shown)  # the cell that has the word
        field.fill("")
        assert not any(row.evaluate(CARD)[1] for row in rows(page).all())
        page.get_by_role("button", name="model").click()
        names = rows(page).locator(first).all_text_contents()
        assert names == sorted(names, key=str.lower)
    assert faults == []


# Where the headings and the filter are once the reader has scrolled; what is at the place of a heading.
STUCK = """() => [document.querySelector(".bd-header-article"), document.querySelector(".row-filter"),
  document.querySelector("table.models thead th")].map((e) => {
    const box = e.getBoundingClientRect(), there = document.elementFromPoint(box.left + 2, box.top + box.height / 2);
    return [Math.round(box.top), Math.round(box.bottom), e === there || e.contains(there)];
  })"""


def test_on_a_desk_the_filter_and_the_headings_stay_in_sight(browser, server):
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(server + PAGE)
        page.evaluate("scrollTo({ top: 3000, behavior: 'instant' })")
        (_, bar, _), (top, bottom, filter_seen), (head, _, head_seen) = page.evaluate(STUCK)
        assert filter_seen
        assert head_seen
        assert bar - 4 <= top <= bar
        assert bottom - 4 <= head <= bottom
    assert faults == []


def test_without_a_script_there_is_the_table(browser, server):
    with opened(browser, server, [], viewport=DESK, java_script_enabled=False) as page:
        page.goto(server + PAGE)
        assert not page.locator(".row-filter").is_visible()
        assert rows(page).count() >= 50
