import numpy as np
import pytest
import torch

from subnorm.experiments.equivalence import PreNormModel, centre_writers, mean_share, swap_norms


@pytest.fixture
def tokens():
    return torch.randint(0, 50, (2, 7), generator=torch.Generator().manual_seed(3))


def difference(one, other, tokens):
    with torch.no_grad():
        return float((one(tokens) - other(tokens)).abs().max())


@pytest.mark.parametrize("seed", range(3))
def test_centring_and_swapping_changes_nothing(seed, tokens):
    layer = PreNormModel("layer", seed=seed)
    assert difference(layer, centre_writers(layer), tokens) < 1e-12
    assert difference(layer, swap_norms(centre_writers(layer)), tokens) < 1e-12


def test_swapping_alone_changes_the_function(tokens):
    layer = PreNormModel("layer")
    assert difference(layer, swap_norms(layer), tokens) > 0.1


@pytest.mark.parametrize("writer", ["embedding", "out_proj", "linear2", "out_proj bias", "linear2 bias"])
def test_every_writer_must_be_centred(writer, tokens):
    """The check can fail: give one writer its mean back."""
    layer = PreNormModel("layer")
    centred = centre_writers(layer)
    block = centred.blocks[1]
    with torch.no_grad():
        {
            "embedding": centred.embedding.weight,
            "out_proj": block.self_attn.out_proj.weight,
            "linear2": block.feed_forward.linear2.weight,
            "out_proj bias": block.self_attn.out_proj.bias,
            "linear2 bias": block.feed_forward.linear2.bias,
        }[writer].add_(0.1)
    assert difference(layer, centred, tokens) < 1e-12  # LayerNorm does not mind
    assert difference(layer, swap_norms(centred), tokens) > 1e-3  # RMSNorm does


def test_the_stream_of_a_centred_stack_has_no_mean(tokens):
    with torch.no_grad():
        before = [mean_share(x.numpy()).mean() for x in PreNormModel("layer").stream(tokens)]
        after = [mean_share(x.numpy()).max() for x in centre_writers(PreNormModel("layer")).stream(tokens)]
    assert len(before) == len(after) == 5
    assert min(before) > 1e-3
    assert max(after) < 1e-28


def test_the_originals_are_left_alone(tokens):
    layer, untouched = PreNormModel("layer"), PreNormModel("layer")
    centre_writers(layer)
    swap_norms(layer)
    assert layer.state_dict().keys() == untouched.state_dict().keys()
    assert difference(layer, untouched, tokens) == 0


def test_swapped_stack_has_the_parameters_of_an_rms_stack():
    swapped = {name: p.shape for name, p in swap_norms(PreNormModel("layer")).named_parameters()}
    assert swapped == {name: p.shape for name, p in PreNormModel("rms").named_parameters()}


def test_mean_share_closed_forms():
    assert mean_share(np.array([2.0, 4.0, 6.0, 12.0])) == pytest.approx(36 / 50)
    assert mean_share(np.array([[1.0, -1.0], [3.0, 3.0]])) == pytest.approx([0, 1])
    x = np.random.default_rng(0).normal(size=(4000, 16))
    assert mean_share(x).mean() == pytest.approx(1 / 16, rel=0.05)
