"""Open a page of the book in a real browser. The fixtures are in tests/browser/conftest.py."""

from contextlib import contextmanager

DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
CALM = {"reduced_motion": "reduce"}  # a page jumps where it would scroll for a second, and a click waits for no motion
ZOOMED = {"width": 320, "height": 225}  # what a window of 1280 x 900 has at 400 % (WCAG 1.4.10)
# One page of each kind.
KINDS = {
    "book/intro.html",
    "notebooks/03-layer-normalization.html",
    "notebooks/09d-when-something-breaks.html",  # long code in its quick checks
    "notebooks/exercises/ex02-layer-norm.html",
    "book/claims.html",
    "book/api/torch.html",
    "book/glossary.html",
}
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; worker-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:"
)
KEEPS_NOTHING = (
    "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError') } })"
)
# A script in the page's text does not run.
POLICY_HOLDS = """() => new Promise((done) => {
  globalThis.ran = false;
  document.body.insertAdjacentHTML("beforeend", '<img src=x onerror="globalThis.ran = true">');
  document.body.lastChild.addEventListener("error", () => done(!globalThis.ran));
})"""

# The labels that leave the picture, and those that overlap.
CROWDED = """figure => {
  const view = figure.querySelector("svg").getBoundingClientRect();
  const texts = [...figure.querySelectorAll("svg text")], boxes = texts.map((text) => text.getBoundingClientRect());
  const outside = texts.filter((_, i) => Math.max(view.left - boxes[i].left, boxes[i].right - view.right,
    view.top - boxes[i].top, boxes[i].bottom - view.bottom) > 1);
  const seen = texts.map((text, i) => [text.textContent, boxes[i]]).filter(([text]) => text.trim());
  const apart = (a, b) => a.right < b.left + 1 || b.right < a.left + 1 || a.bottom < b.top + 3 || b.bottom < a.top + 3;
  return [...outside.map((text) => text.textContent), ...seen.flatMap(([text, box], i) => seen.slice(0, i)
    .filter(([, other]) => !apart(box, other)).map(([other]) => `${other} | ${text}`))];
}"""


@contextmanager
def opened(browser, base, faults, **settings):
    """A page that records errors, failed requests, and requests to other sites."""
    context = browser.new_context(**settings)
    context.set_default_timeout(300_000)  # ms; only guards against hanging
    page = context.new_page()
    page.on("console", lambda m: faults.append(f"console: {m.text}") if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    # an aborted request was only cancelled by the next page
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


def strictly(route):
    """Answer with a policy that allows as little as possible: `page.route("**/*", strictly)`."""
    answer = route.fetch()
    route.fulfill(response=answer, headers={**answer.headers, "content-security-policy": POLICY})
