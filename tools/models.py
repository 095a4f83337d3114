"""Measure the norms of model classes of Hugging Face's transformers, and compare the table "What does model X use?".

    python -m tools.models Qwen3 "Gemma 2"     # compares these rows
    python -m tools.models                     # compares all rows, and writes book/measured.json

It needs requirements-models.txt, which the course does not install: run it in an environment of its own.

A class is built small and at random, without a download, and called twice. The second time its matrices and biases are
zero, so every branch returns zero: a norm that reads the stream still reads something, a norm after a branch reads
zeros, and the stream changes in a Post layer only. A row far smaller than the root of eps shows a norm's eps, a
constant row whether it subtracts the mean, and the bits in bfloat16 the order of gain and cast.
"""

import argparse
import copy
import importlib
import json
import re
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from unittest.mock import patch

import torch
from torch import nn

from tools.checkout import ROOT

MODELS, RECORD = ROOT / "book/models.json", ROOT / "book/measured.json"
ORDERS = {"after": "gain after the cast", "fp32": "gain in fp32, then the cast"}
HEADS, KV_HEADS, HEAD, WIDTH, TOKENS = 4, 2, 16, 64, 9
WIDTHS = {HEAD: "per head", HEADS * HEAD: "over the full width", KV_HEADS * HEAD: "over the full width"}
#: small sizes, each with the names that configurations have for it
SIZES = [
    (4, "num_hidden_layers num_layers n_layer n_layers encoder_layers decoder_layers num_experts n_routed_experts"),
    (4, "num_local_experts index_topk"),
    (HEADS, "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads"),
    (KV_HEADS, "num_key_value_heads index_n_heads num_experts_per_tok num_experts_per_token eos_token_id"),
    (HEAD, "head_dim d_kv rotary_dim qk_rope_head_dim v_head_dim"),
    (WIDTH, "hidden_size d_model n_embd word_embed_proj_dim embedding_size lru_width dim"),
    (96, "intermediate_size intermediate_size_mlp ffn_dim d_ff n_inner hidden_dim encoder_ffn_dim decoder_ffn_dim"),
    (96, "moe_intermediate_size shared_expert_intermediate_size"),
    *[(99, "vocab_size"), (32, "image_size index_head_dim"), (24, "q_lora_rank"), (20, "kv_lora_rank")],
    *[(8, "qk_nope_head_dim patch_size"), (1, "n_group topk_group first_k_dense_replace bos_token_id")],
    (0, "pad_token_id num_kv_shared_layers"),
]
#: what a class needs beside these
T5GEMMA = {key: size for size, keys in SIZES for key in keys.split() if key not in ("dim", "num_heads")}
MORE: dict[str, dict] = {
    "ConvNextConfig": {"hidden_sizes": [WIDTH] * 4, "image_size": 64, "patch_size": 4},
    "Gemma4TextConfig": {"global_head_dim": HEAD},
    "Glm5NextTextConfig": {"index_kpool": 2, "qk_rope_head_dim": 0},
    "GraniteMoeHybridConfig": {"layer_types": ["linear_attention", "full_attention"] * 2},
    "Inkling2TextConfig": {"layer_types": ["hybrid_sliding", "hybrid"] * 2},
    "JambaConfig": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "KimiLinearConfig": {"layer_types": ["linear_attention", "full_attention"] * 2},
    "Lfm2Config": {"layer_types": ["conv", "full_attention"] * 2},
    "LongcatFlashConfig": {"moe_topk": 2, "zero_expert_num": 0},  # these experts return what they read
    "Mamba2Config": {"num_heads": 8, "n_groups": 1},
    "Mistral4Config": {"qk_nope_head_dim": HEAD, "head_dim": 2 * HEAD},
    "Qwen4ExpTextConfig": {
        "indexer_budget": 4,
        "indexer_compress_ratio": 2,
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 16,
    },
    "SamVisionConfig": {"initializer_range": 0.02},
    "Step3p7TextConfig": {"sliding_window": 4},
    "Swinv2Config": {"depths": [2, 2], "num_heads": [4, 8], "embed_dim": WIDTH, "hidden_size": 2 * WIDTH},
    "T5GemmaConfig": {"encoder": T5GEMMA, "decoder": T5GEMMA},
    "WhisperConfig": {"max_source_positions": 20},
    "ZayaConfig": {"num_experts_per_tok": 1},
}
#: what the table writes for a measured value that it does not show as it is; the last three leave the placement to read
WORDS = {
    "none": "without|none",
    "no gain": ".",
    "several streams": "streams",
    "new sum": "new sum",
    "inside the branch": "other",
}
#: how the table says that the first layer reads what a norm returns
FIRST = "after the embedding|before the first layer|in the stem"


