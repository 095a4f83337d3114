"""Whatever a person types reaches the editors: key by key, in three engines, on any page that has an editor.

`fill` and `insert_text` press no key, so they pass by the shortcuts of the page. Firefox and WebKit are no part of the
continuous check: where they are missing, their test is skipped and says what to install.
"""

import pytest
from helpers.visit import DESK, opened

from tools.in_page import keys
from tools.in_page.measure import BROWSERS, BrowserNotFound, Chromium

SHEET, CHAPTER = "notebooks/exercises/ex02-layer-norm.html", "notebooks/01a-attention-in-twenty-lines.html"
OPENED = """async () => {
  document.querySelectorAll(".predict .skip").forEach((button) => button.click());
  document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
  document.querySelector("[data-try=cell-18]").click();
  const later = () => new Promise((done) => setTimeout(done, 10));
  while (document.querySelector(".workbench")?.ariaBusy !== "false") await later();
}"""
#: Keys of other keyboards, as browsers report them: what is printed, and where; then those with Shift.
PLAIN = {"{": "Digit7", "[": "Digit8", "]": "Digit9", "}": "Digit0", "\\": "Minus", "@": "KeyQ", "~": "BracketRight"}
PLAIN |= {"|": "IntlBackslash", "€": "KeyE", "#": "Backslash", "+": "BracketRight", "ñ": "Semicolon", "ё": "Backquote"}
SHIFTED = {"/": "Digit7", ":": "Period", ";": "Comma", "=": "Digit0", "(": "Digit8", ")": "Digit9", "*": "BracketRight"}
SHIFT = 8
#: The keys that some script takes: with AltGr Windows may report Control and Alt, and macOS has Option.
TAKEN = """([printed, held]) => [...printed].filter((key) => {
  const about = { key, keyCode: key.charCodeAt(0), bubbles: true, cancelable: true, ...held };
  return !document.querySelector(".playground .cm-content").dispatchEvent(new KeyboardEvent("keydown", about));
})"""


@pytest.fixture
def page(browser, server):
    faults = []
    with opened(browser, server, faults, viewport=DESK) as page:
        yield page
    assert faults == []


def wrong(found):
    return [(what, came, wanted) for what, came, wanted in found if came != wanted]


def test_what_a_person_types_arrives_in_chromium(page, browser, server):
    found = list(keys.typed(Chromium(page, browser.version), server))
    assert len(found) > 12
    assert wrong(found) == []


@pytest.mark.parametrize("engine", ["firefox", "webkit"])
def test_what_a_person_types_arrives_in_other_engines(engine, server):
    try:
        with BROWSERS[engine]() as tab:
            assert wrong(keys.typed(tab, server)) == []
    except BrowserNotFound as absent:
        pytest.skip(f"needs {absent}")


@pytest.mark.parametrize(
    ("name", "box"), [(SHEET, "[data-exercise=layer_norm]"), (CHAPTER, ".workbench")], ids=["a sheet", "a chapter"]
)
def test_every_printable_key_arrives_in_the_other_editors(page, browser, server, name, box):
    page.goto(server + name)
    if name == CHAPTER:
        page.evaluate(OPENED)
    editor = keys.Editor(Chromium(page, browser.version), box)
    editor.empty()
    editor.keyboard.press(keys.PRINTABLE)
    assert editor.lines == [keys.PRINTABLE]


def test_every_printable_key_arrives_in_the_fields_of_the_page(page, browser, server):
    """A field that is not there yet as an editor, the search, a filter, and whatever can be edited."""
    page.goto(server + "notebooks/09d-when-something-breaks.html")
    page.evaluate(
        "document.querySelector('article').insertAdjacentHTML("
        "'afterbegin', '<p contenteditable id=e></p><textarea></textarea>')"
    )
    for field in ("#row-words", "article textarea", "#e"):
        page.locator(field).focus()
        Chromium(page, browser.version).press(keys.PRINTABLE)
        typed = page.locator(field).evaluate("e => e.value ?? e.textContent")
        assert typed.replace("\N{NO-BREAK SPACE}", " ") == keys.PRINTABLE, field


def test_the_keys_of_other_keyboards_arrive(page, browser, server):
    page.goto(server + keys.PAGE)
    editor = keys.Editor(Chromium(page, browser.version), ".playground")
    editor.empty()
    session = page.context.new_cdp_session(page)
    for held, layout in ((0, PLAIN), (SHIFT, SHIFTED)):
        for key, code in layout.items():
            about = {"key": key, "code": code, "modifiers": held}
            session.send("Input.dispatchKeyEvent", {"type": "keyDown", "text": key, "unmodifiedText": key, **about})
            session.send("Input.dispatchKeyEvent", {"type": "keyUp", **about})
    session.send("Input.imeSetComposition", {"text": "^", "selectionStart": 1, "selectionEnd": 1})  # a dead key
    session.send("Input.insertText", {"text": "ê"})
    assert "".join(editor.lines) == "".join([*PLAIN, *SHIFTED, "ê"])


@pytest.mark.parametrize(
    ("platform", "held"), [("Win32", {"ctrlKey": True, "altKey": True}), ("MacIntel", {"altKey": True})]
)
def test_no_script_takes_what_altgr_and_option_print(page, browser, server, platform, held):
    page.add_init_script(f"Object.defineProperty(navigator, 'platform', {{ get: () => '{platform}' }})")
    page.goto(server + keys.PAGE)
    keys.Editor(Chromium(page, browser.version), ".playground")
    assert page.evaluate(TAKEN, ["{[]}\\@~|€", held]) == []
    assert page.evaluate(TAKEN, ["z", {"metaKey": True} if platform == "MacIntel" else {"ctrlKey": True}]) == [
        "z"
    ]  # undo


def test_a_shortcut_of_the_page_that_takes_a_key_is_found(page, browser, server):
    """Sphinx's own, which is switched off, planted again."""
    page.goto(server + keys.PAGE)
    page.evaluate("""document.addEventListener("keydown", (event) => {
      if (["TEXTAREA", "INPUT", "SELECT", "BUTTON"].includes(document.activeElement.tagName)) return;
      if (event.key === "/") event.preventDefault();
    })""")
    editor = keys.Editor(Chromium(page, browser.version), ".playground")
    editor.empty()
    editor.keyboard.press(keys.PRINTABLE)
    assert editor.lines == [keys.PRINTABLE.replace("/", "")]


def test_escape_takes_away_the_marks_of_a_search(page, server):
    page.goto(server + "search.html?q=layer+norm")
    page.locator("#search-results li a").first.click()
    page.locator("article .highlighted").first.wait_for()
    page.wait_for_load_state()  # Sphinx may mark before our script listens
    page.keyboard.press("Escape")
    assert page.locator(".highlighted").count() == 0
