"""Figures with controls: the package computes every picture in advance, and the page picks one.

A chart is a table with one row for each state of its controls; ``live.js`` draws the selected row, in the
book and in JupyterLab. The bars of :func:`norms` and the points of :func:`cloud` have continuous controls, so the
script computes LayerNorm and RMSNorm itself, and tests compare it with ``subnorm.numpy``. In a sketch the reader draws.

A notebook stores a still picture of the first state and the table; the book makes the live figure from both
(``book/subnorm_book/teaching/live_figures.py``). When you run the notebook yourself, the output includes the script.
"""

import functools
import io
import itertools
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from IPython.display import publish_display_data

from subnorm_lab import figures
from subnorm_lab.report import times_ten_to

HERE = Path(__file__).parent
SCRIPT = HERE / "live.js"
STYLE = HERE / "live.css"
#: The key for a live figure's table in an output's metadata.
STORED = "live"

#: The variables in ``live.css`` for the colours of the still figures.
COLOURS = {
    figures.BLUE: "blue",
    figures.ORANGE: "orange",
    figures.GREEN: "green",
    figures.PINK: "pink",
    figures.GREY: "grey",
    figures.BLACK: "black",
}
DASHES = {"-": "", "--": "7 4", ":": "2 4", "-.": "8 3 2 3", (0, (1, 2)): "2 2"}
SVG = "http://www.w3.org/2000/svg"
DIGITS = 5  # more than a picture can show
WIDTH = 608  # of a still picture, in CSS pixels: STILL of live.js

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Control:
    """A slider or a choice among values; build it with :func:`slider` or :func:`choice`."""

    kind: str
    name: str
    label: str
    options: Mapping[str, Any]
    start: int
    play: bool = False

    def spec(self) -> dict[str, Any]:
        base = {"kind": self.kind, "name": self.name, "label": self.label}
        play = {"play": True} if self.play else {}
        return {**base, "values": list(self.options), "start": self.start, **play}


def slider(name: str, label: str, values: Sequence[Any] | Mapping[str, Any], start: Any, play: bool = False) -> Control:
    """A slider over ordered values.

    Args:
        name: the argument of ``frame`` that takes the value: lower-case letters, digits, underscores.
        label: the label that the reader sees.
        values: at least two. A mapping {text: value} gives each a text for the reader.
        start: one of the values, whose picture already shows the message.
        play: whether the figure has a button that moves the slider step by step to its end; one slider of a chart.

    Raises:
        ValueError: an invalid name, fewer than two values, or a start that is not among them.
    """
    return replace(_control("slider", name, label, values, start), play=play)


def choice(name: str, label: str, values: Sequence[Any] | Mapping[str, Any], start: Any) -> Control:
    """Radio buttons for a few values. Arguments, except `play`, and errors are those of :func:`slider`."""
    return _control("choice", name, label, values, start)


def _control(kind: str, name: str, label: str, values: Sequence[Any] | Mapping[str, Any], start: Any) -> Control:
    options = dict(values) if isinstance(values, Mapping) else {str(value): value for value in values}
    if not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise ValueError(
            f"a control's name must be an argument of `frame`: lower-case letters, digits, underscores; got {name!r}."
        )
    if len(options) < 2:
        raise ValueError(f"control {name!r} needs at least two values to choose from; got {list(options)}.")
    if start not in list(options.values()):
        raise ValueError(f"control {name!r} must start at one of its values {list(options.values())}; got {start!r}.")
    return Control(kind, name, label, options, list(options.values()).index(start))


