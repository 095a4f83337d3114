import numpy as np

from subnorm_lab.checks.shared import case, drawn, exercise


def inputs(rng, features_in, d):
    return rng.normal(0.3, 1, (features_in, d)), rng.normal(0.5, 1, d)


def is_right(k):
    return lambda y, *args: np.allclose(y[k], centre_writer.reference(*args)[k])


@exercise(
    number=6, level=2, minutes=10, chapter="04-rmsnorm",
    objective="turn a Pre-LN transformer into a Pre-RMSNorm transformer that computes the same function",
    cases=drawn(inputs,
        case("a (5, 8) weight", 5, 8),
        case("a square weight, (6, 6)", 6, 6),
        case("a (12, 4) weight", 12, 4),
        case("a weight with one input, (1, 8)", 1, 8),
    ),
    facts=[
        ("each row of the weight sums to 0", lambda y, weight, bias: np.allclose(y[0].sum(-1), 0, atol=1e-9)),
        ("the weight is right", is_right(0)),
        ("the bias is right", is_right(1)),
        ("the bias sums to 0", lambda y, weight, bias: np.isclose(y[1].sum(), 0, atol=1e-9)),
    ],
    mistakes=[
        ("inputs", "-1 -> 0",
         "the mean is taken over the inputs of the layer (axis 0); each row must sum to 0, over the features that "
         "the layer writes.", "spcl/QuaRot/issues/57"),
        ("one_mean", "-1 -> None", "the whole weight shares one mean; each of its rows has its own."),
        ("keepdims", ", keepdims=True ->", "without keepdims=True the means are subtracted along the wrong axis."),
        ("weight_alone", "bias - mean -> bias",
         "the bias keeps its mean, and writes it into every token; centre it too."),
        ("bias_alone", "weight - means -> weight",
         "the weight keeps its means; centre each of its rows, as you do the bias."),
        ("bias_lost", "bias - mean -> bias - bias", "the bias is set to 0; subtract only its mean."),
        ("sums", ("weight.mean -> weight.sum", "bias.mean -> bias.sum"),
         "the sums are subtracted; C = I − 11ᵀ/d subtracts the means."),
        ("scaled", ("weight - means -> (weight - means) / weight.std(-1, keepdims=True)",
                    "bias - mean -> (bias - mean) / bias.std()"),
         "the weight is also divided by its deviation; centring only subtracts: the norm does the rest."),
        ("the_mean", ("weight - means -> means + 0 * weight", "bias - mean -> mean + 0 * bias"),
         "this is the part to remove, 11ᵀ/d; C = I − 11ᵀ/d keeps the rest."),
        ("writes_to_input", ("bias.mean() -> bias.mean(); weight -= means; bias -= mean",
                              "weight - means, bias - mean -> weight, bias"),
         "an input itself is changed (an operator such as -= writes into it): make a new array."),
    ],
)
def centre_writer(weight, bias):
    means, mean = weight.mean(-1, keepdims=True), bias.mean()
    return weight - means, bias - mean
