"""The products in a fixed order are the same product, and only their rows are free of the batch."""

import pytest
import torch

from subnorm_lab.experiments import fixed_order


@pytest.mark.parametrize("rows", [1, 3, 4, 7])
@pytest.mark.parametrize("product", fixed_order.PRODUCTS.values())
def test_every_product_is_the_product(product, rows):
    x, W = (one.double() for one in fixed_order.arrays(d=8))
    torch.testing.assert_close(product(x[:rows], W), x[:rows] @ W)


def test_tiles_have_one_shape(monkeypatch):
    shapes = set()

    class Seen(torch.Tensor):
        def __rmatmul__(self, x):
            shapes.add(tuple(x.shape))
            return x @ self.as_subclass(torch.Tensor)

    x, W = fixed_order.arrays(d=8)
    for rows in (1, 4, 9):
        assert fixed_order.in_tiles(x[:rows], W.as_subclass(Seen), rows=4).shape == (rows, 8)
    assert shapes == {(4, 8)}


def test_the_usual_product_takes_its_own_time():
    found = fixed_order.ratios(rounds=2, d=4)
    assert found["x @ W"] == {batch: [1.0, 1.0, 1.0] for batch in fixed_order.BATCHES}
    assert all(min(quartiles) > 0 for batches in found.values() for quartiles in batches.values())
