"""The page of symptoms: a pasted message finds its entry, and a link to an entry opens it."""

import pytest
from helpers.visit import PHONE, opened

PAGE = "notebooks/09d-when-something-breaks.html"
SHOWN = "section.symptom:not([hidden])"
# with other numbers than the page's
PASTED = (
    "RuntimeError: Given normalized_shape=[1024], expected input with shape [*, 1024], but got input of size[7, 320]"
)


@pytest.fixture
def symptoms(browser, server):
    with opened(browser, server, [], viewport=PHONE) as page:
        page.goto(server + PAGE)
        yield page


def test_a_pasted_message_finds_its_entries(symptoms):
    everything = symptoms.locator(SHOWN).count()
    assert everything >= 40
    symptoms.locator("#row-words").fill(PASTED)
    found = symptoms.locator(f"{SHOWN} > h3").all_inner_texts()
    assert 1 <= len(found) <= 2
    assert all(heading.startswith("Given normalized_shape") for heading in found)
    assert not symptoms.locator("#nan-or-inf").is_visible()  # a group without an entry
    symptoms.locator("#row-words").fill("")
    assert symptoms.locator(SHOWN).count() == everything


def test_a_single_entry_opens(symptoms):
    symptoms.locator("#row-words").fill("ValueError: optimizer got an empty parameter list")
    assert symptoms.locator(SHOWN).count() == 1
    assert symptoms.locator(f"{SHOWN} .cell").first.is_visible()


def test_what_no_entry_has_finds_none(symptoms):
    symptoms.locator("#row-words").fill("zebra giraffe okapi x")
    assert symptoms.locator(SHOWN).count() == 0


@pytest.mark.parametrize("kind", ["error", "warning", "nan", "wrong", "stuck", "apart"])
def test_every_kind_has_entries(symptoms, kind):
    symptoms.locator(f".row-filter [value={kind}]").check()
    assert 4 < symptoms.locator(SHOWN).count() < 40


def test_a_link_to_an_entry_opens_it(browser, server):
    with opened(browser, server, [], viewport=PHONE) as page:
        page.goto(f"{server}{PAGE}#optimizer-got-an-empty-parameter-list")
        assert page.locator("#optimizer-got-an-empty-parameter-list .cell").first.is_visible()
        assert page.locator(f"{SHOWN} > details[open]").count() == 1
