import numpy as np
import pytest
import torch

from subnorm_lab.experiments.equivalence import (
    centre_writers,
    mean_gradients,
    mean_share,
    random_model,
    swap_norms,
    tie_head,
    untie_head,
    writers,
)
from subnorm_lab.experiments.language_model import loss


@pytest.fixture
def tokens():
    return torch.randint(0, 50, (2, 7), generator=torch.Generator().manual_seed(3))


def difference(one, other, tokens):
    with torch.no_grad():
        return float((one(tokens) - other(tokens)).abs().max())


@pytest.mark.parametrize("seed", range(3))
def test_centring_and_swapping_changes_nothing(seed, tokens):
    layer = random_model(seed=seed)
    assert difference(layer, centre_writers(layer), tokens) < 1e-12
    assert difference(layer, swap_norms(centre_writers(layer)), tokens) < 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_a_tied_head_must_be_untied_before_its_embedding_is_centred(seed, tokens):
    tied = tie_head(random_model(seed=seed))
    untied = untie_head(tied)
    assert tied.head.weight is tied.tokens
    assert untied.head.weight is not untied.tokens
    assert difference(tied, untied, tokens) == 0
    assert difference(tied, swap_norms(centre_writers(tied)), tokens) > 0.1
    assert difference(tied, swap_norms(centre_writers(untied)), tokens) < 1e-12


def test_swapping_alone_changes_the_function(tokens):
    layer = random_model()
    assert difference(layer, swap_norms(layer), tokens) > 0.1


def test_swapping_again_changes_nothing(tokens):
    once = swap_norms(random_model())
    assert difference(once, swap_norms(once), tokens) == 0


WRITERS = ["tokens", "positions"] + [
    f"{sublayer} {block}, {part}"
    for block in range(4)
    for sublayer in ("attention", "feed-forward")
    for part in ("weight", "bias")
]


def test_the_writers_by_name():
    assert [name for name, _, _ in writers(random_model())] == WRITERS


@pytest.mark.parametrize("name", [*WRITERS[:2], *WRITERS[6:10]])
def test_every_writer_must_be_centred(name, tokens):
    """The check can fail: give one writer its mean back."""
    layer = random_model()
    centred = centre_writers(layer)
    with torch.no_grad():
        next(parameter for one, parameter, _ in writers(centred) if one == name).add_(0.1)
    assert difference(layer, centred, tokens) < 1e-12  # LayerNorm does not mind
    assert difference(layer, swap_norms(centred), tokens) > 1e-3  # RMSNorm does


def test_the_stream_of_a_centred_stack_has_no_mean(tokens):
    with torch.no_grad():
        before = [mean_share(x.numpy()).mean() for x in random_model().states(tokens)]
        after = [mean_share(x.numpy()).max() for x in centre_writers(random_model()).states(tokens)]
    assert len(before) == len(after) == 5
    assert min(before) > 1e-3
    assert max(after) < 1e-28


def test_the_originals_are_left_alone(tokens):
    layer, untouched = random_model(), random_model()
    centre_writers(layer)
    swap_norms(layer)
    assert layer.state_dict().keys() == untouched.state_dict().keys()
    assert difference(layer, untouched, tokens) == 0


def test_swapped_stack_has_the_parameters_of_an_rms_stack():
    swapped = {name: p.shape for name, p in swap_norms(random_model()).named_parameters()}
    assert swapped == {name: p.shape for name, p in random_model("rms").named_parameters()}


def test_no_gradient_reaches_a_mean_through_layer_norm_and_some_does_through_rms_norm(tokens):
    parts = {}
    for norm in ("layer", "rms"):
        model = random_model(norm)
        loss(model, tokens, tokens.flip(0)).backward()
        parts[norm] = mean_gradients(model)
    assert list(parts["layer"]) == WRITERS
    assert max(parts["layer"].values()) < 1e-12
    assert min(parts["rms"].values()) > 1e-3
    assert max(parts["rms"].values()) <= 1


def test_mean_gradients_of_known_gradients():
    model = random_model(num_blocks=1)
    for _, parameter, axis in writers(model):
        parameter.grad = torch.ones_like(parameter)  # all of it is mean
        parameter.grad.select(axis, 0).neg_()  # but for one feature: mean 1 - 2/d
    assert list(mean_gradients(model).values()) == pytest.approx([1 - 2 / 32] * 6)


def test_mean_share_closed_forms():
    assert mean_share(np.array([2.0, 4.0, 6.0, 12.0])) == pytest.approx(36 / 50)
    assert mean_share(np.array([[1.0, -1.0], [3.0, 3.0]])) == pytest.approx([0, 1])
    x = np.random.default_rng(0).normal(size=(4000, 16))
    assert mean_share(x).mean() == pytest.approx(1 / 16, rel=0.05)
