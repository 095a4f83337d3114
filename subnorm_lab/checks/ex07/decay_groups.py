from subnorm_lab.checks.shared import case, drawn, exercise


def llama(rng, blocks):
    d = int(rng.integers(8, 65))
    for k in range(blocks):
        yield f"layers.{k}.input_layernorm.weight", "RMSNorm", (d,)
        yield f"layers.{k}.self_attn.q_proj.weight", "Linear", (d, d)
        yield f"layers.{k}.self_attn.q_norm.weight", "RMSNorm", (4, d // 4)  # a gain for each head
        yield f"layers.{k}.mlp.gate_proj.weight", "Linear", (4 * d, d)
    yield "embed_tokens.weight", "Embedding", (512, d)
    yield "norm.weight", "RMSNorm", (d,)
    yield "lm_head.weight", "Linear", (512, d)


def gpt(rng, blocks):
    d = int(rng.integers(8, 65))
    for k in range(blocks):
        for part in ("weight", "bias"):
            yield f"h.{k}.ln_1.{part}", "LayerNorm", (d,)
            yield f"h.{k}.attn.c_proj.{part}", "Linear", (d, d)[: 2 if part == "weight" else 1]
    yield "wte.weight", "Embedding", (512, d)
    yield "wpe.weight", "Embedding", (64, d)
    yield "ln_f.weight", "LayerNorm", (d,)


def scanned(rng, blocks):
    """One tensor for all blocks, whose first axis counts them."""
    d = int(rng.integers(8, 65))
    yield "blocks.norm.weight", "RMSNorm", (blocks, d)
    yield "blocks.attention.weight", "Linear", (blocks, d, d)
    yield "blocks.attention.bias", "Linear", (blocks, d)
    yield "tokens.weight", "Embedding", (512, d)
    yield "final_norm.weight", "RMSNorm", (d,)


def resnet(rng, blocks):
    d = int(rng.integers(8, 65))
    for k in range(blocks):
        yield f"layer{k}.conv.weight", "Conv2d", (d, d, 3, 3)
        yield f"layer{k}.bn.weight", "BatchNorm2d", (d,)
        yield f"layer{k}.bn.bias", "BatchNorm2d", (d,)
    yield "fc.weight", "Linear", (10, d)
    yield "fc.bias", "Linear", (10,)


def misleading(rng, blocks):
    """Names that say something else, and tensors of classes that no list knows."""
    d = int(rng.integers(8, 65))
    for k in range(blocks):
        yield f"{k}.norm_predictor.weight", "Linear", (1, d)
        yield f"{k}.debias.weight", "Linear", (d, d)
        yield f"{k}.weight_mixer.weight", "Linear", (d, d)
        yield f"{k}.weight_mixer.bias", "Linear", (d,)
        yield f"{k}.mixer.weight", "LinearAttention", (8, d)
        yield f"{k}.upsample.weight", "ConvTranspose2d", (d, d, 2, 2)
        yield f"{k}.scale", "LayerScale", (d,)
        yield f"{k}.distance_weight", "RelativePosition", (8, 31)
    yield "LayerNorm.weight", "LayerNorm", (d,)
    yield "LayerNorm.bias", "LayerNorm", (d,)


def one_gain(rng, blocks):
    yield "norm.weight", "RMSNorm", (int(rng.integers(8, 65)),)


def inputs(rng, model, blocks):
    found = list(model(rng, blocks))
    return [found[k] for k in rng.permutation(len(found))], round(float(rng.uniform(0.01, 0.2)), 3)


def grouped(decays):
    """A wrong answer: the two groups by a rule of name, layer and shape."""

    def answer(parameters, rate):
        groups = [], []
        for name, layer, shape in parameters:
            groups[not decays(name, layer, shape)].append(name)
        return [{"params": groups[0], "weight_decay": rate}, {"params": groups[1], "weight_decay": 0.0}]

    return answer


def has(name, *words):
    return any(word in name for word in words)


def names(found):
    return [name for group in found for name in group["params"]]


def decaying(found):
    return {name for group in found for name in group["params"] if group["weight_decay"]}


def of(parameters, *layers):
    return {name for name, layer, _ in parameters if layer in layers}


def are_right(*layers):
    """Whether the tensors of these layers are in the right group."""

    def test(found, parameters, rate, *, spared=""):
        wanted = decaying(decay_groups.reference(parameters, rate, spared=spared))
        return not (decaying(found) ^ wanted) & of(parameters, *layers)

    return test


@exercise(
    number=5, level=2, minutes=12, chapter="10b-fine-tuning",
    objective="tell an optimizer which tensors of a model decay, whatever their names and shapes",
    cases=drawn(inputs,
        case("a LLaMA with a gain for each head", llama, 2),
        case("a GPT", gpt, 2),
        case("a model that stores its blocks in one tensor", scanned, 3),
        case("a convolutional network", resnet, 2),
        case("a model with misleading names", misleading, 2),
        case("a single gain", one_gain, 1, edge=True),
    ),
    facts=[
        ("each tensor is in one group", lambda r, parameters, rate: (
            sorted(names(r)) == sorted(name for name, *_ in parameters))),
        ("norms are in the right group", are_right("RMSNorm", "LayerNorm", "BatchNorm2d")),
        ("linear layers and convolutions are in the right group", are_right("Linear", "Conv2d")),
        ("embeddings are in the right group", are_right("Embedding")),
    ],
    parameter="spared", variants=[
        ("embeddings that decay", ""),
        ("embeddings that do not decay", "Embedding",
         "Embeddings are matrices, too, and decay. -> Embeddings are spared, as in some models.",
         "['q.weight', 'tokens.weight'] -> ['q.weight']", "'norm.weight']] -> 'norm.weight', 'tokens.weight']]",
         '("Linear", "Conv2d", "Embedding") -> ("Linear", "Conv2d")'),
    ],
    mistakes=[
        ("everything", 'if matrix and name.endswith("weight") -> if True',
         "everything decays, gains and biases as well; only the weights of matrices do.", "dingo-actual/om/issues/12"),
        ("by_axes", grouped(lambda name, layer, shape: len(shape) >= 2),
         "tensors with two axes or more decay, and a gain for each head or block has two; go by the layer.",
         "salesforce/jaxformer/issues/28"),
        ("two_axes", grouped(lambda name, layer, shape: len(shape) == 2),
         "tensors with two axes decay, and no others; convolutions and stacked matrices have more. Go by the layer."),
        ("by_name_of_bert", grouped(lambda name, layer, shape: not has(name, "bias", "LayerNorm.weight")),
         "only norms with the names of BERT are spared, but other models call their norms ln_1 or norm; go by "
         "the layer.",
         "huggingface/transformers/issues/16908"),
        ("by_name", grouped(lambda name, layer, shape: not has(name.lower(), "norm", "ln_", "bias", "bn")),
         "every tensor with norm or bias in its name is spared, even that of a linear layer called "
         "norm_predictor; go by the layer."),
        ("whole_name", grouped(lambda name, layer, shape: name not in ("bias", "LayerNorm.bias", "LayerNorm.weight")),
         "whole names are compared, but a tensor's name begins with that of its block, as in h.0.ln_1.bias; go "
         "by the layer.",
         "namisan/mt-dnn/pull/37"),
        ("layer_norm_alone", grouped(lambda name, layer, shape: layer != "LayerNorm" and not name.endswith("bias")),
         "LayerNorm is spared, but other norms decay; list the layers that decay, not those that are spared.",
         "huggingface/transformers/pull/35927"),
        ("norms_alone", grouped(lambda name, layer, shape: "Norm" not in layer and not name.endswith("bias")),
         "norms and biases are spared, and layers that you do not know decay; list the layers that decay."),
        ("biases_decay", 'and name.endswith("weight") ->',
         "the biases of linear layers decay; only their weights do.", "ServiceNow/Fast-LLM/pull/545"),
        ("bias_in_name", 'name.endswith("weight") -> "bias" not in name',
         "a name that contains bias is spared, as debias.weight is; look at its end."),
        ("linear_alone", '"Conv2d", "Embedding") and layer -> "Embedding") and layer',
         "convolutions are spared; their weights decay, too."),
        ("embeddings", 'layer != spared -> (layer != spared) == (layer != "Embedding")',
         "the embeddings are in the wrong group; here you have {spared}."),
        ("unknown_in_none", 'else: -> elif layer in ("Linear", "Conv2d", "Embedding") or "Norm" in layer:',
         "the tensors of other layers are in no group, so the optimizer never updates them; spare them.",
         "fmu2/snag_release/issues/2"),
        ("swapped", '[{"params": decays, "weight_decay": rate}, {"params": rest, "weight_decay": 0.0}] -> '
                    '[{"params": rest, "weight_decay": rate}, {"params": decays, "weight_decay": 0.0}]',
         "the two groups are swapped: gains and biases decay.", "xuyige/BERT4doc-Classification/pull/18"),
        ("one_rate", "0.0 -> rate", "both groups have the same decay; that of the second is 0.",
         "nvidia-cosmos/cosmos-predict2.5/issues/165"),
    ],
)
def decay_groups(parameters, rate, *, spared=""):
    decays, rest = [], []
    for name, layer, _ in parameters:
        matrix = layer in ("Linear", "Conv2d", "Embedding") and layer != spared
        if matrix and name.endswith("weight"):
            decays.append(name)
        else:
            rest.append(name)
    return [{"params": decays, "weight_decay": rate}, {"params": rest, "weight_decay": 0.0}]
