"""The bank of wrong answers: each mistake is diagnosed as itself, and only right answers pass.

``bank_ex*.py`` beside this file hold, by the name of the exercise, other right answers and combined mistakes.
"""

import functools
import importlib
import itertools
import re
import sys
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import subnorm_lab.checks
from subnorm_lab.checks import collect as collect_module
from subnorm_lab.checks.collect import outcomes_of, run_case
from subnorm_lab.checks.edited import Edited, text_of
from subnorm_lab.checks.exercise import CLASS_SEED, TOLERANCE, Exercise, fact_holds

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SEEDS = [CLASS_SEED, *range(20)]
SEEN = {
    "not_done",
    "right",
    "no_function",
    "error",
    "no_error",
    "keys",
    "count",
    "list_length",
    "type",
    "value",
    "shape",
    "dtype",
}
SEEN |= {
    "in_place",
    "calls",
    "message",
    "needs_library",
    "no_reference",
}  # reserved for the checks, so no mistake may use them

EXERCISES = {exercise.name: exercise for sheet in subnorm_lab.checks.SETS.values() for exercise in sheet}
BANKS = [importlib.import_module(f"checks.{path.stem}") for path in sorted(HERE.glob("bank_ex*.py"))]
RIGHT = {name: answers for bank in BANKS for name, answers in bank.RIGHT.items()}
COMBINED = {name: answers for bank in BANKS for name, answers in bank.COMBINED.items()}
UNDESERVED = {name: answers for bank in BANKS for name, answers in getattr(bank, "UNDESERVED", {}).items()}
NAMED = {name: answers for bank in BANKS for name, answers in getattr(bank, "NAMED", {}).items()}

each_exercise = pytest.mark.parametrize("name", EXERCISES)
each_mistake = pytest.mark.parametrize(
    ("name", "tag"), [(name, mistake.tag) for name, exercise in EXERCISES.items() for mistake in exercise.mistakes]
)


@functools.cache
def cases_of(name, seed):
    return EXERCISES[name].cases(np.random.default_rng(seed))


#: Results of these are no arrays of numbers, or their facts do not depend on the numbers
WITHOUT_FACTS = {"invariances", "faults", "decay_groups", "safe_rms_norm", "time_rounds", "overflows", "tell"}
#: Facts that hold for numbers which are a hundredth off: counts, shapes and bounds
COARSE = {
    "the result has the shape of x",
    "it has one entry more than there are sublayers",
    "there are 2^L paths",
    "there is one share for x and one for each sublayer",
    "every process holds the same gradient",
    "there is one score for each head, query and key",
    "no score is above sqrt(d_head) times the largest gamma_q * gamma_k",
    "no capped score exceeds the cap",
    "there is one sum for each row",
    "there is one influence for each block",
}

KNOWN: dict = {}


@pytest.fixture(autouse=True)
def remembered(monkeypatch):
    """Cache the outcomes of our own answers, because every mistake is compared with every other."""

    def outcomes(self, answer, cases):
        key = (id(answer), *map(id, cases))
        if key not in KNOWN:
            # keep references, so that ids stay unique
            KNOWN[key] = outcomes_of(answer, cases, self.way), answer, cases
        return KNOWN[key][0]

    monkeypatch.setattr(Exercise, "outcomes", outcomes)


def judged(name, answer, seed):
    exercise, cases = EXERCISES[name], cases_of(name, seed)
    return exercise.judge(cases, outcomes_of(answer, cases, exercise.way))


@each_mistake
def test_a_mistake_is_diagnosed_as_itself(name, tag):
    answer = next(mistake.answer for mistake in EXERCISES[name].mistakes if mistake.tag == tag)
    found = {seed: judged(name, answer, seed) for seed in SEEDS}
    assert {seed: str(result) for seed, result in found.items() if result.tag != tag} == {}
    assert {o.error for o in EXERCISES[name].outcomes(answer, cases_of(name, CLASS_SEED))} >= {""}, "it always raises"


