"""The Python side of live figures: the stored output, and the errors for bad input."""

import io
import json
import re

import numpy as np
import pytest
from PIL import Image

from subnorm_lab import live
from subnorm_lab.figures import BLUE, GREEN, LOOKS, ORANGE, STILL

ALT = "A line that rises from left to right, twice as steep at the end of the slider."
TITLE = "A line through two points, with a slope to choose"
SLOPE = live.slider("slope", "slope of the line", [1, 2, 4], 2)
SIGN = live.choice("sign", "direction", {"up": 1, "down": -1}, 1)
PANEL = live.Lines(live.Axis("x"), live.Axis("y"), {"line": live.Curve("a line", **LOOKS["pre"])})


def frame(slope, sign):
    return f"The slope is {slope * sign}.", [{"line": ([0, 1, 2], sign * slope * np.array([0, 1, np.nan]))}]


@pytest.fixture
def shown(monkeypatch):
    """The published outputs: a list of ({MIME type: content}, metadata)."""
    published = []
    monkeypatch.setattr(live, "publish_display_data", lambda data, metadata=None: published.append((data, metadata)))
    monkeypatch.setenv("SUBNORM_STORED", "1")
    return published


def spec(output):
    return json.loads(output[1]["live"])


def chart(**changes):
    arguments = {
        "name": "slope",
        "title": TITLE,
        "controls": [SLOPE, SIGN],
        "panels": [PANEL],
        "frame": frame,
        "alt": ALT,
    }
    live.chart(**{**arguments, **changes})


def test_a_chart_has_a_frame_for_every_position_of_its_controls(shown):
    chart()
    stored = spec(shown[0])
    assert [control["values"] for control in stored["controls"]] == [["1", "2", "4"], ["up", "down"]]
    assert [control["start"] for control in stored["controls"]] == [1, 0]
    assert [f["say"] for f in stored["frames"]] == [f"The slope is {k}." for k in (1, -1, 2, -2, 4, -4)]
    assert stored["frames"][2]["panels"] == [{"line": {"x": [0, 1, 2], "y": [0, 2, None]}}]


def test_a_slider_that_plays_has_a_button(shown):
    chart()
    chart(controls=[live.slider("slope", "slope of the line", [1, 2, 4], 2, play=True), SIGN])
    assert [["play" in control for control in spec(output)["controls"]] for output in shown] == [[0, 0], [1, 0]]
    assert [live.markup(output[1]["live"]).count(">Play</button>") for output in shown] == [0, 1]


def test_what_is_stored_is_a_picture_and_a_table(shown):
    chart()
    data, metadata = shown[0]
    assert set(data) == {"image/png", "text/plain"}
    assert data["text/plain"] == ALT
    png = Image.open(io.BytesIO(data["image/png"]))
    assert metadata["image/png"]["width"] * STILL == png.width
    picture = np.array(png.convert("RGB")).reshape(-1, 3)
    blue = [int(BLUE[k : k + 2], 16) for k in (1, 3, 5)]
    assert 300 < np.sum(np.abs(picture - blue).max(axis=1) < 4) < 5000  # the line, drawn in its colour
    assert np.all(picture[0] == 255)


def test_a_page_is_complete_without_a_script(shown):
    chart()
    html = live.markup(shown[0][1]["live"])
    assert html.count("<svg") == html.count("<script") == 1
    assert "The slope is 2.</p>" in html
    assert TITLE in html
    assert html.count('type="radio"') == 2
    assert html.count('type="range"') == 1


def test_the_still_picture_shows_its_words(shown):
    for label in ("x", "steps"):
        chart(panels=[live.Lines(live.Axis(label), live.Axis("y"), PANEL.curves)])
    one, other = (output[0]["image/png"] for output in shown)
    assert one != other


def test_elsewhere_it_brings_its_script_and_its_style(shown, monkeypatch):
    monkeypatch.delenv("SUBNORM_STORED")
    chart()
    html = shown[0][0]["text/html"]
    assert live.SCRIPT.read_text("utf-8") in html
    assert live.STYLE.read_text("utf-8") in html
    assert 'data-live="chart"' in html


