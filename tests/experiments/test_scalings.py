"""The depth-dependent factors against published numbers, and against their purpose."""

import numpy as np
import pytest

from subnorm.experiments import deepnorm, scalings
from subnorm.experiments.signal import gain


@pytest.mark.parametrize(
    ("blocks", "factor", "std"),
    [(12, 0.20412, 0.004082), (24, 0.14434, 0.002887), (36, 0.11785, 0.002357), (48, 0.10206, 0.002041)],
)
def test_gpt2(blocks: int, factor: float, std: float) -> None:
    assert scalings.gpt2(blocks) == pytest.approx(factor, abs=5e-6)
    assert 0.02 * scalings.gpt2(blocks) == pytest.approx(std, abs=5e-7)


@pytest.mark.parametrize(
    ("blocks", "alpha", "beta"),
    [
        (6, 1.8612, 0.3799),
        (12, 2.2134, 0.3195),
        (18, 2.4495, 0.2887),
        (24, 2.6321, 0.2686),
        (100, 3.7606, 0.1880),
        (1000, 6.6874, 0.1057),
    ],
)
def test_deep_norm_of_one_stack(blocks: int, alpha: float, beta: float) -> None:
    assert deepnorm.constants(blocks) == pytest.approx((alpha, beta), abs=5e-5)


def test_deep_norm_of_an_encoder_with_a_decoder() -> None:
    encoder, decoder = scalings.deep_norm_encoder_decoder(6, 6)
    assert encoder == pytest.approx((1.4179, 0.4970), abs=5e-5)
    assert decoder == pytest.approx((2.0598, 0.3433), abs=5e-5)


def test_in_deep_norm_the_encoder_counts_four_times_as_often_and_the_decoder_goes_by_itself() -> None:
    (alpha, _), decoder = scalings.deep_norm_encoder_decoder(6, 6)
    assert scalings.deep_norm_encoder_decoder(12, 6)[0][0] == pytest.approx(2 ** (4 / 16) * alpha)
    assert scalings.deep_norm_encoder_decoder(6, 12)[0][0] == pytest.approx(2 ** (1 / 16) * alpha)
    assert scalings.deep_norm_encoder_decoder(12, 6)[1] == decoder


@pytest.mark.parametrize(("blocks", "encoder", "decoder"), [(6, 0.4281, 0.3689), (12, 0.3600, 0.3102)])
def test_t_fixup(blocks: int, encoder: float, decoder: float) -> None:
    assert scalings.t_fixup(blocks) == pytest.approx((encoder, decoder), abs=5e-5)


@pytest.mark.parametrize(("branches", "factor"), [(12, 0.2887), (50, 0.1414)])
def test_fixup_of_two_layers_is_one_over_root_l(branches: int, factor: float) -> None:
    assert scalings.fixup(branches) == pytest.approx(factor, abs=5e-5)
    assert scalings.fixup(branches) == pytest.approx(branches**-0.5)


def test_fixup_scales_all_layers_but_the_last_of_a_branch_together_by_one_over_root_l() -> None:
    for layers in (2, 3, 5):
        assert scalings.fixup(64, layers) ** (layers - 1) == pytest.approx(1 / 8)


@pytest.mark.parametrize(("blocks", "start"), [(12, 0.1), (18, 0.1), (24, 1e-5), (36, 1e-6), (48, 1e-6)])
def test_layer_scale(blocks: int, start: float) -> None:
    assert scalings.layer_scale(blocks) == start


def test_as_many_branches_as_you_like_scaled_so_add_up_to_one() -> None:
    # 2 L branches of gain g, their outputs divided by sqrt(2 L), put 2 L g / (2 L) = g on the stream
    written = [2 * blocks * gain("he") * scalings.gpt2(blocks) ** 2 for blocks in (1, 12, 100)]
    np.testing.assert_allclose(written, gain("he"), rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "bad"),
    [
        (scalings.gpt2, (0,)),
        (scalings.deep_norm_encoder_decoder, (0, 6)),
        (scalings.deep_norm_encoder_decoder, (6, 1.5)),
        (scalings.t_fixup, (-1,)),
        (scalings.fixup, (0, 2)),
        (scalings.fixup, (8, 1)),
        (scalings.layer_scale, (2.5,)),
    ],
)
def test_bad_depth_is_named(function, bad: tuple[float, ...]) -> None:
    with pytest.raises((ValueError, TypeError), match="got"):
        function(*bad)
