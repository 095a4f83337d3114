"""The book's own Sphinx extensions, each on a one-page book: a fault warns in the first build and in the next."""

import io
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pytest
from bs4 import BeautifulSoup
from helpers import small_book
from helpers.small_book import build, code, html, page
from PIL import Image

from subnorm_lab import _svg, figures

# 1x1 pixel
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def display(text, said=None, **more):
    metadata = {} if said is None else {"said": said}
    return {"output_type": "display_data", "data": {"text/plain": [text], **more}, "metadata": metadata}


def notebook(folder, *outputs, name="03-norms"):
    small_book.notebook(folder, code(*outputs), name=name)


TOC = "```{toctree}\nnotebooks/03-norms\n```"
SLOPE = display("slope = 0.99", {"slope": "0.99"})
FIGURE = {"image/png": PNG}


def test_a_good_book_has_no_warning(tmp_path):
    notebook(tmp_path, SLOPE, display("Two lines that rise with depth.", **FIGURE))
    page(tmp_path, "The slope is {val}`03:slope`, not {given}`2`, and $\\LN(x)$.\n\n$$ x^2 $$ (eq-a)\n\n" + TOC)
    assert build(tmp_path) == ""
    assert build(tmp_path) == ""
    assert '<span class="measured">0.99</span>' in html(tmp_path)
    assert html(tmp_path).count('class="katex"') == 2
    assert '<span class="eqno">(1)' in html(tmp_path)
    assert "<math" in html(tmp_path)
    assert 'alt="Two lines that rise with depth."' in html(tmp_path, "notebooks/03-norms")
    assert " said " in html(tmp_path, "notebooks/03-norms")


def test_a_negative_number_has_a_minus_sign(tmp_path):
    notebook(tmp_path, display("slope = -1e-05", {"slope": "-1e-05"}))
    page(tmp_path, "The slope is {val}`03:slope`.\n\n" + TOC)
    assert build(tmp_path) == ""
    assert '<span class="measured">\N{MINUS SIGN}1e-05</span>' in html(tmp_path)


