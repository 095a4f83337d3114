"""How a number is written in the sentence under a live figure."""

import pytest

from subnorm_lab.live import number


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (0.0342, "0.034"),
        (-1.62, "−1.6"),
        (99.7, "100"),
        (4567, "4600"),
        (9960, "1 × 10⁴"),
        (45210.0, "4.5 × 10⁴"),
        (0.000999, "0.001"),
        (2.04e-10, "2 × 10⁻¹⁰"),
        (-3.14e-25, "−3.1 × 10⁻²⁵"),
    ],
)
def test_two_digits_and_a_power_of_ten_where_it_helps(value: float, written: str) -> None:
    assert number(value).replace("\N{NO-BREAK SPACE}", " ") == written


def test_a_line_does_not_end_inside_a_number() -> None:
    assert " " not in number(2e-10)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        number(value)
