"""Thousands of wrong answers, made from the right ones by `checks.altered`: no check accepts one.

Those that compute the same as the right answer are below, each with the reason. A new one fails the test.
"""

import json
import re

import numpy as np
import pytest
from checks.altered import altered, spoiled

from subnorm_classroom.sheets.student_sheet import source_of
from subnorm_lab import checks
from subnorm_lab.checks.collect import Sublayer, run_case
from subnorm_lab.checks.exercise import CLASS_SEED, difference

EXERCISES = {exercise.name: exercise for sheet in checks.SETS.values() for exercise in sheet}
SEEDS = [CLASS_SEED, 0, 1]

ONE_DTYPE = "all arrays of a case have one dtype, and any wider type will do"
AXES = "these arrays have the same number of axes"
MATRIX = "in a matrix, axis 1 is the last"
NUMBER = "one number: it has no axis, no dtype to keep, and is positive"
OWN_ARRAY = "it writes into an array of its own"
SWAPPED = "the arguments may be exchanged"
ANY_ORDER = "a sum over processes may begin with any of them"
EQUALLY_LONG = "the lists have an item for each process"

#: exercise: {what the new lines of an altered answer match: why it is right}
THE_SAME = {
    "residual_backward": {r"mask = x >= 0": "no entry of x is 0, says the task"},
    "paths": {
        r"return terms": "a list of arrays of one shape is as good as an array",
        r"choices = \[\[k for k in range\(index\) .*": "no bit from index on is 1",
    },
    "logit_shares": {r"return shares": "a list of arrays of one shape is as good as an array"},
    "layer_norm": {r"dtype, x = \((x|beta|gamma).dtype, x.astype\(np.(float32|promote_types\(.*)\)\)": ONE_DTYPE},
    "invariances": {
        r"(shifted|scaled)\[(0|1|-1)\] [-+*/]= \d": "any change of a token will do",
        r"touched\[.*\] [-+*]= \d|touched = (scaled|shifted).copy\(\)": "any change of a token will do",
        r"found\['tokens'\] = close\(norm\((scaled|shifted)\)\[1:\], y\[1:\]\)": "any change of a token will do",
        r"found\['\w+'\] = close\(y.*, norm\(.*\)": SWAPPED,
        r"p = np.roll\(np.arange\((x.shape\[1\]\), 2|\w+.shape\[1\]\), 1)\)": "any order of the features will do",
    },
    "group_norm": {
        r"v = .*reshape\((groups, n, -1, length|n, groups, length, -1|n, groups, -2, length)\)":
            "the same entries, side by side in memory, make a group; -2 is as good as -1",
        r"(mean|var) = v.\w+\(\(3, 2\), keepdims=True\)": SWAPPED,
        r".*(astype\((beta|gamma).dtype\)|astype\(np.float32\).*|promote_types\(.*)": ONE_DTYPE,
    },
    "layer_norm_backward": {
        r"dtype = \w+.dtype|.*astype\(np.(float32|promote_types\(.*)\).*": ONE_DTYPE,
        r"rows = tuple\(range\(\w+.ndim - 1\)\)": AXES,
    },
    "rms_norm": {
        r"_ = x \| _ /= .*": OWN_ARRAY,
        r"dtype, x = \(\w+.dtype, x.astype\(np.(float32|promote_types\(.*)\)\)": ONE_DTYPE,
    },
    "add_rms_norm": {
        r"wide = stream.astype\(np.(float32|promote_types\(.*)\)|y = .*astype\(\w+.dtype\)": ONE_DTYPE,
        r"xhat = stream / .*|mean = \((stream \* wide|wide \* stream)\).*": "NumPy widens the other factor as well",
    },
    "llama_rms_norm": {
        r"_ = x \| _ /= .*": OWN_ARRAY,
        r"dtype, x = \(x.dtype, x.astype\(np.(float32|promote_types\(.*)\)\)": "any wider type than float16 will do",
        r"multiplies by 1.001": "float16 rounds to a thousandth",
    },
    "gemma_rms_norm": {
        r"_ = x \| _ /= .*": OWN_ARRAY,
        r"dtype, x = \(x.dtype, x.astype\(np.(float32|promote_types\(.*)\)\)": "any wider type than float16 will do",
        r"gain = 1 \+ gamma(.astype\(.*\))?|multiplies by 1.001": "float16 rounds to a thousandth",
    },
    "centre_writer": {r"means, mean = \(weight.mean\(1, keepdims=True\), bias.mean\(\)\)": MATRIX},
    "rms_norm_backward": {r"rows = tuple\(range\(\w+.ndim - 1\)\)": AXES},
    "safe_rms_norm": {
        r"m = np.abs\(x\).mean\(-1, keepdims=True\)": "it is an eighth of the largest at least",
        r"m = np.where\((m (<=?|==) \d|x == 0), \d, m\)": "a row whose squares fit may keep its size",
    },
    "pre_ln_block": {r"_ = feed_forward\(norm2\(h\)\) \| _ \+= h \| return _": OWN_ARRAY},
    "warm_up": {
        r"_ = .*": "numbers are not changed in place",
        r"return factor .* min\(fall, rise\)": SWAPPED,
        r"takes the size|squeezes|makes float32": NUMBER,
    },
    "block": {r"_ = (x|f\(n\[1\]\(x\)\)) \| _ \+= .* \| return _": OWN_ARRAY},
    "qk_norm": {
        r"return np.moveaxis\(scores, axes, -3\)|.*swapaxes\(-2, -3\)|.*swapaxes\(-1, -2\).*": SWAPPED,
        r"return gamma \* .*-(np|\(x).*": "queries and keys have another sign, so their products have the same",
        r"scores = .* / np.sqrt\((k|gamma_q|gamma_k).shape\[-1\]\)": "all have d_head features",
        r"return x.reshape\(\*x.shape\[:-1\], heads, -2\).*": "to NumPy -2 is as good as -1",
    },
    "median_and_spread": {
        r"return \[median, q3 - q1\]": "a list of numbers is as good as an array",
        r"q1, q3 = np.quantile\(times, \(0.2(50025|49975), 0.75\)\)": "within the tolerance",
        r"takes the size|squeezes": "two positive numbers",
    },
    "time_rounds": {
        r"_ = unit \| .*": "numbers are not changed in place",
        r"for _ in list\(range\(\w+\)\)\[::-1\]:": "the counter is not used",
        r"takes the size": "times are positive",
    },
    "bytes_moved": {
        r"_ = .*": "numbers are not changed in place",
        r".*norm <= 'layer'.*": 'the other norm is "rms"',
        r"statistics = 1 \+ .*": "kept is 1 in this variant",
        r"return .*(parameters \* rows|statistics \* d).*": "each norm keeps as many statistics as it has parameters",
    },
    "share_of_copy": {
        r"_ = .*": "numbers are not changed in place",
        r"(rate|copy_rate) = .*//.*": "bytes per second, of which a fraction does not count",
        r"takes the size|squeezes|makes float32": NUMBER,
    },
    "faults": {
        r"q1, _, q3 = statistics.quantiles\(seconds, method='inclusive'\)": "n=4 is the default",
        r"found\['no_warm_up'\] = report\['warm_up'\] (< 1|<= 0)": "a number of runs is not negative",
        r"found\['not_synchronized'\] = report\['device'\] >= 'cuda' and .*": 'the other device is "cpu"',
        r"rate = report\['bytes'\] / median / (1000100|999900)000.0|found\['wide_spread'\] .* 0.(10001|09999\d*) .*":
            "no record is that close to a limit",
        r"rate = report\['bytes'\] // median / .*": "bytes per second, of which a fraction does not count",
        r"rate = .* / _ / .*|found\['wide_spread'\] = q3 - q1 > 0.1 \* _": "the middle quartile is the median",
    },
    "overflows": {
        r"total = \(x \* x\).sum\(-1\)": "float16 is the default",
        r"total = \(x \* x\).mean\(-1, dtype=np.float16\)": "NumPy adds up in float16 before it divides",
        r"total = \(x \* -x\).*": "minus infinity is infinite, too",
    },
    "merge_moments": {r"\(n, mean, m2\), \(m, .*\) = \(other, one\)": SWAPPED},
    "head": {
        r"sees = np.tri\(len\((q|k|scores|v)\)(, dtype=bool)?\)": "all have a row for each token, and 1 is true",
        r"scores = .* np.sqrt\((k|v).shape\[-1\]\)": "all have as many features",
        r".*(max|sum)\(1, keepdims=True\)|.*q.shape\[1\]\)": MATRIX,
    },
    "story_block": {r"_ = feed_forward\(.*\) \| _ \+= h \| return _": OWN_ARRAY},
    "next_scores": {r"squeezes": "no vocabulary has a single token"},
    "tell": {
        r"for _ in list\(range\(count\)\)\[::-1\]:": "the counter is not used",
        r"token = np.argmax\(.*": "an integer of NumPy is as good as one of Python",
        r"continue|calls argument 0 again": "asking again changes nothing",
    },
    "split_rms_norm": {
        r".*in list\(pieces\)\[::-1\]\)\)": ANY_ORDER,
        r"d = sum\(\(x.shape\[-1\] for x in gains\)\)": "a process has a gain for each of its features",
        r"return .* zip\(gains, pieces, strict=True\)\]": SWAPPED,
        r"return .* zip\(pieces, gains(, strict=False)?\)\]": EQUALLY_LONG,
    },
    "gain_gradients": {
        r"for dy, x in list\(.*\)\[::-1\]:": ANY_ORDER,
        r"for dy, x in zip\(dys, xs(, strict=False)?\):": EQUALLY_LONG,
        r"return \[total for _ in (dys|xs|list\(own\)\[::-1\])\]": "all processes get the same",
        r"xhat = .*mean\(1, keepdims=True\).*": MATRIX,
        r"squeezes": "a gradient has one axis",
    },
    "split_rms_norm_backward": {
        r".*in list\((pieces|zip\(.*\))\)\[::-1\]\)\).*": ANY_ORDER,
        r"d = sum\(\(x.shape\[-1\] for x in (dys|gains)\)\)": "a process has one for each of its features",
        r".* zip\((dys, gains|xhats, dxhats), strict=True\)\)?\)?\]?": SWAPPED,
        r".* zip\((gains, dys|dxhats, xhats)(, strict=False)?\)\)?\)?\]?": EQUALLY_LONG,
        r"xhats = \[x \* -rstd for x in pieces\]": "each term has xhat twice, or not at all",
    },
    "row_sums": {r"multiplies by 1.001": "float32 is compared to a thousandth; here an order shows in more"},
    "decay_groups": {
        r"matrix = layer in \('Embedding', 'Conv2d', 'Linear'\) .*": SWAPPED,
        r"matrix = layer in \('Linear', 'Conv2d'\) .*": "embeddings are spared in this variant",
        r"return .*-0.0.*": "no decay is no decay",
    },
    "fold_and_rotate": {
        r"return .*(1 - -offset|1 \+ offset|full_like\(gamma, 1\)|reader \* gamma).*": "offset is 0 in this variant",
    },
    "soft_cap": {
        r"_ = cap \| _ \*= .*": "numbers are not changed in place",
        r"dscores = .*-cap\) \*\* 2\)": "it is squared",
    },
    "removable_block": {
        r"influence = .*mean\(1\)": MATRIX,
        r"x, y = \(streams\[1:\], streams\[:-1\]\)": SWAPPED,
    },
}  # fmt: skip


