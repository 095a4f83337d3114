"""Variants: in each, the bank's promises hold, and the answer to any other variant is named."""

import re
from dataclasses import replace

import numpy as np
import pytest
from checks.test_bank import RIGHT, remembered  # noqa: F401, one is a fixture: caches our answers' outcomes
from checks.test_examples import failed

from subnorm_classroom.sheets.student_sheet import SheetError, read_notebook, source_of, student
from subnorm_lab import checks
from subnorm_lab.checks.collect import Case, Device, outcomes_of
from subnorm_lab.checks.exercise import CLASS_SEED, OTHER, Variant, exercise, fact_holds

EXERCISES = {ex.name: ex for exercises in checks.SETS.values() for ex in exercises if ex.variants}
ALL = [(ex.name, one.label) for ex in EXERCISES.values() for one in ex.variants]
SEEDS = [CLASS_SEED, *range(3)]
each_variant = pytest.mark.parametrize(("name", "label"), ALL)

#: Mistakes that are the answer to a variant: right in that one, and in the others diagnosed as its answer.
COINCIDE = {
    ("scaled_stream", "the factor 1 / sqrt(N)", "two_for_each"): "variant_the_factor_1_sqrt_2_n",
    ("scaled_stream", "the factor 1 / sqrt(2 N)", "two_for_each"): "right",
    ("scaled_stream", "the factor 1 / sqrt(3 N)", "two_for_each"): "variant_the_factor_1_sqrt_2_n",
    ("fold", "a gain of gamma", "plus_one"): "variant_a_gain_of_1_gamma",
    ("add_rms_norm", "the order (y, stream)", "swapped"): "variant_the_order_stream_y",
    ("add_rms_norm", "the order (stream, y)", "swapped"): "variant_the_order_y_stream",
    ("deep_norm", "alpha = (2 N) ** 0.25", "decoder_beside_encoder"): "variant_alpha_3_n_0_25",
    ("deep_norm", "alpha = (3 N) ** 0.25", "decoder_beside_encoder"): "right",
    ("time_rounds", "seconds", "milliseconds"): "variant_milliseconds",
    ("bytes_moved", "a forward pass alone", "statistics"): "variant_a_forward_pass_in_training",
    ("bytes_moved", "a forward pass in training", "statistics"): "right",
    ("share_of_copy", "a fraction", "percent"): "variant_percent",
    ("row_sums", "the first piece first", "other_end"): "variant_the_last_piece_first",
    ("row_sums", "the last piece first", "other_end"): "variant_the_first_piece_first",
    ("decay_groups", "embeddings that decay", "embeddings"): "variant_embeddings_that_do_not_decay",
    ("decay_groups", "embeddings that do not decay", "embeddings"): "variant_embeddings_that_decay",
}


def test_there_are_as_many_variants_as_the_teachers_page_says():
    assert len(EXERCISES) == 15
    sheets = {sheet for sheet, exercises in checks.SETS.items() for ex in exercises if ex.variants}
    assert sheets == set(checks.SETS) - {"ex06"}
    labels = [label for _, label in ALL]
    assert [label for label in labels if not re.fullmatch(r"[ -~]+", label) or set('"\\`') & set(label)] == []
    assert all(len(ex.variants) > 1 for ex in EXERCISES.values())
    assert not [m for exercises in checks.SETS.values() for ex in exercises for m in ex.mistakes if m.tag[:8] == OTHER]


@each_variant
def test_each_answer_gets_its_own_diagnosis(name, label):
    ex = EXERCISES[name].variant(label)
    for seed in SEEDS:
        cases = ex.cases(np.random.default_rng(seed))
        right = ex.outcomes(ex.reference, cases)
        for fact, test in ex.facts:
            assert all(fact_holds(test, *pair) for pair in zip(cases, right, strict=True) if not pair[0].edge), fact
        for mistake in ex.mistakes:
            result = ex.judge(cases, ex.outcomes(mistake.answer, cases))
            assert result.tag == COINCIDE.get((name, label, mistake.tag), mistake.tag), (seed, str(result))


