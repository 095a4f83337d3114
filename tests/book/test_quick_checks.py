"""Quick checks: what the directive renders and rejects; and the numbers in the book's own checks, recomputed."""

import json
import re
from collections import Counter

import numpy as np
import pytest
from bs4 import BeautifulSoup
from helpers import quick_check_texts
from helpers.small_book import build, html, page
from subnorm_book import notebook_text

import subnorm.numpy
from tools.checkout import chapters

BIAS = r"""
:::{quick-check} bias-false
:value: rms_norm(np.array([3.0, 4.0]))[0]

A colleague sets `bias=False`. What of $\gamma$?

- [ ] It is 0.60.
  - A length is no mean.
- [x] It is 0.85, in {doc}`a`.
  - Then $3\sqrt2/5$.

    And no more.
- [ ] It is *gone*.
  - It is not.

:::
"""
THREES = """
:::{quick-check} threes

What comes of threes?

- [x] Ones.
  - By their root mean square.
- [ ] Zeros.
  - No mean is subtracted.
- [ ] Threes.
  - They are divided.

:::
"""
TOC = "Chapter {doc}`a`\n: What?\n\nChapter {doc}`b`\n: What?\n\n```{toctree}\na\n```"


@pytest.fixture
def book(tmp_path):
    """A first page that lists two chapters; only the first of them is in its own table of contents."""
    page(tmp_path, TOC)
    write(tmp_path, BIAS + THREES)
    (tmp_path / "b.md").write_text("# B\n\nNo checks.\n", "utf-8")
    return tmp_path


def write(folder, text):
    (folder / "a.md").write_text(f"# A\n\n## Quick checks\n{text}\n\n```{{toctree}}\nb\n```\n", "utf-8")


def soup(folder, name="a"):
    return BeautifulSoup(html(folder, name), "html.parser")


def stored_answers(folder, name="a", within=".checks-head"):
    return json.loads(soup(folder, name).select_one(f"{within} [data-checks]")["data-checks"])


def test_a_check_is_a_form_that_needs_no_script(book):
    assert build(book) == ""
    assert build(book) == ""
    form, second = soup(book).select("fieldset.quick-check")
    assert form.legend.text.startswith("1. A colleague sets bias=False. What of ")
    assert form.legend.select("code")
    assert form.legend.select(".katex")
    assert second.legend.text == "2. What comes of threes?"
    radios = form.select("input[type=radio]")
    assert {radio["name"] for radio in radios} == {"check-a-bias-false"}
    assert [form.find("label", attrs={"for": radio["id"]}).text for radio in radios] == [
        "It is 0.60.",
        "It is 0.85, in A.",
        "It is gone.",
    ]
    reasons = [radio.parent.select_one("[aria-live=polite] .why") for radio in radios]
    assert [reason.strong.text for reason in reasons] == ["Not quite.", "Right.", "Not quite."]
    assert [paragraph.text for paragraph in reasons[1].find_all("p")][1] == "And no more."
    assert "rms_norm" not in html(book, "a")


def test_what_is_remembered_keeps_to_its_option(book):
    """Reordering or adding checks changes neither the name of a check nor the value of an option."""
    build(book)
    before = stored_answers(book)
    assert list(before) == ["a-bias-false", "a-threes"]
    assert soup(book).find("input", value=before["a-threes"]).find_next("label").text == "Ones."
    lines = THREES.splitlines(keepends=True)
    write(book, "".join([*lines[:5], *lines[7:9], *lines[5:7], *lines[9:]]) + BIAS)
    assert build(book) == ""
    assert [label.text for label in soup(book).select("label")][2] == "Ones."
    assert stored_answers(book) == before


def test_the_first_page_follows_a_chapter_that_it_does_not_list_itself(book):
    build(book)
    assert stored_answers(book, "index", "dt") == stored_answers(book)
    assert len(soup(book, "index").select("[data-checks]")) == 1
    (book / "b.md").write_text(f"# B\n{THREES}", "utf-8")
    assert build(book) == ""
    assert len(soup(book, "index").select("[data-checks]")) == 2


def test_only_pages_that_need_it_load_the_script(book):
    build(book)
    assert {name: "quick-checks.js" in html(book, name) for name in ("index", "a", "b")} == {
        "index": True,
        "a": True,
        "b": False,
    }


def test_another_builder_writes_a_list(book):
    assert build(book, "text") == ""
    text = (book / "_build/text/a.txt").read_text("utf-8")
    assert "1. A colleague sets" in text
    assert "* Zeros." in text
    assert "**Not quite.** No mean is subtracted." in text


