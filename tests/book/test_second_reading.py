"""A section that a first reading leaves out is folded, and its words are not counted."""

import re

import pytest
from bs4 import BeautifulSoup
from helpers import small_book
from helpers.built import up_to_date

from tools.checkout import PAGES

WORDS = "word " * 250


def built(folder, text):
    small_book.page(folder, text)
    assert small_book.build(folder) == ""
    return small_book.html(folder)


def test_a_second_reading_is_folded_below_its_heading(tmp_path):
    html = built(
        tmp_path, f"## One\n\n{{.second-reading}}\n## Two\n\n{WORDS}\n\n### Inner\n\nDeep.\n\n## Three\n\nOpen."
    )
    (folded,) = re.findall(r"<details>.*?</details>", html, re.DOTALL)
    assert re.search(r'<section class="second-reading" id="two">\s*<h2>Two.*?</h2>\s*<details>', html)
    assert "<summary>Second reading, 2 min</summary>" in folded
    assert "Deep." in folded
    assert "Open." not in folded


def test_a_symptom_is_folded_behind_its_own_words(tmp_path):
    html = built(tmp_path, "## One\n\n{.second-reading .symptom}\n### A message\n\nText.")
    assert "<summary>Cause and fix</summary>" in html
    assert "Second reading" not in html


def test_a_symptom_says_cause_and_fix_before_its_cells(tmp_path):
    small_book.notebook(
        tmp_path,
        small_book.markdown("## One\n\n<!-- second-reading symptom nan -->\n### A message"),
        small_book.code(source="breaks()"),
        small_book.markdown("The cause.\n\n**Fix.** Do that."),
        small_book.code(source="fixed()"),
    )
    small_book.page(tmp_path, "x")
    small_book.build(tmp_path)
    fold = BeautifulSoup(small_book.html(tmp_path, "notebooks/03-norms"), "html.parser").select_one("details")
    order = "Cause and fix The cause. Fix. Do that. See it happen breaks() With the fix fixed()"
    assert fold.text.split() == order.split()


def test_other_sections_are_open(tmp_path):
    assert "<details>" not in built(tmp_path, "## One\n\ntext\n\n{.other}\n## Two\n\ntext")


def test_the_contents_of_the_page_list_what_is_inside(tmp_path):
    (tmp_path / "index.md").write_text(
        "# T\n\n```{contents}\n```\n\n{.second-reading}\n## Two\n\n### Inner\n\nx\n", "utf-8"
    )
    assert small_book.build(tmp_path) == ""
    assert 'href="#inner"' in small_book.html(tmp_path)


CLAIM = "A [sum](index) leaves $x$ as it was before. {claim}`a-b bib:x`"
SHORT = "In short: a *sum* leaves the input. {claim}`a-short bib:x` More."


@pytest.mark.parametrize(
    ("text", "gist"),
    [
        (CLAIM, "A sum leaves x as it was before."),
        (f"It is so, whatever the size of the input is. {{claim}}`a-back bib:x`\n\n{CLAIM}", "A sum leaves x"),
        (f"Few words. {{claim}}`a-few bib:x` {CLAIM}", "A sum leaves x"),
        (f"{CLAIM}\n\n{SHORT}", "A sum leaves the input."),
    ],
)
def test_the_label_says_the_gist_without_links(tmp_path, text, gist):
    (tmp_path / "refs.bib").write_text("@misc{x,\n author = {Ba, A}, title = {T}, year = {2016}}\n", "utf-8")
    table = "| A | B |\n|---|---|\n| row | cell {claim}`a-row bib:x` |"
    html = built(
        tmp_path,
        f"## One\n\n{{.second-reading}}\n## Two\n\n{table}\n\nNo claim here. {text}\n\n```{{bibliography}}\n```\n",
    )
    (label,) = re.findall(r"<summary>(.*?)</summary>", html, re.DOTALL)
    said = BeautifulSoup(label, "html.parser")
    for spare in said.select(".katex-mathml"):
        spare.decompose()
    assert said.text.startswith(f"Second reading, 1 min{gist}")
    assert not said.find("a")


def test_the_contents_mark_a_second_reading(tmp_path):
    html = built(tmp_path, "## One\n\nx\n\n{.second-reading}\n## Two\n\nx\n")
    entries = re.findall(r'<li(?: class="([^"]*)")?><a class="[^"]*" href="#(one|two)"', html)
    assert [("second-reading" in classes, name) for classes, name in entries] == [(False, "one"), (True, "two")]


def without_gist(page):
    """The headings of the second readings whose label says nothing of what they hold."""
    for section in BeautifulSoup(page, "html.parser").select("section.second-reading:not(.symptom)"):
        if not section.select_one(":scope > details > summary > .gist"):
            yield section.find(re.compile("^h[1-6]$")).find(string=True, recursive=False)


def test_every_second_reading_says_its_gist():
    assert up_to_date()
    pages = [path.read_text("utf-8") for path in PAGES.glob("notebooks/**/*.html")]
    assert [heading for page in pages for heading in without_gist(page)] == []


def test_a_second_reading_without_gist_is_found(tmp_path):
    html = built(tmp_path, "{.second-reading}\n## One\n\nIn short: a gist.\n\n{.second-reading}\n## Two\n\nx\n")
    assert list(without_gist(html)) == ["Two"]
