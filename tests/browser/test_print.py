"""A printed page: only the text, in light colours, as wide as the paper; a first reading on few sheets."""

import io
import re

import pytest
from helpers.visit import CROWDED, opened
from pypdf import PdfReader

from tools import paper
from tools.checkout import ROOT, chapters

PAPER = {"width": 665, "height": 1020}  # A4 less its margins, in px
SMALLEST = 7 / 0.75  # 7 pt in px, of a letter in a picture
CHAPTERS = [f"notebooks/{path.stem}" for path in chapters() if re.match(r"\d\d-", path.name)]
EXERCISES = sorted(path.stem for path in (ROOT / "notebooks/exercises").glob("ex*.ipynb"))
OTHERS = [
    "book/claims",
    "book/api/torch",
    "book/models",
    "book/questions",
    "notebooks/exercises/ex02-layer-norm",
]

SEEN = f"""() => {{
  const crowded = {CROWDED};
  const shown = (e) => e.checkVisibility({{ contentVisibilityAuto: true }}) && e.getBoundingClientRect().height > 0;
  const edge = (e) => e.getBoundingClientRect().right;
  const all = (selector) => [...document.querySelectorAll(selector)];
  const start = (list) => list.map((e) => e.outerHTML.slice(0, 80));
  const wide = all("article :is(p, pre, img, svg, table, .katex-html, figure)").filter((e) => {{
    const box = e.getBoundingClientRect(), hidden = e.matches("pre") ? e.scrollWidth - e.clientWidth : 0;
    return shown(e) && (box.right > innerWidth + 1 || box.left < -1 || hidden > 1);
  }});
  const stiff = (figure) => {{
    const states = [...figure.querySelectorAll(".live-states > div")];
    if (figure.matches("[data-live=sketch], .printed-answers *")) return states.length !== 1;
    const tops = new Set(states.map((e) => Math.round(e.getBoundingClientRect().top)));
    const pictures = new Set(states.map((e) => e.querySelector("svg").innerHTML));
    const places = figure.querySelector(".live-states [data-places]:not(.handle)");
    return pictures.size < 2 || states.length > 3 || tops.size > 1 || !states.every(shown) || places ||
      shown(figure.querySelector(":scope > .live-picture"));
  }};
  const letters = (e) => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a;
  const folds = "details.sd-dropdown:not(.solution) p, section.second-reading > details > p:not(.waits), .foretold > p";
  const controls = "button, nav, dialog, textarea, input:not(.quick-check input), .bd-header-article, .headerlink, " +
    "details.hide:not(.solution *) > summary, .on-screen, .elsewhere, .tag_check, .promise a[href*='/01-']";
  const asks = (e) => /(^|[.?:] )(Press|Drag|Slide|Click) |Try:/.test(e.innerText);
  return {{
    asks: start(all("article :is(p, li, figcaption)").filter((e) => shown(e) && asks(e))),
    controls: start(all(controls).filter(shown)),
    folded: all(folds).filter((e) => !shown(e) && !e.matches(".on-screen")).length,
    titles: all("article h1").filter(shown).length,
    ground: getComputedStyle(document.body).backgroundColor,
    text: getComputedStyle(document.querySelector("article section > p:not([class])")).color,
    wide: start(wide),
    loose: start(all("section > div.math > .eqno").filter((e) => shown(e) && edge(e) < innerWidth - 2)),
    narrow: start(all(".beside:has(source) :is(.admonition, .cell_input)").filter((e) =>
      shown(e) && e.getBoundingClientRect().width < 600)),
    stiff: start(all("figure.live").filter(stiff)),
    crowded: all(".live-states > div").flatMap(crowded),
    small: all(".live-states text").filter((e) => letters(e) < {SMALLEST}).map((e) => e.textContent),
  }}
}}"""