@dataclass
class Call:
    """A module that ran: what it read and returned, and the ticks of the clock at its start and end."""

    path: str
    module: nn.Module
    start: int
    end: int
    read: torch.Tensor
    returned: torch.Tensor
    kept: tuple  # the two tensors themselves: a copy has another storage
    probe: torch.Tensor

    def holds(self, other):
        return self.start < other.start and other.end < self.end


def take(names):
    """The norms of the classes, such as `Qwen3Config` or `OPTConfig(do_layer_norm_before=False)`."""
    import transformers  # type: ignore[import-not-found]

    transformers.logging.set_verbosity_error()
    return {
        "taken_by": "python -m tools.models",
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "classes": {name: norms_of(build_model(name)) for name in sorted(names)},
    }


def norms_of(model):
    """What the norms of a model are, and where."""
    random = trace_calls(model)
    layers = tuple(f"{path}." for path in layers_of(model))
    for path, parameter in model.named_parameters():
        norm, bias = is_norm(model.get_submodule(path.rpartition(".")[0])), path.endswith("bias")
        if norm and not bias:
            parameter.uniform_(0.5, 1.5)  # else a second Post norm changes nothing
        elif norm or (path.startswith(layers) and (bias or parameter.dim() > 1)):
            parameter.zero_()
    return describe_calls(random, trace_calls(model, probed=True))


def build_model(name):
    import transformers  # type: ignore[import-not-found]

    name, _, settings = name.partition("(")
    known = getattr(transformers, name)().to_dict()
    small = {key: size for size, keys in SIZES for key in keys.split() if key in known}
    if "kv_lora_rank" in known:  # latent attention has as many keys as queries
        small["num_key_value_heads"] = HEADS
    small |= MORE.get(name, {}) | {key: value == "True" for key, value in re.findall(r"(\w+)=(\w+)", settings)}
    torch.manual_seed(0)
    config = getattr(transformers, name)(**small)
    if type(config) not in transformers.MODEL_MAPPING:  # the text model of another
        file = importlib.import_module(type(config).__module__.replace(".configuration_", ".modeling_"))
        transformers.AutoModel.register(type(config), getattr(file, name.replace("Config", "Model")), exist_ok=True)
    model = transformers.AutoModel.from_config(config, attn_implementation="eager")
    model.config.use_cache = False
    return model.eval().requires_grad_(False)


def sample_inputs(model):
    """A short text, a small picture or a little sound, whatever the model reads."""
    settings, generator = model.config, torch.Generator().manual_seed(1)
    tokens = torch.randint(3, 99, (1, TOKENS), generator=generator)
    shapes = {
        "pixel_values": lambda: (1, settings.num_channels, settings.image_size, settings.image_size),
        "input_features": lambda: (1, settings.num_mel_bins, 2 * settings.max_source_positions),
        "input_values": lambda: (1, 4000),
    }
    kind = model.main_input_name
    read = torch.randn(shapes[kind](), generator=generator) if kind in shapes else tokens
    return {kind: read} | ({"decoder_input_ids": tokens} if settings.is_encoder_decoder else {})


def is_norm(module):
    return "Norm" in type(module).__name__ and not list(module.children())


def layers_of(model):
    """The layers by their paths: the members with norms of the innermost lists, or T5's sublayers.

    The two attentions of a LongCat layer are such members, too, but no layers: they carry no stream.
    """

    def members(module):
        return [child for child in module if any(map(is_norm, list(child.modules())[1:]))]

    lists = {
        path: module
        for path, module in model.named_modules()
        if isinstance(module, nn.ModuleList) and members(module) and not re.search(r"(attn|mlps?)$", path)
    }
    inner = [m for path, m in lists.items() if not any(other.startswith(f"{path}.") for other in lists)]
    found = {id(layer) for m in inner for layer in members(m)}
    return {path: module for path, module in model.named_modules() if id(module) in found}


