"""Every page of the book on a phone: light and dark, and with fonts that come late."""

from threading import Event

from helpers.look import faults_of_every_page
from helpers.visit import PHONE, opened


def test_every_page_on_a_phone(browser, server, pages):
    assert faults_of_every_page(browser, server, pages, PHONE) == []


# How many fonts came as files, how many of them before the first text was shown, and how far the text moved.
MOVED = """async () => {
  let shift = 0;
  const add = (list) => list.forEach(({ value }) => { shift += value });
  const observer = new PerformanceObserver((list) => add(list.getEntries()));
  observer.observe({ type: "layout-shift", buffered: true });
  await document.fonts.ready;
  for (let k = 0; k < 2; k++) await new Promise(requestAnimationFrame);
  add(observer.takeRecords());
  const [shown] = performance.getEntriesByName("first-contentful-paint");
  const fonts = performance.getEntriesByType("resource").filter(({ name }) => name.includes(".woff2"));
  return [fonts.length, fonts.filter(({ responseEnd }) => responseEnd < shown.startTime).length, shift];
}"""


def test_every_page_keeps_its_layout_when_fonts_come_late(browser, server, pages):
    """On a phone, where a word that grows breaks most lines: no font is answered before the page is shown."""
    faults, held, shown = [], [], Event()
    with opened(browser, server, faults, viewport=PHONE) as page:
        page.route("**/*.woff2", lambda route: route.continue_() if shown.is_set() else held.append(route))
        for name in pages:
            shown.clear()
            page.goto(server + name, wait_until="domcontentloaded")
            page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
            shown.set()
            while held:
                held.pop().continue_()
            page.wait_for_load_state()
            fonts, early, shift = page.evaluate(MOVED)
            assert (fonts > 0, early) == (True, 0), name  # the measurement is what it says
            if shift > 0.01:
                faults.append(f"{name}: layout shift of {shift:.3f}")
    assert faults == []
