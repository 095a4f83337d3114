"""The closed forms against counts of real modules, and against published numbers."""

import pytest
from torch import nn

import subnorm.torch as st
from subnorm_lab.experiments import parameters
from subnorm_lab.experiments.parameters import PARTS, Sizes

SMALL = Sizes(layers=3, d_model=24, d_ff=40, vocabulary=17, positions=11)


def count(*modules: nn.Module) -> int:
    return sum(weight.numel() for module in modules for weight in module.parameters())


def linear(d_in: int, d_out: int) -> nn.Module:
    return nn.Linear(d_in, d_out, bias=False)


@pytest.mark.parametrize("num_heads", [1, 4, 8])
def test_attention_is_what_the_module_holds(num_heads: int) -> None:
    assert parameters.attention(24) == count(st.AttentionSubLayer(24, num_heads).self_attn)


def test_grouped_keys_and_values_are_narrower() -> None:
    projections = [linear(24, 24), linear(24, 8), linear(24, 8), linear(24, 24)]
    assert parameters.attention(24, d_kv=8, bias=False) == count(*projections)
    with_biases = [nn.Linear(24, 24), nn.Linear(24, 8), nn.Linear(24, 8), nn.Linear(24, 24)]
    assert parameters.attention(24, d_kv=8) == count(*with_biases)


def test_feed_forward_is_what_the_module_holds() -> None:
    assert parameters.feed_forward(24, 40) == count(st.FeedForward(24, 40))
    assert parameters.feed_forward(24, 40, gated=True) == count(linear(24, 40), linear(24, 40), linear(40, 24))


def test_a_small_gpt2_has_as_many_as_its_modules() -> None:
    blocks = nn.ModuleList(st.TransformerBlock(24, 4, 40) for _ in range(3))
    norms = [norm for block in blocks for norm in (block.norm1, block.norm2)] + [st.LayerNorm(24)]
    embeddings = [nn.Embedding(17, 24), nn.Embedding(11, 24)]
    assert parameters.gpt2(SMALL) == {
        "embeddings": count(*embeddings),
        "attention": count(*(block.self_attn for block in blocks)),
        "feed-forward": count(*(block.feed_forward for block in blocks)),
        "norms": count(*norms),
        "pooler": 0,
    }
    assert sum(parameters.gpt2(SMALL).values()) == count(blocks, norms[-1], *embeddings)


@pytest.mark.parametrize("family", [parameters.gpt2, parameters.bert, parameters.llama])
def test_every_part_is_named_and_grows_with_depth_as_it_should(family) -> None:
    one, two, three = (family(Sizes(layers, 24, 40, 17)) for layers in (1, 2, 3))
    assert tuple(one) == PARTS
    for part in PARTS:
        assert three[part] - two[part] == two[part] - one[part]
    assert one["norms"] == 3 * (two["norms"] - one["norms"]) / 2


def test_the_widths_of_llama_7b_and_llama_3_8b() -> None:
    assert parameters.gated_width(4096) == 11008
    assert parameters.gated_width(4096, multiple_of=1024, multiplier=1.3) == 14336
    assert parameters.gated_width(96) == 256  # two thirds of 4 d is a multiple already


@pytest.mark.parametrize(
    ("family", "sizes", "total", "norms"),
    [
        (parameters.gpt2, Sizes(12, 768, 3072, 50257, 1024), 124_439_808, 38_400),
        (parameters.gpt2, Sizes(24, 1024, 4096, 50257, 1024), 354_823_168, 100_352),
        (parameters.gpt2, Sizes(36, 1280, 5120, 50257, 1024), 774_030_080, 186_880),
        (parameters.gpt2, Sizes(48, 1600, 6400, 50257, 1024), 1_557_611_200, 310_400),
        (parameters.bert, Sizes(12, 768, 3072, 30522, 512), 109_482_240, 38_400),
        (parameters.llama, Sizes(32, 4096, 11008, 32000), 6_738_415_616, 266_240),
        (parameters.llama, Sizes(32, 4096, 14336, 32000, d_kv=1024), 7_241_732_096, 266_240),
        (parameters.llama, Sizes(32, 4096, 14336, 128256, d_kv=1024), 8_030_261_248, 266_240),
    ],
)
def test_published_models(family, sizes: Sizes, total: int, norms: int) -> None:
    parts = family(sizes)
    assert sum(parts.values()) == total
    assert parts["norms"] == norms
