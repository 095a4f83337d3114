import numpy as np

from subnorm.checks.collect import Case
from subnorm.checks.exercise import exercise


def cases(rng):
    """Norm and copy slow down together, round by round; the copy is of an array of another size."""

    def case(name, rounds, share):
        size, moved = (int(n) for n in rng.integers(10_000_000, 90_000_000, 2))
        together = rng.uniform(1, 2, rounds)
        copy = 2 * size / 2e10 * together * rng.uniform(0.9, 1.1, rounds)
        norm = moved / 2e10 / share * together * rng.uniform(0.9, 1.1, rounds)
        return Case(name, (norm, moved, copy, size))

    return [
        case("nine rounds of a fast norm", 9, 0.9),
        case("seven rounds of a slow norm", 7, 0.2),
        case("eight rounds", 8, 0.6),
        case("eleven rounds of a norm that seems faster than the copy", 11, 1.3),
    ]


def first(middle):
    """Each row of times is made one number before they are compared."""
    return f"moved / seconds -> moved / {middle}(seconds)", f"/ copy_seconds -> / {middle}(copy_seconds)"


@exercise(
    number=4, level=2, minutes=10, chapter="08-how-fast-can-a-norm-be",
    objective="compare a norm with a copy, in bytes per second and round by round",
    cases=cases,
    mistakes=[
        ("inverted", "rate / copy_rate -> copy_rate / rate",
         "this is the copy's rate over the norm's; asked for is the norm's over the copy's.",
         "jimhester/libvroom/issues/194"),
        ("times_alone", "rate / copy_rate -> copy_seconds / seconds",
         "times are compared, but norm and copy move different numbers of bytes; compare bytes per second."),
        ("copy_once", "2 * size -> size",
         "the share is twice too large: a copy of size bytes reads and writes them, which is 2 * size; "
         "take moved as it comes.", "flashinfer-ai/flashinfer/pull/3411"),
        ("ratio_of_medians", first("np.median"),
         "you take the two medians first and divide then; "
         "divide round by round, where a slow moment falls on both, and take the median of the shares.",
         "orieg/php-judy/pull/91"),
        ("ratio_of_totals", first("np.mean"),
         "all rounds are added up, or averaged, before you divide; divide round by round."),
        ("mean_of_shares", "np.median -> np.mean", "you take the mean of the shares; asked for is their median."),
        ("fastest", first("np.min"),
         "the fastest round of each is compared, and they are different moments; divide round by round.",
         "delta-io/delta-kernel-rs/pull/2725"),
        ("percent", "np.median -> 100 * np.median", "the share is in percent; asked for is a fraction."),
        ("every_round", "np.median ->", "these are the shares of all rounds; asked for is one number, their median."),
        ("capped", "np.median(rate / copy_rate) -> min(np.median(rate / copy_rate), 1.0)",
         "a share above 1 is cut off; leave it as it is: it says that something was measured wrongly."),
    ],
)
def share_of_copy(seconds, moved, copy_seconds, size):
    rate = moved / seconds
    copy_rate = 2 * size / copy_seconds
    return np.median(rate / copy_rate)
