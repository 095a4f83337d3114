"""Measure the norms of the model classes of Hugging Face's transformers, for the table "What does model X use?".

    python -m tools.ports

writes ``book/ports.json``. It needs transformers, which the course does not install: run it in an environment of its
own. Every class is built from its default configuration, without memory for its weights. Then its norms are called: a
row far smaller than the root of eps shows the eps, and the bits in bfloat16 show the order of gain and cast.
"""

import copy
import json

import torch
from torch import nn

from tools.checkout import ROOT

RECORD = ROOT / "book/ports.json"
MODELS = ROOT / "book/models.json"
#: a norm inside one of these is not one of the stream's
INSIDE = {"attn", "attention", "self_attn", "linear_attn", "mixer", "mamba", "indexer"}
#: a default that the class of the model cannot be built with
REPLACED = {"NemotronConfig": {"num_key_value_heads": 8}}
ORDERS = {"after": "gain after the cast", "fp32": "gain in fp32, then the cast"}


def take():
    """The norms of every class that the table names."""
    import transformers  # type: ignore[import-not-found]

    names = sorted({name for row in json.loads(MODELS.read_text("utf-8")) for name in row["ports"]})
    return {
        "taken_by": "python -m tools.ports",
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "classes": {name: measured(name) for name in names},
    }


def measured(name):
    """The eps of the norms on the stream, and the order of their casts."""
    import transformers  # type: ignore[import-not-found]

    configuration = getattr(transformers, name)(**REPLACED.get(name, {}))
    with torch.device("meta"):
        model = transformers.AutoModel.from_config(configuration)
    found: dict[str, set[str]] = {"parameters": set(), "eps": set(), "cast": set()}
    for path, module in model.named_modules():
        if "Norm" in type(module).__name__ and not INSIDE & set(path.split(".")[:-1]):
            norm = copy.deepcopy(module).to_empty(device="cpu")
            found["parameters"].add(parameters_of(norm))
            found["eps"].add(f"{eps_of(norm):g}".replace("e-0", "e-"))
            found["cast"].add(cast_of(norm))
    ordered = {key: sorted(values) for key, values in found.items()}
    return {**ordered, "eps": sorted(found["eps"], key=float, reverse=True)}


def parameters_of(norm):
    """With the stored weight at 0, a gain of 1 + w lets the row through."""
    with torch.no_grad():
        for parameter in norm.parameters():
            parameter.zero_()
        through = bool(call(norm, torch.randn(1, width(norm))).any())
    names = {"weight": "gain 1+w" if through else "gain", "bias": "bias"}
    return ", ".join(names[name] for name, _ in norm.named_parameters()) or "none"


def eps_of(norm):
    """From what a row of size 1e-8 becomes, beside one of size 1."""
    with torch.no_grad():
        for parameter in norm.parameters():
            parameter.fill_(1.0)
        if getattr(norm, "bias", None) is not None:
            norm.bias.zero_()
        row = torch.ones(width(norm))
        row[1::2] = -1
        small, large = (entry(norm, size * row) for size in (1e-8, 1.0))
    ratio = (large / small) ** 2  # (1e-16 + eps) / (1e-16 * (1 + eps))
    return float(f"{1e-16 * (ratio - 1) / (1 - 1e-16 * ratio):.5g}")


def entry(norm, row):
    return call(norm, row[None])[0, 0].double().item()


def cast_of(norm):
    """By the bits of a norm in bfloat16: which of the orders, with which gain, gives them all."""
    if isinstance(norm, nn.LayerNorm):
        return "library call"
    eps = eps_of(norm)
    norm = norm.to(torch.bfloat16)
    weight = getattr(norm, "weight", None)
    if weight is None:
        return "no gain"
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        weight.copy_(torch.randn(weight.shape, generator=generator))
        x = torch.randn(16, width(norm), generator=generator).bfloat16()
        y = call(norm, x)
    orders = {
        order
        for centred in (False, True)
        for more in (0, 1)
        for order, candidate in both(x, weight, eps, more, centred).items()
        if torch.equal(candidate, y)
    }
    return ORDERS[orders.pop()] if len(orders) == 1 else "other"


def both(x, weight, eps, more, centred):
    wide, gain = x.float(), weight.float() + more
    if centred:
        wide = wide - wide.mean(-1, keepdim=True)
    unit = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return {"fp32": (gain * unit).bfloat16(), "after": gain.bfloat16() * unit.bfloat16()}


def width(norm):
    weight = getattr(norm, "weight", None)
    return weight.numel() if weight is not None else getattr(norm, "normalized_shape", (64,))[-1]


def call(norm, rows):
    """Apply a norm to rows, also one that wants the channels first."""
    if getattr(norm, "data_format", "") == "channels_first":
        return norm(rows[..., None, None])[..., 0, 0]
    return norm(rows)


if __name__ == "__main__":
    RECORD.write_text(json.dumps(take(), indent=1) + "\n", "utf-8")
