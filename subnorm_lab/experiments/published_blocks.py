"""Blocks of published models with their weights: what the transformers library computes, in the course's placements.

Six families, two blocks of each, tiny and with random weights. The library that computes their outputs is not a
requirement of the course, so these are a record:

    python -m subnorm_lab.experiments.published_blocks

writes ``records/published_blocks.json`` beside this file; it needs ``pip install transformers==5.24.0``. Deep dive 07a
loads the weights and compares the outputs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from subnorm.torch import STACK_PLACEMENTS, LayerNorm, Placement, RMSNorm, rms_norm
from subnorm_lab.experiments import stored
from subnorm_lab.experiments.attention_logits import soft_cap
from subnorm_lab.stories.torch import turn_pairs

RECORD = stored.file("published_blocks")

D, HEADS, D_FF, BLOCKS, TOKENS = 8, 2, 12, 2, 5

Weights = Mapping[str, Tensor]
Branch = Callable[[Tensor], Tensor]
Sublayers = Callable[[Weights, str], list[Branch]]


@dataclass(frozen=True)
class Published:
    """Two blocks as the library has them.

    Attributes:
        weights: by the library's names.
        x: the stream before the first block, (1, T, d).
        y: the library's output: after the last block, and after the final norm if there is one.
    """

    weights: Weights
    x: Tensor
    y: Tensor


@dataclass(frozen=True)
class Family:
    """Where a family's weights belong in the course's parts.

    Attributes:
        placement, norm: a name in STACK_PLACEMENTS, and what builds its norms.
        norms: the library's names of a block's norms, in the order of ``placement.norms``.
        outer_norms: the same of ``placement.outer_norms``, which only a sandwich has.
        sublayers: of the weights and the name of a block: attention and feed-forward.
        block, final: the name of block {i}, and of the final norm; none in Post-LN.
        zero_centred: whether the library stores a gain as its distance from 1.
    """

    placement: str
    norm: Callable[[int], LayerNorm | RMSNorm]
    norms: tuple[str, ...]
    sublayers: Sublayers
    block: str = "layers.{i}."
    final: str = "norm"
    outer_norms: tuple[str, ...] = ()
    zero_centred: bool = False


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    turn: Branch = lambda part: part,
    cap: float = 0.0,
    causal: bool = True,
) -> Tensor:
    """Attention up to its last matrix; queries share keys and values if these have fewer heads.

    Args:
        q, k, v: queries, keys and values, (..., T, heads d_head), (..., T, key heads d_head).
        turn: applied to queries and keys, split into heads.
        cap: bounds the scores, cap tanh(score / cap); 0 for none.
        causal: whether a token sees only those before it, and itself.
    """
    d_head = q.shape[-1] // HEADS
    q, k, v = (part.unflatten(-1, (-1, d_head)).transpose(-2, -3) for part in (q, k, v))
    k, v = (part.repeat_interleave(HEADS // part.shape[-3], -3) for part in (turn(k), v))
    scores = turn(q) @ k.mT / d_head**0.5
    if cap:
        scores = soft_cap(scores, cap)
    if causal:
        scores = scores.masked_fill(~torch.ones_like(scores, dtype=torch.bool).tril(), -torch.inf)
    return (scores.softmax(-1) @ v).transpose(-2, -3).flatten(-2)


def turn_halves(x: Tensor) -> Tensor:
    """Rotary positions that turn features i and i + d_head / 2 together, as in LLaMA: neighbours in another order."""
    turned = turn_pairs(torch.stack(x.chunk(2, -1), -1).flatten(-2))
    return torch.cat([turned[..., ::2], turned[..., 1::2]], -1)


def tanh_gelu(x: Tensor) -> Tensor:
    """GELU in the form of GPT-2, with a tanh."""
    return F.gelu(x, approximate="tanh")


def linear(weights: Weights, name: str) -> Branch:
    """``h W^T + b``, without b where the library has none."""
    return partial(F.linear, weight=weights[f"{name}.weight"], bias=weights.get(f"{name}.bias"))


def attention(weights: Weights, names: str, out: str, **more: Any) -> Branch:
    """Attention from four matrices, whose names are ``names`` with q, k and v put in, and ``out``."""
    q, k, v = (linear(weights, names.format(part)) for part in "qkv")
    last = linear(weights, out)
    return lambda h: last(attend(q(h), k(h), v(h), **more))


def feed_forward(weights: Weights, up: str, down: str, activation: Branch) -> Branch:
    first, last = linear(weights, up), linear(weights, down)
    return lambda h: last(activation(first(h)))


def gated(weights: Weights, block: str, activation: Branch) -> Branch:
    gate, up, down = (linear(weights, f"{block}mlp.{part}_proj") for part in ("gate", "up", "down"))
    return lambda h: down(activation(gate(h)) * up(h))


MATRICES = ("self_attn.{}_proj", "self_attn.o_proj")


def bert(weights: Weights, block: str) -> list[Branch]:
    names = {"q": "query", "k": "key", "v": "value"}
    renamed = {
        f"{part}.{kind}": weights[f"{block}attention.self.{name}.{kind}"]
        for part, name in names.items()
        for kind in ("weight", "bias")
    }
    out = f"{block}attention.output.dense"
    return [
        attention({**weights, **renamed}, "{}", out, causal=False),
        feed_forward(weights, f"{block}intermediate.dense", f"{block}output.dense", F.gelu),
    ]


def gpt2(weights: Weights, block: str) -> list[Branch]:
    """Its matrices are stored transposed, and those of q, k and v side by side."""
    at = {name.removeprefix(block): w.t() for name, w in weights.items() if name.startswith(block)}
    for part, weight, bias in zip(
        "qkv", at["attn.c_attn.weight"].chunk(3), at["attn.c_attn.bias"].chunk(3), strict=True
    ):
        at |= {f"{part}.weight": weight, f"{part}.bias": bias}
    return [attention(at, "{}", "attn.c_proj"), feed_forward(at, "mlp.c_fc", "mlp.c_proj", tanh_gelu)]


def gptj(weights: Weights, block: str) -> list[Branch]:
    return [
        attention(weights, block + "attn.{}_proj", f"{block}attn.out_proj", turn=turn_pairs),
        feed_forward(weights, f"{block}mlp.fc_in", f"{block}mlp.fc_out", tanh_gelu),
    ]


def llama(weights: Weights, block: str) -> list[Branch]:
    return [attention(weights, *(block + name for name in MATRICES), turn=turn_halves), gated(weights, block, F.silu)]


def olmo2(weights: Weights, block: str) -> list[Branch]:
    """Queries and keys are normalised over their full width, before the turn."""
    q, k, v, out = (linear(weights, f"{block}self_attn.{part}_proj") for part in "qkvo")
    q_gain, k_gain = (weights[f"{block}self_attn.{part}_norm.weight"] for part in "qk")

    def attention(h: Tensor) -> Tensor:
        return out(attend(rms_norm(q(h), q_gain), rms_norm(k(h), k_gain), v(h), turn=turn_halves))

    return [attention, gated(weights, block, F.silu)]


def gemma2(weights: Weights, block: str) -> list[Branch]:
    names = (block + name for name in MATRICES)
    return [attention(weights, *names, turn=turn_halves, cap=50.0), gated(weights, block, tanh_gelu)]


FAMILIES = {
    "BERT": Family(
        "post", partial(LayerNorm, eps=1e-12), ("attention.output.LayerNorm", "output.LayerNorm"), bert,
        block="encoder.layer.{i}.", final="",
    ),
    "GPT-2": Family("pre", LayerNorm, ("ln_1", "ln_2"), gpt2, block="h.{i}.", final="ln_f"),
    "GPT-J": Family("parallel", LayerNorm, ("ln_1",), gptj, block="h.{i}.", final="ln_f"),
    "LLaMA": Family("pre", partial(RMSNorm, eps=1e-6), ("input_layernorm", "post_attention_layernorm"), llama),
    "OLMo 2": Family("after_branch", RMSNorm, ("post_attention_layernorm", "post_feedforward_layernorm"), olmo2),
    "Gemma 2": Family(
        "sandwich", partial(RMSNorm, eps=1e-6), ("input_layernorm", "pre_feedforward_layernorm"), gemma2,
        outer_norms=("post_attention_layernorm", "post_feedforward_layernorm"), zero_centred=True,
    ),
}  # fmt: skip


def blocks(name: str, weights: Weights, placement: str = "") -> tuple[Placement, list[Branch]]:
    """The blocks of a family in the course's parts: a placement with the norms' weights, and its branches.

    Args:
        name: a family.
        weights: by the library's names.
        placement: another one than the family's, to see what that changes; one with as many norms.
    """
    family = FAMILIES[name]
    built = STACK_PLACEMENTS[placement or family.placement](D, BLOCKS, norm=family.norm)  # type: ignore[call-arg]
    branches: list[Branch] = []
    gains: list[str] = []
    outer: list[str] = []
    for i in range(BLOCKS):
        block = family.block.format(i=i)
        branches += family.sublayers(weights, block)
        gains += [block + norm for norm in family.norms]
        outer += [block + norm for norm in family.outer_norms]
    modules = [*built.norms, *getattr(built, "outer_norms", []), built.final_norm]
    for module, norm in zip(modules, [*gains, *outer, family.final], strict=True):
        for kind, parameter in module.named_parameters():
            parameter.data = weights[f"{norm}.{kind}"] + family.zero_centred
    return built.requires_grad_(False), branches


def distance(y: Tensor, expected: Tensor) -> float:
    """The largest difference, over the largest entry that is expected."""
    return float((y - expected).abs().max() / expected.abs().max())


def recorded(name: str) -> Published:
    """The recorded blocks of a family, in float64."""
    record = stored.read(RECORD)["families"][name]
    weights = {key: from_lines(lines).squeeze(0) for key, lines in record["weights"].items()}
    return Published(weights, from_lines(record["x"])[None], from_lines(record["y"])[None])


def to_lines(array: Tensor) -> list[str]:
    """The rows of a matrix as text, which keeps all digits; a vector is one row."""
    return [" ".join(map(repr, row)) for row in array.reshape(-1, array.shape[-1]).tolist()]


def from_lines(lines: list[str]) -> Tensor:
    return torch.tensor([[float(number) for number in line.split()] for line in lines], dtype=torch.float64)


def take() -> stored.Record:
    """Build the models with the library, and call them."""
    import transformers  # type: ignore[import-not-found]

    sizes = {"hidden_size": D, "intermediate_size": D_FF, "num_hidden_layers": BLOCKS, "num_attention_heads": HEADS}
    older = {"n_embd": D, "n_inner": D_FF, "n_layer": BLOCKS, "n_head": HEADS}
    shared = {"num_key_value_heads": 1, "head_dim": D // HEADS, "query_pre_attn_scalar": D // HEADS}
    configs = {
        "BERT": transformers.BertConfig(**sizes),
        "GPT-2": transformers.GPT2Config(**older),
        "GPT-J": transformers.GPTJConfig(**older, rotary_dim=D // HEADS),
        "LLaMA": transformers.LlamaConfig(**sizes),
        "OLMo 2": transformers.Olmo2Config(**sizes),
        "Gemma 2": transformers.Gemma2Config(**sizes, **shared),
    }
    families = {}
    for name, config in configs.items():
        config.vocab_size, config._attn_implementation = TOKENS, "eager"
        model = transformers.AutoModel.from_config(config).double().eval()
        families[name] = measure(model, FAMILIES[name].block)
    record = {**stored.origin("python -m subnorm_lab.experiments.published_blocks"), "families": families}
    record["versions"]["transformers"] = transformers.__version__
    return record


@torch.no_grad()
def measure(model: Any, block: str) -> stored.Record:
    """Random weights for a model of the library, what its first block reads, and its output."""
    random = torch.Generator().manual_seed(0)
    for weight in model.parameters():
        start = weight.mean().round() if weight.ndim == 1 else 0  # a gain's 1
        drawn = start + 0.4 * torch.randn(weight.shape, generator=random, dtype=torch.float64)
        weight.copy_((1000 * drawn).round() / 1000)  # short numbers for the record
    read: list[Tensor] = []
    first = model.get_submodule(block.format(i=0).rstrip("."))
    first.register_forward_pre_hook(
        lambda _, given, named: read.append(given[0] if given else named["hidden_states"]), with_kwargs=True
    )
    y = model(torch.arange(TOKENS)[None]).last_hidden_state
    inside = (block.split("{")[0], "norm.", "ln_f.")
    used = {name: to_lines(weight) for name, weight in model.state_dict().items() if name.startswith(inside)}
    return {"weights": used, "x": to_lines(read[0]), "y": to_lines(y)}


if __name__ == "__main__":
    stored.write(RECORD, take())
