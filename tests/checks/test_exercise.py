"""The feedback of a check, for each kind of difference. The exercise is small: softsign of each row, times a gain."""

import re

import numpy as np
import pytest
import torch

from subnorm_lab import checks
from subnorm_lab.checks import collect
from subnorm_lab.checks.collect import Case, Sublayer
from subnorm_lab.checks.exercise import Exercise, Mistake, Result


def scaled(x, gain):
    return (gain * (x / (1 + np.abs(x)))).astype(x.dtype)


def an_exercise(reference, cases, mistakes=(), facts=(), name="scaled", way="function"):
    named = [Mistake(tag, f"you did {tag}.", answer) for tag, answer in mistakes]
    return Exercise(name, 1, 5, "03-layer-normalization", "scale", reference, cases, named, facts, way)


def of_arrays(rng):
    gain = rng.normal(1, 0.3, 4)
    return [
        Case("a (3, 4) batch", (rng.normal(size=(3, 4)), gain)),
        Case("a float32 row", (rng.normal(size=4).astype("f4"), gain.astype("f4"))),
        Case("a float16 row near the limit", (np.full(4, 6e4, "f2"), gain.astype("f2")), edge=True),
    ]


MISTAKES = [
    ("no_gain", lambda x, gain: scaled(x, 1)),
    ("no_one", lambda x, gain: (gain * x / np.abs(x)).astype(x.dtype)),
    ("square", lambda x, gain: (gain * x / (1 + x * x)).astype(x.dtype)),
    ("overflow", lambda x, gain: scaled(x, gain) if x.dtype != np.float16 else scaled(x, gain) * np.float16(np.inf)),
]
check = an_exercise(scaled, of_arrays, MISTAKES)


def answer_of(value=None, error=None):
    def answer(*args):
        if error:
            raise error
        return value

    return answer


def with_in_place(x, gain):
    result = scaled(x, gain)
    x += 1
    return result


def test_a_right_answer(capsys):
    result = check(scaled)
    assert result
    assert capsys.readouterr().out == "✓ scaled: right on all 3 inputs.\n"


@pytest.mark.parametrize("answer", [answer_of(...), answer_of(error=NotImplementedError("your code"))])
def test_not_done_is_not_wrong(answer, capsys):
    assert check(answer).tag == "not_done"
    assert capsys.readouterr().out == "○ scaled: not done yet.\n"


def test_a_forgotten_return_is_asked_for(capsys):
    assert check(answer_of()).tag == "not_done"
    assert "a return is missing" in capsys.readouterr().out


def test_a_module_without_forward_is_not_called_undone():
    missing = NotImplementedError('Module [LN] is missing the required "forward" function')
    assert check(answer_of(error=missing)).tag == "error"


def a_helper(x):
    raise NotImplementedError


def with_a_raise_above_its_code(x, gain):
    """The sheet's line is still there."""
    raise NotImplementedError  # your code here
    return gain * x


def with_a_raise_alone(x, gain):
    raise NotImplementedError  # your code here
    ...


def decorated(function):
    return lambda *args: function(*args)


@pytest.mark.parametrize(
    ("answer", "tag", "words"),
    [
        (with_a_raise_above_its_code, "error", "a line raise NotImplementedError is still above your code: delete it."),
        (lambda x, gain: gain * a_helper(x), "error", "it calls a function that is not written yet."),
        (with_a_raise_alone, "not_done", "not done yet."),
        (decorated(with_a_raise_alone), "not_done", "not done yet."),
        (decorated(with_a_raise_above_its_code), "error", "is still above your code: delete it."),
    ],
)
def test_only_an_answer_without_code_is_not_done(answer, tag, words):
    result = check(answer)
    assert result.tag == tag
    assert result.seen.endswith(words)


def test_an_input_that_was_written_to_is_said_of_wrong_values_too():
    def answer(x, gain):
        x *= gain
        return x + 1

    assert check(answer).hint == "An input was changed: work on a copy."


def test_facts_are_not_told_of_an_error_or_of_the_inputs_that_are_right():
    facts = [("never", lambda y, x, gain: False), ("always", lambda y, x, gain: True)]
    exercise = an_exercise(
        scaled, lambda rng: [*of_arrays(rng), Case("zeros", (np.zeros(3), 2.0), edge=True)], facts=facts
    )
    assert exercise(lambda x, gain: 1 / 0).hint == ""
    assert exercise(lambda x, gain: scaled(x, gain) if x.any() else x + 1).hint.startswith(
        "The ordinary inputs are right"
    )


def test_begun_is_no_longer_not_done():
    assert check(lambda x, gain: None if x.ndim == 2 else scaled(x, gain)).tag == "type"


@pytest.mark.parametrize("answer", [np.zeros(3), None, scaled(np.ones(4), 1), "scaled"])
def test_a_result_instead_of_the_function(answer):
    result = check(answer)
    assert result.tag == "no_function"
    assert f"got {type(answer).__name__}. Write your function's name without parentheses" in result.seen