def trace_calls(model, probed=False):
    """All calls of norms and layers, of what a layer consists of, and of functions that rotate queries and keys."""
    layers = layers_of(model)
    calls: dict[str, list] = {"layer": [], "norm": [], "part": [], "rotation": []}
    clock, running = iter(range(10**9)), []

    def before(_module, args, kwargs):
        read = next(filter(is_float, [*args, kwargs.get("hidden_states"), *kwargs.values()]), None)
        running.append((next(clock), read, None if read is None else read.detach().clone()))

    def after(path, kind):
        def hook(module, _args, _kwargs, output):
            start, read, copied = running.pop()
            returned = next(filter(is_float, [output] if is_float(output) else output or []), None)
            if read is None or returned is None:
                return output
            if kind == "norm" and not (is_float(output) and output.shape == read.shape):
                return output  # the reciprocal of a size, or a norm of two things
            probe = torch.zeros_like(returned, requires_grad=probed)
            if probed and kind == "norm":
                returned = output = returned + probe
            kept = (read, returned)
            calls[kind].append(Call(path, module, start, next(clock), copied, returned.clone(), kept, probe))
            return output

        return hook

    def rotating(function):
        def rotate(*args, **kwargs):
            output = function(*args, **kwargs)
            returned = output if isinstance(output, tuple) else [output]
            calls["rotation"].append((storages([*args, *kwargs.values()]), storages(returned), (args, output)))
            return output

        return rotate

    with ExitStack() as stack:
        for path, module in model.named_modules():
            within = path.rpartition(".")[0] in layers
            kind = "norm" if is_norm(module) else "layer" if path in layers else "part" if within else None
            if kind:
                stack.callback(module.register_forward_pre_hook(before, with_kwargs=True).remove)
                stack.callback(module.register_forward_hook(after(path, kind), with_kwargs=True).remove)
        file = sys.modules[type(model).__module__]
        for name, function in list(vars(file).items()):
            if "rotary" in name and callable(function) and not isinstance(function, type):
                stack.enter_context(patch.object(file, name, rotating(function)))
        model(**sample_inputs(model))
    return calls


def is_float(thing):
    return isinstance(thing, torch.Tensor) and thing.is_floating_point()


def storages(tensors):
    return {tensor.untyped_storage().data_ptr() for tensor in tensors if is_float(tensor)}


def describe_calls(random, zero):
    """What the calls of the two runs say, in the words of the table."""
    places: dict[str, int] = {}
    inner: list[Call] = []
    stream, outside = {}, [n for n in random["norm"] if not any(layer.holds(n) for layer in random["layer"])]
    for layer, bare in zip(random["layer"], zero["layer"], strict=True):
        norms = [(norm, z) for norm, z in zip(random["norm"], zero["norm"], strict=True) if layer.holds(norm)]
        if layer.read.shape == layer.returned.shape and bare.returned.requires_grad:
            # no convolution that reads sound, and no early turn of a loop
            if opens(bare, norms):
                inner.append(norms[0][0])
                layer, bare = (
                    replace(whole, read=norm.returned) for whole, norm in zip((layer, bare), norms.pop(0), strict=True)
                )
            place, own = placement(layer, bare, norms, [part for part in random["part"] if layer.holds(part)])
            places[place] = places.get(place, 0) + 1
            stream |= {norm.path: norm.module for norm in own}
    first, final = around(outside, random["layer"])
    first += inner
    stream |= {norm.path: norm.module for norm in first + final}
    heads = {n.path: head_norm(n, random["rotation"]) for n in random["norm"] if n.path not in stream}
    values = [describe_norm(norm) for norm in stream.values()]
    return {
        **{key: sorted({value[key] for value in values}) for key in ("norm", "parameters", "cast")},
        "eps": sorted({value["eps"] for value in values}, key=float, reverse=True),
        "placement": places,
        "first": bool(first),
        "final": bool(final),
        "qk_norm": sorted({text for text in heads.values() if text}),
        "others": sorted({re.sub(r"^.*\.\d+\.", "", path) for path, text in heads.items() if not text}),
    }


def opens(bare, norms):
    """Whether a layer's stream is what its first norm returns, as in RWKV's first layer: other norms read that, too."""
    if len(norms) < 2:
        return False
    (_, norm), *others = norms
    return torch.equal(norm.returned, bare.returned) and any(
        storages(other.kept[:1]) & storages(norm.kept[1:]) for _, other in others
    )


