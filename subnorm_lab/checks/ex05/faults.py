import statistics

from subnorm_lab.checks.shared import Case, exercise

#: Times of the rounds, as multiples of the median
ROUNDS = {
    "calm": [0.97, 0.98, 0.99, 1, 1.01, 1.02, 1.03],
    "uneven": [0.92, 0.96, 0.97, 0.99, 1, 1.01, 1.03, 1.04, 1.07],
    "slow round": [0.97, 0.98, 0.98, 0.99, 1, 1.01, 1.02, 1.02, 1.9],
    "wide, one slow": [0.88, 0.92, 0.93, 0.97, 1, 1.03, 1.06, 1.08, 6],
    "restless": [0.8, 0.85, 0.9, 0.98, 1.02, 1.1, 1.15, 1.2],
    "just narrow": [0.9, 0.92, 0.9505, 0.98, 1, 1.02, 1.05, 1.09, 1.2],
    "just wide": [0.9, 0.92, 0.9495, 0.98, 1, 1.02, 1.05, 1.06, 1.07],
    "four": [0.98, 0.99, 1.01, 1.02],
}
#: the same as tenths, of which NumPy and Python find exact quartiles
TENTHS = [9, 9.5, 10, 10.5, 11]


def cases(rng):
    def at_the_limits(name):
        """Five rounds with the widest spread and the highest rate that are no faults; every number is exact."""
        copy, unit = 2 ** int(rng.integers(7, 12)), 2.0 ** -int(rng.integers(14, 18))  # GB/s, tenths of the median
        report = {
            "device": "cuda", "warm_up": 3, "synchronized": True,
            "seconds": [float(s) for s in rng.permutation(TENTHS) * unit],
            "bytes": int(copy * 10e9 * unit), "copy_rate": float(copy),
        }
        return Case(f"a record {name}", (report,))

    def case(name, rounds="calm", rate=0.6, device="cuda", warm_up=3, synchronized=True, slowest=10, fastest=3000):
        copy, median = rng.uniform(slowest, fastest), rng.uniform(5e-5, 5e-4)  # GB/s, s
        report = {
            "device": device, "warm_up": warm_up, "synchronized": synchronized,
            "seconds": [float(s) for s in rng.permutation(ROUNDS[rounds]) * median],
            "bytes": int(rate * copy * 1e9 * median), "copy_rate": float(copy),
        }
        return Case(f"a record {name}", (report,))

    cases = [
        case("without fault"),
        case("of a device that was not synchronized", synchronized=False),
        case("of a CPU", device="cpu", synchronized=False),
        case("without warm-up", warm_up=0),
        at_the_limits("of five rounds, whose spread and rate are the highest that are no faults"),
        case("of four rounds", "four"),
        case("of widely spread rounds", "restless"),
        case("of uneven rounds, close to the copy", "uneven", rate=0.97),
        case("with one slow round, above the copy", "slow round", rate=1.06),
        case("a little above the copy", rate=1.08),
        case("a little above a slow copy", rate=1.005, slowest=10.1, fastest=10.9),
        case("of widely spread rounds, one of them very slow", "wide, one slow", rate=0.92),
        case("of rounds that are just narrow enough", "just narrow", rate=0.995),
        case("of rounds that are just too wide", "just wide", rate=1.005),
        case("with one run before the clock started", warm_up=1),
        case("with two runs before the clock started", warm_up=2),
        case("with several faults", "restless", rate=1.3, warm_up=0, synchronized=False),
    ]
    return [cases[k] for k in rng.permutation(len(cases))]  # otherwise every seed would have the same answers


@exercise(
    number=5, level=3, minutes=15, chapter="08-how-fast-can-a-norm-be",
    objective="tell from its record whether a timing can be believed",
    cases=cases,
    mistakes=[
        ("cpu_too", 'report["device"] == "cuda" and ->',
         "not_synchronized is reported for a CPU as well, which needs no waiting; the rule is for cuda only.",
         "mlcommons/algorithmic-efficiency/pull/430"),
        ("first_alone", "return found -> return {rule: rule == next(filter(found.get, found), None) for rule in found}",
         "only the first fault is found; a record can have several, so test each on its own."),
        ("five_too_few", "< 5 -> <= 5", "five rounds count as too few; only fewer than five are."),
        ("binary_giga", "1e9 -> 2**30",
         "the rate is in units of 2**30 bytes; a GB is 1e9 bytes, and copy_rate is in GB/s.",
         "meta-pytorch/torchcomms/pull/140"),
        ("fastest", "/ median -> / min(seconds)",
         "the rate is that of the fastest round; take the median of the seconds."),
        ("mean", "/ median -> / statistics.mean(seconds)",
         "the rate is that of the mean time, which one slow round changes; take the median of the seconds."),
        ("deviation", "q3 - q1 -> statistics.pstdev(seconds)",
         "wide_spread uses the standard deviation, which one slow round inflates; take the interquartile range."),
        ("full_range", "q3 - q1 -> max(seconds) - min(seconds)",
         "wide_spread uses the slowest minus the fastest; take the interquartile range."),
        ("absolute", "0.1 * median -> 0.1",
         "the spread is compared with 0.1 seconds; compare it with a tenth of the median."),
        ("turned_round", "rate > -> rate <",
         "above_copy is reported for rates below the copy's; the fault is a rate above it."),
    ],
)
def faults(report):
    seconds = report["seconds"]
    median = statistics.median(seconds)
    q1, _, q3 = statistics.quantiles(seconds, n=4, method="inclusive")
    rate = report["bytes"] / median / 1e9  # GB/s
    found = {}
    found["no_warm_up"] = report["warm_up"] == 0
    found["not_synchronized"] = report["device"] == "cuda" and not report["synchronized"]
    found["few_rounds"] = len(seconds) < 5
    found["wide_spread"] = q3 - q1 > 0.1 * median
    found["above_copy"] = rate > report["copy_rate"]
    return found
