"""Block diagrams drawn by code: one function for each diagram, built from a few shared shapes.

Signals flow from left to right, or from the bottom up where blocks are side by side. One data unit has the same
length on both axes, so that a circle is round.
Each diagram returns a figure for :func:`subnorm_lab.figures.show`.
"""

from collections.abc import Sequence
from itertools import pairwise

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Ellipse, FancyBboxPatch, PathPatch, Rectangle
from matplotlib.path import Path

from subnorm_lab.figures import BLACK, BLUE, GREEN, ORANGE, PHONE, PINK, ink

Point = tuple[float, float]

PLUS_RADIUS = 0.17
BOX_HEIGHT = 0.55


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty canvas, ``width`` by ``height`` units, with the origin at its lower left corner."""
    fig, ax = plt.subplots(figsize=(width, height))
    ax.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    ax.axis("off")
    return fig, ax


def operation_box(ax: Axes, centre: Point, label: str, color: str = BLUE, width: float = 1.0) -> None:
    """An operation: a box around a label."""
    x, y = centre[0] - width / 2, centre[1] - BOX_HEIGHT / 2
    style = "round,pad=0,rounding_size=0.08"
    ax.add_patch(FancyBboxPatch((x, y), width, BOX_HEIGHT, boxstyle=style, facecolor="white", edgecolor=color, lw=2))
    ax.text(*centre, label, ha="center", va="center", color=BLACK)


def plus(ax: Axes, centre: Point) -> None:
    """A circled plus: the sum of the arrows that enter it."""
    ax.add_patch(Circle(centre, PLUS_RADIUS, facecolor="white", edgecolor=BLACK, lw=2))
    x, y = centre
    arm = PLUS_RADIUS * 0.55
    ax.plot([x - arm, x + arm], [y, y], color=BLACK, lw=2)
    ax.plot([x, x], [y - arm, y + arm], color=BLACK, lw=2)


def arrow(ax: Axes, start: Point, end: Point, color: str = BLACK) -> None:
    style = {"arrowstyle": "-|>", "color": color, "lw": 2, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=end, xytext=start, arrowprops=style)


def skip(ax: Axes, start: Point, end: Point, height: float) -> None:
    """A skip path: from a fork on the line, up and over the parts in between, down to a plus."""
    top, landing = start[1] + height, end[1] + PLUS_RADIUS
    corner = 0.25
    path = [
        (Path.MOVETO, start),
        (Path.LINETO, (start[0], top - corner)),
        (Path.CURVE3, (start[0], top)),
        (Path.CURVE3, (start[0] + corner, top)),
        (Path.LINETO, (end[0] - corner, top)),
        (Path.CURVE3, (end[0], top)),
        (Path.CURVE3, (end[0], top - corner)),
    ]
    codes, points = zip(*path, strict=True)
    ax.add_patch(PathPatch(Path(points, codes), facecolor="none", edgecolor=GREEN, lw=2))
    arrow(ax, (end[0], top - corner), (end[0], landing), GREEN)


def plain_stack() -> Figure:
    """Layers in a row: above, the signal goes right; below, the gradient comes back through every layer."""
    fig, ax = canvas(PHONE, 1.6)
    line, step, half = 0.8, 0.75, 0.25
    ax.text(0.28, line, "$x_0$", ha="center", va="center", fontsize=14)
    left = 0.46
    for index, label in enumerate(("$F_1$", "$F_2$", "$\\cdots$", "$F_L$")):
        middle = 0.98 + step * index
        arrow(ax, (left, line + 0.12), (middle - half, line + 0.12))
        arrow(ax, (middle - half, line - 0.12), (left, line - 0.12), ORANGE)
        operation_box(ax, (middle, line), label, width=2 * half)
        left = middle + half
    arrow(ax, (left, line + 0.12), (left + 0.28, line + 0.12))
    arrow(ax, (left + 0.28, line - 0.12), (left, line - 0.12), ORANGE)
    ax.text(left + 0.32, line, "loss", va="center")
    ax.text(PHONE / 2, line + 0.4, "signal", color=BLACK, ha="center", va="bottom")
    ax.text(PHONE / 2, line - 0.4, "gradient", color=ORANGE, ha="center", va="top")
    return fig


def residual_block() -> Figure:
    """One residual connection, ``y = x + F(x)``: the skip path above, the branch below."""
    fig, ax = canvas(PHONE, 2.0)
    line, fork, add = 0.7, 0.65, 2.75
    ax.text(0.15, line, "$x$", ha="center", va="center", fontsize=14)
    arrow(ax, (0.3, line), (1.3, line))
    operation_box(ax, (1.7, line), "$F$", width=0.8)
    arrow(ax, (2.1, line), (add - PLUS_RADIUS, line), BLUE)
    plus(ax, (add, line))
    arrow(ax, (add + PLUS_RADIUS, line), (3.25, line))
    ax.text(3.3, line, "$y=x+F(x)$", va="center")
    skip(ax, (fork, line), (add, line), height=0.8)
    ax.text(
        (fork + add) / 2, line + 0.9, "skip path: carries $x$, has no weights", ha="center", va="bottom", color=GREEN
    )
    ax.text((fork + add) / 2, line - 0.36, "branch: learns the correction $y-x$", ha="center", va="top", color=BLUE)
    ax.plot(fork, line, marker="o", color=BLACK, markersize=5)
    return fig


def nested_classes() -> Figure:
    """What stacks of 2, 4 and 8 blocks can compute, as outlines: plain ones overlap, residual ones are nested.

    The labels are large enough for a narrow screen, on which the picture is scaled down.
    """
    fig, ax = canvas(4.6, 2.3)
    # for each outline: centre, width, height, angle, and the place of its label
    plain = [
        ((0.72, 0.55), 0.8, 0.62, 20, (0.6, 0.5)),
        ((1.26, 1.03), 1.15, 0.85, 35, (1.63, 1.2)),
        ((0.95, 1.13), 0.95, 1.5, 50, (0.6, 1.42)),
    ]
    residual = [
        ((3.05, 0.65), 0.75, 0.55, 25, (3.05, 0.65)),
        ((3.2, 0.81), 1.3, 1.0, 25, (3.5, 1.0)),
        ((3.38, 0.98), 1.9, 1.45, 25, (3.4, 1.5)),
    ]
    for name, outlines, cross in (("plain", plain, (1.9, 1.5)), ("residual", residual, (4.0, 1.45))):
        ax.text(cross[0] - 0.7, 2.12, name, ha="center", va="center", fontsize=13)
        ax.plot(*cross, marker="x", color=BLACK, markersize=9, markeredgewidth=2.5)
        looks = zip(outlines, (ORANGE, BLUE, GREEN), (2, 4, 8), strict=True)
        for (centre, width, height, angle, at), color, blocks in looks:
            ax.add_patch(Ellipse(centre, width, height, angle=angle, facecolor="none", edgecolor=color, lw=2))
            ax.text(*at, str(blocks), ha="center", va="center", fontsize=13, color=color)
    return fig


def residual_stream(
    sublayers: tuple[str, ...] = ("attention", "feed-forward", "attention", "feed-forward"), lines: int = 1
) -> Figure:
    """A stack of residual connections, with the skip paths as one line that the sublayers read and edit.

    Args:
        sublayers: the names of the sublayers, from the first to the last.
        lines: the number of lines that share the sublayers; on a phone, two.
    """
    step, reach, below, high = 1.65, 1.3, 1.05, 2.0
    each = len(sublayers) // lines
    fig, ax = canvas(step * each + 1.0, high * lines - 0.2)
    for row in range(lines):
        line = high * (lines - row) - 0.55
        first = each * row
        ax.text(0.25, line, f"$x_{first}$", ha="center", va="center", fontsize=14)
        left = 0.45
        for index, name in enumerate(sublayers[first : first + each]):
            fork = 0.65 + step * index
            add = fork + reach
            arrow(ax, (left, line), (add - PLUS_RADIUS, line), GREEN)
            ax.plot(fork, line, marker="o", color=BLACK, markersize=5)
            foot = line - below
            arrow(ax, (fork, line), (fork + 0.2, foot + BOX_HEIGHT / 2), BLUE)
            operation_box(ax, ((fork + add) / 2, foot), name, width=reach)
            arrow(ax, (add - 0.2, foot + BOX_HEIGHT / 2), (add - 0.04, line - PLUS_RADIUS), ORANGE)
            plus(ax, (add, line))
            left = add + PLUS_RADIUS
        ax.text(0.85, line - 0.38, "read", color=BLUE, va="center")
        ax.text(1.75, line - 0.38, "add", color=ORANGE, va="center", ha="right")
        arrow(ax, (left, line), (left + 0.3, line), GREEN)
        ax.text(left + 0.45, line, f"$x_{first + each}$", ha="center", va="center", fontsize=14)
    return fig


#: For each norm: its colour, and how many rows and columns share the mean and variance of the table's first entry.
#: The table has two examples of three tokens, and four features in two groups.
SHARED = {
    "LayerNorm": (BLUE, 1, 4),
    "BatchNorm": (ORANGE, 6, 1),
    "GroupNorm": (GREEN, 3, 2),
    "InstanceNorm": (PINK, 3, 1),
}


def normalised_axes(norms: tuple[str, ...] = ("LayerNorm", "BatchNorm"), beside: int = 2) -> Figure:
    """Which entries share one mean and one variance: a table of tokens and features for each norm.

    A phone shows two norms side by side large enough to read.
    """
    beside = min(beside, len(norms))
    lines = -(-len(norms) // beside)
    fig, panels = plt.subplots(lines, beside, figsize=(1.9 * beside, 2.9 * lines), squeeze=False)
    examples, tokens, features = 2, 3, 4
    rows = examples * tokens
    for ax, norm in zip(panels.flat, norms, strict=True):
        color, height, width = SHARED[norm]
        for row in range(rows):
            for column in range(features):
                face = color if row < height and column < width else "white"
                ax.add_patch(Rectangle((column, -row), 0.9, 0.9, facecolor=face, edgecolor=BLACK, lw=1))
        for example in range(examples):
            middle = 0.95 - tokens * (example + 0.5)
            ax.text(-0.2, middle, f"example {example + 1}", rotation=90, ha="right", va="center", fontsize=10)
        ax.plot([-0.7, features], [0.95 - tokens] * 2, color=BLACK, lw=1, linestyle="--")
        ax.text(features / 2, -rows + 0.75, "features", ha="center", va="top", fontsize=10)
        ax.set_title(norm, loc="center")
        ax.set(xlim=(-0.9, features), ylim=(-rows + 0.1, 1.1), aspect="equal")
        ax.axis("off")
    return fig


def placements() -> Figure:
    """A Post-LN block above a Pre-LN block: the same four parts, and the norm in two places."""
    fig, ax = canvas(7.8, 4.4)
    orders = {"Post-LN": ("branch", "+", "norm"), "Pre-LN": ("norm", "branch", "+")}
    for line, (name, order) in zip((2.95, 0.55), orders.items(), strict=True):
        ax.text(0.1, line + 1.3, name, fontsize=13, weight="bold", va="center")
        ax.text(0.2, line, "$x$", ha="center", va="center", fontsize=14)
        left = 0.4
        for start, branch in ((0.6, "attention"), (4.0, "feed-forward")):
            fork, x = start + 0.1, start + 0.35
            for part in order:
                if part == "+":
                    x += PLUS_RADIUS
                    arrow(ax, (left, line), (x - PLUS_RADIUS, line), BLUE)
                    plus(ax, (x, line))
                    skip(ax, (fork, line), (x, line), height=0.75)
                    x += PLUS_RADIUS
                else:
                    width = 0.75 if part == "norm" else 1.3
                    arrow(ax, (left, line), (x, line))
                    label, color = (part, ORANGE) if part == "norm" else (branch, BLUE)
                    operation_box(ax, (x + width / 2, line), label, color, width)
                    x += width
                left = x
                x += 0.3
            ax.plot(fork, line, marker="o", color=BLACK, markersize=5)
        arrow(ax, (left, line), (left + 0.35, line))
        ax.text(left + 0.5, line, "$y$", ha="center", va="center", fontsize=14)
    return fig


def placements_upright() -> Figure:
    """The same two blocks for a phone, side by side, from the bottom up."""
    fig, ax = canvas(PHONE, 5.7)
    for x, (name, placement) in zip((1.2, 3.35), (("Post-LN", "post"), ("Pre-LN", "pre")), strict=True):
        ax.text(x, 5.5, name, fontsize=13, weight="bold", ha="center", va="center")
        ax.text(x, 0.2, "$x$", ha="center", va="center", fontsize=14)
        (_, top), _ = _tower(ax, (x, 0.35), ("attention", "feed-forward"), placement, side=-1, width=1.3)
        arrow(ax, (x, top), (x, top + 0.35))
        ax.text(x, top + 0.47, "$y$", ha="center", va="center", fontsize=14)
    return fig


def attention_sublayer() -> Figure:
    """A Post-LN attention sublayer, step by step, with the shape after each step: 512 features, 8 heads."""
    fig, ax = canvas(PHONE, 4.4)
    lines = (4.05, 2.65, 1.25)
    edge, half, bottom = 0.3, 0.45, 0.4  # of the line that leads on, of a box, of the skip path
    steps = [
        [(0.95, "q, k, v", "(2, 30, 1536)"), (2.28, "heads", "3 × (2, 8, 30, 64)"), (3.65, "scores", "(2, 8, 30, 30)")],
        [(0.95, "weights", "(2, 8, 30, 30)"), (2.28, "mix", "(2, 8, 30, 64)"), (3.65, "merge", "(2, 30, 512)")],
        [(0.95, "out", "(2, 30, 512)"), (2.05, "dropout", "(2, 30, 512)"), (3.7, "norm", "(2, 30, 512)")],
    ]
    for line, boxes in zip(lines, steps, strict=True):
        for x, name, shape in boxes:
            operation_box(ax, (x, line), name, ORANGE if name == "norm" else BLUE, width=2 * half)
            ax.text(x, line - 0.33, shape, ha="center", va="top", fontsize=9.5)
        for (x, _, _), (after, name, _) in pairwise(boxes):
            if name != "norm":
                arrow(ax, (x + half, line), (after - half, line), BLUE)
    for line, after in pairwise(lines):
        right, turn = steps[0][-1][0] + half, (line + after) / 2 - 0.05
        ax.plot([right, right + 0.12, right + 0.12, edge, edge], [line, line, turn, turn, after], color=BLUE, lw=2)
        arrow(ax, (edge, after), (steps[0][0][0] - half, after), BLUE)
    first, last, add = lines[0], lines[-1], 2.87
    ax.text(0.12, first, "$x$", ha="center", va="center", fontsize=14)
    arrow(ax, (0.22, first), (steps[0][0][0] - half, first))
    arrow(ax, (2.05 + half, last), (add - PLUS_RADIUS, last), BLUE)
    plus(ax, (add, last))
    arrow(ax, (add + PLUS_RADIUS, last), (3.7 - half, last))
    ax.plot([0.12, 0.12, add], [first - 0.2, bottom, bottom], color=GREEN, lw=2)
    arrow(ax, (add, bottom), (add, last - PLUS_RADIUS), GREEN)
    ax.text(1.5, bottom - 0.07, "skip path", color=GREEN, ha="center", va="top")
    return fig


def _tower(
    ax: Axes,
    foot: Point,
    sublayers: tuple[str, ...],
    placement: str,
    side: int,
    dropout: bool = False,
    width: float = 1.5,
) -> tuple[Point, dict[str, Point]]:
    """Draw a block from the bottom up, with skip paths on the left (side -1) or right (1); return its top and parts."""
    order = {
        "pre": ["norm", "branch", "dropout", "+"],
        "post": ["branch", "dropout", "+", "norm"],
        "after_branch": ["branch", "norm", "dropout", "+"],
        "sandwich": ["norm", "branch", "norm", "dropout", "+"],
    }[placement]
    x, y = foot
    below, gap, found = y, 0.24, {}
    for sublayer in sublayers:
        fork = below + 0.12
        y = fork + 0.14
        for part in order:
            if part == "+":
                middle = y + PLUS_RADIUS
                arrow(ax, (x, below), (x, y), BLUE)
                reach, corner = x + side * (width / 2 + 0.25), 0.25
                path = [
                    (Path.MOVETO, (x, fork)),
                    (Path.LINETO, (reach - side * corner, fork)),
                    (Path.CURVE3, (reach, fork)),
                    (Path.CURVE3, (reach, fork + corner)),
                    (Path.LINETO, (reach, middle - corner)),
                    (Path.CURVE3, (reach, middle)),
                    (Path.CURVE3, (reach - side * corner, middle)),
                ]
                codes, points = zip(*path, strict=True)
                ax.add_patch(PathPatch(Path(points, codes), facecolor="none", edgecolor=GREEN, lw=2))
                arrow(ax, (reach - side * corner, middle), (x + side * PLUS_RADIUS, middle), GREEN)
                plus(ax, (x, middle))
                found[f"{sublayer} +"] = (x, middle)
                below = y + 2 * PLUS_RADIUS
            elif part != "dropout" or dropout:
                label = sublayer if part == "branch" else part
                color = ORANGE if part == "norm" else BLUE
                arrow(ax, (x, below), (x, y))
                operation_box(ax, (x, y + BOX_HEIGHT / 2), label, color, width)
                found[sublayer if part == "branch" else f"{sublayer} {part}"] = (x, y + BOX_HEIGHT / 2)
                below = y + BOX_HEIGHT
            else:
                continue
            y = below + gap
        ax.plot(x, fork, marker="o", color=BLACK, markersize=5)
    return (x, below), found


def assembled_block() -> Figure:
    """A Pre-LN block from the bottom up; notes beside the parts say what each may read."""
    fig, ax = canvas(PHONE, 7.0)
    (x, top), parts = _tower(ax, (1.1, 0.45), ("attention", "feed-forward"), "pre", side=-1, dropout=True)
    ax.text(x, 0.25, "$x$", ha="center", va="center", fontsize=14)
    arrow(ax, (x, top), (x, top + 0.35))
    ax.text(x, top + 0.5, "$y$", ha="center", va="center", fontsize=14)
    notes = {
        "attention norm": "each token on its own",
        "attention": "each token reads the others",
        "attention dropout": "training only",
        "attention +": "the sum: the edit\nenters the stream",
        "feed-forward norm": "each token on its own",
        "feed-forward": "each token on its own",
        "feed-forward dropout": "training only",
        "feed-forward +": "the sum",
    }
    for part, note in notes.items():
        ax.text(x + 0.85, parts[part][1], note, va="center", color=BLACK)
    return fig


#: Three models and the place of their norms, as in the book's table of models.
MODELS = {"GPT-2": "pre", "OLMo 2": "after_branch", "Gemma 3": "sandwich"}


def named_blocks() -> Figure:
    """One sublayer of each of :data:`MODELS`, from the bottom up, side by side."""
    step = 1.4
    fig, ax = canvas(step * len(MODELS) + 0.1, 4.5)
    for index, (name, placement) in enumerate(MODELS.items()):
        x = 0.85 + step * index
        ax.text(x, 4.3, name, ha="center", va="center", fontsize=13, weight="bold")
        ax.text(x, 0.2, "$x$", ha="center", va="center", fontsize=14)
        (_, top), _ = _tower(ax, (x, 0.38), ("$F$",), placement, side=-1, width=0.95)
        arrow(ax, (x, top), (x, top + 0.35))
        ax.text(x, top + 0.5, "$y$", ha="center", va="center", fontsize=14)
    return fig


def five_sublayers() -> Figure:
    """A sublayer with and without a skip path and a norm, and one with a scaled branch, from the bottom up."""
    ways = {"neither": "", "residual": "s", "norm": "n", "both": "ns", "scaled": "s/"}
    step = 0.86
    fig, ax = canvas(step * len(ways), 3.5)
    for index, (name, parts) in enumerate(ways.items()):
        x, y = step * (index + 0.5) + 0.08, 0.42
        ax.text(x, 3.35, name, ha="center", va="center", fontsize=10.5)
        ax.text(x, 0.2, "$x$", ha="center", va="center", fontsize=14)
        boxes = [("norm", ORANGE)] * ("n" in parts) + [("$F$", BLUE)] + [("$1/\\sqrt{2L}$", PINK)] * ("/" in parts)
        fork, centres = y + 0.13, [y + 0.26 + BOX_HEIGHT / 2 + k * (BOX_HEIGHT + 0.2) for k in range(len(boxes))]
        below = y
        for centre, (label, color) in zip(centres, boxes, strict=True):
            arrow(ax, (x, below), (x, centre - BOX_HEIGHT / 2))
            operation_box(ax, (x, centre), label, color, 0.56)
            below = centre + BOX_HEIGHT / 2
        if "s" in parts:
            middle = 2.45
            arrow(ax, (x, below), (x, middle - PLUS_RADIUS), BLUE)
            side = x - 0.4
            ax.plot([x, side, side], [fork, fork, middle], color=GREEN, lw=2)
            arrow(ax, (side, middle), (x - PLUS_RADIUS, middle), GREEN)
            plus(ax, (x, middle))
            ax.plot(x, fork, marker="o", color=BLACK, markersize=5)
            below = middle + PLUS_RADIUS
        arrow(ax, (x, below), (x, 2.9))
        ax.text(x, 3.03, "$y$", ha="center", va="center", fontsize=14)
    return fig


def encoder_decoder(placement: str = "post") -> Figure:
    """An encoder block beside a decoder block, from the bottom up, and the arrow of the cross-attention."""
    fig, ax = canvas(PHONE, 7.75)
    left, right, foot = 1.05, 3.25, 0.45
    (_, end), _ = _tower(ax, (left, foot), ("attention", "feed-forward"), placement, side=-1)
    (_, top), parts = _tower(
        ax, (right, foot), ("masked attention", "cross-attention", "feed-forward"), placement, side=1
    )
    for x, name in ((left, "source"), (right, "target")):
        ax.text(x, 0.25, name, ha="center", va="center")
    arrow(ax, (right, top), (right, top + 0.35))
    ax.text(right, top + 0.5, "$y$", ha="center", va="center", fontsize=14)
    between, corner = (left + right) / 2, 0.25
    cross = parts["cross-attention"]
    over = end + 0.35
    path = [
        (Path.MOVETO, (left, end)),
        (Path.LINETO, (left, over - corner)),
        (Path.CURVE3, (left, over)),
        (Path.CURVE3, (left + corner, over)),
        (Path.LINETO, (between - corner, over)),
        (Path.CURVE3, (between, over)),
        (Path.CURVE3, (between, over - corner)),
        (Path.LINETO, (between, cross[1] + corner)),
        (Path.CURVE3, (between, cross[1])),
        (Path.CURVE3, (between + corner, cross[1])),
    ]
    codes, points = zip(*path, strict=True)
    ax.add_patch(PathPatch(Path(points, codes), facecolor="none", edgecolor=PINK, lw=2))
    arrow(ax, (between + corner, cross[1]), (right - 0.75, cross[1]), PINK)
    ax.text(left, over + 0.12, "memory: keys and values", ha="center", va="bottom")
    return fig


def add_or_concatenate() -> Figure:
    """Two ways to keep x: adding it to F(x) keeps the number of features, concatenating increases it."""
    fig, ax = canvas(PHONE, 4.6)
    side, upper, lower = 0.26, 3.2, 0.75
    fork, branch, add, out = 0.55, 1.9, 2.35, 3.2  # from left to right
    for line, name in ((upper, "add"), (lower, "concatenate")):
        ax.text(0.1, line + 1.15, name, fontsize=13, weight="bold", va="center")
        features(ax, (0.2, line), 4, GREEN, side)
        arrow(ax, (0.35, line), (0.85, line))
        ax.plot(fork, line, marker="o", color=BLACK, markersize=5)
        operation_box(ax, (1.15, line), "$F$", width=0.6)
        arrow(ax, (1.45, line), (branch - side / 2, line), BLUE)
        features(ax, (branch, line), 4, BLUE, side)
    skip(ax, (fork, upper), (add, upper), height=0.75)
    plus(ax, (add, upper))
    arrow(ax, (add + PLUS_RADIUS, upper), (out - 0.25, upper))
    features(ax, (out, upper), 4, BLACK, side)
    ax.text(out + 0.22, upper, "4 features", va="center")
    over = lower + 3 * side
    ax.plot([fork, fork], [lower, over], color=GREEN, lw=2)
    arrow(ax, (fork, over), (out - 0.25, over), GREEN)
    arrow(ax, (branch + side / 2, lower), (out - 0.25, lower), BLUE)
    features(ax, (out, lower), 4, BLUE, side)
    features(ax, (out, lower + 4 * side), 4, GREEN, side)
    ax.text(out + 0.22, lower + 2 * side, "8 features", va="center")
    return fig


def features(ax: Axes, centre: Point, count: int, color: str, side: float) -> None:
    """A column of squares: the features of one token."""
    x, y = centre[0] - side / 2, centre[1] - count * side / 2
    for row in range(count):
        ax.add_patch(Rectangle((x, y + row * side), side, side, facecolor="white", edgecolor=color, lw=2))


def gradient_routes(sublayers: int = 2) -> Figure:
    """The gradient's way back, from right to left: past the norms in Pre-LN, through every norm in Post-LN."""
    step = 1.65
    fig, ax = canvas(step * sublayers + 1.0, 3.9)
    for line, name in ((3.0, "Post-LN"), (1.2, "Pre-LN")):
        ax.text(0.1, line + 0.55, name, fontsize=13, weight="bold", va="center")
        ax.text(step * sublayers + 0.75, line, "$dx_L$", ha="center", va="center", fontsize=14)
        ax.text(0.22, line, "$dx_0$", ha="center", va="center", fontsize=14)
        right = step * sublayers + 0.5
        for index in reversed(range(sublayers)):
            add, below = step * index + (1.55 if name == "Pre-LN" else 1.05), line - 0.8
            fork = add - (0.83 if name == "Pre-LN" else 0.55)
            if name == "Post-LN":
                arrow(ax, (right, line), (add + 1.0, line), GREEN)
                operation_box(ax, (add + 0.65, line), "norm", ORANGE, 0.7)
                right = add + 0.3
            arrow(ax, (right, line), (add + PLUS_RADIUS, line), GREEN)
            plus(ax, (add, line))
            right = add - PLUS_RADIUS
            arrow(ax, (add, line - PLUS_RADIUS), (add, below + BOX_HEIGHT / 2), BLUE)
            operation_box(ax, (add, below), "$F$", BLUE, 0.5)
            if name == "Pre-LN":
                arrow(ax, (add - 0.25, below), (add - 0.45, below), BLUE)
                operation_box(ax, (fork, below), "norm", ORANGE, 0.75)
                arrow(ax, (fork, below + BOX_HEIGHT / 2), (fork, line - 0.03), BLUE)
            else:
                ax.plot([add - 0.25, fork, fork], [below, below, below + 0.4], color=BLUE, lw=2)
                arrow(ax, (fork, below + 0.35), (fork, line - 0.03), BLUE)
            ax.plot(fork, line, marker="o", color=BLACK, markersize=5)
        arrow(ax, (right, line), (0.45, line), GREEN)
    return fig


