"""A figure for a phone: the same panels below one another, in letters that are large enough there."""

import re
import textwrap
from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter

from subnorm_lab import _labels, _plots, _svg, figures

DPI = 90  # CSS pixels to an inch
WIDTH = figures.PHONE_COLUMN / DPI  # inches
SMALLEST = 9.0  # points, 11.25 CSS pixels
TALL, LOW = 6.6, 2.1  # inches of a figure, and of the panels of one that is taller
LESS, ROW = 0.85, 0.18  # of the height on a page; and inches, for each row that has a name
LETTERS = 40  # in a line as wide as the figure


def as_svg(fig: Figure) -> str:
    """The figure as SVG; the exponents of an axis are as large as the smallest letters."""
    return _svg.as_svg(fig, DPI).replace('font-size="70%"', 'font-size="91%"')


def roomy(value: float, position: int = 0) -> str:
    """A number at a logarithmic axis, as wide as it is with its larger exponent."""
    text = _plots.power(value, position)
    exponent = re.search(r"\^\{(.+?)\}", text)
    return text.removesuffix("$") + "\\," * max(1, len(exponent[1]) - 1) + "$" if exponent else text


def relaid(fig: Figure, width: float = WIDTH) -> Figure:
    """The figure itself, laid out anew in this width, in inches. What its panels show stays the same.

    Panels side by side come below one another; of four or more, two remain side by side. A legend that takes much of a
    panel, or is beside it, comes below all panels.
    """
    panels = [ax for ax in fig.axes if ax.get_subplotspec()]
    rows, columns = panels[0].get_subplotspec().get_gridspec().get_geometry()  # type: ignore[union-attr]
    beside = 1 if columns == 1 else rows if rows > 1 else 1 + (columns > 3)
    lines = -(-rows * columns // beside)
    for axis in (axis for panel in panels for axis in (panel.xaxis, panel.yaxis)):
        if getattr(axis.get_major_formatter(), "func", None) is _plots.power:
            axis.set_major_formatter(FuncFormatter(roomy))
    if columns > 1:
        grid = GridSpec(lines, beside, figure=fig)
        for index, panel in enumerate(panels):
            label(panel)
            panel.set_subplotspec(grid[divmod(index, columns)[::-1]] if rows > 1 else grid[index])
    most = max(len(panel.get_yticks()) for panel in panels)
    height = max(LESS * fig.get_figheight() / rows, ROW * most)
    fig.set_size_inches(width, lines * min(height, max(TALL / lines, LOW)))
    if fig.get_suptitle():
        break_lines(fig)
    for text in fig.findobj(Text):
        text.set_fontsize(max(text.get_fontsize(), SMALLEST))
    for panel in panels:
        ticks = [text.get_text() for text in panel.get_xticklabels()]
        if any(" " in tick for tick in ticks) and beside * sum(map(len, ticks)) > LETTERS:
            panel.set_xticks(panel.get_xticks(), [tick.replace(" ", "\n") for tick in ticks])
    legends = [legend for panel in panels if (legend := panel.get_legend())]
    for legend in [*fig.legends, *(legends if len(legends) == 1 and in_the_way(legends[0], len(panels)) else [])]:
        below(fig, legend)
    room = sum(legend.get_window_extent().height for legend in fig.legends) / fig.dpi
    fig.set_size_inches(width, fig.get_figheight() + room)
    _labels.place(fig)
    fit(fig, [text for panel in panels for text in (panel._left_title, panel.title, panel.xaxis.label)])  # type: ignore[attr-defined]
    return fig


def break_lines(fig: Figure) -> None:
    """Break the title above all panels, and the line below it, where the figure ends."""
    title: Text = fig._suptitle  # type: ignore[attr-defined]
    height = title.get_window_extent().height
    lines = 0
    for below in (text for text in fig.texts if text.get_gid() == _labels.BELOW):
        below.set_text(broken(below))
        lines = 1 + below.get_text().count("\n")
    title.set_text(broken(title) + lines * "\n")
    fig.set_size_inches(fig.get_figwidth(), fig.get_figheight() + (title.get_window_extent().height - height) / fig.dpi)


def broken(text: Text) -> str:
    """The words of a text in lines that fit the figure."""
    words, figure = text.get_text().rstrip("\n"), text.get_figure()
    return textwrap.fill(words, int(len(words) * 0.99 * figure.bbox.width / text.get_window_extent().width))  # type: ignore[union-attr]


def label(panel: Axes) -> None:
    """Give a panel the labels that it shared with its neighbour."""
    panel.tick_params(labelbottom=True, labelleft=True)
    for axis, shared in ((panel.xaxis, panel.get_shared_x_axes()), (panel.yaxis, panel.get_shared_y_axes())):
        _plots.names(axis)
        if not axis.get_label_text():
            texts = [other._axis_map[axis.axis_name].get_label_text() for other in shared.get_siblings(panel)]
            axis.set_label_text(next(filter(None, texts), ""))


def in_the_way(legend: Legend, panels: int) -> bool:
    """Whether a legend is that of several panels, beside its panel, or wider than half the figure."""
    beside = legend._bbox_to_anchor is not None  # type: ignore[attr-defined]
    return panels > 1 or beside or legend.get_window_extent().width > 0.5 * legend.axes.figure.bbox.width


def below(fig: Figure, legend: Legend) -> None:
    """Move a legend below all panels."""
    texts = [text.get_text() for text in legend.get_texts()]
    title = legend.get_title().get_text()
    columns = 2 if max(map(len, texts)) < LETTERS // 2 + 4 else 1
    fig.legend(
        list(filter(None, legend.legend_handles)), texts, title=title or None, loc="outside lower center", ncols=columns
    )
    legend.remove()


def fit(fig: Figure, texts: Iterable[Text]) -> None:
    """Break the lines of labels that would be cut off."""
    for text in texts:
        box = text.get_window_extent()
        over = max(-box.x0, box.x1 - fig.bbox.width)
        if over > 0 and "$" not in text.get_text():
            text.set_text(textwrap.fill(text.get_text(), int(len(text.get_text()) * (1 - 2 * over / box.width))))