def test_the_axes_hold_the_data_of_all_states(shown):
    chart()
    low, high = spec(shown[0])["panels"][0]["y"]["limits"]
    assert low < -4
    assert high > 4
    log = live.Lines(live.Axis("x"), live.Axis("y", log=True), PANEL.curves)
    chart(panels=[log], frame=lambda slope, sign: ("It rises.", [{"line": ([0, 1], [0.03 * slope, 700])}]))
    assert spec(shown[1])["panels"][0]["y"]["limits"] == [0.01, 1000]


TICK = r'<text x="{}" y="{}" text-anchor="{}">([\d.]+)</text>'


@pytest.mark.parametrize("log", [False, True])
def test_a_point_stands_where_the_ticks_say(shown, log):
    """Against the tick labels, on both axes, to half a pixel."""
    x, y = np.array([2, 5, 40.0]), np.array([0.3, 20, 500])
    axis = live.Axis("", log=log)
    chart(panels=[live.Lines(axis, axis, PANEL.curves)], frame=lambda slope, sign: ("It rises.", [{"line": (x, y)}]))
    svg = live.markup(shown[0][1]["live"])
    points = re.search(r'<polyline[^>]* points="([^"]+)"', svg)[1]
    drawn = np.array([point.split(",") for point in points.split()], float)
    across = re.findall(TICK.format(r"([\d.]+)", r"[\d.]+", "middle"), svg)
    up = re.findall(TICK.format(r"[\d.]+", r"([\d.]+)", "end"), svg)
    place = np.log if log else np.asarray
    for ticks, values, pixels in ((across, x, drawn[:, 0]), (up, y, drawn[:, 1] + 4)):  # a label hangs 4 px lower
        at, label = np.array(ticks, float).T
        assert len(at) >= 2
        slope, start = np.polyfit(place(label), at, 1)
        np.testing.assert_allclose(slope * place(values) + start, pixels, atol=0.5)


def test_seeds_are_drawn_as_median_and_range(shown):
    chart(frame=lambda slope, sign: ("Three seeds.", [{"line": ([0, 1], [[1, 2], [2, 4], [9, 3]])}]))
    assert spec(shown[0])["frames"][0]["panels"][0]["line"] == {"x": [0, 1], "y": [2, 3], "low": [1, 2], "high": [9, 4]}


def test_a_missing_value_interrupts_a_curve(shown):
    chart(frame=lambda slope, sign: ("A gap.", [{"line": (range(5), [0, 1, np.nan, 1, 2])}]))
    lines = re.findall(r'<polyline[^>]* points="([^"]+)"', live.markup(shown[0][1]["live"]))
    assert [len(line.split()) for line in lines] == [2, 2]


def drawn(shown, panel, y):
    """The picture of one curve over 0, 1, …, and the points of its line in px."""
    chart(panels=[panel], frame=lambda slope, sign: ("A curve.", [{"line": (range(len(y)), y)}]))
    picture = live.markup(shown[0][1]["live"])
    line = re.search(r'<polyline[^>]* points="([^"]+)"', picture)[1]
    return picture, [[float(v) for v in point.split(",")] for point in line.split()]


LEAVES = [((1, 1, 9, 30), 1.125, "to 30"), ((1, 1, -7), 1.125, "to −7"), ((1, 2, 2), 2, "")]


@pytest.mark.parametrize(("y", "end", "told"), LEAVES)
def test_a_curve_ends_where_it_leaves_its_panel_and_says_what_it_reaches(shown, y, end, told):
    axes = live.Axis("x", limits=(0, 4)), live.Axis("y", limits=(0, 2))
    picture, line = drawn(shown, live.Lines(*axes, {"line": live.Curve("y", marks="too")}), y)
    assert line[-1][0] - line[0][0] == pytest.approx(end * (line[1][0] - line[0][0]), abs=0.2)
    assert picture.count("<path") == bool(told)
    assert picture.count("<circle") == sum(0 <= v <= 2 for v in y)
    assert re.findall(">(to .*?)<", picture) == [told] * bool(told)


