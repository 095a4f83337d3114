"""A mistake is the text of the right answer with pieces replaced, each of which occurs exactly once."""

import runpy

import pytest

from subnorm_lab.checks.collect import Case
from subnorm_lab.checks.edited import Edited
from subnorm_lab.checks.exercise import exercise

GAIN = 2


def doubled(x):
    y = GAIN * x
    return y + 0


def halved(
    x,
):
    return x / GAIN


# a comment behind it


def test_a_piece_is_replaced_or_taken_away():
    assert Edited(doubled, "GAIN -> 3")(5) == 15
    assert Edited(doubled, "GAIN * ->", "y + 0 -> y + 1")(5) == 6
    assert Edited(doubled)(5) == 10


def test_the_text_ends_where_the_function_ends():
    assert Edited(halved, "/ -> *").text.rstrip() == "def halved(\n    x,\n):\n    return x * GAIN"


def test_the_text_ends_before_the_next_statement(tmp_path):
    file = tmp_path / "close.py"
    file.write_text("import math\ndef root(x):\n    return math.sqrt(x)\nnext_statement = 1\n")
    names = runpy.run_path(str(file))
    assert Edited(names["root"]).text == "def root(x):\n    return math.sqrt(x)\n"


def test_the_names_of_the_file_are_those_of_the_edited_one(monkeypatch):
    tripled = Edited(doubled, "+ 0 ->")
    monkeypatch.setitem(globals(), "GAIN", 3)
    assert tripled(5) == 15


@pytest.mark.parametrize(
    ("change", "piece", "times"),
    [("z -> 1", "z", 0), ("y -> z", "y", 2), (("+ 0 ->", "+ 0 -> + 1"), "+ 0", 0), ("-> 1", "", 0)],
)
def test_a_piece_that_does_not_occur_once_is_an_error_that_names_it(change, piece, times):
    made = exercise(mistakes=[("tag", change, "you did it.")], level=1)
    with pytest.raises(ValueError, match="the mistake 'tag' of doubled: ") as caught:
        made(doubled)
    assert f"{piece!r} occurs {times} times in doubled, not once" in str(caught.value)


def test_a_row_is_a_mistake_with_the_address_of_its_source():
    rows = [
        ("one", "+ 0 -> + 1", "you added 1."),
        ("two", lambda x: x + 2, "you added 2.", "somebody/model/issues/3"),
        ("three", "* x -> + x", "you added.", "https://discuss.pytorch.org/t/3"),
    ]
    made = exercise(
        number=7, level=1, minutes=5, chapter="02-residual-connections", objective="double",
        cases=lambda rng: [Case("a number", (1.5,))], mistakes=rows,
    )(doubled)  # fmt: skip
    assert (made.name, made.reference, made.number) == ("doubled", doubled, 7)
    assert [mistake.answer(1.5) for mistake in made.mistakes] == [4, 3.5, 3.5]
    assert [m.source for m in made.mistakes] == [
        "", "https://github.com/somebody/model/issues/3", "https://discuss.pytorch.org/t/3",
    ]  # fmt: skip
    assert made(doubled)
    assert [made(mistake.answer).tag for mistake in made.mistakes] == ["one", "value", "value"]