@each_variant
def test_the_answer_to_another_variant_is_named_with_both(name, label):
    plain = EXERCISES[name]
    ex, first = plain.variant(label), plain.variants[0]
    cases = ex.cases(np.random.default_rng(CLASS_SEED))
    answers = [(first, answer) for answer in RIGHT[name]]  # written in another way
    for other, answer in [*answers, *((one, plain.variant(one.label).reference) for one in plain.variants)]:
        result = ex.judge(cases, outcomes_of(answer, cases, ex.way))
        if other.label == label:
            assert result.tag == "right"
        else:
            assert result.tag == other.tag
            assert result.hint == f"this is the answer for {other.label}; yours asks for {label}."


@each_variant
def test_its_task_has_a_right_example_and_its_own_check(name, label):
    ex = EXERCISES[name]
    own = ex.variant(label)
    sheet = next(sheet for sheet, exercises in checks.SETS.items() if ex in exercises)
    source = read_notebook(source_of(sheet))
    cells, plain = ({c["id"]: c["source"] for c in student(source, sheet, [one])["cells"]} for one in (own, ex))
    start = f"{sheet}-{ex.number}"
    (listing,) = re.findall(r"^```python\n(>>> .*?)^```$", cells[f"{start}-task"], re.MULTILINE | re.DOTALL)
    assert failed(listing, own, {"np": np, "Device": Device}) == 0
    assert cells[f"{start}-check"] == f'checks.{name}({name}, variant="{label}")'
    others = set(cells) - {f"{start}-{part}" for part in ("task", "answer", "check")}
    assert {cell for cell in others if cells[cell] != plain[cell]} == set()
    assert (cells[f"{start}-task"] == plain[f"{start}-task"]) == (label == ex.variants[0].label)


@each_variant
def test_the_check_in_class_asks_for_the_variant(name, label, capsys):
    ex = EXERCISES[name]
    assert ex(ex.variant(label).reference, variant=label)
    assert capsys.readouterr().out.startswith(f"✓ {name}: ")
    assert bool(ex(ex.variant(label).reference)) == (label == ex.variants[0].label)


@pytest.mark.parametrize("piece", ["no such words -> others", "warm_up -> warm", "-> more"])
def test_a_change_of_the_task_that_does_not_apply_once_is_a_fault(piece, monkeypatch):
    known = checks.SETS["ex04"]
    worse = Variant("a factor of 2", 2, piece)
    template = replace(checks.warm_up.template, variants=[checks.warm_up.variants[0], worse])
    planted = [replace(ex, template=template) if ex is checks.warm_up else ex for ex in known]
    monkeypatch.setitem(checks.SETS, "ex04", planted)
    with pytest.raises(
        SheetError, match=r"warm_up, a factor of 2: .* must occur once in ex04-5-task and ex04-5-answer"
    ):
        student(read_notebook(source_of("ex04")), "ex04")


def test_a_variant_that_does_not_exist_gets_no_verdict():
    ex = checks.warm_up
    result = ex(ex.reference, variant="a factor of 7")
    assert (result.tag, result.mark) == ("no_reference", "○")
    assert "no variant 'a factor of 7'" in result.seen
    with pytest.raises(ValueError, match="warm_up has no variant 'a factor of 7'; its variants are 'a factor of 1', "):
        ex.variant("a factor of 7")
    with pytest.raises(ValueError, match="residual has no variant 'x'; its variants are none"):
        checks.residual.variant("x")


def means(x, *, axis=-1):
    return x.mean(axis)


def test_cases_and_mistakes_may_take_the_parameter():
    known = exercise(
        level=1, minutes=5, chapter="", objective="", parameter="axis",
        variants=[("rows", -1), ("columns", 0)],
        cases=lambda rng, *, axis=-1: [Case(f"axis {axis}", (rng.normal(size=(3, 5)),))],
        mistakes=[("sum", ".mean -> .sum", "you add up {axis}."), ("all", lambda x: x.mean(), "it is one mean.")],
    )(means)  # fmt: skip
    own = known.variant("columns")
    cases = own.cases(np.random.default_rng(0))
    assert cases[0].name == "axis 0"
    answers = {m.tag: m.says for m in own.mistakes}
    assert answers == {
        "variant_rows": "this is the answer for rows; yours asks for columns.", "sum": "you add up columns.",
        "all": "it is one mean.",
    }  # fmt: skip
    for mistake in own.mistakes:
        assert own.judge(cases, outcomes_of(mistake.answer, cases)).tag == mistake.tag
    assert [m.says for m in known.mistakes] == ["you add up rows.", "it is one mean."]
