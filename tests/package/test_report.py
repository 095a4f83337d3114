"""A quoted number is rejected if it rounds only by luck, and its text reaches the page."""

from typing import Any

import IPython.display
import pytest

from subnorm_lab.report import say, table, typeset


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []

    def record(data: dict[str, str], metadata: dict[str, Any] | None = None) -> None:
        shown.append({"data": data, "metadata": metadata})

    monkeypatch.setattr(IPython.display, "publish_display_data", record)
    return shown


def test_a_number_is_shown_and_carried(outputs: list[dict[str, Any]]) -> None:
    say("gain", 1.23456, ".3f")
    assert outputs == [{"data": {"text/plain": "gain = 1.235"}, "metadata": {"said": {"gain": "1.235"}}}]


@pytest.mark.parametrize(
    ("value", "spec", "text"),
    [(0.0, ".2f", "0.00"), (-2.0, ".1f", "-2.0"), (12345, ",.0f", "12,345"), (2e-9, ".0e", "2\u00a0×\u00a010⁻⁹")],
)
def test_any_format_will_do(value: float, spec: str, text: str, outputs: list[dict[str, Any]]) -> None:
    say("x", value, spec)
    assert outputs[0]["metadata"] == {"said": {"x": text}}


@pytest.mark.parametrize("value", [0.125, 0.125 + 1e-9, 0.125 - 1e-9, -0.125])
def test_a_number_between_two_texts_is_refused(value: float, outputs: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match=r"share = .* only by luck .* Show fewer digits") as error:
        say("share", value)
    assert repr(value) in str(error.value)
    assert not outputs
    say("share", value, ".1f")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_is_not_finite_is_refused(value: float, outputs: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match=r"must be finite; loss = .*\. Look at"):
        say("loss", value)
    assert not outputs


@pytest.mark.parametrize("value", [1e-17, -1e-17, 0.004, -0.004])
def test_a_number_of_which_nothing_is_left_is_refused(value: float, outputs: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match=r"gap = .* became -?0\.00 .*more digits"):
        say("gap", value)
    assert not outputs


def test_a_trained_value_needs_more_room(outputs: list[dict[str, Any]]) -> None:
    say("loss", 1.23496, ".2f", noise=1e-5)
    with pytest.raises(ValueError, match=r"noise 0\.0001"):
        say("loss", 1.23496, ".2f", noise=1e-4)
    assert len(outputs) == 1


def test_a_table_is_markdown_and_text(outputs: list[dict[str, Any]]) -> None:
    table(["norm", "time"], (row for row in [["layer", "1.0"], ["rms", 2]]))
    assert outputs[0]["data"] == {
        "text/markdown": "| norm | time |\n|---|---|\n| layer | 1.0 |\n| rms | 2 |",
        "text/plain": "norm | time\nlayer | 1.0\nrms | 2",
    }


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("2e+02", "200"),
        ("4e-03", "0.004"),
        ("1.4e+04", "1.4 × 10⁴"),
        ("less than 1e-171", "less than 10⁻¹⁷¹"),
        ("3.7e-08 → 1.4e-07 <!-- claim: x -->", "3.7 × 10⁻⁸ → 1.4 × 10⁻⁷ <!-- claim: x -->"),
        ("7e+03 to 8.25", "7000 to 8.25"),
        ("`eps = 1e-8`", "`eps = 1e-8`"),  # code
        ("0.50", "0.50"),
    ],
)
def test_a_table_writes_powers_of_ten_as_print_does(cell: str, text: str, outputs: list[dict[str, Any]]) -> None:
    assert typeset(cell).replace("\N{NO-BREAK SPACE}", " ") == text
    table(["size"], [[cell]])
    assert outputs[0]["data"]["text/markdown"].endswith(f"| {typeset(cell)} |")
    assert outputs[0]["data"]["text/plain"] == f"size\n{cell}"
