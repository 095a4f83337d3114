"""Where a check draws its lines: how far off is wrong, which number it names, and what it says of a wrong form."""

import dataclasses

import numpy as np
import pytest

from subnorm_lab.checks.collect import Case, Outcome, Sublayer, outcomes_of
from subnorm_lab.checks.exercise import Exercise, Mistake, Result, difference, short
from subnorm_lab.checks.sentences import SENTENCES


def difference_of(got, wanted):
    """(tag, words) of two values; None where they agree."""
    return difference(Outcome(value=got), Outcome(value=wanted))


def an_exercise(reference, *cases, mistakes=(), facts=()):
    named = [Mistake(tag, f"you did {tag}.", answer) for tag, answer in mistakes]
    return Exercise("double", 1, 5, "03-layer-normalization", "x", reference, lambda rng: [*cases], named, facts)


def double(x):
    return 2 * x


ONE, TWO = Case("one", (np.array([1.0, 2.0]),)), Case("two", (np.array([[3.0]]),))
EDGE = Case("the edge", (np.array([0.0]),), edge=True)


@pytest.mark.parametrize(("dtype", "rtol", "atol"), [("f2", 3e-3, 3e-3), ("f4", 1e-3, 1e-3), ("f8", 1e-4, 1e-5)])
@pytest.mark.parametrize("wanted", [0.0, 100.0])
def test_how_far_off_is_wrong(dtype, rtol, atol, wanted):
    limit = atol + rtol * wanted
    right = np.array([wanted], dtype)
    assert difference_of(right + np.array(limit / 2, dtype), right) is None
    assert difference_of(right + np.array(2 * limit, dtype), right)[0] == "value"


@pytest.mark.parametrize(("dtype", "atol"), [("f2", 3e-3), ("f4", 1e-3), ("f8", 1e-5)])
def test_small_numbers_are_compared_with_their_own_size(dtype, atol):
    """A rate of 0.003 rounded to five decimals is another rate; among larger numbers a small one may be off by more."""
    small, beside = np.array([0.003, 0], dtype), np.array([0, 3], dtype)
    assert difference_of(small + np.array([0, atol * 0.002], dtype), small) is None
    assert difference_of(small + np.array([0, atol * 0.006], dtype), small)[0] == "value"
    assert difference_of(beside + np.array([atol * 0.9, 0], dtype), beside) is None
    assert difference_of(round(0.003417, 5), 0.003417)[0] == "value"


def test_whole_numbers_and_truths_are_exact():
    many = np.array([1_000_000, 3])
    assert difference_of(many.copy(), many) is None
    assert difference_of(many + np.array([1, 0]), many)[0] == "value"
    assert difference_of(3.00001, 3)[0] == "value"


def test_the_number_that_is_furthest_off_is_named():
    wanted = np.array([1.0, 0.1, 100.0, 4.0])
    assert "result[3] is 9, but should be 4" in difference_of(np.array([1.0, 0.4, 101.0, 9.0]), wanted)[1]
    assert "result[2] is nan, but should be 100" in difference_of(np.array([1.0, 0.4, np.nan, 9.0]), wanted)[1]
    assert "result[1] is 0.4, but should be 0.1" in difference_of(np.array([1.0, 0.4, 100.0, 4.0]), wanted)[1]


HINT = "(and the dtype is {}, but should be {})"


@pytest.mark.parametrize(
    ("got", "wanted", "hint"),
    [
        ("f4", "f8", HINT.format("float32", "float64")),
        ("f2", "f4", HINT.format("float16", "float32")),
        ("f8", "f4", ""),
        ("f8", "f8", ""),
        ("i4", "f8", ""),
        ("u1", "f8", ""),
        ("?", "f8", ""),
        ("i4", "i8", ""),
    ],
)
def test_a_narrow_dtype_is_mentioned_as_a_reason_for_wrong_values(got, wanted, hint):
    tag, words = difference_of(np.array([1, 1], got), np.array([5, 1], wanted))
    assert tag == "value"
    assert words.partition(", but should be 5")[2].strip() == hint


@pytest.mark.parametrize(("got", "wanted"), [("f4", "f8"), ("f8", "f4")])
def test_right_values_in_another_dtype(got, wanted):
    assert difference_of(np.ones(2, got), np.ones(2, wanted))[0] == "dtype"


