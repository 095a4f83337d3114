"""A notebook shows no mark of the book's Markdown: nbconvert's HTML of its texts, much as code hosts show them."""

import re

import nbformat
import pytest
from helpers.raw_marks import raw_marks
from nbconvert import HTMLExporter

from tools.checkout import ROOT

LEADING = re.compile(r"^[> ]*<!--[^>]*-->[^\n]*\S", re.MULTILINE)
INVISIBLE = re.compile(r"\|(?:\s*<!--[^>]*-->)+\s*(?=\|)")
EARLY = re.compile(r"<!-- claim: [^>]*-->[.?!](?=\s|$)")
NOTEBOOKS = sorted(path for path in (ROOT / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)


@pytest.fixture(scope="module")
def marks():
    exporter = HTMLExporter(template_name="basic")

    def marks(texts):
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text) for text in texts])
        return raw_marks(exporter.from_notebook_node(book)[0])

    return marks


def texts(book):
    """The Markdown of a notebook, and that which its cells printed."""
    for cell in book.cells:
        if cell.cell_type == "markdown":
            yield cell.source
        printed = [output.get("data", {}) for output in cell.get("outputs", [])]
        yield from (data["text/markdown"] for data in printed if "text/markdown" in data)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.relative_to(ROOT / "notebooks").as_posix())
def test_a_notebook_shows_no_mark(path, marks):
    assert not marks(texts(nbformat.read(path, 4)))


@pytest.mark.parametrize(
    "mark",
    [
        "It is {val}`02:gain`.",
        "{.second-reading}\n## More",
        "```{predict} gain\nWhat?\n```",
        ":::{note}\nThis\n:::",
        "$$\nx\n$$ (eq-x)",
        "(place)=\n## Here",
        "`<!--` is code, &lt;!-- is not",
        "&lt;details>",
    ],
)
def test_every_kind_of_mark_is_found(mark, marks):
    assert len(marks([mark, "A line"])) == 1 + (mark.count(":::") == 2)


def test_comments_code_and_formulas_are_no_marks(marks):
    equation = "<!-- eq-x -->\n$$\nx_{.5}\n$$\n\n(1.2)<!-- eq-x -->"
    code = "Two<!-- chosen --> lines: `{val}` `:::`\n\n```\n:::{note}\n```"
    assert not marks([equation, code, "<details><summary>Solution</summary>\n\nIt is $y$.\n\n</details>"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.relative_to(ROOT / "notebooks").as_posix())
def test_no_cell_of_a_table_looks_empty(path):
    assert not [row for text in texts(nbformat.read(path, 4)) for row in INVISIBLE.findall(text)]


def test_a_cell_with_nothing_but_a_comment_is_found():
    assert INVISIBLE.search("| x | <!-- claim: 03-x bib:y --> |")
    assert not INVISIBLE.search("| x | y <!-- claim: 03-x --> |")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.relative_to(ROOT / "notebooks").as_posix())
def test_no_line_begins_with_a_comment_and_goes_on(path):
    """It would be HTML, in which VS Code and GitHub read no Markdown and no formula."""
    assert not [line for text in texts(nbformat.read(path, 4)) for line in LEADING.findall(text)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.relative_to(ROOT / "notebooks").as_posix())
def test_the_mark_of_a_claim_comes_after_its_sentence(path):
    assert [text for text in texts(nbformat.read(path, 4)) if EARLY.search(text)] == []


@pytest.mark.parametrize("line", ["<!-- claim: 03-x --> It is $x$.", "> <!-- claim: 03-x -->It is.", "><!-- x --> $x$"])
def test_a_line_that_begins_with_a_comment_is_found(line):
    assert LEADING.findall(f"Text.\n{line}\nMore.") == [line]


def test_a_comment_in_a_line_of_its_own_or_at_its_end_is_fine():
    assert not LEADING.search("<!-- eq-x -->\n$$\nx\n$$\n\n> <!-- gain -->\n> It is 2<!-- chosen --> or\n> more.")


SECTION = re.compile(r"\]\((?!https?:)([\w./-]*)#([^()\s]+)\)")


def ids(path):
    """The ids that JupyterLab gives the headings of a notebook: their words, with hyphens for spaces."""
    texts = (cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown")
    titles = (title for text in texts for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE))
    return {re.sub(r"<!--.*?-->|[`*]", "", title).strip().replace(" ", "-") for title in titles}


def lost(path, texts):
    """The links to a section that JupyterLab does not find."""
    for page, section in (found for text in texts for found in SECTION.findall(text)):
        there = (path.parent / page).resolve() if page else path
        if there.suffix == ".ipynb" and section not in ids(there):
            yield f"{page}#{section}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_link_to_a_section_opens_it_in_jupyterlab(path):
    assert list(lost(path, (c.source for c in nbformat.read(path, 4).cells if c.cell_type == "markdown"))) == []


def test_a_link_to_no_section_is_found():
    path = ROOT / "notebooks" / "04-rmsnorm.ipynb"
    links = (
        "[a](#In-a-trained-model) [b](#in-a-trained-model) [c](03-layer-normalization.ipynb#What-eps-does) [d](#Eps)"
    )
    assert list(lost(path, [links])) == ["#in-a-trained-model", "#Eps"]
