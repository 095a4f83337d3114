"""From the stored picture to the live figure on a page; a figure that gets lost is a fault."""

import base64
import io
import json
import re

import pytest
from bs4 import BeautifulSoup
from helpers.small_book import build, html, notebook, page
from PIL import Image
from subnorm_book import notebook_text
from subnorm_book.teaching.live_figures import state, stored_figures

from conftest import LIMIT, pixels, worst_block
from subnorm_lab import live
from tools.checkout import PAGES, chapters

ALT = "A line that rises from left to right."


def chart(name="rise", alt=ALT):
    """A chart of one state, as JSON."""
    lines = {
        "kind": "lines",
        "height": 200,
        "curves": [{"name": "line", "label": "line", "colour": "blue", "dash": ""}],
    }
    axis = {"label": "x", "log": False, "limits": [0, 1], "ticks": None}
    frames = [{"panels": [{"line": {"x": [0, 1], "y": [0, 1]}}], "say": "It rises."}]
    panel = {**lines, "x": axis, "y": axis}
    chart = {"kind": "chart", "name": name, "title": "A line", "alt": alt, "controls": [], "side": 1}
    return json.dumps({**chart, "panels": [panel], "frames": frames})


def cell(*tables, tags=()):
    png = io.BytesIO()
    Image.new("RGB", (40, 20), "white").save(png, "png")
    picture = base64.b64encode(png.getvalue()).decode()
    outputs = [
        {
            "output_type": "display_data",
            "data": {"image/png": picture, "text/plain": json.loads(table)["alt"]},
            "metadata": {"live": table},
        }
        for table in tables
    ]
    return {
        "cell_type": "code",
        "id": "c",
        "execution_count": 1,
        "metadata": {"tags": list(tags)},
        "outputs": outputs,
        "source": ["draw()"],
    }


def test_a_page_shows_the_live_figure_and_not_the_picture(tmp_path):
    page(tmp_path, "```{toctree}\nnotebooks/03-norms\n```")
    notebook(tmp_path, cell(chart()))
    assert build(tmp_path) == ""
    shown = html(tmp_path, "notebooks/03-norms")
    assert 'id="live-rise"' in shown
    assert "It rises.</p>" in shown
    assert "<img" not in shown
    assert re.search(r'<script defer[^>]* src="[^"]*live\.js', shown)
    assert "live.css" in shown


def test_two_figures_may_have_one_alt_text(tmp_path):
    page(tmp_path, "```{toctree}\nnotebooks/03-norms\n```")
    notebook(tmp_path, cell(chart(), chart(name="again")))
    assert build(tmp_path) == ""
    assert re.findall('id="live-([a-z]+)"', html(tmp_path, "notebooks/03-norms")) == ["rise", "again"]


def test_a_picture_that_is_not_live_stays(tmp_path):
    page(tmp_path, "```{toctree}\nnotebooks/03-norms\n```")
    still = cell(chart(alt="A picture of something else."))
    still["id"], still["outputs"][0]["metadata"] = "s", {}
    notebook(tmp_path, still, cell(chart()))
    assert build(tmp_path) == ""
    shown = html(tmp_path, "notebooks/03-norms")
    assert shown.count("<img") == 1
    assert shown.index("<img") < shown.index('id="live-rise"')


LOST = {
    "the live figure 'rise' is stored, but the page does not show it": [cell(chart(), tags=["remove-output"])],
    "two live figures are named 'rise'": [cell(chart(), chart(alt="Another line, that rises too."))],
}


@pytest.mark.parametrize("fault", LOST)
def test_a_figure_that_gets_lost_is_a_warning_in_every_build(tmp_path, fault):
    page(tmp_path, "```{toctree}\nnotebooks/03-norms\n```")
    notebook(tmp_path, *LOST[fault])
    for _ in range(2):
        assert fault in build(tmp_path)


CONTROLS = [
    {"kind": "choice", "name": "gain", "label": "gain", "values": ["1/2, Xavier", "1, He"], "start": 0},
    {"kind": "slider", "name": "shift", "label": "shift", "range": [-8, 8, 0.5], "start": 0},
]


def phrase(target):
    """A notebook whose prose has a phrase with that target, before the figure."""
    text = f"The line is {{set}}`steep & high <{target}>` here."
    steered = json.dumps({**json.loads(chart()), "controls": CONTROLS[:1]} | FRAMES)
    return {"cell_type": "markdown", "id": "m", "metadata": {}, "source": [text]}, cell(steered)