@dataclass(frozen=True)
class Axis:
    """An axis.

    Args:
        label: its quantity, with its unit.
        log: logarithmic; then all data must be above 0.
        limits: a curve beyond them is cut off, and marked with the value it reaches. By default, the range of the data
            in all states.
        ticks: {position: label}. By default, round numbers.
    """

    label: str
    log: bool = False
    limits: tuple[float, float] | None = None
    ticks: Mapping[float, str] | None = None

    def spec(self, data: Sequence[Array]) -> dict[str, Any]:
        ticks = None if self.ticks is None else [[at, label] for at, label in self.ticks.items()]
        return {"label": self.label, "log": self.log, "limits": self.limits or self._around(data), "ticks": ticks}

    def _around(self, data: Sequence[Array]) -> tuple[float, float]:
        seen = np.concatenate([np.zeros(0), *(values[np.isfinite(values)].ravel() for values in data)])
        if not seen.size:
            raise ValueError(f"axis {self.label!r} needs finite data to choose its limits; got none.")
        low, high = float(seen.min()), float(seen.max())
        if not self.log:
            room = 0.04 * (high - low) or 1.0
            return _round(low - room), _round(high + room)
        if low <= 0:
            raise ValueError(f"a logarithmic axis needs values above 0; {self.label!r} has {low:g}. Clip them first.")
        return 10.0 ** np.floor(np.log10(low)), 10.0 ** np.ceil(np.log10(high) + 1e-9)


@dataclass(frozen=True)
class Curve:
    """The look of a curve, in matplotlib's terms, so that ``Curve("plain", **figures.LOOKS["plain"])`` works.

    Args:
        label: its name in the legend.
        color: one of ``subnorm_lab.figures``, which also have a shade for dark pages.
        linestyle: "-", "--", ":", "-." or that of the theory, (0, (1, 2)).
        marks: "only" for dots without a line, "too" for dots on the line.
    """

    label: str
    color: str = figures.BLUE
    linestyle: Any = "-"
    marks: str | None = None

    def spec(self, name: str) -> dict[str, Any]:
        dash = DASHES.get(self.linestyle)
        if self.color not in COLOURS or dash is None:
            raise ValueError(
                f"curve {self.label!r} needs a colour of subnorm_lab.figures and a line style of {list(DASHES)}; "
                f"got {self.color!r}, {self.linestyle!r}."
            )
        if self.marks not in (None, "only", "too"):
            raise ValueError(f'curve {self.label!r} takes marks "only", "too" or None; got {self.marks!r}.')
        return {"name": name, "label": self.label, "colour": COLOURS[self.color], "dash": dash, "marks": self.marks}


@dataclass(frozen=True)
class Lines:
    """A panel of curves over one pair of axes.

    A frame gives ``{name: (x, y)}`` for the curves that it draws: x of shape (n,), and y of shape (n,) or
    (seeds, n), which is drawn as median and range. ``nan`` interrupts a curve.

    Args:
        x: the horizontal axis.
        y: the vertical axis.
        curves: {name: :class:`Curve`}, in the order of the legend.
        height: in pixels.
        equal: whether a unit is as long on one axis as on the other, so that a circle is round; where the panel has
            room, the limits become wider.
    """

    x: Axis
    y: Axis
    curves: Mapping[str, Curve]
    height: int = 300
    equal: bool = False

    def data(self, given: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]]) -> dict[str, dict[str, Array]]:
        if unknown := given.keys() - self.curves.keys():
            raise ValueError(f"a frame draws the curves {sorted(unknown)}; this panel has {sorted(self.curves)}.")
        return {name: _curve(name, *given[name]) for name in self.curves if name in given}

    def spec(self, frames: Sequence[dict[str, dict[str, Array]]]) -> dict[str, Any]:
        drawn = [curve for frame in frames for curve in frame.values()]
        return {
            "kind": "lines",
            "height": self.height,
            "x": self.x.spec([curve["x"] for curve in drawn]),
            "y": self.y.spec([values for curve in drawn for key, values in curve.items() if key != "x"]),
            "curves": [curve.spec(name) for name, curve in self.curves.items()],
            **({"equal": True} if self.equal else {}),
        }


