"""Unknown wrong answers are alike if their results are, but for rounding."""

import hashlib
import json

import numpy as np
import pytest
from classroom.hand_ins import normal

from subnorm_classroom.grading.behaviour import alike, trace, traces
from subnorm_lab.checks.collect import Outcome

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


def test_a_trace_has_the_form_the_size_and_one_projection_of_a_result():
    values, weights = np.array([3.0, -4.0, np.nan, np.inf]), np.cos([1, 2, 3, 4])
    kept = np.array([3.0, -4.0, 0, 0])  # what is not finite counts, and adds nothing
    kind, missing, size, projection = trace(values)
    assert (kind, missing) == ("float64 (4,)", 2)
    assert [size, projection] == pytest.approx([np.sqrt((kept**2).mean()), (kept * weights).mean()], rel=1e-5)
    assert trace(np.zeros(3)) == ["float64 (3,)", 0, 0, 0]
    assert trace(np.full(2, 3e200))[2] == 3e200  # its square would not be finite
    assert trace("pre") == ["text", hashlib.sha256(b"pre").hexdigest()[:16]]
    number = trace(1.5)
    assert trace([[1.5, [1.5, [1.5]]]]) == ["1 results", ["2 results", number, ["2 results"]]]
    assert trace([1.5] * 30) == ["30 results", *[number] * 20]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (["float64 (4,)", 0, 10, 3], ["float64 (4,)", 0, 10.009, 3], True),
        (["float64 (4,)", 0, 10, 3], ["float64 (4,)", 0, 10.011, 3], False),
        (["float64 (4,)", 0, 10, 3], ["float64 (4,)", 0, 10, 3.011], False),  # relative to the size
        (["float64 (4,)", 0, 10, 300], ["float64 (4,)", 0, 10, 300.2], False),
        (["float64 (4,)", 500, 10, 3], ["float64 (4,)", 500, 10, 3.2], False),
        (["float16 (4,)", 0, 10, 3], ["float16 (4,)", 0, 10, 3.19], True),
        (["float16 (4,)", 0, 10, 3], ["float16 (4,)", 0, 10, 3.21], False),
        (["float64 (4,)", 0, 10, 3], ["float64 (4,)", 1, 10, 3], False),
        (["float64 (4,)", 1, 10, 3], ["float64 (4,)", 0, 10, 3], False),
        (["text", "a"], ["text", "b"], False),
        (["text", "b"], ["text", "a"], False),
        (["1 results", ["text", "a"]], ["1 results", 2], False),
        (["1 results", 2], ["1 results", ["text", "a"]], False),
        (["2 results", 1, 2], ["2 results", 1], False),
        (["2 results", 1], ["2 results", 1, 2], False),
    ],
)
def test_alike_means_within_what_rounding_may_change(one, other, expected):
    assert alike(one, other) is expected


def test_an_error_counts_with_its_message_and_shows_none_of_it():
    one, other = Outcome(error="ValueError", message="Ada was here"), Outcome(error="ValueError", message="shapes")
    own = Outcome(error="AdaError", message="Ada was here")
    (first,), (second,), (third,) = traces([one]), traces([other]), traces([own])
    assert alike(first, *traces([Outcome(error="ValueError", message="Ada was here", line=7)]))
    assert not alike(first, second)
    assert not alike(first, third)
    assert first == ["ValueError", hashlib.sha256(b"Ada was here").hexdigest()[:16]]
    assert "Ada" not in json.dumps([first, second, third])


def test_lists_in_lists_without_end_have_a_short_trace():
    deep = []
    for _ in range(400):
        deep = [deep]
    assert len(json.dumps(trace(deep))) < 100
    assert len(json.dumps(trace([[1.5] * 1000] * 1000))) < 50_000
