"""Every page for learners has a box of objectives, predictions, quick checks, exercises and further reading."""

import re

import pytest
from helpers import quick_check_texts
from subnorm_book import notebook_text

from tools.checkout import chapters

SECTIONS = ["Quick checks", "Summary", "Exercises", "Further reading"]


def text(path):
    cells = notebook_text.read_file(path)["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def faults(page, checks_wanted):
    box = page.split("\n## ")[0]
    for promise in ("**You will be able to**", "**You need**"):
        if promise not in box:
            yield f"the box at the top does not say {promise}"
    if ":::{predict} " not in page and ":class: predict" not in page:
        yield "nothing is predicted"
    headings = re.findall(r"^## (.*)$", page, flags=re.MULTILINE)
    if headings[-len(SECTIONS) :] != SECTIONS:
        yield f"the page ends with {headings[-len(SECTIONS) :]}, not with {SECTIONS}"
        return
    checks = page.split("\n## Quick checks\n")[1].split("\n## Summary\n")[0]
    found = len(quick_check_texts.found_in(checks))
    if found < checks_wanted:
        yield f"{found} quick checks, {checks_wanted} are wanted"
    exercises = page.split("\n## Exercises\n")[1].split("\n## Further reading\n")[0]
    if not re.search(r"^1\. \*\(Level \d, \d+ minutes\)\*", exercises, flags=re.MULTILINE):
        yield "no exercise says its level and its minutes"
    if "{dropdown}" not in exercises:
        yield "no exercise has a folded hint or solution"


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_notebook(path):
    is_chapter = re.match(r"\d\d-", path.name)
    assert list(faults(text(path), 3 if is_chapter else 2)) == []


#: Pages that readers look things up in open with the means to do so.
LOOKED_UP = {"07a-placements-one-by-one": "a table", "09d-when-something-breaks": "a search field"}


def opens_with_a_picture(cells):
    box = next(k for k, cell in enumerate(cells) if "**You will be able to**" in "".join(cell["source"]))
    return any("image/png" in output.get("data", {}) for cell in cells[:box] for output in cell.get("outputs", []))


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_a_page_opens_with_a_picture(path):
    cells = notebook_text.read_file(path)["cells"]
    assert opens_with_a_picture(cells) or path.stem in LOOKED_UP


GOOD = """# Title

:::{admonition} This chapter
**You will be able to**
- do it.

**You need** nothing.
:::

## A section

:::{admonition} Predict
:class: predict
What?
:::

## Quick checks

:::{quick-check} this-or-that

Which?

- [ ] This.
  - It is not that.
- [x] That.
  - It is that.
- [ ] Both.
  - Only one is.

:::

## Summary

- It is that. {claim}`01-a`

## Exercises

1. *(Level 1, 5 minutes)* Do it.
   :::{dropdown} Hint
   Begin.
   :::

## Further reading

- A book."""

PLANTED = [
    ("**You need** nothing.", ""),
    ("- do it.", "- do it.\n\n## B\n"),
    (":class: predict\n", ""),
    ("## Summary", "## In short"),
    ("## Further reading", "## More"),
    (":::{quick-check} this-or-that", "Which?\n\n:::{dropdown} Answer"),
    ("Which?\n\n- [ ]", "## Which?\n\n- [ ]"),
    ("*(Level 1, 5 minutes)* ", ""),
    (":::{dropdown} Hint\n   Begin.\n   :::", ""),
]


def test_a_good_page_has_no_fault():
    assert list(faults(GOOD, 1)) == []


@pytest.mark.parametrize(("was", "now"), PLANTED)
def test_a_planted_fault_is_found(was, now):
    assert was in GOOD
    assert list(faults(GOOD.replace(was, now), 1))


def test_checks_are_counted():
    assert list(faults(GOOD, 3)) == ["1 quick checks, 3 are wanted"]
