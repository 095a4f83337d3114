"""The exercises on timing and precision. All times are given: no clock of this machine is read."""

import statistics
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from subnorm.checks.collect import Case, Device
from subnorm.checks.exercise import Exercise, Mistake

Array = np.ndarray[Any, Any]
Moments = tuple[int, Array, Array]  # count, mean (rows,), m2 (rows,)


# Median and spread


def _median_cases(rng: np.random.Generator) -> list[Case]:
    """Times near 40 µs in the order in which they came; one slow round in some."""

    def case(name: str, rounds: int, slow: float = 1) -> Case:
        times = rng.normal(40, 4, rounds)
        times[rounds // 3] *= slow
        return Case(name, (times,))

    return [
        case("nine rounds", 9),
        case("eight rounds, an even number", 8),
        case("eleven rounds, one of them slow", 11, slow=8),
        case("ten rounds, one of them slow", 10, slow=5),
        case("six rounds", 6),
    ]


def _halves(times: Array) -> list[Any]:
    """Quartiles as medians of the lower and the upper half."""
    ordered, n = np.sort(times), len(times)
    return [np.median(ordered[: n // 2]), np.median(ordered[(n + 1) // 2 :])]


def _summary(
    times: Array,
    middle: Callable[[Array], Any] = np.median,
    spread: Callable[[Array], Any] = lambda t: np.subtract(*np.quantile(t, (0.75, 0.25))),
) -> Array:
    """The right answer; a mistake changes one of the two numbers."""
    return np.array([middle(times), spread(times)])


median_and_spread = Exercise(
    name="median_and_spread",
    level=1,
    minutes=10,
    chapter="08-how-fast-can-a-norm-be",
    objective="report a timing as its median with the interquartile range",
    reference=_summary,
    cases=_median_cases,
    mistakes=[
        Mistake(
            "mean",
            "the first number is the mean: one slow round pulls it up; the median stays where most rounds are.",
            partial(_summary, middle=np.mean),
            source="https://github.com/vltpkg/benchmarks/pull/170",
        ),
        Mistake(
            "fastest",
            "the first number is the fastest round; the median has half of the rounds on either side.",
            partial(_summary, middle=np.min),
            source="https://github.com/flix/flix/issues/3703",
        ),
        Mistake(
            "unsorted",
            "the middle is taken in the order of the rounds; the median is the middle of the sorted times.",
            partial(_summary, middle=lambda t: (t[(len(t) - 1) // 2] + t[len(t) // 2]) / 2),
            source="https://github.com/enmasseio/timesync/issues/3",
        ),
        Mistake(
            "upper_middle",
            "of an even number of times you take the upper middle one; the median is the mean of the middle two.",
            partial(_summary, middle=lambda t: np.sort(t)[len(t) // 2]),
            source="https://github.com/SerenityOS/serenity/pull/16870",
        ),
        Mistake(
            "lower_middle",
            "of an even number of times you take the lower middle one, as torch.median does; "
            "the median is the mean of the middle two.",
            partial(_summary, middle=lambda t: np.sort(t)[(len(t) - 1) // 2]),
            source="https://github.com/pytorch/pytorch/issues/1837",
        ),
        Mistake(
            "deviation",
            "the second number is the standard deviation; the interquartile range is q3 - q1.",
            partial(_summary, spread=np.std),
        ),
        Mistake(
            "full_range",
            "the second number is the slowest minus the fastest; the interquartile range is q3 - q1.",
            partial(_summary, spread=np.ptp),
        ),
        Mistake(
            "percent",
            "np.percentile counts from 0 to 100, so that 0.25 is nearly the fastest round; "
            "take np.quantile, or 25 and 75.",
            partial(_summary, spread=lambda t: np.subtract(*np.percentile(t, (0.75, 0.25)))),
            source="https://github.com/byu-dml/metalearn/issues/67",
        ),
        Mistake(
            "exclusive",
            "these are the exclusive quartiles, the default of statistics.quantiles; "
            "asked for are those of np.quantile, which are called inclusive.",
            partial(_summary, spread=lambda t: np.subtract(*statistics.quantiles(t.tolist(), n=4)[::-2])),
            source="https://codewithsundeep.com/discussion/solution/61135376",
        ),
        Mistake(
            "halves",
            "your quartiles are medians of the lower and the upper half; "
            "asked for are those of np.quantile, which interpolate.",
            partial(_summary, spread=lambda t: np.subtract(*_halves(t)[::-1])),
            source="https://github.com/numpy/numpy/issues/26379",
        ),
        Mistake(
            "half_range",
            "the second number is half the interquartile range; it is q3 - q1, undivided.",
            partial(_summary, spread=lambda t: np.subtract(*np.quantile(t, (0.75, 0.25))) / 2),
        ),
        Mistake(
            "swapped",
            "the two numbers are swapped: the median comes first.",
            lambda times: _summary(times)[::-1],
        ),
    ],
    facts=[
        ("the first number is the median", lambda r, times: np.isclose(r[0], np.median(times))),
        ("the second is the interquartile range", lambda r, times: np.isclose(r[1], _summary(times)[1])),
    ],
)


# Rounds on a device


def _device_cases(rng: np.random.Generator) -> list[Case]:
    """The work has its own length in each of eleven runs, so that it shows which runs were timed."""

    def case(name: str, warm_up: int, rounds: int) -> Case:
        work = [float(seconds) for seconds in rng.uniform(0.02, 0.05, 11)]
        device = Device(float(rng.uniform(0.004, 0.006)), work, float(rng.uniform(2, 3)))
        return Case(name, (device, warm_up, rounds))

    return [
        case("a device with 2 warm-up runs and 6 rounds", 2, 6),
        case("a device with 3 warm-up runs and 5 rounds", 3, 5),
        case("a device with 1 warm-up run and 4 rounds", 1, 4),
        case("a device without warm-up, 4 rounds", 0, 4),
    ]


def _time(
    device: Device, warm_up: int, rounds: int,
    before: bool = True, after: bool = True, restart: bool = True, skip: int = 0, unit: float = 1,
) -> Array:  # fmt: skip
    """Times of the rounds with one thing changed: the defaults are right."""
    for _ in range(warm_up):
        device.run()
    if before:
        device.synchronize()
    seconds, start = [], device.clock()
    for _ in range(rounds):
        if restart:
            start = device.clock()
        device.run()
        if after:
            device.synchronize()
        seconds.append((device.clock() - start) / unit)
    return np.array(seconds[skip:])


def _total(device: Device, warm_up: int, rounds: int) -> float:
    """One reading of the clock around all rounds, divided by their number."""
    _time(device, warm_up, 0)
    start = device.clock()
    for _ in range(rounds):
        device.run()
    device.synchronize()
    return (device.clock() - start) / rounds


time_rounds = Exercise(
    name="time_rounds",
    level=2,
    minutes=15,
    chapter="08-how-fast-can-a-norm-be",
    objective="time work on a device that runs asynchronously",
    reference=_time,
    cases=_device_cases,
    mistakes=[
        Mistake(
            "no_sync",
            "the clock stops when the work has been launched, not when it is done; "
            "synchronize() before you read the clock for the second time.",
            partial(_time, after=False),
            source="https://github.com/pytorch/pytorch/issues/18012",
        ),
        Mistake(
            "no_sync_before",
            "the warm-up is still queued when the clock starts, so the first round waits for it; "
            "synchronize() after the warm-up, too.",
            partial(_time, before=False),
            source="https://github.com/pytorch/pytorch/issues/80129",
        ),
        Mistake(
            "no_warm_up",
            "no run is made before the clock starts, so the first round holds the compilation; "
            "make warm_up runs first.",
            lambda device, warm_up, rounds: _time(device, 0, rounds),
            source="https://github.com/deeplearning4j/dl4j-benchmark/issues/25",
        ),
        Mistake(
            "one_warm_up",
            "one run is made before the clock starts, whatever warm_up says.",
            lambda device, warm_up, rounds: _time(device, 1, rounds),
            source="https://github.com/samyama-ai/samyama-graph/issues/752",
        ),
        Mistake(
            "warm_up_counted",
            "the warm-up runs are timed and are among the results; only the rounds count.",
            lambda device, warm_up, rounds: _time(device, 0, warm_up + rounds),
            source="https://github.com/ROCm/rocm-libraries/pull/5089",
        ),
        Mistake(
            "warm_up_within",
            "the warm-up runs are taken out of the rounds, which leaves fewer; "
            "make warm_up runs, and then as many as rounds says.",
            lambda device, warm_up, rounds: _time(device, 0, rounds, skip=warm_up),
        ),
        Mistake(
            "mean",
            "the result is one number, the mean; asked for are the seconds of every round.",
            lambda device, warm_up, rounds: _time(device, warm_up, rounds).mean(),
        ),
        Mistake(
            "fastest",
            "the result is one number, the fastest round; asked for are the seconds of every round.",
            lambda device, warm_up, rounds: _time(device, warm_up, rounds).min(),
            source="https://github.com/flix/flix/issues/3703",
        ),
        Mistake(
            "around_all",
            "the clock is read around all rounds and divided, where launches hide behind the work of the round before; "
            "read it around each.",
            _total,
        ),
        Mistake(
            "one_start",
            "the clock is started once, so that each round holds those before it; start it anew in each round.",
            partial(_time, restart=False),
        ),
        Mistake(
            "milliseconds",
            "the result is in milliseconds; asked for are seconds, which is what clock() gives.",
            partial(_time, unit=1e-3),
            source="https://github.com/chainer/chainer/pull/1779",
        ),
    ],
    facts=[("there is one time for each round", lambda r, device, warm_up, rounds: np.shape(r) == (rounds,))],
)


# Bytes that a norm has to move


def _bytes_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, itemsize: int, norm: str) -> Case:
        rows, d = (int(n) for n in rng.choice(np.arange(3, 2000), 2, replace=False))
        return Case(f"{name} with {rows} rows of {d}", (rows, d, itemsize, norm))

    return [
        case("LayerNorm in float32", 4, "layer"),
        case("RMSNorm in float32", 4, "rms"),
        case("LayerNorm in float16", 2, "layer"),
        case("RMSNorm in float16", 2, "rms"),
        case("RMSNorm in float64", 8, "rms"),
    ]


def _bytes(
    rows: int, d: int, itemsize: int, norm: str,
    passes: int = 2, layer: int = 2, rms: int = 1, each_row: bool = False, statistics: int = 0,
) -> int:  # fmt: skip
    """Bytes with one thing changed: the defaults are right."""
    parameters = (layer if norm == "layer" else rms) * d * (rows if each_row else 1)
    return (passes * rows * d + parameters + statistics * rows) * itemsize


bytes_moved = Exercise(
    name="bytes_moved",
    level=2,
    minutes=10,
    chapter="08-how-fast-can-a-norm-be",
    objective="count the bytes that a norm has to move at least",
    reference=_bytes,
    cases=_bytes_cases,
    mistakes=[
        Mistake(
            "elements",
            "these are numbers, not bytes: each takes itemsize bytes.",
            lambda rows, d, itemsize, norm: _bytes(rows, d, 1, norm),
        ),
        Mistake(
            "four_bytes",
            "each number is taken for 4 bytes, whatever itemsize says.",
            lambda rows, d, itemsize, norm: _bytes(rows, d, 4, norm),
            source="https://github.com/pytorch/FBGEMM/pull/5622",
        ),
        Mistake(
            "bits",
            "itemsize is in bytes already; it is not divided by 8.",
            lambda rows, d, itemsize, norm: _bytes(rows, d, itemsize, norm) / 8,
        ),
        Mistake(
            "no_write",
            "x is read, but y is not written; both go through the memory.",
            partial(_bytes, passes=1),
            source="https://github.com/flashinfer-ai/flashinfer/pull/3411",
        ),
        Mistake(
            "two_reads",
            "x is read twice, once for the statistics and once to normalise; one read is enough if the row is kept.",
            partial(_bytes, passes=3),
        ),
        Mistake(
            "no_parameters",
            "x and y are counted, but not gamma and beta, which are read as well.",
            partial(_bytes, layer=0, rms=0),
        ),
        Mistake(
            "every_row",
            "gamma and beta are read again for every row; once is enough.",
            partial(_bytes, each_row=True),
        ),
        Mistake("beta_in_rms", "RMSNorm has no beta: it reads gamma alone.", partial(_bytes, rms=2)),
        Mistake("no_beta", "LayerNorm has two parameters, gamma and beta; one is counted.", partial(_bytes, layer=1)),
        Mistake(
            "statistics",
            "mean and rstd of each row are written, too; a forward pass that keeps nothing does not need to.",
            lambda rows, d, itemsize, norm: _bytes(rows, d, itemsize, norm, statistics=2 if norm == "layer" else 1),
        ),
    ],
    facts=[
        (
            "it is what x and y need, and less than four rows more",
            lambda r, rows, d, itemsize, norm: 2 * rows * d * itemsize <= r < 2 * (rows + 2) * d * itemsize,
        ),
        ("it is a whole number of items", lambda r, rows, d, itemsize, norm: r % itemsize == 0),
    ],
)


# Share of a copy's rate


def _share_cases(rng: np.random.Generator) -> list[Case]:
    """Norm and copy slow down together, round by round; the copy is of an array of another size."""

    def case(name: str, rounds: int, share: float) -> Case:
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


def _shares(seconds: Array, moved: int, copy_seconds: Array, size: int) -> Array:
    return (moved / seconds) / (2 * size / copy_seconds)


def _of_shares(then: Callable[[Array], Any]) -> Callable[..., Any]:
    return lambda *args: then(_shares(*args))


def _of_times(then: Callable[[Array], Any]) -> Callable[..., Any]:
    """Each row of times is made one number before they are compared."""
    return lambda seconds, moved, copy_seconds, size: _shares(then(seconds), moved, then(copy_seconds), size)


share_of_copy = Exercise(
    name="share_of_copy",
    level=2,
    minutes=10,
    chapter="08-how-fast-can-a-norm-be",
    objective="compare a norm with a copy, in bytes per second and round by round",
    reference=_of_shares(np.median),
    cases=_share_cases,
    mistakes=[
        Mistake(
            "inverted",
            "this is the copy's rate over the norm's; asked for is the norm's over the copy's.",
            _of_shares(lambda share: np.median(1 / share)),
            source="https://github.com/jimhester/libvroom/issues/194",
        ),
        Mistake(
            "times_alone",
            "times are compared, but norm and copy move different numbers of bytes; compare bytes per second.",
            lambda seconds, moved, copy_seconds, size: np.median(copy_seconds / seconds),
        ),
        Mistake(
            "copy_once",
            "the share is twice too large: a copy of size bytes reads and writes them, which is 2 * size; "
            "take moved as it comes.",
            _of_shares(lambda share: np.median(2 * share)),
            source="https://github.com/flashinfer-ai/flashinfer/pull/3411",
        ),
        Mistake(
            "ratio_of_medians",
            "you take the two medians first and divide then; "
            "divide round by round, where a slow moment falls on both, and take the median of the shares.",
            _of_times(np.median),
            source="https://github.com/orieg/php-judy/pull/91",
        ),
        Mistake(
            "ratio_of_totals",
            "all rounds are added up, or averaged, before you divide; divide round by round.",
            _of_times(np.mean),
        ),
        Mistake(
            "mean_of_shares",
            "you take the mean of the shares; asked for is their median.",
            _of_shares(np.mean),
        ),
        Mistake(
            "fastest",
            "the fastest round of each is compared, and they are different moments; divide round by round.",
            _of_times(np.min),
            source="https://github.com/delta-io/delta-kernel-rs/pull/2725",
        ),
        Mistake(
            "percent", "the share is in percent; asked for is a fraction.", _of_shares(lambda s: 100 * np.median(s))
        ),
        Mistake(
            "every_round",
            "these are the shares of all rounds; asked for is one number, their median.",
            _of_shares(lambda share: share),
        ),
        Mistake(
            "capped",
            "a share above 1 is cut off; leave it as it is: it says that something was measured wrongly.",
            _of_shares(lambda share: min(np.median(share), 1.0)),
        ),
    ],
)


# Faults of a record

#: Times of the rounds, in medians
_ROUNDS = {
    "calm": [0.97, 0.98, 0.99, 1, 1.01, 1.02, 1.03],
    "uneven": [0.92, 0.96, 0.97, 0.99, 1, 1.01, 1.03, 1.04, 1.07],
    "slow round": [0.97, 0.98, 0.98, 0.99, 1, 1.01, 1.02, 1.02, 1.9],
    "wide, one slow": [0.88, 0.92, 0.93, 0.97, 1, 1.03, 1.06, 1.08, 6],
    "restless": [0.8, 0.85, 0.9, 0.98, 1.02, 1.1, 1.15, 1.2],
    "five": [0.98, 0.99, 1, 1.01, 1.02],
    "four": [0.98, 0.99, 1.01, 1.02],
}


def _report_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, rounds: str = "calm", rate: float = 0.6, device: str = "cuda",
             warm_up: int = 3, synchronized: bool = True) -> Case:  # fmt: skip
        copy, median = rng.uniform(10, 3000), rng.uniform(5e-5, 5e-4)  # GB/s, s
        report = {
            "device": device,
            "warm_up": warm_up,
            "synchronized": synchronized,
            "seconds": [float(s) for s in rng.permutation(_ROUNDS[rounds]) * median],
            "bytes": int(rate * copy * 1e9 * median),
            "copy_rate": float(copy),
        }
        return Case(f"a record {name}", (report,))

    cases = [
        case("without fault"),
        case("of a device that was not synchronized", synchronized=False),
        case("of a CPU", device="cpu", synchronized=False),
        case("without warm-up", warm_up=0),
        case("of five rounds", "five"),
        case("of four rounds", "four"),
        case("of restless rounds", "restless"),
        case("of uneven rounds, close to the copy", "uneven", rate=0.97),
        case("with one slow round, above the copy", "slow round", rate=1.05),
        case("a little above the copy", rate=1.04),
        case("of restless rounds, one of them very slow", "wide, one slow"),
        case("with several faults", "restless", rate=1.3, warm_up=0, synchronized=False),
    ]
    return [cases[k] for k in rng.permutation(len(cases))]  # else the answers would be the same for every seed


def _interquartile_range(seconds: list[float]) -> float:
    q1, _median, q3 = statistics.quantiles(seconds, n=4, method="inclusive")
    return q3 - q1


def _faults(
    report: Mapping[str, Any],
    everywhere: bool = False, least: int = 5, giga: float = 1e9, middle: Callable[..., Any] = statistics.median,
    spread: Callable[..., Any] = _interquartile_range,
    relative: bool = True, turned: bool = False,
) -> dict[str, bool]:  # fmt: skip
    """Each rule, and whether the record breaks it, with one thing changed: the defaults are right."""
    seconds = report["seconds"]
    rate = report["bytes"] / middle(seconds) / giga  # GB/s
    allowed = 0.1 * statistics.median(seconds) if relative else 0.1
    return {
        "no_warm_up": report["warm_up"] == 0,
        "not_synchronized": not report["synchronized"] and (everywhere or report["device"] == "cuda"),
        "few_rounds": len(seconds) < least,
        "wide_spread": bool(spread(seconds) > allowed),
        "above_copy": bool(rate < report["copy_rate"] if turned else rate > report["copy_rate"]),
    }


def _first_alone(report: Mapping[str, Any]) -> dict[str, bool]:
    """As a chain of elif finds them."""
    found = _faults(report)
    first = next((rule for rule in found if found[rule]), None)
    return {rule: rule == first for rule in found}


faults = Exercise(
    name="faults",
    level=3,
    minutes=15,
    chapter="08-how-fast-can-a-norm-be",
    objective="tell from its record whether a timing can be believed",
    reference=_faults,
    cases=_report_cases,
    mistakes=[
        Mistake(
            "cpu_too",
            "not_synchronized is said of a CPU as well, which needs no synchronizing; the rule is for cuda.",
            partial(_faults, everywhere=True),
            source="https://github.com/mlcommons/algorithmic-efficiency/pull/430",
        ),
        Mistake(
            "first_alone",
            "only the first fault is found; a record can have several, so ask each question by itself.",
            _first_alone,
        ),
        Mistake(
            "five_too_few",
            "five rounds are called too few; fewer than five are.",
            partial(_faults, least=6),
        ),
        Mistake(
            "binary_giga",
            "the rate is in units of 2**30 bytes; a GB is 1e9 bytes, and copy_rate is in GB/s.",
            partial(_faults, giga=2**30),
            source="https://github.com/meta-pytorch/torchcomms/pull/140",
        ),
        Mistake(
            "fastest",
            "the rate is that of the fastest round; take the median of the seconds.",
            partial(_faults, middle=np.min),
        ),
        Mistake(
            "mean",
            "the rate is that of the mean time, which one slow round moves; take the median of the seconds.",
            partial(_faults, middle=np.mean),
        ),
        Mistake(
            "deviation",
            "wide_spread looks at the standard deviation, which one slow round blows up; take the interquartile range.",
            partial(_faults, spread=np.std),
        ),
        Mistake(
            "full_range",
            "wide_spread looks at the slowest minus the fastest; take the interquartile range.",
            partial(_faults, spread=np.ptp),
        ),
        Mistake(
            "absolute",
            "the spread is compared with 0.1 seconds; compare it with a tenth of the median.",
            partial(_faults, relative=False),
        ),
        Mistake(
            "turned_round",
            "above_copy is said of rates below the copy's; the fault is to be above it.",
            partial(_faults, turned=True),
        ),
    ],
)

# Which rows overflow


def _overflow_cases(rng: np.random.Generator) -> list[Case]:
    """Rows of d = 8 whose sums are far from the limit of float16, on either side of it.

    No other number of a row tells the two sides apart: "lone" and "pair" fit, though their largest entries are larger
    than those of "crowd", which does not; "few" does not fit, though most of its entries are small.
    """

    def row(kind: str) -> Array:
        all_alike = {"below": (66, 80), "crowd": (100, 140), "loud": (300, 400), "huge": (9000, 20000)}
        x = rng.uniform(*all_alike.get(kind, (1, 9)), 8)
        larger = {"spike": (1, 300, 400), "lone": (1, 190, 220), "pair": (2, 140, 165), "few": (3, 190, 230)}
        if kind in larger:
            count, low, high = larger[kind]
            x[rng.choice(8, count, replace=False)] = rng.uniform(low, high, count)
        return x if kind == "huge" else x * rng.choice([-1, 1], 8)

    def case(name: str, *kinds: str, shape: tuple[int, ...] = ()) -> Case:
        x = np.array([row(kind) for kind in rng.permutation(kinds)])
        return Case(name, (x.reshape(*shape, 8).astype(np.float16),))

    return [
        case("a (4, 8) batch", "calm", "crowd", "below", "spike", shape=(4,)),
        case("a square batch, (8, 8)", "calm", "below", "crowd", "huge", "loud", "spike", "lone", "pair", shape=(8,)),
        case("a (2, 3, 8) batch of sequences", "crowd", "lone", "huge", "few", "loud", "pair", shape=(2, 3)),
        case("one token, (8,), with one large entry that fits", "lone"),
        case("one token, (8,), without a large entry", "crowd"),
        case("one token, (8,), that fits", "below"),
    ]


def _sum_of_squares(x: Array, axis: Any = -1, keepdims: bool = False) -> Array:
    """Taken in float16: infinite where it overflows."""
    return np.asarray((x * x).sum(axis=axis, keepdims=keepdims, dtype=np.float16))


def _wide_sum(x: Array) -> Array:
    return np.asarray(np.square(x, dtype=np.float32).sum(-1))


overflows = Exercise(
    name="overflows",
    level=2,
    minutes=10,
    chapter="04-rmsnorm",
    objective="say which rows need the upcast before the square",
    reference=lambda x: np.isinf(_sum_of_squares(x)),
    cases=_overflow_cases,
    mistakes=[
        Mistake(
            "entries",
            "a row is found only if one of its squares overflows; squares that fit can have a sum that does not, "
            "if that is taken in float16, too.",
            lambda x: np.isinf(x * x).any(-1),
            source="https://github.com/ROCm/triton/pull/633",
        ),
        Mistake(
            "no_overflow_seen",
            "no row is found: in float32 the sum fits, and an overflow is inf, not NaN; take the sum in float16, "
            "or compare with the largest float16.",
            lambda x: np.isinf(_wide_sum(x)),
        ),
        Mistake(
            "mean",
            "you look at the mean of the squares; before the division by d there is their sum, which is larger.",
            lambda x: _wide_sum(x) / x.shape[-1] > 65504,
        ),
        Mistake(
            "not_squared",
            "you look at the sum of x; asked for is the sum of its squares.",
            lambda x: np.abs(x.astype(np.float32).sum(-1)) > 65504,
        ),
        Mistake(
            "limit_too_low",
            "you compare with 2**15 = 32768; the largest float16 is about twice that, 65504.",
            lambda x: _wide_sum(x) > 2**15,
            source="https://github.com/aopp-pred/rpe/issues/15",
        ),
        Mistake(
            "axis0",
            "the squares are added over the batch; add them over the features of each token, axis -1.",
            lambda x: np.isinf(_sum_of_squares(x, axis=0)),
        ),
        Mistake(
            "all_axes",
            "there is one answer for the whole array; each row has its own.",
            lambda x: np.isinf(_sum_of_squares(x)).any(),
        ),
        Mistake(
            "keepdims",
            "the last axis is still there, with length 1: the result has one entry for each row, shape (...).",
            lambda x: np.isinf(_sum_of_squares(x, keepdims=True)),
        ),
        Mistake(
            "turned_round",
            "this says which rows fit; asked for are those that overflow.",
            lambda x: ~np.isinf(_sum_of_squares(x)),
        ),
        Mistake(
            "places",
            "these are the places of the rows; asked for is True or False for each row.",
            lambda x: np.flatnonzero(np.isinf(_sum_of_squares(x))),
        ),
    ],
    facts=[("there is one answer for each row", lambda r, x: np.shape(r) == x.shape[:-1])],
)


# Moments of two pieces


def _moments_cases(rng: np.random.Generator) -> list[Case]:
    """Two pieces of every row, of different lengths and with means apart."""

    def piece(rows: int, count: int, dtype: str) -> Moments:
        x = rng.normal(rng.normal(0, 2, (rows, 1)), 1, (rows, count))
        means = x.mean(-1)
        return count, means.astype(dtype), np.square(x - means[:, None]).sum(-1).astype(dtype)

    def near_400() -> tuple[Moments, Moments]:
        """Whole numbers in the middle, so that every right formula is exact in float16."""
        mean, half = rng.integers(380, 420, 5), rng.integers(1, 4, 5)
        means = (mean - half, mean + half)
        one, other = ((8, m.astype(np.float16), rng.uniform(4, 12, 5).astype(np.float16)) for m in means)
        return one, other

    def case(name: str, counts: tuple[int, int], dtype: str = "float64") -> Case:
        return Case(name, tuple(piece(5, count, dtype) for count in counts))

    return [
        case("pieces of 3 and 8 numbers", (3, 8)),
        case("pieces of 12 and 5 numbers, in float32", (12, 5), dtype="float32"),
        case("a piece of 7 and a single number", (7, 1)),
        case("two pieces of 6", (6, 6)),
        Case("two pieces of 8 numbers near 400, with moments in float16", near_400(), edge=True),
    ]


def _merge(
    one: Moments, other: Moments,
    between: Callable[..., Any] = lambda delta, n, m: delta * delta * (n * m / (n + m)),
    weight: Callable[[int, int], float] = lambda n, m: m / (n + m),
    pooled: Callable[..., Any] = lambda a, n, b, m: a + b,
    divide: bool = False,
) -> Moments:  # fmt: skip
    """Moments of two pieces together, with one thing changed: the defaults are right."""
    (n, mean, m2), (m, other_mean, other_m2) = one, other
    delta = other_mean - mean  # (rows,)
    both = pooled(m2, n, other_m2, m) + between(delta, n, m)
    return n + m, mean + delta * weight(n, m), both / (n + m) if divide else both


def _raw_squares(one: Moments, other: Moments) -> Moments:
    """m2 by way of the sum of squares, n * mean**2: the same on paper."""
    (n, mean, m2), (m, other_mean, other_m2) = one, other
    total, merged = n + m, (n * mean + m * other_mean) / (n + m)
    squares = (m2 + n * (mean * mean)) + (other_m2 + m * (other_mean * other_mean))
    return total, merged, squares - total * (merged * merged)


merge_moments = Exercise(
    name="merge_moments",
    level=3,
    minutes=20,
    chapter="03-layer-normalization",
    objective="take mean and variance of a row that comes in pieces, in one pass",
    reference=_merge,
    cases=_moments_cases,
    mistakes=[
        Mistake(
            "sum_alone",
            "the two m2 are added, and nothing else; the distance between the two means adds delta² n m / (n + m).",
            partial(_merge, between=lambda delta, n, m: 0 * delta),
        ),
        Mistake(
            "mean_of_means",
            "the mean is halfway between the two means, which is right for equal counts only; weigh them by n and m.",
            partial(_merge, weight=lambda n, m: 0.5),
            source="https://github.com/oracle/tribuo/pull/215",
        ),
        Mistake(
            "weights_swapped",
            "the mean moves by the share of the first piece; "
            "it moves towards the second by the second's share, m / (n + m).",
            partial(_merge, weight=lambda n, m: n / (n + m)),
        ),
        Mistake(
            "not_squared",
            "delta enters m2 unsquared; it is delta² n m / (n + m).",
            partial(_merge, between=lambda delta, n, m: delta * (n * m / (n + m))),
        ),
        Mistake(
            "undivided",
            "delta² n m is not divided; the term is delta² n m / (n + m).",
            partial(_merge, between=lambda delta, n, m: delta * delta * (n * m)),
        ),
        Mistake(
            "one_count",
            "the term is delta² times the second count's share; the first count is missing: delta² n m / (n + m).",
            partial(_merge, between=lambda delta, n, m: delta * delta * (m / (n + m))),
        ),
        Mistake(
            "full_weight",
            "delta² is multiplied by the whole count n + m; the term is delta² n m / (n + m).",
            partial(_merge, between=lambda delta, n, m: delta * delta * (n + m)),
        ),
        Mistake(
            "averaged",
            "the two m2 are averaged; they are sums of squares, so they add.",
            partial(_merge, pooled=lambda a, n, b, m: (a + b) / 2),
        ),
        Mistake(
            "variances_for_m2",
            "each m2 is divided by its count first; m2 is the sum of the squared deviations, and sums add.",
            partial(_merge, pooled=lambda a, n, b, m: a / n + b / m),
            source="https://github.com/Oneflow-Inc/oneflow/issues/7471",
        ),
        Mistake(
            "variance",
            "the third result is divided by the count: that is the variance; "
            "asked for is m2, the sum, which can be merged again.",
            partial(_merge, divide=True),
        ),
        Mistake(
            "raw_squares",
            "m2 is a difference of raw squares, n * mean**2; where the mean is large, they overflow or lose the digits "
            "of m2. Take the difference of the means first, then square.",
            _raw_squares,
            source="https://github.com/matrixorigin/matrixone/pull/27549",
        ),
    ],
    facts=[
        ("the counts add up", lambda r, one, other: r[0] == one[0] + other[0]),
        ("the mean is right", lambda r, one, other: np.allclose(r[1], _merge(one, other)[1], rtol=1e-3)),
        ("m2 is right", lambda r, one, other: np.allclose(r[2], _merge(one, other)[2], rtol=1e-3)),
    ],
)


EXERCISES = [median_and_spread, time_rounds, bytes_moved, share_of_copy, faults, overflows, merge_moments]
