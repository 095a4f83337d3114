"""The merged style sheet keeps what pages and scripts use and drops the rest, even when only some pages are written."""

import base64
import io
import re

import pytest
from fontTools.ttLib import TTFont
from helpers.small_book import build, html, page
from subnorm_book.output import fonts, styles

from tools import checkout

FORMULA = '<span class="katex"><span class="katex-html" aria-hidden="true">{}</span></span>'
LINKS = """<link href="../_static/styles/theme.css?digest=8" rel="stylesheet" />
<link rel="stylesheet" type="text/css" href="../_static/own.css?v=1" />"""


@pytest.fixture
def static(tmp_path):
    folder = tmp_path / "_static"
    (folder / "styles").mkdir(parents=True)
    (folder / "styles" / "theme.css").write_text('@import "../basic.css";', "utf-8")
    (folder / "basic.css").write_text('a { background: url("dot.png") }', "utf-8")
    return folder


def merged(static, css, body=""):
    """The sheet and the page of a one-page site."""
    (static / "own.css").write_text(css, "utf-8")
    (new,) = styles.merge({"a": LINKS + body}, static).values()
    (sheet,) = static.glob("site.*.css")
    return sheet.read_text("utf-8"), new


def test_the_sheets_are_merged_in_their_order(static):
    sheet, new = merged(static, "/* why */ b { color: red !important }")
    assert sheet == "a{background:url(dot.png)}b{color:red !important}"
    assert len(styles.LINK.findall(new)) == 1
    assert re.search(r'href="\.\./_static/site\.\w{12}\.css" data-from="styles/theme.css own.css"', new)


def test_licences_stay(static):
    sheet, _ = merged(static, "/*! A licence */ .gone { color: red }")
    assert sheet == "/*! A licence */a{background:url(dot.png)}"


def test_a_merged_page_stays_as_it_is(static):
    _, new = merged(static, "b { color: red }")
    assert styles.merge({"a": new}, static) == {"a": new}


@pytest.mark.parametrize(
    ("css", "kept"),
    [
        (".gone { color: red } p.seen, #here .gone { color: red }", "p.seen{color:red}"),
        ("#here > .seen:not(.gone) { color: red }", "#here > .seen:not(.gone){color:red}"),
        ("#gone .seen { color: red }", ""),
        (".byscript { color: red }", ".byscript{color:red}"),
        (".inline { color: red }", ".inline{color:red}"),
        (".seen { --live-green: #090 }", ".seen{--live-green:#090}"),
        (".navbar-expand-lg { color: red }", ".navbar-expand-lg{color:red}"),
        ("@media print { .gone { color: red } .seen { color: red } }", "@media print{.seen{color:red}}"),
        ("@media print { .gone { color: red } }", ""),
        (".seen { --a: var(--b); --b: 1px; --c: 2px; width: var(--a) }", ".seen{--a:var(--b);--b:1px;width:var(--a)}"),
        (".seen { --by-page: 1px }", ".seen{--by-page:1px}"),
        ('.seen { mask: url("data:a//b") }', '.seen{mask:url("data:a//b")}'),
        (
            ".seen { animation: turn 1s } @keyframes turn { to { top: 0 } }",
            ".seen{animation:turn 1s}@keyframes turn{to{top:0}}",
        ),
        (".gone { animation: turn 1s } @keyframes turn { to { top: 0 } }", ""),
        ("@font-face { font-family: 'Not Used'; src: url(a.woff2) }", ""),
        ("b:hover, b:focus { top: 0 }", "b:focus{top:0}@media (hover: hover){b:hover{top:0}}"),
        ("b:is(:hover, :focus) { top: 0 }", "b:is(:hover, :focus){top:0}"),
        ("h2:hover > [class=headerlink] { top: 0 }", "h2:hover > [class=headerlink]{top:0}"),
    ],
)
def test_what_is_used_stays(static, css, kept):
    (static / "a.js").write_text('box.classList.add("byscript")', "utf-8")
    text = '<p class="seen x" id="here" style="left: var(--by-page)">gone</p>'
    scripts = '<script src="a.js"></script>', '<script>x.className = "inline"</script>'
    assert merged(static, css, text.join(scripts))[0] == "a{background:url(dot.png)}" + kept


