"""What a main chapter asks of a first reading, counted over its built page."""

import re

import pytest
from bs4 import BeautifulSoup
from helpers.built import up_to_date

from tools.checkout import PAGES, chapters

WORDS = 1800
PREDICTIONS = 3
ABOVE = 120  # words above the first figure: it is on the first screen
APART = {"Quick checks", "Exercises", "Further reading"}
# marks, controls, code and formulas; what is folded; and the lines that the book adds
NO_WORDS = (
    "script, style, svg, pre, math, .math, .live-controls, .headerlink, sup.claim, p.supports, details, .opening, "
    ".chapter-of, .deep-dives, div.citation, .try-it, template"
)
CHAPTERS = [path.stem for path in chapters() if re.match(r"\d\d-", path.name)]


def first_reading(page):
    """Without what is folded, and without the sections after the summary."""
    article = BeautifulSoup(str(BeautifulSoup(page, "html.parser").select_one("article")), "html.parser")
    for section in article.select("section"):
        if section.find(re.compile("^h[1-6]$")).find(string=True, recursive=False) in APART:
            section.decompose()
    return article


def words(article):
    for part in article.select(NO_WORDS):
        part.decompose()
    return len(article.get_text(" ").split())


def faults_of(page):
    article = first_reading(page)
    if (count := words(article)) > WORDS:
        yield f"a first reading of {count} words, limit {WORDS}: move a section to a second reading, or cut"
    boxes = article.select("[data-predict]")
    if len(boxes) < PREDICTIONS:
        yield f"{len(boxes)} Predict boxes, at least {PREDICTIONS}"
    yield from (f"nothing waits for the box {box['data-predict']}" for box in boxes if not waits(article, box))
    opening = article.select_one("figure[data-live], [data-predict]")
    if opening is None or opening.name != "figure":
        yield "no live figure before the first Predict box"
    elif (above := sum(len(text.split()) for text in opening.find_all_previous(string=True))) > ABOVE:
        yield f"{above} words above the first live figure, limit {ABOVE}"


def waits(article, box):
    return article.select_one(f'.foretold[data-for="{box["data-predict"]}"] > :not(script)')


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_first_reading_is_short_and_asks(name):
    assert up_to_date()
    assert list(faults_of((PAGES / "notebooks" / f"{name}.html").read_text("utf-8"))) == []


FIGURE = '<figure data-live="chart"></figure>'


def page(before=FIGURE, after=""):
    box = '<div data-predict="k{0}"></div><div class="foretold" data-for="k{0}"><script></script><p>x</p></div>'
    boxes = "".join(box.format(k) for k in range(PREDICTIONS))
    return f"<article><section><h1>T</h1>{before}<section><h2>One</h2>{boxes}</section>{after}</section></article>"


LONG = "word " * WORDS


@pytest.mark.parametrize(
    ("html", "said"),
    [
        (page(), []),
        (page(after=f"<details><summary>s</summary>{LONG}</details>"), []),
        (page(after=f"<section><h2>Exercises</h2>{LONG}</section>"), []),
        (page(after=f"<section><h2>Summary</h2>{LONG}</section>"), ["a first reading of"]),
        (page(before="<p>No figure</p>"), ["no live figure"]),
        (page(before="word " * ABOVE + FIGURE), ["words above"]),
        (page().replace('data-predict="k1"', ""), ["2 Predict boxes"]),
        (page().replace("<p>x</p></div></section>", "</div></section>"), ["nothing waits"]),
    ],
)
def test_the_test(html, said):
    found = list(faults_of(html))
    assert len(found) == len(said)
    assert all(fault.startswith(start) or start in fault for fault, start in zip(found, said, strict=True))
