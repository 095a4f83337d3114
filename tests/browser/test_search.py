"""The search finds what the book explains, and is available on every page."""

import re

import pytest
from helpers.look import accessible
from helpers.visit import DESK, PHONE, opened

from tools import checkout

# The glossary terms whose own name does not find the glossary.
LOST = """(terms) => {
  const found = (term) => Search._performSearch(...Search._parseQuery(term)).map((result) => result[0]);
  return terms.filter((term) => !found(term).includes("book/glossary"));
}"""


@pytest.fixture(scope="module")
def terms(browser, server):
    with opened(browser, server, []) as page:
        page.goto(server + "book/glossary.html")
        return page.locator("dl.glossary > dt").evaluate_all(
            "(list) => list.map((e) => e.textContent.replace(/#$/, '').trim())"
        )


def test_search_finds_every_term_of_the_glossary(search_page, terms):
    assert len(terms) > 30
    assert search_page.evaluate(LOST, [*terms, "xyzzyq"]) == ["xyzzyq"]


# Readers' queries, and the page that explains each.
EXPLAINED = {
    "vanishing gradients": "01-why",
    "He initialisation": "01-why",
    "self-attention": "01a",
    "residual connection": "02-",
    "skip connection": "02-",
    "Skip Connections": "02-",
    "what is a shortcut connection": "02-",
    "ResNet": "02a",
    "layer norm": "03-",
    "LayerNorm": "03-",
    "layer normalisation": "03-",
    "layer norm backward": "03a",
    "batch norm": "03b",
    "BatchNorm": "03b",
    "group normalization": "03b",
    "rmsnorm": "04-",
    "RMS norm": "04-",
    "root mean square": "04-",
    "pre-ln": "05-",
    "Post-LN": "05-",
    "pre norm": "05-",
    "postnorm": "05-",
    "DeepNorm": "05a",
    "warm-up": "05b",
    "learning rate warmup": "05b",
    "rank collapse": "05c",
    "transformer block": "06-",
    "final norm": "06-",
    "multi-head attention": "06a",
    "ablation": "06b",
    "mean pooling": "06c",
    "number of parameters": "06d",
    "fused kernels": "08-",
    "memory bandwidth": "08-",
    "LayerScale": "07-",
    "DropPath": "07a",
    "fp16": "09-",
    "quantisation": "09c",
    "exercises": "book/exercises",
    "sandbox": "book/playground",
    "Gemma 3 QK norm": "book/models",
}


def test_the_page_that_explains_a_term_is_found_first(search):
    first = {query: search(query)[0] for query in EXPLAINED}
    assert {query: page for query, page in first.items() if not page.startswith(EXPLAINED[query])} == {}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("residul conection", "residual connection"),
        ("Layer normalzation", "Layer normalization"),
        ("batchnrom", "batchnorm"),
        ("final nrom", "final norm"),  # two letters swapped; "from" is one letter away
        ("vanishing gradiants", "vanishing gradients"),
        ("warm-up", "warm-up"),
        ("layer_nrom", "layer_nrom"),  # a name is the reader's own
        ("xyzzyq", "xyzzyq"),
    ],
)
def test_a_misspelt_word_finds_what_the_right_one_finds(search_page, search, typed, meant):
    assert search_page.evaluate("query => Search._parseQuery(query)[0]", typed) == meant
    assert search(typed) == search(meant)


def test_a_reader_is_told_which_words_were_sought(browser, server):
    with opened(browser, server, [], viewport=PHONE) as page:
        page.goto(server + "search.html?q=residul+conection")
        page.locator("#search-results li a").first.wait_for()
        assert "residual connection" in page.locator("#search-results p").first.inner_text()
        first = page.locator("#search-results li a").first.get_attribute("href")
        assert first.startswith("notebooks/02-")