def faults_on_paper(page):
    seen = page.evaluate(SEEN)
    faults = [f"shown: {html}" for html in seen["controls"]]
    faults += [f"wider than the paper: {html}" for html in seen["wide"]]
    faults += [f"not at the edge: {html}" for html in seen["loose"]]
    faults += [f"in a narrow column: {html}" for html in seen["narrow"]]
    faults += [f"not as two or three states in a row: {html}" for html in seen["stiff"]]
    faults += [f"outside the picture, or one over the other: {words}" for words in seen["crowded"]]
    faults += [f"letters under 7 pt: {words}" for words in seen["small"]]
    faults += [f"asks for a screen: {html}" for html in seen["asks"]]
    if seen["folded"]:
        faults.append(f"{seen['folded']} paragraphs are folded away")
    if seen["titles"] != 1:
        faults.append(f"{seen['titles']} titles")
    if seen["ground"] not in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)") or seen["text"] != "rgb(30, 42, 53)":
        faults.append(f"{seen['text']} on {seen['ground']}")
    return faults


NO_FOOT = "@page { @bottom-left { content: none } @bottom-right { content: none } }"
APART = "section.second-reading, [class^='printed-'], section#exercises, section#further-reading"
SHEETS = 6  # at most, of a first reading
BLANK = 0.4  # at most, of each sheet but the last


def faults_on_sheets(page):
    """What a first reading has too much of, printed alone."""
    page.evaluate(paper.READY, [])
    page.add_style_tag(content=f":is({APART}) {{ display: none !important }} {NO_FOOT}")
    sheets = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages
    faults = [f"{len(sheets)} sheets, at most {SHEETS}"] if len(sheets) > SHEETS else []
    return faults + faults_at_ends(page, sheets, BLANK)


def faults_at_ends(page, sheets, blank):
    headings = page.locator("article :is(h2, h3)").evaluate_all(
        "all => all.map((e) => e.textContent.replace(/#$/, ''))"
    )
    headings += ["References", "Hints", "Answers"]  # of the parts that only paper has
    last, blanks = zip(*map(ending, sheets), strict=True)
    faults = [f"sheet {n} ends with a heading: {line}" for n, line in enumerate(last, 1) if line in headings]
    return faults + [f"sheet {n} is blank by {share:.0%}" for n, share in enumerate(blanks[:-1], 1) if share > blank]


def ending(sheet):
    """The lowest line of a sheet, and the share of it below its last letter or picture."""
    ends, lines = [float(sheet.mediabox.height)], {}

    def height(cm, tm):
        return tm[4] * cm[1] + tm[5] * cm[3] + cm[5]

    def read(text, cm, tm, font, size):
        if text.strip():
            lines[round(height(cm, tm))] = lines.get(round(height(cm, tm)), "") + text

    def see(operator, operands, cm, tm):
        if operator in (b"Tj", b"TJ"):
            ends.append(height(cm, tm))
        elif operator == b"Do":
            ends.extend([cm[5], cm[3] + cm[5]])

    sheet.extract_text(visitor_operand_before=see, visitor_text=read)
    margin = 14 / 297
    return lines[min(lines)].strip().removesuffix("answers at the end").strip(), (
        min(ends) / float(sheet.mediabox.height) - margin
    ) / (1 - 2 * margin)


def empty_sheets(page):
    """The numbers of the sheets that have nothing but their foot."""
    page.evaluate(paper.READY, [])
    page.evaluate("document.documentElement.classList.remove('print-all')")
    sheets = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages
    foot = r"\s*\d*\s*.* · Subnorm · CC BY 4\.0\s*\d*\s*"
    return [n for n, sheet in enumerate(sheets, 1) if re.fullmatch(foot, sheet.extract_text())]


