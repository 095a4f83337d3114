"""The first use of a glossary term in a chapter links to the glossary."""

import json

import pytest
from helpers.glossary_links import terms, unlinked

from tools import checkout
from tools.refresh import notebooks

TERMS = terms((checkout.ROOT / "book/glossary.md").read_text("utf-8"))


def chapter(path):
    """The Markdown of a notebook after its title and its box of objectives."""
    cells = json.loads(path.read_text("utf-8"))["cells"][1:]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def test_the_glossary_was_read():
    assert {"LayerNorm", "residual connection", "Pre-LN", "warm-up"} <= set(TERMS)


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_first_use_is_linked(path):
    text = chapter(path)
    found = {name: text[max(0, start - 40) : end + 20] for name, start, end in unlinked(text, TERMS)}
    assert found == {}


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("{term}`LayerNorm` and LayerNorm.", []),
        ("LayerNorm and {term}`LayerNorm`.", ["LayerNorm"]),
        ("## LayerNorm\n\nSee {term}`LayerNorm`.", []),
        ("`LayerNorm`, $LayerNorm$ and\n\n```python\nLayerNorm\n```", []),
        ("{term}`Residual connections <residual connection>` and residual connections.", []),
        ("Residual\nconnections.", ["residual connection"]),
        ("A {term}`residual connection` of `x` and LayerNorm, `y`.", ["LayerNorm"]),
        ("A {term}`transformer block`.", []),
        (":::{note}\nA {term}`residual stream` and a LayerNorm.\n:::", ["LayerNorm"]),
        ("Pre-LNs and Post-LN-like.", ["Pre-LN"]),
    ],
)
def test_what_counts_as_first_use(text, missing):
    assert [name for name, *_ in unlinked(text, TERMS)] == missing
