"""Other right answers to the exercises on timing and precision, and answers with two mistakes at once."""

import math
import statistics

import numpy as np
import torch
from checks.combined import both

from subnorm_lab import checks
from subnorm_lab.checks.edited import Edited

# Right answers


def by_percentile(times):
    q1, middle, q3 = np.percentile(times, [25, 50, 75])
    return middle, q3 - q1


def by_standard_library(times):
    q1, middle, q3 = statistics.quantiles(sorted(map(float, times)), n=4, method="inclusive")
    return [middle, q3 - q1]


def by_sorting(times):
    ordered = sorted(times)

    def quantile(q):
        place = q * (len(ordered) - 1)
        low = math.floor(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])

    return quantile(0.5), quantile(0.75) - quantile(0.25)


def by_torch_quantile(times):
    q = torch.quantile(times, torch.tensor([0.25, 0.5, 0.75], dtype=times.dtype))
    return q[1], q[2] - q[0]


def rounds_as_list(device, warm_up, rounds):
    for _ in range(warm_up):
        device.run()
        device.synchronize()
    seconds = []
    for _ in range(rounds):
        device.synchronize()
        start = device.clock()
        device.run()
        device.synchronize()
        seconds.append(device.clock() - start)
    return seconds


def rounds_as_differences(device, warm_up, rounds):
    marks = []
    for k in range(warm_up + rounds + 1):
        if k:
            device.run()
        device.synchronize()
        marks.append(device.clock())
    return np.diff(marks)[warm_up:]


def bytes_by_array(rows, d, itemsize, norm):
    x = rows * d * itemsize
    parameters = {"layer": ["gamma", "beta"], "rms": ["gamma"]}[norm]
    return x + x + len(parameters) * d * itemsize


def bytes_by_torch(rows, d, itemsize, norm):
    dtype = {2: torch.float16, 4: torch.float32, 8: torch.float64}[itemsize]
    arrays = [(rows, d), (rows, d), (d,), *([(d,)] if norm == "layer" else [])]
    return sum(torch.empty(shape, dtype=dtype).nbytes for shape in arrays)


def share_by_loop(seconds, moved, copy_seconds, size):
    rates = [(moved / s, 2 * size / c) for s, c in zip(seconds, copy_seconds, strict=True)]
    return statistics.median(norm / copy for norm, copy in rates)


def share_by_torch(seconds, moved, copy_seconds, size):
    return torch.quantile(copy_seconds.div(seconds), 0.5) * moved / size / 2


def overflow_step_by_step(x):
    total = np.zeros(x.shape[:-1], np.float16)
    for k in range(x.shape[-1]):
        total = total + x[..., k] * x[..., k]
    return ~np.isfinite(total)


def overflow_by_mean(x):
    """mean() of PyTorch adds up in float32, and then rounds: d times the mean in a wide type."""
    return x.to(torch.float32).pow(2).mean(-1) * x.size(-1) > 65504


def merged_in_float32(one, other):
    (n, mean, m2), (m, other_mean, other_m2) = one, other
    delta = other_mean.float() - mean.float()
    merged = mean.float() + delta * m / (n + m)
    total = m2.float() + other_m2.float() + delta.pow(2) * n * m / (n + m)
    return n + m, merged.to(mean.dtype), total.type_as(m2)


def merged_by_deviations(one, other):
    (n, mean, m2), (m, other_mean, other_m2) = one, other
    merged = (n * mean + m * other_mean) / (n + m)
    return n + m, merged, m2 + n * (mean - merged) ** 2 + other_m2 + m * (other_mean - merged) ** 2


def merged_from_the_other_side(one, other):
    (n, mean, m2), (m, other_mean, other_m2) = one, other
    back = mean - other_mean
    return [n + m, other_mean + back * (n / (n + m)), back**2 * m / (n + m) * n + other_m2 + m2]