FAULTS = {
    "no id": ("quick-check} threes", "quick-check}", "quick check '': its id is not of the form"),
    "an odd id": ("} threes", "} Threes", "its id is not of the form ignores-bias"),
    "an id twice": ("} threes", "} bias-false", "another check of the page has its id"),
    "no question": ("What comes of threes?\n", "", "it does not begin with its question"),
    "two paragraphs": ("threes?", "threes?\n\nAnd fours?", "must be followed by a list of options"),
    "a word after it": ("are divided.\n", "are divided.\n\nSo there.\n", "must be followed by a list of options"),
    "two options": ("- [ ] Threes.\n  - They are divided.\n", "", "it needs at least 3 options; it has 2"),
    "none right": ("[x] Ones", "[ ] Ones", "0 of its options are right"),
    "two right": ("[ ] Zeros", "[x] Zeros", "2 of its options are right"),
    "the same twice": ("[ ] Zeros.", "[ ] Ones.", "two of its options are the same"),
    "no box": ("[ ] Zeros.", "Zeros.", "an option does not begin with [ ] or [x]: 'Zeros.'"),
    "not explained": ("  - They are divided.\n", "", "is not explained by one point below it: 'Threes.'"),
    "explained twice": ("  - They", "  - No.\n  - They", "is not explained by one point below it"),
    "a verdict": ("  - They are", "  - Almost: they are", "begins with a verdict, which the page writes: 'Almost: th"),
    "no sentence": ("  - They are divided.", "  - $$ 3 $$", "an explanation does not begin with a sentence"),
    "no value": ("} threes\n", "} threes\n:value:\n", ":value: is empty"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_warns_in_every_build(book, fault):
    was, now, message = FAULTS[fault]
    assert was in THREES
    write(book, BIAS + THREES.replace(was, now))
    assert message in build(book)
    assert message in build(book)


def test_a_warning_names_page_and_line(book):
    write(book, THREES.replace("[x]", "[ ]"))
    assert "a.md:5: WARNING: quick check 'threes': 0 of its options are right" in build(book)


# The book's own

NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:,\d{3})*(?:\.\d+)?")


BOOK = [
    pytest.param(check, id=f"{path.name.partition('-')[0]}-{check.name}")
    for path in chapters()
    for cell in notebook_text.read_file(path)["cells"]
    if cell["cell_type"] == "markdown"
    for check in quick_check_texts.found_in("".join(cell["source"]))
]


def states(said, values):
    """Whether the numbers in a text (except in formulas) are these values, to the last printed digit."""
    numbers = NUMBER.findall(re.sub(r"\$[^$]*\$", "", said))
    found = [number.replace(",", "").replace("−", "-") for number in numbers]
    steps = [10.0 ** -len(number.partition(".")[2]) for number in found]
    return len(found) == len(values) and all(
        abs(float(number) - value) <= step / 2 for number, value, step in zip(found, values, steps, strict=True)
    )


def faults(check):
    values = np.atleast_1d(eval(check.value, {**vars(subnorm.numpy), "np": np}))
    for right, said in check.options:
        if states(said, values) != right:
            yield f"{check.value} is {values}, and the {'right' if right else 'wrong'} option says {said!r}"


@pytest.mark.parametrize("check", [check for check in BOOK if check.values[0].value])
def test_the_right_number_is_right_and_no_wrong_one_is(check):
    assert list(faults(check)) == []


PLANTED = [
    ("[x] It is 0.85", "[x] It is 0.86"),
    ("[x] It is 0.85", "[x] It is −0.85"),
    ("[x] It is 0.85", "[x] It is 850,000"),
    ("[x] It is 0.85", "[x] It is so"),
    ("[ ] It is 0.60", "[ ] It is 0.849"),
    ("np.array([3.0, 4.0])", "np.array([3.0, 5.0])"),
]


def test_a_good_number_has_no_fault():
    (check,) = quick_check_texts.found_in(BIAS)
    assert list(faults(check)) == []


@pytest.mark.parametrize(("was", "now"), PLANTED)
def test_a_planted_number_is_found(was, now):
    assert was in BIAS
    (check,) = quick_check_texts.found_in(BIAS.replace(was, now))
    assert list(faults(check))


@pytest.mark.parametrize("number", range(1, 7))
def test_each_chapter_asks_for_a_number(number):
    names = [check.id for check in BOOK if check.values[0].value]
    assert any(name.startswith(f"0{number}-") for name in names)


def test_the_right_option_stands_in_every_place():
    """Always choosing the same option gets fewer than half right."""
    places = Counter([right for right, _ in check.values[0].options].index(True) for check in BOOK)
    assert max(places.values()) < places.total() / 2
