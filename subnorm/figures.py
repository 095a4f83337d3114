"""How the figures of the course look: one style, and every picture with its words."""

import io

import matplotlib as mpl
import matplotlib.pyplot as plt
from cycler import cycler
from IPython.display import publish_display_data
from matplotlib.figure import Figure
from PIL import Image, ImageChops

from subnorm import _rules

# Okabe and Ito's colours, told apart by colour-blind readers too; only those with at least 3:1 contrast on white.
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
PINK = "#CC79A7"
GREY = "#666666"
BLACK = "#222222"

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


def use_style() -> None:
    """Set the course's matplotlib style for this process."""
    mpl.rcParams.update(
        {
            "figure.figsize": (6.4, 3.6),
            "figure.constrained_layout.use": True,
            "font.size": 11,
            "axes.titlesize": 12,
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#dddddd",
            "grid.linewidth": 0.6,
            "axes.axisbelow": True,
            "lines.linewidth": 2.0,
            "lines.markersize": 5,
            "legend.frameon": False,
            "axes.prop_cycle": cycler(color=[BLUE, ORANGE, GREEN, PINK, GREY]),
        }
    )


def show(fig: Figure, alt: str, dpi: int = 120) -> None:
    """Show a figure as PNG, with a text that says what is seen, for readers who cannot see it.

    Args:
        fig: the figure; it is closed.
        alt: what the picture shows, in one to three sentences; becomes the page's alt text.
        dpi: dots per inch.

    Raises:
        ValueError: the alt text is too short to say what is seen.
    """
    _rules.says("alt", alt)
    png = io.BytesIO()
    fig.savefig(png, format="png", dpi=dpi, facecolor="white")
    plt.close(fig)
    publish_display_data({"image/png": with_palette(png), "text/plain": alt})


def with_palette(png: io.BytesIO) -> bytes:
    """The picture as PNG with so few colours that the eye sees no difference: a third of the bytes, or less.

    No dither: its noise would be seen on plain areas, and would cost more bytes than it saves.
    """
    drawn = Image.open(png).convert("RGB")
    for colours in (32, 64, 128, 256):
        few = drawn.quantize(colours, kmeans=1, dither=Image.Dither.NONE)
        # the mean of each 16 x 16 pixels: edges of letters may change a little, plain areas may not
        change = ImageChops.difference(drawn, few.convert("RGB")).reduce(16)
        if max(change.tobytes()) <= 2:  # of 255
            break
    small = io.BytesIO()
    few.save(small, format="png", optimize=True)
    return small.getvalue()
