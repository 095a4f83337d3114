"""The style of the course's figures, and how they are shown: always with an alt text."""

import io
from typing import TYPE_CHECKING

from IPython.display import publish_display_data
from PIL import Image, ImageChops

if TYPE_CHECKING:  # the build of the book needs no matplotlib, which takes half a second to import
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which colour-blind readers can tell apart; only colours with at least 3:1 contrast on white.
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


SHARP = 2  # image pixels for each CSS pixel, in both directions


def use_style() -> None:
    """Set the course's matplotlib style for this process."""
    import matplotlib as mpl
    from cycler import cycler

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


def show(fig: "Figure", alt: str, dpi: int = 120) -> None:
    """Show a figure as PNG, with an alt text for readers who cannot see it.

    The PNG has two pixels for each CSS pixel, in both directions, as most phone and laptop screens have or exceed.
    JupyterLab takes the width in CSS pixels from the output's metadata, the book takes it from the PNG.

    Args:
        fig: the figure; it is closed.
        alt: a description of the picture, in one to three sentences.
        dpi: CSS pixels per inch.

    Raises:
        ValueError: the alt text is too short to be a description.
    """
    import matplotlib.pyplot as plt

    check_text("alt", alt)
    png = io.BytesIO()
    fig.savefig(png, format="png", dpi=SHARP * dpi, facecolor="white")
    plt.close(fig)
    width = Image.open(png).width // SHARP  # no height, so that it scales with the width on a narrow page
    data = {"image/png": with_palette(png, SHARP), "text/plain": alt}
    publish_display_data(data, metadata={"image/png": {"width": width}})


def check_text(name: str, text: str) -> None:
    """Reject a text that is too short to describe a figure."""
    if len(text) < 20:
        raise ValueError(f"{name} must describe the figure; got {text!r}. Name the curves, and what they do.")


def with_palette(png: io.BytesIO, pixels: int = 1) -> bytes:
    """The picture as PNG with a small palette that looks the same: a third of the bytes, or less.

    It is not dithered: the noise would show on plain areas, and would cost more bytes than it saves. `pixels` is the
    number of image pixels for each CSS pixel, stored as the PNG's resolution.
    """
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
