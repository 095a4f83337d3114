"""What the pages quote, claim and call right is what somebody has read in the diff of `reviewed.json`."""

import json

import pytest
from helpers.small_book import code, module

from tools import reviewed

TEXT = """# A page

It is {val}`02:slope`. They start as Pre-LN. {claim}`07-start claim:02-slope`

:::{predict} which

Which?

- [x] The first,
  of both.
- [ ] The second.
:::
"""


def flat(index):
    """{(page, part, name): value}"""
    return {(p, q, name): v for p, parts in index.items() for q, names in parts.items() for name, v in names.items()}


def changed_places(now, before):
    """The places at which two such indexes differ."""
    now, before = flat(now), flat(before)
    places = sorted(place for place in {*now, *before} if now.get(place) != before.get(place))
    return [f"{', '.join(place)}: {now.get(place)}, reviewed: {before.get(place)}" for place in places]


def test_every_quote_claim_and_right_answer_was_reviewed():
    found = changed_places(reviewed.found(), json.loads(reviewed.STORED.read_text("utf-8")))
    assert found == [], "If each of these is meant: python -m tools.reviewed, and commit the file that it writes"


def index(text):
    return {
        "page": {"quotes": reviewed.quotes(text), "claims": reviewed.claims(text), "answers": reviewed.answers(text)}
    }


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("02:slope", "02:floor"),
        ("claim:02-slope", "claim:02-floor"),
        ("as Pre-LN", "as Post-LN"),
        ("- [x] The first,\n  of both.\n- [ ] The second.", "- [ ] The first,\n  of both.\n- [x] The second."),
    ],
)
def test_a_change_of_meaning_is_noticed(was, now):
    assert was in TEXT
    assert changed_places(index(TEXT.replace(was, now)), index(TEXT))


@pytest.mark.parametrize(
    ("was", "now"), [("It is", "Here it is"), ("They start", "All of them start"), ("Which?", "Which one?")]
)
def test_rewording_is_no_change(was, now):
    assert changed_places(index(TEXT.replace(was, now)), index(TEXT)) == []


def test_another_number_in_the_words_for_a_figure_is_noticed():
    def cells(word):
        return [{"cell_type": "code", "source": [f'figures.show(fig, alt=f"{{n}} runs. All but {word} lie close.")']}]

    assert reviewed.alts(cells("two")) == {"": ["all", "two"]}
    assert reviewed.alts(cells("five")) == {"": ["all", "five"]}


def test_what_a_function_says_and_draws_is_of_the_cell_that_calls_it(tmp_path, monkeypatch):
    monkeypatch.setattr(reviewed, "ROOT", tmp_path)
    cell = module(tmp_path, 'def prove(fig):\n    say("slope", 1)\n    figures.show(fig, "All but two lie close.")')
    cells = [cell, code(source="chapter.prove(fig)", tags=["claim:03-a"])]
    assert reviewed.cells_of(cells) == {"03-a": ["", "slope"]}
    assert reviewed.alts(cells) == {"": ["all", "two"]}
