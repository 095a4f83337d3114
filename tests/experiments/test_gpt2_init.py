"""The stream of a Pre-LN stack with GPT-2's init: scaled, it ends at the same size at any depth."""

import numpy as np
import pytest

from subnorm_lab.experiments.gpt2_init import STD, written

SMALL = {"d_model": 64, "seeds": range(3)}


def test_unscaled_the_stream_grows_with_depth_and_scaled_it_does_not() -> None:
    shallow, deep = (written(blocks, False, **SMALL).mean() for blocks in (2, 8))  # type: ignore[arg-type]
    assert deep / shallow == pytest.approx(4, rel=0.1)
    shallow, deep = (written(blocks, True, **SMALL).mean() for blocks in (2, 8))  # type: ignore[arg-type]
    assert deep / shallow == pytest.approx(1, rel=0.1)


def test_the_scale_is_one_over_root_two_l() -> None:
    """One seed draws the same weights both ways. A branch's output is linear in its last matrix; a block has two."""
    plain, scaled = (written(1, scaled, d_model=64, seeds=[0]) for scaled in (False, True))
    np.testing.assert_allclose(scaled / plain, 1 / 2, rtol=0.05)


def test_one_block_writes_what_its_feed_forward_alone_would_and_a_little_attention() -> None:
    d, ff = 128, 512
    feed_forward = ff * STD**2 * (d * STD**2 / 2)  # a unit input, ReLU keeps half of the square
    attention = d * STD**2 * d * STD**2  # if one token is looked at; averaging over more makes it smaller
    extra = written(1, False, d_model=d, seeds=range(8)).mean()
    assert 0.95 * feed_forward < extra
    assert extra < feed_forward + attention


def test_what_is_written_hardly_depends_on_the_size_of_the_input_and_its_share_does() -> None:
    """A Pre-LN branch reads a normalised input. With GPT-2's embeddings the input is a small part of the end."""
    embeddings = STD**2 + 0.01**2  # of tokens and of positions
    large, small = (written(2, True, input_std=std, **SMALL) for std in (1.0, embeddings**0.5))  # type: ignore[arg-type]
    assert (np.abs(small / large - 1) < 0.4).all()
    assert (1 / (1 + large) > 0.99).all()
    assert (embeddings / (embeddings + small) < 0.5).all()


def test_bad_depth_is_named() -> None:
    with pytest.raises(ValueError, match="num_blocks must be a whole number, at least 1; got 0"):
        written(0, True)