FRAMES = {"frames": 2 * json.loads(chart())["frames"]}


def test_a_phrase_knows_the_state_that_it_sets(tmp_path):
    page(tmp_path, "```{toctree}\nnotebooks/03-norms\n```")
    notebook(tmp_path, *phrase("rise: gain=1, He"))
    assert build(tmp_path) == ""
    shown = BeautifulSoup(html(tmp_path, "notebooks/03-norms"), "html.parser").select_one("span.live-set")
    assert shown.text == "steep & high"
    assert shown["data-figure"] == "live-rise"
    assert json.loads(shown["data-to"]) == {"gain": 1}
    assert build(tmp_path, "text") == ""


def test_a_phrase_can_set_several_controls_by_what_the_reader_sees():
    assert state(CONTROLS, "gain=1/2, Xavier; shift = -3") == {"gain": 0, "shift": -3}


UNKNOWN = {
    "the page has no 'fall'; it has rise": "fall: gain=1, He",
    "gain has no '1'; it has 1/2, Xavier, 1, He": "rise: gain=1",
    "'gamma=1' is not of the form control=value with a control of ['gain']": "rise: gamma=1",
    "'gain' is not of the form control=value": "rise: gain",
    "'' is not of the form control=value": "rise",
}


@pytest.mark.parametrize("fault", UNKNOWN)
def test_a_phrase_for_an_unknown_state_is_a_warning_in_every_build(tmp_path, fault):
    page(tmp_path, "```{toctree}\nnotebooks/03-norms\n```")
    notebook(tmp_path, *phrase(UNKNOWN[fault]))
    for _ in range(2):
        assert fault in build(tmp_path)
    assert "steep &amp; high" in html(tmp_path, "notebooks/03-norms")
    assert 'class="live-set"' not in html(tmp_path, "notebooks/03-norms")


@pytest.mark.parametrize("value", ["9", "nan", "much"])
def test_a_phrase_beyond_a_slider_is_a_fault(value):
    with pytest.raises(ValueError, match=f"shift goes from -8 to 8, not to '{value}'"):
        state(CONTROLS, f"shift={value}")


@pytest.mark.parametrize(
    "path", [path for path in chapters() if re.match(r"0[1-6]-", path.name)], ids=lambda path: path.stem
)
def test_the_prose_of_a_main_chapter_sets_a_figure(path):
    cells = notebook_text.read_file(path)["cells"]
    assert any("{set}`" in "".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_stored_pictures_are_what_the_script_draws_now(path):
    """A change of `live.js` makes stored pictures stale; this test detects it without running the chapters."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    outputs = [output for c in cells for output in c.get("outputs", []) if live.stored(output)]
    for output in outputs:
        fresh = base64.b64encode(live.still(live.stored(output))).decode()
        worst = worst_block(pixels(output["data"]["image/png"]), pixels(fresh))
        assert worst <= LIMIT, f"{output['data']['text/plain']} Run: python3 course.py refresh"


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_the_numbers_of_a_sentence_have_a_minus_sign(path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    for table in filter(None, (live.stored(output) for c in cells for output in c.get("outputs", []))):
        found = re.findall(
            r".*(?<![\w-])-\d.*", "\n".join(frame["say"] for frame in json.loads(table).get("frames", []))
        )
        assert not found, found[0]


def test_no_line_of_a_sentence_ends_before_a_percent_sign():
    figure = live.markup(chart().replace("It rises.", "It has come 60 % of the way."))
    said = figure.partition('<p class="live-say">')[2]
    assert said.startswith("It has come 60\N{NO-BREAK SPACE}% of the way.</p>")


@pytest.mark.parametrize(
    "path", [path for path in chapters() if re.match(r"\d\d-", path.name)], ids=lambda path: path.stem
)
def test_every_chapter_has_a_live_figure(path):
    """Deep dives need none."""
    assert stored_figures(path)


def test_only_pages_with_a_live_figure_load_its_script():
    pages = [path.read_text("utf-8") for path in PAGES.rglob("*.html")]
    figures = [bool(re.search("<figure[^>]* data-live=", page)) for page in pages]
    assert sum(figures) > 10
    assert ["/live.js" in page for page in pages] == figures
