"""Published blocks: they load, and what a loader gets wrong shows in the output."""

from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from subnorm.torch import LayerNorm, RMSNorm, TransformerBlock
from subnorm_lab.chapters.placements_one_by_one import bert_block
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


def bert_weights(weights, i):
    return bert_block(weights, f"encoder.layer.{i}.").items()


def gpt2_weights(weights, i):
    """The weights of a block of GPT-2, which stores its matrices transposed, by the names of our block."""
    renamed = {
        "self_attn.in_proj_": "attn.c_attn.",
        "self_attn.out_proj.": "attn.c_proj.",
        "norm1.": "ln_1.",
        "feed_forward.linear1.": "mlp.c_fc.",
        "feed_forward.linear2.": "mlp.c_proj.",
        "norm2.": "ln_2.",
    }
    for ours, theirs in renamed.items():
        for kind in ("weight", "bias"):
            yield f"{ours}{kind}", weights[f"h.{i}.{theirs}{kind}"].t()


IN_BLOCKS = {
    "BERT": (bert_weights, {"placement": "post", "eps": 1e-12, "activation": F.gelu}),
    "GPT-2": (gpt2_weights, {"activation": published.tanh_gelu}),
}


@torch.no_grad()
def gap_of_blocks(name, **changed):
    """How far the course's ready-made blocks, with a family's weights, are from what the library computed."""
    model, (named, settings) = published.recorded(name), IN_BLOCKS[name]
    x, mask = model.x, torch.ones(published.TOKENS, published.TOKENS, dtype=torch.bool)
    for i in range(published.BLOCKS):
        block = TransformerBlock(published.D, published.HEADS, published.D_FF, **{**settings, **changed}).double()
        block.load_state_dict(dict(named(model.weights, i)))
        x = block(x, mask if name == "BERT" else mask.tril())
    if name == "GPT-2":
        x = F.layer_norm(x, x.shape[-1:], model.weights["ln_f.weight"], model.weights["ln_f.bias"])
    return published.distance(x, model.y)


@pytest.mark.parametrize("name", IN_BLOCKS)
def test_a_family_loads_into_the_transformer_block(name):
    assert gap_of_blocks(name) < 1e-12
    assert gap_of_blocks(name, activation=torch.relu) > 1e-2
    assert gap_of_blocks(name, eps=1e-5 if name == "BERT" else 1e-6) > 1e-7
