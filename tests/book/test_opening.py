"""The lines around a title: how long a page takes is counted, not typed."""

import re

import pytest
from helpers import small_book

PAGE = """:::{admonition} This chapter
**You will be able to**
- do it.

**You need** nothing but [this](https://example.org).
:::

%s

## Quick checks

%s
"""
MINUTE = "word " * 200


def built(folder, text):
    (folder / "index.md").write_text("```{toctree}\nnotebooks/03-norms\n```\n", "utf-8")
    small_book.notebook(folder, small_book.markdown(text))
    warnings = small_book.build(folder)
    return small_book.html(folder, "notebooks/03-norms"), warnings


@pytest.mark.parametrize(
    ("prose", "apart", "minutes"),
    [
        ("Short.", "", 1),
        (MINUTE, "", 2),  # with the words at the top
        (MINUTE * 4, "", 5),
        (MINUTE, MINUTE * 9, 2),
        ("$$" + "x + " * 999 + "x$$", "", 1),
    ],
)
def test_the_minutes_are_counted(tmp_path, prose, apart, minutes):
    page, _ = built(tmp_path, PAGE % (prose, apart))
    assert f'<p class="chapter-of">Chapter 3 of 3, {minutes} minutes</p>' in page


def test_second_readings_are_counted_without_their_proofs(tmp_path):
    (tmp_path / "index.md").write_text("```{toctree}\nnotebooks/03-norms\n```\n", "utf-8")
    more = small_book.markdown(f"<!-- second-reading -->\n## More\n\n{MINUTE * 2}")
    proof = small_book.code(source="pass\n" * 99, tags=["checked"])
    small_book.notebook(tmp_path, small_book.markdown(PAGE % ("Short.", "")), more, proof)
    small_book.build(tmp_path)
    page = small_book.html(tmp_path, "notebooks/03-norms")
    assert "Chapter 3 of 3, 1 minutes, 3 in full</p>" in page
    assert "Second reading, 2 min" in page


def test_the_objectives_are_folded_and_what_is_needed_is_not(tmp_path):
    page, warnings = built(tmp_path, PAGE % ("Short.", ""))
    assert warnings == ""
    assert re.search(r"<details><summary>You will be able to …</summary>\s*<ul.*do it\..*</details>", page, re.DOTALL)
    assert "nothing but" in page.split("<details>")[0]
    assert "This chapter" not in page
    assert page.count('id="with-code"') == 1
    assert "A ✓ after a sentence" not in page


def test_a_page_with_claims_says_what_their_mark_is(tmp_path):
    page, _ = built(tmp_path, PAGE % ("It adds nothing. {claim}`03-adds-nothing test:tests/a.py::test_a`", ""))
    assert page.index("You need") < page.index("A ✓ after a sentence says how we know it") < page.index("<h2>")
