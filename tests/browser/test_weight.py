"""The download size of every page, from the compressing server, scrolled to its end, with fonts and pictures."""

import json
from pathlib import PurePosixPath

import pytest
from helpers.visit import PHONE, opened

from tools import course

# Bytes on the wire, with their headers; a chapter is then on a slow phone (1.6 Mbit/s) in 1.5 s.
CHAPTER, OTHER = 300_000, 200_000
SCRIPTS = 30_000  # of our own JavaScript

# Faster than scrolling: make all lazy pictures load at once.
TO_THE_END = """async () => {
  for (const image of document.images) image.loading = "eager";
  const shown = [...document.images].filter((image) => image.checkVisibility());
  await Promise.all(shown.map((image) => image.decode()));
  await document.fonts.ready;
}"""


@pytest.fixture(scope="module")
def received(browser, server, pages):
    """For each page, {URL: bytes on the wire} of everything that loads, with an empty cache."""
    found = {}
    for name in pages:
        with opened(browser, server, [], viewport=PHONE) as page:
            urls, sizes = {}, {}
            network = page.context.new_cdp_session(page)
            network.on("Network.requestWillBeSent", lambda e, urls=urls: urls.update({e["requestId"]: e["request"]}))
            network.on(
                "Network.loadingFinished", lambda e, sizes=sizes: sizes.update({e["requestId"]: e["encodedDataLength"]})
            )
            network.send("Network.enable")
            page.goto(server + name)
            page.evaluate(TO_THE_END)
            for _ in range(2000):
                if urls.keys() <= sizes.keys():
                    break
                page.wait_for_timeout(50)  # the browser tells of an arrival a little later; the limit guards hanging
            assert urls.keys() <= sizes.keys(), (name, [urls[key]["url"] for key in urls.keys() - sizes.keys()])
            found[name] = {
                urls[key]["url"]: size for key, size in sizes.items() if not urls[key]["url"].startswith("data:")
            }
    return found


def test_the_pages_arrive_whole(received):
    """The measurement includes the page, its style, scripts, fonts and pictures."""
    kinds = {PurePosixPath(url.split("?")[0]).suffix for url in received["notebooks/03-layer-normalization.html"]}
    assert {".html", ".css", ".js", ".woff2", ".svg"} <= kinds


def test_every_page_is_light(received, record_property):
    sums = {name: sum(sizes.values()) for name, sizes in received.items()}
    record_property("bytes", json.dumps(sums))  # for the measure `pages` of tools/speed.py
    limits = {name: CHAPTER if name.startswith("notebooks/") else OTHER for name in sums}
    assert {name: total for name, total in sums.items() if total > limits[name]} == {}


def test_our_own_scripts_are_light(received):
    ours = {path.name for folder in ("book/_static", "subnorm") for path in (course.ROOT / folder).glob("*.js")}
    assert ours
    for name, sizes in received.items():
        own = {url: size for url, size in sizes.items() if PurePosixPath(url.split("?")[0]).name in ours}
        assert sum(own.values()) <= SCRIPTS, (name, own)