SEEN = {
    "value": (
        lambda x, g: 3 * scaled(x, g),
        r"on a \(3, 4\) batch, the values are not right: result\[[012], [0-3]\] is .*, but should be ",
    ),
    "shape": (lambda x, g: scaled(x, g).T, r"is not right: the result has shape \(4, 3\), but should have \(3, 4\)"),
    "dtype": (
        lambda x, g: scaled(x, g).astype(float),
        "on a float32 row, the values are right, but the dtype is not: the result has dtype float64, but should",
    ),
    "type": (lambda x, g: [[1, 2], [3]], r"the result is \[\[1, 2\], \[3\]\], but should be numbers of shape \(3, 4\)"),
    "in_place": (with_in_place, "the values are right, but an input was changed: work on a copy"),
    "error": (answer_of(error=KeyError("gamma")), r"it raises KeyError in line \d+ of your cell: 'gamma'"),
}


@pytest.mark.parametrize("tag", SEEN)
def test_what_was_seen_is_said(tag):
    answer, words = SEEN[tag]
    result = check(answer)
    assert result.tag == tag
    assert result.hint == ""
    assert re.search(words, result.seen)


@pytest.mark.parametrize(("tag", "answer"), MISTAKES)
def test_a_mistake_is_named(tag, answer, capsys):
    assert check(answer).tag == tag
    assert f"   → you did {tag}.\n" in capsys.readouterr().out


def test_a_mistake_in_another_dtype_is_named():
    assert check(lambda x, gain: scaled(x, 1).astype(float)).tag == "no_gain"


def test_a_mistake_at_the_edge_counts_only_when_the_rest_is_right():
    assert "near the limit" in check(MISTAKES[3][1]).seen
    both = check(lambda x, gain: MISTAKES[3][1](x, 1))
    assert both.tag == "no_gain"


def test_two_mistakes_at_once_are_not_named():
    result = check(lambda x, gain: x / (1 + x * x))
    assert (result.tag, result.hint) == ("value", "")


def test_two_mistakes_that_look_alike_are_not_named():
    twins = an_exercise(scaled, of_arrays, [("one", MISTAKES[0][1]), ("other", MISTAKES[0][1])])
    result = twins(MISTAKES[0][1])
    assert (result.tag, result.hint) == ("value", "")


@pytest.mark.parametrize(("off", "tag"), [(1e-6, "no_gain"), (5e-5, "value")])
def test_a_name_needs_more_agreement_than_a_right_answer(off, tag):
    """A right answer may be as far off as either of them."""
    assert check(lambda x, gain: (scaled(x, gain) * (1 + off)).astype(x.dtype))
    assert check(lambda x, gain: (scaled(x, 1) * (1 + off)).astype(x.dtype)).tag == tag


def test_without_a_name_the_facts_are_told():
    facts = [
        ("signs are kept", lambda y, x, gain: np.array_equal(np.sign(y), np.sign(x))),
        ("no entry is above the gain", lambda y, x, gain: bool((np.abs(y) <= np.abs(gain)).all())),
    ]
    result = an_exercise(scaled, of_arrays, facts=facts)(lambda x, gain: 5 * scaled(x, gain))
    assert result.hint == "It is true that signs are kept. It should also be true that no entry is above the gain."
    broken = [("never", lambda y, x, gain: y.nothing)]
    assert an_exercise(scaled, of_arrays, facts=broken)(lambda x, gain: 5).hint == "It should be true that never."


def test_nan_is_wrong_where_a_number_is_expected_and_right_where_nan_is():
    assert "is nan, but should be" in check(lambda x, gain: scaled(x, gain) * np.nan).seen
    of_nan = an_exercise(lambda x: x, lambda rng: [Case("nan", (np.array([np.nan, 1.0]),))])
    assert of_nan(lambda x: x.copy())
    assert not of_nan(np.nan_to_num)


def test_tensors_come_to_an_answer_in_pytorch():
    def answer(x, gain):
        if not isinstance(x, torch.Tensor):
            raise TypeError("softsign(): argument 'input' must be Tensor")
        return gain * torch.nn.functional.softsign(x)

    result = check(answer)
    assert result
    in_place = check(lambda x, gain: answer(x, gain) + x.zero_())
    assert in_place.tag == "in_place"


def test_an_answer_that_takes_neither_is_told_what_numpy_said():
    def answer(x, gain):
        raise TypeError(f"no {type(x).__name__}")

    assert re.search(r"TypeError in line \d+ of your cell: no ndarray", check(answer).seen)


def test_gradients_may_be_attached_to_the_result():
    assert check(lambda x, gain: torch.tensor(scaled(x, gain)).requires_grad_())


def of_sublayers(rng):
    return [Case("a row", (rng.normal(size=3), Sublayer("relu", rng.normal(size=(3, 3)))))]


CALLED = an_exercise(lambda x, f: x + f(x), of_sublayers)


