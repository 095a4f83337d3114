"""The first screen of a page: the icons end where its figure ends, and a sheet opens with its first task."""

import pytest
from helpers.visit import PHONE, opened

from tools import checkout

LAPTOP = {"width": 1280, "height": 800}
SHEETS = sorted(path.stem for path in (checkout.ROOT / "notebooks/exercises").glob("ex*.ipynb"))
#: The edges of the icons, the figure and the contents, and the lower edge of the bar, once the reader has scrolled.
EDGES = """async () => {
  const box = (name) => document.querySelector(name).getBoundingClientRect();
  const [icons, figure] = [box(".article-header-buttons").right, box(".live-picture").right];
  scrollTo({ top: 2000, behavior: "instant" });
  await new Promise(requestAnimationFrame);
  return { icons, figure, bar: box(".bd-header-article").bottom, contents: box(".bd-sidebar-secondary").top };
}"""
# Lines of code that an editor cuts at its edge.
CUT = """() => [...document.querySelectorAll(".workbench textarea")]
  .filter((field) => field.scrollWidth > field.clientWidth).map((field) => field.ariaLabel)"""


# Where each paragraph, cell and title of a chapter begins, in pixels from the top of the screen.
PLACES = """() => [...document.querySelectorAll(".bd-article > section > :is(h1, p, .cell)")]
  .map((element) => Math.round(element.getBoundingClientRect().top))"""


@pytest.mark.parametrize("name", ["01-why-depth-breaks", "10-norms-at-work"])
def test_the_icons_end_where_the_figure_ends_and_cover_no_contents(browser, server, name):
    with opened(browser, server, [], viewport=LAPTOP) as page:
        page.goto(f"{server}notebooks/{name}.html")
        edges = page.evaluate(EDGES)
        assert 0 <= edges["icons"] - edges["figure"] <= 24
        assert edges["contents"] >= edges["bar"] > 0


def test_the_contents_begin_below_all_controls_of_the_figure(browser, server):
    with opened(browser, server, [], viewport=LAPTOP) as page:
        page.goto(f"{server}notebooks/03-layer-normalization.html")
        page.locator(".first-screen .live-controls summary").click()
        controls, contents = (
            page.locator(name).bounding_box() for name in (".first-screen .live-controls", ".bd-sidebar-secondary")
        )
        assert controls["y"] + controls["height"] <= contents["y"]


# Of the sidebar's list: by how many pixels it ends above the window and goes on below it, whether it fades there, and
# how many pixels of fading room its last entry has when it is scrolled to its end.
LIST = """async () => {
  const list = document.querySelector(".bd-sidebar-primary .sidebar-primary-item:has(> nav)");
  const style = getComputedStyle(list), more = list.scrollHeight - list.clientHeight - list.scrollTop;
  const last = [...list.querySelectorAll("a")].filter((link) => link.checkVisibility()).at(-1);
  const short = innerHeight - list.getBoundingClientRect().bottom;
  list.scrollTop = list.scrollHeight;
  await new Promise(requestAnimationFrame);
  const room = list.getBoundingClientRect().bottom - last.getBoundingClientRect().bottom;
  return { short, more, mask: style.maskImage, room, fade: parseFloat(style.paddingBottom) };
}"""


@pytest.mark.parametrize("name", ["book/intro", "notebooks/05c-rank-collapse"])
def test_the_list_of_the_sidebar_fades_where_it_goes_on(browser, server, name):
    with opened(browser, server, [], viewport=LAPTOP) as page:
        page.goto(f"{server}{name}.html")
        seen = page.evaluate(LIST)
    assert seen["short"] <= 1
    assert seen["more"] > 100
    assert f"calc(100% - {seen['fade']:g}px), " in seen["mask"].replace("rgb(0, 0, 0) ", "")
    assert 24 <= seen["fade"] <= seen["room"]


# Where the icons end, and by how many pixels the page is wider than its window.
ICONS = """[document.querySelector(".article-header-buttons").getBoundingClientRect().right,
  Math.max(0, document.documentElement.scrollWidth - innerWidth)]"""


def test_the_icons_are_in_one_place_on_every_page_of_a_desk(browser, server):
    first, places = "notebooks/01-why-depth-breaks", {}
    with opened(browser, server, [], viewport=LAPTOP) as page:
        for name in [first, "book/intro", "book/questions", "book/models", "book/claims", "search"]:
            page.goto(f"{server}{name}.html")
            for width in (1200, 1280, 1440, 1920):
                page.set_viewport_size({"width": width, "height": 800})
                places[name, width] = page.evaluate(ICONS)
    icons = {width: place for (name, width), (place, _) in places.items() if name == first}
    assert {where: place for where, place in places.items() if place != [icons[where[1]], 0]} == {}


@pytest.mark.parametrize("name", ["01-why-depth-breaks", "05-pre-ln-or-post-ln"])
def test_with_its_code_the_opening_figure_keeps_clear_of_the_contents(browser, server, name):
    with opened(browser, server, [], viewport=LAPTOP) as page:
        page.goto(f"{server}notebooks/{name}.html")
        page.get_by_label("Read with code").check()
        opening = page.locator(".cell:has(~ .opening)").last
        opening.locator("summary").first.click()
        assert opening.locator("pre").first.is_visible()
        figure, contents = opening.bounding_box(), page.locator(".bd-sidebar-secondary").bounding_box()
        assert figure["x"] + figure["width"] <= contents["x"]


@pytest.mark.parametrize("window", [PHONE, LAPTOP], ids=["phone", "laptop"])
def test_nothing_moves_when_the_second_half_of_a_page_arrives(browser, server, window):
    """A slow connection shows the first half before the rest is there."""

    def halve(route):
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().partition('<div class="opening')[0])

    with opened(browser, server, [], viewport=window) as page:
        url = server + "notebooks/07-after-pre-ln.html"
        page.goto(url)
        whole = page.evaluate(PLACES)
        page.route(url, halve)
        page.goto(url)
        assert page.locator(".opening").count() == 0
        half = page.evaluate(PLACES)
        assert len(half) > 4
        assert half == whole[: len(half)]


@pytest.mark.parametrize("sheet", SHEETS)
def test_a_sheet_opens_with_its_first_task_and_no_editor_cuts_a_line(browser, server, sheet):
    with opened(browser, server, [], viewport=PHONE) as page:
        page.goto(f"{server}notebooks/exercises/{sheet}.html")
        for window in (PHONE, LAPTOP):
            page.set_viewport_size(window)
            task = page.locator("[data-exercise]").first
            assert task.locator("p").nth(1).bounding_box()["y"] < 0.75 * window["height"]
            notes = page.locator("details.sheet-notes")
            assert notes.get_attribute("open") is None
            assert "Read first:" in notes.text_content()
        assert page.evaluate(CUT) == []  # of a laptop; on a phone an editor scrolls
        assert page.locator(".workbench + .admonition.dropdown").count() > 0  # the hint comes below the editor


READ = ["notebooks/03-layer-normalization", "notebooks/05-pre-ln-or-post-ln", "book/questions"]


@pytest.mark.parametrize("name", READ)
def test_a_page_on_a_phone_keeps_its_height_when_the_reader_begins(browser, server, name):
    """Until then what is below the screen is not laid out, and its height is a guess."""
    with opened(browser, server, [], viewport=PHONE) as page:
        page.goto(f"{server}{name}.html")
        guess = page.evaluate("document.documentElement.scrollHeight")
        page.keyboard.press("Tab")
        page.wait_for_function("!document.documentElement.matches('.fresh')")
        assert 0.75 < guess / page.evaluate("document.documentElement.scrollHeight") < 1.33
