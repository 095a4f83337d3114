"""What single pages do in a real browser; test_every_page*.py have what holds for every page."""

import pytest
from helpers.look import accessible
from helpers.visit import DESK, PHONE, opened

from tools import checkout

TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"


def test_the_front_door_leads_to_the_book(browser, server):
    faults = []
    with opened(browser, server, faults) as page:
        page.goto(server)
        page.wait_for_url("**/book/intro.html")
    assert faults == []


def test_a_chapter_needs_no_script(browser, server):
    """Formulas and pictures are there, and folded parts unfold."""
    faults = []
    with opened(browser, server, faults, java_script_enabled=False) as page:
        page.goto(server + "notebooks/03-layer-normalization.html")
        assert page.locator(".math .katex").first.is_visible()
        assert page.locator("article figure[data-live] svg").first.is_visible()
        for fold in page.locator("section.second-reading > details > summary").all():
            fold.click()
        pictures = page.locator("article .cell_output img")
        assert pictures.count() == pictures.locator("visible=true").count() > 0
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


def test_a_wide_formula_or_listing_can_be_scrolled_by_keyboard(browser, server):
    with opened(browser, server, [], viewport={"width": 260, "height": 700}) as page:
        page.goto(server + "notebooks/03a-layer-norm-backward.html")
        formula = page.locator(".eqn").filter(has=page.locator(".mtable"))
        for wide, width in ((formula, 260), (page.locator(".cell_input pre:visible"), 620)):
            page.set_viewport_size({"width": width, "height": 700})
            wide.first.evaluate("box => location.replace('#' + box.closest('section').id)")
            assert wide.first.evaluate("box => box.scrollWidth > box.clientWidth")
            page.wait_for_function("box => box.tabIndex === 0", arg=wide.first.element_handle())


def test_a_listing_is_not_cut_on_a_phone(browser, server):
    """A long line goes on below, further to the right, as in the editor that takes the place of the listing."""
    cut = "(all) => all.filter((box) => box.scrollWidth > box.clientWidth).map((box) => box.textContent)"
    with opened(browser, server, [], viewport=PHONE) as page:
        page.goto(server + "notebooks/02-residual-connections.html")
        listings = page.locator(".cell_input pre:visible")
        assert listings.count() > 2
        assert listings.evaluate_all(cut) == []
        page.add_style_tag(content=".bd-article .cell_input pre { white-space: pre !important }")
        assert listings.evaluate_all(cut) != []


def test_a_phone_lays_out_the_page_when_the_reader_begins(browser, server):
    """And a jump within the page lands at its target, also after a reload."""
    faults = []
    laid_out = "e => e.checkVisibility({contentVisibilityAuto: true})"
    address = server + "notebooks/05-pre-ln-or-post-ln.html"
    with opened(browser, server, faults, viewport=PHONE, reduced_motion="reduce") as page:
        heading = page.locator("#summary h2")
        for begin in (lambda: page.mouse.wheel(0, 100), lambda: page.keyboard.press("Tab")):
            page.goto("about:blank")
            page.goto(address)
            # the theme scrolls its sidebar on many pages
            page.locator(".bd-sidebar-primary").evaluate("bar => { bar.dispatchEvent(new Event('scroll')) }")
            assert not heading.evaluate(laid_out)
            begin()
            page.wait_for_function(laid_out, arg=heading.element_handle())
        page.goto("about:blank")
        page.goto(address)
        page.locator("#pst-page-toc-nav a[href='#summary']").evaluate("link => link.click()")
        at_the_head = "() => Math.abs(document.querySelector('#summary').getBoundingClientRect().top) < 120"
        page.wait_for_function(at_the_head)
        page.reload()
        page.wait_for_function(at_the_head)
    assert faults == []


def test_on_a_desk_the_list_of_contents_follows_the_reader(browser, server):
    with opened(browser, server, [], viewport=DESK, reduced_motion="reduce") as page:
        page.goto(server + "notebooks/05-pre-ln-or-post-ln.html")
        links = page.locator("#pst-page-toc-nav a[href^='#']")
        for link in (links.nth(1), links.nth(3)):
            page.locator(link.get_attribute("href")).evaluate("section => section.scrollIntoView()")
            page.wait_for_function("link => link.classList.contains('active')", arg=link.element_handle())


