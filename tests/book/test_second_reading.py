"""A section that a first reading leaves out is folded, and its words are not counted."""

import re

from helpers import small_book

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


def test_other_sections_are_open(tmp_path):
    assert "<details>" not in built(tmp_path, "## One\n\ntext\n\n{.other}\n## Two\n\ntext")


def test_the_contents_of_the_page_list_what_is_inside(tmp_path):
    (tmp_path / "index.md").write_text(
        "# T\n\n```{contents}\n```\n\n{.second-reading}\n## Two\n\n### Inner\n\nx\n", "utf-8"
    )
    assert small_book.build(tmp_path) == ""
    assert 'href="#inner"' in small_book.html(tmp_path)