def test_on_equal_axes_one_is_as_long_up_as_across(shown):
    axes = live.Axis("x", limits=(0, 2)), live.Axis("y", limits=(-3, 3))
    _, ((x0, y0), (x1, y1)) = drawn(shown, live.Lines(*axes, PANEL.curves, equal=True), (0, 1))
    assert x1 - x0 == pytest.approx(y0 - y1, abs=0.2)


def test_five_digits_are_stored(shown):
    chart(frame=lambda slope, sign: ("Pi.", [{"line": ([0, 1], [np.pi, 1e-7 * np.pi])}]))
    assert spec(shown[0])["frames"][0]["panels"][0]["line"]["y"] == [3.1416, 3.1416e-7]


def test_a_text_cannot_end_the_script(shown):
    chart(frame=lambda slope, sign: ("</script><b>", [{"line": ([0, 1], [0, 1])}]))
    html = live.markup(shown[0][1]["live"])
    assert html.count("</script>") == 1
    assert "<b>" not in html.split("<script")[0]
    inside = re.search(r'<script type="application/json">(.*)</script>', html)[1]
    assert json.loads(inside)["frames"][0]["say"] == "</script><b>"


def heat(cells, **changes):
    look = {"limits": (-2, 2), "colors": (BLUE, ORANGE), "digits": 1}
    panel = live.Heat("cells", live.Axis("column"), ["a", "b"], ["1", "2", "3"], **{**look, **changes})
    chart(panels=[panel], frame=lambda slope, sign: ("Six cells.", [cells]))


def test_cells_are_coloured_by_sign_and_say_their_value(shown):
    heat([[1, -2, 0], [0.5, np.nan, 2]])
    svg = live.markup(shown[0][1]["live"]).split("</svg>")[0]
    assert svg.count("<rect") == 5
    assert svg.count("var(--live-blue)") == 4
    assert svg.count("var(--live-orange)") == 1
    assert ">−2.0<" in svg


def test_a_bar_of_colours_is_above_the_cells_and_names_values_where_they_are(shown):
    cells = [[1, -2, 0], [0.5, np.nan, 2]]
    heat(cells, digits=None)
    heat(cells, digits=None, bar={-2: "low", 0: "none", 2: "high"})
    plain, keyed = (live.markup(output[1]["live"]).split("</svg>")[0] for output in shown)
    words = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="middle" class="small">(\w+)</text>', keyed)
    assert [word for _, _, word in words] == ["low", "none", "high"]
    left, middle, right = (float(x) for x, _, _ in words)
    assert middle == (left + right) / 2
    bar = [[int(v) for v in box] for box in re.findall(r"M(\d+) (0)h(\d+)v12", keyed)]
    assert min(x for x, _, _ in bar) == left
    assert max(x + wide for x, _, wide in bar) == right
    first = {
        name: float(re.search(r'y="([\d.]+)"[^>]*class="title"', svg)[1])
        for name, svg in (("plain", plain), ("keyed", keyed))
    }
    assert first["keyed"] > max(float(y) for _, y, _ in words) > first["plain"]


def test_cells_without_a_number_are_one_path_for_each_shade(shown):
    heat([[1, 1, -1], [0.5, np.nan, 1]], digits=None)
    svg = live.markup(shown[0][1]["live"]).split("</svg>")[0]
    paths = dict(re.findall(r'<path fill="var\(--live-(\w+)\)" fill-opacity="[\d.]+" d="([^"]+)"', svg))
    assert svg.count("<path") == 4
    assert re.search('class="zero" d="([^"]+)"', svg)[1].count("M") == 3  # below all cells but the empty one
    assert paths["orange"].count("M") == 1
    strong = re.search(r'live-blue\)" fill-opacity="0.50" d="([^"]+)"', svg)[1]
    assert strong.count("M") == 2  # two neighbours are one box, and the cell below the negative one
    assert 'live-blue)" fill-opacity="0.25"' in svg


def bars(*rows, **changes):
    chart(panels=[live.Bars("words", len(rows), **changes)], frame=lambda slope, sign: ("It talks.", [rows]))


def columns(*pairs):
    chart(panels=[live.Columns("halves", (0.0, 2.0))], frame=lambda slope, sign: ("Two bars.", [pairs]))


