"""Every page of the book on a phone, from a server. One visit to each tells all that is asked here.

A page opens in the dark, with an empty cache and fonts that come late, and is read to its end. The reader then goes to
a desk and turns to the light, chooses large letters on the phone, and zooms in on the desk. Axe looks at the page where
it has the least room.
"""

import re
from pathlib import PurePosixPath
from threading import Event
from types import SimpleNamespace

import pytest
from helpers.look import CUT, OPENING, SMALL, look, turn_to_desk, zoom
from helpers.visit import KINDS, PHONE, opened

from tools import checkout

# Bytes on the wire, with their headers; a chapter is then on a slow phone (1.6 Mbit/s) in 1.5 s.
CHAPTER, OTHER = 300_000, 200_000
SCRIPTS = 30_000  # of our own JavaScript

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


class Wire:
    """What a page receives, with an empty cache."""

    def __init__(self, page):
        self.page, self.urls, self.sizes = page, {}, {}
        network = page.context.new_cdp_session(page)
        network.on("Network.requestWillBeSent", self.sent)
        network.on("Network.loadingFinished", self.arrived)
        network.send("Network.enable")
        network.send("Network.setCacheDisabled", {"cacheDisabled": True})

    def sent(self, event):
        if event["requestId"] == event["loaderId"]:  # a new page: nobody hears of what the last one still asked for
            self.urls.clear()
            self.sizes.clear()
        self.urls[event["requestId"]] = event["request"]["url"]

    def arrived(self, event):
        if event["requestId"] in self.urls:
            self.sizes[event["requestId"]] = event["encodedDataLength"]

    def received(self):
        """{URL: bytes on the wire} since the last call."""
        for _ in range(2000):
            if self.urls.keys() <= self.sizes.keys():
                break
            self.page.wait_for_timeout(50)  # the browser tells of an arrival a little later; the limit guards hanging
        assert self.urls.keys() <= self.sizes.keys(), [self.urls[key] for key in self.urls.keys() - self.sizes.keys()]
        found = {self.urls[key]: size for key, size in self.sizes.items() if not self.urls[key].startswith("data:")}
        self.urls.clear()
        self.sizes.clear()
        return found


CHAPTERS = re.compile(r"notebooks/\d\d-")
LAPTOP = {"width": 1280, "height": 800}
PLANTED = {
    "controls: down to": 'document.querySelector(".live-picture").style.height = "700px"',
    "what the chapter needs is above": 'document.querySelector("h1 + p").after(document.querySelector(".opening"))',
}


def enlarged(page, letters):
    """What is cut off where the reader has chosen letters twice as large."""
    letters.send("Page.setFontSizes", {"fontSizes": {"standard": 32}})
    assert page.evaluate("getComputedStyle(document.documentElement).fontSize") == "32px"
    cut = page.evaluate(CUT)
    letters.send("Page.setFontSizes", {"fontSizes": {"standard": 16}})
    return cut


@pytest.fixture(scope="module")
def visits(browser, server, pages):
    """For each page: its faults, how far its text moved, what it received, and its faults when it is enlarged."""
    faults, held, shown, found = [], [], Event(), {}
    with opened(browser, server, faults, viewport=PHONE) as page:
        page.route("**/*.woff2", lambda route: route.continue_() if shown.is_set() else held.append(route))
        wire = Wire(page)
        letters = page.context.new_cdp_session(page)
        for name in pages:
            shown.clear()
            page.emulate_media(color_scheme="dark")
            page.goto(server + name, wait_until="domcontentloaded")
            page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
            shown.set()
            while held:
                held.pop().continue_()
            page.wait_for_load_state()
            fonts, early, shift = page.evaluate(MOVED)
            assert (fonts > 0, early) == (True, 0), name  # the measurement is what it says
            opening = page.evaluate(OPENING) if CHAPTERS.match(name) else []
            seen, received = look(page, "dark"), wire.received()
            small = page.evaluate(SMALL)
            seen += turn_to_desk(page)
            if CHAPTERS.match(name):
                page.set_viewport_size(LAPTOP)
                opening += page.evaluate(OPENING)
            planted = {}
            if name == "notebooks/03-layer-normalization.html":
                for fault, change in PLANTED.items():
                    page.evaluate(change)
                    planted[fault] = page.evaluate(OPENING)
            page.set_viewport_size(PHONE)
            large = enlarged(page, letters) if name in KINDS else []
            zoomed = zoom(page)
            page.set_viewport_size(PHONE)
            wire.received()  # forget what a desk loads, and what was measured
            found[name] = SimpleNamespace(
                seen=seen,
                small=small,
                opening=opening,
                planted=planted,
                shift=shift,
                received=received,
                large=large,
                zoomed=zoomed,
            )
    assert faults == []
    return found


def test_every_page_on_a_phone_and_on_a_desk(visits):
    assert {name: visit.seen for name, visit in visits.items() if visit.seen} == {}


def test_a_chapter_opens_with_its_figure_on_the_first_screen(visits):
    """Of a phone and of a laptop: title, sentence, figure and controls, and what the chapter needs below."""
    assert {name: visit.opening for name, visit in visits.items() if visit.opening} == {}
    planted = visits["notebooks/03-layer-normalization.html"].planted
    assert {fault for fault, found in planted.items() if any(fault in said for said in found)} == PLANTED.keys()


def test_every_label_of_a_figure_is_large_enough_on_a_phone(visits):
    assert {name: visit.small for name, visit in visits.items() if visit.small} == {}


def test_every_page_keeps_its_layout_when_fonts_come_late(visits):
    """On a phone, where a word that grows breaks most lines: no font is answered before the page is shown."""
    assert {name: visit.shift for name, visit in visits.items() if visit.shift > 0.01} == {}


def test_each_kind_of_page_shows_letters_twice_as_large_whole(visits):
    assert {name: visit.large for name, visit in visits.items() if visit.large} == {}


def test_every_page_fits_its_width_at_400_percent_and_is_accessible(visits):
    assert {name: visit.zoomed for name, visit in visits.items() if visit.zoomed} == {}


def test_the_pages_arrive_whole(visits):
    """The measurement includes the page, its style, scripts, fonts and pictures."""
    received = visits["notebooks/03-layer-normalization.html"].received
    kinds = {PurePosixPath(url.split("?")[0]).suffix for url in received}
    assert {".html", ".css", ".js", ".woff2", ".svg"} <= kinds


def test_every_page_is_light(visits):
    sums = {name: sum(visit.received.values()) for name, visit in visits.items()}
    limits = {name: CHAPTER if name.startswith("notebooks/") else OTHER for name in sums}
    assert {name: total for name, total in sums.items() if total > limits[name]} == {}


def test_our_own_scripts_are_light(visits):
    ours = {path.name for folder in ("book/_static", "subnorm_lab") for path in (checkout.ROOT / folder).glob("*.js")}
    assert ours
    for name, visit in visits.items():
        own = {url: size for url, size in visit.received.items() if PurePosixPath(url.split("?")[0]).name in ours}
        assert sum(own.values()) <= SCRIPTS, (name, own)
