"""Quick checks as a reader uses them: by keyboard, after a reload, without a script, without storage."""

import json

import pytest
from helpers.visit import DESK, KEEPS_NOTHING, PHONE, opened

PAGE = "notebooks/04-rmsnorm.html"
TOO_SMALL = """() => [...document.querySelectorAll("#quick-checks :is(label, button)")]
  .filter((target) => target.checkVisibility() && target.getBoundingClientRect().height < 24).map((t) => t.outerHTML)"""


def shown(page):
    """The first words of each explanation that the reader sees."""
    return page.locator(".quick-check .why:visible > p:first-child > strong").all_inner_texts()


def answers(page):
    """The value of the right option of each check."""
    return json.loads(page.locator(".checks-head [data-checks]").get_attribute("data-checks"))


def radio(page, check, value):
    return page.locator(f"input[name=check-{check}][value='{value}']")


def choose_all_right(page):
    for check, value in answers(page).items():
        radio(page, check, value).check()


MARKS = """labels => labels.map((label) => getComputedStyle(label, "::after").content.split('"')[1]).filter(Boolean)"""


def test_a_choice_is_marked_right_or_wrong_and_not_by_colour_alone(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + PAGE)
        check = page.locator(".quick-check").first
        labels, options = check.locator("label"), check.locator("input")
        place = options.evaluate_all(
            "(all, right) => all.findIndex(({ value }) => right.includes(value))", [*answers(page).values()]
        )
        assert labels.evaluate_all(MARKS) == []
        for k in range(options.count()):
            options.nth(k).check()
            mark = "right" if k == place else "not right"
            assert labels.evaluate_all(MARKS) == [mark]
            assert f'({mark})"' in check.aria_snapshot()
        options.nth((place + 1) % options.count()).check()
        page.locator("#all-answers").check()
        assert sorted(labels.evaluate_all(MARKS)) == ["not right", "right"]


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_a_choice_by_keyboard_shows_its_explanation_alone(browser, server, window):
    faults = []
    with opened(browser, server, faults, viewport=window) as page:
        page.goto(server + PAGE)
        assert shown(page) == []
        page.keyboard.press("Tab")  # a phone lays out the page when the reader begins
        assert page.locator(".checks-head").inner_text() == f"0 of {len(answers(page))} answered right"
        page.locator("#all-answers").focus()
        page.keyboard.press("Tab")
        options = page.locator(".quick-check").first.locator("input")
        seen = []
        for i in range(options.count()):
            assert options.nth(i).evaluate("radio => radio === document.activeElement && !radio.checked")
            assert page.locator(".quick-check .why:visible").count() == min(i, 1)  # an arrow key chooses nothing
            page.keyboard.press(["Enter", "Space"][i % 2])
            assert options.nth(i).is_checked()
            assert options.nth(i).evaluate("radio => getComputedStyle(radio).outlineStyle") == "solid"
            assert page.locator(".quick-check .why:visible").count() == 1
            assert options.nth(i).locator("xpath=..").locator(".why").is_visible()
            seen += shown(page)
            page.keyboard.press("ArrowDown")
        assert sorted(seen) == ["Not quite."] * (options.count() - 1) + ["Right."]
        assert page.evaluate(TOO_SMALL) == []
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert faults == []


def test_progress_survives_a_reload_and_stands_on_the_first_page(browser, server):
    faults = []
    with opened(browser, server, faults) as page:
        page.goto(server + "book/intro.html")
        assert set(page.locator("dt .checks-done").all_inner_texts()) == {""}
        page.goto(server + PAGE)
        choose_all_right(page)
        first = next(iter(answers(page)))
        page.locator(f"input[name=check-{first}]:not(:checked)").first.check()
        number = len(answers(page))
        status = f"{number - 1} of {number} answered right"
        assert page.locator(".checks-done").inner_text() == status
        page.reload()
        assert page.locator(".checks-done").inner_text() == status
        assert sorted(shown(page)) == ["Not quite."] + ["Right."] * (number - 1)
        page.goto(server + "book/intro.html")
        marks = page.locator("dt .checks-done").all_inner_texts()
        assert [mark for mark in marks if mark] == [f"{number - 1} of {number} quick checks"]
        page.goto(server + "notebooks/03-layer-normalization.html")
        assert page.locator(".checks-done").inner_text().startswith("0 of ")
    assert faults == []