@pytest.mark.parametrize(
    ("got", "wanted", "words"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, "the result has keys ['a', 'b'], but should have ['a']"),
        ([1, 2, 3], [1, 2], "the result has 3 values, but should have 2"),
        (1.5, [1, 2], "the result is 1.5, but should be a list of 2 values"),
        (np.ones((2, 3)), [1, 2], "the result is an array of shape (2, 3), but should be a list of 2 values"),
        (np.array(1), True, "the result is 1, but should be True"),
        (np.array([True]), True, "the result is an array of shape (1,), but should be True"),
        ({"mean": 9}, {"mean": 1.5}, "mean is 9, but should be 1.5"),
        ({"shape": [3]}, {"shape": [3, "rows"]}, "shape has 1 values, but should have 2"),
    ],
)
def test_what_is_said_of_a_wrong_form(got, wanted, words):
    tag, sentence = difference_of(got, wanted)
    assert sentence == f"{SENTENCES[tag]}: {words}"


def test_only_a_list_of_another_length_has_another_number_of_results():
    assert difference_of(np.ones((2, 3)), [1, 2])[0] == difference_of(1.5, (1, 2))[0] == "type"
    assert difference_of([1, 2, 3], (1, 2))[0] == "count"
    assert difference_of([[1, 2, 3]], [(1, 2)])[0] == difference_of({"a": [1]}, {"a": []})[0] == "list_length"


def test_too_few_calls_are_counted_too():
    case = Case("a row", (np.ones(2), Sublayer("linear", np.eye(2))))
    assert an_exercise(lambda x, f: x + f(x), case)(lambda x, f: x + x).tag == "calls"


def test_a_long_text_is_cut():
    assert short("x" * 100) == "'" + "x" * 59


@pytest.mark.parametrize(
    ("raises", "reference", "words"),
    [("", lambda x: 1 / 0, "gives ZeroDivisionError."), ("ValueError", double, "gives no error.")],
)
def test_an_exercise_whose_own_answer_fails_judges_nobody(raises, reference, words):
    result = an_exercise(reference, dataclasses.replace(ONE, raises=raises))(double)
    assert result.tag == "no_reference"
    assert result.seen == f"this check does not work here: on one, its own answer {words}"


def test_outcomes_that_are_missing_are_no_verdict():
    with pytest.raises(ValueError, match="shorter"):
        an_exercise(double, ONE, TWO).judge([ONE, TWO], outcomes_of(double, [ONE]))


@pytest.mark.parametrize(("kind", "error"), [(LookupError, KeyError), (ArithmeticError, ZeroDivisionError)])
def test_a_mistake_with_another_error_is_not_recognized(kind, error):
    def answer_with(this):
        def answer(x):
            raise this("no")

        return answer

    exercise = an_exercise(double, ONE, mistakes=[("raised", answer_with(kind))])
    assert exercise(answer_with(kind)).tag == "raised"
    assert exercise(answer_with(error)).tag == "error"


BIG = [("it is large", lambda y, x: bool(np.all(y > 10)))]


def test_facts_are_of_the_plain_cases_that_gave_a_value():
    exercise = an_exercise(double, ONE, TWO, EDGE, facts=BIG)
    assert exercise(lambda x: x + 20 if x.any() else x).hint == "It is true that it is large."
    assert exercise(lambda x: x + 20 if x.ndim == 1 else 1 / 0).hint == "It is true that it is large."
    assert exercise(lambda x: x + 20 if x.ndim == 2 else 1 / 0).hint == ""


def test_facts_of_an_answer_that_is_not_trusted_need_small_results():
    exercise = an_exercise(double, ONE, TWO, facts=BIG)

    def hint(answer):
        return exercise.judge([ONE, TWO], outcomes_of(answer, [ONE, TWO]), trusted=False).hint

    assert hint(lambda x: x + 20) == "It is true that it is large."
    assert hint(lambda x: x + 20 if x.ndim == 1 else 1 / 0) == "It is true that it is large."
    assert hint(lambda x: x + 20 if x.ndim == 1 else np.full(5, 20.0)) == "It is true that it is large."  # as in class
    assert hint(lambda x: x + 20 if x.ndim == 1 else np.full(5000, 20.0)) == ""
    assert hint(lambda x: x + 20 if x.ndim == 1 else [[[[20.0]]]]) == ""


def test_a_library_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr("subnorm_lab.checks.exercise.NEEDS", {"function": {"no_such_library": "Nolib"}})
    result = an_exercise(double, ONE)(double)
    assert (result.tag, result.seen) == ("needs_library", "this exercise needs Nolib, which cannot be imported here.")


def test_what_an_exercise_is_made_of_does_not_change():
    exercise = an_exercise(double, ONE, mistakes=[("none", double)])
    assert exercise.number == 0
    for made in (exercise, exercise.mistakes[0], Result("double", "right", "")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, dataclasses.fields(made)[0].name, "other")