@pytest.fixture(scope="module")
def print_page(browser, server):
    """Opens a page of the book, and then prints it; one window for all."""
    faults = []
    with opened(browser, server, faults, viewport=PAPER, color_scheme="dark") as page:

        def visit(name):
            page.emulate_media(media="screen")
            page.goto(f"{server}{name}.html")
            page.emulate_media(media="print")
            page.wait_for_function("document.documentElement.dataset.theme === 'light'")
            page.evaluate("document.documentElement.classList.toggle('print-all', true)")
            return page

        yield visit
    assert faults == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_first_reading_fills_a_few_sheets(print_page, name):
    page = print_page(name)
    assert faults_on_paper(page) == []
    assert empty_sheets(page) == []
    assert faults_on_sheets(page) == []
    # a browser that prints at once has only the drawings for the screen
    page.evaluate("document.querySelectorAll('picture > source').forEach((drawing) => drawing.remove())")
    assert page.evaluate(SEEN)["wide"] == []


# Every picture of the first reading is there, also where nobody has been.
PICTURED = "() => [...document.querySelectorAll('article img:not(details *)')].every((picture) => picture.naturalWidth)"


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_page_printed_from_the_screen_has_its_answers_last_and_no_empty_sheet(browser, server, name):
    with opened(browser, server, []) as page:
        page.goto(f"{server}{name}.html")
        page.wait_for_function(PICTURED)
        page.add_style_tag(content=NO_FOOT)
        sheets = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages
        assert faults_at_ends(page, sheets, 0.5) == []  # no sheet for a hint or two
        drawn = page.locator("[data-live='sketch']").count() > 0
    texts = [[line.strip() for line in sheet.extract_text().splitlines()] for sheet in sheets]
    first = next(n for n, text in enumerate(texts) if "Answers" in text)
    assert first >= len(texts) - 2
    assert sum("This is the measured curve." in text for text in texts[first:]) == drawn
    assert not any("This is the measured curve." in text for text in texts[:first])


@pytest.mark.parametrize("name", OTHERS)
def test_a_page_prints_as_its_text_alone(print_page, name):
    page = print_page(name)
    assert faults_on_paper(page) == []
    page.emulate_media(media="screen")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")


READ = """() => [...document.querySelectorAll("section.second-reading > details")].map((fold) => [
  fold.checkVisibility() && fold.querySelector("summary").getBoundingClientRect().height > 0,
  [...fold.querySelectorAll(":scope > p:not(.waits)")].some((e) => e.checkVisibility()),
])"""


def test_paper_has_the_first_reading_and_what_is_open_or_all(print_page):
    page = print_page("notebooks/05-pre-ln-or-post-ln")
    folds = len(page.evaluate(READ))
    assert folds > 3
    assert page.evaluate(READ) == [[True, True]] * folds
    page.evaluate("document.documentElement.classList.remove('print-all')")
    assert page.evaluate(READ) == [[True, False]] * folds
    noted = "all => all.map((e) => getComputedStyle(e, '::before').content)"
    assert set(page.locator("summary .gist").evaluate_all(noted)) == {'", not in this printout. "'}
    page.locator("section.second-reading > details").first.evaluate("fold => { fold.open = true }")
    assert page.evaluate(READ) == [[True, True], *[[True, False]] * (folds - 1)]
    page.emulate_media(media="screen")
    page.evaluate("window.print = () => { window.printed = document.documentElement.matches('.print-all') }")
    page.locator(".dropdown-toggle").click()
    for item, whole in [("first reading", False), (".pdf, all", True)]:
        page.locator(".dropdown-item", has_text=item).dispatch_event("click")
        assert page.evaluate("window.printed") is whole
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not page.evaluate("document.documentElement.matches('.print-all')")


# The tables that the style sheet lets break where fewer than three rows would be left on one side.
TORN = """() => [...document.querySelectorAll("article table")].flatMap((table) => {
  const rows = [...table.tBodies[0].rows], last = rows.length - 1;
  const styles = [...table.tHead?.rows ?? [], ...rows].map((row) => getComputedStyle(row).breakAfter);
  const heads = styles.length - rows.length;
  const kept = (k) => styles[heads + k] === "avoid";
  if (kept(last)) return [`${table.textContent.slice(0, 40)}: kept with what follows`];
  if (rows.length <= 10) return getComputedStyle(table).breakInside === "avoid" ? [] : [table.textContent.slice(0, 40)];
  const held = styles.slice(0, heads).every((style) => style === "avoid") && [0, 1, last - 2, last - 1].every(kept);
  return held ? [] : [table.textContent.slice(0, 40)];
})"""


