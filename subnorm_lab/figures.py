"""The style of the course's figures, and how they are shown: always with an alt text."""

import gzip
import io
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.display import publish_display_data

if TYPE_CHECKING:  # the build of the book draws nothing, and needs neither matplotlib nor Pillow
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which colour-blind readers can tell apart; only colours with at least 3:1 contrast on white.
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
PINK = "#CC79A7"
GREY = "#666666"
BLACK = "#222222"
PALE = "#d5dce2"  # lines of a grid, as in live.css; what is drawn in it carries no meaning of its own

#: One colour and one line style for each thing that appears in several figures.
LOOKS: dict[str, dict[str, str]] = {
    "plain": {"color": GREY, "linestyle": ":"},
    "residual": {"color": GREEN, "linestyle": "-"},
    "pre": {"color": BLUE, "linestyle": "-"},
    "post": {"color": ORANGE, "linestyle": "--"},
    "layer": {"color": BLUE, "linestyle": "-"},
    "rms": {"color": ORANGE, "linestyle": "--"},
    "theory": {"color": BLACK, "linestyle": (0, (1, 2))},  # type: ignore[dict-item]
}


TITLE = 12.5  # points of the finding above a plot
SHARP = 2  # image pixels of a PNG for each CSS pixel, in both directions
STILL = 1.5  # the same, of a PNG that is shown where an SVG or a live figure is not
PHONE = 4.3  # inches; a figure at most so wide has letters that are large enough on a phone
PHONE_COLUMN = 358  # CSS pixels of a page's column on a phone: of 390, 16 are free on both sides
WIDE, NARROW = "wide", "narrow"  # where an output's metadata has the SVG for a page, and that for a phone
HEAVY = 30_000  # bytes of an SVG on the wire; the book's heaviest plot has 10,200, and as PNG 127,000


def use_style() -> None:
    """Set the course's matplotlib style for this process."""
    import matplotlib as mpl
    from cycler import cycler

    mpl.rcParams.update(
        {
            "figure.figsize": (6.4, 3.6),
            "figure.constrained_layout.use": True,
            "figure.constrained_layout.w_pad": 0.015,  # so that the words of a plot begin where those of the page do
            "figure.constrained_layout.h_pad": 0.025,
            "figure.constrained_layout.wspace": 0.06,
            "font.size": 11,
            "text.hinting": "none",  # else small letters are measured narrower than an SVG shows them
            "axes.titlesize": 11,
            "axes.titlelocation": "left",
            "axes.titlepad": 7,
            "axes.labelcolor": GREY,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.spines.left": False,  # as in a live figure: one line at the bottom, and pale ones across
            "axes.edgecolor": BLACK,
            "axes.grid": True,
            "axes.grid.axis": "y",
            "grid.color": PALE,
            "grid.linewidth": 0.8,
            "axes.axisbelow": True,
            "xtick.color": GREY,
            "xtick.major.size": 0,
            "xtick.major.pad": 5,
            "ytick.color": GREY,
            "ytick.major.size": 0,
            "xtick.minor.size": 0,
            "ytick.minor.size": 0,
            "lines.linewidth": 1.8,
            "lines.markersize": 5,
            "legend.frameon": False,
            "axes.prop_cycle": cycler(color=[BLUE, ORANGE, GREEN, PINK, GREY]),
        }
    )


def title(fig: "Figure", finding: str, holds: bool = True) -> None:
    """Write above the panels, from the left edge of the figure, what it shows.

    Args:
        fig: the figure.
        finding: no more than what was measured, under the condition that it was measured under.
        holds: whether the plotted numbers show it; not needed if the finding is computed from them. If a reader has
            turned a number so that it no longer holds, a warning replaces the title. No stored notebook may have one.
    """
    if holds:
        fig.suptitle(finding, x=0.002, ha="left", fontsize=TITLE, fontweight="bold")
    else:
        warnings.warn(f"With these numbers the figure does not show its finding, {finding!r}.", stacklevel=2)


def ink(color: str) -> tuple[float, ...]:
    """The colour of words about what has this colour: darker, because letters need more contrast than a line."""
    from matplotlib import colors

    return tuple(0.8 * part for part in colors.to_rgb(color))


