"""What a main chapter asks of a first reading, counted over its built page."""

import re
from collections import Counter

import pytest
from bs4 import BeautifulSoup
from helpers.built import up_to_date

from tools.checkout import PAGES, chapters

WORDS = 1800
PREDICTIONS = 3, 4  # at least and at most
ABOVE = 120  # words above the first figure: it is on the first screen
APART = {"Quick checks", "Exercises", "Further reading"}
QUESTION = "The question"  # the last section before those
# marks, controls, code and formulas; what is folded; and the lines that the book adds
NO_WORDS = (
    "script, style, svg, pre, math, .math, .live-controls, .headerlink, sup.claim, p.supports, details, .opening, "
    ".chapter-of, .deep-dives, div.citation, .try-it, template, p.reason"
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
    for name in article.select(".glued"):
        name.unwrap()
    article.smooth()  # a name and its 's are one word
    return len(article.get_text(" ").split())


def faults_of(page):
    article = first_reading(page)
    if (count := words(article)) > WORDS:
        yield f"a first reading of {count} words, limit {WORDS}: move a section to a second reading, or cut"
    boxes = article.select("[data-predict]")
    few, many = PREDICTIONS
    if not few <= len(boxes) <= many:
        yield f"{len(boxes)} Predict boxes, {few} to {many}: a box is for a real surprise"
    for heading, asked in Counter(map(section_of, boxes)).items():
        if asked > 1:
            yield f"{asked} Predict boxes below {heading!r}, at most 1: one gate behind another"
    yield from no_question(article)
    yield from (f"nothing waits for the box {box['data-predict']}" for box in boxes if not waits(article, box))
    opening = article.select_one("figure[data-live], [data-predict]")
    if opening is None or opening.name != "figure":
        yield "no live figure before the first Predict box"
    elif (above := sum(len(text.split()) for text in opening.find_all_previous(string=True))) > ABOVE:
        yield f"{above} words above the first live figure, limit {ABOVE}"


def section_of(box):
    return title(box.find_parent("section"))


def title(section):
    return section.find(re.compile("^h[1-6]$")).find(string=True, recursive=False)


def no_question(article):
    """The story ends with the question that the next chapter answers, and a link to it."""
    *_, last = [one for one in article.select("article > section > section") if title(one) != "Summary"]
    if title(last) != QUESTION or "?" not in last.get_text() or not last.select("a.internal"):
        yield f"it ends with {title(last)!r}, not with {QUESTION!r}, a question and a link"


def waits(article, box):
    return article.select_one(f'.foretold[data-for="{box["data-predict"]}"] > :not(script)')


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_first_reading_is_short_and_asks(name):
    assert up_to_date()
    assert list(faults_of((PAGES / "notebooks" / f"{name}.html").read_text("utf-8"))) == []


FIGURE = '<figure data-live="chart"></figure>'


ASKED = '<section><h2>The question</h2><p>Why? <a class="internal">02</a></p></section>'


def page(before=FIGURE, after="", boxes=3):
    box = '<div data-predict="k{0}"></div><div class="foretold" data-for="k{0}"><script></script><p>x</p></div>'
    sections = "".join(f"<section><h2>S{k}</h2>{box.format(k)}</section>" for k in range(boxes))
    return f"<article><section><h1>T</h1>{before}{sections}{ASKED}{after}</section></article>"


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
        (page(boxes=2), ["2 Predict boxes"]),
        (page(boxes=4), []),
        (page(boxes=5), ["5 Predict boxes"]),
        (page().replace("</section><section><h2>S1</h2>", ""), ["2 Predict boxes below 'S0'"]),
        (page().replace("<p>x</p></div></section>", "</div></section>", 1), ["nothing waits"]),
        (page().replace("Why?", "Why."), ["it ends with"]),
        (page().replace("internal", "external"), ["it ends with"]),
        (page(after="<section><h2>Two</h2></section>"), ["it ends with 'Two'"]),
        (page(after="<section><h2>Summary</h2></section>"), []),
    ],
)
def test_the_test(html, said):
    found = list(faults_of(html))
    assert len(found) == len(said)
    assert all(fault.startswith(start) or start in fault for fault, start in zip(found, said, strict=True))
