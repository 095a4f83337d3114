"""A notebook's plain Markdown becomes the book's roles and directives, and what is out of date is a fault."""

import re

import pytest
from subnorm_book.notebook_text import Citation, Reader, first_uses, read_cells, read_file

from tools.refresh import notebooks

SAID = {"02": {"slope": "7.8e-13", "share": "39"}}
PAPERS = {
    "https://arxiv.org/abs/1512.03385": Citation("he2016deep", "He et al.", "2016"),
    "https://arxiv.org/abs/1607.06450": Citation("ba2016layer", "Ba et al.", "2016"),
}
TERMS = ["LayerNorm", "residual connection", "residual stream", "transformer block", "Pre-LN", "token"]
HE = "[He et al., 2016](https://arxiv.org/abs/1512.03385)"
BA = "[Ba et al., 2016](https://arxiv.org/abs/1607.06450)"


def reader():
    return Reader(lambda number: SAID.get(number, {}), PAPERS, TERMS)


FORMS = {
    "a measured number": ("of it, 7.8e-13<!-- 02:slope -->, is", "of it, {val}`02:slope`, is"),
    "a chosen number": ("Stack 32<!-- chosen --> layers", "Stack {given}`32` layers"),
    "a claim": ("So it is.<!-- claim: 02-a bib:b -->", "So it is. {claim}`02-a bib:b`"),
    "a claim of a row": ("| x | <!-- claim: 02-a --> |", "| x | {claim}`02-a` |"),
    "a phrase that sets a figure": ("Try *at 2*<!-- gain: f=2 -->.", "Try {set}`at 2 <gain: f=2>`."),
    "a term": ("Each token<!-- term: token --> is", "Each {term}`token` is"),
    "a term in other words": ("QK-norm<!-- term: query-key norm --> is", "{term}`QK-norm <query-key norm>` is"),
    "a number of an equation": ("by (2.3)<!-- eq-a -->", "by {eq}`eq-a`"),
    "a citation": (f"so ({HE}).", "so {cite:p}`he2016deep`."),
    "two citations": (f"so ({HE}; {BA})", "so {cite:p}`he2016deep,ba2016layer`"),
    "a citation among words": (f"(as in {HE})", "(as in {cite:alp}`he2016deep`)"),
    "a citation in a sentence": (
        "[Ba et al. (2016)](https://arxiv.org/abs/1607.06450) say",
        "{cite:t}`ba2016layer` say",
    ),
    "another link to a paper": ("[code](https://arxiv.org/abs/1512.03385)", "[code](https://arxiv.org/abs/1512.03385)"),
    "an equation": ("<!-- eq-a -->\n$$\nx \\tag{2.1}\n$$", "$$\nx\n$$ (eq-a)"),
    "a second reading": ("<!-- second-reading symptom nan -->\n## A", "{.second-reading .symptom .nan}\n## A"),
    "a box": ("> **Note well**\n>\n> Text.", ":::{admonition} Note well\nText.\n:::"),
    "a warning": ("> **Often said**\n>\n> Text.", ":::{admonition} Often said\n:class: warning\nText.\n:::"),
    "a quotation": ("> Text.\n> More.", "> Text.\n> More."),
    "a fold": (
        "<details><summary>Hint</summary>\n\nText.\n\n</details>",
        ":::{admonition} Hint\n:class: dropdown\nText.\n:::",
    ),
    "a fold in a list": (
        "1. What?\n   <details><summary>Hint</summary>\n\n   Text.\n\n   </details>\n2. Which?",
        "1. What?\n   :::{dropdown} Hint\n   Text.\n   :::\n2. Which?",
    ),
    "a box in a fold": (
        "<details><summary>A</summary>\n\n> **B**\n>\n> C\n\n</details>",
        "::::{admonition} A\n:class: dropdown\n:::{admonition} B\nC\n:::\n::::",
    ),
    "a choice": (
        "> **Predict** <!-- left -->\n>\n> What?\n>\n> 1. All\n>    of it.\n> 2. None.\n>\n"
        "> <details><summary>Answer</summary>Option 2. It halves.</details>",
        ":::{predict} left\n\nWhat?\n\n- [ ] All\n  of it.\n- [x] None.\n\nIt halves.\n:::",
    ),
    "a guess": (
        "> **Predict** <!-- g -->\n>\n> How?\n>\n> <details><summary>Answer</summary>39<!-- 02:share --></details>",
        ":::{predict} g\n:number: 02:share\n\nHow?\n:::",
    ),
    "a percentage": (
        "> **Predict** <!-- g -->\n>\n> How?\n>\n> <details><summary>Answer</summary>39<!-- 02:share --> %</details>",
        ":::{predict} g\n:number: 02:share\n:percent:\n\nHow?\n:::",
    ),
    "a curve": ("> **Predict** <!-- c -->\n>\n> Draw it.", ":::{predict} c\n:curve:\n\nDraw it.\n:::"),
    "a quick check": (
        "> **Quick check** <!-- q value: 2 * 3 -->\n>\n> What?\n>\n> 1. 5\n> 2. 6\n>\n"
        "> <details><summary>Answer</summary>\n>\n> 1. Too few.\n> 2. **Right.** All.\n>\n> </details>",
        ":::{quick-check} q\n:value: 2 * 3\n\nWhat?\n\n- [ ] 5\n  - Too few.\n- [x] 6\n  - All.\n:::",
    ),
    "code": ("`5<!-- chosen -->`\n\n```\n> **Predict** <!-- a -->\n```", None),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_becomes_what_the_book_has_for_it(form):
    text, wanted = FORMS[form]
    one = reader()
    assert (one.text(text), one.faults) == (wanted or text, [])


FAULTS = {
    "a stale number": ("7.7e-13<!-- 02:slope -->", "the text says 7.7e-13 for 02:slope, its cell 7.8e-13"),
    "an unknown number": ("5<!-- 02:speed -->", "no notebook says 02:speed"),
    "a note that is no form": ("A <!-- chosne --> note", "<!-- chosne --> is no form"),
    "a chosen word": ("many<!-- chosen -->", "<!-- chosen --> is no form"),
    "a macro of the book": (r"$\LN(x)$", r"\\LN is a macro of the book"),
    "other authors": ("[Hu et al. (2016)](https://arxiv.org/abs/1512.03385)", "calls .* 'He et al., 2016'"),
    "a paper without an entry": ("([Hu et al., 2016](https://a.b/c))", "cites a paper that the bibliography has not"),
    "an equation without a number": ("<!-- eq-a -->\n$$\nx\n$$", "equation eq-a has no"),
    "a number within the lines": ("<!-- eq-a -->\n$$\n\\b{a}x \\tag{2.1}\n\\end{a}\n$$", "no .* at its end"),
    "a fold without its end": ("<details><summary>A</summary>\n\nText.", "is never closed"),
    "an answer without a number": (
        "> **Predict** <!-- p -->\n>\n> What?\n>\n> 1. a\n> 2. b\n>\n> <details><summary>Answer</summary>b</details>",
        "the answer to predict p must be an option and the reason",
    ),
    "an answer too few": (
        "> **Quick check** <!-- q -->\n>\n> What?\n>\n> 1. a\n> 2. b\n>\n> <details><summary>Answer</summary>\n>\n"
        "> 1. **Right.**\n>\n> </details>",
        "quick check q has 2 options and 1 answers",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_does_not_hold_is_a_fault(fault):
    text, message = FAULTS[fault]
    one = reader()
    one.text(text)
    assert [bool(re.search(message, said)) for said in one.faults] == [True]


def test_a_new_number_is_written_into_the_text():
    assert reader().renewed("It is 5<!-- 02:slope --> or 4<!-- chosen -->.") == (
        "It is 7.8e-13<!-- 02:slope --> or 4<!-- chosen -->."
    )


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        ("LayerNorm and LayerNorm.", [("LayerNorm", 0)]),
        ("## LayerNorm\n\nSee LayerNorm.", [("LayerNorm", 18)]),
        ("`LayerNorm`, $LayerNorm$, [LayerNorm](a) and\n\n```python\nLayerNorm\n```", []),
        ("Residual\nconnections.", [("residual connection", 0)]),
        ("A transformer block of a residual stream.", [("residual stream", 25), ("transformer block", 2)]),
        ("Pre-LNs and Pre-LN-like.", [("Pre-LN", 0)]),
        ("A token.", []),  # an everyday word, too
        ("{term}`LayerNorms <LayerNorm>` and LayerNorm.", []),
    ],
)
def test_the_first_use_of_a_term_is_linked(text, linked):
    assert [(name, start) for name, start, _ in first_uses(text, TERMS)] == linked


def test_a_notebook_is_read_below_its_title():
    markdown = [
        {"cell_type": "markdown", "source": [text], "metadata": {}}
        for text in ("# LayerNorm\n", "A LayerNorm.", "LayerNorm.")
    ]
    table = {
        "cell_type": "code",
        "source": "",
        "metadata": {},
        "outputs": [{"data": {"text/markdown": ["| 2<!-- chosen --> |"]}}],
    }
    notebook = {"cells": [*markdown, table]}
    read_cells(notebook, reader())
    assert [cell["source"] for cell in notebook["cells"]] == ["# LayerNorm\n", "A {term}`LayerNorm`.", "LayerNorm.", ""]
    assert table["outputs"][0]["data"]["text/markdown"] == "| {given}`2` |"


def test_the_book_shows_the_svg_of_a_figure():
    """Which the output has where no notebook shows it."""
    cell = {"cell_type": "code", "metadata": {}, "source": ["show()"]}
    cell["outputs"] = [{"data": {"image/png": "iVBORw0"}, "metadata": {"wide": "<svg>a</svg>", "narrow": "<svg/>"}}]
    read_cells({"cells": [cell]}, reader())
    assert cell["outputs"][0]["data"] == {"image/png": "iVBORw0", "image/svg+xml": "<svg>a</svg>"}


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("-12.6", "−12.6"),
        ("-0.015 ± 0.028", "−0.015 ± 0.028"),
        ("0.00 [-0.01, 0.02]", "0.00 [−0.01, 0.02]"),
        ("-3 to -1 <!-- claim: 02-a -->", "−3 to −1 {claim}`02-a`"),
        ("-4.2\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10⁻⁷", "−4.2\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10⁻⁷"),
        ("over axis -1", "over axis -1"),
        ("`x.mean(-1)`", "`x.mean(-1)`"),
        ("2024-05-01", "2024-05-01"),
    ],
)
def test_a_printed_table_has_minus_signs(cell, shown):
    output = {"data": {"text/markdown": f"| a | b |\n|---|---|\n| x | {cell} |"}}
    read_cells({"cells": [{"cell_type": "code", "metadata": {}, "outputs": [output]}] * 2}, reader())
    assert output["data"]["text/markdown"] == f"| a | b |\n|---|---|\n| x | {shown} |"


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_a_notebook_has_no_fault(path):
    assert read_file(path)["cells"]


@pytest.mark.parametrize(("tags", "kept"), [(["turn:n"], False), (["turn:n", "try-it"], True), ([], True)])
def test_a_page_asks_to_change_a_number_only_where_it_can_be_changed(tags, kept):
    above = "It grows.\n\n**Try:** set `n`\nto 3."
    cells = [
        {"cell_type": "markdown", "source": [above], "metadata": {}},
        {"cell_type": "code", "source": ["n = 2  # try 3"], "metadata": {"tags": tags}, "outputs": []},
    ]
    read_cells({"cells": cells}, reader())
    assert cells[0]["source"] == (above if kept else "It grows.")