@pytest.mark.parametrize("name", ["notebooks/05-pre-ln-or-post-ln", "book/models"])
def test_a_table_leaves_no_row_alone(print_page, name):
    page = print_page(name)
    assert page.evaluate(TORN) == []
    page.add_style_tag(content="tbody > tr:last-child { break-after: avoid }")
    assert any("kept" in table for table in page.evaluate(TORN))
    page.add_style_tag(content="table { break-inside: auto !important } tr { break-after: auto !important }")
    assert page.evaluate(TORN) != []


# Links and headings too light to read without their ground, which browsers do not print.
PALE = """() => [...document.querySelectorAll("article :is(a, h1, h2, h3, .sd-card-title)")].filter((e) => {
  const [red, green, blue] = getComputedStyle(e).color.match(/[\\d.]+/g).map(Number);
  return (red + green + blue) / 3 > 140 && e.checkVisibility() && e.getBoundingClientRect().height > 0;
}).map((e) => e.textContent)"""


def test_the_landing_page_has_no_pale_letters(print_page):
    page = print_page("book/intro")
    assert page.evaluate(PALE) == []
    assert page.evaluate(SEEN)["controls"] == []


# What tells of answers, by box: a mark, a weight, an edge.
TOLD = """() => [...document.querySelectorAll(".predict, :is(.predict, .quick-check) :is(label, input, .reason)")]
  .map((e) => [getComputedStyle(e), getComputedStyle(e, "::after").content])
  .map(([{ display, fontWeight, borderLeftWidth, backgroundColor, appearance }, mark]) =>
    [mark, display, fontWeight, borderLeftWidth, backgroundColor, appearance].join())"""


def test_paper_tells_nothing_of_what_a_reader_has_done(print_page):
    page = print_page("notebooks/03-layer-normalization")
    before = page.evaluate(TOLD)
    page.emulate_media(media="screen")
    page.locator(".quick-check input").first.check()
    page.locator(".predict[data-kind=choice] input").first.check()
    page.emulate_media(media="print")
    page.wait_for_function("document.documentElement.dataset.theme === 'light'")
    assert page.evaluate(TOLD) == before
    page = print_page("book/intro")
    assert page.get_by_text("Continue with chapter 3").count() == 1
    assert not page.get_by_text("Continue with chapter 3").is_visible()
    page.evaluate("localStorage.clear()")


# Of each curve to draw: how many states its figure has, and whether the line of one is the measured one.
SKETCHED = """() => ["[data-live=sketch]", ".printed-answers figure.live"].map((name) =>
  [...document.querySelectorAll(name)].map((e) => [...e.querySelectorAll(".live-states > div")])
    .map((states) => [states.length, Boolean(states[0].querySelector(".truth"))]))"""


@pytest.mark.parametrize("name", ["01-why-depth-breaks", "08-how-fast-can-a-norm-be"])
def test_paper_has_blank_axes_to_draw_on_and_the_curve_among_the_answers(print_page, name):
    page = print_page(f"notebooks/{name}")
    assert page.evaluate(SKETCHED) == [[[1, False]], [[1, True]]]
    assert page.locator(".drawn > .predict + .cell [data-live=sketch]").count() == 1
    assert page.locator(".printed-answers .asked").first.inner_text().split()[0] in ("Plain", "Draw")
    page.emulate_media(media="screen")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    assert page.locator(".printed-answers, .live-states").count() == 0


# The references on paper, and of the citations in printed text those that have none.
CITED = """() => {
  const sources = [...document.querySelectorAll(".printed-references > p")].map((e) => e.textContent);
  const links = [...document.querySelectorAll("a[href*='references.html#']")].filter((e) => e.checkVisibility());
  const named = ({ dataset }) => sources.includes(dataset.card);
  return [sources.length, links.filter((link) => !named(link)).length];
}"""


