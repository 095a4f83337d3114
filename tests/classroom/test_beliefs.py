"""The beliefs of the teacher's page, as the overview reads them."""

import json

import pytest

from subnorm_classroom.errors import Refusal
from subnorm_classroom.reports.beliefs import anchor, read_beliefs
from subnorm_lab.checks import SETS

PAGE = """## ex01 · One

**"Masked means zero."** (Or so.)
: A score of 0 is a score. Read "[](../notebooks/03-x.ipynb#d--or-d-1)". The belief returns as
  `no_mask` and `late_mask` in ex02, ex03 and ex06. Caught by `head`: `zero_mask`,
  `mask_after`; `tail`: `zero_mask`.

## Grade
"""


def course(tmp_path, page=PAGE):
    for folder in ("book", "notebooks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "book/teaching.md").write_text(page, "utf-8")
    sources = {"code": ["# d or d-1"], "markdown": ["## d · or d-1\n"]}
    cells = [{"cell_type": kind, "source": source} for kind, source in sources.items()]
    (tmp_path / "notebooks/03-x.ipynb").write_text(json.dumps({"cells": cells}), "utf-8")
    return tmp_path


def test_an_entry_is_read(tmp_path):
    (one,) = read_beliefs(course(tmp_path))
    assert (one.sheet, one.text, one.page) == ("ex01", '"Masked means zero."', "notebooks/03-x")
    assert one.section == "d · or d-1"
    assert one.catches == {("head", "zero_mask"), ("head", "mask_after"), ("tail", "zero_mask")}
    assert one.returns == {(at, tag) for at in ("ex02", "ex03", "ex06") for tag in ("no_mask", "late_mask")}
    assert one.behind("ex01", "head", "mask_after")
    assert one.behind("ex03", "anything", "late_mask")
    assert not one.behind("ex04", "anything", "late_mask")


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ('Read "[](../notebooks/03-x.ipynb#d--or-d-1)".', "Read on.", "needs: Read"),
        ("Caught by", "Seen in", "needs: Read"),
        ("#d--or-d-1", "#d-or-d-1", "03-x.ipynb has no section #d-or-d-1"),
        ("03-x", "04-x", "04-x.ipynb cannot be read"),
    ],
)
def test_an_entry_that_cannot_be_read_is_an_error(was, now, message, tmp_path):
    with pytest.raises(Refusal, match=message):
        read_beliefs(course(tmp_path, PAGE.replace(was, now)))


def test_without_a_checkout_there_are_no_beliefs(tmp_path):
    with pytest.raises(Refusal, match="Run this in a checkout of the course"):
        read_beliefs(tmp_path)


def test_every_sheet_has_beliefs_and_each_mistake_has_at_most_one_in_its_own_sheet():
    known = read_beliefs()
    assert {one.sheet for one in known} == set(SETS)
    pairs = [pair for one in known for pair in one.catches]
    assert len(pairs) == len(set(pairs))
    assert len({anchor(one.text) for one in known}) == len(known)
