import numpy as np
import pytest
import torch

from subnorm_lab.experiments import amplification
from subnorm_lab.experiments.deepnorm import untrained
from subnorm_lab.experiments.stack import causal_mask, random_tokens


@pytest.mark.parametrize("kind", ["pre", "post", "deepnorm"])
def test_the_change_is_in_units_of_the_step(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_one_per_cent = amplification.output_change(kind, (2,), range(2))
    monkeypatch.setattr(amplification, "STEP", 0.002)
    np.testing.assert_allclose(amplification.output_change(kind, (2,), range(2)), at_one_per_cent, rtol=0.1)


@pytest.mark.parametrize("kind", ["pre", "post", "deepnorm"])
def test_a_lower_part_is_a_stack_of_its_own(kind: str) -> None:
    change = amplification.output_change(kind, (2,), range(3, 4)).item()
    with torch.no_grad():
        generator = torch.Generator().manual_seed(3)
        x = random_tokens(generator)
        stack = untrained(kind, 2, generator)
        mask = causal_mask(x.shape[-2])
        y = stack(x, mask)
        for parameter in stack.parameters():
            if parameter.ndim == 2:
                noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
                parameter += 0.01 * parameter.std() * noise
        expected = float((stack(x, mask) - y).square().mean() / y.square().mean()) / 0.01**2
    assert change == pytest.approx(expected, rel=1e-9)


def test_shape_and_order() -> None:
    post, pre = (amplification.output_change(kind, (1, 8), range(3)) for kind in ("post", "pre"))
    assert post.shape == pre.shape == (3, 2)
    assert (post[:, 1] > post[:, 0]).all()
    assert (post[:, 1] > pre[:, 1]).all()
