"""The cheat sheet prints on two sides, A4 and Letter, with nothing cut off and nothing on top of something else."""

import re

import pytest
from helpers.visit import PHONE, opened

SHEET = "book/cheat-sheet.html"
# mm less two margins of 8 mm, in px
WIDTHS = {"A4": (297 - 16) / 25.4 * 96, "Letter": (279.4 - 16) / 25.4 * 96}

# Text lines and whole formulas, each with its box: a section of a column.
SEEN = """() => {
  const boxes = [], faults = [];
  const add = (text, rect, column) => {
    if (rect.width > 1 && rect.height > 1) boxes.push({ text: text.trim().slice(0, 40), rect, column });
  };
  for (const section of document.querySelectorAll("section.side > section")) {
    const column = section.getBoundingClientRect();
    for (const part of section.querySelectorAll(".katex-html > .katex-base"))
      add(part.textContent, part.getBoundingClientRect(), column);
    const walker = document.createTreeWalker(section, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode()); ) {
      const parent = node.parentElement;
      if (!node.data.trim() || parent.closest(".katex, svg, .katex-mathml") || !parent.checkVisibility()) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const rect of range.getClientRects()) add(node.data, rect, column);
    }
  }
  for (const { text, rect, column } of boxes)
    if (rect.left < column.left - 2 || rect.right > column.right + 2) faults.push(`out of its column: ${text}`);
  for (const [at, one] of boxes.entries())
    for (const other of boxes.slice(at + 1)) {
      const wide = Math.min(one.rect.right, other.rect.right) - Math.max(one.rect.left, other.rect.left);
      const high = Math.min(one.rect.bottom, other.rect.bottom) - Math.max(one.rect.top, other.rect.top);
      if (wide > 2 && high > 0.4 * Math.min(one.rect.height, other.rect.height))
        faults.push(`${one.text} is on ${other.text}`);
    }
  const controls = document.querySelectorAll("button, nav, .bd-sidebar-primary, .headerlink, footer");
  for (const control of controls) if (control.checkVisibility() && control.getBoundingClientRect().height > 0)
    faults.push(`shown: ${control.outerHTML.slice(0, 60)}`);
  return { faults, boxes: boxes.length };
}"""


def on_paper(page, paper):
    """The number of sides of a print, and the faults of the page as it is laid out for it."""
    pdf = page.pdf(format=paper, prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF")
    page.set_viewport_size({"width": round(WIDTHS[paper]), "height": 1000})
    page.emulate_media(media="print")
    seen = page.evaluate(SEEN)
    assert seen["boxes"] > 200
    return len(re.findall(rb"/Type\s*/Page\b", pdf)), seen["faults"]


@pytest.mark.parametrize("paper", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_prints_on_two_sides(browser, server, paper, scheme):
    faults = []
    with opened(browser, server, faults, color_scheme=scheme) as page:
        page.goto(server + SHEET)
        page.evaluate("document.fonts.ready")
        assert on_paper(page, paper) == (2, [])
    assert faults == []


BOX = """const section = document.querySelector("#layernorm"), text = section.querySelector("p:not(.place)");"""
PLANTED = {
    "too much text": "text.textContent = 'too much text '.repeat(400)",
    "out of its column": "text.style.cssText = 'white-space: nowrap; width: max-content'",
    "is on": "text.style.marginTop = '-3em'",
    "shown: <button": "section.insertAdjacentHTML('beforeend', '<button>x</button>')",
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(browser, server, fault):
    with opened(browser, server, []) as page:
        page.goto(server + SHEET)
        page.evaluate(f"() => {{ {BOX} {PLANTED[fault]} }}")
        sides, faults = on_paper(page, "A4")
        assert sides > 2 if fault == "too much text" else any(fault in found for found in faults)


def test_on_a_phone_it_is_one_column(browser, server):
    with opened(browser, server, [], viewport=PHONE) as page:
        page.goto(server + SHEET)
        lefts = page.locator("section.side > section").evaluate_all(
            "(list) => list.map((e) => Math.round(e.getBoundingClientRect().left))"
        )
        assert len(lefts) > 12
        assert len(set(lefts)) == 1
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