def name(
    ax: "Axes",
    words: str,
    xy: tuple[Any, Any],
    color: str = BLACK,
    shift: tuple[float, float] = (6, 0),
    point_out: bool = False,
) -> None:
    """Write a name beside a point of its curve: a reader has to look up nothing in a legend.

    Args:
        ax: the panel.
        words: the name, or a remark about the point; it may have several lines.
        xy: the point, in the units of the panel.
        color: that of the curve.
        shift: from the point to the words, right and up, in typographic points: the same in both sizes of a figure.
        point_out: draw a thin line from the words to the point.
    """
    ax.annotate(
        words,
        xy,
        shift,
        textcoords="offset points",
        color=ink(color),
        ha=("right", "center", "left")[1 + (shift[0] > 0) - (shift[0] < 0)],
        va=("top", "center", "bottom")[1 + (shift[1] > 0) - (shift[1] < 0)],
        arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.8, "shrinkB": 5} if point_out else None,
    )


def name_curve(ax: "Axes", words: str, x: "npt.ArrayLike", y: "npt.ArrayLike", color: str = BLACK) -> None:
    """Write a name above or below its curve, where the panel has most room, on a page and on a phone.

    Args:
        ax: the panel.
        words: the name; it may have several lines.
        x: where the curve is, in the units of the panel.
        y: its heights there.
        color: that of the curve.
    """
    import numpy as np

    from subnorm_lab import _labels

    _labels.add(ax, words, np.column_stack([x, y]), color, _labels.beside)


def leave(ax: "Axes", words: str, x: "npt.ArrayLike", y: "npt.ArrayLike", color: str = BLACK) -> None:
    """Mark with an arrow head and words where a curve leaves its panel, whose limits are set, upwards or downwards.

    Args:
        ax: the panel.
        words: the value that the curve reaches, perhaps after its name.
        x: where the curve is, in the units of the panel; it begins inside.
        y: its heights there.
        color: that of the curve.
    """
    import numpy as np

    scaled = ax.transScale.transform(np.column_stack([x, y]))  # type: ignore[attr-defined]
    across, up = ax.transLimits.transform(scaled).T  # type: ignore[attr-defined]
    after = int(np.flatnonzero((up < 0) | (up > 1))[0])
    edge = float(up[after] > 1)
    part = (edge - up[after - 1]) / (up[after] - up[after - 1])
    place = across[after - 1] + part * (across[after] - across[after - 1]), edge
    at = (ax.transScale + ax.transLimits).inverted().transform(place)  # type: ignore[attr-defined]
    ax.plot(*at, marker=10 if edge else 7, markersize=8, color=color, clip_on=False)
    name(ax, words, tuple(at), color, (8 if place[0] < 0.6 else -8, -3 if edge else 4))


def name_ends(ax: "Axes", ends: Sequence[tuple[str, tuple[float, float], str]]) -> None:
    """Write names to the right of the ends of curves, so far apart that none covers another.

    Args:
        ax: the panel.
        ends: for each curve its name, the point where it ends, in the units of the panel, and its colour.
    """
    import numpy as np

    from subnorm_lab import _labels

    for words, xy, color in ends:
        _labels.add(ax, words, np.array([xy]), color, _labels.at_the_ends)


def rows(ax: "Axes", names: Sequence[str], ends: "npt.ArrayLike | None" = None, size: float | None = None) -> None:
    """Give a panel, whose limits are set, a named row for each number 0, 1, …, from the top down.

    Args:
        ax: the panel.
        names: of the rows.
        ends: where the pale line ends that leads from each name to its marks. Without them there are no lines.
        size: of the letters, in points.
    """
    ax.grid(visible=False)
    ax.set_yticks(range(len(names)), names, fontsize=size)
    ax.set_ylim(len(names) - 0.5, -0.5)
    if ends is not None:
        low, high = ax.get_xlim()
        ax.hlines(range(len(names)), low, ends, color=PALE, linewidth=0.8, zorder=0.5)
        ax.set_xlim(low, high)


