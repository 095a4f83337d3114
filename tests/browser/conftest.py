"""A browser, the pages of the built book, and the server of `course.py serve`, for all tests in this folder."""

import threading

import pytest
from helpers.built import up_to_date
from helpers.parts import need
from helpers.visit import DESK, opened
from playwright.sync_api import sync_playwright

from tools import checkout, serve
from tools.browser import OPTIONS


# One for each test file: with one browser for the whole run, the notebooks' kernels would inherit its event loop.
@pytest.fixture(scope="module")
def browser():
    path = need("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def pages():
    """All pages of an up-to-date book except index.html, which only redirects to the first one."""
    assert up_to_date()
    paths = [path.relative_to(checkout.PAGES) for path in sorted(checkout.PAGES.rglob("*.html"))]
    return [path.as_posix() for path in paths if path.parts[0] not in ("_static", "index.html")]


@pytest.fixture(scope="session")
def server(pages):
    """The book from the server of `course.py serve`."""
    with serve.web_server(checkout.PAGES, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def search_page(browser, server):
    """The page of the search, with its index loaded."""
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "search.html?q=x")
        page.wait_for_function("Search.hasIndex() && typeof subnormRank !== 'undefined'")
        yield page


FOUND = """(query) => Search._performSearch(...Search._parseQuery(query)).reverse()
  .map(([doc, , anchor]) => doc.replace("notebooks/", "") + anchor)"""


@pytest.fixture
def search(search_page):
    """The results of a search, in order."""
    return lambda query: search_page.evaluate(FOUND, query)