def all_reduce(halves: Sequence[Sequence[float]] = ((2, 4), (6, 12)), upright: bool = False) -> Figure:
    """An RMSNorm whose token is cut between two processes: what each holds before the one message, and after it.

    Args:
        halves: the features that each process holds.
        upright: from the bottom up, with the processes side by side, for a phone.
    """
    squares = [sum(v * v for v in half) for half in halves]
    width = sum(map(len, halves))
    total = sum(squares)
    steps = (0.55, 1.7, 2.75, 3.8, 4.95) if upright else (0.85, 2.6, 4.2, 5.55, 7.15)
    sides = (0.85, 3.45) if upright else (1.6, 0.5)
    fig, ax = canvas(PHONE, 5.35) if upright else canvas(7.9, 2.55)
    box, row, long = (BOX_HEIGHT / 2, 0.24, (1.4, 1.2)) if upright else (0.7, 0.5, (1.4, 1.4))

    def at(step: int, side: float, away: float = 0) -> Point:
        """Where a step of a process is, or `away` from there on the way of the signal."""
        return (side, steps[step] + away) if upright else (steps[step] + away, side)

    centre = sum(sides) / 2
    for half, own, side, name in zip(halves, squares, sides, ("process 0", "process 1"), strict=True):
        near = centre + (side - centre) * (0.07 if upright else 0.15)  # the plus, on this side
        sent, back = at(1, side, box), at(3, side, -box)
        numbers(ax, at(0, side), [f"{v:g}" for v in half])
        arrow(ax, at(0, side, row), at(1, side, -box))
        operation_box(ax, at(1, side), " + ".join(f"{v * v:g}" for v in half) + f" = {own:g}", width=long[0])
        arrow(ax, sent, at(2, near, -PLUS_RADIUS), PINK)
        arrow(ax, at(2, near, PLUS_RADIUS), back, PINK)
        for number, end in ((own, sent), (total, back)):
            x, y = ((a + b) / 2 for a, b in zip(end, at(2, centre), strict=True))
            out = (0.32 if upright else 0.2) * (1 if side > centre else -1)
            place = (x + out, y) if upright else (x, y + out)
            ax.text(*place, f"{number:g}", color=ink(PINK), ha="center", va="center")
        operation_box(ax, at(3, side), f"÷ √({total:g} / {width})", ORANGE, long[1])
        arrow(ax, at(3, side, box), at(4, side, -row))
        numbers(ax, at(4, side), [f"{v / (total / width) ** 0.5:.2f}" for v in half])
        ax.text(*((side, 0.13) if upright else (0.61, side + 0.36)), name, ha="center", va="center")
    plus(ax, at(2, centre))
    for step, note in enumerate(("its features", "adds its\nsquares", "all-reduce", "both divide", "their output")):
        place = at(step, centre, 0.43 * (step == 2)) if upright else at(step, 2.4)
        words = note if upright else note.replace("\n", " ")
        ax.text(*place, words, ha="center", va="center", color=ink(PINK) if step == 2 else BLACK)
    return fig


def numbers(ax: Axes, centre: Point, words: Sequence[str], side: float = 0.48) -> None:
    """The features of a token with their values: a row of squares."""
    left = centre[0] - len(words) / 2 * side
    for k, word in enumerate(words):
        corner = left + k * side, centre[1] - side / 2
        ax.add_patch(Rectangle(corner, side, side, facecolor="white", edgecolor=GREEN, lw=2))
        ax.text(left + (k + 0.5) * side, centre[1], word, ha="center", va="center")