def test_columns_that_reach_their_hollow_bars_are_green(shown):
    columns((0.5, 1.0), (1.5, 1.5))
    svg = live.markup(shown[0][1]["live"]).split("</svg>")[0]
    drawn = re.findall(r'height="([\d.]+)" class="(bar|ghost)[ "]+(?:style="fill:var\(--live-(\w+)\)")?', svg)
    assert [(look, paint) for _, look, paint in drawn] == [("bar", ""), ("bar", "green"), ("ghost", ""), ("ghost", "")]
    heights = np.array([float(height) for height, _, _ in drawn])
    np.testing.assert_allclose(heights / heights[1], [1 / 3, 1, 2 / 3, 1], atol=0.01)


def grid(line, by="row", rows=("a", "b"), word="cat"):
    cells = [[(word, None), ("dog ✓", GREEN)], [("NaN", ORANGE), ("–", None)]]
    panel = live.Grid("words", rows, ["1", "2"], cells, corner="reads", by=by)
    chart(panels=[panel], frame=lambda slope, sign: ("It talks.", [line]))


@pytest.mark.parametrize(("by", "line"), [("row", 0), ("row", 1), ("column", 0), ("column", 1)])
def test_a_grid_has_its_words_and_frames_the_line_that_is_described(shown, by, line):
    grid(line, by)
    svg = live.markup(shown[0][1]["live"]).split("</svg>")[0]
    *cells, mark = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="([^"]+)"', svg)
    assert [cell[4] for cell in cells] == [f"var(--live-{name})" for name in ("line", "green", "orange", "line")]
    assert mark[4] == "none"
    first = cells[line if by == "column" else 2 * line]
    assert mark[:2] == first[:2]
    across, down = float(mark[2]) / float(first[2]), float(mark[3]) / float(first[3])
    assert (across > 1.9, down > 1.9) == (by == "row", by == "column")
    for word in ("reads", "a", "b", "1", "2", "cat", "dog ✓", "NaN", "–"):
        assert f">{word}</text>" in svg


def test_a_grid_writes_all_its_words_small_if_one_does_not_fit(shown):
    grid(0)
    grid(0, word="a word " * 12)
    plain, small = (re.findall(r'<text [^>]*class="small"', live.markup(output[1]["live"])) for output in shown)
    assert (len(plain), len(small)) == (0, 6)  # the labels of two columns and four cells


def test_bars_are_as_long_as_their_values_and_a_marked_word_is_checked(shown):
    bars(("a", "cat", 2.0, False), ("the", "dog", 0.5, np.True_), ("", "bird", 0.0, False), full=2.0)
    svg = live.markup(shown[0][1]["live"]).split("</svg>")[0]
    boxes = re.findall(r'<rect x="([\d.]+)" y="(\d+)" width="([\d.]+)" height="6" fill="var\(--live-(\w+)\)"', svg)
    assert [box[3] for box in boxes] == ["line", "blue", "line", "green", "line", "blue"]
    assert len({box[0] for box in boxes}) == 1
    full, *lengths = [float(boxes[k][2]) for k in (0, 1, 3, 5)]
    np.testing.assert_allclose(lengths, [full, full / 4, 0], atol=0.1)
    words = re.findall(r'<text x="[\d.]+" y="(\d+)" text-anchor="\w+"(?: class="number")?>([^<]+)</text>', svg)
    lines = {at: [word for y, word in words if y == at] for at, _ in words}
    assert list(lines.values()) == [["a", "cat", "2.00"], ["the", "dog ✓", "0.50"], ["bird", "0.00"]]


def test_a_row_that_is_not_reached_yet_has_no_value(shown):
    bars(("1", "cat", 0.0, False), ("2", "", 0.0, False), ("3", "", 0.5, False))
    svg = live.markup(shown[0][1]["live"]).split("</svg>")[0]
    assert re.findall(r'text-anchor="end"[^>]*>([^<]+)</text>', svg) == ["1", "0.00", "2", "3", "0.50"]


