"""The book in a real browser: every page, light and dark, on a desk and on a phone, from a server and from a file."""

import threading
from contextlib import contextmanager

import pytest
from parts import need
from playwright.sync_api import sync_playwright

import course

DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
OPTIONS = [
    f"--{name}"
    for name in (
        "headless",
        "no-sandbox",
        "disable-gpu",
        "disable-quic",
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
    )
]

# What the reader must see: nothing wider than the window, formulas and pictures with a size, the colours asked for.
LOOK = """async () => {
  for (const image of document.images) { image.loading = "eager"; await image.decode().catch(() => {}) }
  const shown = (e) => e.checkVisibility();
  const bare = (e) => { const box = e.getBoundingClientRect(); return box.width < 2 || box.height < 2 };
  return {
    overflow: document.documentElement.scrollWidth - innerWidth,
    theme: document.documentElement.dataset.theme,
    bare: [...document.querySelectorAll(".math .katex, article img, article svg[role=img]")]
      .filter((e) => shown(e) && (bare(e) || e.naturalWidth === 0)).map((e) => e.outerHTML.slice(0, 80)),
    unseen: [...document.querySelectorAll("article > section > p .math .katex")].filter((e) => !shown(e)).length,
    mathFont: !document.querySelector(".katex") || document.fonts.check("16px KaTeX_Main"),
  }
}"""


@pytest.fixture(scope="module")
def browser():
    path = need("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def pages():
    """All pages of a book that is up to date, but index.html, which only leads to the first one."""
    assert course.build()
    paths = [path.relative_to(course.PAGES) for path in sorted(course.PAGES.rglob("*.html"))]
    return [path.as_posix() for path in paths if path.parts[0] not in ("_static", "index.html")]


@pytest.fixture(scope="module")
def server(pages):
    """The book from the server that its readers start."""
    with course.web_server(course.PAGES, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@contextmanager
def opened(browser, base, faults, **settings):
    """A page that writes down what goes wrong: errors, failed requests, and requests that leave the book."""
    context = browser.new_context(**settings)
    page = context.new_page()
    page.on("console", lambda m: faults.append(f"console: {m.text}") if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    # what is aborted was only overtaken by the next page
    page.on("requestfailed", lambda r: None if "ABORTED" in r.failure else faults.append(f"failed: {r.url}"))
    page.on(
        "request",
        lambda request: None if request.url.startswith((base, "data:")) else faults.append(f"elsewhere: {request.url}"),
    )
    page.on("response", lambda r: faults.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
    try:
        yield page
    finally:
        context.close()


def look(page, name, scheme, faults):
    seen = page.evaluate(LOOK)
    if seen["overflow"] > 0:
        faults.append(f"{name}: {seen['overflow']} px wider than the window")
    if seen["theme"] != scheme:
        faults.append(f"{name}: {seen['theme']} for a reader who prefers {scheme}")
    faults.extend(f"{name}: no size: {html}" for html in seen["bare"])
    if seen["unseen"]:
        faults.append(f"{name}: {seen['unseen']} formulas are hidden")
    if not seen["mathFont"]:
        faults.append(f"{name}: the font of the formulas is missing")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_every_page_from_a_server(browser, server, pages, scheme, window):
    faults = []
    with opened(browser, server, faults, color_scheme=scheme, viewport=window) as page:
        for name in pages:
            page.goto(server + name)
            look(page, name, scheme, faults)
    assert faults == []


def test_every_page_from_a_file(browser, pages):
    faults, base = [], course.PAGES.as_uri() + "/"
    with opened(browser, base, faults, color_scheme="light", viewport=DESK) as page:
        for name in pages:
            page.goto(base + name)
            look(page, name, "light", faults)
    assert faults == []


def test_the_front_door_leads_to_the_book(browser, server):
    faults = []
    with opened(browser, server, faults) as page:
        page.goto(server)
        page.wait_for_url("**/book/intro.html", timeout=5000)
    assert faults == []


def test_formulas_need_no_script(browser, server):
    faults = []
    with opened(browser, server, faults, java_script_enabled=False) as page:
        page.goto(server + "book/notation.html")
        assert page.locator(".math .katex").first.is_visible()
    assert faults == []


@pytest.mark.parametrize("kind", ["server", "file"])
def test_search_finds_a_term(browser, server, kind):
    faults, base = [], server if kind == "server" else course.PAGES.as_uri() + "/"
    with opened(browser, base, faults) as page:
        page.goto(base + "search.html?q=warm-up")
        page.locator("#search-results li a").first.wait_for(timeout=5000)
        assert page.locator("#search-results li a", has_text="Glossary").count() >= 1
    assert faults == []


def test_the_colour_button_changes_the_colours_and_is_remembered(browser, server):
    faults = []
    with opened(browser, server, faults, color_scheme="light") as page:
        page.goto(server + "book/notation.html")
        ground = "getComputedStyle(document.body).backgroundColor"
        before = page.evaluate(ground)
        for _ in range(3):
            if page.evaluate("document.documentElement.dataset.theme") != "dark":
                page.locator(".theme-switch-button").first.click()
        assert page.evaluate(ground) != before
        page.goto(server + "book/glossary.html")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert faults == []


def test_a_wide_formula_can_be_scrolled_by_keyboard(browser, server):
    with opened(browser, server, [], viewport={"width": 260, "height": 700}) as page:
        page.goto(server + "notebooks/03-layer-normalization.html")
        wide = page.locator(".eqn").filter(has=page.locator(".mtable")).first
        assert wide.evaluate("box => box.scrollWidth > box.clientWidth")
        assert wide.get_attribute("tabindex") == "0"


def test_lines_are_of_a_readable_length(browser, server):
    """60 to 75 characters on a desk; another machine's font makes them wider or narrower by a fifth."""
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "book/intro.html")
        length = page.evaluate("""() => {
          const longer = (a, b) => b.textContent.length - a.textContent.length;
          const p = [...document.querySelectorAll("article p")].sort(longer)[0];
          return p.textContent.length / Math.round(p.clientHeight / parseFloat(getComputedStyle(p).lineHeight));
        }""")
    assert 50 <= length <= 90
