"""The playground, the listing that tells a story, and the model on sheet 06, in their pages."""

import contextlib
import io
import json
from unittest.mock import patch

import pytest
from helpers.look import accessible
from helpers.visit import CALM, DESK, KEEPS_NOTHING, PHONE, opened
from subnorm_book.in_page.playground import starters

from tools import checkout

STARTERS = starters(checkout.ROOT)
SHEET = checkout.ROOT / "notebooks/exercises/ex06-make-it-speak.ipynb"


def output_of(code):
    """What code prints in this Python."""
    with contextlib.redirect_stdout(io.StringIO()) as printed, patch("sys.argv", [""]):
        exec(code, {"__name__": "__main__", "__file__": str(checkout.ROOT / "book/story.py")})
    return printed.getvalue()


# How many lines a text takes.
BEYOND = "e => e.scrollWidth - e.clientWidth"
LINES = """text => {
  const all = document.createRange();
  all.selectNodeContents(text);
  return new Set([...all.getClientRects()].map((box) => box.top)).size;
}"""


class Editor:
    """An editor of a page with its buttons; the first one that matches."""

    def __init__(self, page, where=".playground"):
        self.page, self.box = page, page.locator(where).first

    def write(self, code):
        self.box.locator("textarea, .cm-content").first.focus()
        self.box.locator(".cm-content").fill(code)

    def run(self):
        self.box.locator("[data-run]").click()
        bench = self.box.locator("css=:scope.workbench, .workbench").first.element_handle()
        self.page.wait_for_function("bench => bench.ariaBusy === 'false'", arg=bench)
        return self.text("output")

    def text(self, part):
        return self.box.locator(f"[data-{part}]").text_content()

    @property
    def code(self):
        """What the reader sees of a text that is not the page's own: such a text brings the editor."""
        self.box.locator(".cm-content").wait_for()
        return "\n".join(line.rstrip("\n") for line in self.box.locator(".cm-line").all_inner_texts())


@pytest.fixture
def visit(browser, server):
    """Open a page by name; nothing may go wrong that the reader does not see."""
    with contextlib.ExitStack() as stack:
        faults = []

        def visit(name, **settings):
            page = stack.enter_context(opened(browser, server, faults, **{"viewport": PHONE, **CALM, **settings}))
            page.goto(f"{server}{name}")
            return page

        yield visit
        assert faults == []


def test_the_starters_say_what_they_say_elsewhere_and_the_model_comes_when_it_is_needed(visit, server):
    page, asked = visit("book/playground.html"), []
    field, shown = page.locator(".workbench textarea"), page.locator(".preview > div")
    assert "\n".join(shown.all_inner_texts()).split() == field.input_value().split()  # and in colours
    assert len({line.evaluate("e => getComputedStyle(e).color") for line in shown.locator("span").all()}) > 2
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2].partition("?")[0]))
    editor = Editor(page)
    assert editor.text("cost").startswith("loads 7.")
    for name, one in STARTERS.items():
        page.click(f"[data-starter={name}]")
        assert editor.text("question") == one["question"]
        if name == "story":
            assert "stories.tar.gz" not in asked
            assert editor.text("cost") == "loads 1.0 MB"
        assert editor.run() == output_of(one["code"]), name
        assert editor.text("cost") == ""
    assert asked.count("stories.tar.gz") == 1
    editor.write("print('0.25 ' * 40)")
    editor.run()
    assert page.locator("[data-output]").evaluate(LINES) == 1  # a row of an array stays whole: the box scrolls
    assert page.locator("[data-output]").evaluate(BEYOND) > 0
    page.set_viewport_size(DESK)
    assert page.locator("[data-output]").evaluate(BEYOND) == 0  # where a story has room
    page.set_viewport_size(PHONE)
    editor.write("numpy")
    assert "NameError" in editor.run()  # every run begins anew
    page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")  # the answer came into view; axe measures what shows
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert accessible(page, "light", "dark") == []


def test_each_starter_keeps_its_own_text(visit, tmp_path):
    page = visit("book/playground.html", viewport=DESK)
    editor = Editor(page)
    editor.write("print('mine')")
    page.click("[data-starter=story]")
    page.reload()
    assert page.locator("[data-starter=story]").get_attribute("aria-pressed") == "true"
    assert editor.code == STARTERS["story"]["code"]
    page.click("[data-starter=shift]")
    assert editor.code == "print('mine')"
    with page.expect_download() as download:
        page.click("[data-download]")
    download.value.save_as(tmp_path / "a.py")
    assert download.value.suggested_filename == "shift.py"
    assert (tmp_path / "a.py").read_text("utf-8") == "print('mine')"
    page.click("[data-reset]")
    assert editor.code == STARTERS["shift"]["code"]


def test_a_browser_that_keeps_nothing_says_so(browser, server):
    with opened(browser, server, [], viewport=PHONE) as page:  # the theme's own scripts fail there
        page.goto(f"{server}book/playground.html")
        assert not page.locator("[data-unkept]").is_visible()
        page.add_init_script(KEEPS_NOTHING)
        page.reload()
        page.click("[data-starter=shift]")
        assert Editor(page).run() != ""
        assert page.locator("[data-unkept]", has_text="download it before").is_visible()


