import numpy as np

from subnorm_lab.checks.shared import Case, exercise


def cases(rng):
    def case(part, low, high):
        d_model, steps = int(rng.integers(8, 65)), int(rng.integers(10, 41))
        step = max(1, round(steps * rng.uniform(low, high)))
        return Case(f"step {step} of a warm-up of {steps} with d_model = {d_model}, {part}", (step, d_model, steps))

    return [
        case("half-way up", 0.4, 0.6),
        case("the first step", 0, 0),
        case("the end of the warm-up", 1, 1),
        case("after the warm-up", 1.5, 2),
        case("long after the warm-up", 5, 10),
    ]


def is_right(side):
    """Whether the rate is right before (1), at (0) or after (-1) the end of the warm-up."""
    return lambda y, step, d_model, steps, *, factor=1: (
        np.sign(steps - step) != side or np.isclose(y, warm_up.reference(step, d_model, steps, factor=factor), 1e-4, 0)
    )


@exercise(
    number=5, level=2, minutes=12, chapter="05b-warm-up",
    objective="say what warm-up changes, and write the schedule of the first transformer",
    cases=cases,
    facts=[("the rise", is_right(1)), ("the end of the warm-up", is_right(0)), ("the fall", is_right(-1))],
    parameter="factor", variants=[
        ("a factor of 1", 1),
        ("a factor of 2", 2, r"\eta(t) = \frac{1} -> \eta(t) = \frac{2}", "0.015625 -> 0.03125"),
        ("a factor of 0.5", 0.5, r"\eta(t) = \frac{1} -> \eta(t) = 0.5 \cdot \frac{1}", "0.015625 -> 0.0078125"),
    ],
    mistakes=[
        ("max_for_min", "min -> max", "you take the larger of the two terms; the rate is the smaller one."),
        ("no_width", "* d_model**-0.5 ->", "d_model is not used: the rate is divided by its root."),
        ("width_multiplied", "d_model**-0.5 -> d_model**0.5",
         "the rate is multiplied by the root of d_model; divide by it, d_model ** -0.5."),
        ("width_without_root", "d_model**-0.5 -> d_model**-1",
         "the rate is divided by d_model; divide by the root of d_model."),
        ("peak_of_one", "d_model**-0.5 -> steps**0.5",
         "steps ** 0.5 takes the place of d_model ** -0.5, which makes the peak rate the same for every width.",
         "Kyubyong/transformer/issues/89"),
        ("no_decay", "step**-0.5 -> steps**-0.5",
         "the rate stays constant after the warm-up; it must fall as step ** -0.5."),
        ("no_warm_up", "min(rise, fall) -> fall",
         "the rate falls from the first step on; for the first `steps` steps it must rise in proportion to step."),
        ("one_step_ahead", ("step * -> (step + 1) *", "step**-0.5 -> (step + 1) ** -0.5"),
         "1 is added to step; here step counts from 1 already."),
        ("zero_based", ("step * -> (step - 1) *", "step**-0.5 -> (step - 1) ** -0.5"),
         "1 is subtracted from step; step counts from 1 already, and 0 has no power -0.5.",
         "CUNY-CL/yoyodyne/pull/300"),
        ("wrong_slope", "-1.5 -> -0.5",
         "the rise is step * steps ** -0.5; with steps ** -1.5 the two terms meet at the end of the warm-up."),
        ("fall_without_root", "step**-0.5 -> step**-1",
         "after the warm-up the rate falls as 1 / step; it must fall as 1 over the root of step."),
    ],
)
def warm_up(step, d_model, steps, *, factor=1):
    rise = step * steps**-1.5
    fall = step**-0.5
    return factor * d_model**-0.5 * min(rise, fall)