# Messages as readers paste them, with numbers of their own, and the entry of each.
PASTED = {
    "RuntimeError: The size of tensor a (768) must match the size of tensor b (512) at non-singleton "
    "dimension 2": "the-size",
    "UserWarning: enable_nested_tensor is True, but self.use_nested_tensor is False because "
    "encoder_layer.self_attn.batch_first was not True": "enable-nested-tensor",
    "variables needed for gradient computation has been modified by an inplace operation": "one-of-the-variables",
    "Traceback (most recent call last):\n  File 'train.py', line 3, in <module>\n    norm(x)\nRuntimeError: expected "
    "scalar type Half but found Float": "mixed-dtype",
    "loss stuck at ln(V)": "the-loss-is-stuck",
}


def test_the_entry_of_a_pasted_message_is_found_first(search):
    first = {query: search(query)[0] for query in PASTED}
    page = "09d-when-something-breaks#"
    assert {query: at for query, at in first.items() if not at.startswith(page + PASTED[query])} == {}


def test_the_glossary_follows_the_page_that_explains_a_term(search, terms):
    assert {term: search(term)[:2] for term in terms if not any("glossary#" in page for page in search(term)[:3])} == {}
    assert {term: search(term)[0] for term in terms if not search(term)[0][:2].isdigit()} == {}


def test_chapters_come_before_exercises_and_functions_are_found_by_their_name(search):
    found = search("width")
    assert min(k for k, page in enumerate(found) if "exercises" in page) > max(
        k for k, page in enumerate(found) if page[:1] == "0" and "#" not in page
    )
    assert search("layer_norm")[0].startswith("book/api/")
    assert len(set(search("layer norm"))) == len(search("layer norm"))


def test_the_index_has_no_bare_numbers_and_no_tests(search_page):
    """Sphinx drops numbers from a query, and nobody looks for a test, so they would only be downloaded."""
    words = search_page.evaluate("Object.keys(Search._index.terms)")
    assert len(words) > 3000
    assert [word for word in words if word.isdigit() or word.startswith(("_", "test_"))] == []


def test_every_page_or_section_that_explains_something_exists(search_page):
    script = (checkout.ROOT / "book/_static/search-terms.js").read_text("utf-8")
    named = set(re.findall(r'^    "((?:notebooks|book)/[\w#-]+)":', script, re.MULTILINE))
    assert len(named) > 15
    sections = "subnormRank.sections.map(({ page }) => page.replace('.html', ''))"
    assert named - set(search_page.evaluate(sections)) == set()


# All results are there, and each in view has its quotation.
SHOWN = """() => / these words\\.$/.test(document.querySelector("#search-results .search-summary")?.textContent)
  && [...document.querySelectorAll("#search-results .quoted")]
    .every((result) => result.getBoundingClientRect().top >= innerHeight || result.querySelector("p.context"))"""


@pytest.mark.parametrize(
    "query", ["skip connection", "layer norm", "heat map", "Xavier", "divide by d", "LayerNorm RMSNorm difference"]
)
def test_a_result_is_quoted_in_prose(browser, server, query):
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(f"{server}search.html?q={query}")
        page.wait_for_function(SHOWN)
        quotes = page.locator("#search-results li:has(p.context)").all()
        assert len(quotes) >= 3
        for result in quotes[:12]:
            quote, link = result.locator("p.context").inner_text(), result.locator("a").get_attribute("href")
            assert 0 < len(quote) < 260
            assert not re.search(r"Contents|figures\.show|alt=|import |\bdef |BEGIN SOLUTION", quote), (link, quote)
            assert not re.search(r">\w</span>\w", result.inner_html()), (link, quote)  # d in "does"
            assert not re.match(r"[a-z]+ [^:]*$", quote), (link, quote)  # the middle of a sentence
        assert quotes[0].locator("p.context .highlighted").count() > 0
        texts = page.locator("#search-results p.context").all_inner_texts()
        assert len({*texts}) == len(texts)
    assert faults == []


