"""The page of symptoms: a pasted message finds its entry, and a link to an entry opens it."""

import pytest
from helpers.messages import ABSENT, THERE
from helpers.visit import DESK, PHONE, opened

PAGE = "notebooks/09d-when-something-breaks.html"
SHOWN = "section.symptom:not([hidden])"
# with other numbers than the page's
PASTED = (
    "RuntimeError: Given normalized_shape=[1024], expected input with shape [*, 1024], but got input of size[7, 320]"
)


@pytest.fixture(scope="module")
def visited(browser, server):
    with opened(browser, server, [], viewport=PHONE) as page:
        page.goto(server + PAGE)
        yield page


@pytest.fixture
def symptoms(visited):
    """The page, with nothing looked for and every entry folded."""
    visited.locator(".row-filter [value='']").check()
    visited.locator("#row-words").fill("")
    visited.evaluate("document.querySelectorAll('section.symptom > details').forEach((d) => { d.open = false })")
    return visited


def test_a_pasted_message_finds_its_entries(symptoms):
    everything = symptoms.locator(SHOWN).count()
    assert everything >= 40
    symptoms.locator("#row-words").fill(PASTED)
    found = symptoms.locator(f"{SHOWN} > h3").all_inner_texts()
    assert 1 <= len(found) <= 2
    assert all(heading.startswith("Given normalized_shape") for heading in found)
    assert symptoms.locator(f"{SHOWN} > details[open]").count() == 1  # of two the best
    assert not symptoms.locator("#nan-or-inf").is_visible()  # a group without an entry
    symptoms.locator("#row-words").fill("")
    assert symptoms.locator(SHOWN).count() == everything


def found(page, message):
    """The headings that are shown for a pasted message."""
    page.locator("#row-words").fill(message)
    return page.evaluate("(shown) => [...document.querySelectorAll(`${shown} > h3`)].map((e) => e.textContent)", SHOWN)


def test_messages_of_the_page_find_their_entries_alone(symptoms):
    """Two, where the page has one message twice, or two messages that only numbers tell apart."""
    assert len(THERE) >= 85
    answers = {message: found(symptoms, message) for message in THERE}
    assert {message: shown for message, shown in answers.items() if not 1 <= len(shown) <= 2} == {}
    wrong = {m: shown for m, shown in answers.items() if not all(one.startswith(THERE[m]) for one in shown)}
    assert wrong == {}


def test_messages_of_others_find_none(symptoms):
    """A wrong entry costs the reader more than no answer."""
    assert len(ABSENT) >= 110
    answers = {message: found(symptoms, message) for message in ABSENT}
    assert {message: shown for message, shown in answers.items() if shown} == {}


def test_words_that_a_reader_types_find_what_has_all_of_them(symptoms):
    assert any("half precision" in heading for heading in found(symptoms, "nan layernorm"))
    assert 1 < len(found(symptoms, "state_dict")) < 10


# What practitioners type, and the beginning of the entry that has the most likely cause.
TYPED = {
    "The loss diverges": "loss diverges, training diverges, nan, nan loss, my loss is nan, loss becomes NaN, "
    "loss is nan after 200 steps, loss spikes, loss blows up, loss spike, loss explodes, exploding gradients, "
    "loss increases, unstable training",
    "The loss is stuck": "loss does not go down, loss not decreasing, model not learning, loss stuck, "
    "my loss isn't going down, loss plateau, training not converging, accuracy stays the same",
    "Training is slow": "slow, training is slow, layernorm is too slow",
    "The loss falls": "gibberish, gibbersh, model outputs nonsense, random text",
    "The same input": "different results each run, results not reproducible",
    "Another token": "my model outputs the same token again and again",
}


def test_the_most_likely_cause_comes_first(symptoms):
    wanted = {typed: start for start, several in TYPED.items() for typed in several.split(", ")}
    first = {typed: [*found(symptoms, typed), "none"][0] for typed in wanted}
    assert {typed: heading for typed, heading in first.items() if not heading.startswith(wanted[typed])} == {}


def said(page):
    return page.locator(".row-filter [role=status]").inner_text()


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        ("loss is nan after 200 steps", "nan"),
        ("my loss is nan with apex", "nan"),
    ],
)
def test_of_words_that_no_entry_has_all_of_some_find_entries_to_look_at(symptoms, typed, word):
    assert 1 <= len(found(symptoms, typed)) < 40
    assert said(symptoms).startswith("No entry has all of this")
    assert f"“{word}" in said(symptoms)
    assert any(word in heading.lower() for heading in found(symptoms, typed))
    assert symptoms.locator(f"{SHOWN} > details[open]").count() == 0
    assert found(symptoms, "nan")
    assert "No entry" not in said(symptoms)


def test_the_field_for_a_message_has_a_line_of_its_own(symptoms):
    field, choice = (
        symptoms.locator(f".row-filter [type={kind}]").first.bounding_box() for kind in ("search", "radio")
    )
    assert field["width"] > 0.75 * PHONE["width"]
    assert choice["y"] > field["y"] + field["height"] - 1


