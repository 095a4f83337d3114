"""Table 1 of the LayerNorm paper: every cell is as published, and each change is the one in the table."""

import numpy as np
import pytest

from subnorm_lab.experiments.invariances import CHANGES, PUBLISHED, changes, invariance_table

SEEDS = range(5)


@pytest.mark.parametrize("norm", PUBLISHED)
@pytest.mark.parametrize("column", range(len(CHANGES)), ids=CHANGES)
def test_every_cell_is_as_published(norm: str, column: int) -> None:
    gaps = [invariance_table(seed)[norm][column] for seed in SEEDS]
    if PUBLISHED[norm][column]:
        assert max(gaps) < 1e-9
    else:
        assert min(gaps) > 1e-2


def test_each_change_touches_what_it_names_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    h, weight = rng.standard_normal((6, 4)), rng.standard_normal((5, 4))
    for name, (new_h, new_weight) in changes(h, weight, rng).items():
        data_change = name.startswith(("data set", "one example"))
        assert np.array_equal(new_h, h) != data_change
        assert np.array_equal(new_weight, weight) == data_change


def test_one_unit_and_one_example_are_single_rows() -> None:
    rng = np.random.default_rng(0)
    h, weight = rng.standard_normal((6, 4)), rng.standard_normal((5, 4))
    changed = changes(h, weight, rng)
    assert (changed["weight vector scaled"][1] != weight).any(axis=1).sum() == 1
    assert (changed["one example scaled"][0] != h).any(axis=1).sum() == 1