def test_a_quotation_has_most_of_the_words_and_marks_each(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "search.html?q=nan+loss")
        page.wait_for_function(SHOWN)
        quotes = [
            {mark.lower() for mark in quote.locator(".highlighted").all_inner_texts()}
            for quote in page.locator("#search-results p.context").all()
        ]
    assert len(quotes) > 3
    assert sum({"nan", "loss"} <= {*marks} for marks in quotes) >= len(quotes) - 2


# What is marked on a page, with the letter before it.
MARKS = """[...document.querySelectorAll("article .highlighted, #search-results .highlighted")]
  .map((mark) => (mark.previousSibling?.textContent.slice(-1) ?? "") + mark.textContent.toLowerCase())"""


def test_marks_are_at_the_start_of_words_and_on_no_word_that_every_question_has(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "search.html?q=what+does+eps+do")
        page.wait_for_function(SHOWN)
        marks = page.evaluate(MARKS)
        titles = page.locator("#search-results li > a").all_inner_texts()
        page.locator("#search-results a", has_text="The backward pass of LayerNorm").first.click()
        page.locator("article h1", has_text="backward").wait_for()
        page.locator("article .highlighted").first.wait_for(state="attached")  # it may be in a fold
        there = page.evaluate(MARKS)
        assert "steps" in page.locator("article").inner_text()
    assert len(marks) > 3
    assert len(there) > 3
    assert [mark for mark in marks + there if not re.fullmatch(r"[^\w]?eps", mark)] == []
    assert [title for title in titles if title.startswith("Glossary")] == ["Glossary > eps", "Glossary > rstd"]


@pytest.mark.parametrize(
    ("word", "line"), [("masked_fill", "= scores.masked_fill("), ("isfinite", "isfinite"), ("ddof", "with d−1, as")]
)
def test_a_word_that_only_code_has_is_quoted_in_its_line(browser, server, word, line):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(f"{server}search.html?q={word}")
        page.wait_for_function(SHOWN)
        quotes = page.locator("#search-results p.context").all_inner_texts()
    assert line in "\n".join(quotes)
    assert [quote for quote in quotes if word not in quote or quote.startswith("checks ")] == []


@pytest.mark.parametrize(
    ("query", "formula"),
    [
        ("scaled residual", "1/√(2L)"),
        ("mean square variance", "x=(2,4,6,12)"),
        ("divide by sqrt", "e^(g/2)"),
        ("weights singular value", "∥x_i∥"),
        ("norm on the sum Huginn", "norm′(x+F(norm(x)))"),
    ],
)
def test_a_quotation_has_its_formulas_in_one_line(browser, server, query, formula):
    with opened(browser, server, [], viewport={**DESK, "height": 4000}) as page:
        page.goto(f"{server}search.html?q={query}")
        page.wait_for_function(SHOWN)
        quotes = page.locator("#search-results p.context").all_inner_texts()
    assert formula in "".join(quotes).replace("\u2009", "")