def test_a_single_entry_opens(symptoms):
    symptoms.locator("#row-words").fill("ValueError: optimizer got an empty parameter list")
    assert symptoms.locator(SHOWN).count() == 1
    assert symptoms.locator(f"{SHOWN} .cell").first.is_visible()


def test_what_no_entry_has_finds_none(symptoms):
    symptoms.locator("#row-words").fill("zebra giraffe okapi x")
    assert symptoms.locator(SHOWN).count() == 0


def test_a_rare_word_weighs_more_than_a_common_one(symptoms):
    headings = found(symptoms, "my loss is nan after 200 steps")
    assert any(heading.startswith("The loss diverges") for heading in headings)  # it has both words
    assert len(headings) < 12
    assert [one for one in headings if "nan" not in one.lower() and "loss" not in one.lower()] == []


@pytest.mark.parametrize(
    "typed", ["CUDA out of memory", "git push rejected non-fast-forward", "NCCL watchdog caught collective operation"]
)
def test_a_word_or_two_of_many_find_none(symptoms, typed):
    assert found(symptoms, typed) == []


def test_where_no_entry_is_found_a_line_leads_on(symptoms):
    message = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 16x8)"
    line = symptoms.locator(".row-filter .nothing")
    assert not line.is_visible()
    assert found(symptoms, message) == []
    assert line.is_visible()
    assert "No entry matches this" in line.inner_text()
    assert line.get_by_role("link").evaluate("(link) => new URL(link.href).searchParams.get('q')") == message
    line.get_by_role("button").click()
    assert symptoms.locator("#row-words").input_value() == ""
    assert not line.is_visible()
    found(symptoms, message)
    symptoms.evaluate("location.hash = 'nan-or-inf'")  # a group, from the contents of the page
    symptoms.locator("#nan-or-inf").wait_for(state="visible")
    assert "empty again" in said(symptoms)


@pytest.mark.parametrize("kind", ["error", "warning", "nan", "wrong", "stuck", "apart", "sharded"])
def test_every_kind_has_entries(symptoms, kind):
    symptoms.locator(f".row-filter [value={kind}]").check()
    assert 4 < symptoms.locator(SHOWN).count() < 40


def test_a_link_to_an_entry_opens_it(browser, server):
    with opened(browser, server, [], viewport=PHONE) as page:
        page.goto(f"{server}{PAGE}#optimizer-got-an-empty-parameter-list")
        assert page.locator("#optimizer-got-an-empty-parameter-list .cell").first.is_visible()
        assert page.locator(f"{SHOWN} > details[open]").count() == 1


def test_an_entry_says_cause_and_fix_before_its_code(symptoms):
    """As in the notebook the first cell shows the fault, and the last one the fix."""
    first = "(all) => all.filter((fold) => fold.querySelector('summary').nextElementSibling.matches('.cell')).length"
    assert symptoms.locator("section.symptom > details").evaluate_all(first) == 0
    assert symptoms.locator("section.symptom .shows:has-text('See it happen') + .cell").count() >= 80


TICKED = ".page-toc .toc-h2 > a.read"
LISTED = ".page-toc li:not([hidden]) > a"


def test_the_contents_list_what_the_filter_shows_and_a_link_keeps_it(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + PAGE)
        everything = page.locator(LISTED).count()
        page.locator("#row-words").fill("bfloat16")
        shown = page.locator(f"{SHOWN}").evaluate_all("all => all.map((one) => one.id)")
        targets = page.locator(LISTED).evaluate_all("all => all.map((link) => decodeURIComponent(link.hash.slice(1)))")
        assert set(shown) <= set(targets)
        assert len(targets) < everything
        assert all(page.evaluate("id => document.getElementById(id).checkVisibility()", one) for one in targets)
        page.locator(".page-toc .toc-h2:not([hidden]) > a").first.click()
        page.wait_for_function("location.hash !== ''")
        assert page.locator("#row-words").input_value() == "bfloat16"
        page.locator("#row-words").fill("")
        assert page.locator(LISTED).count() == everything


# Resolves when the observers of the page, which are older, have seen what is on the screen.
OBSERVED = "id => new Promise((done) => new IntersectionObserver(done).observe(document.getElementById(id)))"


def test_a_section_is_ticked_when_all_its_entries_have_been_opened(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.clock.install()
        page.goto(server + PAGE)
        page.locator("#row-words").fill("ln V")
        group = page.locator(f"section:has(> {SHOWN})").first.get_attribute("id")
        section = page.locator(f"#{group}")
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        page.evaluate(OBSERVED, group)
        page.clock.run_for(60_000)
        page.locator("#row-words").fill("")
        section.evaluate("section => section.nextElementSibling.scrollIntoView({ block: 'end' })")
        page.evaluate(OBSERVED, group)
        page.clock.run_for(60_000)
        page.evaluate("scrollTo(0, 0)")
        page.evaluate(OBSERVED, group)
        assert page.locator(f"{TICKED}[href='#{group}']").count() == 0
        section.evaluate("section => section.querySelectorAll('.symptom > details').forEach((d) => { d.open = true })")
        section.evaluate("section => section.nextElementSibling.scrollIntoView()")
        page.evaluate(OBSERVED, group)
        page.clock.run_for(60_000)
        page.locator(f"{TICKED}[href='#{group}']").wait_for()