def _curve(name: str, x: npt.ArrayLike, y: npt.ArrayLike) -> dict[str, Array]:
    at, values = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if values.shape[-1:] != at.shape or values.ndim > 2:
        raise ValueError(
            f"curve {name!r} needs x of shape (n,) and y of shape (n,) or (seeds, n); "
            f"got {at.shape} and {values.shape}."
        )
    if values.ndim == 1:
        return {"x": at, "y": values}
    return {"x": at, "y": np.median(values, axis=0), "low": values.min(axis=0), "high": values.max(axis=0)}


@dataclass(frozen=True)
class Heat:
    """A heat map. A frame gives an array of shape (rows, columns); ``nan`` leaves a cell empty.

    Args:
        title: what the cells show.
        x: the axis of the columns; only its label is drawn.
        rows: row labels; an empty one is not drawn.
        columns: column labels, likewise.
        limits: the values at no colour and at full colour.
        colors: one; or two, for positive and negative values, strongest at plus and minus the upper limit.
        digits: decimals of the value written into each cell; None to write no values.
        height: in pixels.
        bar: {value: label} of a bar of colours above all panels; None for no bar. The first panel's is drawn.
    """

    title: str
    x: Axis
    rows: Sequence[str]
    columns: Sequence[str]
    limits: tuple[float, float]
    colors: Sequence[str] = (figures.BLUE,)
    digits: int | None = None
    height: int = 300
    bar: Mapping[float, str] | None = None

    def data(self, given: npt.ArrayLike) -> dict[str, Array]:
        cells = np.asarray(given, dtype=np.float64)
        if cells.shape != (len(self.rows), len(self.columns)):
            raise ValueError(
                f"panel {self.title!r} has {len(self.rows)} rows and {len(self.columns)} columns; got {cells.shape}."
            )
        return {"cells": cells}

    def spec(self, frames: Sequence[Any]) -> dict[str, Any]:
        if not set(self.colors) <= COLOURS.keys() or len(self.colors) not in (1, 2):
            raise ValueError(
                f"panel {self.title!r} needs one or two colours of subnorm_lab.figures; got {list(self.colors)}."
            )
        return {
            "kind": "heat",
            "height": self.height,
            "title": self.title,
            "x": {"label": self.x.label},
            "rows": list(self.rows),
            "columns": list(self.columns),
            "limits": self.limits,
            "colours": [COLOURS[color] for color in self.colors],
            "digits": self.digits,
            **({"bar": list(self.bar.items())} if self.bar else {}),
        }


@dataclass(frozen=True)
class Bars:
    """Words, each above a bar that begins at 0. A frame gives ``(label, word, value, marked)`` for every row.

    A marked word has a green bar and a check mark; the label may be empty.

    Args:
        title: what the bars show, and what the mark means.
        rows: their number.
        full: the value of a full bar.
    """

    title: str
    rows: int
    full: float = 1.0

    def data(self, given: Sequence[tuple[str, str, float, bool]]) -> list[tuple[str, str, float, bool]]:
        if len(given) != self.rows:
            raise ValueError(f"panel {self.title!r} has {self.rows} rows; got {len(given)}.")
        if outside := [value for _, _, value, _ in given if not 0 <= value <= self.full]:
            raise ValueError(f"panel {self.title!r} takes values from 0 to {self.full:g}; got {outside}.")
        return [(label, word, value, bool(marked)) for label, word, value, marked in given]

    def spec(self, frames: Sequence[list[tuple[str, str, float, bool]]]) -> dict[str, Any]:
        return {
            "kind": "bars",
            "height": 36 + 24 * self.rows,
            "title": self.title,
            "full": self.full,
            "letters": max(len(row[0]) for rows in frames for row in rows),  # of the longest label
        }


