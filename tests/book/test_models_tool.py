"""The measurement of norms behind the table of models, on small models that are known."""

import re
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import subnorm.torch as st
from tools import models

WIDTH, HEADS, HEAD = models.WIDTH, models.HEADS, models.HEAD


def apply_rotary(q, k):
    """Found by its name, as in the files of transformers."""
    return q * 1.5, k * 1.5


class OffsetRMSNorm(st.RMSNorm):
    def __init__(self, width):
        super().__init__(width, eps=1e-6)
        nn.init.zeros_(self.weight)

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (wide * (1 + self.weight.float())).to(x.dtype)


class Branch(nn.Module):
    def __init__(self, order=None, shared=False):
        super().__init__()
        self.up, self.down, self.order = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), order
        if order:
            self.q_norm = st.RMSNorm(WIDTH if shared else HEAD)

    def forward(self, x):
        h = self.up(x)
        if self.order:
            norm = self.q_norm
            q = h if norm.weight.numel() == WIDTH else h.view(*h.shape[:-1], HEADS, HEAD)
            q = apply_rotary(norm(q), q)[0] if self.order == "before" else norm(apply_rotary(q, q)[0])
            h = q.reshape(h.shape)
        return self.down(torch.tanh(h))


class Layer(nn.Module):
    def __init__(self, placement, norm, order=None, shared=False):
        super().__init__()
        self.placement = placement
        self.attention, self.mlp = Branch(order, shared), Branch()
        self.norms = nn.ModuleDict({name: norm(WIDTH) for name in "abcd"[: 4 if placement == "both sides" else 2]})

    def forward(self, x):
        n = self.norms
        if self.placement == "one mixer":
            return x + self.attention(n["a"](x))
        if self.placement == "parallel":
            return x + self.attention(n["a"](x)) + self.mlp(n["b"](x))
        for branch, first, last in ((self.attention, "a", "c"), (self.mlp, "b", "d")):
            if self.placement == "Pre":
                x = x + branch(n[first](x))
            elif self.placement == "Post":
                x = n[first](x + branch(x))
            elif self.placement == "after the branch":
                x = x + n[first](branch(x))
            else:
                x = x + n[last](branch(n[first](x)))
        return x


class Model(nn.Module):
    main_input_name = "input_ids"
    config = SimpleNamespace(is_encoder_decoder=False)

    def __init__(self, placement="Pre", norm=nn.LayerNorm, order=None, shared=False, first=False, final=True):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(99, WIDTH)
        self.layers = nn.ModuleList(Layer(placement, norm, order, shared) for _ in range(3))
        self.first, self.final = (norm(WIDTH) if has else nn.Identity() for has in (first, final))
        self.requires_grad_(False)

    def forward(self, input_ids):
        x = self.first(self.embedding(input_ids))
        for layer in self.layers:
            x = layer(x)
        return self.final(x)


@pytest.mark.parametrize("placement", ["Pre", "Post", "after the branch", "both sides", "parallel"])
@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.RMSNorm])
def test_a_placement_is_found(placement, norm):
    assert models.norms_of(Model(placement, norm))["placement"] == {placement: 3}


def test_a_layer_of_one_mixer_is_not_parallel():
    assert models.norms_of(Model("one mixer"))["placement"] == {"Pre": 3}


def test_the_norms_before_and_after_the_layers_are_found():
    for first in (False, True):
        for final in (False, True):
            found = models.norms_of(Model(first=first, final=final))
            assert (found["first"], found["final"]) == (first, final)


def test_a_norm_is_found_as_it_is():
    plain = models.norms_of(Model(norm=lambda width: nn.LayerNorm(width, eps=1e-12)))
    assert [plain[key] for key in ("norm", "parameters", "eps")] == [["LayerNorm"], ["gain, bias"], ["1e-12"]]
    offset = models.norms_of(Model(norm=OffsetRMSNorm))
    assert [offset[key] for key in ("norm", "parameters", "eps")] == [["RMSNorm"], ["gain 1+w"], ["1e-6"]]
    assert offset["cast"] == ["gain in fp32, then the cast"]


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize(("shared", "width"), [(False, "per head"), (True, "over the full width")])
def test_a_norm_of_queries_is_found(order, shared, width):
    found = models.norms_of(Model(order=order, shared=shared))
    assert found["qk_norm"] == [f"RMSNorm {width}, {order} RoPE"]
    assert found["norm"] == ["LayerNorm"]


def test_a_model_that_is_no_row_is_named(capsys):
    with pytest.raises(SystemExit):
        models.main(["Qwen 3"])
    assert re.search(r"there is no 'Qwen 3'", capsys.readouterr().err)