def placement(layer, bare, norms, parts):
    """Where a layer has its norms, and those of them that read or write the stream."""
    if layer.read.dim() == 4 and layer.read.shape[-1] == WIDTH and TOKENS in layer.read.shape:  # no picture
        return "several streams", [norm for norm, _ in norms if norm.read.shape[-1] == WIDTH]
    weights = torch.randn(bare.returned.shape, generator=torch.Generator().manual_seed(2))
    probes = [z.probe for _, z in norms]
    through = torch.autograd.grad((bare.returned * weights).sum(), probes, retain_graph=True, allow_unused=True)
    results = storages(z.kept[1] for _, z in norms)  # what reads another norm's result does not read the stream
    reading = [norm for norm, z in norms if z.read.any() and not storages(z.kept[:1]) & results]
    writing = [n for (n, z), g in zip(norms, through, strict=True) if n not in reading and g is not None and g.any()]
    if not carried(bare.read.flatten(0, -2), bare.returned.flatten(0, -2)):
        return "Post", reading + writing
    if bare.read.any() and not bare.returned.any():
        return "new sum", reading
    if writing:
        return ("both sides" if reading else "after the branch"), reading + writing
    if not reading:
        return "inside the branch", [norm for norm, _ in norms]
    takers = [part for part in parts if storages(part.kept[:1]) & storages(norm.kept[1] for norm in reading)]
    same = all(norm.read.shape == layer.read.shape and torch.equal(norm.read, layer.read) for norm in reading)
    return ("parallel" if same and len(takers) > 1 else "Pre"), reading


def carried(read, returned):
    """Whether each feature of the stream, (tokens, features), passes a layer times a constant; a norm is none."""
    constant = (read * returned).sum(0) / read.square().sum(0).clamp(min=1e-30)
    return torch.allclose(constant * read, returned, atol=1e-4)


def around(norms, layers):
    """The norms whose result a first layer reads, and those that run after a last one."""
    first, final = [], []
    for norm in norms:
        near = max(common(norm.path, layer.path) for layer in layers)  # an encoder has norms and layers of its own
        own = [layer for layer in layers if common(norm.path, layer.path) == near]
        if norm.start > own[-1].end:
            final.append(norm)
        elif norm.returned.shape == own[0].read.shape and torch.allclose(norm.returned, own[0].read):
            first.append(norm)
    return first, final


def common(one, other):
    """How many parts two paths begin with."""
    pairs = zip(one.split("."), other.split("."), strict=False)
    return next((k for k, (a, b) in enumerate(pairs) if a != b), 0)


def head_norm(norm, rotations):
    """The words for a norm of queries or keys, by what is rotated before or after it or by its name; '' for another."""
    before = any(storages(norm.kept[1:]) & read for read, _, _ in rotations)
    after = any(storages(norm.kept[:1]) & returned for _, returned, _ in rotations)
    named = re.search(r"(^|[._])(q|k|qk|query|key)_?(layer|head)?_?norm", norm.path)
    if not (before or after or named) or re.search("indexer|compressor", norm.path):
        return ""
    facts, size = describe_norm(norm.module), norm.read.shape[-1]
    gain = {"none": ", no gain", "gain 1+w": ", 1+w"}.get(facts["parameters"], "")
    gain += ", own gain for every head" * of_each_head(norm.module)
    return f"{facts['norm']} {WIDTHS.get(size, size)}{gain}" + (", before RoPE" * before or ", after RoPE" * after)


def of_each_head(norm):
    return getattr(norm, "weight", None) is not None and norm.weight.dim() > 1


def describe_norm(module):
    """What a norm computes."""
    norm = copy.deepcopy(module)
    if of_each_head(norm):
        norm.weight = nn.Parameter(norm.weight[0])
    parameters, eps = parameters_of(norm), f"{eps_of(norm):g}".replace("e-0", "e-")
    centred = bool(call(norm, 3 * torch.ones(1, width(norm))).abs().max() < 1e-3)
    kind = "LayerNorm" if centred else "RMSNorm"
    return {"norm": kind, "parameters": parameters, "eps": eps, "cast": cast_of(norm)}


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
            parameter.fill_(0.0 if parameters_of(copy.deepcopy(norm)) == "gain 1+w" else 1.0)
        if getattr(norm, "bias", None) is not None:
            norm.bias.zero_()
        row = torch.ones(1, width(norm))
        row[:, 1::2] = -1
        small, large = (call(norm, size * row)[0, 0].double().item() for size in (1e-8, 1.0))
    ratio = (large / small) ** 2  # (1e-16 + eps) / (1e-16 * (1 + eps))
    return float(f"{1e-16 * (ratio - 1) / (1 - 1e-16 * ratio):.5g}")