def test_paper_has_the_sources_that_it_names_and_no_more(print_page):
    page = print_page("notebooks/07-after-pre-ln")
    all_of_it = "(all) => document.documentElement.classList.toggle('print-all', all)"
    page.evaluate(all_of_it, False)
    few, missing_of_few = page.evaluate(CITED)
    page.emulate_media(media="screen")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    page.evaluate(all_of_it, True)
    page.emulate_media(media="print")
    page.wait_for_function("document.documentElement.dataset.theme === 'light'")
    more, missing_of_more = page.evaluate(CITED)
    assert 3 < few < more
    assert (missing_of_few, missing_of_more) == (0, 0)


PLANTED = {
    "asks for a screen: <p>": "article.insertAdjacentHTML('beforeend', '<p>See? Press <em>Play</em>.</p>')",
    "shown: <button": "article.insertAdjacentHTML('beforeend', '<button>x</button>')",
    "wider than the paper: <table": "article.querySelector('table').style.width = '900px'",
    "not at the edge: <span": "article.querySelector('div.math').style.width = 'fit-content'",
    "paragraphs are folded away": "document.querySelector('details.sd-dropdown:not(.solution) p').hidden = true",
    "2 titles": "article.insertAdjacentHTML('beforeend', '<h1>x</h1>')",
    "rgb(30, 42, 53) on rgb(9, 9, 9)": "document.body.style.background = 'rgb(9, 9, 9)'",
    "letters under 7 pt: ": "article.querySelector('.live-states text').style.fontSize = '12.5px'",
    "states in a row: <figure": "article.querySelector('.live-states > div').remove()",
    "one over the other: ": "article.querySelector('.live-states text').setAttribute('x', -50)",
}


def test_a_planted_fault_is_found(print_page):
    page = print_page("notebooks/03-layer-normalization")
    for fault, plant in PLANTED.items():
        page.evaluate(f"() => {{ const article = document.querySelector('article'); {plant} }}")
        assert any(fault in found for found in faults_on_paper(page))
    page.add_style_tag(content="article h2 { break-before: page; break-after: page !important }")
    sheets, *others = faults_on_sheets(page)
    assert "sheets, at most" in sheets
    assert any("ends with a heading" in fault for fault in others)
    assert any("is blank" in fault for fault in others)


# Of each plot in a live figure, the mm from its title or legend to its horizontal axis.
HIGH = """() => [...document.querySelectorAll(".live-states svg")].flatMap((svg) => {
  const above = [...svg.querySelectorAll(".title, g[transform] text")].map((e) => e.getBoundingClientRect().bottom);
  const lines = [...svg.querySelectorAll("line.axis")].map((line) => line.getBoundingClientRect());
  return lines.filter(({ width }) => width > 40)
    .map(({ top }) => (top - Math.max(...above.filter((y) => y < top))) * 25.4 / 96);
})"""
PLOTTED = ["01-why-depth-breaks", "02-residual-connections", "05-pre-ln-or-post-ln", "08-how-fast-can-a-norm-be"]


@pytest.mark.parametrize("name", PLOTTED)
def test_paper_has_plots_of_some_height(print_page, name):
    page = print_page(f"notebooks/{name}")
    heights = page.evaluate(HIGH)
    assert len(heights) > 3
    assert min(heights) >= 20


# Name each picture and the text after it, or before it if that ends a section, in letters of their own.
NAMES = """() => [...document.querySelectorAll("article div.cell:has(> .cell_output img)")].filter((cell) => {
  const text = (e) => e?.matches("p, ul, ol") && e.checkVisibility() && e;
  const beside = text(cell.nextElementSibling) || text(cell.previousElementSibling);
  if (!cell.checkVisibility() || !beside) return false;
  const n = document.querySelectorAll(".named").length / 2;
  const name = (place, e, words) => e.insertAdjacentHTML(place, `<small class="named">${words}${n}end</small>`);
  name("beforeend", cell, "picture");
  name("afterbegin", beside.matches("p") ? beside : beside.firstElementChild, "text");
  return true;
}).length"""


