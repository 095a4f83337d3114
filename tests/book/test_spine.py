"""The way through the book: places, cards, and what the built pages lead to."""

import re

import pytest
from helpers import small_book

BOX = ":::{admonition} This deep dive\n**You will**\n- do it.\n\n**You need** nothing.\n:::\n"


@pytest.fixture
def book(tmp_path):
    """Chapters 03 and 08, and two deep dives to 03."""
    names = ["03-norms", "03a-backward", "03b-batch", "08-fast"]
    (tmp_path / "index.md").write_text("```{toctree}\nnotebooks/" + "\nnotebooks/".join(names) + "\n```\n", "utf-8")
    for n in names:
        top = small_book.markdown(
            f"*The line of {n}.*\n\n" + (BOX.replace("deep dive", "chapter" if n[2] == "-" else "deep dive"))
        )
        small_book.notebook(tmp_path, top, small_book.markdown("## Summary\n\n- one"), name=n)
    assert small_book.build(tmp_path) == ""
    return tmp_path


def test_each_page_says_where_it_is(book):
    dive = '<a class="reference internal" href="03-norms.html">chapter 3</a>, 1 minutes'
    places = {
        "03-norms": "Chapter 3 of 8, 1 minutes",
        "03a-backward": f"Deep dive to {dive}",
        "08-fast": "Chapter 8 of 8, 1",
    }
    for page, place in places.items():
        html = small_book.html(book, f"notebooks/{page}")
        assert re.search(rf'<p class="chapter-of">{place}.*</p>\s*<h1>', html)
        leads_on = 'Next comes <a class="reference internal" href="08-fast.html">Norms</a>.'
        assert (leads_on in html) == (page == "03-norms")


def test_a_chapter_offers_its_deep_dives_as_cards(book):
    html = small_book.html(book, "notebooks/03-norms")
    cards = re.findall(r'<div class="deep-dive docutils container">(.*?)</div>', html, re.DOTALL)
    assert len(cards) == 2
    assert 'href="03a-backward.html"' in cards[0]
    assert re.search(r"1 minutes</p>\s*<p>The line of 03a-backward\.", cards[0])
    assert 'class="deep-dive ' not in small_book.html(book, "notebooks/03a-backward")
    assert 'class="deep-dive ' not in small_book.html(book, "notebooks/08-fast")


def test_next_leads_over_the_deep_dives(book):
    def leads(page):
        html = small_book.html(book, f"notebooks/{page}")
        return [re.search(rf'<link rel="{rel}"[^>]*href="([^"]*)"', html)[1] for rel in ("prev", "next")]

    assert leads("03a-backward") == leads("03b-batch") == ["03-norms.html", "08-fast.html"]
    assert re.search('<link rel="next"[^>]*href="08-fast.html"', small_book.html(book, "notebooks/03-norms"))
    assert re.search('<link rel="prev"[^>]*href="03-norms.html"', small_book.html(book, "notebooks/08-fast"))