@each_exercise
def test_right_answers_pass(name, monkeypatch):
    """With half the tolerance: what only just passes on these seeds fails on another, in another student's hand-in."""
    room = {dtype: (rtol / 2, atol / 2) for dtype, (rtol, atol) in TOLERANCE.items()}
    monkeypatch.setattr("subnorm_lab.checks.exercise.TOLERANCE", room)
    answers = [EXERCISES[name].reference, *RIGHT.get(name, [])]
    assert len(answers) >= 3, f"RIGHT in a bank_ex*.py needs two other right answers to {name}"
    for k, answer in enumerate(answers):
        wrong = {seed: str(result) for seed in SEEDS if not (result := judged(name, answer, seed))}
        assert wrong == {}, "the reference" if k == 0 else f"RIGHT[{name!r}][{k - 1}]"


@each_exercise
def test_two_mistakes_at_once_get_no_wrong_advice(name):
    answers = COMBINED.get(name, [])
    assert len(answers) >= 2, f"COMBINED in a bank_ex*.py needs two answers to {name} with two mistakes each"
    for k, answer in enumerate(answers):
        found = {seed: judged(name, answer, seed) for seed in SEEDS}
        assert {seed: str(r) for seed, r in found.items() if r.tag not in SEEN - {"right", "not_done"}} == {}, k


@pytest.mark.parametrize(("name", "tag"), [(name, tag) for name, answers in NAMED.items() for tag in answers])
def test_a_mistake_written_in_another_way_is_named(name, tag):
    assert {judged(name, NAMED[name][tag], seed).tag for seed in SEEDS} == {tag}


@pytest.mark.parametrize("name", UNDESERVED)
def test_an_answer_that_looks_or_guesses_is_not_right(name):
    for k, answer in enumerate(UNDESERVED[name]):
        assert [seed for seed in SEEDS if judged(name, answer, seed)] == [], f"UNDESERVED[{name!r}][{k}]"


@each_exercise
def test_what_an_answer_gets_says_nothing_by_its_attributes(name):
    seen = []

    def look(*args):
        for arg in args:
            if isinstance(arg, list | tuple):
                look(*arg)
            elif not isinstance(arg, np.ndarray | int | float | str | dict | None):
                seen.append(arg)

    exercise = EXERCISES[name]
    outcomes_of(look, cases_of(name, CLASS_SEED), exercise.way)
    for given in seen:
        if isinstance(given, types.SimpleNamespace):
            assert set(vars(given)) == {"run", "synchronize", "clock"}
        else:
            assert isinstance(given, types.FunctionType)
            assert vars(given) == {}
    holds = any(collect_module.holds_stand_in(arg) for case in cases_of(name, CLASS_SEED) for arg in case.args)
    assert any(isinstance(given, types.FunctionType | types.SimpleNamespace) for given in seen) == holds


@each_exercise
def test_no_constant_passes(name):
    exercise = EXERCISES[name]
    values = [None, ..., 0, 1, 0.0, 1.0, -1, np.nan, True, False, "", "a", [], (), {}, np.zeros(()), np.zeros(8)]
    values += [o.value for o in exercise.outcomes(exercise.reference, cases_of(name, CLASS_SEED))]
    for value in values:
        for seed in SEEDS[:3]:
            assert not judged(name, lambda *args, value=value: value, seed), repr(value)


@each_exercise
def test_no_input_handed_back_passes(name):
    for k in range(max(len(case.args) for case in cases_of(name, CLASS_SEED))):
        for seed in SEEDS[:3]:
            assert not judged(name, lambda *args, k=k: args[k], seed), f"argument {k}"


@each_exercise
def test_the_results_of_class_do_not_pass_in_grading(name):
    exercise = EXERCISES[name]
    known = exercise.outcomes(exercise.reference, cases_of(name, CLASS_SEED))
    assert not [seed for seed in SEEDS[1:] if exercise.judge(cases_of(name, seed), known)]


@each_exercise
def test_one_seed_gives_the_same_cases(name):
    exercise = EXERCISES[name]
    one, two = (exercise.cases(np.random.default_rng(5)) for _ in range(2))
    assert [case.name for case in one] == [case.name for case in two]
    assert exercise.judge(one, outcomes_of(exercise.reference, two, exercise.way))


