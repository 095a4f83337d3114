import numpy as np
import pytest

from subnorm.experiments import amplification


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_the_change_is_in_units_of_the_step(placement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_one_per_cent = amplification.output_change(placement, (2,), range(2))
    monkeypatch.setattr(amplification, "STEP", 0.002)
    np.testing.assert_allclose(amplification.output_change(placement, (2,), range(2)), at_one_per_cent, rtol=0.1)


def test_weights_that_do_not_move_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amplification.torch, "randn", lambda shape, generator, dtype: amplification.torch.zeros(shape))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            amplification, "random_tokens", lambda generator: amplification.torch.ones(1, 4, 64).double().cumsum(-1)
        )
        assert amplification.output_change("pre", (1,), range(1)).item() == 0


def test_shape_and_order() -> None:
    post, pre = (amplification.output_change(placement, (1, 8), range(3)) for placement in ("post", "pre"))
    assert post.shape == pre.shape == (3, 2)
    assert (post[:, 1] > post[:, 0]).all()
    assert (post[:, 1] > pre[:, 1]).all()