def show(fig: "Figure", alt: str, dpi: int = 120, narrow: "Figure | None" = None) -> None:
    """Show a figure, with an alt text for readers who cannot see it.

    A plot gets the look of all plots first (:mod:`subnorm_lab._plots`). A notebook shows a PNG. The book gets an SVG:
    sharp on every screen, a fraction of a PNG's bytes, and labelled in the reader's font; for a phone, a second one,
    with the panels below one another (:mod:`subnorm_lab._narrow`). Both are in the metadata of the output: VS Code
    would prefer an SVG to the PNG, and show nothing in a folder that it does not trust. A plot of thousands of points
    would be heavy as SVG; it is only a PNG, of two pixels for each CSS pixel, in both directions.

    Args:
        fig: the figure; it is closed.
        alt: a description of the picture, in one to three sentences.
        dpi: CSS pixels per inch.
        narrow: what a phone shows, if it is more than the panels of `fig` laid out anew; it is closed, too.

    Raises:
        ValueError: the alt text is too short to be a description.
    """
    import matplotlib.pyplot as plt

    from subnorm_lab import _labels, _narrow, _plots, _svg

    check_text("alt", alt)
    if any(ax.axison for ax in fig.axes) and (fig.get_suptitle() or fig.get_figwidth() > PHONE):
        dpi = _plots.dress(fig)
    _labels.place(fig)
    width = round(dpi * fig.get_figwidth())  # no height, so that it scales with the width on a narrow page
    metadata: dict[str, Any] = {"image/png": {"width": width}}
    svg = _svg.as_svg(fig, dpi)
    if len(gzip.compress(svg.encode())) <= HEAVY:
        if fig.get_figwidth() > PHONE:
            metadata[NARROW] = _narrow.as_svg(narrow or _narrow.relaid(fig))
        metadata[WIDE] = svg
        png = with_palette(io.BytesIO(as_png(svg, STILL)))
    else:
        file = io.BytesIO()
        fig.savefig(file, format="png", dpi=SHARP * dpi, facecolor="white")
        png = with_palette(file, SHARP)
    publish_display_data({"image/png": png, "text/plain": alt}, metadata=metadata)
    plt.close(fig)
    if narrow:
        plt.close(narrow)


def wide(output: Mapping[str, Any]) -> str | None:
    """The SVG for a page that is stored in the output of a cell."""
    svg: str | None = output.get("metadata", {}).get(WIDE)
    return svg


def narrow(output: Mapping[str, Any]) -> str | None:
    """The SVG for a phone that is stored in the output of a cell."""
    svg: str | None = output.get("metadata", {}).get(NARROW)
    return svg


def check_text(name: str, text: str) -> None:
    """Reject a text that is too short to describe a figure."""
    if len(text) < 20:
        raise ValueError(f"{name} must describe the figure; got {text!r}. Name the curves, and what they do.")


def as_png(svg: str, zoom: float = 1.0, style: str = "") -> bytes:
    """The PNG of an SVG, on white, in the font that matplotlib brings: the same on every machine.

    Args:
        svg: the picture.
        zoom: image pixels for each CSS pixel.
        style: a style sheet for it.
    """
    import matplotlib as mpl
    import resvg_py

    fonts = Path(mpl.get_data_path(), "fonts", "ttf")
    png = resvg_py.svg_to_bytes(
        svg_string=svg,
        style_sheet=style,
        sans_serif_family="DejaVu Sans",  # the last family of our pictures; without it the text silently disappears
        font_files=[str(fonts / "DejaVuSans.ttf"), str(fonts / "DejaVuSans-Bold.ttf")],
        skip_system_fonts=True,
        background="white",
        zoom=zoom,
    )
    return bytes(png)


def with_palette(png: io.BytesIO, pixels: int = 1) -> bytes:
    """The picture as PNG with a small palette that looks the same: a third of the bytes, or less.

    It is not dithered: the noise would show on plain areas, and would cost more bytes than it saves. `pixels` is the
    number of image pixels for each CSS pixel, stored as the PNG's resolution.
    """
    from PIL import Image, ImageChops

    drawn = Image.open(png).convert("RGB")
    for colours in (32, 64, 128, 256):
        few = drawn.quantize(colours, kmeans=1, dither=Image.Dither.NONE)
        # compare means over 16 x 16 pixels: edges of letters may change a little, plain areas may not
        change = ImageChops.difference(drawn, few.convert("RGB")).reduce(16)
        if max(change.tobytes()) <= 2:  # of 255
            break
    small = io.BytesIO()
    few.save(small, format="png", optimize=True, **({"dpi": (96 * pixels, 96 * pixels)} if pixels > 1 else {}))
    return small.getvalue()