def test_the_menu_of_a_page_opens_by_pointer_and_by_key(browser, server):
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(server + "notebooks/03-layer-normalization.html")
        button, items = page.locator(".dropdown-toggle"), page.locator(".dropdown-menu .dropdown-item")
        assert items.count() == 3
        button.click()
        items.last.wait_for(state="visible")
        assert button.get_attribute("aria-expanded") == "true"
        box = items.last.bounding_box()
        assert box["x"] + box["width"] <= DESK["width"]
        faults += accessible(page, "light")
        page.locator("article h1").click()
        items.last.wait_for(state="hidden")
        button.focus()
        for key, at in [("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0)]:
            page.keyboard.press(key)
            assert items.nth(at).evaluate("item => item === document.activeElement")
        page.keyboard.press("Escape")
        items.first.wait_for(state="hidden")
        assert button.evaluate("button => button === document.activeElement")
        assert button.get_attribute("aria-expanded") == "false"
    assert faults == []


SCROLL = """by => new Promise((done) => {
  addEventListener("scroll", () => done(), { once: true });
  scrollBy(0, by);
})"""


def test_a_reader_who_scrolls_up_is_offered_the_top(browser, server):
    """On a phone: a desk has the contents beside the text."""
    with opened(browser, server, [], viewport=PHONE, reduced_motion="reduce") as page:
        page.goto(server + "notebooks/05-pre-ln-or-post-ln.html")
        button = page.locator("#pst-back-to-top")
        for move, state in [(6000, "hidden"), (-500, "visible"), (500, "hidden"), (-500, "visible")]:
            page.evaluate("by => scrollBy(0, by)", move)
            button.wait_for(state=state)
        button.click()
        page.wait_for_function("scrollY === 0")
        button.wait_for(state="hidden")


def test_lines_are_of_a_readable_length(browser, server):
    """60 to 75 characters on a desktop; another machine's font may differ in width by a fifth."""
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "book/intro.html")
        length = page.evaluate("""() => {
          const longer = (a, b) => b.textContent.length - a.textContent.length;
          const p = [...document.querySelectorAll("article p")].sort(longer)[0];
          return p.textContent.length / Math.round(p.clientHeight / parseFloat(getComputedStyle(p).lineHeight));
        }""")
    assert 50 <= length <= 90


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", ["book/intro.html", "notebooks/03-layer-normalization.html"])
def test_what_comes_later_moves_nothing_at_the_head(browser, server, window, name):
    """On a slow line the heading is readable before the rest of the page and the pictures have loaded."""
    where = "[...document.querySelectorAll('h1, .bd-links')].map(e => e.getBoundingClientRect().toJSON())"

    def only_the_head(route):
        page = route.fetch()
        route.fulfill(response=page, body=page.text().rpartition("</h1>")[0])

    heads = []
    for early in (True, False):
        with opened(browser, server, [], viewport=window) as page:
            if early:
                page.route("**/*.html", only_the_head)
                page.route("**/*.svg", lambda route: None)  # never answered
            page.goto(server + name, wait_until="domcontentloaded")
            heads.append([(box["x"], box["y"], box["width"]) for box in page.evaluate(where)])
    assert heads[0] == heads[1]


# For every frame that shows something: the formula fonts that have not loaded.
WATCH = """(() => {
  window.frames_seen = [];
  const look = () => {
    const formulas = [...document.fonts].filter(({ family }) => family.startsWith("KaTeX"));
    if (document.querySelector("article .katex") && getComputedStyle(document.body).visibility === "visible")
      frames_seen.push(formulas.filter(({ status }) => status !== "loaded").length);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})()"""


@pytest.mark.parametrize("kind", ["server", "file"])
@pytest.mark.parametrize("name", ["book/myths.html", "notebooks/03-layer-normalization.html"])
def test_no_frame_shows_a_formula_without_its_fonts(browser, server, kind, name):
    """Even if no font file ever loads: formula fonts are in the style sheet."""
    faults, base = [], server if kind == "server" else checkout.PAGES.as_uri() + "/"
    with opened(browser, base, faults, viewport=PHONE) as page:
        page.add_init_script(WATCH)
        page.route("**/*.woff2", lambda route: None)  # never answered
        page.goto(base + name, wait_until="domcontentloaded")
        page.wait_for_function("frames_seen.length > 2")
        assert set(page.evaluate("frames_seen")) == {0}
    assert faults == []


def test_nothing_is_shown_before_the_fonts_of_formulas_are_decoded(browser, server):
    """Even if decoding takes long: here, until the test ends it."""
    decoding = """const decoding = new Promise((done) => { window.decoded = done });
      FontFace.prototype.load = () => decoding"""
    shown = "getComputedStyle(document.body).visibility === 'visible'"
    with opened(browser, server, [], viewport=PHONE) as page:
        page.add_init_script(decoding)
        page.goto(server + "book/myths.html")
        page.evaluate(TWO_FRAMES)
        assert not page.evaluate(shown)
        page.evaluate("decoded()")
        page.wait_for_function(shown)


def test_nothing_jumps_when_the_reader_begins(browser, server):
    """Visible content does not move when the rest of the page is laid out."""
    where = "[...document.querySelectorAll('article > section > *, article h2')].slice(0, 6).map((e) => e.offsetTop)"
    first = "document.querySelector('article h2').getBoundingClientRect().top"
    with opened(browser, server, [], viewport=PHONE, reduced_motion="reduce") as page:
        page.goto(server + "book/notation.html")
        page.evaluate(TWO_FRAMES)
        assert page.evaluate("document.documentElement.classList.contains('fresh')")
        before, top = page.evaluate(f"[{where}, {first}]")
        page.keyboard.press("Shift")
        assert not page.evaluate("document.documentElement.classList.contains('fresh')")
        assert page.evaluate(first) == top
        assert page.evaluate(where)[:3] == before[:3]


@pytest.mark.parametrize(("motion", "shares"), [("no-preference", [0, 1]), ("reduce", [0, 0])])
def test_a_line_on_a_phone_shows_how_far_the_page_is_read(browser, server, motion, shares):
    share = "new DOMMatrix(getComputedStyle(document.querySelector('.bd-header-article'), '::after').transform).a"
    with opened(browser, server, [], viewport=PHONE, reduced_motion=motion) as page:
        page.goto(server + "book/notation.html")
        page.keyboard.press("Shift")  # the rest of the page is laid out
        for end, wanted in zip(["0", "document.documentElement.scrollHeight"], shares, strict=True):
            page.evaluate(f"scrollTo({{ top: {end}, behavior: 'instant' }})")
            page.evaluate(TWO_FRAMES)
            assert page.evaluate(share) == pytest.approx(wanted, abs=0.02)


# Of the listings: how many lines of code go on below; those that go on left of their beginning; the comments that
# go on as if they were code; the names that end on another line; and what is not copied as it is stored.
LISTINGS = """() => {
  const row = document.createRange(), copied = getSelection();
  const seen = (name) => [...document.querySelectorAll(name)].filter((e) => e.checkVisibility());
  const wraps = seen("article .line[style]").map((line) => {
    const text = document.createTreeWalker(line, NodeFilter.SHOW_TEXT).nextNode();
    row.setStart(text, 0);
    row.setEnd(text, text.data.search(/\\S|$/));
    const { right, bottom } = row.getBoundingClientRect();
    row.selectNodeContents(line);
    return [...row.getClientRects()].filter((box) => box.top > bottom - 3).map((box) => box.left - right);
  });
  const copy = (pre) => (copied.selectAllChildren(pre), copied.toString().trim());
  const changed = seen("article .highlight pre:has(.line)").map((pre) => [copy(pre), pre.textContent.trim()]);
  const left = wraps.flat().filter((from) => from < 9);
  const parted = seen("article .line :is(.c, .c1)").filter((comment) => comment.getClientRects().length > 1).length;
  const torn = seen("article .line").flatMap((line) => {
    const texts = document.createTreeWalker(line, NodeFilter.SHOW_TEXT), names = [];
    while (texts.nextNode()) for (const name of texts.currentNode.data.matchAll(/\\b\\w{2,30}\\b/g)) {
      row.setStart(texts.currentNode, name.index);
      row.setEnd(texts.currentNode, name.index + name[0].length);
      if (row.getClientRects().length > 1) names.push(name[0]);
    }
    return names;
  });
  const mixed = changed.filter(([one, other]) => one !== other);
  return [wraps.filter((rows) => rows.length).length, left, parted, torn, mixed];
}"""


@pytest.mark.parametrize("name", ["09a-the-bug-museum", "07a-placements-one-by-one"])
def test_a_long_line_of_a_listing_goes_on_under_its_own_beginning_and_is_copied_as_one(browser, server, name):
    with opened(browser, server, [], viewport=PHONE, has_touch=True) as page:
        page.goto(f"{server}notebooks/{name}.html")
        wrapped, *faults = page.evaluate(LISTINGS)
    assert wrapped > 10
    assert faults == [[], 0, [], []]


def test_the_words_that_fold_code_are_where_those_were_that_unfold_it(browser, server):
    left = "d => [...d.querySelectorAll('summary p')].find((p) => p.checkVisibility()).getBoundingClientRect().left"
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "notebooks/04-rmsnorm.html")
        page.get_by_label("Read with code").press("Space")
        folded = page.locator("details.hide:visible").first
        before = folded.evaluate(left)
        assert folded.evaluate("d => d.open")
        folded.locator("summary").click()
        assert not folded.evaluate("d => d.open")
        assert folded.evaluate(left) == before