def test_calls_are_counted():
    assert CALLED(lambda x, f: x + f(x))
    result = CALLED(lambda x, f: x + (f(x) + f(x)) / 2)
    assert result.tag == "calls"
    assert "called too often or too seldom: [2] times instead of [1]" in result.seen


def of_numbers(x):
    return {"mean": x.mean(), "even": len(x) % 2 == 0, "shape": [3, "rows"], "none": None}


STRUCTURED = an_exercise(of_numbers, lambda rng: [Case("a row", (rng.normal(size=4),))])


@pytest.mark.parametrize(
    ("changed", "tag"),
    [
        ({"even": False}, "value"),
        ({"shape": [3, "row"]}, "value"),
        ({"shape": 3}, "type"),
        ({"none": 0}, "type"),
        ({"mean": "0.5"}, "type"),
        ({"mean": object()}, "error"),
        ({"shape": (3, "rows")}, "right"),
        ({"even": np.True_}, "right"),
        ({"even": np.array(True)}, "right"),
    ],
)
def test_what_a_result_may_be(changed, tag):
    assert STRUCTURED(lambda x: of_numbers(x) | changed).tag == tag


def test_a_result_that_is_no_dict():
    assert "has keys float" in STRUCTURED(lambda x: 1.0).seen


def test_an_error_that_is_asked_for():
    def refuses(x):
        if x < 0:
            raise ValueError("x must be 0 or more")
        return x

    cases = lambda rng: [Case("one", (rng.uniform(1, 2),)), Case("minus one", (-1.0,), raises="ValueError")]  # noqa: E731
    exercise = an_exercise(refuses, cases)
    assert exercise(refuses)
    assert exercise(lambda x: x).seen == (
        "on minus one, an error was expected, and none was raised: it returns -1, but should raise ValueError."
    )
    assert exercise(lambda x: x).tag == "no_error"


@pytest.mark.parametrize("error", [SystemExit(), RecursionError("deep"), ZeroDivisionError(), AssertionError()])
def test_a_check_never_raises_in_class(error):
    assert check(answer_of(error=error)).tag == "error"


@pytest.mark.parametrize("answer", [print, dict, lambda: 1, lambda *a: lambda: 1, np.linalg.inv, type, property])
def test_odd_answers_do_not_stop_a_notebook(answer):
    assert not check(answer)


def test_the_line_is_counted_from_the_top_of_the_cell():
    scope: dict = {}
    exec(compile("\ndef scaled(x, gain):\n    y = x\n    return y @ 'a'\n", "<cell>", "exec"), scope)
    assert check(scope["scaled"]).seen.startswith(
        "on a (3, 4) batch, it raises UFuncTypeError in line 4 of your cell: "
    )


def test_a_pytorch_answer_that_fails_is_told_its_own_error():
    """And not NumPy's error that an array has no such method, which every answer for tensors causes."""
    torch = pytest.importorskip("torch")

    def scaled(x, gain):
        return torch.reshape(x.contiguous(), (1000, 1000)) * gain

    result = check(scaled)
    assert "of your cell: shape '[1000, 1000]'" in result.seen


def test_answers_cannot_spoil_the_inputs_of_the_next_case():
    known = check.cases(np.random.default_rng(0))
    before = [case.args[0].copy() for case in known]
    collect.outcomes_of(with_in_place, known)
    assert all(np.array_equal(case.args[0], was) for case, was in zip(known, before, strict=True))


def test_a_check_says_the_same_each_time():
    assert str(check(MISTAKES[0][1])) == str(check(MISTAKES[0][1]))


def test_raise_mode(monkeypatch, capsys):
    monkeypatch.setenv("SUBNORM_CHECKS", "raise")
    assert check(scaled)
    for answer in (MISTAKES[0][1], answer_of(), 3):
        with pytest.raises(AssertionError, match="scaled: "):
            check(answer)
    monkeypatch.setenv("SUBNORM_CHECKS", "")
    assert not check(answer_of())


def test_a_result_is_printed_once(capsys):
    result = check(scaled)
    result._ipython_display_()
    assert capsys.readouterr().out.count("scaled") == 1


def test_progress(monkeypatch, capsys):
    monkeypatch.setattr("subnorm_lab.checks.exercise.SEEN", {})
    check(scaled)
    CALLED_TOO = an_exercise(scaled, of_arrays, name="other")
    CALLED_TOO(answer_of())
    CALLED_TOO(MISTAKES[0][1])
    capsys.readouterr()
    checks.progress()
    assert capsys.readouterr().out == "✓ scaled\n✗ other (value)\n1 of 2 exercises that you have checked are right.\n"


def test_a_module_is_run_and_its_gradients_compared():
    exercise = checks.make_layer_norm
    assert exercise(exercise.reference)
    assert exercise(lambda d, eps: None).tag == "not_done"
    for mistake in exercise.mistakes:
        assert exercise(mistake.answer).tag == mistake.tag


def test_results_are_true_only_if_right():
    assert Result("a", "right", "")
    assert not any(Result("a", tag, "") for tag in ("not_done", "value", "ddof1"))
