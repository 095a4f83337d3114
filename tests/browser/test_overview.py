"""The class overview in a browser: offline, in both schemes, on a phone, and on two sides of paper."""

import io

import pytest
from classroom.classes import EX02, STRANGE, graded
from helpers.look import ACCESSIBLE, AXE
from helpers.visit import DESK, PHONE, opened
from pypdf import PdfReader

from subnorm_classroom.reports.overview import overview
from subnorm_lab.checks import SETS

LONGEST = "ex04"  # the sheet with the most text in its mistakes; the others take less paper
NARROW = {"width": 320, "height": 640}
LATE = {"timeout": 2, "not_done": 4, "cell_error": 1, "memory": 1}
WIDE = "() => document.documentElement.scrollWidth - innerWidth"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pages of a typical class, of two sheets, and of a class in which everybody errs in another way."""
    folder = tmp_path_factory.mktemp("overview")
    graded(folder / "ex02", "ex02", 40, EX02)
    graded(folder / "ex03", "ex03", 38, {"rms_norm": {"eps_outside": 4, "keepdims": 3}})
    assert overview([folder / "ex02"], folder / "one.html") == 0
    assert overview([folder / "ex02", folder / "ex03"], folder / "two.html") == 0
    for name in ("ex02", LONGEST):
        kinds = dict.fromkeys(STRANGE, 2) | LATE
        planted = {ex.name: {one.tag: 3 + k % 5 for k, one in enumerate(ex.mistakes)} | kinds for ex in SETS[name]}
        assert overview([graded(folder / f"all-{name}", name, 200, planted)], folder / f"all-{name}.html") == 0
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_it_and_it_loads_nothing(scheme, browser, folder):
    faults = []
    with opened(browser, "file://", faults, viewport=DESK, color_scheme=scheme, bypass_csp=True, offline=True) as page:
        for name in ("one", "two"):
            page.goto((folder / f"{name}.html").as_uri())
            assert page.evaluate("() => performance.getEntriesByType('resource').length") == 0
            page.add_script_tag(content=AXE)
            faults += page.evaluate(ACCESSIBLE, scheme)
    assert faults == []


@pytest.mark.parametrize("window", [PHONE, NARROW], ids=["phone", "narrow"])
def test_nothing_is_wider_than_a_phone(window, browser, folder):
    faults = []
    with opened(browser, "file://", faults, viewport=window) as page:
        for name in ("one", "two", "all-ex02"):
            page.goto((folder / f"{name}.html").as_uri())
            assert page.evaluate(WIDE) <= 0
            assert page.locator("th svg").first.bounding_box()["width"] > window["width"] / 3
    assert faults == []


def test_it_prints_on_two_sides(browser, folder):
    with opened(browser, "file://", [], viewport=DESK) as page:
        for name in ("one", "all-ex02", f"all-{LONGEST}"):
            page.goto((folder / f"{name}.html").as_uri())
            sides = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages
            assert len(sides) <= 2, name
            assert "Teach this tomorrow" in sides[0].extract_text()
        text = "\n".join(side.extract_text() for side in sides)
        for ex in SETS[LONGEST]:
            assert f"{ex.name}:" in text
            assert f"more named mistakes: {len(ex.mistakes) - 3}" in " ".join(text.split())
