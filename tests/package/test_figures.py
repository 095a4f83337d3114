"""Every picture has an alt text, and visible, distinguishable lines."""

import ast
import io
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib import colors, image
from matplotlib.patches import Rectangle

import subnorm_lab.figures
from subnorm_lab import _labels, _svg, diagrams
from subnorm_lab.figures import (
    LOOKS,
    as_png,
    name,
    name_curve,
    name_ends,
    narrow,
    rows,
    show,
    title,
    use_style,
    wide,
    with_palette,
)

CHAPTERS = sorted(Path(subnorm_lab.__file__).parent.glob("chapters/*.py"))
ALT = "One line that rises from 0 to 1."


@pytest.fixture(autouse=True)
def own_style() -> Iterator[None]:
    mpl.use("Agg")
    with mpl.rc_context():
        yield
    plt.close("all")


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr(
        subnorm_lab.figures,
        "publish_display_data",
        lambda data, metadata=None: shown.append({**data, "metadata": metadata}),
    )
    return shown


def words_in(svg: str) -> list[str]:
    """The words of an SVG that are text."""
    return ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_a_figure_is_shown_as_svg_with_its_words_and_closed(outputs: list[dict[str, Any]]) -> None:
    fig, ax = plt.subplots(figsize=(2, 1))
    ax.plot([0, 1], color=subnorm_lab.figures.BLUE)
    show(fig, ALT, dpi=50)
    assert not plt.get_fignums()
    (data,) = outputs
    assert set(data) == {"image/png", "text/plain", "metadata"}
    assert data["text/plain"] == ALT
    svg = wide(data)
    assert svg.startswith("<svg ")
    assert ' width="100" height="50" ' in svg
    picture = image.imread(io.BytesIO(as_png(svg)), format="png")
    assert picture.shape[:2] == (50, 100)
    assert np.array_equal(picture[0, 0, :3], [1, 1, 1])  # white, whatever the page's colour is
    blue = np.abs(picture[..., :3] - colors.to_rgb(subnorm_lab.figures.BLUE)).max(axis=-1)
    assert (blue < 0.2).sum() > 20  # the line
    beside = image.imread(io.BytesIO(data["image/png"]), format="png")
    assert beside.shape[:2] == (75, 150)  # for screens of more than one pixel to a CSS pixel
    assert data["metadata"] == {"image/png": {"width": 100}, "wide": svg}
    blue = np.abs(beside[..., :3] - colors.to_rgb(subnorm_lab.figures.BLUE)).max(axis=-1)
    assert (blue < 0.2).sum() > 40


def test_two_drawings_are_the_same_bytes(outputs: list[dict[str, Any]]) -> None:
    for _ in range(2):  # a difference in git is a difference in a result
        fig, ax = plt.subplots()
        ax.plot(np.sin(np.arange(50)), "o-")
        show(fig, ALT)
    one, other = map(wide, outputs)
    assert one == other
    assert outputs[0]["image/png"] == outputs[1]["image/png"]
    assert "metadata" not in one  # it would have the date
    assert not re.search(r' d="[^"]*\d\.\d{3}', one)


def test_words_are_text_in_the_readers_font_and_formulas_are_outlines(outputs: list[dict[str, Any]]) -> None:
    fig, ax = plt.subplots()
    ax.set(title="a title", xlabel="the gain $\\gamma$", ylabel="loss", yscale="log", ylim=(1e-12, 100), xlim=(-1, 1))
    ax.text(0, 1, "upside\ndown & <out>")
    show(fig, ALT)
    svg = wide(outputs[0])
    found = words_in(svg)
    assert {"a title", "loss", "\N{MINUS SIGN}0.75", "upside", "down & <out>", "10\N{MINUS SIGN}10"} <= set(found)
    for drawn, size in ((svg, 70), (narrow(outputs[0]), 91)):
        assert f'>10<tspan dy="-0.45em" font-size="{size}%">\N{MINUS SIGN}10</tspan></text>' in str(drawn)
    assert not any("gain" in words or "$" in words or "^" in words for words in found)
    assert "font-family:" not in svg  # the picture's own says it once
    assert svg.count("font-family=") == 1


