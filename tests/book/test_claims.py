"""Every point of a summary and every row of a comparison table needs a claim."""

import re

import pytest
from subnorm_book import notebook_text

from tools.checkout import chapters

CLAIM = re.compile(r"\{claim\}`[^`]+`")


def sections(cells):
    """(heading, its cells) for each second-level section; a Markdown cell is split at its headings."""
    heading, own = "", []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] != "markdown":
            own.append(cell)
            continue
        for part in re.split(r"^(?=## )", source, flags=re.MULTILINE):
            if part.startswith("## "):
                yield heading, own
                heading, own = part.splitlines()[0][3:], []
            own.append({"cell_type": "markdown", "source": [part]})
    yield heading, own


def bullets(markdown):
    return re.split(r"^- ", markdown, flags=re.MULTILINE)[1:]


def tables(cells):
    """The rows of each table, on the page or in an output, without the header."""
    for cell in cells:
        texts = [cell["source"]] if cell["cell_type"] == "markdown" else []
        texts += [output.get("data", {}).get("text/markdown", "") for output in cell.get("outputs", [])]
        for text in texts:
            for table in re.findall(r"(?:^\|.*\n?)+", "".join(text), flags=re.MULTILINE):
                yield table.strip().splitlines()[2:]


def unclaimed(cells):
    """Points of a summary and rows of a comparison without a claim."""
    for heading, own in sections(cells):
        if heading == "Summary":
            text = "".join("".join(cell["source"]) for cell in own if cell["cell_type"] == "markdown")
            if not bullets(text):
                yield "the summary has no points"
            yield from (point for point in bullets(text) if not CLAIM.search(point))
        if re.search(r"\bcompared\b", heading):
            found = list(tables(own))
            if not found:
                yield f"{heading!r} has no table"
            yield from (row for rows in found for row in rows if not CLAIM.search(row))
    if "Summary" not in [heading for heading, _ in sections(cells)]:
        yield "there is no summary"


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_notebook(path):
    assert list(unclaimed(notebook_text.read_file(path)["cells"])) == []


def markdown(text):
    return {"cell_type": "markdown", "source": [text]}


def output(text):
    return {"cell_type": "code", "source": [], "outputs": [{"data": {"text/markdown": [text]}}]}


TABLE = "| | A |\n|---|---|\n| x | y {claim}`03-x` |\n"
SUMMARY = markdown(
    "## Summary\n\n- One. {claim}`03-a`\n- Two\n  lines. {claim}`03-b bib:x`\n\n## Exercises\n\n- No claim."
)


def test_a_good_notebook_has_no_fault():
    cells = [markdown("# Title\n\n- No claim.\n\n## Both, compared\n\nText."), output(TABLE), SUMMARY]
    assert list(unclaimed(cells)) == []
    assert list(unclaimed([markdown(f"## Both, compared\n\n{TABLE}"), SUMMARY])) == []


PLANTED = {
    "a point without a claim": [markdown("## Summary\n\n- One. {claim}`03-a`\n- Two.")],
    "a summary without points": [markdown("## Summary\n\nAll is well.")],
    "no summary": [markdown("## Exercises\n\nDo it.")],
    "a comparison without a table": [markdown("## Both, compared\n\nText."), SUMMARY],
    "a row without a claim": [markdown("## Both, compared\n\n" + TABLE + "| z | y | |\n"), SUMMARY],
    "a measured row without a claim": [markdown("## Both, compared"), output(TABLE + "| z | y | |\n"), SUMMARY],
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault):
    assert list(unclaimed(PLANTED[fault]))
