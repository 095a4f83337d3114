"""Unknown wrong answers are alike if their results are, but for rounding."""

import json

import numpy as np
import pytest
from classroom.hand_ins import normal

from subnorm.checks.collect import Outcome
from subnorm.classroom.behaviour import alike, trace, traces

X = normal()


def same(one, other):
    return alike(*json.loads(json.dumps([trace(one), trace(other)])))  # as in a record


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (X, X * (1 + 1e-9)),
        (X.astype("float32"), (X * (1 + 1e-7)).astype("float32")),
        (X.astype("float16"), (X * (1 + 1e-3)).astype("float16")),
        ([X, (1, "y")], [X + 1e-12, (1, "y")]),
        ({"y": X, "n": None}, {"n": None, "y": X}),
        (np.full(3, np.inf), np.full(3, np.nan)),
        (X * 1e300, X * 1e300),
        (10**400, 10**400),
        (np.zeros((0, 3)), np.zeros((0, 3))),
    ],
)
def test_the_same_results(one, other):
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (X, X * 1.01),
        (X, -X),
        (X, X[::-1].copy()),
        (X, X.T.copy()),
        (X, X.astype("float32")),
        (X, np.where(X > 1, np.nan, X)),
        (X, [X]),
        ([X, X], [X, 2 * X]),
        ("pre", "post"),
        (1, True),
        (np.zeros((0, 3)), np.zeros((3, 0))),
    ],
)
def test_other_results(one, other):
    assert not same(one, other)


def test_an_error_counts_with_its_message_and_shows_none_of_it():
    one, other = Outcome(error="ValueError", message="Ada was here"), Outcome(error="ValueError", message="shapes")
    own = Outcome(error="AdaError", message="Ada was here")
    (first,), (second,), (third,) = traces([one]), traces([other]), traces([own])
    assert alike(first, *traces([Outcome(error="ValueError", message="Ada was here", line=7)]))
    assert not alike(first, second)
    assert not alike(first, third)
    assert "Ada" not in json.dumps([first, second, third])


def test_lists_in_lists_without_end_have_a_short_trace():
    deep = []
    for _ in range(400):
        deep = [deep]
    assert len(json.dumps(trace(deep))) < 100
    assert len(json.dumps(trace([[1.5] * 1000] * 1000))) < 50_000
