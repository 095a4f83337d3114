import numpy as np

from subnorm_lab.checks.shared import case, drawn, exercise
from subnorm_lab.checks.speech import speech


def inputs(rng, tokens, width, hidden, scale=2):
    h = rng.normal(0, scale, (tokens, width))
    gate, up = (rng.normal(0, 1 / np.sqrt(width), (hidden, width)) for _ in range(2))
    return h, gate, up, rng.normal(0, 1 / np.sqrt(hidden), (width, hidden))


@exercise(
    number=3, level=2, minutes=10, chapter="06-the-block-assembled",
    objective="write SwiGLU, the feed-forward of today's models, from its formula",
    speaks=speech, cases=drawn(inputs,
        case("3 tokens, 4 features, 7 hidden", 3, 4, 7),
        case("2 tokens, 6 features, 10 hidden", 2, 6, 10),
        case("5 tokens, 5 features, 5 hidden", 5, 5, 5),
        case("one token, 4 features, 7 hidden", 1, 4, 7, edge=True),
        case("gates in the thousands", 3, 4, 7, scale=4000, edge=True),
    ),
    mistakes=[
        ("gate_and_up_swapped", ("h @ gate.T -> h @ up.T", "(h @ up.T) -> (h @ gate.T)"),
         "silu acts on the up projection; it must act on the gate.", "ml-explore/mlx-lm/pull/767"),
        ("no_up", "* (h @ up.T) ->",
         "up is not used: this is a plain feed-forward with silu; the activated gate multiplies the up projection.",
         "google-research/timesfm/issues/493"),
        ("no_activation", "/ (1 + np.exp(-a)) ->", "the gate is not activated: silu(a) is a / (1 + exp(-a))."),
        ("sigmoid", "silu = a / -> silu = 1 /",
         "the gate is activated by the sigmoid alone; silu(a) is a times the sigmoid of a."),
        ("relu", "a / (1 + np.exp(-a)) -> np.maximum(a, 0)", "the gate is activated by relu; SwiGLU takes silu."),
        ("gelu", "a / (1 + np.exp(-a)) -> a / (1 + np.exp(-1.702 * a))",
         "the gate is activated by gelu, as a / (1 + exp(-1.702 a)); SwiGLU takes silu, without that factor."),
        ("silu_of_product", ("a = h @ gate.T -> a = (h @ gate.T) * (h @ up.T)", "(silu * (h @ up.T)) -> silu"),
         "silu acts on the product; it must act on the gate alone, before the product.",
         "Nijikadesu/breakdown-minimind/issues/3"),
        ("both_activated", "(h @ up.T) -> (h @ up.T) / (1 + np.exp(-(h @ up.T)))",
         "silu acts on the up projection, too; it must act on the gate alone."),
        ("added", "silu * (h -> silu + (h", "the gate is added to the up projection; it must multiply it."),
        ("sign", "np.exp(-a) -> np.exp(a)", "silu has the wrong sign: it is a / (1 + exp(-a)), with a minus."),
        ("skip_inside", ") @ down.T -> ) @ down.T + h",
         "h is added inside; the branch is down(…) alone, and the block adds it to the stream."),
        ("overflow", "a / (1 + np.exp(-a)) -> a * np.exp(a) / (1 + np.exp(a))",
         "exp(a) / (1 + exp(a)) becomes nan for large a; 1 / (1 + exp(-a)) is the same number, and never nan."),
    ],
)
def swiglu(h, gate, up, down):
    a = h @ gate.T
    silu = a / (1 + np.exp(-a))
    return (silu * (h @ up.T)) @ down.T
