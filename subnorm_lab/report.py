"""Publish a cell's results for the page: a number that prose can quote, or a table."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

#: The key for quoted numbers in an output's metadata.
SAID = "said"


def say(name: str, value: float, spec: str = ".2f", noise: float = 1e-6) -> None:
    """Show ``name = value`` under the cell, rounded: for the reader of a proof, and for prose that quotes it.

    Args:
        name: the name by which prose quotes the number: ``0.5<!-- 03:name -->`` for chapter 03.
        value: the measured number.
        spec: format, as in :func:`format`.
        noise: relative error to expect on another machine: 1e-6 for plain arithmetic, 1e-4 for a trained value.

    Raises:
        ValueError: the value is not finite; it rounds to zero; or its noise could change the rounded text, so that
            another machine would not reproduce it.
    """
    value = float(value)
    text = format(value, spec)
    if not math.isfinite(value):
        raise ValueError(f"a quoted number must be finite; {name} = {value}. Look at the cell that measured it.")
    if value and not any(digit in text for digit in "123456789"):
        raise ValueError(
            f"a quoted number must keep a significant digit; {name} = {value!r} became {text} with {spec!r}. "
            f"Show more digits, or assert a bound and quote that."
        )
    if any(format(value * (1 + d), spec) != text for d in (-noise, noise)):
        raise ValueError(
            f"a quoted number must round the same on every machine; {name} = {value!r} rounds to {text} only by luck "
            f"with {spec!r} and noise {noise:g}. Show fewer digits."
        )
    text = typeset(text)
    publish({"text/plain": f"{name} = {text}"}, metadata={SAID: {name: text}})


def said(output: Mapping[str, Any]) -> dict[str, str]:
    """The quoted numbers in an output of a notebook, {name: text}."""
    numbers: dict[str, str] = output.get("metadata", {}).get(SAID, {})
    return numbers


def interval(values: npt.ArrayLike, spec: str = ".2f") -> str:
    """The smallest and the largest number, "0.12 to 0.34", each in the format ``spec``; once if both read the same."""
    least, most = f"{np.min(values):{spec}}", f"{np.max(values):{spec}}"
    return least if least == most else f"{least} to {most}"


SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_POWER = re.compile(r"`[^`]*`|<!--.*?-->|(?<![\w.])(-?\d(?:\.\d+)?)e([+-]\d+)\b")


def times_ten_to(power: int) -> str:
    """The factor after a number's digits, as print writes it, kept on the digits' line."""
    return "\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10" + str(power).translate(SUPERSCRIPT)


def typeset(text: str) -> str:
    """Numbers as print writes them, but not in code: ``2e+02`` as 200, ``4.2e-07`` as 4.2 × 10⁻⁷, ``1e-8`` as 10⁻⁸."""

    def without_e(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        digits, power = found[1], int(found[2])
        if -4 < power < 4:
            return f"{Decimal(found[0]):f}"
        return times_ten_to(power)[3:] if digits == "1" else digits + times_ten_to(power)

    return _POWER.sub(without_e, text)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Show a table, as Markdown where the page can render it and as plain text elsewhere.

    Args:
        columns: the headings.
        rows: the cells; pass numbers as rounded text, so that they are the same on every machine.
    """
    lines = [[str(cell) for cell in row] for row in (columns, *rows)]
    markdown = ["| " + " | ".join(typeset(cell) for cell in line) + " |" for line in lines]
    markdown.insert(1, "|" + "---|" * len(columns))
    publish({"text/markdown": "\n".join(markdown), "text/plain": "\n".join(" | ".join(x) for x in lines)})


def claimed_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Show a table of claims: each row ends with one more item, a comment that names its claim.

    The comment goes into the last cell. A page of the book shows it as a mark; JupyterLab and GitHub show nothing, and
    a column of its own would look empty there.
    """
    table(columns, [(*cells, f"{last} {claim}") for *cells, last, claim in rows])


def publish(forms: dict[str, str], metadata: dict[str, Any] | None = None) -> None:
    """Give a notebook all forms of an output; without IPython, as in a page of the book, print the plain one."""
    try:
        from IPython.display import publish_display_data
    except ModuleNotFoundError:
        print(forms["text/plain"])
    else:
        publish_display_data(forms, metadata)
