"""Type into the editors of the book as a person does: each key goes down and comes up again, and Shift is held.

A text that is inserted at once, as Playwright's `fill` and `type` may do, passes by the shortcuts of the page.
`python -m tools.in_page.measure` and tests/browser/test_typing.py run this.
"""

import string
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

PAGE = "book/playground.html"
PRINTABLE = string.printable[:95]
SHIFTED = frozenset(string.ascii_uppercase + '~!@#$%^&*()_+{}|:"<>?')

#: Where WebDriver has the keys that print nothing (and the numeric pad's): https://www.w3.org/TR/webdriver2/
PLACES = {
    "Backspace": "\ue003",
    "Tab": "\ue004",
    "Shift": "\ue008",
    "Control": "\ue009",
    "Enter": "\ue006",
    "Escape": "\ue00c",
    "Delete": "\ue017",
    "ArrowDown": "\ue015",
    "NumpadDivide": "\ue029",
}

#: Answers with what an editor may indent by itself: a body, an else, a line that goes on, and the end of a body.
ANSWERS = {
    "an answer": """\
def layer_norm(x, gamma, beta, eps=1e-5):
    \'\'\'Normalise over the last axis; eps is under the root.\'\'\'
    mean = x.mean(axis=-1, keepdims=True)
    var = ((x - mean) ** 2).mean(axis=-1, keepdims=True)

    return gamma * (x - mean) / np.sqrt(var + eps) + beta""",
    "a program": """\
import numpy as np

class Ratio:
    def __init__(self, top, bottom=2):
        self.value = top / bottom if bottom else None

    def __str__(self):
        try:
            return f"{self.value:.3f} // {{}} [@]"
        except TypeError:
            return "#"
        finally:
            pass

for k in range(3):
    if k % 2:
        print(Ratio(k), "odd" + \'~`|\\\\^&!?$\')
    elif k == 0:
        continue
    else:
        x = [
            k,
            -k,
        ]
print(x)""",
}

FOCUS = """async (box) => {
  const field = document.querySelector(`${box} textarea, ${box} .cm-content`); // the editor comes with the focus
  field.scrollIntoView({ block: "center" });
  field.focus();
  while (!document.querySelector(`${box} .cm-content`)) await new Promise((done) => setTimeout(done, 10));
  return document.activeElement.className;
}"""
LINES = """async (box) => [...document.querySelectorAll(`${box} .cm-line`)].map((line) => line.textContent)"""
FOCUSED = """async () => {
  const { dataset, className } = document.activeElement;
  return Object.keys(dataset)[0] ?? className.split(" ")[0];
}"""
#: The text of the first element that a selector finds, once it has one; "" if it never comes.
TEXT = """async (selector) => {
  for (const begun = performance.now(); performance.now() - begun < 500_000;) { // only guards against hanging
    const text = document.querySelector(selector)?.textContent.trim();
    if (text) return text;
    await new Promise((done) => setTimeout(done, 10));
  }
  return "";
}"""
#: The editor takes no Enter for a choice in the first 75 ms of an offer: a slow machine may only wait longer.
LATER = "async () => { await new Promise((done) => setTimeout(done, 200)); return true; }"


class Keyboard(Protocol):
    def open(self, address: str) -> None: ...
    def evaluate(self, function: str, *arguments: str) -> Any: ...
    def press(self, strokes: Iterable[str]) -> None: ...


def keys(stroke: str) -> list[str]:
    """The keys of a stroke such as "a", "Enter" or "Control+a"; the last one is pressed while the others are held."""
    *held, key = stroke.split("+") if len(stroke) > 1 else [stroke]
    return ["Shift", *held, key] if key in SHIFTED else [*held, key]


def actions(strokes: Iterable[str]) -> list[dict[str, Any]]:
    """The strokes for WebDriver."""
    found = []
    for stroke in strokes:
        places = [PLACES.get(key, key) for key in keys(stroke)]
        found += [{"type": "keyDown", "value": key} for key in places]
        found += [{"type": "keyUp", "value": key} for key in reversed(places)]
    return [{"type": "key", "id": "keyboard", "actions": found}]