@each_exercise
def test_feedback_takes_no_more_work_than_a_moment_allows(name, monkeypatch):
    """Count function calls, which are the same on every machine; 40,000 take some hundredths of a second."""
    monkeypatch.undo()  # without the cache
    exercise = EXERCISES[name]

    def calls(answer):
        events = []
        before = sys.getprofile()
        sys.setprofile(lambda frame, event, argument: events.append(event))
        try:
            cases = exercise.cases(np.random.default_rng(CLASS_SEED))
            exercise.judge(cases, outcomes_of(answer, cases, exercise.way))
        finally:
            sys.setprofile(before)
        assert all(argument.size <= 1000 for case in cases for argument in case.args if hasattr(argument, "size"))
        return events.count("call")

    cases = exercise.cases(np.random.default_rng(CLASS_SEED))
    outcomes_of(exercise.reference, cases, exercise.way)  # PyTorch is loaded
    # compare every wrong answer with every mistake
    for answer in (exercise.reference, exercise.mistakes[0].answer, exercise.mistakes[-1].answer):
        assert calls(answer) < 40_000


@each_exercise
def test_an_exercise_says_what_it_is(name):
    exercise = EXERCISES[name]
    tags = [mistake.tag for mistake in exercise.mistakes]
    assert len(set(tags)) == len(tags) >= 8
    assert not SEEN & set(tags)
    assert all(re.fullmatch("[a-z][a-z0-9_]*", word) for word in [name, *tags])
    assert exercise.level in (1, 2, 3, 4)
    assert 5 <= exercise.minutes <= 120
    assert (ROOT / "notebooks" / f"{exercise.chapter}.ipynb").is_file()
    for says in (mistake.says for mistake in exercise.mistakes):
        assert says.endswith((".", "?")), says
        assert not re.search(r"\b(just|simply|obviously|of course)\b", says), says
    assert all(m.source == "" or m.source.startswith("https://") for m in exercise.mistakes)


def test_every_exercise_is_in_one_set_and_exported():
    in_sets = [exercise.name for exercises in subnorm_lab.checks.SETS.values() for exercise in exercises]
    assert len(in_sets) == len(EXERCISES)
    assert all(getattr(subnorm_lab.checks, name) is EXERCISES[name] for name in in_sets)


def test_the_exercises_are_the_files_of_the_sheets_and_their_numbers_order_them():
    files = {path.relative_to(ROOT) for path in ROOT.glob("subnorm_lab/checks/*/[!_]*.py")}
    sheets = subnorm_lab.checks.SETS
    assert files == {Path(f"subnorm_lab/checks/{sheet}/{ex.name}.py") for sheet in sheets for ex in sheets[sheet]}
    assert list(sheets) == sorted(sheets)
    for sheet, exercises in sheets.items():
        assert [ex.number for ex in exercises] == list(range(1, len(exercises) + 1))
        assert {ex.reference.__module__ for ex in exercises} == {
            f"subnorm_lab.checks.{sheet}.{ex.name}" for ex in exercises
        }


def test_there_are_exercises_of_every_level():
    exercises = [exercise for exercises in subnorm_lab.checks.SETS.values() for exercise in exercises]
    assert len(exercises) >= 24
    assert len(subnorm_lab.checks.SETS) >= 5
    assert {exercise.level for exercise in exercises} == {1, 2, 3, 4}


def test_a_bank_holds_answers_of_exercises_only():
    assert not {*RIGHT, *COMBINED, *UNDESERVED, *NAMED} - set(EXERCISES)


def parts_of(value):
    """The names or places of the results that an answer returns together; none for a single one."""
    if isinstance(value, dict):
        return list(value)
    return list(range(len(value))) if isinstance(value, tuple) else []


def changed(value, part, change, off):
    """The value with one part changed, or a single result changed whole."""
    if part is None:
        return [change(piece, off) for piece in value] if isinstance(value, list) else change(value, off)
    if isinstance(value, dict):
        return value | {part: change(value[part], off)}
    return tuple(change(one, off) if k == part else one for k, one in enumerate(value))


def scaled(value, off):
    """A wrong result that keeps its direction, and a sum of 0."""
    return "another" if isinstance(value, str) else np.asarray(value) * (1 + off)


def shifted(value, off):
    return "another" if isinstance(value, str) else np.asarray(value) + off


@each_exercise
def test_the_facts_hold_for_a_right_answer(name):
    exercise = EXERCISES[name]
    for seed in SEEDS[:5]:
        cases = cases_of(name, seed)
        assert "does not" not in exercise.holds(cases, exercise.outcomes(exercise.reference, cases))