def cast_of(norm):
    """By the bits of a norm in bfloat16: which of the orders, with which gain, gives them all."""
    if isinstance(norm, nn.LayerNorm):
        return "library call"
    eps, norm = eps_of(norm), norm.to(torch.bfloat16)
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
        for order, candidate in both(x, weight, eps, more, centred, getattr(norm, "group_size", None)).items()
        if torch.equal(candidate, y)
    }
    return ORDERS[orders.pop()] if len(orders) == 1 else "other"


def both(x, weight, eps, more, centred, group=None):
    wide, gain = x.float().unflatten(-1, (-1, group or x.shape[-1])), weight.float() + more
    if centred:
        wide = wide - wide.mean(-1, keepdim=True)
    unit = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).flatten(-2)
    return {"fp32": (gain * unit).bfloat16(), "after": gain.bfloat16() * unit.bfloat16()}


def width(norm):
    weight = getattr(norm, "weight", None)
    return weight.shape[-1] if weight is not None else getattr(norm, "normalized_shape", (WIDTH,))[-1]


def call(norm, rows):
    """Apply a norm to rows, also one that wants the channels first."""
    if getattr(norm, "data_format", "") == "channels_first":
        return norm(rows[..., None, None])[..., 0, 0]
    return norm(rows)


def differences(row, classes):
    """What a row of the table says otherwise than the measurement of its classes."""
    if not row["classes"]:
        return
    found = [classes[name] for name in row["classes"]]
    text = {**row, "placement": f"{row['placement']} {row['placement_note']}", "eps": f"{row['eps']} {row['eps_note']}"}
    keys = ["norm", "parameters", "qk_norm", "placement"]
    cited = {source["repository"] for source in row["sources"]}
    if "huggingface/transformers" in cited:  # the row of another repository shows these beside its own
        keys += ["cast"] + ["eps"] * (len(cited) == 1 or not row["eps_note"])
    for key in keys:
        for value in sorted({value for facts in found for value in facts[key]}):
            pattern = WORDS.get(value, rf"{re.escape(value)}(?!\w| 1\+w|, bias)")
            if not re.search(pattern, text[key]):
                yield f"{key}: the row has {text[key].strip()!r}, the class {value!r}"
    places = {place for facts in found for place in facts["placement"]}
    claimed = re.match("(RMS|Layer)Norm", row["qk_norm"])
    pairs = {
        "placement": (row["placement"], row["placement"] if places & {row["placement"], *WORDS} else places),
        "1+w": ("1+w" in text["parameters"].replace("no 1+w", ""), "1+w" in str([f["parameters"] for f in found])),
        "QK-norm": (bool(claimed), bool(claimed) and any(facts["qk_norm"] for facts in found)),
        "final norm": (row["final_norm"].startswith("yes"), any(facts["final"] for facts in found)),
        "first norm": (
            bool(re.search(FIRST, " ".join(row[key] for key in ("placement_note", "final_norm")))),
            any(facts["first"] for facts in found),
        ),
    }
    for what, (written, here) in pairs.items():
        if written != here:
            yield f"{what}: the row has {written}, the class {here}"


def main(words=None):
    parser = argparse.ArgumentParser(prog="python -m tools.models", description=__doc__.split("\n")[0])
    parser.add_argument("model", nargs="*", help="a row of the table; without one, all of them")
    models = parser.parse_args(words).model
    rows = {row["model"]: row for row in json.loads(MODELS.read_text("utf-8"))}
    for model in models:
        if model not in rows:
            parser.error(f"a model is a row of the table, such as {next(iter(rows))!r}; there is no {model!r}")
    chosen = [rows[model] for model in models or rows]
    taken = take({name for row in chosen for name in row["classes"]})
    faults = {row["model"]: list(differences(row, taken["classes"])) for row in chosen}
    for row in chosen if models else []:
        print(row["model"], *([] if row["classes"] else ["has no class in transformers: it was read"]))
        for name in row["classes"]:
            print(f"  {name} of transformers {taken['transformers']}: {json.dumps(taken['classes'][name])}")
    for model, lines in faults.items():
        print(*(f"{model}: {line}" for line in lines), sep="\n", end="\n" * bool(lines))
    if any(faults.values()):
        sys.exit(1)
    print(f"No difference in {sum(bool(row['classes']) for row in chosen)} rows.")
    if not models:
        RECORD.write_text(json.dumps(taken, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