class Editor:
    """The editor in the element `box` of the page that is open, and a person at its keyboard."""

    def __init__(self, keyboard: Keyboard, box: str) -> None:
        self.keyboard, self.box = keyboard, box
        keyboard.evaluate(FOCUS, box)

    @property
    def lines(self) -> list[str]:
        found: list[str] = self.keyboard.evaluate(LINES, self.box)
        return found

    def empty(self) -> None:
        self.keyboard.press(["Control+a", "Delete"])

    def offered(self) -> str:
        """The first name that the editor offers for what is typed, once Enter could choose it."""
        text: str = self.keyboard.evaluate(TEXT, f"{self.box} .cm-tooltip-autocomplete li")
        self.keyboard.evaluate(LATER)
        return text

    def write(self, text: str) -> list[str]:
        """Type a text. Who sees that the editor has indented a line goes on from there; the corrections it took."""
        corrections = []
        first, *others = text.split("\n")
        self.keyboard.press(first)
        for k, line in enumerate(others):
            self.keyboard.press(["Enter"])
            shown = self.lines[k + 1]
            words = line.lstrip()
            wanted = len(line) - len(words) if words else len(shown)  # an empty line keeps its indent until it is left
            back = max(len(shown) - wanted, 0) // 4
            more = max(wanted - len(shown), 0)
            if more:
                corrections.append(line)
            self.keyboard.press(["Backspace"] * back + [" "] * more + list(words))
        return corrections


def typed(keyboard: Keyboard, base: str) -> Iterator[tuple[str, Any, Any]]:
    """What happens when a person types into the playground: a name, what came, and what should."""
    keyboard.open(base + PAGE)
    editor = Editor(keyboard, ".playground")

    def lines(what: str, text: str) -> tuple[str, Any, Any]:
        return what, "\n".join(line.rstrip() for line in editor.lines), text

    editor.empty()
    keyboard.press(PRINTABLE)
    yield "every printable key", editor.lines, [PRINTABLE]
    editor.empty()
    keyboard.press(["6", "NumpadDivide", "2"])
    yield lines("the numeric pad", "6/2")

    for name, answer in ANSWERS.items():
        editor.empty()
        yield f"spaces typed at the start of a line of {name}", editor.write(answer), []
        yield lines(name, answer)
    keyboard.press(["Control+a", "Control+x"])
    yield lines("cut", "")
    keyboard.press(["Control+v"])
    yield lines("paste", answer)
    keyboard.press(["Control+z"])
    yield lines("undo", "")
    keyboard.press(["Control+y"])
    yield lines("redo", answer)

    editor.empty()
    keyboard.press(["a", "Enter", *"break"])
    offered = editor.offered()
    keyboard.press(["Enter"])
    yield lines(f"Enter beside the offer of {offered}", "a\nbreak\n")
    editor.empty()
    keyboard.press("pri")
    offered = editor.offered()
    keyboard.press(["ArrowDown", "Enter"])
    yield lines(f"Enter on {offered}, chosen", "print")
    editor.empty()
    keyboard.press([*"a.pri", "Escape", *" / 2"])  # a letter would offer names, maybe only after Tab has left
    yield lines("Escape", "a.pri / 2")

    keyboard.press(["Tab"])
    yield "Tab leaves the editor", keyboard.evaluate(FOCUSED), "run"
    keyboard.press(["Shift+Tab"])
    editor.empty()
    keyboard.press([*"print(1/4)", "Control+Enter"])
    yield "1/4", keyboard.evaluate(TEXT, ".playground [data-output]"), "0.25"


def as_typed(keyboard: Keyboard, base: str) -> bool:
    """Whether everything that a person types arrives; what does not is printed."""
    found = list(typed(keyboard, base))
    wrong = [(what, came, wanted) for what, came, wanted in found if came != wanted]
    for what, came, wanted in wrong:
        print(f"  typed, {what}: {came!r} came, not {wanted!r}")
    print(f"  {len(found)} ways of typing, {len(found) - len(wrong)} as a person expects, {len(wrong)} others")
    return not wrong
