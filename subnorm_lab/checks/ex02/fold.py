import numpy as np

from subnorm_lab.checks.shared import case, drawn, exercise


def inputs(rng, out, d, bias=True):
    gamma, beta = rng.uniform(0.5, 1.5, d) * rng.choice([-1, 1], d), rng.normal(0, 1, d)
    return gamma, beta, rng.normal(0, 1, (out, d)), rng.normal(0, 1, out) if bias else None


@exercise(
    number=3, level=2, minutes=10, chapter="03-layer-normalization",
    objective="say what gain and shift do, by moving them into the next layer",
    cases=drawn(inputs,
        case("a layer from 8 features to 5", 5, 8),
        case("a layer from 3 features to 7", 7, 3),
        case("a square layer, (6, 6)", 6, 6),
        case("a layer in float32", 5, 8, edge=True, dtype="float32"),
        case("a layer without a bias", 5, 8, bias=False, edge=True),
        case("a layer with one output", 1, 8, edge=True),
    ),
    facts=[
        ("the new weight is right",
         lambda y, gamma, beta, weight, bias, *, gain=0: np.allclose(y[0], weight * (gain + gamma))),
        ("the new bias is right", lambda y, gamma, beta, weight, bias: np.allclose(y[1], bias + weight @ beta)),
    ],
    parameter="gain", variants=[
        ("a gain of gamma", 0),
        ("a gain of 1 + gamma", 1, r"(\gamma \odot -> ((1 + \gamma) \odot", r"(\gamma_i -> ((1 + \gamma_i)",
         "array([[ 2., 30.]]) -> array([[ 3., 40.]])"),
    ],
    mistakes=[
        ("rows", "(gain + gamma) -> (gain + gamma)[:, None]",
         "gamma multiplies the rows of weight, its outputs; multiply its columns, the features of xhat."),
        ("layout", ("(gain + gamma) -> (gain + gamma)[:, None]", "weight @ beta -> beta @ weight"),
         "weight is treated as (d, out), in both results; here it is (out, d), and the layer is x @ weight.T + bias.",
         "TransformerLensOrg/TransformerLens/pull/1580"),
        ("transposed", "weight * (gain + gamma) -> (weight * (gain + gamma)).T",
         "the new weight is transposed; it must have the shape of weight, (out, d)."),
        ("gamma_twice", "weight @ beta -> (weight * (gain + gamma)) @ beta",
         "beta goes through the new weight, so gamma multiplies it; it must go through the old one."),
        ("no_beta", "shift if bias is None else shift + bias -> bias",
         "beta is lost; the layer reads it through weight, so add weight @ beta to the new bias.",
         "jiazhihao/TASO/pull/47"),
        ("bias_lost", "shift + bias -> shift", "the old bias is lost; the new one is bias + weight @ beta."),
        ("beta_unseen", "weight @ beta -> beta",
         "beta is added to the bias as it is; the layer reads it through weight, as weight @ beta."),
        ("no_gamma", "weight * (gain + gamma) -> weight", "the weight is unchanged; its columns get {gain}."),
        ("divided", "weight * (gain -> weight / (gain",
         "weight is divided by the gain, which would undo it; the new layer has to apply it: multiply."),
        ("plus_one", "(gain + gamma) -> (1 + gain + gamma)",
         "1 is added to the gain once too often; here you have {gain}."),
        ("no_bias", "shift if bias is None -> None if bias is None",
         "without an old bias you make no new one, and beta is lost; the new bias is then weight @ beta.",
         "tenstorrent/tt-metal/pull/5317"),
    ],
)
def fold(gamma, beta, weight, bias, *, gain=0):
    new, shift = weight * (gain + gamma), weight @ beta
    return new, shift if bias is None else shift + bias
