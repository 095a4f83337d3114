"""Figures as SVG: the letters are text in the reader's own font, and two drawings give the same bytes."""

import io
import re
from typing import Literal

import matplotlib as mpl
from matplotlib.backend_bases import GraphicsContextBase
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text

# The font of the book's text (`--pst-font-family-base` in subnorm.css). A picture in a file of its own may use the
# fonts of the reader's system, so it needs none of its own. Matplotlib lays out the letters of DejaVu Sans, which
# are wider than those of the others, so no label grows into its neighbour.
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif"
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))  # a date would change with every run
POWER = re.compile(r"\$\\mathdefault\{(?:(\d+)\\times)?(-?)10\^\{(-?\d+)\}\}(?:\\,)*\$")


class Renderer(RendererSVG):
    """Writes words as text and formulas as outlines: the parts of a formula are placed for one font only."""

    def draw_text(
        self,
        gc: GraphicsContextBase,
        x: float,
        y: float,
        s: str,
        prop: FontProperties,
        angle: float,
        ismath: bool | Literal["TeX"] = False,
        mtext: Text | None = None,
    ) -> None:
        if not s:  # the empty line of a title, for the line below it
            return
        if power := POWER.fullmatch(s):  # at a tick of a logarithmic axis; `as_svg` raises what follows the circumflex
            factor, sign, exponent = power.groups()
            s, ismath = f"{factor + '×' if factor else ''}{sign}10^{exponent}".replace("-", "\N{MINUS SIGN}"), False
        with mpl.rc_context({"svg.fonttype": "path" if ismath else "none"}):
            super().draw_text(gc, x, y, s, prop, angle, ismath, mtext)


def as_svg(fig: Figure, dpi: int) -> str:
    """The figure as SVG, `dpi` CSS pixels to an inch."""
    width, height = fig.get_size_inches()
    file = io.StringIO()
    fig.dpi = 72  # as in matplotlib's own `print_svg`: the unit of its SVG is a point
    with mpl.rc_context({"svg.hashsalt": "subnorm"}):
        renderer = Renderer(72 * width, 72 * height, file, image_dpi=2 * dpi, metadata=NO_METADATA)
        fig.draw(renderer)
        renderer.finalize()
    size = f' width="{dpi * width:.0f}" height="{dpi * height:.0f}" font-family="{FONT}"'
    svg = file.getvalue()
    svg = re.sub(r' width="[^"]*" height="[^"]*"', size, svg[svg.index("<svg") :], count=1)
    svg = re.sub(r"; font-family: [^\";]*", "", svg)
    svg = re.sub(r"\^(\S+)</text>", r'<tspan dy="-0.45em" font-size="70%">\1</tspan></text>', svg)
    svg = re.sub(r"(?<=>)\n\s+(?=<)", "\n", svg)
    return re.sub(r'(?<= d=")[^"]*|(?<= [xy]=")[^"]*', compact, svg)


def compact(found: re.Match[str]) -> str:
    """Coordinates in one line, to a hundredth of a point."""
    numbers = " ".join(found[0].split())
    return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), numbers)