def test_the_font_of_figures_is_that_of_the_page() -> None:
    style = Path(__file__).parents[2].joinpath("book", "_static", "subnorm.css").read_text("utf-8")
    (font,) = re.findall("--pst-font-family-base: ([^;]*);", style)
    assert font.replace('"', "'") == _svg.FONT


def heights(svg: str, words: str) -> list[float]:
    """How far from the upper edge these words are."""
    found = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return [
        float(text.get("y") or text.attrib["transform"].split()[1].rstrip(")"))
        for text in found
        if "".join(text.itertext()) == words
    ]


@pytest.mark.parametrize(("y", "at"), [([1, 10, 1000], (1.5, 100)), ([1, 0.1, 0.001], (1.5, 0.01))])
def test_a_curve_that_leaves_its_panel_has_an_arrow_head_there(y: list[float], at: tuple[float, float]) -> None:
    _, ax = plt.subplots()
    ax.set(xlim=(0, 4), yscale="log", ylim=(0.01, 100))
    subnorm_lab.figures.leave(ax, "to somewhere", range(3), y)
    assert np.allclose(ax.lines[-1].get_xydata(), [at])
    assert ax.texts[-1].get_text() == "to somewhere"
    assert not ax.lines[-1].get_clip_on()


def test_a_phone_has_the_panels_of_a_wide_figure_below_one_another(outputs: list[dict[str, Any]]) -> None:
    use_style()
    fig, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True)
    for ax in axes:
        ax.plot([0, 1], label="one")
        ax.set(title="a panel", xlabel="a label that is much too long for the width of a phone, and so has two lines")
    axes[0].set_ylabel("loss")
    axes[0].set_yticks([0, 1], ["low", "high"])
    axes[1].legend(fontsize=6)
    title(fig, "It rises")
    show(fig, ALT)
    broad, svg = wide(outputs[0]), narrow(outputs[0])
    assert svg is not None
    assert svg.startswith("<svg ")
    assert f' width="{subnorm_lab.figures.PHONE_COLUMN}" ' in svg
    assert len(set(heights(broad, "a panel"))) == 1
    upper, lower = heights(svg, "a panel")
    (legend,) = heights(svg, "one")
    assert upper + 130 < lower
    assert lower + 130 < legend
    assert words_in(broad).count("loss") == words_in(svg).count("loss") == 1  # below the title
    assert len(heights(svg, "high")) == 2
    assert len(set(re.findall(r'style="([^"]*)"[^>]*>high<', svg))) == 1  # black in both panels
    assert "a label that is much too long for the" in " ".join(words_in(svg))
    assert not any(len(words) > 60 for words in words_in(svg))
    assert min(float(size) for size in re.findall(r"font-size: ([\d.]+)px", svg)) >= 9
    for size in ((4, 3), (4.3, 3)):  # large enough as it is
        fig, _ = plt.subplots(figsize=size)
        show(fig, ALT)
        assert narrow(outputs[-1]) is None


def test_a_phone_has_another_drawing_where_there_is_one(outputs: list[dict[str, Any]]) -> None:
    show(diagrams.placements(), ALT, narrow=diagrams.placements_upright())
    svg = narrow(outputs[0])
    assert svg is not None
    assert len(heights(svg, "feed-forward")) == 2
    assert len(set(heights(wide(outputs[0]), "norm"))) < len(set(heights(svg, "norm")))
    assert not plt.get_fignums()


def test_a_figure_that_is_heavier_as_svg_is_a_sharp_png(outputs: list[dict[str, Any]]) -> None:
    rng = np.random.default_rng(0)
    for points in (10, 10_000):
        fig, ax = plt.subplots(figsize=(2, 1))
        ax.plot(*rng.standard_normal((2, points)), "o")
        show(fig, ALT, dpi=50)
    light, heavy = outputs
    assert wide(light)
    assert set(heavy) == {"image/png", "text/plain", "metadata"}
    assert heavy["metadata"] == {"image/png": {"width": 100}}  # no height, which a narrow page makes smaller
    picture = image.imread(io.BytesIO(heavy["image/png"]), format="png")
    assert picture.shape[:2] == (100, 200)  # two pixels a dot, for screens that have them
    assert np.array_equal(picture[0, 0], [1, 1, 1, 1])


