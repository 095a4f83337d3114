import numpy as np

from subnorm.checks.collect import Case
from subnorm.checks.exercise import exercise
from subnorm.checks.shared import in_dtype


def cases(rng):
    def case(name, out, d, bias=True, edge=False):
        gamma, beta = rng.uniform(0.5, 1.5, d) * rng.choice([-1, 1], d), rng.normal(0, 1, d)
        return Case(name, (gamma, beta, rng.normal(0, 1, (out, d)), rng.normal(0, 1, out) if bias else None), edge)

    return [
        case("a layer from 8 features to 5", 5, 8),
        case("a layer from 3 features to 7", 7, 3),
        case("a square layer, (6, 6)", 6, 6),
        in_dtype(case("a layer in float32", 5, 8, edge=True), "float32"),
        case("a layer without a bias", 5, 8, bias=False, edge=True),
    ]


@exercise(
    number=3, level=2, minutes=10, chapter="03-layer-normalization",
    objective="say what gain and shift do, by moving them into the next layer",
    cases=cases,
    facts=[
        ("the new weight is right", lambda y, gamma, beta, weight, bias: np.allclose(y[0], weight * gamma)),
        ("the new bias is right", lambda y, gamma, beta, weight, bias: np.allclose(y[1], bias + weight @ beta)),
    ],
    mistakes=[
        ("rows", "weight * gamma -> weight * gamma[:, None]",
         "gamma multiplies the rows of weight, its outputs; multiply its columns, the features of xhat."),
        ("layout", ("weight * gamma -> weight * gamma[:, None]", "weight @ beta -> beta @ weight"),
         "weight is treated as (d, out), in both results; here it is (out, d), and the layer is x @ weight.T + bias.",
         "TransformerLensOrg/TransformerLens/pull/1580"),
        ("transposed", "weight * gamma -> (weight * gamma).T",
         "the new weight is transposed; it must have the shape of weight, (out, d)."),
        ("gamma_twice", "weight @ beta -> (weight * gamma) @ beta",
         "beta goes through the new weight, so gamma multiplies it; it must go through the old one."),
        ("no_beta", "shift if bias is None else shift + bias -> bias",
         "beta is lost; the layer reads it through weight, so add weight @ beta to the new bias.",
         "jiazhihao/TASO/pull/47"),
        ("bias_lost", "shift + bias -> shift", "the old bias is lost; the new one is bias + weight @ beta."),
        ("beta_unseen", "weight @ beta -> beta",
         "beta is added to the bias as it is; the layer reads it through weight, as weight @ beta."),
        ("no_gamma", "weight * gamma -> weight",
         "the weight is unchanged; multiply its columns by gamma."),
        ("divided", "weight * gamma -> weight / gamma",
         "weight is divided by gamma, which would undo the gain; the new layer has to apply it: weight * gamma."),
        ("plus_one", "weight * gamma -> weight * (1 + gamma)",
         "weight is multiplied by 1 + gamma; here the gain is gamma itself."),
        ("no_bias", "shift if bias is None -> None if bias is None",
         "without an old bias you make no new one, and beta is lost; the new bias is then weight @ beta.",
         "tenstorrent/tt-metal/pull/5317"),
    ],
)
def fold(gamma, beta, weight, bias):
    new, shift = weight * gamma, weight @ beta
    return new, shift if bias is None else shift + bias
