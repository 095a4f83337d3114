"""Published blocks: they load, and what a loader gets wrong shows in the output."""

from dataclasses import replace
from functools import partial

import pytest
import torch.nn.functional as F

from subnorm.torch import LayerNorm, RMSNorm
from subnorm_lab.experiments import published_blocks as published
from subnorm_lab.experiments.published_blocks import FAMILIES


def gap(name):
    model = published.recorded(name)
    placement, branches = published.blocks(name, model.weights)
    return published.distance(placement(model.x, branches), model.y)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_computes_what_the_library_did(name):
    assert gap(name) < 1e-6


def with_attention(family, **changed):
    """The sublayers of LLaMA or of Gemma 2, their attention called with other settings."""

    def sublayers(weights, block):
        names = (block + name for name in published.MATRICES)
        return [published.attention(weights, *names, **changed), family(weights, block)[1]]

    return sublayers


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("BERT", {"norm": LayerNorm}),  # another eps
        ("LLaMA", {"norm": RMSNorm}),
        ("OLMo 2", {"norm": partial(RMSNorm, eps=1e-6)}),
        ("GPT-2", {"norms": ("ln_2", "ln_1")}),
        ("Gemma 2", {"zero_centred": False}),
        ("Gemma 2", {"sublayers": with_attention(published.gemma2, turn=published.turn_halves)}),  # no cap
        ("LLaMA", {"sublayers": with_attention(published.llama, turn=published.turn_pairs)}),
        ("LLaMA", {"sublayers": with_attention(published.llama, turn=published.turn_halves, causal=False)}),
    ],
)
def test_a_loaders_mistake_shows(name, mistake, monkeypatch):
    monkeypatch.setitem(FAMILIES, name, replace(FAMILIES[name], **mistake))
    assert gap(name) > 1e-5


def test_the_exact_gelu_is_not_gpt2s(monkeypatch):
    monkeypatch.setattr(published, "tanh_gelu", F.gelu)
    assert gap("GPT-2") > 1e-5