def sketch(**changes):
    arguments = {
        "name": "size",
        "title": "Draw the size of the token after each block",
        "x": live.Axis("block"),
        "y": live.Axis("size", log=True, limits=(1e-4, 1e2)),
        "truth": ([0, 6, 12], [1, 0.1, 0.01]),
        "knots": [0, 6, 12],
        "alt": "A line that falls by two powers of ten over twelve blocks.",
    }
    live.sketch(**{**arguments, **changes})


def test_a_sketch_starts_level_in_the_middle_and_has_the_measured_curve(shown):
    sketch()
    stored = spec(shown[0])
    assert [control["start"] for control in stored["controls"]] == [-1, -1, -1]
    assert stored["truth"] == {"x": [0, 6, 12], "y": [1, 0.1, 0.01]}
    html = live.markup(shown[0][1]["live"])
    lines = dict(re.findall(r'<g class="(guess|truth)">.*?<polyline [^>]*points="([^"]*)"', html))
    heights = {name: [float(point.split(",")[1]) for point in points.split()] for name, points in lines.items()}
    assert len(set(heights["guess"])) == 1
    low, middle, high = heights["truth"][::-1][0], heights["guess"][0], heights["truth"][0]
    np.testing.assert_allclose((middle - high) / (low - middle), 1.0, atol=0.02)  # 1 and 0.01, about 0.1
    assert "Draw with sliders" in html


PLACE = live.choice("norm", "where the norm is", {"before F": "pre", "after the plus": "post", "none": "none"}, "pre")
UNDER = live.choice("norm", "where the norm is", {"before F": "pre", "under F": "under"}, "pre")


def block(control=PLACE, controls=(PLACE,), given=None, title="one sublayer"):
    chart(
        panels=[live.Block(title, control)], controls=controls, frame=lambda norm: (f"It is {norm}.", [given or norm])
    )


def test_the_norm_of_a_block_is_at_its_place_and_the_free_path_is_marked(shown):
    block()
    table = shown[0][1]["live"]
    assert [f["panels"] for f in spec(shown[0])["frames"]] == [["pre"], ["post"], ["none"]]
    for k, free in enumerate([True, False, True]):
        svg = live.renderer().eval(f"subnormLive.picture({table}, {{norm: {k}}}).svg")
        handle = re.search(
            r'<g class="drag handle" data-sets="norm" data-places="(.*?)" data-x="(.*?)" data-y="(.*?)"', svg
        )
        assert json.loads(handle[1])[k] == [float(handle[2]), float(handle[3])]
        assert len(re.findall(r'class="drag" data-sets', svg)) == 2  # the empty places
        assert ('stroke-width="12"' in svg) == free
        assert ("x reaches the next sum as it is" in svg) == free
        assert ("x has to pass the norm" in svg) != free


def cloud(points=((1, 2, 4), (0, -1, 2)), **changes):
    live.cloud("space", TITLE, points, ALT, **changes)


def test_a_cloud_starts_raw_and_with_the_norm_asked_for(shown):
    cloud()
    cloud(norm="rms")
    assert spec(shown[0])["x"] == [[1, 2, 4], [0, -1, 2]]
    for output, norm in zip(shown, (0, 1), strict=True):
        assert {c["name"]: c["start"] for c in spec(output)["controls"][:3]} == {
            "norm": norm,
            "project": 0,
            "rescale": 0,
        }
    html = live.markup(shown[0][1]["live"])
    assert html.count("<script") == 1
    assert "2 tokens of d = 3 features fill the space" in html
    assert html.count('class="token"') == 2


