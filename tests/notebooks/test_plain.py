"""A notebook shows no mark of the book's Markdown: nbconvert's HTML of its texts, much as code hosts show them."""

import nbformat
import pytest
from helpers.raw_marks import raw_marks
from nbconvert import HTMLExporter

from tools.checkout import ROOT

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