def test_every_word_of_a_figure_is_within_the_picture(browser, pages):
    outside = """() => {
      const svg = document.querySelector("svg"), box = (e) => e.getBoundingClientRect(), view = box(svg);
      return [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim() && box(text).width &&
        (box(text).right > view.right + 1 || box(text).left < view.left - 1)).map((text) => text.textContent);
    }"""
    page = browser.new_page()
    pictures = sorted((checkout.PAGES / "_images").glob("*.svg"))
    assert pictures
    found = {}
    for path in pictures:
        page.set_content(path.read_text("utf-8"))
        if cut := page.evaluate(outside):
            found[path.name] = cut
    page.close()
    assert found == {}


def test_the_sidebar_shows_its_search_and_where_the_page_is(browser, server):
    shown = """selector => {
      const [e] = [...document.querySelectorAll(`.bd-sidebar-primary ${selector}`)].slice(-1);
      const { left, top, bottom, height } = e.getBoundingClientRect();
      return top >= 0 && bottom <= innerHeight && e.contains(document.elementFromPoint(left + 20, top + height / 2));
    }"""
    with opened(browser, server, [], viewport={"width": 1280, "height": 800}) as page:
        for name in ("notebooks/10b-fine-tuning", "notebooks/01-why-depth-breaks", "book/models"):
            page.goto(f"{server}{name}.html")
            page.wait_for_load_state()
            for selector in (".search-button-field", "li.active > a"):
                page.wait_for_function(shown, arg=selector)


