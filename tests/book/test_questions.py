"""Every question people ask has a short answer, the section that shows it, and a source."""

import functools
import re
from urllib.parse import urlsplit

import pytest
from bs4 import BeautifulSoup
from helpers.built import up_to_date

from tools import checkout

PAGE = checkout.PAGES / "book/questions.html"
LONGEST = 130  # words, which is ten lines of ninety characters


@pytest.fixture(scope="module")
def page():
    assert up_to_date()
    return PAGE.read_text("utf-8")


def questions(html):
    """{heading: its section} of the built page."""
    found = BeautifulSoup(html, "html.parser").select("article section > h3")
    return {re.sub(r"#$", "", heading.get_text()).strip(): heading.parent for heading in found}


def faults(html):
    """What a question lacks."""
    soup = BeautifulSoup(html, "html.parser")
    listed = {link.get("href") for link in soup.select("nav.contents a")}
    for heading, section in questions(html).items():
        for formula in section.select(".katex-html"):
            formula.replace_with("x")  # a formula counts as a word
        for unread in section.select(".katex-mathml, h3, summary"):
            unread.decompose()
        words = len(section.get_text(" ").split())
        links = [link["href"] for link in section.select("a[href]")]
        if words > LONGEST:
            yield f"{heading}: {words} words"
        if not any(is_a_section(link) for link in links):
            yield f"{heading}: no section shows it"
        if not any(is_a_source(link) for link in links):
            yield f"{heading}: no source"
        if f"#{section['id']}" not in listed:
            yield f"{heading}: not in the index"


def is_a_section(link):
    """Whether a link leads to a section of another page, below its title."""
    file, _, anchor = link.partition("#")
    if urlsplit(link).scheme or not file or not anchor or "references" in file or "glossary" in file:
        return False
    return anchor in section_ids((PAGE.parent / file).resolve())


@functools.cache
def section_ids(path):
    """The ids of a page's sections below its title."""
    heading = r'<section(?=[^>]*\bid="([^"]*)")[^>]*>\s*(?:<span[^>]*></span>\s*)*<h[2-4]'
    return set(re.findall(heading, path.read_text("utf-8")))


def is_a_source(link):
    return re.match(r"https://\S+/\S+", link) or re.search(r"references\.html#id\d+", link)


def test_every_question_is_answered(page):
    assert len(questions(page)) > 50
    assert list(faults(page)) == []


def test_the_recurring_questions_are_among_them(page):
    """The questions that the course promised to answer by name."""
    promised = [
        "LayerNorm in the wrong place",
        "which axes",
        "LayerNorm gradient come out zero",
        "scale residual weights by 1/√N",
        "upcast done in RMSNorm",
        "one more norm at the end",
        "warm-up",
    ]
    headings = " ".join(questions(page))
    assert [words for words in promised if words not in headings] == []


SHOWN = '<a href="../notebooks/03-layer-normalization.html#over-which-axes">03</a>'
ASKED = '<a href="https://github.com/karpathy/minGPT/issues/113">asked</a>'
INDEX = '<nav class="contents"><a href="#q">Why?</a></nav>'
GOOD = f'{INDEX}<article><section id="q"><h3>Why?</h3><p>So. {SHOWN} {ASKED}</p></section></article>'
PLANTED = {
    "words": ("So.", "So it is. " * 50),
    "no section shows it": (SHOWN, ""),
    "no section": (SHOWN, '<a href="../notebooks/03-layer-normalization.html#gone">03</a>'),
    "no section shows": (SHOWN, '<a href="../notebooks/03-layer-normalization.html#layer-normalization">03</a>'),
    "no source": (ASKED, ""),
    "not in the index": (INDEX, ""),
}


def test_a_good_answer_passes(page):
    assert list(faults(GOOD)) == []


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(page, fault):
    assert [fault in found for found in faults(GOOD.replace(*PLANTED[fault]))] == [True]