def merged_by_torch(one, other):
    (n, mean, m2), (m, other_mean, other_m2) = one, other
    delta = other_mean.sub(mean)
    return n + m, torch.lerp(mean, other_mean, m / (n + m)), m2 + other_m2 + delta.square() * (n * m / (n + m))


def faults_by_sorting(report):
    q1, middle, q3 = statistics.quantiles(report["seconds"], n=4, method="inclusive")
    return {
        "above_copy": report["bytes"] > report["copy_rate"] * 1e9 * middle,
        "wide_spread": (q3 - q1) / middle > 0.1,
        "few_rounds": not len(report["seconds"]) >= 5,
        "not_synchronized": report["device"] == "cuda" and not report["synchronized"],
        "no_warm_up": not report["warm_up"],
    }


def faults_as_arrays(report):
    times = torch.tensor(report["seconds"], dtype=torch.float64)
    q1, middle, q3 = torch.quantile(times, torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64))
    return {
        "no_warm_up": np.equal(report["warm_up"], 0),
        "not_synchronized": report["device"] != "cpu" and report["synchronized"] is False,
        "few_rounds": times.numel() < 5,
        "wide_spread": q3 - q1 > middle / 10,
        "above_copy": report["bytes"] / middle / 1e9 > report["copy_rate"],
    }


def in_float32(times):
    times = np.asarray(times, np.float32)
    return np.median(times), np.subtract(*np.quantile(times, [0.75, 0.25]))


def share_in_float32(seconds, moved, copy_seconds, size):
    seconds, copy_seconds = seconds.astype(np.float32), copy_seconds.astype(np.float32)
    return np.median((np.float32(moved) / seconds) / (np.float32(2 * size) / copy_seconds))


def faults_in_float32(report):
    times = np.array(report["seconds"], np.float32)
    q1, middle, q3 = np.percentile(times, [25, 50, 75])
    found = {"no_warm_up": report["warm_up"] < 1, "few_rounds": bool(len(times) <= 4)}
    found["not_synchronized"] = report["device"].startswith("cuda") and not report["synchronized"]
    found["wide_spread"] = bool(q3 - q1 > middle / 10)
    return found | {"above_copy": bool(report["bytes"] / 1e9 / middle > report["copy_rate"])}


RIGHT = {
    "median_and_spread": [by_percentile, by_standard_library, by_sorting, by_torch_quantile, in_float32],
    "time_rounds": [rounds_as_list, rounds_as_differences],
    "bytes_moved": [bytes_by_array, bytes_by_torch],
    "share_of_copy": [
        share_by_loop,
        lambda seconds, moved, copy_seconds, size: np.quantile(copy_seconds / seconds, 0.5) * moved / (2 * size),
        share_by_torch,
        share_in_float32,
    ],
    "overflows": [
        lambda x: (x.astype(np.float64) ** 2).sum(-1) > np.finfo(np.float16).max,
        overflow_step_by_step,
        lambda x: x.float().square().sum(dim=-1) > torch.finfo(torch.float16).max,
        lambda x: torch.isinf((x * x).sum(-1, dtype=torch.float16)),
        overflow_by_mean,
    ],
    "merge_moments": [merged_by_deviations, merged_from_the_other_side, merged_by_torch, merged_in_float32],
    "faults": [faults_by_sorting, faults_as_arrays, faults_in_float32],
}

# Answers that inspect their inputs instead of measuring, and wrong rules that hold for too many records and rows


def from_the_attributes_of_the_device(device, warm_up, rounds):
    work = [*device.work] * (warm_up + rounds)
    first = [device.first] + [0] * (warm_up + rounds)
    return [device.launch + work[k] + first[k] for k in range(warm_up, warm_up + rounds)]


def from_inside_a_function_of_the_device(device, warm_up, rounds):
    """Inspect the functions without running anything."""
    held = getattr(device.run, "__closure__", None)
    return from_the_attributes_of_the_device(held[0].cell_contents if held else device, warm_up, rounds)