def test_code_can_be_copied_where_nothing_hovers(browser, server):
    with opened(browser, server, [], viewport=PHONE, has_touch=True, is_mobile=True) as page:
        page.goto(server + "notebooks/03-layer-normalization.html")
        page.keyboard.press("Shift")
        assert page.locator("button.copybtn").first.evaluate("b => getComputedStyle(b).opacity") == "1"
        assert page.locator(".cell_output button.copybtn:visible").count() == 0  # it would cover the end of a number


@pytest.mark.parametrize("width", [320, 390])
def test_the_way_back_to_the_top_covers_nothing_on_a_phone(browser, server, width):
    with opened(browser, server, [], viewport={"width": width, "height": 700}, reduced_motion="reduce") as page:
        page.goto(server + "notebooks/05-pre-ln-or-post-ln.html#summary")
        button = page.locator("#pst-back-to-top")
        while not button.is_visible():  # it comes when the reader scrolls up
            page.mouse.wheel(0, -50)
            page.evaluate(TWO_FRAMES)
        box, head = button.bounding_box(), page.locator(".bd-header-article").bounding_box()
        assert box["y"] + box["height"] <= head["y"] + head["height"]
        for other in page.locator(".bd-header-article button:visible").all():
            other = other.bounding_box()
            assert other["x"] + other["width"] <= box["x"] or box["x"] + box["width"] <= other["x"]


def test_at_400_percent_nothing_lies_on_a_figure(browser, server):
    """A 1280 x 900 window at 400 % zoom: sticky parts would leave no room (WCAG 1.4.10)."""
    with opened(browser, server, [], viewport={"width": 320, "height": 225}, reduced_motion="reduce") as page:
        page.goto(server + "notebooks/03-layer-normalization.html")
        name = page.locator("figure[data-live]").first.get_attribute("id")
        page.goto("about:blank")
        page.goto(f"{server}notebooks/03-layer-normalization.html#{name}")
        page.locator("figure.live-on").first.wait_for()
        page.locator(f"#{name} .live-picture").evaluate("e => scrollBy(0, e.getBoundingClientRect().top - 2)")
        covered = page.evaluate(
            """name => [5, 60, 110, 170, 220].filter((y) =>
          !document.elementFromPoint(160, y).closest(`#${name} .live-picture`))""",
            name,
        )
        assert covered == []