FAULTS = {
    "unknown macro": (r"Some text." + "\n\n" + r"And $\nosuch x$.", [SLOPE], r"Undefined control sequence: \nosuch"),
    "unknown macro in a display": (r"$$ \nosuch x $$", [SLOPE], r"Undefined control sequence: \nosuch"),
    "unknown number": ("{val}`03:speed`", [SLOPE], "03-norms.ipynb says no 'speed'; it says slope"),
    "unknown notebook": ("{val}`07:slope`", [SLOPE], "0 notebooks are named notebooks/07-*.ipynb"),
    "number said twice": ("{val}`03:slope`", [SLOPE, SLOPE], "'slope' is said twice"),
    "number said twice, not quoted": (TOC, [SLOPE, SLOPE], "'slope' is said twice"),
    "stored text edited": ("{val}`03:slope`", [display("slope = 0.98", {"slope": "0.99"})], "shows 'slope = 0.98'"),
    "figure without a text": (TOC, [display("<Figure size 640x480 with 1 Axes>", **FIGURE)], "needs an alt text"),
    "two figures with one text": (TOC, 2 * [display("Two lines that rise.", **FIGURE)], "two pictures have one alt"),
    "picture without a text": ("![](a.png)", [SLOPE], "needs an alt text"),
    "picture named by its file": ("![a.png](a.png)", [SLOPE], "needs an alt text"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_warns_in_every_build(tmp_path, fault):
    text, outputs, message = FAULTS[fault]
    notebook(tmp_path, *outputs)
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01")
    page(tmp_path, text if text == TOC else f"{text}\n\n{TOC}")
    assert message in build(tmp_path)
    assert message in build(tmp_path)


def test_a_warning_names_page_and_line(tmp_path):
    page(tmp_path, "Some text.\n\nMore text with $\\nosuch$.")
    assert "index.md:5: WARNING: math: KaTeX parse error" in build(tmp_path)


def test_two_notebooks_with_one_number(tmp_path):
    notebook(tmp_path, SLOPE)
    notebook(tmp_path, SLOPE, name="03-other")
    page(tmp_path, "{val}`03:slope`")
    assert "2 notebooks are named notebooks/03-*.ipynb" in build(tmp_path)


def test_a_page_follows_the_notebook_it_quotes(tmp_path):
    notebook(tmp_path, SLOPE)
    page(tmp_path, f"{{val}}`03:slope`\n\n{TOC}")
    build(tmp_path)
    notebook(tmp_path, display("slope = 0.42", {"slope": "0.42"}))
    assert build(tmp_path) == ""
    assert '<span class="measured">0.42</span>' in html(tmp_path)


def test_bare_align_is_numbered_once(tmp_path):
    page(tmp_path, "\\begin{align}\na &= b \\\\\nc &= d\n\\end{align}")
    assert build(tmp_path) == ""
    assert html(tmp_path).count("eqno") == 1
    assert "eqn-num" not in html(tmp_path)  # KaTeX's own number


def test_description(tmp_path):
    words = "A paragraph that is long enough to tell a search engine what a page is about. " * 3
    page(tmp_path, f"Short.\n\n{words}")
    build(tmp_path)
    assert '<meta name="description" content="A paragraph that is long enough' in html(tmp_path)
    page(tmp_path, words)
    (tmp_path / "index.md").write_text(
        "---\nmyst:\n  html_meta:\n    description: Own words.\n---\n# T\n\n" + words, "utf-8"
    )
    build(tmp_path)
    assert html(tmp_path).count('name="description"') == 1
    assert 'content="Own words."' in html(tmp_path)


def test_what_no_page_needs_is_left_out(tmp_path, monkeypatch):
    from subnorm_book.output import slim

    monkeypatch.setattr(slim, "THEME", "basic")  # the theme of the small book
    left_out = {
        "doctools.js": None,
        "pygments.css": None,
        "sphinx_highlight.js": "one word",
        "basic.css": "another word",
    }
    monkeypatch.setattr(slim, "LEFT_OUT", left_out | {"absent.js": None})
    monkeypatch.setattr(slim, "RULES", [])
    monkeypatch.setattr(slim, "UNUSED", ["minus.png"])
    page(tmp_path, "The page has one word.")
    assert "'absent.js' is on no page; drop it from LEFT_OUT" in build(tmp_path)
    for name, there in [("doctools.js", False), ("pygments.css", False), ("sphinx_highlight.js", True)]:
        assert (name in html(tmp_path)) is there
    assert "basic.css" not in html(tmp_path)
    assert not list((tmp_path / "_build").rglob("minus.png"))


def test_scripts_come_without_comments_and_indentation_and_strings_as_they_are(tmp_path):
    from subnorm_book.output import slim

    code = "const x = `${`a, b`}  // ${1 + 1}\n  b  // c\n`;\nconst y = /\\/\\*/g; /* two */\nz(' // ')"
    script = tmp_path / "a.js"
    script.write_text(f"// one line\n/** two\n * lines */\n  {code} // after code\n  // indented\n", "utf-8")
    slim.leave_out_comments(tmp_path)
    assert script.read_text("utf-8") == f"{code}\n"


def test_a_rule_that_no_page_needs_is_a_warning_in_every_build(tmp_path, monkeypatch):
    from subnorm_book.output import slim

    monkeypatch.setattr(slim, "THEME", "basic")
    monkeypatch.setattr(slim, "LEFT_OUT", {})
    monkeypatch.setattr(slim, "UNUSED", ["minus.png", "plus.gif"])
    monkeypatch.setattr(slim, "RULES", [("<title>", "<title >"), ("<strong>", "<b>"), ("<blink>", "")])
    notebook(tmp_path, SLOPE)
    for text, idle in [("**a** b", []), ("**a** b", []), ("a b", ["<strong>"]), ("a **b**", [])]:
        page(tmp_path, f"{text}\n\n{TOC}")
        said = [
            f"no page needs the rule {rule} any more; drop it from slim.py" for rule in [*idle, "<blink>", "plus.gif"]
        ]
        warnings = build(tmp_path)
        assert all(one in warnings for one in said)
        assert warnings.count("no page needs the rule") == len(said)


def test_slim_fixes_pages_and_may_run_twice(tmp_path):
    from subnorm_book.output import slim

    (tmp_path / "documentation_options.js").write_text("const DOCUMENTATION_OPTIONS = {};", "utf-8")
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x02\x80\x00\x00\x01\xe0")
    (tmp_path / "b.svg").write_text('<svg viewBox="0 0 240 72"></svg>', "utf-8")
    once = slim.slim(
        '<script src="./documentation_options.js?v=1"></script><script src="x.js"></script><script>1</script>'
        '<script async src="y.js"></script><img alt="a" src="a.png" /><img src="b.svg"><img width="5" src="a.png">'
        '<strong>So it is.</strong><sup class="claim">a</sup> <code class="b">x</code><sup class="claim">c</sup>'
        '<div class="highlight-"><div class="highlight"><pre>if:\n    <b>return</b> of_more_than_thirty_letters</pre>',
        tmp_path / "a.html",
    )
    assert "<script>const DOCUMENTATION_OPTIONS = {};</script>" in once
    assert '<script defer src="x.js">' in once
    assert '<script async src="y.js">' in once
    assert '<img width="640" height="480" decoding="async" alt="a" src="a.png" />' in once
    assert '<img width="240" height="72" decoding="async" src="b.svg">' in once
    assert '<img decoding="async" width="5" src="a.png">' in once
    assert 'So it </strong><span class="glued"><strong>is.</strong><sup class="claim">a</sup></span>' in once
    assert '<span class="glued"><code class="b">x</code><sup class="claim">c</sup></span>' in once
    assert '\n<span class="line" style="--in:4">    <b>return</b> of_more_than_thirty_letters</span></pre>' in once
    assert slim.slim(once, tmp_path / "a.html") == once


def test_a_number_keeps_its_unit_on_its_line_but_not_in_code(tmp_path):
    given = "{given}`20` µs, 3 sheets, as chapter 07, 1.1 [0.5, 3.1]"
    page(tmp_path, f"Of 0.8 % of 4096 × 4096, {given}. `4 % 2`\n\n    5 % 3")
    assert build(tmp_path) == ""
    text = html(tmp_path).replace("\u00a0", "_")
    for kept in ("Of 0.8_% of 4096_×_4096, ", "20</span>_µs, 3 sheets", "chapter_07", "1.1_[0.5,_3.1]"):
        assert kept in text
    assert "_2" not in text
    assert "5_%" not in text


def test_a_name_keeps_its_hyphen_in_its_line_and_its_characters(tmp_path):
    page(
        tmp_path,
        "Pre-LN, QK-norms, `Post-LN` and a pre-norm's feed-forward by 1/√N.\n\n"
        "## A two-layer Post-LN, and its encoder-decoder-attention\n\nEnd.",
    )
    assert build(tmp_path) == ""
    article = BeautifulSoup(html(tmp_path), "html.parser")
    assert [span.text for span in article.select("p .glued")] == ["Pre-LN", "QK-norms", "pre-norm", "1/√N"]
    assert [span.text for span in article.select("h2 .glued")] == ["two-layer", "Post-LN"]
    assert "feed-forward by 1/√N." in article.select_one("p:has(.glued)").text


def test_paper_leaves_out_what_a_page_asks_to_try(tmp_path):
    page(tmp_path, "It *rises*. **Try:** drag `x`. Does it?\n\n**Try** two.\n\n**Tried** at last.")
    assert build(tmp_path) == ""
    left_out = BeautifulSoup(html(tmp_path), "html.parser").select(".on-screen")
    assert [(part.name, part.text) for part in left_out] == [("span", "Try: drag x. Does it?"), ("p", "Try two.")]


MARK = '<sup class="claim">a</sup>'


def test_no_line_begins_with_the_punctuation_after_a_short_formula(tmp_path):
    from docutils import nodes
    from subnorm_book.output import prerender, slim

    formula = nodes.math("", "x", html="X")
    writer = SimpleNamespace(body=[])
    with pytest.raises(nodes.SkipNode):
        prerender.visit(writer, formula)
    for after, glued, rest in [(").  So", ").", "  So"), (" and", "", " and"), (MARK, MARK, "")]:
        html = slim.slim("".join(writer.body) + after, tmp_path / "a.html")
        assert html == f'<span class="glued"><span class="{prerender.CLASSES}">X</span>{glued}</span>{rest}'


def test_only_pictures_after_the_first_wait_until_they_are_near(tmp_path):
    from subnorm_book.output import slim

    (tmp_path / "a.svg").write_text('<svg viewBox="0 0 2 1"></svg>', "utf-8")
    picture = '<img src="a.svg">'
    once = slim.slim(f"{picture}<article>{picture}<p>{picture}", tmp_path / "a.html")
    assert ["lazy" in image for image in once.split("<img")[1:]] == [False, False, True]
    assert slim.slim(once, tmp_path / "a.html") == once


def test_slim_measures_pictures(tmp_path):
    from subnorm_book.output import slim

    (tmp_path / "my plot.svg").write_text('<svg viewBox="-1 0 460.8 345.6"></svg>', "utf-8")
    once = slim.slim('<img src="my%20plot.svg#a" />', tmp_path / "a.html")
    assert once == '<img width="461" height="346" decoding="async" src="my%20plot.svg#a" />'
    fig = plt.figure(figsize=(2, 1))
    (tmp_path / "plot.svg").write_text(_svg.as_svg(fig, 50), "utf-8")
    assert 'width="100" height="50"' in slim.slim('<img src="plot.svg" />', tmp_path / "a.html")


def test_a_picture_of_two_pixels_a_dot_is_shown_at_half_its_size(tmp_path):
    from subnorm_book.output import slim

    png = io.BytesIO()
    Image.linear_gradient("L").resize((400, 200)).save(png, format="png")
    for pixels in (1, 2):
        (tmp_path / f"{pixels}.png").write_bytes(figures.with_palette(io.BytesIO(png.getvalue()), pixels))
    once = slim.slim('<img alt="one" src="1.png"><img alt="two" src="2.png">', tmp_path / "a.html")
    plain, sharp = once.split("<img ")[1:]
    assert 'width="400" height="200"' in plain
    assert 'width="200" height="100"' in sharp


@pytest.mark.parametrize(
    "source", ["a.jpg", "b.svg", "data:image/png;base64,iVBORw0KGgo=", "https://example.org/a.png"]
)
def test_a_picture_of_unknown_size_is_named_in_every_build(tmp_path, source):
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    (tmp_path / "b.svg").write_text('<svg width="4cm"></svg>', "utf-8")
    page(tmp_path, f"![a picture of four words]({source})")
    for warnings in (build(tmp_path), build(tmp_path)):
        assert f"index.html: the size of picture {source if ':' in source else '_images/' + source}" in warnings
    assert "decoding" not in html(tmp_path)


def test_an_equation_is_shown_again(tmp_path):
    small_book.notebook(tmp_path, small_book.markdown("$$ a = b + c $$ (eq-sum)"))
    page(tmp_path, "```{key-equation} eq-sum\n```\n\n" + TOC)
    assert build(tmp_path) == ""
    assert "<mi>b</mi><mo>+</mo><mi>c</mi>" in html(tmp_path)
    assert 'href="notebooks/03-norms.html#equation-eq-sum">(1)</a> in <a' in html(tmp_path)
    assert 'id="equation-eq-sum"' in html(tmp_path, "notebooks/03-norms")
    small_book.notebook(tmp_path, small_book.markdown("$$ a = b + d $$ (eq-sum)"))
    assert build(tmp_path) == ""
    assert "<mi>b</mi><mo>+</mo><mi>d</mi>" in html(tmp_path)


def test_an_equation_that_no_page_has_warns_in_every_build(tmp_path):
    page(tmp_path, "```{key-equation} eq-gone\n```")
    assert "index.md:3: WARNING: no page has an equation eq-gone" in build(tmp_path)
    assert "no page has an equation eq-gone" in build(tmp_path)
