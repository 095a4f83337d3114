"""How the tests look at a page of the book: its layout, its colours, and whether everybody can use it."""

from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from helpers.visit import opened

LOOK = Path(__file__).with_name("look.js").read_text("utf-8")
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")

# A formula has the colour of the text round it, and axe has no rule for MathML: it need not walk its many elements.
# Contrast takes axe milliseconds for each element, and follows from tags, classes and styles: of elements that share
# these, and share them all the way up, the first is enough, also of those on several pages with the same style sheets.
# So the browser keeps what it has seen from page to page, for one window and scheme. Names, roles and sizes are the
# same in the dark: the other rules run in the light, those for best practice too. The size of targets (WCAG 2.2) is off
# unless asked for. One run for all rules: axe goes through the whole page before the first.
ACCESSIBLE = """async (scheme) => {
  document.querySelectorAll(".katex").forEach((e) => e.replaceChildren("formula"));
  const sheets = [...document.querySelectorAll("style, link[rel=stylesheet]")].map((e) => e.href || e.textContent);
  const known = new Map(JSON.parse(sessionStorage.getItem("looks") || "[]"));
  const number = (key) => known.get(key) ?? known.set(key, known.size).get(key);
  const numbers = new Map([[null, number(sheets.join())]]);
  const look = (e) => [path(e.parentElement), e.tagName, e.getAttribute("class"), e.getAttribute("style")].join();
  const path = (e) => numbers.get(e) ?? numbers.set(e, number(look(e))).get(e);
  const first = [];
  for (const e of document.querySelectorAll("body *")) {
    const text = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
    if (!text || !e.checkVisibility() || known.has(`text in ${path(e)}`)) continue;
    number(`text in ${path(e)}`);
    first.push(e);
  }
  sessionStorage.setItem("looks", JSON.stringify([...known]));
  first.forEach((e) => e.setAttribute("data-first", ""));
  axe.configure({ rules: [{ id: "color-contrast", selector: "[data-first]" }] });
  const all = { rules: { "target-size": { enabled: true } } };
  const only = scheme === "light" ? all : { runOnly: ["color-contrast"] };
  const { violations } = await axe.run({ resultTypes: ["violations"], ...only });
  return violations.flatMap(({ id, impact, nodes }) => nodes.map((n) => `${impact} ${id}: ${n.html.slice(0, 100)}`));
}"""


@contextmanager
def both(browser, base, faults, window):
    """A page for a reader who prefers light, and one for dark."""
    with (
        opened(browser, base, faults, color_scheme="light", viewport=window) as light,
        opened(browser, base, faults, color_scheme="dark", viewport=window) as dark,
    ):
        yield {"light": light, "dark": dark}


def visit(address, **schemes):
    """Faults of one page in several colour schemes at once: two pages at work use two cores."""
    for page in schemes.values():
        page.goto(address)
        page.evaluate(AXE)
    faults = []
    for script in (LOOK, ACCESSIBLE):
        for scheme, page in schemes.items():
            page.evaluate(f"() => {{ found = ({script})('{scheme}') }}")  # and do not wait for it
        for scheme, page in schemes.items():
            faults += [f"{scheme}: {fault}" for fault in page.evaluate("found")]
    return faults


def faults_of_every_page(browser, server, pages, window):
    """What is wrong with the pages from a server, in light and dark."""
    faults = []
    with both(browser, server, faults, window) as schemes:
        for name in pages:
            faults += [f"{name}: {fault}" for fault in visit(server + name, **schemes)]
    return faults
