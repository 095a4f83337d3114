"""Try it at the cells of the chapters, as a reader meets it; and every such cell, run in the page."""

from helpers.look import accessible
from helpers.visit import CALM, DESK, KEEPS_NOTHING, PHONE, POLICY_HOLDS, opened, strictly

from tools import checkout
from tools.in_page.measure import Chromium, tried

PAGE = "notebooks/01a-attention-in-twenty-lines.html"
OPEN = """() => {
  document.querySelectorAll(".predict .skip").forEach((button) => button.click());
  document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
}"""
FULL = "() => { Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') } }"
FOREVER = "while True:\n    pass"


def test_every_cell_prints_in_the_page_what_it_prints_in_the_book(browser, server):
    """Character by character; of an error, its message."""
    with opened(browser, server, []) as page:
        found = list(tried(Chromium(page, browser.version), server))
    assert len(found) > 130
    for cell, printed, said in found:
        assert printed == said, cell


def visit(page, address):
    """Open a page, and all that is folded or hidden behind a prediction."""
    page.goto(address)
    page.evaluate(OPEN)


class Cell:
    """A cell with a button."""

    def __init__(self, page, name):
        self.page, self.box = page, page.locator(f".cell:has([data-try={name}])")
        self.button = self.box.locator("[data-try]")
        self.editor = self.box.locator(".cm-content")

    def ends(self):
        self.page.wait_for_function(
            "cell => cell.querySelector('.workbench')?.ariaBusy === 'false'", arg=self.box.element_handle()
        )
        return self.text("state")

    def tries(self):
        self.button.click()
        return self.ends()

    def runs(self, code=None):
        if code is not None:
            self.editor.fill(code)
        self.box.locator("[data-run]").click()
        return self.ends()

    def text(self, part):
        return self.box.locator(f"[data-{part}]").text_content()

    @property
    def code(self):
        return self.box.locator(".cm-line").all_inner_texts()


def test_a_reader_tries_cells(browser, server):
    """From the first click to an error, with nothing before it and nothing from elsewhere."""
    faults, asked = [], []
    with opened(browser, server, faults, viewport=DESK, **CALM) as page:
        page.on("request", lambda request: asked.append(request.url.partition("_static/")[2].partition("?")[0]))
        visit(page, server + PAGE)
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.wait_for_load_state("networkidle")
        assert [url for url in asked if url.startswith(("python", "try/", "in-page"))] == []
        page.route("**/numpy.tar.gz*", lambda route: waiting.append(route))
        waiting = []
        compared = Cell(page, "cell-18")
        compared.button.click()
        page.wait_for_function("/^[1-9].* of [78]\\.. MB$/.test(document.querySelector('.loading span')?.textContent)")
        assert not compared.box.locator(".cell_input").is_visible()
        compared.box.locator("[data-stop]").click()
        assert compared.ends() == "Stopped. "
        page.unroute("**/numpy.tar.gz*")
        assert compared.runs() == "Same as in the book."
        assert "stories.tar.gz" not in " ".join(asked)  # this page does without the model
        assert compared.text("output") == compared.text("stored") == ""
        assert compared.box.locator(".cell_output").is_visible()
        assert compared.box.locator("[data-run]").evaluate("e => e === document.activeElement")

        assert compared.runs("print('another')") == "Compare your output with the book’s."
        assert compared.text("output") == "another"
        assert compared.text("stored") == "the same outputs: True"
        assert not compared.box.locator(".cell_output").is_visible()
        left = "Your change leaves the output the same as in the book."
        assert compared.runs("print('the same outputs:', True)") == left
        assert compared.runs("x = 1\nprint(nothing)") == "An error, in the output below."
        assert compared.box.locator(".cm-marked").all_inner_texts() == ["print(nothing)"]
        assert compared.text("output").endswith("NameError: name 'nothing' is not defined")
        assert compared.text("stored") == "the same outputs: True"

        table = Cell(page, "cell-06")
        assert table.tries() == "Same as in the book."
        assert table.box.locator("[data-output]").is_visible()  # a later cell prints it in the book
        assert table.text("stored") == ""
        lines = [line for line in table.code if not line.startswith("weights")]
        said = "Compare your output with the book’s. Figures stay as in the book."  # one shows these weights
        assert table.runs("\n".join([*lines, "weights = scores"])) == said
        mine, book = (table.text(part).split("\n") for part in ("output", "stored"))
        assert mine[0].split() == book[0].split()
        assert mine[1:] != book[1:]
        assert len({line.index(book[0].split()[0]) for line in book[:1]}) == 1
        table.box.locator("[data-reset]").click()

        function = Cell(page, "cell-10")
        assert function.tries() == "The call at the end is not in the book: it shows what the code does."
        assert function.text("output").startswith("array([[")
        assert function.text("stored") == ""
        function.runs("\n".join(["# one line more", *function.code]).replace("return ", "y = 1\n    return ", 1))
        counted = Cell(page, "cell-14")
        assert counted.tries() == "Not the same as in the book. It ran with your change above."
        more, fewer = (int(counted.text(part).split()[0]) for part in ("output", "stored"))
        assert more == fewer + 1

        compared.box.locator("[data-reset]").click()
        assert compared.runs() == "Same as in the book. It ran with your change above."
        compared.box.locator("[data-close]").click()
        assert compared.box.locator(".cell_input").is_visible()
        assert compared.button.evaluate("e => e === document.activeElement")

        visit(page, server + PAGE)
        assert Cell(page, "cell-10").tries() != ""
        assert Cell(page, "cell-10").code[0] == "# one line more"  # kept, until it is reset
        Cell(page, "cell-10").box.locator("[data-reset]").click()
        visit(page, server + PAGE)
        Cell(page, "cell-10").tries()
        assert Cell(page, "cell-10").code[0].startswith("def attention")
    assert faults == []


