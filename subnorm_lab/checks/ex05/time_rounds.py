import numpy as np

from subnorm_lab.checks.shared import Device, case, drawn, exercise


def inputs(rng, warm_up, rounds):
    """The work takes a different time in each of eleven runs, which reveals the runs that were timed."""
    work = [float(seconds) for seconds in rng.uniform(0.02, 0.05, 11)]
    device = Device(float(rng.uniform(0.004, 0.006)), work, float(rng.uniform(2, 3)))
    return device, warm_up, rounds


def around_all(device, warm_up, rounds, *, unit=1):
    for _ in range(warm_up):
        device.run()
    device.synchronize()
    start = device.clock()
    for _ in range(rounds):
        device.run()
    device.synchronize()
    return unit * (device.clock() - start) / rounds


@exercise(
    number=2, level=2, minutes=15, chapter="08-how-fast-can-a-norm-be",
    objective="time work on a device that runs asynchronously",
    cases=drawn(inputs,
        case("a device with 2 warm-up runs and 6 rounds", 2, 6),
        case("a device with 3 warm-up runs and 5 rounds", 3, 5),
        case("a device with 1 warm-up run and 4 rounds", 1, 4),
        case("a device without warm-up, 4 rounds", 0, 4),
        case("a device with 2 warm-up runs and one round", 2, 1, edge=True),
    ),
    facts=[("there is one time for each round", lambda r, device, warm_up, rounds: np.shape(r) == (rounds,))],
    parameter="unit", variants=[
        ("seconds", 1),
        ("milliseconds", 1000, "runs in seconds -> runs in milliseconds", "3) -> 0)", "[3.5, 3.5] -> [3500., 3500.]",
         "Seconds of each round -> Milliseconds of each round"),
    ],
    mistakes=[
        ("no_sync", "device.synchronize()  # the round is done ->",
         "the clock stops when the work has been launched, not when it is done; "
         "call synchronize() before you read the clock again.", "pytorch/pytorch/issues/18012"),
        ("no_sync_before", "device.synchronize()  # the warm-up is done ->",
         "the warm-up is still queued when the clock starts, so the first round waits for it; "
         "call synchronize() after the warm-up too.", "pytorch/pytorch/issues/80129"),
        ("no_warm_up", "range(warm_up) -> range(0)",
         "there is no run before the clock starts, so the first round includes the compilation; "
         "make warm_up runs first.", "deeplearning4j/dl4j-benchmark/issues/25"),
        ("one_warm_up", "range(warm_up) -> range(1)",
         "there is always one run before the clock starts; make warm_up runs.", "samyama-ai/samyama-graph/issues/752"),
        ("warm_up_counted", ("range(warm_up) -> range(0)", "range(rounds) -> range(warm_up + rounds)"),
         "the results include the warm-up runs; only the rounds count.", "ROCm/rocm-libraries/pull/5089"),
        ("warm_up_within", ("range(warm_up) -> range(0)", "np.array(seconds) -> np.array(seconds[warm_up:])"),
         "the warm-up runs are taken from the rounds, which leaves fewer rounds; "
         "make warm_up runs, and then as many as rounds says."),
        ("mean", "np.array -> np.mean",
         "the result is one number, the mean; the task asks for the time of every round."),
        ("fastest", "np.array -> np.min",
         "the result is one number, the fastest round; the task asks for the time of every round.",
         "flix/flix/issues/3703"),
        ("around_all", around_all,
         "you time all rounds together and divide, so launches hide behind the work of the previous round; "
         "time each round."),
        ("one_start", ("start = device.clock() ->", "seconds = [] -> seconds, start = [], device.clock()"),
         "the clock starts once, so each round includes the earlier ones; start it again in each round."),
        ("milliseconds", "unit * -> 1000 * unit *",
         "the result is 1000 times too large: clock() returns seconds, and the task asks for {unit}.",
         "chainer/chainer/pull/1779"),
    ],
)
def time_rounds(device, warm_up, rounds, *, unit=1):
    for _ in range(warm_up):
        device.run()
    device.synchronize()  # the warm-up is done
    seconds = []
    for _ in range(rounds):
        start = device.clock()
        device.run()
        device.synchronize()  # the round is done
        seconds.append(device.clock() - start)
    return unit * np.array(seconds)