def test_a_picture_of_few_colours_looks_like_the_one_that_was_drawn() -> None:
    drawn = io.BytesIO()
    fig, (left, right) = plt.subplots(1, 2, figsize=(6, 3))
    left.plot(np.sin(np.arange(50)), color=subnorm_lab.figures.BLUE)
    right.imshow(np.linspace(0, 1, 1000).reshape(40, 25), cmap="cividis", aspect="auto")
    fig.savefig(drawn, format="png", dpi=200, facecolor="white")
    stored, again = (with_palette(drawn) for _ in range(2))
    assert stored == again
    assert len(stored) < drawn.tell() / 2
    few, many = (np.rint(255 * image.imread(io.BytesIO(png))[..., :3]) for png in (stored, drawn.getvalue()))
    assert len(np.unique(few.reshape(-1, 3), axis=0)) <= 256
    assert np.array_equal(few[0, 0], [255, 255, 255])
    assert (few == np.rint(255 * np.array(colors.to_rgb(subnorm_lab.figures.BLUE)))).all(axis=-1).sum() > 100
    smooth = many[60:240, 360:540]  # inside the heat map
    assert len(np.unique(smooth.reshape(-1, 3), axis=0)) > 150
    assert np.abs(few[60:240, 360:540] - smooth).mean() < 1  # levels of 255


def test_a_figure_without_words_is_refused(outputs: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match=r"alt must describe the figure; got 'A plot'.*Name the curves"):
        show(plt.figure(), "A plot")
    assert not outputs


