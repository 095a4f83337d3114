"""What single pages do in a real browser. What holds for every page is in test_every_page.py."""

from visit import DESK, opened


def test_the_front_door_leads_to_the_book(browser, server):
    faults = []
    with opened(browser, server, faults) as page:
        page.goto(server)
        page.wait_for_url("**/book/intro.html", timeout=5000)
    assert faults == []


def test_a_chapter_needs_no_script(browser, server):
    """Formulas, pictures, and what folds: it is there, and a summary unfolds it."""
    faults = []
    with opened(browser, server, faults, java_script_enabled=False) as page:
        page.goto(server + "notebooks/03-layer-normalization.html")
        assert page.locator(".math .katex").first.is_visible()
        for picture in page.locator("article .cell_output img").all():
            assert picture.is_visible()
        answer = page.locator("details.sd-dropdown").first
        assert not answer.locator("p").last.is_visible()
        answer.locator("summary").click()
        assert answer.locator("p").last.is_visible()
    assert faults == []


def test_the_colour_button_changes_the_colours_and_is_remembered(browser, server):
    faults = []
    with opened(browser, server, faults, color_scheme="light") as page:
        page.goto(server + "book/notation.html")
        ground = "getComputedStyle(document.body).backgroundColor"
        before = page.evaluate(ground)
        for _ in range(3):
            if page.evaluate("document.documentElement.dataset.theme") != "dark":
                page.locator(".theme-switch-button").first.click()
        assert page.evaluate(ground) != before
        page.goto(server + "book/glossary.html")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert faults == []


def test_a_wide_formula_can_be_scrolled_by_keyboard(browser, server):
    with opened(browser, server, [], viewport={"width": 260, "height": 700}) as page:
        page.goto(server + "notebooks/03-layer-normalization.html")
        wide = page.locator(".eqn").filter(has=page.locator(".mtable")).first
        assert wide.evaluate("box => box.scrollWidth > box.clientWidth")
        assert wide.get_attribute("tabindex") == "0"


def test_lines_are_of_a_readable_length(browser, server):
    """60 to 75 characters on a desk; another machine's font makes them wider or narrower by a fifth."""
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "book/intro.html")
        length = page.evaluate("""() => {
          const longer = (a, b) => b.textContent.length - a.textContent.length;
          const p = [...document.querySelectorAll("article p")].sort(longer)[0];
          return p.textContent.length / Math.round(p.clientHeight / parseFloat(getComputedStyle(p).lineHeight));
        }""")
    assert 50 <= length <= 90
