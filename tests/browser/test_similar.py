"""The list of similar hand-ins in a browser: offline, in both schemes, and on a phone."""

import pytest
from classroom.test_similar import BACKWARD, IDLE, PATHS, REFORMATTED, RENAMED, sheet
from helpers.look import ACCESSIBLE, AXE
from helpers.visit import DESK, opened

from subnorm_classroom.reports.similar import similar

NARROW = {"width": 320, "height": 640}
WIDE = "() => document.documentElement.scrollWidth - innerWidth"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A class with long names and long lines."""
    folder = tmp_path_factory.mktemp("similar")
    (folder / "class").mkdir()
    long = f"x = [{'1 + ' * 200}1]\n"
    for name, cells in (("A" * 90, [BACKWARD, PATHS]), ("Bo", [REFORMATTED, RENAMED, long]), ("Cy", [IDLE])):
        (folder / f"class/{name}.ipynb").write_bytes(sheet(*cells))
    assert similar("ex01", folder / "class", folder / "out") == 0
    return (folder / "out/similar.html").as_uri()


@pytest.mark.parametrize(("scheme", "window"), [("light", DESK), ("dark", NARROW)], ids=["desk", "phone"])
def test_everybody_can_read_it_and_it_loads_nothing(scheme, window, browser, url):
    faults = []
    with opened(
        browser, "file://", faults, viewport=window, color_scheme=scheme, bypass_csp=True, offline=True
    ) as page:
        page.goto(url)
        assert page.locator("mark").count() > 2
        assert page.evaluate("() => performance.getEntriesByType('resource').length") == 0
        assert page.evaluate(WIDE) <= 0
        page.add_script_tag(content=AXE)
        faults += page.evaluate(ACCESSIBLE, scheme)
    assert faults == []
