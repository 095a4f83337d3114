"""The page of symptoms: each entry shows its message, says cause and fix, links to a chapter, and is repaired."""

import copy
import re

import pytest
from subnorm_book import notebook_text

from tools.refresh import NOTEBOOKS

PAGE = NOTEBOOKS / "09d-when-something-breaks.ipynb"
AT_LEAST = 80
SHOWN = {"error": r"^\w+Error: ", "warning": r"^\w+Warning: "}  # by kind
HEADING = re.compile(r"^\{\.second-reading \.symptom \.(\w+)\}\n### (.+)\Z", re.MULTILINE)
MESSAGE = re.compile(r"(`+)(.+?)\1(?: / .*)?\Z")  # a heading in words quotes none
CHAPTER = re.compile(r"\]\((?:exercises/ex)?\d\d[a-z]?-[\w-]+\.ipynb#[\w-]+\)")


def entries(book):
    """(kind, heading, the three cells after it) of each symptom."""
    for k, cell in enumerate(book["cells"]):
        found = cell["cell_type"] == "markdown" and HEADING.search("".join(cell["source"]))
        if found:
            yield *found.groups(), book["cells"][k + 1 : k + 4]


def output_text(cell):
    """The text of the outputs of an executed cell, in one line."""
    if cell["cell_type"] != "code" or not cell["execution_count"]:
        return ""
    streams = ["".join(output.get("text", "")) for output in cell["outputs"]]
    errors = [f"{output['ename']}: {output['evalue']}" for output in cell["outputs"] if "evalue" in output]
    return " ".join(" ".join(streams + errors).split())


def faults_of(book):
    found = list(entries(book))
    if len(found) < AT_LEAST:
        yield f"{len(found)} symptoms, at least {AT_LEAST} are wanted"
    for kind, heading, (breaks, says, fixed) in found:
        message, text = MESSAGE.match(heading), "".join(says["source"])
        if not output_text(breaks):
            yield f"{heading}: no executed cell that shows it"
        if message and message[2] not in output_text(breaks):
            yield f"{heading}: the cell shows {output_text(breaks)!r}"
        if not re.search(SHOWN.get(kind, ""), output_text(breaks)):
            yield f"{heading}: listed as {kind}, and shows none"
        if says["cell_type"] != "markdown" or "**Fix.** " not in text:
            yield f"{heading}: no Fix"
        if not CHAPTER.search(text):
            yield f"{heading}: no link into a chapter"
        if not output_text(fixed) or any("evalue" in output for output in fixed["outputs"]):
            yield f"{heading}: no cell in which the fix works"


def stored():
    return notebook_text.read_file(PAGE)


def test_every_symptom_is_reproduced_explained_and_fixed():
    assert list(faults_of(stored())) == []


def test_the_page_warns_of_nothing_after_a_fix():
    fixes = [(heading, fixed) for _, heading, (_, _, fixed) in entries(stored())]
    assert {heading: output_text(fixed) for heading, fixed in fixes if "Warning" in output_text(fixed)} == {}


def plain(cells, n):
    """The cells of the n-th symptom that is no lack of learning: heading, what breaks, the message, the fix."""
    found = [HEADING.search("".join(cell["source"])) for cell in cells]
    k = [k for k, heading in enumerate(found) if heading and heading[1] != "stuck"][n]
    return cells[k : k + 4]


PLANTED = {
    "too few": lambda cells: cells.__delitem__(slice(cells.index(plain(cells, AT_LEAST - 20)[0]), None)),
    "another message": lambda cells: plain(cells, 0)[0].update(
        source=["{.second-reading .symptom .error}\n", "### `gone`"]
    ),
    "not executed": lambda cells: plain(cells, 1)[1].update(execution_count=None),
    "no output": lambda cells: plain(cells, -1)[1].update(outputs=[]),
    "no error": lambda cells: plain(cells, 0)[1].update(
        outputs=[{"output_type": "stream", "text": plain(cells, 0)[1]["outputs"][0]["evalue"]}]
    ),
    "no fix": lambda cells: plain(cells, 2)[2].update(source=["See [x](03-layer-normalization.ipynb#what-eps-does)."]),
    "no link": lambda cells: plain(cells, 2)[2].update(source=["**Fix.** Do it. See {doc}`myths`."]),
    "the fix raises": lambda cells: plain(cells, 3)[3].update(outputs=plain(cells, 3)[1]["outputs"]),
    "the fix shows nothing": lambda cells: plain(cells, 3)[3].update(outputs=[]),
    "no fixing cell": lambda cells: cells.remove(plain(cells, 5)[3]),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault):
    book = copy.deepcopy(stored())
    PLANTED[fault](book["cells"])
    assert list(faults_of(book))


def test_every_symptom_has_its_own_heading():
    headings = [heading for _, heading, _ in entries(stored())]
    assert len(set(headings)) == len(headings)
