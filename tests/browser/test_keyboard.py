"""The book by keyboard alone: every stop is visible, the skip link skips, the phone's drawer opens and closes."""

import pytest
from helpers.visit import DESK, PHONE, opened

CHAPTER = "notebooks/03-layer-normalization.html"

# The focused element: its position, its name, and whether an outline or another mark shows it.
FOCUS = """() => {
  const e = document.activeElement, box = e.getBoundingClientRect(), style = getComputedStyle(e);
  const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== "none";
  return {
    html: e.outerHTML.slice(0, 100), body: e === document.body, ring,
    seen: box.width > 0 && box.right > 0 && box.left < innerWidth && box.bottom > 0 && box.top < innerHeight,
  }
}"""


def walk(page, stops=1000):
    """The faults of each Tab stop to the end of the page, and the number of stops."""
    faults = []
    for stop in range(stops):
        page.keyboard.press("Tab")
        at = page.evaluate(FOCUS)
        if at["body"]:
            return faults, stop
        faults += [
            f"{fault}: {at['html']}" for fault, ok in (("no ring", at["ring"]), ("out of sight", at["seen"])) if not ok
        ]
    return [*faults, "no end"], stops


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_each_stop_is_seen(browser, server, window):
    with opened(browser, server, [], viewport=window, reduced_motion="reduce") as page:
        page.goto(server + CHAPTER)
        faults, stops = walk(page)
        assert faults == []
        assert stops > 40


def test_a_hidden_ring_is_found(browser, server):
    with opened(browser, server, [], viewport=DESK, reduced_motion="reduce") as page:
        page.goto(server + "book/changelog.html")
        page.add_style_tag(
            content="html body :focus-visible { outline: none !important; box-shadow: none !important; }"
        )
        faults, _ = walk(page, 5)
        assert any("no ring" in fault for fault in faults)


def test_the_skip_link_leads_to_the_text(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + CHAPTER)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('main') !== null")


@pytest.mark.parametrize("side", ["primary", "secondary"])
def test_a_drawer_of_a_phone(browser, server, side):
    """It opens and closes by keyboard, and the focus returns to the button."""
    with opened(browser, server, [], viewport=PHONE) as page:
        page.goto(server + CHAPTER)
        page.locator(f"button.{side}-toggle").focus()
        page.keyboard.press("Enter")
        drawer = page.locator(f"#pst-{side}-sidebar-modal")
        drawer.locator("nav a").first.wait_for(state="visible")
        page.keyboard.press("Tab")
        assert page.evaluate(f"document.activeElement.closest('#pst-{side}-sidebar-modal') !== null")
        page.keyboard.press("Escape")
        drawer.wait_for(state="hidden")
        assert page.evaluate(f"document.activeElement.matches('button.{side}-toggle')")


def test_a_drawer_of_a_phone_closes_when_a_place_on_the_page_is_chosen(browser, server):
    """And the Tab key continues from there."""
    with opened(browser, server, [], viewport=PHONE, reduced_motion="reduce") as page:
        page.goto(server + CHAPTER)
        page.locator("button.secondary-toggle").click()
        drawer = page.locator("#pst-secondary-sidebar-modal")
        drawer.locator("a[href='#summary']").click()
        drawer.wait_for(state="hidden")
        page.wait_for_url("**#summary")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('#summary') !== null")


def test_reduced_motion_is_respected(browser, server):
    with opened(browser, server, [], viewport=DESK, reduced_motion="reduce") as page:
        page.goto(server + CHAPTER)
        moving = page.evaluate("""() => [...document.querySelectorAll("*")].filter((e) => {
          const { transitionDuration, animationDuration, scrollBehavior } = getComputedStyle(e);
          const longest = Math.max(...`${transitionDuration},${animationDuration}`.split(",").map(parseFloat));
          return longest > 0.01 || scrollBehavior === "smooth";
        }).map((e) => e.outerHTML.slice(0, 80))""")
        assert moving == []


# How much of a live figure's picture is visible between the page's top bar and the controls, in px; and
# whether the focused control is visible.
IN_SIGHT = """() => {
  const box = (e) => e.getBoundingClientRect(), control = document.activeElement, figure = control.closest("figure");
  const [picture, controls] = ["picture", "controls"].map((name) => box(figure.querySelector(`.live-${name}`)));
  return {
    picture: Math.min(picture.bottom, controls.top) - Math.max(picture.top, 56),
    height: picture.height,
    control: box(control).top > 56 && box(control).bottom <= innerHeight,
  };
}"""


@pytest.mark.parametrize("page_name", ["01-why-depth-breaks", "04-rmsnorm", "05-pre-ln-or-post-ln"])
def test_picture_and_control_are_seen_together_on_a_phone(browser, server, page_name):
    with opened(browser, server, [], viewport=PHONE, reduced_motion="reduce") as page:
        page.goto(f"{server}notebooks/{page_name}.html")
        name = page.locator("figure[data-live]").first.get_attribute("id")
        page.goto(f"{server}notebooks/{page_name}.html#{name}")
        figure = page.locator("figure.live-on").first
        figure.wait_for()
        # start with the top of the figure just in view, then press Tab
        figure.evaluate("figure => scrollTo(0, figure.getBoundingClientRect().top + scrollY - innerHeight + 120)")
        figure.evaluate(
            "figure => [...document.querySelectorAll('summary, a[href]')]"
            ".filter((e) => e.checkVisibility() && e.compareDocumentPosition(figure) & 4).pop()"
            ".focus({preventScroll: true})"
        )
        page.keyboard.press("Tab")
        seen = page.evaluate(IN_SIGHT)
        assert seen["control"]
        assert seen["picture"] > min(400, 0.9 * seen["height"])  # about half of the screen, or all of it
