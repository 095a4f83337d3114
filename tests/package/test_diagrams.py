"""The diagrams of blocks: their parts are in the order of the placement, and inside the picture."""

from collections.abc import Iterator

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from subnorm_lab import diagrams


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    mpl.use("Agg")
    yield
    plt.close("all")


def column(ax: Axes, left: float, right: float) -> list[str]:
    """The parts between two x coordinates, from the bottom up; a circle is a plus."""
    words = [(text.get_position(), text.get_text()) for text in ax.texts if text.get_text()]
    sums = [(patch.center, "+") for patch in ax.patches if isinstance(patch, Circle)]
    return [what for (x, _), what in sorted(words + sums, key=lambda part: part[0][1]) if left < x < right]


def everything_fits(fig: Figure) -> None:
    (ax,) = fig.axes
    (width, height) = fig.get_size_inches()
    for text in ax.texts:
        x, y = getattr(text, "xy", text.get_position())
        assert 0 < x < width
        assert 0 < y < height


def test_an_assembled_block_is_two_pre_ln_sublayers_with_dropout_on_the_branch() -> None:
    fig = diagrams.assembled_block()
    everything_fits(fig)
    parts = ["norm", "attention", "dropout", "+", "norm", "feed-forward", "dropout", "+"]
    assert column(fig.axes[0], 1.0, 1.2) == ["$x$", *parts, "$y$"]


def test_each_named_model_has_its_norms_in_their_places() -> None:
    fig = diagrams.named_blocks()
    everything_fits(fig)
    parts = {
        "pre": ["norm", "$F$", "+"],
        "after_branch": ["$F$", "norm", "+"],
        "sandwich": ["norm", "$F$", "norm", "+"],
    }
    for index, (name, placement) in enumerate(diagrams.MODELS.items()):
        x = 0.85 + 1.4 * index
        assert column(fig.axes[0], x - 0.1, x + 0.1) == ["$x$", *parts[placement], "$y$", name]


@pytest.mark.parametrize("upright", [False, True])
def test_an_all_reduce_gives_both_processes_the_sum_of_their_squares(upright: bool) -> None:
    fig = diagrams.all_reduce(upright=upright)
    everything_fits(fig)
    words = [text.get_text() for text in fig.axes[0].texts]
    assert {"4 + 16 = 20", "36 + 144 = 180", "20", "180", "0.28", "0.57", "0.85", "1.70"} <= set(words)
    assert words.count("200") == words.count("÷ √(200 / 4)") == 2


def test_the_blocks_for_a_phone_have_their_parts_in_the_order_of_the_placement() -> None:
    fig = diagrams.placements_upright()
    everything_fits(fig)
    attention, feed_forward = "attention", "feed-forward"
    post = [attention, "+", "norm", feed_forward, "+", "norm"]
    assert column(fig.axes[0], 1.1, 1.3) == ["$x$", *post, "$y$", "Post-LN"]
    pre = ["norm", attention, "+", "norm", feed_forward, "+"]
    assert column(fig.axes[0], 3.2, 3.5) == ["$x$", *pre, "$y$", "Pre-LN"]


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_encoder_and_decoder_have_a_norm_for_each_sublayer(placement: str) -> None:
    fig = diagrams.encoder_decoder(placement)
    everything_fits(fig)

    def stack(*sublayers: str) -> list[str]:
        pre, post = (["norm"], []) if placement == "pre" else ([], ["norm"])
        return [part for sublayer in sublayers for part in (*pre, sublayer, "+", *post)]

    encoder, decoder = column(fig.axes[0], 0.9, 1.2), column(fig.axes[0], 3.1, 3.4)
    assert encoder == ["source", *stack("attention", "feed-forward"), "memory: keys and values"]
    assert decoder == ["target", *stack("masked attention", "cross-attention", "feed-forward"), "$y$"]
