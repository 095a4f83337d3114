"""Block diagrams drawn by code: one function for each diagram, built from a few shared shapes.

Signals flow from left to right, or from the bottom up where blocks are side by side. One data unit has the same
length on both axes, so that a circle is round.
Each diagram returns a figure for :func:`subnorm_lab.figures.show`.
"""

from collections.abc import Sequence
from fractions import Fraction

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Ellipse, FancyBboxPatch, PathPatch, Rectangle
from matplotlib.path import Path

from subnorm_lab.figures import BLACK, BLUE, GREEN, ORANGE, PINK

Point = tuple[float, float]

PLUS_RADIUS = 0.17
BOX_HEIGHT = 0.55


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty canvas, ``width`` by ``height`` units, with the origin at its lower left corner."""
    fig, ax = plt.subplots(figsize=(width, height))
    ax.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    ax.axis("off")
    return fig, ax


def box(ax: Axes, centre: Point, label: str, color: str = BLUE, width: float = 1.0) -> None:
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
    fig, ax = canvas(7.4, 1.6)
    line, step, half = 0.85, 1.5, 0.45
    ax.text(0.25, line, "$x_0$", ha="center", va="center", fontsize=14)
    left = 0.45
    for index, label in enumerate(("$F_1$", "$F_2$", "$\\cdots$", "$F_L$")):
        middle = 1.5 + step * index
        arrow(ax, (left, line + 0.12), (middle - half, line + 0.12))
        arrow(ax, (middle - half, line - 0.12), (left, line - 0.12), ORANGE)
        box(ax, (middle, line), label, width=2 * half)
        left = middle + half
    arrow(ax, (left, line + 0.12), (left + 0.55, line + 0.12))
    arrow(ax, (left + 0.55, line - 0.12), (left, line - 0.12), ORANGE)
    ax.text(left + 0.62, line, "loss", va="center", fontsize=12)
    ax.text(3.75, line + 0.45, "signal", color=BLACK, ha="center", va="bottom")
    ax.text(3.75, line - 0.45, "gradient", color=ORANGE, ha="center", va="top")
    return fig


def residual_block() -> Figure:
    """One residual connection, ``y = x + F(x)``: the skip path above, the branch below."""
    fig, ax = canvas(6.4, 1.9)
    line = 0.6
    ax.text(0.3, line, "$x$", ha="center", va="center", fontsize=14)
    arrow(ax, (0.5, line), (2.25, line))
    box(ax, (2.75, line), "$F$")
    arrow(ax, (3.25, line), (4.5 - PLUS_RADIUS, line), BLUE)
    plus(ax, (4.5, line))
    arrow(ax, (4.5 + PLUS_RADIUS, line), (5.3, line))
    ax.text(5.45, line, "$y=x+F(x)$", va="center", fontsize=12)
    skip(ax, (1.2, line), (4.5, line), height=0.85)
    ax.text(2.75, line + 0.95, "skip path: carries $x$, has no weights", ha="center", va="bottom", color=GREEN)
    ax.text(2.75, line - 0.36, "branch: learns the correction $y-x$", ha="center", va="top", color=BLUE)
    ax.plot(1.2, line, marker="o", color=BLACK, markersize=5)
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


def residual_stream(sublayers: tuple[str, ...] = ("attention", "feed-forward", "attention", "feed-forward")) -> Figure:
    """A stack of residual connections, with the skip paths as one line that the sublayers read and edit."""
    step, reach, line, below = 1.7, 1.3, 1.45, 0.4
    fig, ax = canvas(step * len(sublayers) + 1.5, 1.8)
    ax.text(0.3, line, "$x_0$", ha="center", va="center", fontsize=14)
    left = 0.55
    for index, name in enumerate(sublayers):
        fork = 0.85 + step * index
        add = fork + reach
        arrow(ax, (left, line), (add - PLUS_RADIUS, line), GREEN)
        ax.plot(fork, line, marker="o", color=BLACK, markersize=5)
        arrow(ax, (fork, line), (fork + 0.2, below + BOX_HEIGHT / 2), BLUE)
        box(ax, ((fork + add) / 2, below), name, width=reach)
        arrow(ax, (add - 0.2, below + BOX_HEIGHT / 2), (add - 0.04, line - PLUS_RADIUS), ORANGE)
        plus(ax, (add, line))
        left = add + PLUS_RADIUS
    ax.text(1.05, 1.07, "read", color=BLUE, va="center")
    ax.text(1.95, 1.07, "add", color=ORANGE, va="center", ha="right")
    arrow(ax, (left, line), (left + 0.4, line), GREEN)
    ax.text(left + 0.6, line, f"$x_{len(sublayers)}$", ha="center", va="center", fontsize=14)
    return fig


#: For each norm: its colour, and how many rows and columns share the mean and variance of the table's first entry.
#: The table has two examples of three tokens, and four features in two groups.
SHARED = {
    "LayerNorm": (BLUE, 1, 4),
    "BatchNorm": (ORANGE, 6, 1),
    "GroupNorm": (GREEN, 3, 2),
    "InstanceNorm": (PINK, 3, 1),
}


def normalised_axes(norms: tuple[str, ...] = ("LayerNorm", "BatchNorm")) -> Figure:
    """Which entries share one mean and one variance: a table of tokens and features for each norm."""
    lines = -(-len(norms) // 2)  # two norms side by side, so that a phone shows them large enough to read
    fig, panels = plt.subplots(lines, len(norms) // lines, figsize=(3.8, 2.9 * lines), squeeze=False)
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
                    box(ax, (x + width / 2, line), label, color, width)
                    x += width
                left = x
                x += 0.3
            ax.plot(fork, line, marker="o", color=BLACK, markersize=5)
        arrow(ax, (left, line), (left + 0.35, line))
        ax.text(left + 0.5, line, "$y$", ha="center", va="center", fontsize=14)
    return fig


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> Figure:
    """Attention for one token: every value flows into the output along a line as wide as its weight."""
    step = 1.6
    fig, ax = canvas(step * len(values), 2.5)
    top, line = (step * len(values) / 2, 2.1), 0.4
    output = sum(value * weight for value, weight in zip(values, weights, strict=True))
    for index, (value, weight) in enumerate(zip(values, weights, strict=True)):
        x = step * (index + 0.5)
        ax.plot([x, top[0]], [line, top[1]], color=BLUE, lw=16 * weight, solid_capstyle="butt", zorder=0)
        middle = (x + 0.42 * (top[0] - x), line + 0.42 * (top[1] - line))
        label = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        ax.text(*middle, str(Fraction(weight).limit_denominator(100)), ha="center", va="center", bbox=label)
        box(ax, (x, line), f"{value:g}", BLACK, width=0.8)
    box(ax, top, f"{output:g}", width=0.8)
    return fig


def attention_sublayer() -> Figure:
    """A Post-LN attention sublayer, step by step, with the shape after each step: 512 features, 8 heads."""
    fig, ax = canvas(7.4, 3.6)
    upper, lower, bottom = 3.0, 1.5, 0.35
    first = [("q, k, v", "(2, 30, 1536)"), ("heads", "3 × (2, 8, 30, 64)"), ("scores", "(2, 8, 30, 30)")]
    second = [
        ("mix", "(2, 8, 30, 64)"),
        ("merge", "(2, 30, 512)"),
        ("out", "(2, 30, 512)"),
        ("dropout", "(2, 30, 512)"),
    ]
    for line, boxes, left, step in (
        (upper, [*first, ("weights", "(2, 8, 30, 30)")], 1.55, 1.7),
        (lower, second, 1.25, 1.3),
    ):
        for index, (name, shape) in enumerate(boxes):
            x = left + step * index
            box(ax, (x, line), name)
            ax.text(x, line - 0.34, shape, ha="center", va="top", fontsize=9.5)
            if index:
                arrow(ax, (x - step + 0.5, line), (x - 0.5, line), BLUE)
    ax.text(0.35, upper, "$x$", ha="center", va="center", fontsize=14)
    arrow(ax, (0.5, upper), (1.05, upper))
    turn = (upper + lower) / 2 + 0.02
    ax.plot([7.15, 7.27, 7.27, 0.55, 0.55], [upper, upper, turn, turn, lower], color=BLUE, lw=2)
    arrow(ax, (0.55, lower), (0.75, lower), BLUE)
    sum_at = 6.1
    arrow(ax, (5.65, lower), (sum_at - PLUS_RADIUS, lower), BLUE)
    plus(ax, (sum_at, lower))
    arrow(ax, (sum_at + PLUS_RADIUS, lower), (6.5, lower))
    box(ax, (6.85, lower), "norm", ORANGE, width=0.7)
    ax.text(6.85, lower - 0.34, "(2, 30, 512)", ha="center", va="top", fontsize=9.5)
    ax.plot([0.35, 0.35, sum_at], [upper - 0.2, bottom, bottom], color=GREEN, lw=2)
    arrow(ax, (sum_at, bottom), (sum_at, lower - PLUS_RADIUS), GREEN)
    ax.text(2.0, bottom + 0.07, "skip path", color=GREEN, va="bottom")
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
                box(ax, (x, y + BOX_HEIGHT / 2), label, color, width)
                found[sublayer if part == "branch" else f"{sublayer} {part}"] = (x, y + BOX_HEIGHT / 2)
                below = y + BOX_HEIGHT
            else:
                continue
            y = below + gap
        ax.plot(x, fork, marker="o", color=BLACK, markersize=5)
    return (x, below), found


def assembled_block() -> Figure:
    """A Pre-LN block from the bottom up; notes beside the parts say what each may read."""
    fig, ax = canvas(5.6, 7.0)
    (x, top), parts = _tower(ax, (1.6, 0.45), ("attention", "feed-forward"), "pre", side=-1, dropout=True)
    ax.text(x, 0.25, "$x$", ha="center", va="center", fontsize=14)
    arrow(ax, (x, top), (x, top + 0.35))
    ax.text(x, top + 0.5, "$y$", ha="center", va="center", fontsize=14)
    notes = {
        "attention norm": "each token on its own",
        "attention": "each token reads the others",
        "attention dropout": "training only",
        "attention +": "the sum: the edit enters the stream",
        "feed-forward norm": "each token on its own",
        "feed-forward": "each token on its own",
        "feed-forward dropout": "training only",
        "feed-forward +": "the sum",
    }
    for part, note in notes.items():
        ax.text(x + 0.95, parts[part][1], note, va="center", color=BLACK)
    return fig


#: Three models and the place of their norms, as in the book's table of models.
MODELS = {"GPT-2": "pre", "OLMo 2": "after_branch", "Gemma 3": "sandwich"}


def named_blocks() -> Figure:
    """One sublayer of each of :data:`MODELS`, from the bottom up, side by side."""
    step = 1.7
    fig, ax = canvas(step * len(MODELS) + 0.2, 4.5)
    for index, (name, placement) in enumerate(MODELS.items()):
        x = 1.1 + step * index
        ax.text(x, 4.3, name, ha="center", va="center", fontsize=13, weight="bold")
        ax.text(x, 0.2, "$x$", ha="center", va="center", fontsize=14)
        (_, top), _ = _tower(ax, (x, 0.38), ("$F$",), placement, side=-1, width=0.95)
        arrow(ax, (x, top), (x, top + 0.35))
        ax.text(x, top + 0.5, "$y$", ha="center", va="center", fontsize=14)
    return fig


def encoder_decoder(placement: str = "post") -> Figure:
    """An encoder block beside a decoder block, from the bottom up, and the arrow of the cross-attention."""
    fig, ax = canvas(6.4, 7.75)
    left, right, foot = 1.5, 4.6, 0.45
    (_, end), _ = _tower(ax, (left, foot), ("attention", "feed-forward"), placement, side=-1)
    (_, top), parts = _tower(
        ax, (right, foot), ("masked attention", "cross-attention", "feed-forward"), placement, side=1
    )
    for x, name in ((left, "source"), (right, "target")):
        ax.text(x, 0.25, name, ha="center", va="center")
    arrow(ax, (right, top), (right, top + 0.35))
    ax.text(right, top + 0.5, "$y$", ha="center", va="center", fontsize=14)
    between, corner = (left + right) / 2 + 0.1, 0.25
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
    fig, ax = canvas(7.4, 4.6)
    side = 0.26
    for line, name in ((3.2, "add"), (0.75, "concatenate")):
        ax.text(0.1, line + 1.15, name, fontsize=13, weight="bold", va="center")
        features(ax, (0.5, line), 4, GREEN, side)
        arrow(ax, (0.75, line), (1.9, line))
        ax.plot(1.1, line, marker="o", color=BLACK, markersize=5)
        box(ax, (2.4, line), "$F$")
        arrow(ax, (2.9, line), (3.55, line), BLUE)
        features(ax, (3.8, line), 4, BLUE, side)
    skip(ax, (1.1, 3.2), (4.7, 3.2), height=0.75)
    arrow(ax, (4.05, 3.2), (4.7 - PLUS_RADIUS, 3.2), BLUE)
    plus(ax, (4.7, 3.2))
    arrow(ax, (4.7 + PLUS_RADIUS, 3.2), (5.75, 3.2))
    features(ax, (6.0, 3.2), 4, BLACK, side)
    ax.text(6.3, 3.2, "4 features", va="center")
    over = 0.75 + 3 * side
    ax.plot([1.1, 1.1], [0.75, over], color=GREEN, lw=2)
    arrow(ax, (1.1, over), (5.75, over), GREEN)
    arrow(ax, (4.05, 0.75), (5.75, 0.75), BLUE)
    features(ax, (6.0, 0.75), 4, BLUE, side)
    features(ax, (6.0, 0.75 + 4 * side), 4, GREEN, side)
    ax.text(6.3, 0.75 + 2 * side, "8 features", va="center")
    return fig


def features(ax: Axes, centre: Point, count: int, color: str, side: float) -> None:
    """A column of squares: the features of one token."""
    x, y = centre[0] - side / 2, centre[1] - count * side / 2
    for row in range(count):
        ax.add_patch(Rectangle((x, y + row * side), side, side, facecolor="white", edgecolor=color, lw=2))


def gradient_routes(sublayers: int = 3) -> Figure:
    """The gradient's way back, from right to left: past the norms in Pre-LN, through every norm in Post-LN."""
    step = 2.2
    fig, ax = canvas(step * sublayers + 1.0, 3.9)
    for line, name in ((3.0, "Post-LN"), (1.2, "Pre-LN")):
        ax.text(0.1, line + 0.55, name, fontsize=13, weight="bold", va="center")
        ax.text(step * sublayers + 0.8, line, "$dx_L$", ha="center", va="center", fontsize=14)
        ax.text(0.25, line, "$dx_0$", ha="center", va="center", fontsize=14)
        right = step * sublayers + 0.5
        for index in reversed(range(sublayers)):
            add = 1.35 + step * index + (0.3 if name == "Pre-LN" else 0.0)
            fork, below = add - 0.75, line - 0.8
            if name == "Post-LN":
                norm = add + 0.75
                arrow(ax, (right, line), (norm + 0.375, line), GREEN)
                box(ax, (norm, line), "norm", ORANGE, 0.75)
                right = norm - 0.375
            arrow(ax, (right, line), (add + PLUS_RADIUS, line), GREEN)
            plus(ax, (add, line))
            right = add - PLUS_RADIUS
            if name == "Pre-LN":
                fork -= 0.8
                arrow(ax, (add, line - PLUS_RADIUS), (add, below + BOX_HEIGHT / 2), BLUE)
                box(ax, (add, below), "$F$", BLUE, 0.5)
                arrow(ax, (add - 0.25, below), (add - 0.45, below), BLUE)
                box(ax, (add - 0.83, below), "norm", ORANGE, 0.75)
                arrow(ax, (add - 0.83, below + BOX_HEIGHT / 2), (fork + 0.72, line - 0.03), BLUE)
                ax.plot(fork + 0.72, line, marker="o", color=BLACK, markersize=5)
            else:
                arrow(ax, (add, line - PLUS_RADIUS), (add, below + BOX_HEIGHT / 2), BLUE)
                box(ax, (add, below), "$F$", BLUE, 0.5)
                ax.plot([add - 0.25, fork, fork], [below, below, below + 0.4], color=BLUE, lw=2)
                arrow(ax, (fork, below + 0.35), (fork, line - 0.03), BLUE)
                ax.plot(fork, line, marker="o", color=BLACK, markersize=5)
        arrow(ax, (right, line), (0.5, line), GREEN)
    return fig
