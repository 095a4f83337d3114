"""No result is typed by hand on a page, in a notebook or in the alt text of a figure."""

import pytest
from helpers.small_book import code, module
from helpers.typed_numbers import found_in, found_in_alt
from subnorm_book import notebook_text
from subnorm_book.evidence.chapter_code import ChapterCode

from tools import checkout
from tools.refresh import notebooks

PAGES = sorted(checkout.ROOT.glob("book/*.md"))

PLANTED = [
    "The gradient falls to 0.013 at the first block.",
    "- After 50 layers 0.5 of it is left.",
    "| plain | 0.71 |\n|---|---|\n| residual | 1.6 |",
    "RMSNorm is 12 % faster.",
    "RMSNorm is 12% faster.",
    "One weight in 10 per cent of the cases.",
    "It is 46 times as large.",
    "It is 3 × as large.",
    "It is 1.8x as fast.",
    "It grows 4-fold.",
    "It is twice as large, three times as fast.",
    "It is three times faster.",
    "The rest is below 1e-12.",
    "It explodes to 10^5.",
    "It vanishes to 10⁻⁷.",
    "It vanishes to $10^{-7}$.",
    "The slope is $0.71$, about $\\approx 0.71$.",
    "It takes 34 ms.",
    "A copy moves 912 GB/s.",
    ":::{note}\nThe slope is 0.5.\n:::",
    "```{note}\nThe slope is 0.5.\n```",
    ":::{admonition} Growth by 3.5 a block\nText.\n:::",
    "::::{note}\n:::{dropdown} Answer\n- *No*, it is 0.5.\n:::\n::::",
    "> It is 0.5.",
    "## A slope of 0.5",
    "Cited {cite}`ba2016layer`. Not cited: 0.5.",
    "Cited. {claim}`03-a bib:ba2016layer` Not cited: 0.5.",
    "Term\n: It is 0.5.",
    'It is "fast": 0.5.',
    ":::{quick-check} slope\n\nWhat?\n\n- [x] It is 0.5.\n  - So it is.\n:::",
    ":::{quick-check} slope\n:value: 1 / 2\n\nWhat?\n\n- [x] It is 0.5.\n  - It is 0.5.\n:::",
    ":::{quick-check} slope\n\nWhat of 0.5?\n\n- [ ] It is 1.\n  - So it is.\n:::",
]
GOOD = [
    "The slope is {val}`03:slope` and the rate {given}`0.5`; {val}`03:share` % of it.",
    "After 50 layers of 64 features, in 5 seeds.",
    "Of 28.54 % and 27.94 % {cite:p}`he2016deep`.",
    "They report 28.54 %. {claim}`01-plain-34 bib:he2016deep`",
    "With $\\varepsilon = 10^{-5}$ and $x = (0.5, 1.5)$.",
    "$$\n0.9^{10} = 0.35\n$$",
    "`eps=1e-5` in ``x * 0.5``.",
    "```python\nx = 0.5\n```",
    "Section 4.1 and Figure 3.2 of arXiv:2002.04745, with PyTorch 2.13 and Jupyter Book 1.0.4.",
    "Do it three times, on a 64 × 64 matrix.",
    'It is said that it is "about 10 % faster". Is it?',
    "```{math}\n0.5\n```",
    ":::{quick-check} slope\n:value: 1 / 2\n\nWhat?\n\n- [ ] It is\n  0.4.\n  - No.\n- [x] It is 0.5.\n  - Yes.\n:::",
    "```{figure} a.png\n:width: 50 %\n```",
]


@pytest.mark.parametrize("text", PLANTED)
def test_a_typed_result_is_found(text):
    assert found_in(text)


@pytest.mark.parametrize("text", GOOD)
def test_what_is_no_typed_result_passes(text):
    assert found_in(text) == []


def test_a_fault_is_named_by_its_line():
    assert found_in("# Title\n\nText.\n\n:::{note}\nText.\n\nIt is 0.5.\n:::\n") == [(8, "0.5", "It is 0.5.")]


def test_the_words_of_a_figure():
    assert list(found_in_alt('figures.show(fig, "It falls to 0.5.")')) == [(1, "0.5", "It falls to 0.5.")]
    assert list(found_in_alt('figures.show(fig, f"It falls to {low:.1f} by 3 blocks.")')) == []
    assert list(found_in_alt('print("0.5")')) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page(path):
    assert found_in(path.read_text("utf-8")) == []


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_notebook(path):
    faults = faults_of(notebook_text.read_file(path)["cells"])
    assert not faults, "\n".join(faults)


def faults_of(cells):
    faults = []
    behind = ChapterCode(cells, checkout.ROOT)
    for n, cell in enumerate(cells, 1):
        source = "".join(cell["source"])
        found = found_in(source) if cell["cell_type"] == "markdown" else found_in_alt(behind.expanded(source))
        faults += [f"cell {n}, line {line}: {match!r} in {sentence!r}" for line, match, sentence in found]
    return faults


def test_a_typed_result_in_a_function_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    cell = module(tmp_path, 'def draw(fig):\n    figures.show(fig, "It falls to 0.5.")')
    assert faults_of([cell, code(source="chapter.draw(fig)")]) == ["cell 2, line 8: '0.5' in 'It falls to 0.5.'"]