def test_clearing_forgets_this_page_only(browser, server):
    with opened(browser, server, []) as page:
        for name in ("notebooks/03-layer-normalization.html", PAGE):
            page.goto(server + name)
            choose_all_right(page)
        page.locator("#all-answers").check()
        button = page.get_by_role("button", name="Clear my answers")
        button.press("Enter")
        assert page.locator(".quick-check input:checked").count() == 0
        assert page.locator(".checks-done").inner_text().startswith("0 of ")
        assert shown(page) == []
        assert not button.is_visible()
        assert page.evaluate("document.activeElement.type") == "radio"
        page.reload()
        assert page.locator(".quick-check input:checked").count() == 0
        page.goto(server + "notebooks/03-layer-normalization.html")
        assert page.locator(".quick-check input:checked").count() == len(answers(page))


def test_the_first_page_counts_again_when_it_is_shown_again(browser, server):
    """Simulates the back button, which restores the page; a browser under test would reload it."""
    with opened(browser, server, []) as first:
        first.goto(server + "book/intro.html")
        page = first.context.new_page()
        page.goto(server + PAGE)
        choose_all_right(page)
        first.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
        assert any(mark.endswith("quick checks") for mark in first.locator("dt .checks-done").all_inner_texts())


def test_all_answers_at_once(browser, server):
    with opened(browser, server, []) as page:
        page.goto(server + PAGE)
        page.locator("#all-answers").press("Space")
        assert page.locator(".why:visible").count() == page.locator(".quick-check .option").count()
        page.locator("#all-answers").press("Space")
        assert shown(page) == []


def test_no_script_is_needed(browser, server):
    with opened(browser, server, [], java_script_enabled=False) as page:
        page.goto(server + PAGE)
        everything = page.locator(".quick-check .why")
        for media, hidden in (("print", "#all-answers"), ("screen", ".checks-head")):
            page.emulate_media(media=media)
            assert not any(why.is_visible() for why in everything.all())
            assert not page.locator(hidden).is_visible()
        option = page.locator(".quick-check .option").first
        option.locator("label").click()
        assert [why.is_visible() for why in everything.all()].count(True) == 1
        assert option.locator(".why").is_visible()
        page.locator("label[for=all-answers]").click()
        assert all(why.is_visible() for why in everything.all())


def test_storage_may_be_blocked(browser, server):
    """The theme reports an error, but our own script keeps working."""
    with opened(browser, server, []) as page:
        page.add_init_script(KEEPS_NOTHING)
        page.goto(server + PAGE)
        choose_all_right(page)
        number = len(answers(page))
        assert page.locator(".checks-done").inner_text() == f"{number} of {number} answered right"
        page.get_by_role("button", name="Clear my answers").click()
        assert shown(page) == []
        page.goto(server + "book/intro.html")
        assert set(page.locator("dt .checks-done").all_inner_texts()) == {""}


def test_a_choice_made_before_the_script_comes_is_kept(browser, server):
    with opened(browser, server, []) as page:
        held = []
        page.route("**/quick-checks.js*", lambda route: held.append(route))
        page.goto(server + PAGE, wait_until="commit")
        early = page.locator(".quick-check input").first
        early.check()
        held[0].continue_()
        page.get_by_role("button", name="Clear my answers").wait_for()
        assert early.is_checked()
        page.unroute("**/quick-checks.js*")
        page.reload()
        assert early.is_checked()