@dataclass(frozen=True)
class Columns:
    """Upright bars, each over a hollow bar for the right value. A frame gives ``(value, right)`` pairs.

    A bar that is as high as its hollow one is green.

    Args:
        title: what the bars belong to.
        limits: the values at the bottom and at the top.
        height: in pixels.
    """

    title: str
    limits: tuple[float, float]
    height: int = 150

    def data(self, given: Sequence[tuple[float, float]]) -> dict[str, list[float]]:
        low, high = self.limits
        if outside := [value for pair in given for value in pair if not low <= value <= high]:
            raise ValueError(f"panel {self.title!r} takes values from {low:g} to {high:g}; got {outside}.")
        return {"bars": [value for value, _ in given], "ghost": [right for _, right in given]}

    def spec(self, frames: Sequence[Any]) -> dict[str, Any]:
        return {"kind": "columns", **asdict(self)}


@dataclass(frozen=True)
class Grid:
    """Words in a grid. A frame gives the number of the row or column that it describes, from 0; that is framed.

    Args:
        title: what the cells show.
        rows: row labels.
        columns: column labels.
        cells: for every row, the (word, colour) of every column, with a colour of ``subnorm_lab.figures`` or None.
        corner: what the column labels are.
        by: which line a frame of the chart names: "row" or "column".
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[tuple[str, str | None]]]
    corner: str
    by: str

    def __post_init__(self) -> None:
        if [len(self.columns)] * len(self.rows) != [len(line) for line in self.cells]:
            raise ValueError(
                f"panel {self.title!r} needs {len(self.rows)} rows of {len(self.columns)} cells; "
                f"got {[len(line) for line in self.cells]}."
            )

    def data(self, given: int) -> int:
        lines = self.rows if self.by == "row" else self.columns
        if not 0 <= given < len(lines):
            raise ValueError(f"panel {self.title!r} has the {self.by}s 0 to {len(lines) - 1}; got {given}.")
        return given

    def spec(self, frames: Sequence[int]) -> dict[str, Any]:
        cells = [[[word, color and COLOURS[color]] for word, color in line] for line in self.cells]
        return {"kind": "grid", "height": 52 + 26 * len(self.rows), **asdict(self), "cells": cells}


#: The places of a norm round a sublayer, named as in ``STACK_PLACEMENTS``; "none": a block without a norm.
PLACES = ("pre", "post", "after_branch", "none")


@dataclass(frozen=True)
class Block:
    """A block diagram of one sublayer, with its norm at the place that a control of the chart names.

    The reader can drag the norm to another place, which sets the control. A frame gives the place: "pre" for
    ``x + F(norm(x))``, "post" for ``norm(x + F(x))``, "after_branch" for ``x + norm(F(x))``, "none" for ``x + F(x)``.

    Args:
        title: what the diagram shows.
        control: the :func:`choice` of the place; its values are at least two of :data:`PLACES`.
        height: in pixels.
    """

    title: str
    control: Control
    height: int = 300

    def __post_init__(self) -> None:
        if unknown := [place for place in self.control.options.values() if place not in PLACES]:
            raise ValueError(f"panel {self.title!r} knows the places {list(PLACES)}; got {unknown}.")

    def data(self, given: str) -> str:
        known = list(self.control.options.values())
        if given not in known:
            raise ValueError(f"panel {self.title!r} takes a place of its control, {known}; got {given!r}.")
        return given

    def spec(self, frames: Sequence[str]) -> dict[str, Any]:
        return {
            "kind": "block",
            "height": self.height,
            "title": self.title,
            "control": self.control.name,
            "places": list(self.control.options.values()),
        }


def chart(
    name: str,
    title: str,
    controls: Sequence[Control],
    panels: Sequence[Lines | Heat | Bars | Block | Columns | Grid],
    frame: Callable[..., tuple[str, Sequence[Any]]],
    alt: str,
    side: int = 1,
) -> None:
    """Show a figure whose controls choose among pictures, all computed by this call.

    Args:
        name: short name, unique on the page: lower-case words with dashes.
        title: what the figure shows, in one sentence; its caption.
        controls: sliders and choices. Two controls with k and m values give k m pictures.
        panels: the panels, in order.
        frame: called once for every state of the controls, with their values by name; returns the sentence under
            the picture, and the data of each panel.
        alt: a description of the first picture, for readers who cannot see it.
        side: how many panels to put side by side where there is room.

    Raises:
        ValueError: a missing or short name or text, two controls of the same name, two sliders that play, or data
            that does not fit its panel.
    """
    if strange := [panel.title for panel in panels if isinstance(panel, Block) and panel.control not in controls]:
        raise ValueError(f"the control of a Block must be one of the chart's controls; got another for {strange}.")
    names = [control.name for control in controls]
    if len(set(names)) < len(names):
        raise ValueError(f"each control must have its own name, the argument of `frame` that it sets; got {names}.")
    if len(playing := [control.name for control in controls if control.play]) > 1:
        raise ValueError(f"only one slider of a chart can play; got {playing}.")
    states = list(itertools.product(*(control.options.values() for control in controls)))
    says: list[str] = []
    datas: list[list[Any]] = []
    for state in states:
        say, given = frame(**dict(zip(names, state, strict=True)))
        if len(given) != len(panels):
            raise ValueError(f"a frame must give data for each of the {len(panels)} panels; got {len(given)}.")
        says.append(say)
        datas.append([panel.data(data) for panel, data in zip(panels, given, strict=True)])
    spec = {
        "kind": "chart",
        "controls": [control.spec() for control in controls],
        "panels": [panel.spec([data[k] for data in datas]) for k, panel in enumerate(panels)],
        "side": side,
        "frames": [{"panels": data, "say": say} for data, say in zip(datas, says, strict=True)],
    }
    _publish(name, title, alt, spec)


@dataclass(frozen=True)
class _Dial:
    """A continuous control; `log` if it is given by its power of ten, `more` if the page folds it away."""

    name: str
    label: str
    range: tuple[float, float, float]  # low, high, step
    start: float
    kind: str = "slider"
    log: bool = False
    more: bool = False


#: The example token of all chapters.
TOKEN = (2.0, 4.0, 6.0, 12.0)


def norms(name: str, title: str, rows: Sequence[str], alt: str) -> None:
    """Show LayerNorm, RMSNorm or both step by step, for a token whose features can be dragged.

    Args:
        name: as in :func:`chart`.
        title: as in :func:`chart`.
        rows: "layer", "rms", or both.
        alt: as in :func:`chart`.

    Raises:
        ValueError: a missing or short name or text, or an unknown norm.
    """
    if not rows or set(rows) - {"layer", "rms"}:
        raise ValueError(f'rows must be "layer", "rms" or both; got {list(rows)}.')
    dials = [
        _Dial("shift", "shift", (-8.0, 8.0, 0.5), 0.0),
        _Dial("scale", "scale", (0.25, 3.0, 0.25), 1.0),
        *(_Dial(f"x{k}", f"feature {k}", (-14.0, 14.0, 0.5), value, more=True) for k, value in enumerate(TOKEN, 1)),
        _Dial("gamma", "gamma, of all", (-2.0, 2.0, 0.1), 1.0, more=True),
    ]
    if "layer" in rows:
        dials.append(_Dial("beta", "beta, of all", (-2.0, 2.0, 0.1), 0.0, more=True))
    dials.append(_Dial("eps", "eps", (-8.0, 2.0, 1.0), -5.0, log=True, more=True))
    controls = [asdict(dial) for dial in dials]
    spec = {"kind": "norms", "rows": list(rows), "x": TOKEN, "controls": controls, "more": "More"}
    _publish(name, title, alt, spec)


def cloud(name: str, title: str, points: npt.ArrayLike, alt: str, norm: str = "layer") -> None:
    """Show tokens of three features as a cloud to turn, and what LayerNorm and RMSNorm make of it.

    Each norm has eps = 0, gain 1 and shift 0. LayerNorm is two sliders: subtract the mean, then rescale to length
    ``sqrt(3)``; RMSNorm is the second alone. Between its ends a slider moves every token along a straight line.

    Args:
        name: as in :func:`chart`.
        title: as in :func:`chart`.
        points: the tokens, shape (n, 3); none of them on the line (1, 1, 1), where LayerNorm would divide by 0.
        alt: as in :func:`chart`.
        norm: "layer" or "rms", the first choice.

    Raises:
        ValueError: a missing or short name or text, an unknown norm, or points that do not fit.
    """
    tokens = np.asarray(points, dtype=np.float64)
    if tokens.ndim != 2 or tokens.shape[1] != 3 or not len(tokens):
        raise ValueError(f"a cloud needs points of shape (n, 3); got {tokens.shape}.")
    if not np.isfinite(tokens).all():
        raise ValueError(f"a cloud needs finite points; got {tokens[~np.isfinite(tokens).all(axis=1)].tolist()}.")
    if (lost := tokens.std(axis=1) <= 1e-3 * np.abs(tokens).max()).any():
        raise ValueError(f"LayerNorm would divide by 0 on the line (1, 1, 1); got {tokens[lost].tolist()}.")
    controls = [
        choice("norm", "norm", {"LayerNorm": "layer", "RMSNorm": "rms"}, norm).spec(),
        asdict(_Dial("project", "project, %", (0, 100, 5), 0)),
        asdict(_Dial("rescale", "rescale, %", (0, 100, 5), 0)),
        asdict(_Dial("turn", "turn, degrees", (-180, 180, 2), 26, more=True)),
        asdict(_Dial("tilt", "tilt, degrees", (-90, 90, 2), 20, more=True)),
    ]
    _publish(name, title, alt, {"kind": "cloud", "x": tokens, "controls": controls, "more": "Turn with sliders"})


def sketch(
    name: str,
    title: str,
    x: Axis,
    y: Axis,
    truth: tuple[npt.ArrayLike, npt.ArrayLike],
    knots: Sequence[float],
    alt: str,
) -> None:
    """Ask for a curve: the reader draws it, and then sees the measured one over it.

    On a page a Predict box with ``:curve:`` precedes the figure, and hides the measured curve until it is answered.

    Args:
        name: as in :func:`chart`.
        title: what to draw, in one sentence; the caption.
        x: the horizontal axis.
        y: the vertical axis, which needs limits: the range of the data would give the answer away.
        truth: the measured curve, as :class:`Lines` takes it.
        knots: at least three positions on x, in order, at which the reader's line can bend.
        alt: a description of the picture with the measured curve, for readers who cannot see it.

    Raises:
        ValueError: a missing or short name or text, no limits of y, too few or unordered knots, or a truth that does
            not fit.
    """
    if y.limits is None:
        raise ValueError(f"a sketch must give the limits of its y axis; {y.label!r} has none.")
    if len(knots) < 3 or list(knots) != sorted(set(knots)):
        raise ValueError(f"a sketch needs at least three knots, in rising order; got {list(knots)}.")
    curves = {"guess": Curve("your guess", figures.GREY, "--", "too"), "truth": Curve("measured", figures.BLUE)}
    panel = Lines(x, y, curves)
    data = panel.data({"truth": truth})
    low, high = (float(v) for v in (np.log10(y.limits) if y.log else y.limits))
    spread = (low, high, (high - low) / 40)
    dials = [
        _Dial(f"k{k}", f"{x.label}: {at:g}", spread, (low + high) / 2, log=y.log, more=True)
        for k, at in enumerate(knots, 1)
    ]
    spec = {
        "kind": "sketch",
        "controls": [asdict(dial) for dial in dials],
        "more": "Draw with sliders",
        "panel": panel.spec([data]),
        "truth": data["truth"],
        "knots": list(knots),
    }
    _publish(name, title, alt, spec)


def number(value: float) -> str:
    """A number for a frame's sentence: two digits, with a power of ten below 0.001 and from 10 000 on.

    Raises:
        ValueError: the number is not finite.
    """
    if not np.isfinite(value):
        raise ValueError(f"a number in a sentence must be finite; got {value}. Check the measurement.")
    rounded = float(f"{value:.1e}")
    if rounded == 0 or 1e-3 <= abs(rounded) < 1e4:
        return f"{rounded:g}".replace("-", "−")
    digits, power = f"{rounded:.1e}".split("e")
    return digits.removesuffix(".0").replace("-", "−") + times_ten_to(int(power))


@functools.cache
def renderer() -> Any:
    """``live.js``, loaded in a JavaScript engine from a Python wheel."""
    from py_mini_racer import MiniRacer  # only pages and stored pictures need the engine

    engine = MiniRacer()
    engine.eval(SCRIPT.read_text("utf-8"))
    return engine


def markup(spec: str) -> str:
    """The complete HTML of a figure in its first state, needing no script; ``spec`` is its table as JSON."""
    inside = renderer().eval(f"subnormLive.markup({spec})")
    told = json.loads(spec)
    data = spec.replace("</", "<\\/")
    return (
        f'<figure class="live" data-live="{told["kind"]}" id="live-{told["name"]}">{inside}'
        f'<script type="application/json">{data}</script></figure>'
    )


def stored(output: Mapping[str, Any]) -> str | None:
    """The table of a live figure in a notebook's output, as JSON; None if there is none."""
    table: str | None = output.get("metadata", {}).get(STORED)
    return table


