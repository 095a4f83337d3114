import numpy as np

from subnorm import numpy as sn
from subnorm_lab.checks.ex01 import READS_FIRST, random_sublayer
from subnorm_lab.checks.shared import case, drawn, exercise


def inputs(rng, shape, kinds):
    return rng.normal(0, 1, shape), [random_sublayer(rng, shape[-1], kind) for kind in kinds]


def last_normed(x, sublayers):
    states = stream.reference(x, sublayers)
    return [*states[:-1], sn.layer_norm(states[-1])]


@exercise(
    number=2, level=1, minutes=10, chapter="02-residual-connections",
    objective="read a residual stack as one stream that every sublayer edits",
    cases=drawn(inputs,
        case("three sublayers, a (3, 4) batch", (3, 4), ["tanh", "tanh", "tanh"]),
        case("four sublayers, a (2, 5, 8) batch of sequences", (2, 5, 8), ["tanh", "linear", "relu", "tanh"]),
        case("two sublayers, one token, (6,)", (6,), ["tanh", "linear"]),
        case("a stack without sublayers", (3, 4), [], edge=True),
        case("a batch of one token, (1, 4)", (1, 4), ["tanh", "linear"], edge=True),
        case("sublayers that return their input itself, not a copy", (3, 4), ["same", "same"], edge=True),
    ),
    facts=[
        ("the list starts with x", lambda states, x, sublayers: np.allclose(states[0], x)),
        ("it has one entry more than there are sublayers", lambda s, x, sublayers: len(s) == len(sublayers) + 1),
        ("each entry is the one before it plus what the sublayer makes of that",
         lambda s, x, sublayers: all(np.allclose(s[k + 1], s[k] + f(s[k])) for k, f in enumerate(sublayers))),
    ],
    mistakes=[
        ("same_array", "x = x + -> x +=",
         "x += writes into the array that is already in the list, so all entries equal the last one; "
         "x = x + sublayer(x) makes a new array."),
        ("no_first", "return states -> return states[1:]",
         "the list lacks its first entry: the stream starts with x, before any sublayer.",
         "huggingface/transformers/pull/3602"),
        ("no_last", "return states -> return states[:-1]",
         "the list stops before the last sublayer; append the stream after that sublayer, too.",
         "meta-pytorch/torchtune/pull/2461"),
        ("only_last", "return states -> return states[-1]",
         "only the end of the stream is returned; the list holds its state before and after every sublayer."),
        ("edits", ("sublayer(x) -> (edit := sublayer(x))", "append(x) -> append(edit)"),
         "the entries are the edits, the outputs of the sublayers; the stream is their running sum."),
        ("reads_first", "sublayer(x) -> sublayer(states[0])", READS_FIRST),
        ("skips_from_first", "x + -> states[0] +",
         "the skip path carries the first x past every sublayer; each must add to the state that it has read.",
         "LianpoWang/SpeckleSRGAN/issues/16"),
        ("not_updated", ("x = x + -> y = x +", "append(x) -> append(y)"),
         "x is not replaced by the sum, so every sublayer starts again from the first x.",
         "taki0112/ResNeXt-Tensorflow/issues/1"),
        ("no_skip", "x + ->", "each sublayer replaces the stream, x = F(x); in a residual stack it adds to it."),
        ("last_normed", last_normed,
         "the last entry is normalised: the final norm comes after the stream, and is not part of it.",
         "huggingface/transformers/issues/13102"),
        ("backwards", "in sublayers -> in sublayers[::-1]",
         "the sublayers are applied from the last to the first; the first in the list comes first."),
    ],
)
def stream(x, sublayers):
    states = [x]
    for sublayer in sublayers:
        x = x + sublayer(x)
        states.append(x)
    return states
