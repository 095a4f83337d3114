"""The measurement of norms behind the table of models, on small models that are known."""

import json
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
        self.scale = nn.Parameter(torch.rand(WIDTH) + 0.5)
        self.norms = nn.ModuleDict({name: norm(WIDTH) for name in "abcd"[: 4 if placement == "both sides" else 2]})

    def forward(self, x):
        n = self.norms
        if self.placement == "one mixer":
            return x + self.attention(n["a"](x))
        if self.placement == "scaled":
            return self.scale * x + self.attention(n["a"](x)) + self.mlp(n["b"](x))
        if self.placement == "opened":
            x = n["b"](x)
            return x + self.attention(n["a"](x))
        if self.placement == "new sum":
            return self.attention(n["a"](x)) + self.mlp(n["b"](x))
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


def test_a_stream_times_a_constant_is_still_a_stream():
    assert models.norms_of(Model("scaled"))["placement"] == {"parallel": 3}


def test_a_layer_that_begins_with_a_norm_of_the_stream_has_a_first_norm():
    found = models.norms_of(Model("opened"))
    assert (found["placement"], found["first"]) == ({"Pre": 3}, True)


def test_a_layer_that_drops_the_stream_is_named():
    assert models.norms_of(Model("new sum"))["placement"] == {"new sum": 1, "inside the branch": 2}


def test_a_layer_with_two_attentions_is_one_layer():
    model = Model()
    for layer in model.layers:
        layer.self_attn = nn.ModuleList([nn.Sequential(nn.LayerNorm(WIDTH))] * 2)
    assert set(models.layers_of(model)) == {f"layers.{k}" for k in range(3)}


class Picture(Model):
    def forward(self, input_ids):
        x = self.embedding(input_ids)[:, :8].unflatten(1, (2, 4))
        for layer in self.layers:
            x = layer(x)
        return x


def test_the_stream_of_a_picture_is_one_stream():
    assert models.norms_of(Picture())["placement"] == {"Pre": 3}


class Looped(Model):
    def forward(self, input_ids):
        with torch.no_grad():
            x = self.layers[0](self.embedding(input_ids))
        return super().forward(input_ids) + x


def test_a_turn_of_a_loop_without_gradients_is_left_out():
    assert models.norms_of(Looped())["placement"] == {"Pre": 3}


class InverseNorm(nn.Module):
    def forward(self, x):
        return torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def test_the_reciprocal_of_a_size_is_no_norm():
    model = Model()
    for layer in model.layers:
        layer.attention = nn.Sequential(Times(), nn.Linear(WIDTH, WIDTH)).requires_grad_(False)
    found = models.norms_of(model)
    assert (found["others"], found["placement"]) == ([], {"Pre": 3})


class Times(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = InverseNorm()

    def forward(self, x):
        return x * self.norm(x)


class GroupRMSNorm(OffsetRMSNorm):
    group_size = HEAD

    def forward(self, x):
        wide = x.float().unflatten(-1, (-1, HEAD))
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (wide.flatten(-2) * (1 + self.weight.float())).to(x.dtype)


def test_a_norm_of_groups_is_found():
    assert models.norms_of(Model(norm=GroupRMSNorm))["cast"] == ["gain in fp32, then the cast"]


class ScaledFirstNorm(OffsetRMSNorm):
    def forward(self, x):
        wide = x.float() * (1 + self.weight.float())
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype)


def test_a_norm_that_scales_before_it_normalises_is_found():
    found = models.norms_of(Model(norm=ScaledFirstNorm))
    assert [found[key] for key in ("parameters", "eps", "cast")] == [["gain 1+w"], ["1e-6"], ["other"]]


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


# --- the command


class Command:
    """The command on a table of two measured rows and a read one, with classes that have been measured before."""

    def __init__(self, folder, monkeypatch):
        self.rows = {row["model"]: row for row in json.loads(models.MODELS.read_text("utf-8"))}
        self.rows = {model: self.rows[model] for model in ("GPT-2", "BERT", "nanoGPT")}
        self.facts = json.loads(models.RECORD.read_text("utf-8"))["classes"]
        self.table, self.record, self.taken = folder / "models.json", folder / "measured.json", []
        monkeypatch.setattr(models, "MODELS", self.table)
        monkeypatch.setattr(models, "RECORD", self.record)
        monkeypatch.setattr(models, "take", self.take)

    def take(self, names):
        self.taken.append(names)
        return {"transformers": "1.0", "classes": {name: self.facts[name] for name in names}}

    def __call__(self, *words):
        self.table.write_text(json.dumps(list(self.rows.values())), "utf-8")
        models.main(list(words))


@pytest.fixture
def command(tmp_path, monkeypatch):
    return Command(tmp_path, monkeypatch)


def test_rows_without_a_difference_are_counted_and_written(command, capsys):
    command()
    assert command.taken == [{"GPT2Config", "BertConfig"}]
    assert capsys.readouterr().out == "No difference in 2 rows.\n"  # the third was read
    assert json.loads(command.record.read_text("utf-8"))["classes"].keys() == {"GPT2Config", "BertConfig"}


def test_a_row_that_was_read_is_not_reported_as_measured(command, capsys):
    command("nanoGPT")
    assert command.taken == [set()]
    said = capsys.readouterr().out
    assert said == "nanoGPT has no class in transformers: it was read\nNo difference in 0 rows.\n"
    assert not command.record.exists()


def test_a_chosen_row_is_measured_alone_and_not_written(command, capsys):
    command("GPT-2")
    assert command.taken == [{"GPT2Config"}]
    assert re.search(r"^  GPT2Config of transformers 1\.0: .*LayerNorm", capsys.readouterr().out, re.MULTILINE)
    assert not command.record.exists()


@pytest.mark.parametrize("words", [[], ["BERT"]])
def test_a_difference_is_named_and_ends_in_an_error(command, capsys, words):
    command.rows["BERT"]["placement"] = "Pre"
    with pytest.raises(SystemExit) as ended:
        command(*words)
    said = capsys.readouterr().out
    assert ended.value.code == 1
    assert "BERT: placement: the row has 'Pre', the class 'Post'" in said
    assert "No difference" not in said
    assert not command.record.exists()