def with_cases(name):
    """An exercise and its cases for each seed. Of variants it is the last: the first may hide what it leaves out."""
    exercise = EXERCISES[name]
    if exercise.variants:
        exercise = exercise.variant(exercise.variants[-1].label)
    return exercise, [exercise.cases(np.random.default_rng(seed)) for seed in SEEDS]


@pytest.mark.parametrize("name", EXERCISES)
def test_no_altered_answer_is_right(name):
    exercise, drawn = with_cases(name)
    wanted = [exercise.outcomes(exercise.reference, cases) for cases in drawn]

    def passes(answer, k):
        """As in `Exercise.judge`, but only up to the first fault, and without tensors: it runs thousands of answers."""
        return not any(
            difference(run_case(answer, case, exercise.way, tensors=False), right, case.names)
            for case, right in zip(drawn[k], wanted[k], strict=True)
        )

    answers = [*altered(exercise), *spoiled(exercise, drawn[0])]
    assert len(answers) > 20
    survivors = {label for label, answer in answers if any(passes(answer, k) for k in range(len(SEEDS)))}
    known = THE_SAME.get(name, {})
    assert sorted(label for label in survivors if not any(re.fullmatch(one, label) for one in known)) == []
    assert [one for one in known if not any(re.fullmatch(one, label) for label in survivors)] == []


