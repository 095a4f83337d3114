"""Every picture has an alt text, and visible, distinguishable lines."""

import io
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib import colors, image
from matplotlib.patches import Rectangle

import subnorm.figures
from subnorm import diagrams
from subnorm.figures import LOOKS, show, use_style

ALT = "One line that rises from 0 to 1."


@pytest.fixture(autouse=True)
def own_style() -> Iterator[None]:
    mpl.use("Agg")
    with mpl.rc_context():
        yield
    plt.close("all")


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr(
        subnorm.figures,
        "publish_display_data",
        lambda data, metadata: shown.append({**data, "size": metadata["image/png"]}),
    )
    return shown


def test_a_figure_is_shown_as_png_with_its_words_and_closed(published: list[dict[str, Any]]) -> None:
    fig, ax = plt.subplots(figsize=(2, 1))
    ax.plot([0, 1])
    show(fig, ALT, dpi=50)
    assert not plt.get_fignums()
    (data,) = published
    assert data["text/plain"] == ALT
    picture = image.imread(io.BytesIO(data["image/png"]), format="png")
    assert data["size"] == {"width": 100}  # no height, which a narrow page makes smaller
    assert picture.shape[:2] == (100, 200)  # two pixels a dot, for screens that have them
    assert np.array_equal(picture[0, 0], [1, 1, 1, 1])  # white, whatever the page's colour is


def test_a_picture_of_few_colours_looks_like_the_one_that_was_drawn(published: list[dict[str, Any]]) -> None:
    drawn = io.BytesIO()
    for _ in range(2):
        fig, (left, right) = plt.subplots(1, 2, figsize=(6, 3))
        left.plot(np.sin(np.arange(50)), color=subnorm.figures.BLUE)
        right.imshow(np.linspace(0, 1, 1000).reshape(40, 25), cmap="cividis", aspect="auto")
        fig.savefig(drawn, format="png", dpi=200, facecolor="white")
        show(fig, ALT, dpi=100)
    stored, again = (data["image/png"] for data in published)
    assert stored == again  # a difference in git is a difference in a result
    assert len(stored) < drawn.tell() / 4  # two drawings
    few, many = (np.rint(255 * image.imread(io.BytesIO(png))[..., :3]) for png in (stored, drawn.getvalue()))
    assert len(np.unique(few.reshape(-1, 3), axis=0)) <= 256
    assert np.array_equal(few[0, 0], [255, 255, 255])
    assert (few == np.rint(255 * np.array(colors.to_rgb(subnorm.figures.BLUE)))).all(axis=-1).sum() > 100
    smooth = many[60:240, 360:540]  # inside the heat map
    assert len(np.unique(smooth.reshape(-1, 3), axis=0)) > 150
    assert np.abs(few[60:240, 360:540] - smooth).mean() < 1  # levels of 255


def test_a_figure_without_words_is_refused(published: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match=r"alt must describe the figure; got 'A plot'.*Name the curves"):
        show(plt.figure(), "A plot")
    assert not published


def test_the_style_reaches_new_figures() -> None:
    use_style()
    fig, ax = plt.subplots()
    assert fig.get_size_inches().tolist() == [6.4, 3.6]
    assert not ax.spines["top"].get_visible()
    assert ax.plot([0, 1])[0].get_color() == subnorm.figures.BLUE


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


def words(fig: plt.Figure) -> list[str]:
    return [text.get_text() for text in fig.axes[0].texts]


def test_a_weighted_mean_is_drawn_with_its_weights_and_its_result() -> None:
    fig = diagrams.weighted_mean((2, 4, 6, 12), (1 / 8, 1 / 8, 1 / 4, 1 / 2))
    assert {"2", "12", "1/8", "1/4", "1/2", "8.25"} <= set(words(fig))
    widths = [line.get_linewidth() for line in fig.axes[0].lines]
    assert widths[3] == 2 * widths[2] == 4 * widths[0]


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
        subnorm.figures.GREEN,
        subnorm.figures.BLUE,
    }