def test_a_bug_is_fixed_and_its_test_passes_under_a_strict_policy(browser, server):
    with opened(browser, server, [], viewport=DESK, **CALM) as page:
        page.route("**/*", strictly)
        visit(page, f"{server}notebooks/09a-the-bug-museum.html")
        bug, test = Cell(page, "token-norm-bug"), Cell(page, "token-norm-test")
        assert test.tries() == "Same as in the book."
        bug.tries()
        bug.runs("\n".join(bug.code).replace("axis = 1", "axis = -1"))
        assert test.runs() == "Not the same as in the book. It ran with your change above."
        assert test.text("output").startswith("passes: True\n✓")
        assert page.evaluate(POLICY_HOLDS)


def test_by_keyboard_and_a_loop_that_never_ends(browser, server):
    with opened(browser, server, [], viewport=DESK, **CALM) as page:
        visit(page, server + PAGE)
        cell = Cell(page, "cell-18")
        cell.button.focus()
        page.keyboard.press("Enter")
        cell.ends()
        page.keyboard.press("Shift+Tab")
        assert cell.editor.evaluate("e => e === document.activeElement")
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type("print(6 * 7)")
        page.keyboard.press("Shift+Enter")
        cell.ends()
        assert cell.text("output") == "42"
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type(FOREVER.replace("    ", ""))  # the editor indents
        page.keyboard.press("ControlOrMeta+Enter")
        page.wait_for_function("document.querySelector('.workbench [data-state]').textContent === 'Running…'")
        other = Cell(page, "cell-24")
        other.button.click()
        page.wait_for_function("document.querySelectorAll('.workbench').length === 2")
        assert other.text("state").startswith("Another cell is running")
        cell.box.locator("[data-stop]").focus()
        page.keyboard.press("Enter")
        assert cell.ends() == "Stopped. "
        cell.box.locator("[data-run]").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert cell.code[0].startswith("mask = None")  # Reset: a run below would not end, either
        assert other.runs() == "Same as in the book."


def test_on_a_phone_nothing_is_too_wide_and_axe_finds_nothing(browser, server):
    with opened(browser, server, [], viewport=PHONE, **CALM) as page:
        visit(page, server + PAGE)
        Cell(page, "cell-06").tries()
        Cell(page, "cell-06").runs("\n".join([*Cell(page, "cell-06").code, "weights = 100_000 * weights"]))
        Cell(page, "cell-18").tries()
        Cell(page, "cell-18").runs(f"1 / 0  # {'long ' * 40}")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert accessible(page, "light", "dark") == []


def test_a_browser_that_keeps_nothing_says_so_at_every_editor(browser, server):
    """From the first, or once there is no more room for it."""
    with opened(browser, server, [], viewport=PHONE, **CALM) as page:
        visit(page, server + PAGE)
        first, later = Cell(page, "cell-18"), Cell(page, "cell-24")
        first.tries()
        assert not first.box.locator("[data-unkept]").is_visible()
        page.evaluate(FULL)
        first.runs("print('mine')")
        later.tries()
        assert [cell.box.locator("[data-unkept]").is_visible() for cell in (first, later)] == [True, True]
        page.add_init_script(KEEPS_NOTHING)
        visit(page, server + PAGE)
        assert first.tries() == "Same as in the book."
        assert first.box.locator("[data-unkept]", has_text="copy it before").is_visible()


def test_where_it_cannot_run_it_says_so(browser, server, pages):
    """From a file, offline, on paper and without scripts."""
    faults, base = [], checkout.PAGES.as_uri() + "/"
    with opened(browser, base, faults) as page:
        visit(page, base + PAGE)
        cell = Cell(page, "cell-18")
        cell.button.click()
        cell.box.locator(".try-it [role=status]", has_text="python3 course.py serve").wait_for()
        assert cell.box.locator(".cell_input").is_visible()
    assert faults == []
    with opened(browser, server, []) as page:
        visit(page, server + PAGE)
        cell = Cell(page, "cell-18")
        page.route("**/try/*", lambda route: route.abort())
        cell.button.click()
        cell.box.locator(".try-it [role=status]", has_text="Are you online?").wait_for()
        page.unroute("**/try/*")
        assert cell.tries() == "Same as in the book."
        page.emulate_media(media="print")
        assert not cell.box.locator(".workbench").is_visible()
        assert cell.box.locator(".cell_input").is_visible()
        assert not cell.button.is_visible()
    with opened(browser, server, [], java_script_enabled=False) as page:
        page.goto(server + PAGE)
        assert not Cell(page, "cell-18").button.is_visible()
