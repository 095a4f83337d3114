"""The book in a real browser: every page, light and dark, on a desk and on a phone, from a server and from a file."""

import pytest
from visit import DESK, PHONE, opened

import course

# What the reader must see: nothing wider than the window, formulas and pictures with a size, the colours asked for.
LOOK = """async () => {
  for (const image of document.images) { image.loading = "eager"; await image.decode().catch(() => {}) }
  const shown = (e) => e.checkVisibility();
  const bare = (e) => { const box = e.getBoundingClientRect(); return box.width < 2 || box.height < 2 };
  return {
    overflow: document.documentElement.scrollWidth - innerWidth,
    theme: document.documentElement.dataset.theme,
    bare: [...document.querySelectorAll(".math .katex, article img, article svg[role=img]")]
      .filter((e) => shown(e) && (bare(e) || e.naturalWidth === 0)).map((e) => e.outerHTML.slice(0, 80)),
    unseen: [...document.querySelectorAll("article > section > p .math .katex")].filter((e) => !shown(e)).length,
    mathFont: !document.querySelector(".katex") || document.fonts.check("16px KaTeX_Main"),
  }
}"""


def look(page, name, scheme, faults):
    seen = page.evaluate(LOOK)
    if seen["overflow"] > 0:
        faults.append(f"{name}: {seen['overflow']} px wider than the window")
    if seen["theme"] != scheme:
        faults.append(f"{name}: {seen['theme']} for a reader who prefers {scheme}")
    faults.extend(f"{name}: no size: {html}" for html in seen["bare"])
    if seen["unseen"]:
        faults.append(f"{name}: {seen['unseen']} formulas are hidden")
    if not seen["mathFont"]:
        faults.append(f"{name}: the font of the formulas is missing")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_every_page_from_a_server(browser, server, pages, scheme, window):
    faults = []
    with opened(browser, server, faults, color_scheme=scheme, viewport=window) as page:
        for name in pages:
            page.goto(server + name)
            look(page, name, scheme, faults)
    assert faults == []


def test_every_page_from_a_file(browser, pages):
    faults, base = [], course.PAGES.as_uri() + "/"
    with opened(browser, base, faults, color_scheme="light", viewport=DESK) as page:
        for name in pages:
            page.goto(base + name)
            look(page, name, "light", faults)
    assert faults == []


def test_the_front_door_leads_to_the_book(browser, server):
    faults = []
    with opened(browser, server, faults) as page:
        page.goto(server)
        page.wait_for_url("**/book/intro.html", timeout=5000)
    assert faults == []


def test_formulas_need_no_script(browser, server):
    faults = []
    with opened(browser, server, faults, java_script_enabled=False) as page:
        page.goto(server + "book/notation.html")
        assert page.locator(".math .katex").first.is_visible()
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