def spread_beside_the_mean(report):
    seconds = report["seconds"]
    q1, _, q3 = statistics.quantiles(seconds, n=4, method="inclusive")
    return faults_by_sorting(report) | {"wide_spread": q3 - q1 > 0.1 * statistics.mean(seconds)}


def largest_above(limit):
    return lambda x: np.abs(x).max(-1) > limit


def as_wide(x):
    return np.abs(x.astype(np.float64))


def quartiles(method):
    def answer(report):
        q1, middle, q3 = statistics.quantiles(report["seconds"], n=4, method=method)
        return faults_by_sorting(report) | {"wide_spread": q3 - q1 > 0.1 * middle}

    return answer


def fewer_warm_ups_than(least):
    return lambda report: faults_by_sorting(report) | {"no_warm_up": report["warm_up"] < least}


def sorted_in_place(report):
    report["seconds"].sort()
    return faults_by_sorting(report)


def in_whole_gigabytes(report):
    rate = report["bytes"] / statistics.median(report["seconds"]) // 1e9
    return faults_by_sorting(report) | {"above_copy": rate > report["copy_rate"]}


def on_the_limit(report):
    seconds = report["seconds"]
    q1, middle, q3 = statistics.quantiles(seconds, n=4, method="inclusive")
    return faults_by_sorting(report) | {"wide_spread": q3 - q1 >= 0.1 * middle}


def at_the_copy(report):
    rate = report["bytes"] / statistics.median(report["seconds"]) / 1e9
    return faults_by_sorting(report) | {"above_copy": rate >= report["copy_rate"]}


def capped_at_twice(seconds, moved, copy_seconds, size):
    return min(checks.share_of_copy.reference(seconds, moved, copy_seconds, size), 2.0)


UNDESERVED = {
    "share_of_copy": [capped_at_twice],
    "time_rounds": [from_the_attributes_of_the_device, from_inside_a_function_of_the_device],
    "faults": [
        spread_beside_the_mean,
        quartiles("exclusive"),
        *map(fewer_warm_ups_than, (2, 3)),
        sorted_in_place,
        in_whole_gigabytes,
        on_the_limit,
        at_the_copy,
    ],
    "overflows": [
        *map(largest_above, (90, 120, 150)),
        lambda x: x.shape[-1] * as_wide(x).max(-1) ** 2 > 65504,
        lambda x: (as_wide(x).max(-1) > 256) | (as_wide(x).mean(-1) > 90),
        lambda x: x.astype(float).var(-1) * x.shape[-1] > 65504,
    ],
}

# Two mistakes at once

SYNC_ONCE = "device.synchronize()  # the round is done -> if not seconds: device.synchronize()"
COMBINED = {
    "median_and_spread": both("median_and_spread", "mean deviation, swapped full_range, unsorted percent"),
    "time_rounds": [
        *both("time_rounds", "milliseconds warm_up_counted, mean no_warm_up"),
        Edited(checks.time_rounds.reference, "range(warm_up) -> range(0)", SYNC_ONCE),
    ],
    "bytes_moved": both("bytes_moved", "elements no_parameters, two_reads beta_in_rms"),
    "share_of_copy": [
        *both("share_of_copy", "inverted copy_once, percent mean_of_shares"),
        Edited(checks.share_of_copy.reference, "np.median(rate / copy_rate) -> min(copy_seconds) / min(seconds)"),
    ],
    "overflows": both("overflows", "entries turned_round, mean axis0"),
    "merge_moments": both("merge_moments", "mean_of_means sum_alone, weights_swapped undivided"),
    "faults": [
        *both("faults", "mean deviation, cpu_too five_too_few"),
        *(Edited(checks.faults.reference, f"rate > -> rate > {margin} *") for margin in (1.05, 1.1, 0.95)),
    ],
}
