"""Chapter 02, Residual connections, and its deep dives: what their turns promise."""

from helpers.turns import turned


def gradients(printed):
    """{wiring: norm} as the cell printed them."""
    return {wiring: float(norm) for wiring, norm in map(str.split, printed.splitlines())}


def test_the_plain_gradient_vanishes_with_depth_and_the_residual_one_grows():
    at = {depth: gradients(run.printed) for depth, run in turned("02-residual-connections", "depth").items()}
    assert 1 > at["8"]["plain"] > 1e4 * at["32"]["plain"]
    assert at["128"]["plain"] < 1e-40
    assert 1 < at["8"]["residual"] < at["32"]["residual"] / 2 < at["128"]["residual"] / 100
