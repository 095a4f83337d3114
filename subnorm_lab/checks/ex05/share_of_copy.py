import numpy as np

from subnorm_lab.checks.shared import case, drawn, exercise


def inputs(rng, rounds, share):
    """Norm and copy slow down together, round by round; the copied array has another size."""
    size, moved = (int(n) for n in rng.integers(10_000_000, 90_000_000, 2))
    together = rng.uniform(1, 2, rounds)
    copy = 2 * size / 2e10 * together * rng.uniform(0.9, 1.1, rounds)
    norm = moved / 2e10 / share * together * rng.uniform(0.9, 1.1, rounds)
    return norm, moved, copy, size


def first(middle):
    """Changes that reduce the times of each to one number before comparing."""
    return f"moved / seconds -> moved / {middle}(seconds)", f"/ copy_seconds -> / {middle}(copy_seconds)"


@exercise(
    number=4, level=2, minutes=10, chapter="08-how-fast-can-a-norm-be",
    objective="compare a norm with a copy, in bytes per second and round by round",
    cases=drawn(inputs,
        case("nine rounds of a fast norm", 9, 0.9),
        case("seven rounds of a slow norm", 7, 0.2),
        case("eight rounds", 8, 0.6),
        case("eleven rounds of a norm that seems faster than the copy", 11, 2.6),
        case("one round", 1, 0.7, edge=True),
    ),
    parameter="unit", variants=[
        ("a fraction", 1),
        ("percent", 100, "as it is. -> as it is, in percent: 50 for a half.", "0.5 -> 50.0",
         "over the copy's rate. -> over the copy's rate, in percent."),
    ],
    mistakes=[
        ("inverted", "rate / copy_rate -> copy_rate / rate",
         "this is the copy's rate over the norm's; the task asks for the norm's over the copy's.",
         "jimhester/libvroom/issues/194"),
        ("times_alone", "rate / copy_rate -> copy_seconds / seconds",
         "times are compared, but norm and copy move different numbers of bytes; compare bytes per second."),
        ("copy_once", "2 * size -> size",
         "the share is too large by a factor of 2: a copy of size bytes reads and writes them, which is 2 * size; "
         "use moved as it is.", "flashinfer-ai/flashinfer/pull/3411"),
        ("ratio_of_medians", first("np.median"),
         "you take the two medians first and then divide; divide round by round, where a slow moment affects both, and "
         "take the median of the shares.", "orieg/php-judy/pull/91"),
        ("ratio_of_totals", first("np.mean"),
         "you add up or average all rounds before you divide; divide round by round."),
        ("mean_of_shares", "np.median -> np.mean", "you take the mean of the shares; the task asks for their median."),
        ("fastest", first("np.min"),
         "you compare the fastest rounds of each, which come from different moments; divide round by round.",
         "delta-io/delta-kernel-rs/pull/2725"),
        ("percent", "unit * -> 100 * unit *", "the share is 100 times too large; the task asks for {unit}."),
        ("every_round", "np.median ->", "these are the shares of all rounds; the task asks for their median."),
        ("capped", "np.median(rate / copy_rate) -> min(np.median(rate / copy_rate), 1.0)",
         "a share above 1 is cut off; leave it as it is: it shows an error in the measurement."),
    ],
)
def share_of_copy(seconds, moved, copy_seconds, size, *, unit=1):
    rate = moved / seconds
    copy_rate = 2 * size / copy_seconds
    return unit * np.median(rate / copy_rate)
