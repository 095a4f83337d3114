"""Chapter 08, How fast can a norm be?, and its deep dive: what their turns promise. None depends on a clock."""

import re

from helpers.turns import turned


def last_numbers(printed):
    """The last number of each line."""
    return [float(re.findall(r"\d[\d.]*(?:e[+-]\d+)?", line)[-1]) for line in printed.splitlines()]


def test_a_single_row_pays_for_gain_and_shift_as_well():
    at = {rows: last_numbers(run.printed) for rows, run in turned("08-how-fast-can-a-norm-be", "rows").items()}
    assert at["4096"] == [12, 2]
    assert at["16"][0] - 12 < 0.2
    assert at["16"][1] - 2 < 0.2
    assert at["1"] == [14, 4]


def test_only_the_product_depends_on_the_width_and_a_narrow_one_waits_for_memory_too():
    at = {width: last_numbers(run.printed) for width, run in turned("08-how-fast-can-a-norm-be", "width").items()}
    assert at["4096"][:2] == at["64"][:2] == at["4"][:2]
    product = {width: found[2] for width, found in at.items()}
    assert product["4096"] > 40 * product["64"] > 400 * product["4"]
    assert product["4"] < 1.5 * at["4"][1]


def test_without_its_term_the_borrowed_gradient_is_off_by_little_and_twice_is_as_wrong():
    at = turned("08-how-fast-can-a-norm-be", "term")
    off = {term: float((run.dx - run.expected).abs().max()) for term, run in at.items()}
    assert off["1.0"] < 1e-12
    assert 0.05 < off["0.0"] < 0.05 * float(at["0.0"].expected.abs().max())
    assert abs(off["2.0"] - off["0.0"]) < 1e-9


def test_only_adding_one_after_the_other_gets_much_worse_with_the_length():
    at = {n: last_numbers(run.printed) for n, run in turned("08-how-fast-can-a-norm-be", "summands").items()}
    in_order, lanes, halves = zip(*(at[n] for n in ("64", "4096", "16384")), strict=True)
    assert in_order[0] < in_order[1] / 3 < in_order[2] / 5
    assert max(halves) < 1.5 * min(halves)
    assert lanes[2] < in_order[2] / 10


def test_the_printed_speeds_counted_four_bytes_and_two_of_them_beat_the_roof():
    at = {entry: run.printed for entry, run in turned("08-how-fast-can-a-norm-be", "entry").items()}
    for entry, printed in at.items():
        shown = [re.findall(r"\d+", line) for line in printed.splitlines()]
        assert all(written == counted for written, counted in shown) == (entry == "4")
    assert [printed.count("above the roof") for printed in at.values()] == [2, 0, 0]


def test_the_check_of_a_record_sees_a_slip_of_one_percent():
    at = {slip: run.printed.strip() for slip, run in turned("08a-measure-your-gpu", "slip").items()}
    assert at["0.5"] == at["1.01"] == "refused for rms_builtin.seconds"
    assert at["1.0"] == "accepted"


def test_a_gpu_needs_less_time_for_a_small_array_than_for_a_call():
    at = {rows: last_numbers(run.printed) for rows, run in turned("08a-measure-your-gpu", "rows").items()}
    for rows, (forward, backward) in at.items():
        assert 1.4 < backward / forward < 1.8
        assert forward * 16384 / int(rows) < 1.6 * at["16384"][0]
    assert at["16384"][0] > 50  # microseconds
    assert 3 < at["1024"][0] < 8
    assert at["1"][1] < 0.1