def test_the_answers_that_are_the_same_are_of_exercises():
    assert set(THE_SAME) < set(EXERCISES)


@pytest.mark.parametrize("sheet", checks.SETS)
def test_where_a_task_allows_any_number_of_axes_the_cases_have_one_two_and_three(sheet):
    cells = {cell["id"]: "".join(cell["source"]) for cell in json.loads(source_of(sheet).read_text("utf-8"))["cells"]}
    for exercise in checks.SETS[sheet]:
        found = re.search(r"\(\.\.\., (\w+, )*d(_in)?\)", cells[f"{sheet}-{exercise.number}-task"])
        if found:
            cases = exercise.cases(np.random.default_rng(0))
            shapes = {next(arg for arg in case.args if isinstance(arg, np.ndarray)).shape for case in cases}
            least = found[0].count(",")
            assert {len(shape) for shape in shapes} >= {*range(least, 4)}, exercise.name
            assert any(1 in shape[:-1] for shape in shapes), exercise.name


@pytest.mark.parametrize("name", sorted(EXERCISES.keys() - {"layer_norm_from_rms", "next_scores"}))
def test_a_sublayer_may_return_its_input_itself(name):
    """Adding to what it returns then writes into the input. (The two get only a norm, for an array of their own.)"""
    cases = EXERCISES[name].cases(np.random.default_rng(0))
    parts = [part for case in cases for arg in case.args for part in (arg if isinstance(arg, list) else [arg])]
    kinds = {part.kind for part in parts if isinstance(part, Sublayer)}
    assert not kinds or "same" in kinds