def test_a_link_carries_the_code_and_runs_nothing(visit, server):
    code = "print('σ “Łódź” 你好', 1 < 2)\n"
    page = visit("book/playground.html")
    editor = Editor(page)
    editor.write(code)
    page.click("[data-link]")
    page.wait_for_function("location.hash.startsWith('#code=')")
    other = visit(page.url.removeprefix(server))
    there = Editor(other)
    other.wait_for_function("document.querySelector('[data-state]').textContent.includes('Read it before you run it')")
    assert (there.code, len(other.workers)) == (code, 0)
    other.click("[data-starter=shift]")
    assert there.code == STARTERS["shift"]["code"]  # the reader's own text is untouched
    editor.write("".join(f"# {pow(7919, k + 999, 10**3000)}\n" for k in range(8)))  # digits that are hard to compress
    page.click("[data-link]")
    page.wait_for_function("document.querySelector('[data-state]').textContent.includes('too long for a link')")
    other.evaluate("location.hash = '#code=AAAA'")
    other.wait_for_function("document.querySelector('[data-state]').textContent.includes('The link is incomplete')")


def test_the_listing_tells_the_story_and_another_one_with_another_norm(visit):
    listing = (checkout.ROOT / "book/story.py").read_text("utf-8")
    changed = listing.replace(
        "    return gain * x / np.sqrt", "    x = x - x.mean()\n    return gain * x / np.sqrt"
    )  # LayerNorm
    assert changed != listing
    page = visit("book/story.html")
    editor = Editor(page)
    code = [page.locator(".story"), page.locator(".playground")]
    assert [part.is_visible() for part in code] == [True, False]  # the page shows it once
    page.get_by_role("button", name="Change it here").click()
    assert [part.is_visible() for part in code] == [False, True]
    assert editor.text("cost").startswith("loads 8.")
    assert editor.run() == output_of(listing)
    for link in page.locator("a[href^='#line-']").all()[:3]:  # each leads to its line in the editor
        link.click()
        number = int(link.get_attribute("href").removeprefix("#line-"))
        line = page.locator(".cm-line", has_text=listing.split("\n")[number - 1].strip()).first
        page.wait_for_function(
            "([e, y]) => Math.abs(e.getBoundingClientRect().y - y) < 20",
            arg=[line.element_handle(), 0.3 * PHONE["height"]],
        )
    editor.write(changed)
    assert editor.run() == output_of(changed)
    page.get_by_role("button", name="Back to the listing").click()
    assert [part.is_visible() for part in code] == [True, False]


@pytest.mark.parametrize("window", [PHONE, DESK], ids=["phone", "desk"])
def test_the_first_button_of_the_story_leads_to_its_editor(visit, window):
    page = visit("book/story.html", viewport=window)
    button = page.get_by_role("button", name="Run it in this page")
    assert button.bounding_box()["y"] < window["height"]
    button.press("Enter")
    run = page.locator(".playground [data-run]")
    assert run.evaluate("button => button === document.activeElement")
    assert page.locator(".playground").bounding_box()["y"] < window["height"] / 2
    assert page.get_by_role("button", name="Back to the listing").is_visible()


def test_a_link_to_a_changed_listing_opens_it(visit):
    page = visit("book/story.html")
    page.get_by_role("button", name="Change it here").click()
    editor = Editor(page)
    editor.write("print('mine')")
    page.click("[data-link]")
    page.wait_for_function("location.hash.startsWith('#code=')")
    other = visit(page.url.removeprefix(page.url.partition("/book/")[0] + "/"))
    other.wait_for_function("document.querySelector('[data-state]').textContent.includes('Read it before you run it')")
    assert other.locator(".playground").is_visible()
    assert Editor(other).code == "print('mine')"


def test_the_students_functions_tell_the_story_of_the_notebook(visit):
    """And the list of what was checked is that of the notebook."""
    cells = {cell["id"]: cell for cell in json.loads(SHEET.read_text("utf-8"))["cells"]}
    names = ["norm", "head", "swiglu", "story_block", "next_scores", "tell"]
    page = visit("notebooks/exercises/ex06-make-it-speak.html", viewport=DESK)
    together = Editor(page, ".workbench:not(:has([data-check]))")
    assert together.run() == "○ story: the model says nothing yet, because tell is not done yet.\n"
    assert page.locator("[data-checked]").inner_text() == "0 of 0 exercises that you have checked are right."
    for k, name in enumerate(names, 1):
        bench = Editor(page, f"[data-exercise={name}]")
        bench.write("".join(cells[f"ex06-{k}-answer"]["source"]))
        bench.box.locator("[data-check]").click()
        page.wait_for_function(
            "box => box.querySelector('.workbench').ariaBusy === 'false'", arg=bench.box.element_handle()
        )
    stored = {name: "".join(cells[name]["outputs"][0]["text"]) for name in ("story-told", "progress")}
    assert together.run() == stored["story-told"]
    assert page.locator("[data-checked]").inner_text() == stored["progress"].strip()
    page.reload()
    assert page.locator("[data-checked]").inner_text() == stored["progress"].strip()
    norm = Editor(page, "[data-exercise=norm]")
    norm.write("def norm(x, gamma, eps):\n    ...")
    assert together.run().endswith("because norm is not done yet.\n")  # the text in the editor, which was not run
    norm.box.locator("[data-check]").click()
    page.wait_for_function("document.querySelector('[data-checked]').textContent.startsWith('○ norm (not_done)\\n')")
    assert page.locator("[data-checked]").inner_text().endswith("\n5 of 6 exercises that you have checked are right.")