def still(spec: str) -> bytes:
    """The first state as a PNG, for code hosts and for notebooks that have not been run."""
    style = STYLE.read_text("utf-8")
    light = {**dict(re.findall(r"(--live-\w+): (#\w+)", style.split("}")[0])), "currentColor": "#222"}
    rules = re.findall(r"^\.live-picture ([^{]+\{[^}]+\})", style, re.MULTILINE)
    svg = renderer().eval(f"subnormLive.picture({spec}).svg").replace("<svg ", f'<svg xmlns="{SVG}" ', 1)
    png = figures.as_png(_coloured(svg, light), figures.STILL, _coloured("\n".join(rules), light))
    return figures.with_palette(io.BytesIO(png))


def _coloured(text: str, values: Mapping[str, str]) -> str:
    """Replace CSS variables by their values, because this renderer does not support them."""
    return re.sub(r"var\((--live-\w+)\)|(currentColor)", lambda match: values[match[1] or match[2]], text)


def _publish(name: str, title: str, alt: str, spec: dict[str, Any]) -> None:
    if not re.fullmatch("[a-z][a-z0-9-]*", name):
        raise ValueError(f"a figure's name must be lower-case words with dashes, unique on its page; got {name!r}.")
    figures.check_text("title", title)
    figures.check_text("alt", alt)
    spec = {"name": name, "title": title, "alt": alt, **spec}
    data = json.dumps(_plain(spec), ensure_ascii=False, separators=(",", ":"))
    if os.environ.get("SUBNORM_STORED"):
        metadata = {"image/png": {"width": WIDTH}, STORED: data}
        publish_display_data({"image/png": still(data), "text/plain": alt}, metadata=metadata)
    else:
        style, script = STYLE.read_text("utf-8"), SCRIPT.read_text("utf-8")
        html = f"{markup(data)}<style>{style}</style><script>{script}</script>"
        publish_display_data({"text/html": html, "text/plain": alt})


def _plain(value: Any) -> Any:
    """Arrays as lists, floats rounded; nan and infinity become null."""
    if isinstance(value, Mapping):
        return {key: _plain(child) for key, child in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(child) for child in value]
    if isinstance(value, float | np.floating):
        return _round(float(value)) if np.isfinite(value) else None
    return value


def _round(value: float) -> float | int:
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e6 else rounded
