"""Bugs with gains: read by another convention, folded into a shared matrix, decayed, or taken from another sample."""

import numpy as np

from subnorm_lab.checks.collect import Case
from subnorm_lab.museum.exhibit import Function, exhibit
from subnorm_lab.museum.statistics import row_cases


def a_stored_zero_passes(norm: Function) -> bool:
    x = np.random.default_rng(0).normal(0, 1, (3, 6))
    return np.allclose((norm(x, np.zeros(6), 0.0) ** 2).mean(), 1)


@exhibit(
    bug="(1 + w) * xhat -> w * xhat",
    says="w is read as the gain; Gemma stores the gain less 1.",
    report="linkedin/Liger-Kernel/issues/74",
    year=2024,
    test=a_stored_zero_passes,
    cases=row_cases(3, 6, args=(np.linspace(-0.5, 0.5, 6), 1e-6)),
    others=[("added", "(1 + w) * xhat -> w + xhat", "w is added; 1 + w multiplies.")],
)
def gemma_norm(x, w, eps):
    mean_square = (x * x).mean(-1, keepdims=True)
    xhat = x / np.sqrt(mean_square + eps)
    return (1 + w) * xhat


def the_input_rows_stay(fold: Function) -> bool:
    embedding, gain = np.ones((5, 3)), np.array([1.0, 2.0, 3.0])
    inputs, _output = fold(embedding, gain)
    return np.array_equal(inputs, embedding)


def tables(rng: np.random.Generator) -> list[Case]:
    return [Case(f"{n} tokens", (rng.normal(0, 1, (n, 4)), rng.uniform(0.5, 2, 4))) for n in (3, 7)]


@exhibit(
    bug="return embedding, output -> return output, output",
    says="the input rows are scaled as well; only the output matrix reads the norm, so it needs a copy of its own.",
    report="spcl/QuaRot/pull/17",
    year=2024,
    test=the_input_rows_stay,
    cases=tables,
    others=[("divided", "embedding * gain -> embedding / gain", "the output is divided by the gain; multiply.")],
)
def fold_final_gain(embedding, gain):
    output = embedding * gain  # (V, d): scores = output @ xhat
    return embedding, output


def only_matrices_decay(decayed: Function) -> bool:
    shapes = {"wte.weight": (9, 4), "h.0.ln_1.weight": (4,), "h.0.attn.weight": (4, 4), "ln_f.weight": (4,)}
    return all(len(shapes[name]) == 2 for name in decayed(shapes))


def models(rng: np.random.Generator) -> list[Case]:
    bert = {"embeddings.weight": (9, 4), "LayerNorm.weight": (4,), "LayerNorm.bias": (4,), "dense.weight": (4, 4)}
    llama = {"embed.weight": (9, 4), "input_layernorm.weight": (4,), "q_proj.weight": (4, 4), "norm.weight": (4,)}
    return [Case("the parameters of a BERT", (bert,)), Case("the parameters of a Llama", (llama,))]


@exhibit(
    bug='len(shape) == 2 -> "bias" not in name and "LayerNorm.weight" not in name',
    says="the name LayerNorm.weight finds the norms of few models; here no gain is a matrix, so ask for the shape.",
    report="deepspeedai/DeepSpeedExamples/pull/755",
    year=2023,
    test=only_matrices_decay,
    cases=models,
    others=[
        (
            "lower_case",
            'len(shape) == 2 -> "bias" not in name and "layernorm" not in name.lower()',
            "a norm can be called ln_f or norm; no list of names is complete.",
        )
    ],
)
def decayed_parameters(shapes):
    return [name for name, shape in shapes.items() if len(shape) == 2]


def a_batch_is_its_samples(norm: Function) -> bool:
    rng = np.random.default_rng(0)
    x, scale, shift = rng.normal(0, 1, (2, 3, 4)), rng.normal(0, 1, (2, 4)), rng.normal(0, 1, (2, 4))
    alone = [norm(x[k : k + 1], scale[k : k + 1], shift[k : k + 1]) for k in (0, 1)]
    return np.allclose(norm(x, scale, shift), np.concatenate(alone))


def conditions(rng: np.random.Generator) -> list[Case]:
    return [
        Case(f"{b} samples", (rng.normal(0, 1, (b, 5, 4)), rng.normal(0, 1, (b, 4)), rng.normal(0, 1, (b, 4))))
        for b in (1, 3)
    ]


@exhibit(
    bug="scale, shift = scale[:, None], shift[:, None] -> scale, shift = scale[:1, None], shift[:1, None]",
    says="every sample gets the scale and shift of sample 0; each has its own, for all of its tokens.",
    report="vllm-project/vllm-omni/pull/1537",
    year=2026,
    test=a_batch_is_its_samples,
    cases=conditions,
    others=[("no_one", "(1 + scale) -> scale", "scale multiplies as it is; adaLN multiplies by 1 + scale.")],
)
def ada_norm(x, scale, shift):
    mean, std = x.mean(-1, keepdims=True), x.std(-1, keepdims=True)
    scale, shift = scale[:, None], shift[:, None]  # (B, 1, d)
    return (1 + scale) * (x - mean) / (std + 1e-6) + shift
