"""The last touches to a plot: a width and letters that all plots share, short numbers, and no word on its side.

A page shows each plot as wide as its column, with the letters of its live figures. What a reader looks for is dark;
numbers and names of axes are grey.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PolyCollection
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogFormatter, ScalarFormatter

from subnorm_lab import figures
from subnorm_lab._labels import BELOW

COLUMN = 688  # CSS pixels of a page's column
LETTERS, SMALL = 13, 11  # CSS pixels, as in live.css
STORED = 11  # points of the same letters in the code of a plot (figures.use_style)
DPI = 96  # CSS pixels to an inch
SHRUNK = 1.1  # times larger on a page than on a phone is a drawing that both show
PLAIN = range(-2, 4)  # the powers of ten that are written out, as in live.js


def dress(fig: Figure) -> int:
    """Give a plot the look of the book's plots, and return its CSS pixels per inch."""
    panels = [ax for ax in fig.axes if ax.get_subplotspec()]
    lift(fig, panels)
    small = float(SMALL)
    if fig.get_figwidth() <= figures.PHONE:
        small *= SHRUNK
    else:
        fig.set_size_inches(COLUMN / DPI, fig.get_figheight() / fig.get_figwidth() * COLUMN / DPI)
    for ax in fig.axes:
        number(ax.xaxis)
        number(ax.yaxis)
        for part in ax.collections:
            if isinstance(part, PolyCollection) and 0 < (part.get_alpha() or 1) < 1:
                part.set_linewidth(0)  # a band has no edge
    for text in fig.findobj(Text):
        pixels = max(float(text.get_fontsize()) * LETTERS / STORED, small)
        text.set_fontsize(pixels * 72 / DPI)
    return DPI


def lift(fig: Figure, panels: list[Axes]) -> None:
    """Write what the vertical axes show above them instead of upwards beside them."""
    labels = {ax.get_ylabel() for ax in panels} - {""}
    named = any(ax.get_title(loc="left") for ax in panels)
    if named and len(labels) == 1 and fig.get_suptitle():  # the panels share it: below the title
        fig._suptitle.set_text(fig.get_suptitle() + "\n")  # type: ignore[attr-defined]
        fig.text(0.002, 0, labels.pop(), color=figures.GREY, va="bottom", gid=BELOW).set_in_layout(False)
    elif named:
        for ax in panels:
            if ax.get_ylabel():
                ax.set_title(": ".join(filter(None, (ax.get_title(loc="left"), ax.get_ylabel()))), loc="left")
    elif all(ax.get_ylabel() for ax in panels):
        for ax in panels:
            ax.set_title(ax.get_ylabel(), loc="left", color=figures.GREY)
    else:
        return
    for ax in panels:
        ax.set_ylabel("")


def number(axis: Axis) -> None:
    """Write short numbers at an axis."""
    formatter = axis.get_major_formatter()
    if isinstance(formatter, LogFormatter):
        axis.set_major_formatter(FuncFormatter(power))
    elif isinstance(formatter, ScalarFormatter):
        axis.set_major_formatter(FuncFormatter(short))
    else:
        names(axis)


def names(axis: Axis) -> None:
    """Write the names at an axis, which are no numbers, in black, unless they have a colour."""
    for text in axis.get_ticklabels():
        a_name = any(map(str.isalpha, text.get_text())) and "$" not in text.get_text()
        if a_name and same_color(text.get_color(), figures.GREY):
            text.set_color(figures.BLACK)


def short(value: float, _: int = 0) -> str:
    """A number without zeros at its end, and with commas from 10,000 on, so that a year has none."""
    digits = f"{value:,.10g}" if abs(value) >= 10_000 else f"{value:.10g}"
    return digits.replace("-", "\N{MINUS SIGN}")


def power(value: float, _: int = 0) -> str:
    """A number at a logarithmic axis: a power of ten, unless it is easier to read written out."""
    exponent = round(np.log10(value))
    if exponent in PLAIN or not np.isclose(value, 10.0**exponent):
        return short(value)
    return f"$\\mathdefault{{10^{{{exponent}}}}}$"