def apart(page):
    """Which pictures are not on the sheet of their text."""
    page.evaluate(paper.READY, [])
    sheets = [sheet.extract_text() for sheet in PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages]
    names = r"(?:picture|text)\d+(?=end)"
    places = {name: n for n, text in enumerate(sheets) for name in re.findall(names, text)}
    numbers = {re.sub(r"\D", "", name) for name in places}
    return [n for n in sorted(numbers) if places[f"picture{n}"] != places[f"text{n}"]]


@pytest.mark.parametrize("name", ["01-why-depth-breaks", "05b-warm-up", "08-how-fast-can-a-norm-be"])
def test_a_picture_is_on_the_sheet_of_its_text(print_page, name):
    page, theme = print_page(f"notebooks/{name}"), "theme => document.documentElement.dataset.theme === theme"
    page.emulate_media(media="screen")  # where nothing has moved yet
    page.wait_for_function(theme, arg="dark")
    page.evaluate("document.querySelectorAll('.foretold').forEach((e) => { e.hidden = false })")
    order = "() => [...document.querySelectorAll('article *')].map((e) => e.className).join()"
    count, before = page.evaluate(NAMES), page.evaluate(order)
    assert count > 1
    page.emulate_media(media="print")
    page.wait_for_function(theme, arg="light")
    assert page.locator(".beside").count() > 1
    assert apart(page) == []
    page.emulate_media(media="screen")
    page.wait_for_function(theme, arg="dark")
    assert page.evaluate(order) == before


def test_the_table_of_models_has_its_headings_on_each_sheet_all_notes_and_no_names_of_files(print_page):
    page = print_page("book/models")
    sheets = [sheet.extract_text() for sheet in PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages]
    assert len(sheets) < 9
    assert all("placement" in sheet for sheet in sheets[:6])  # in the headings, which each sheet has
    text = " ".join(sheets)
    assert "class default" in text
    assert ".py" not in text
    assert len(re.findall(r"\bmeasured$", text, re.MULTILINE)) > 90  # in one piece


# The height in mm of the room below each task of a sheet, where its answer goes.
ROOM = """() => [...document.querySelectorAll("section:has(> h2)")]
  .map((e) => parseFloat(getComputedStyle(e, "::after").height) * 25.4 / 96).filter((height) => height > 0)"""


@pytest.mark.parametrize("name", EXERCISES)
def test_a_sheet_has_room_for_each_answer_and_keeps_hints_and_solutions_for_the_end(print_page, name):
    page = print_page(f"notebooks/exercises/{name}")
    tasks = page.locator("section:has(> .predict, > .workbench [data-check], > .elsewhere)").count()
    room = page.evaluate(ROOM)
    assert len(room) == tasks == page.locator(".printed-answers .rubric").count()
    assert min(room) > 35
    hints = page.locator(".printed-hints p:not(.rubric)").evaluate_all(
        "all => all.map((e) => e.innerText.slice(0, 20))"
    )
    page.evaluate(paper.READY, [])
    texts = [sheet.extract_text() for sheet in PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages]
    first = {title: [f"CC BY 4.0\n{title}\n" in text for text in texts].index(True) for title in ("Hints", "Answers")}
    assert 0 < first["Hints"] < first["Answers"]
    given = " ".join(texts[: first["Hints"]])
    assert [words for words in [*hints, "checks.", "To check", "PyTorch, which does not run"] if words in given] == []


def test_paper_shows_the_states_that_the_text_names(print_page):
    """Without any, those of a choice, or the ends of a slider and its start, or if that is an end, a value between."""
    page = print_page("notebooks/01-why-depth-breaks")
    page.reload()  # opened to be printed, as for the PDF of the book
    values = {name: page.locator(f"#live-{name} .live-values").all_inner_texts() for name in ("gain", "token")}
    assert [text.split(": ")[1] for text in values["gain"]] == ["1", "2", "6"]
    assert [text.split(": ")[1] for text in values["token"]] == ["0", "12", "24"]
