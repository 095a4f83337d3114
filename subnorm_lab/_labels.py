"""Words of a figure, placed by the room that its panels have: once for a page, and again for a phone."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from subnorm_lab import figures

Points = npt.NDArray[np.float64]  # (n, 2), in the units of the panel or in typographic points
NEAR = 4.0  # points between a curve and its name
ENOUGH = 12.0  # points to other curves
LINE = 13.0  # points from one line of words to the next
BELOW = "below"  # the id of the line below the title of a figure


class Name(Annotation):
    """The name of a curve, with the points of the curve, in the units of the panel."""

    def __init__(self, words: str, curve: Points, color: str, layout: Callable[..., None]) -> None:
        super().__init__(
            words,
            tuple(curve[-1]),
            xytext=(6, 0),
            textcoords="offset points",
            color=figures.ink(color),
            va="center",
            annotation_clip=False,  # else a name has no size while its point is outside the panel
        )
        self.curve, self.layout = curve, layout
        self.set_in_layout(layout is at_the_ends)  # the others take room only within their panel


def add(ax: Axes, words: str, curve: Points, color: str, layout: Callable[..., None]) -> None:
    """Add a name to a panel; `layout` is `beside` or `at_the_ends`."""
    ax._add_text(Name(words, curve, color, layout))  # type: ignore[attr-defined]


def place(fig: Figure) -> None:
    """Place all names of a figure for the size that it has now, and the titles of panels over their numbers."""
    fig.draw_without_rendering()  # only then a panel has its size
    for below in (text for text in fig.texts if text.get_gid() == BELOW):
        below.set_y(fig._suptitle.get_window_extent().y0 / fig.bbox.height)  # type: ignore[attr-defined]
    for ax in fig.axes:
        if ax.get_title(loc="left") and ax.get_subplotspec() and (left := ax.yaxis.get_tightbbox()):
            numbers = (ax.bbox.x0 - left.x0) / ax.bbox.width  # a quarter is for the names of rows
            ax._left_title.set_x(-numbers if 0 < numbers < 0.25 else 0)  # type: ignore[attr-defined]
    named = {ax: [text for text in ax.texts if isinstance(text, Name)] for ax in fig.axes}
    for ax, names in named.items():
        for layout in (at_the_ends, beside):
            if of_this := [name for name in names if name.layout is layout]:
                layout(ax, of_this)


def on_paper(ax: Axes, points: npt.ArrayLike) -> Points:
    """Points of a panel as typographic points of the figure."""
    placed: Points = ax.transData.transform(points) * 72 / ax.figure.dpi
    return placed


def at_the_ends(ax: Axes, names: Sequence[Name]) -> None:
    """Names to the right of the ends, as near to them as the lines of words allow: a least-squares fit in order."""
    names = sorted(names, key=lambda name: float(name.xy[1]))
    points = on_paper(ax, [name.xy for name in names])[:, 1]
    lines = np.array([1 + name.get_text().count("\n") for name in names])
    above_first = LINE * (np.cumsum(lines) - (lines + lines[0]) / 2)
    free = points - above_first  # of these only the order has to be kept
    everyone = range(len(names))
    kept = [max(min(free[i : k + 1].mean() for k in everyone[j:]) for i in everyone[: j + 1]) for j in everyone]
    for name, shift in zip(names, kept + above_first - points, strict=True):
        name.set_position((6, shift))


def beside(ax: Axes, names: Sequence[Name]) -> None:
    """Names next to their curves, where other curves and names are farthest; the first come first served."""
    frame = in_points(ax.bbox, ax)
    lines: dict[bool, list[Points]] = {True: [], False: []}
    for line in ax.lines:
        lines[line.get_linewidth() >= 1].append(dense(in_pixels(line) * 72 / ax.figure.dpi, frame))
    faint = np.concatenate([np.empty((0, 2)), *lines[False]])
    taken = [in_points(text.get_window_extent(), ax) for text in ax.texts if text not in names]
    for name in names:
        own = dense(on_paper(ax, name.curve), frame)
        if not len(own):  # with a reader's numbers, the whole curve may be outside the panel
            continue
        size = in_points(name.get_window_extent(), ax)
        others = [line for line in lines[True] if len(line) and farthest(line, own) > NEAR]
        strong = np.concatenate([np.empty((0, 2)), *others])
        worth = []
        for there, away in places(own, size):
            aside = abs(there.x0 + there.x1 - frame.x0 - frame.x1) / 2  # from the middle of the panel
            cost = 0.04 * away + 0.01 * aside - 0.3 * distance(there, faint)
            worth.append((room(there, frame, strong, taken) - cost, there))
        _, there = max(worth, key=lambda pair: round(pair[0], 6))
        middle = np.mean(there.get_points(), axis=0)
        nearest = own[np.hypot(*(own - middle).T).argmin()]
        name.xy = tuple(ax.transData.inverted().transform(nearest * ax.figure.dpi / 72))
        name.set(position=tuple(middle - nearest), horizontalalignment="center")
        taken.append(there)


def places(curve: Points, size: Bbox) -> Iterator[tuple[Bbox, float]]:
    """Boxes above, below, and at both sides of 25 points of a curve, and how far each is from its point."""
    half = np.array([size.width, size.height]) / 2
    for at in curve[np.linspace(0, len(curve) - 1, 25).astype(int)]:
        for axis in (1, 0):  # away from the point upwards or downwards, then sideways
            along = curve[np.abs(curve[:, 1 - axis] - at[1 - axis]) <= half[1 - axis], axis]
            for side, edge in ((1, along.max()), (-1, along.min())):
                middle = at.copy()
                middle[axis] = edge + side * (NEAR + half[axis])
                there = Bbox([middle - half, middle + half])
                crossed = distance(there, curve) < NEAR / 2  # by another part of the curve
                yield there, abs(edge - at[axis]) + (1000 if crossed else 0)


def room(there: Bbox, frame: Bbox, drawn: Points, taken: Sequence[Bbox]) -> float:
    """How far a box is from what is drawn and written; -inf if it is not within the frame."""
    if not (frame.contains(*there.min) and frame.contains(*there.max)):
        return -np.inf
    if any(there.overlaps(other) for other in taken):
        return 0
    return min([distance(there, drawn), *(distance(there, corners(other)) for other in taken)])


def in_points(pixels: Bbox, ax: Axes) -> Bbox:
    """A box of pixels in typographic points."""
    return Bbox(pixels.get_points() * 72 / ax.figure.dpi)


def in_pixels(line: Line2D) -> Points:
    """Where a line is, also one across the whole panel."""
    pixels: Points = line.get_transform().transform(line.get_xydata())
    return pixels


def corners(there: Bbox) -> Points:
    """The corners and middles of the edges of a box."""
    x, y = (np.linspace(low, high, 3) for low, high in there.get_points().T)
    return np.array([(a, b) for a in x for b in y])


def dense(points: Points, frame: Bbox) -> Points:
    """A curve as points that are at most 3 apart, within a frame."""
    points = points[np.isfinite(points).all(axis=1)]
    points = np.clip(points, -1e4, 1e4)
    steps = np.ceil(np.hypot(*np.diff(points, axis=0).T) / 3).astype(int)
    parts = [np.linspace(a, b, max(n, 1), endpoint=False) for a, b, n in zip(points, points[1:], steps, strict=False)]
    all_points = np.concatenate([*parts, points[-1:]])
    inside = (all_points >= frame.min).all(axis=1) & (all_points <= frame.max).all(axis=1)
    return all_points[inside]


def farthest(points: Points, curve: Points) -> float:
    """How far the points are from a curve at most."""
    return float(np.hypot(*(points[:, None] - curve[None]).transpose(2, 0, 1)).min(axis=1).max())


def distance(there: Bbox, points: Points) -> float:
    """From a box to the nearest of the points; 0 within it."""
    low, high = there.get_points()
    beyond = np.maximum(np.maximum(low - points, points - high), 0)
    return float(np.hypot(*beyond.T).min(initial=ENOUGH))  # farther is no better