def test_a_new_class_on_one_page_comes_into_the_sheet_of_all(static):
    css = ".new { color: red } .seen { color: red }"
    _, old = merged(static, css, '<p class="seen">')
    pages = styles.merge({"a": old, "b": LINKS + '<p class="new">'}, static)
    (sheet,) = static.glob("site.*.css")  # the former one is gone
    assert ".new{" in sheet.read_text("utf-8")
    assert all(f'href="../_static/{sheet.name}"' in new for new in pages.values())


def formula_fonts(folder):
    """The characters of each KaTeX subset; all are embedded in the style sheet, so that they cannot load late."""
    (sheet,) = folder.glob("site.*.css")
    found = {}
    for face in fonts.FACE.findall(sheet.read_text("utf-8")):
        name, weight = (re.search(rf"{key}:([^;]*)", face)[1] for key in ("font-family", "font-weight"))
        data = base64.b64decode(re.search(r"base64,([^)]*)", face)[1])
        found[f"{name} {weight}"] = set(TTFont(io.BytesIO(data)).getBestCmap())
    return found


@pytest.fixture
def katex(static):
    source = checkout.ROOT / "book" / "_static" / "katex"
    (static / "fonts").mkdir()
    (static / "katex").symlink_to(source, target_is_directory=True)
    (static / "own.css").write_text('@import "katex/katex.css";', "utf-8")
    return static


def test_fonts_keep_the_letters_of_the_formulas(katex):
    letters = '<span class="mord mathnormal">x</span><span class="mord mathbf">B</span><span class="mord">1</span>'
    styles.merge({"a": LINKS + FORMULA.format(letters)}, katex)
    found = formula_fonts(katex)
    assert found == {"KaTeX_Math 400": {ord("x")}, "KaTeX_Main 700": {ord("B")}, "KaTeX_Main 400": {ord("1")}}


def test_a_new_letter_on_one_page_comes_into_the_font(katex):
    one, two = (FORMULA.format(f'<span class="mord mathnormal">{letter}</span>') for letter in "xy")
    old = styles.merge({"a": LINKS + one}, katex)["a"]
    styles.merge({"a": old, "b": LINKS + two}, katex)
    assert formula_fonts(katex)["KaTeX_Math 400"] == {ord("x"), ord("y")}


def test_a_page_without_a_formula_loads_no_sheet_of_formulas(katex):
    links = LINKS.replace("own.css", "katex/katex.css")
    pages = {"a": links + FORMULA.format('<span class="mord mathnormal">x</span>'), "b": links}
    for _ in range(2):  # the second build finds the merged links
        pages = styles.merge(pages, katex)
        (formulas,) = katex.glob("formulas.*.css")
        (site,) = katex.glob("site.*.css")
        assert re.findall(r"_static/([^\"]*)\"", pages["a"]) == [formulas.name, site.name]
        assert re.findall(r"_static/([^\"]*)\"", pages["b"]) == [site.name]
    assert "KaTeX_Math" in formulas.read_text("utf-8")
    assert "katex" not in site.read_text("utf-8").lower()


def test_icons_are_those_that_the_sheet_names(tmp_path):
    source = next(checkout.VENV.rglob("fa-solid-900.woff2"))
    small = fonts.smaller(source.read_bytes(), "\uf0c9x")
    assert set(TTFont(io.BytesIO(small)).getBestCmap()) == {0xF0C9, ord("x")} & set(TTFont(source).getBestCmap())
    assert fonts.smaller(source.read_bytes(), "\u3042") is None


def test_a_page_that_is_not_written_again_has_the_new_sheet(tmp_path):
    (tmp_path / "other.md").write_text("# Other\n\nText.\n", "utf-8")
    page(tmp_path, "```{toctree}\nother\n```")
    assert build(tmp_path) == ""
    before = html(tmp_path)
    (tmp_path / "other.md").write_text("# Other\n\n```{warning}\nText.\n```\n", "utf-8")
    assert build(tmp_path) == ""
    (sheet,) = (tmp_path / "_build" / "html" / "_static").glob("site.*.css")
    assert f"_static/{sheet.name}" in html(tmp_path)
    assert f"_static/{sheet.name}" in html(tmp_path, "other")
    assert sheet.name not in before