def test_the_style_reaches_new_figures() -> None:
    use_style()
    fig, ax = plt.subplots()
    assert fig.get_size_inches().tolist() == [6.4, 3.6]
    assert not ax.spines["top"].get_visible()
    assert ax.plot([0, 1])[0].get_color() == subnorm_lab.figures.BLUE


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    rgb = np.array(colors.to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("name", LOOKS)
def test_every_line_stands_out_from_white(name: str) -> None:
    assert 1.05 / (luminance(LOOKS[name]["color"]) + 0.05) >= 3


def test_what_is_compared_differs_in_colour_and_in_line() -> None:
    for together in (("pre", "post"), ("layer", "rms"), ("plain", "residual")):
        for key in ("color", "linestyle"):
            assert len({LOOKS[name][key] for name in together}) == len(together)


@pytest.mark.parametrize("color", ["BLUE", "ORANGE", "GREEN", "PINK", "GREY", "BLACK"])
def test_a_name_in_the_colour_of_its_curve_is_dark_enough_to_read(color: str) -> None:
    _, ax = plt.subplots()
    name(ax, "a curve", (0, 0), getattr(subnorm_lab.figures, color))
    assert 1.05 / (luminance(ax.texts[0].get_color()) + 0.05) >= 4.5


def test_a_name_is_on_the_side_of_its_point_where_it_was_shifted() -> None:
    fig, ax = plt.subplots()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    for shift in ((6, 0), (-6, 0), (0, 6), (0, -6)):
        name(ax, "a curve", (0.5, 0.5), shift=shift)
    right, left, above, below = (text.get_window_extent(fig.canvas.get_renderer()) for text in ax.texts)  # type: ignore[attr-defined]
    x, y = ax.transData.transform((0.5, 0.5))
    assert left.x1 < x < right.x0
    assert below.y1 < y < above.y0
    assert left.y0 < y < left.y1
    assert above.x0 < x < above.x1


def test_names_at_the_ends_of_curves_do_not_cover_one_another() -> None:
    use_style()
    fig, ax = plt.subplots()
    ax.set(yscale="log", xlim=(0, 1), ylim=(1e-6, 1e6))
    values = {"far below": 1e-5, "two\nlines": 0.3, "near": 0.5, "nearer": 0.6, "far above": 1e5}
    name_ends(ax, [(words, (1, value), subnorm_lab.figures.BLUE) for words, value in values.items()])
    _labels.place(fig)
    fig.draw_without_rendering()
    boxes = {text.get_text(): text.get_window_extent() for text in ax.texts}
    assert list(boxes) == list(values)
    ordered = list(boxes.values())
    assert all(lower.y1 <= upper.y0 for lower, upper in itertools.pairwise(ordered))
    for words in ("far below", "far above"):  # these have room, and are at the height of their curve
        middle = (boxes[words].y0 + boxes[words].y1) / 2
        assert abs(middle - ax.transData.transform((1, values[words]))[1]) < 3


def test_names_of_curves_cover_no_curve_and_no_other_name() -> None:
    use_style()
    x = np.linspace(0, 1, 50)
    curves = {"rises": x, "falls": 1 - x, "hump": 4 * x * (1 - x), "steep": np.exp(-8 * x)}
    fig, ax = plt.subplots()
    for words, y in curves.items():
        ax.plot(x, y)
        name_curve(ax, words, x, y)
    ax.set_ylim(0, 0.9)  # two curves leave the panel
    ax.axhline(0.5)  # a line that is not in the units of the panel is in the way, too
    for size in ((6.4, 3.6), (4.3, 3.0)):
        fig.set_size_inches(size)
        _labels.place(fig)
        fig.draw_without_rendering()
        boxes = [text.get_window_extent() for text in ax.texts]
        for box, other in itertools.combinations(boxes, 2):
            assert not box.overlaps(other)
        for line, box in itertools.product(ax.lines, boxes):
            points = line.get_transform().transform(line.get_xydata())
            at = np.linspace(points[0, 0], points[-1, 0], 2000)
            height = np.interp(at, *points.T)
            inside = (at > box.x0) & (at < box.x1) & (height > box.y0) & (height < box.y1)
            assert not inside.any(), (size, box)
        for words, text in zip(curves.values(), ax.texts, strict=True):  # the nearest curve is its own
            middle = np.mean(text.get_window_extent().get_points(), axis=0)
            far = [np.hypot(*(ax.transData.transform(np.c_[x, y]) - middle).T).min() for y in curves.values()]
            assert min(far) == far[[y is words for y in curves.values()].index(True)]


def test_names_of_one_curve_have_different_places() -> None:
    _, ax = plt.subplots()
    for words in ("one name", "another"):
        name_curve(ax, words, [0, 1], [0, 1])
    ax.plot([0, 1])
    _labels.place(ax.figure)
    one, other = (text.get_window_extent() for text in ax.texts)
    assert not one.overlaps(other)


def test_a_curve_outside_its_panel_is_no_error() -> None:
    fig, ax = plt.subplots()
    ax.plot([0, 1], [5, 6])
    name_curve(ax, "far above", [0, 1], [5, 6])
    ax.set_ylim(0, 1)
    _labels.place(fig)
    assert not ax.get_window_extent().overlaps(ax.texts[0].get_window_extent())


@pytest.mark.parametrize(("finding", "above"), [("", ""), ("It falls", ""), ("", "a panel"), ("It falls", "a panel")])
def test_what_an_axis_shows_is_above_it(finding: str, above: str, outputs: list[dict[str, Any]]) -> None:
    use_style()
    fig, ax = plt.subplots()
    ax.set(ylabel="loss", title=above, yscale="log", ylim=(1e-3, 1), xlim=(0, 40_000), xticks=(0, 0.5, 20_000))
    title(fig, finding)
    show(fig, ALT)
    assert ' width="688" ' in wide(outputs[0])  # the column of a page
    sizes = {round(float(size) * 96 / 72, 1) for size in re.findall(r"font-size: ([\d.]+)px", wide(outputs[0]))}
    assert sizes == ({13, 14.8} if finding else {13})  # CSS pixels, as in a live figure
    for svg in (wide(outputs[0]), narrow(outputs[0])):
        found = words_in(svg)
        assert {"a panel: loss"} <= set(found) if above and not finding else {"loss"} <= set(found)
        assert {"10\N{MINUS SIGN}3", "0.01", "1", "0", "0.5", "20,000"} <= set(found)  # as at a live figure
        assert "rotate(-90" not in svg
        if finding and above:  # one line below the other
            lines = [heights(svg, words)[0] for words in (finding, "loss", above)]
            assert lines == sorted(lines)
            assert min(np.diff(lines)) > 8


def test_rows_go_down_and_each_line_ends_at_its_mark() -> None:
    _, ax = plt.subplots()
    ax.set_xlim(0, 4)
    rows(ax, ["one", "two"], [1, 3])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["one", "two"]
    low, high = ax.get_ylim()
    assert low > high
    (lines,) = ax.collections
    assert [segment.tolist() for segment in lines.get_segments()] == [[[0, 0], [1, 0]], [[0, 1], [3, 1]]]  # type: ignore[attr-defined]


def test_a_phone_breaks_the_title_above_all_panels(outputs: list[dict[str, Any]]) -> None:
    use_style()
    finding = "A long row of words says what the figure shows, and is wider than a phone"
    for words_of_title in ("It shows little", finding):
        fig, ax = plt.subplots()
        ax.set_yticks([0, 1], ["a row with a long name", "another"])
        title(fig, words_of_title)
        show(fig, ALT)
    assert words_in(wide(outputs[1])).count(finding) == 1
    short, long = (narrow(output) for output in outputs)
    assert "It shows little" in words_in(short)
    assert finding not in words_in(long)
    assert finding in " ".join(words_in(long))
    size = [float(re.search(r' height="(\d+)"', svg)[1]) for svg in (short, long)]  # type: ignore[index]
    assert size[1] > size[0] + 10  # the second line has room of its own


def test_a_title_that_the_numbers_do_not_show_is_left_out() -> None:
    rising = np.arange(3)
    fig, _ = plt.subplots()
    title(fig, "It rises", bool((np.diff(rising) > 0).all()))
    assert fig.get_suptitle() == "It rises"
    fig, _ = plt.subplots()
    with pytest.warns(UserWarning, match="With these numbers the figure does not show its finding, 'It rises'"):
        title(fig, "It rises", bool((np.diff(-rising) > 0).all()))
    assert fig.get_suptitle() == ""


def titles(path: Path) -> list[ast.Call]:
    calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
    return [call for call in calls if ast.unparse(call.func) == "figures.title"]


@pytest.mark.parametrize("path", [path for path in CHAPTERS if titles(path)], ids=lambda path: path.stem)
def test_a_title_has_its_condition_or_is_computed(path: Path) -> None:
    for _, finding, *holds in (call.args for call in titles(path)):
        computed = any(isinstance(part, ast.FormattedValue) for part in ast.walk(finding))
        assert computed or holds, f"{path.name}: give figures.title what makes {ast.unparse(finding)} true"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_plot_has_its_finding_as_title(path: Path) -> None:
    functions = [node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]
    for function in functions:
        calls = {ast.unparse(call.func) for call in ast.walk(function) if isinstance(call, ast.Call)}
        if "plt.subplots" in calls and "ax.axis" not in calls:  # a diagram switches its axes off
            assert "figures.title" in calls, f"{path.name}: give the plot of {function.name} a title, its finding"


def words(fig: plt.Figure) -> list[str]:
    return [text.get_text() for text in fig.axes[0].texts]


def test_the_attention_sublayer_names_its_steps_in_order_with_their_shapes() -> None:
    names = [word for word in words(diagrams.attention_sublayer()) if word.isalpha()]
    assert [n for n in names if n != "dropout"] == ["heads", "scores", "weights", "mix", "merge", "out", "norm"]
    assert words(diagrams.attention_sublayer()).count("(2, 8, 30, 30)") == 2


@pytest.mark.parametrize(
    ("norm", "shared"), [("LayerNorm", 4), ("BatchNorm", 6), ("GroupNorm", 6), ("InstanceNorm", 3)]
)
def test_the_entries_that_share_a_statistic_are_coloured(norm: str, shared: int) -> None:
    (panel,) = diagrams.normalised_axes((norm,)).axes
    color = colors.to_rgba(diagrams.SHARED[norm][0])
    assert [patch.get_facecolor() for patch in panel.patches].count(color) == shared
    assert len(panel.patches) == 24


def test_what_is_added_stays_as_wide_and_what_is_concatenated_does_not() -> None:
    (ax,) = diagrams.add_or_concatenate().axes
    squares = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    last = max(square.get_x() for square in squares)
    upper, lower = (
        [square for square in squares if square.get_x() == last and (square.get_y() > 2.5) == high]
        for high in (True, False)
    )
    assert (len(upper), len(lower)) == (4, 8)
    assert {colors.to_hex(square.get_edgecolor()).upper() for square in lower} == {
        subnorm_lab.figures.GREEN,
        subnorm_lab.figures.BLUE,
    }