@pytest.mark.parametrize("name", [name for name, ex in EXERCISES.items() if ex.facts and name not in WITHOUT_FACTS])
def test_each_wrong_result_fails_a_fact_and_each_fact_notices_a_small_fault(name):
    """Whatever part of the result is wrong, the advice for an unknown mistake says of some fact that it fails."""
    exercise = EXERCISES[name]
    cases = [case for case in cases_of(name, CLASS_SEED) if not case.edge]
    outcomes = exercise.outcomes(exercise.reference, cases)
    unnoticed = {fact for fact, _ in exercise.facts}
    for part, change in itertools.product(parts_of(outcomes[0].value) or [None], (scaled, shifted)):
        wrong = [replace(o, value=changed(o.value, part, change, 1)) for o in outcomes]
        if not exercise.judge(cases, wrong):  # an initial shift of 0 stays 0
            assert " should " in exercise.holds(cases, wrong), (part, change.__name__)
        near = [replace(o, value=changed(o.value, part, change, 0.01)) for o in outcomes]
        for fact, test in exercise.facts:
            if not all(fact_holds(test, *pair) for pair in zip(cases, near, strict=True)):
                unnoticed.discard(fact)
    assert unnoticed == COARSE & {fact for fact, _ in exercise.facts}


#: Of two mistakes at once the check may name a third, if its sentence holds for what they compute together.
TOGETHER = {
    ("residual", "skip_twice", "subtracted"): "no_skip",  # F(x) - x + x
    ("stream", "reads_first", "skips_from_first"): "not_updated",
    ("logit_shares", "no_rstd", "no_centre"): "no_norm",
    ("layer_norm", "ddof1", "all_axes"): "all_axes_ddof1",
    ("layer_norm", "no_gamma", "no_beta"): "no_gain_no_shift",
    ("invariances", "negative_scale", "scale_follows"): "scaled_feature",  # it says what was found, and asks
    ("group_norm", "no_gamma", "no_beta"): "no_gain_no_shift",
    ("layer_norm_backward", "no_stretch", "no_shift"): "constants",
    ("rms_norm", "no_root", "two_roots"): "eps_outside",  # sqrt(mean) + eps
    ("pre_ln_stack", "final_norm_first", "post_ln"): "normed_skip",
    ("pre_ln_stack", "from_the_bottom", "side_by_side"): "only_the_last",
    ("qk_norm", "keys_only", "queries_only"): "no_norm",
    ("overflows", "entries", "not_squared"): "no_overflow_seen",
    ("swiglu", "no_activation", "both_activated"): "gate_and_up_swapped",  # a * silu(up)
    ("row_sums", "one_piece", "library_in_pieces"): "library",  # the one piece is the row
    ("fold_and_rotate", "gain_twice", "gain_lost"): "gain_left",
    ("fold_and_rotate", "reader_transposed", "other_way"): "writer_transposed",  # the reader is turned twice
    ("fold_and_rotate", "writer_transposed", "reader_transposed"): "other_way",
    ("removable_block", "largest", "least_similar"): "similarity",
}


@each_exercise
def test_of_two_mistakes_the_check_names_one_of_them_or_none(name):
    exercise, cases = EXERCISES[name], cases_of(name, CLASS_SEED)
    named = {}
    for one, other in itertools.combinations([m for m in exercise.mistakes if isinstance(m.answer, Edited)], 2):
        try:
            answer = Edited(exercise.reference, *one.answer.changes, *other.answer.changes)
        except ValueError:  # both change the same piece
            continue
        outcomes = [run_case(answer, case, exercise.way, tensors=False) for case in cases]
        tag = exercise.judge(cases, outcomes).tag
        if tag not in SEEN | {one.tag, other.tag}:
            named[name, one.tag, other.tag] = tag
    assert named == {key: tag for key, tag in TOGETHER.items() if key[0] == name}


@pytest.mark.parametrize("power", [2, 3])
@pytest.mark.parametrize("name", [name for name, one in EXERCISES.items() if "+ eps" in text_of(one.reference)])
def test_an_eps_that_is_used_wrongly_is_not_called_unused(name, power):
    """With its usual size, a power of eps has no effect that a check could see."""
    answer = Edited(EXERCISES[name].reference, f"+ eps -> + eps**{power}")
    assert {judged(name, answer, seed).tag for seed in SEEDS} == {"value"}