FAULTS = {
    "a place that no norm has": lambda: block(UNDER, controls=[UNDER]),
    "a place that the control lacks": lambda: block(given="branch"),
    "a block whose control is not in the chart": lambda: block(
        controls=[live.choice("norm", "norm", ["pre", "post"], "pre")]
    ),
    "a cloud of two features": lambda: cloud([(1, 2)]),
    "a cloud of one token without a row": lambda: cloud([1, 2, 4]),
    "a cloud of no tokens": lambda: cloud(np.zeros((0, 3))),
    "a cloud with a hole": lambda: cloud([(1, 2, np.nan)]),
    "a token on the line of ones": lambda: cloud([(1, 2, 4), (5, 5, 5)]),
    "a token at 0": lambda: cloud([(0, 0, 0)]),
    "a cloud through an unknown norm": lambda: cloud(norm="batch"),
    "a sketch whose axis gives the answer away": lambda: sketch(y=live.Axis("size")),
    "a sketch of two knots": lambda: sketch(knots=[0, 12]),
    "a sketch of unordered knots": lambda: sketch(knots=[0, 12, 6]),
    "a sketch of a truth that is no curve": lambda: sketch(truth=([0, 1], [1])),
    "a start that is no value": lambda: live.slider("slope", "slope", [1, 2], 3),
    "one value": lambda: live.choice("slope", "slope", [1], 1),
    "a name that is no argument": lambda: live.slider("the slope", "slope", [1, 2], 1),
    "a name with capitals": lambda: chart(name="Slope"),
    "a short title": lambda: chart(title="A line"),
    "a short alt": lambda: chart(alt="A line"),
    "an unknown curve": lambda: chart(frame=lambda slope, sign: ("It rises.", [{"arc": ([0, 1], [0, 1])}])),
    "a panel without data": lambda: chart(frame=lambda slope, sign: ("It rises.", [])),
    "x and y of two lengths": lambda: chart(frame=lambda slope, sign: ("It rises.", [{"line": ([0, 1], [0, 1, 2])}])),
    "zero on a logarithmic axis": lambda: chart(
        panels=[live.Lines(live.Axis("x"), live.Axis("y", log=True), PANEL.curves)],
        frame=lambda slope, sign: ("It rises.", [{"line": ([0, 1], [0, 1])}]),
    ),
    "cells of another shape": lambda: heat([[1, 2], [3, 4]]),
    "a colour of another palette": lambda: chart(
        panels=[live.Lines(live.Axis("x"), live.Axis("y"), {"line": live.Curve("a line", color="red")})],
        frame=lambda slope, sign: ("It rises.", [{"line": ([0, 1], [0, 1])}]),
    ),
    "marks of another kind": lambda: chart(
        panels=[live.Lines(live.Axis("x"), live.Axis("y"), {"line": live.Curve("a line", marks="dots")})],
        frame=lambda slope, sign: ("It rises.", [{"line": ([0, 1], [0, 1])}]),
    ),
    "no finite value": lambda: chart(frame=lambda slope, sign: ("It rises.", [{"line": ([0, 1], [np.nan, np.inf])}])),
    "no curve in any frame": lambda: chart(frame=lambda slope, sign: ("It rises.", [{}])),
    "two controls of one name": lambda: chart(controls=[SLOPE, SLOPE], frame=lambda slope: frame(slope, 1)),
    "two sliders that play": lambda: chart(
        controls=[live.slider(name, name, [1, 2], 1, play=True) for name in ("slope", "sign")]
    ),
    "cells of another palette": lambda: heat([[1, 2, 3], [4, 5, 6]], colors=("red",)),
    "cells of three colours": lambda: heat([[1, 2, 3], [4, 5, 6]], colors=(BLUE, ORANGE, BLUE)),
    "a row too many": lambda: chart(
        panels=[live.Bars("words", 1)], frame=lambda slope, sign: ("It talks.", [2 * [("", "cat", 1.0, True)]])
    ),
    "a bar beyond its limit": lambda: bars(("", "cat", 1.01, False)),
    "a bar below 0": lambda: bars(("", "cat", -0.1, False)),
    "a bar of no length": lambda: bars(("", "cat", np.nan, False)),
    "a column beyond its limit": lambda: columns((0.5, 2.5)),
    "a column that is no number": lambda: columns((np.nan, 1.0)),
    "a row of a grid too few": lambda: grid(0, rows=["a", "b", "c"]),
    "a line that a grid does not have": lambda: grid(2),
    "an unknown norm": lambda: live.norms("steps", TITLE, ["batch"], ALT),
    "no norm": lambda: live.norms("steps", TITLE, [], ALT),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_bad_input_is_told(shown, fault):
    with pytest.raises(ValueError, match=r"; got .+\.|has 0\. Clip them|this panel has|has none\."):
        FAULTS[fault]()
    assert shown == []
