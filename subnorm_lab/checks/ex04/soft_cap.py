import numpy as np

from subnorm_lab.checks.shared import case, drawn, exercise


def inputs(rng, shape, cap, size=1.0):
    """Scores from well below the cap to twice as large."""
    return rng.normal(0.3, 1, shape) * cap * size, rng.normal(0.5, 1, shape), cap


def is_right(part, r, scores, dy, cap):
    return np.allclose(r[part], soft_cap.reference(scores, dy, cap)[part], rtol=1e-3)


@exercise(
    number=9, level=1, minutes=10, chapter="07b-the-attention-logits",
    objective="cap attention logits smoothly, and say what the cap does to their gradient",
    cases=drawn(inputs,
        case("scores of (3, 5) and a cap of 5", (3, 5), 5.0),
        case("scores of (4, 4) and a cap of 0.5", (4, 4), 0.5),
        case("two heads, (2, 3, 3), and a cap of 30", (2, 3, 3), 30.0),
        case("scores far below a cap of 2", (3, 4), 2.0, size=0.2),
        case("scores around twice a cap of 3", (3, 4), 3.0, size=1.5),
        case("a single score, and a cap of 4", (1, 1), 4.0, edge=True),
    ),
    facts=[
        ("no capped score exceeds the cap", lambda r, scores, dy, cap: np.abs(r[0]).max() <= cap),
        ("y is right", lambda r, *given: is_right(0, r, *given)),
        ("the gradient is right", lambda r, *given: is_right(1, r, *given)),
    ],
    mistakes=[
        ("score_for_cap", "cap * np.tanh -> scores * np.tanh",
         "the scores are multiplied by tanh, so large ones pass uncapped; multiply the cap by it.",
         "unslothai/unsloth-zoo/pull/593"),
        ("no_cap_in_tanh", "scores / cap -> scores",
         "tanh gets the scores undivided, so all but small ones end at the cap; it takes scores / cap."),
        ("no_cap_outside", ("cap * np.tanh -> np.tanh", "(y / cap) -> y"),
         "y ends at 1, whatever the cap; multiply tanh(scores / cap) by the cap, and the slope follows."),
        ("multiplied", "scores / cap -> scores * cap",
         "the scores are multiplied by the cap before tanh; divide them by it."),
        ("half_cap", "scores / cap -> scores / (cap * 0.5)",
         "tanh gets twice scores / cap, so small scores are doubled; a cap leaves them as they are."),
        ("clipped", ("cap * np.tanh(scores / cap) -> np.clip(scores, -cap, cap)",
                     "1 - (y / cap) ** 2 -> (np.abs(scores) < cap)"),
         "the scores are clipped, so beyond the cap their gradient is 0; a soft cap is cap * tanh(scores / cap)."),
        ("straight_through", "dy * (1 - (y / cap) ** 2) -> dy * 1",
         "the gradient passes unchanged; where the cap bends the score, it shrinks by 1 - tanh²."),
        ("not_squared", "(y / cap) ** 2 -> np.abs(y / cap)",
         "the slope is 1 - |tanh|; the derivative of tanh is 1 - tanh²."),
        ("y_for_tanh", "(y / cap) ** 2 -> y**2",
         "y itself is squared; the slope is 1 - (y / cap)², as y is cap * tanh."),
        ("score_in_slope", "(y / cap) ** 2 -> (scores / cap) ** 2",
         "the score before the cap is in the slope; the derivative of tanh is 1 - tanh², with the result."),
        ("cap_in_slope", "dy * ( -> cap * dy * (",
         "the gradient is multiplied by the cap; the division inside tanh cancels that factor."),
        ("divided_slope", "dy * ( -> dy / cap * (",
         "the gradient is divided by the cap; the factor outside tanh cancels that."),
        ("no_dy", "dy * ( -> 1 * (", "this is the slope alone; the gradient is dy times the slope."),
        ("swapped", "return y, dscores -> return dscores, y", "the two results are swapped: y comes first."),
    ],
)
def soft_cap(scores, dy, cap):
    y = cap * np.tanh(scores / cap)
    dscores = dy * (1 - (y / cap) ** 2)
    return y, dscores
