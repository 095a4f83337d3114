import numpy as np

from subnorm_lab.checks.shared import case, drawn, exercise


def inputs(rng, rounds, slow=1):
    """Times near 40 µs, unsorted; some cases have one slow round."""
    times = rng.normal(40, 4, rounds)
    times[rounds // 3] *= slow
    return (times,)


def is_right(k):
    return lambda r, times: np.isclose(r[k], median_and_spread.reference(times)[k])


@exercise(
    number=1, level=1, minutes=10, chapter="08-how-fast-can-a-norm-be",
    objective="report a timing as its median with the interquartile range",
    cases=drawn(inputs,
        case("nine rounds", 9),
        case("eight rounds, an even number", 8),
        case("eleven rounds, one of them slow", 11, slow=8),
        case("ten rounds, one of them slow", 10, slow=5),
        case("six rounds", 6),
    ),
    facts=[
        ("the first number is the median", is_right(0)),
        ("the second is the interquartile range", is_right(1)),
    ],
    mistakes=[
        ("mean", "np.median -> np.mean",
         "the first number is the mean, which one slow round raises; the median stays where most rounds are.",
         "vltpkg/benchmarks/pull/170"),
        ("fastest", "np.median -> np.min",
         "the first number is the fastest round; the median has half of the rounds on either side.",
         "flix/flix/issues/3703"),
        ("unsorted", "np.median(times) -> (times[(len(times) - 1) // 2] + times[len(times) // 2]) / 2",
         "you take the middle in the order of the rounds; the median is the middle of the sorted times.",
         "enmasseio/timesync/issues/3"),
        ("upper_middle", "np.median(times) -> np.sort(times)[len(times) // 2]",
         "of an even number of times you take the upper of the middle two; the median is their mean.",
         "brownplt/pyret-lang/issues/921"),
        ("lower_middle", "np.median(times) -> np.sort(times)[(len(times) - 1) // 2]",
         "of an even number of times you take the lower of the middle two, as torch.median does; "
         "the median is their mean.", "pytorch/pytorch/issues/1837"),
        ("deviation", "q3 - q1 -> np.std(times)",
         "the second number is the standard deviation; the interquartile range is q3 - q1."),
        ("full_range", "q3 - q1 -> np.ptp(times)",
         "the second number is the slowest minus the fastest; the interquartile range is q3 - q1."),
        ("percent", "np.quantile -> np.percentile",
         "np.percentile counts from 0 to 100, so 0.25 is nearly the fastest round; "
         "use np.quantile, or 25 and 75.", "byu-dml/metalearn/issues/67"),
        ("exclusive", '(0.25, 0.75) -> (0.25, 0.75), method="weibull"',
         "these are the exclusive quartiles, the default of statistics.quantiles; the task asks for those of "
         "np.quantile, which are called inclusive.", "https://codewithsundeep.com/discussion/solution/61135376"),
        ("halves", ("(0.25, 0.75)) -> (0.25, 0.75)); half = len(times) // 2",
                    "q3 - q1 -> np.median(np.sort(times)[-half:]) - np.median(np.sort(times)[:half])"),
         "your quartiles are medians of the lower and the upper half; "
         "the task asks for those of np.quantile, which interpolate.", "numpy/numpy/issues/26379"),
        ("half_range", "q3 - q1 -> (q3 - q1) / 2",
         "the second number is half the interquartile range; it is q3 - q1, undivided."),
        ("swapped", "[median, q3 - q1] -> [q3 - q1, median]", "the two numbers are swapped: the median comes first."),
    ],
)
def median_and_spread(times):
    median = np.median(times)
    q1, q3 = np.quantile(times, (0.25, 0.75))
    return np.array([median, q3 - q1])