def test_where_no_page_has_all_words_the_sections_with_some_are_shown(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        for query, said, first in (
            ("layernorm zebra", "These have some of them.", "03-"),
            ("zebra", "Try fewer.", None),
        ):
            page.goto(f"{server}search.html?q={query}")
            page.locator("#search-results .search-summary", has_text=f"No page has all these words. {said}").wait_for()
            links = page.locator("#search-results li > a").evaluate_all("(all) => all.map((link) => link.pathname)")
            assert (first in links[0]) if first else links == []


PLACES = (
    "() => [...document.querySelectorAll('#search-results li > a')].map((link) => link.getBoundingClientRect().top)"
)


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_no_quotation_moves_a_result(browser, server, size):
    """A link that moves between the press and the release of a button is not clicked."""
    held, before = [], []
    with opened(browser, server, [], viewport=size) as page:
        page.route(re.compile("/(notebooks|book)/"), lambda route: route.continue_() if before else held.append(route))
        with page.expect_request(re.compile("/(notebooks|book)/")):  # a result is in view
            page.goto(server + "search.html?q=what+does+eps+do")
            page.locator("#search-results .search-summary", has_text=" these words.").wait_for()
        before = page.evaluate(PLACES)
        assert not page.locator("#search-results p.context").count()
        for route in held:
            route.continue_()
        page.wait_for_function(SHOWN)
        assert page.evaluate(PLACES) == pytest.approx(before, abs=1)


def test_every_page_found_has_a_word_that_begins_so(search_page, search):
    assert len(search("peri")) < len(search("experiments"))  # which has these letters, too
    assert "05b-warm-up" not in search("peri")


@pytest.mark.parametrize("kind", ["server", "file"])
def test_a_word_with_a_hyphen_is_one_word(browser, server, kind):
    """Every page found has it, its quotation too, and there it is marked in one piece."""
    base = server if kind == "server" else checkout.PAGES.as_uri() + "/"
    with opened(browser, base, [], viewport=DESK) as page:
        page.goto(base + "search.html?q=warm-up")
        page.wait_for_function(SHOWN)
        marks = page.locator("#search-results .highlighted").all_inner_texts()
        assert len(marks) > 3
        assert {mark.lower() for mark in marks} == {"warm-up"}
        quoted = page.locator("#search-results li:has(p.context)").all_inner_texts()
        assert [text for text in quoted if "warm" not in text.lower()] == []
        found = page.locator("#search-results li > a").evaluate_all("(all) => all.map((e) => e.href.split('#')[0])")
        pages = {path: (checkout.PAGES / path).read_text("utf-8") for path in (at.removeprefix(base) for at in found)}
        assert len(pages) > 5
        assert [path for path, html in pages.items() if "warm" not in html.lower()] == []


def found_by(page, base, query):
    """The addresses of the results, and the names of objects among them."""
    page.goto(base + "search.html?q=" + query)
    page.locator("#search-results .search-summary", has_text=" these words.").wait_for()
    results = page.locator("#search-results li")
    objects = results.filter(has=page.locator(":scope > span")).locator("> a").all_inner_texts()
    return set(results.locator("> a").evaluate_all("(all) => all.map((e) => e.pathname)")), objects


def test_a_hyphen_may_be_missing_and_an_object_begins_with_the_word(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        assert found_by(page, server, "warm-up")[0] <= found_by(page, server, "warmup")[0]
        assert [name for name in found_by(page, server, "eps")[1] if "steps" in name.lower()] == []
        assert any("steps" in name for name in found_by(page, server, "steps")[1])


@pytest.mark.parametrize("query", ["warmup", "rezero", "layer norm"])
def test_python_objects_come_last(browser, server, query):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "search.html?q=" + query)
        page.locator("#search-results .search-summary", has_text=" these words.").wait_for()
        objects = page.locator("#search-results li").evaluate_all(
            "(all) => all.map((e) => !!e.querySelector(':scope > span'))"
        )
    assert True in objects
    assert objects == sorted(objects)


def test_the_name_of_an_object_finds_it_first(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "search.html?q=layer_norm_backward")
        first = page.locator("#search-results li").first
        first.wait_for()
        assert "book/api/" in first.locator("a").get_attribute("href")


def test_a_page_is_read_for_its_quotation_once_the_result_is_in_view(browser, server):
    asked = []
    with opened(browser, server, [], viewport=DESK) as page:
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{server}search.html?q=residual+connection")
        page.wait_for_function(SHOWN)
        results, last = page.locator("#search-results li"), page.locator("#search-results li.quoted").last
        assert results.count() > 30
        assert sum("/notebooks/" in url or "/book/" in url for url in asked) < 10
        assert not last.locator("p.context").count()
        last.scroll_into_view_if_needed()
        last.locator("p.context").wait_for()
        assert len(set(asked)) == len(asked)


# Sphinx sets a timer of 10 ms once the page is parsed; one of 50 ms that is set later ends after it.
MARKED = """async () => {
  await new Promise((done) => setTimeout(done, 50));
  const seen = (e) => getComputedStyle(e).backgroundColor !== "rgba(0, 0, 0, 0)";
  const all = [...document.querySelectorAll(".highlighted")].filter(seen);
  const text = all.filter((e) => e.closest(".bd-article, #search-results"));
  return [text.length, all.length - text.length];
}"""


def marked(page):
    """How many words are highlighted in the text of a page, and around it."""
    page.wait_for_load_state("load")
    return page.evaluate(MARKED)


def test_the_words_of_a_search_are_marked_in_the_text_it_leads_to_and_nowhere_else(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "search.html?q=layer+norm")
        page.locator("#search-results li a").first.wait_for()
        page.goto(server + "search.html?q=warm-up")  # the words before are not marked on this page
        page.locator("#search-results li a").first.wait_for()
        assert marked(page)[1] == 0
        assert page.locator(".bd-sidebar-primary .highlighted").count() == 0
        page.locator("#search-results li a").first.click()
        page.locator("article h1", has_text="Warm-up").wait_for()
        text, beside = marked(page)
        assert text > 10
        assert beside == 0
        page.goto(server + "search.html?q=layer+norm")
        page.locator("#search-results li a").first.wait_for()
        page.locator(".bd-sidebar-primary a", has_text="04 RMSNorm").click()  # no result of the search
        page.locator("article h1", has_text="RMSNorm").wait_for()
        assert marked(page) == [0, 0]
        page.goto(server + "search.html?q=layer+norm")
        page.locator("#search-results li a").first.wait_for()
        page.goto(server + "notebooks/04-rmsnorm.html")  # by an address
        assert marked(page) == [0, 0]
        assert page.locator(".highlight-link").count() == 0


@pytest.mark.parametrize("kind", ["server", "file"])
def test_results_are_shown(browser, server, kind):
    faults, base = [], server if kind == "server" else checkout.PAGES.as_uri() + "/"
    with opened(browser, base, faults, color_scheme="dark", viewport=PHONE) as page:
        page.goto(base + "search.html?q=warm-up")
        page.locator("#search-results li a").first.wait_for()
        assert page.locator("#search-results li a", has_text="Glossary").count() >= 1
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert faults == []


@pytest.mark.parametrize("kind", ["server", "file"])
@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_sections_appear_while_one_types(browser, server, kind, window):
    faults, base = [], server if kind == "server" else checkout.PAGES.as_uri() + "/"
    with opened(browser, base, faults, viewport=window) as page:
        page.goto(base + "notebooks/03-layer-normalization.html")
        page.keyboard.press("Control+k")
        page.keyboard.type("residul conection")  # misspelt
        box = page.locator("#pst-search-dialog .found-sections")
        links = box.locator("a")
        box.get_by_role("status").filter(has_text="residual connection").wait_for()
        assert links.first.get_attribute("href").endswith("notebooks/02-residual-connections.html")
        assert sum("#" in link.get_attribute("href") for link in links.all()) > 3
        assert links.first.locator("mark").first.inner_text().lower() == "residual connections"
        colour = "e => [e, e.parentElement].map((one) => getComputedStyle(one).color)"
        assert len({*links.first.locator("b mark").first.evaluate(colour)}) == 1  # a link's, as the rest of the title
        assert box.locator("small").count() > 3
        has_focus = "link => link === document.activeElement"
        for key, at in [("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0)]:
            page.keyboard.press(key)
            assert links.nth(at).evaluate(has_focus)
        page.keyboard.press("ArrowUp")
        assert page.evaluate("document.activeElement.name") == "q"
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url("**/02-residual-connections.html")
    assert faults == []


# The frames that show where the focus is, of a field and of all that it is in.
FRAMES = """field => {
  const frames = [];
  for (let part = field; part; part = part.parentElement) {
    const { boxShadow, outlineStyle, outlineWidth } = getComputedStyle(part);
    if (!part.matches("dialog") && (boxShadow !== "none" || (outlineStyle !== "none" && outlineWidth !== "0px")))
      frames.push(`${part.tagName}.${part.className}`);
  }
  return frames;
}"""


@pytest.mark.parametrize("name", ["notebooks/03-layer-normalization.html", "search.html?q=gain"])
def test_the_search_field_has_one_frame(browser, server, name):
    with opened(browser, server, [], viewport=DESK, reduced_motion="reduce") as page:
        page.goto(server + name)
        if "?" not in name:
            page.keyboard.press("Control+k")
        field = page.locator("input[name=q]:visible").last
        field.focus()
        assert len(field.evaluate(FRAMES)) == 1


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_the_sections_are_accessible(browser, server, window):
    faults = []
    with opened(browser, server, faults, viewport=window) as page:
        page.goto(server + "notebooks/03-layer-normalization.html")
        page.keyboard.press("Control+k")
        page.keyboard.type("skip path")
        page.locator("#pst-search-dialog .found-sections mark").first.wait_for()
        faults += accessible(page, "light", "dark")
    assert faults == []


# What a reader types into the field, and the first section shown.
SECTIONS = """
layer norm: 03- | rmsnorm: 04- | pre-ln: 05- | layer_norm: book/api/ | five versions: 03-layer-normalization.html#five
rstd: 03a-layer | warm-up: 05b | difference between layernorm and rmsnorm: questions.html#what-is-the-difference
eps inside or outside: 03-layer-normalization.html#eps-outside | rmsnorm slower than layernorm: #why-is-nn-rmsnorm
which norm does llama use: models | layer scale init value: questions.html#what-is-convnexts | gpt2 small init: gpt-2
misconceptions: myths | lesson plan rmsnorm: teaching.html
"""


def pairs(text):
    """{what a reader types: a part of the address}"""
    return dict(pair.strip().rsplit(": ", 1) for pair in re.split(r" \| |\n", text.strip()))


LISTED = "[...document.querySelectorAll('.bd-search-container li a')].map((link) => link.href)"


def test_the_section_that_was_meant_comes_first(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "search.html")
        field, first = page.locator(".bd-search-container input"), page.locator(".bd-search-container li a").first
        found, wanted = {}, pairs(SECTIONS)
        for typed in wanted:
            field.fill("")
            first.wait_for(state="detached")  # what the query before found
            field.fill(typed)
            first.wait_for()
            found[typed] = first.get_attribute("href")
        assert {typed: at for typed, at in found.items() if wanted[typed] not in at} == {}
        assert page.evaluate("JSON.stringify(SECTIONS).match(/ eq-[a-z]+/g)") is None  # a label is no text
        nearest = "The nearest sections."
        told = {"loss NaN in fp16": nearest, "residual": "The first", "rmsnorm epsilon": nearest}
        for typed, start in told.items():  # the page of results begins as the list
            field.fill(typed)
            status = page.get_by_role("status").filter(has_text=start).inner_text()
            count = status.split(". Enter")[0].split(" of ")[-1]
            listed = page.evaluate(LISTED)
            with page.context.new_page() as other:
                other.goto(f"{server}search.html?q={typed}")
                summary = other.locator("#search-results .search-summary", has_text=" these words.").inner_text()
                found = other.locator("#search-results li > a").evaluate_all("(all) => all.map((e) => e.href)")
            assert found[:8] == listed
            assert count == "The nearest sections" or summary.startswith(f"“{typed}”: {count} and ")
        field.fill("xyzzyq")
        page.get_by_role("status").filter(has_text="No title or first sentence").wait_for()
        assert not first.is_visible()


# Queries as students type them, and what one of the first three sections has in its address.
TYPED = """
prenorm: 05-pre | pre-norm vs post-norm: 05-pre | post norm gradient vanish: does-post-ln | why warmup: 05b
pre-ln warmup: warm-up | nan loss: nan-or-inf | loss nan after a few steps: the-loss-diverges
rms norm bias: bias | why does rmsnorm have no bias: bias | layernorm vs rmsnorm: 04-rmsnorm | layernorm backward: 03a
derivative of layer norm: 03a | is rms norm faster: is-it-faster | what is eps for: 03-layer
epsilon layernorm: what-eps-does | batchnorm vs layernorm: batchnorm-and-layernorm-compared
why not batch norm in transformers: 03b | group norm: groupnorm-in | vanishing gradients: 01-why
exploding activations: exploding | skip connection: 02-res | why residual connections work: 02-res
degradation problem resnet: 01-why | qk norm: qk-norm | llama norm: models | what norm does gpt-2 use: models
final layer norm: final-norm | sandwich norm: 07-after | rank collapse: 05c | weight decay on layernorm: weight-decay
rmsnorm in fp16 overflow: 09- | bf16 rmsnorm upcast: upcast | triton kernel: 08- | fused add norm: 08-
freeze layernorm when finetuning: 10b | tensor parallel rmsnorm: 10-norms | number of parameters in layernorm: 06d
dropout residual: dropout | rezero layerscale: 07-after | stochastic depth: 07a | loss stuck at ln V: stuck
layer normalisation forumla: layer | bessel correction: biased | weight decay on gamma: shrinks-the-gains
what is beta: term-shift | Gemma 3 QK norm: models | qwen3 eps: models | DeepSeek-V3 final norm: models
why does my deep network not train: 01-why | is rmsnorm better: 04-rmsnorm | my loss isn't going down: stuck
loss blows up: the-loss-diverges | exam questions on layernorm: teaching | lesson plan for one hour: teaching
why does llama use rmsnorm: 04-rms | why does LLaMA not use LayerNorm: 04-rms
"""


def test_a_students_query_finds_a_section_among_the_first_three(browser, server):
    wanted = pairs(TYPED)
    assert len(wanted) > 40
    lost = {}
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "search.html")
        field, links = page.locator(".bd-search-container input"), page.locator(".bd-search-container li a")
        for typed, section in wanted.items():
            field.fill("")
            links.first.wait_for(state="detached")
            field.fill(typed)
            page.locator(".bd-search-container [role=status]").wait_for()
            found = links.evaluate_all("(all) => all.slice(0, 3).map((link) => link.getAttribute('href'))")
            if not any(section in at for at in found):
                lost[typed] = found
    assert lost == {}


def test_a_first_query_is_light(browser, server):
    """The page of results with its index, and the list of sections that a field loads."""
    with opened(browser, server, [], viewport=DESK) as page:
        network, sizes = page.context.new_cdp_session(page), []
        network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
        network.send("Network.enable")
        network.send("Network.setCacheDisabled", {"cacheDisabled": True})
        page.goto(server + "search.html")
        page.wait_for_load_state("networkidle")
        page.locator(".bd-search-container input").fill("skip connection")
        page.locator(".found-sections mark").first.wait_for()
        page.wait_for_load_state("networkidle")
        assert 100_000 < sum(sizes) < 300_000


def test_a_result_is_quoted_in_a_book_opened_as_a_file(browser):
    faults, base = [], checkout.PAGES.as_uri() + "/"
    with opened(browser, base, faults, viewport=DESK) as page:
        page.goto(base + "search.html?q=residual+connection")
        page.locator("#search-results p.context .highlighted").first.wait_for()
        page.locator("#search-results p.context").nth(2).wait_for()  # they come one by one
    assert faults == []


def test_search_by_keyboard(browser, server):
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        page.goto(server + "notebooks/03-layer-normalization.html")
        field = page.locator("#pst-search-dialog input")
        page.keyboard.press("Control+k")
        field.wait_for(state="visible")
        assert page.evaluate("document.activeElement.name") == "q"
        page.keyboard.press("Escape")
        field.wait_for(state="hidden")
        page.keyboard.press("Control+k")
        page.keyboard.type("epsilon")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search.html?q=epsilon")
        page.locator("#search-results li a").first.wait_for()
    assert faults == []
