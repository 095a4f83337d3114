"""Exercises: a right answer, cases, and named mistakes that people make.

A check calls the student's function on the cases and compares. If every outcome matches that of one named mistake, it
names the mistake; otherwise it only reports the difference. The grader uses the same code on other cases.
"""

import importlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from subnorm_lab.checks.collect import NEEDS, UNSUPPORTED, Case, Outcome, attempts, choose, convert, outcomes_of
from subnorm_lab.checks.edited import Edited
from subnorm_lab.checks.sentences import CHANGED, SENTENCES

#: (rtol, atol) of each dtype: wide enough for every correct method; a mistake changes some number by far more. Among
#: numbers that are all below 1, atol is a share of the largest.
TOLERANCE = {"float16": (3e-3, 3e-3), "float32": (1e-3, 1e-3), "float64": (1e-4, 1e-5)}
#: the same between an answer and a named mistake: a diagnosis has to be about this very mistake
CLOSER = {"float16": (3e-3, 3e-3), "float32": (1e-4, 1e-4), "float64": (1e-5, 1e-6)}
CLASS_SEED = 2016  # of the cases in class; the grader uses another
SMALL = 2000  # numbers of a result, more than in any right one
WHOLE = "the result"  # how messages call what an answer returns
OTHER = "variant_"  # begins the tags of answers to another variant, and of no mistake
MUTE = {"not_done", "no_function", "needs_library", "no_reference", "error"}  # no model can speak with such an answer


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that people give.

    Args:
        tag: its name in one word, as in grades.csv: "ddof1".
        says: what the answer does, and the definition: one sentence, without blame or praise.
        answer: a function that makes this mistake and no other.
        source: address of a public discussion in which somebody made or proposed it; empty if we know of none.
    """

    tag: str
    says: str
    answer: Callable[..., Any]
    source: str = ""


class Variant:
    """One value of an exercise's parameter, such as a scale or a convention. Each student's sheet asks for one.

    Args:
        label: the value in words or in code, as in feedback: "1 / sqrt(2 N)". The exercise's texts show it for the
            parameter's name in braces.
        value: what the keyword argument with the parameter's name gets.
        changes: what to replace in the exercise's cells of the sheet, each "old -> new"; none for the first variant.
    """

    def __init__(self, label: str, value: Any, *changes: str) -> None:
        self.label, self.value, self.changes = label, value, changes

    @property
    def tag(self) -> str:
        """The diagnosis for an answer to this variant where another is asked for: "variant_1_sqrt_2_n"."""
        return OTHER + re.sub(r"\W+", "_", self.label).strip("_").lower()


@dataclass(frozen=True)
class Result:
    """The result of a check. True if the answer is right."""

    exercise: str
    tag: str  # "right", "not_done", the tag of a mistake, or the kind of difference: "value", "shape", "error", ...
    seen: str
    hint: str = ""
    case: int | None = None  # the first wrong case

    def __bool__(self) -> bool:
        return self.tag == "right"

    def __str__(self) -> str:
        return f"{self.mark} {self.exercise}: {self.seen}" + (f"\n   → {self.hint}" if self.hint else "")

    @property
    def mark(self) -> str:
        """✓ for a right answer, ○ if there is no verdict, ✗ for a wrong one."""
        return {"right": "✓", "not_done": "○", "needs_library": "○", "no_reference": "○"}.get(self.tag, "✗")

    def _ipython_display_(self) -> None:
        """Display nothing, because the check has printed the result."""


@dataclass(frozen=True)
class Exercise:
    """One function to write. Calling the exercise with the student's function checks it.

    Args:
        name: the name of the function, and of the check.
        level: 1 to 4; also the points.
        minutes: estimated working time.
        chapter: stem of the notebook that it goes with: "03-layer-normalization".
        objective: what students can do afterwards.
        reference: a right answer.
        cases: draws the cases from a random generator.
        mistakes: at least eight, which the cases can tell apart.
        facts: statements about a result, each with its test; reported when no mistake is recognized. A test that
            returns None does not apply to the result.
        way: how to call the answer; see `WAYS` in `subnorm_lab.checks.collect`.
        number: its place in the sheet.
        partial: whether the grader gives a wrong answer points, for its share of right cases.
        speaks: what a trained model says with an answer to the exercise of this name. In class it is printed below a
            wrong answer's result.
        template: what it was made from, if the sheets of different students ask for different variants.
        chosen: the variant that one student's sheet asks for; see `variant`.
    """

    name: str
    level: int
    minutes: int
    chapter: str
    objective: str
    reference: Callable[..., Any]
    cases: Callable[[np.random.Generator], list[Case]]
    mistakes: Sequence[Mistake]
    facts: Sequence[tuple[str, Callable[..., bool | None]]] = field(default=())
    way: str = "function"
    number: int = 0
    partial: bool = False
    speaks: Callable[[str, Callable[..., Any]], str] | None = None
    template: "Template | None" = None
    chosen: Variant | None = None

    @property
    def variants(self) -> Sequence[Variant]:
        """What the sheets of different students may ask for; none if all ask for the same."""
        return self.template.variants if self.template else ()

    def variant(self, label: str) -> "Exercise":
        """The exercise of a student whose sheet asks for this variant: an answer to another is a named mistake.

        Raises:
            ValueError: there is no such variant.
        """
        chosen = next((one for one in self.variants if one.label == label), None)
        if not self.template or not chosen:
            known = ", ".join(repr(one.label) for one in self.variants) or "none"
            raise ValueError(f"{self.name} has no variant {label!r}; its variants are {known}")
        return self.template.choose(chosen)

    def __call__(self, answer: Callable[..., Any], variant: str = "") -> Result:
        """Check an answer: print the result, and return it. Never raises, unless SUBNORM_CHECKS=raise is set.

        Args:
            answer: your function itself, without parentheses after its name.
            variant: what your sheet asks for, if it is your own; the sheet gives it.

        Raises:
            AssertionError: the answer is not right, and the environment variable SUBNORM_CHECKS is "raise".
        """
        if not callable(answer):
            got = type(answer).__name__
            seen = f"{SENTENCES['no_function']}: got {got}. Write your function's name without parentheses."
            result = Result(self.name, "no_function", seen)
        elif variant and variant not in [one.label for one in self.variants]:
            seen = f"this check has no variant {variant!r}: install the version of subnorm that your sheet came with."
            result = Result(self.name, "no_reference", seen)
        else:
            exercise = self.variant(variant) if variant else self
            cases = exercise.cases(np.random.default_rng(CLASS_SEED))
            result = exercise.judge(cases, exercise.choose(attempts(answer, cases, self.way), cases))
        SEEN[self.name] = result
        if os.environ.get("SUBNORM_CHECKS") == "raise" and not result:
            raise AssertionError(str(result))
        print(result)
        if self.speaks and not result and result.tag not in MUTE:
            print(f"   The model then says {self.speaks(self.name, answer)}")
        return result

    def judge(self, cases: Sequence[Case], outcomes: Sequence[Outcome], trusted: bool = True) -> Result:
        """The verdict on the outcomes of an answer; the first wrong cases decide it.

        Args:
            cases: the calls.
            outcomes: their outcomes.
            trusted: False tests facts only on small results: on a large one, a test may use up the memory of this
                machine.
        """
        if lacking := missing_library(self.way):
            return Result(self.name, "needs_library", f"this exercise needs {lacking}, which cannot be imported here.")
        if all(is_unwritten(outcome) for outcome in outcomes):
            forgotten = any(outcome.value is None and not outcome.error for outcome in outcomes)
            hint = "Your function returns None: if its body is written, a return is missing." if forgotten else ""
            return Result(self.name, "not_done", f"{SENTENCES['not_done']}.", hint)
        right = self.outcomes(self.reference, cases)
        for case, wanted in zip(cases, right, strict=True):
            if wanted.error != case.raises:
                what = f"its own answer gives {wanted.error or 'no error'}"
                return Result(self.name, "no_reference", f"this check does not work here: on {case.name}, {what}.")
        for edge in (False, True):
            wrong = [
                (k, fault)
                for k, (case, outcome, wanted) in enumerate(zip(cases, outcomes, right, strict=True))
                if case.edge == edge and (fault := difference(outcome, wanted, case.names))
            ]
            if wrong:
                k, (tag, seen) = wrong[0]
                mistake = self.recognize(cases, outcomes, edge, tag)
                testable = trusted or all(size_of(outcome.value) <= SMALL for outcome in outcomes)
                values_wrong = tag in ("value", "shape", "list_length", "error") and testable
                hint = mistake.says if mistake else self.advice(cases, outcomes, edge, tag) if values_wrong else ""
                return Result(self.name, mistake.tag if mistake else tag, f"on {cases[k].name}, {seen}.", hint, k)
        return Result(self.name, "right", f"right on all {len(cases)} inputs.")

    def choose(self, found: Sequence[list[Outcome]], cases: Sequence[Case]) -> list[Outcome]:
        """Of the outcomes with arrays, and with tensors if there are any, the right ones; otherwise see `choose`."""
        right = [one for one in found if len(found) > 1 and self.right_cases(cases, one) == len(cases)]
        return right[0] if right else choose(found, cases)

    def right_cases(self, cases: Sequence[Case], outcomes: Sequence[Outcome]) -> int:
        """The number of cases with a right outcome."""
        right = self.outcomes(self.reference, cases)
        return sum(
            difference(got, wanted, case.names) is None
            for case, got, wanted in zip(cases, outcomes, right, strict=True)
        )

    def recognize(self, cases: Sequence[Case], outcomes: Sequence[Outcome], edge: bool, tag: str) -> Mistake | None:
        """The one mistake with the same outcomes: on the plain cases, or on all if only edge cases are wrong.

        An answer to another variant is that, even if it is a mistake of this one as well.
        If the values are wrong, the dtype and the number of calls may also differ from those of our wrong answer.
        """
        chosen = [k for k, case in enumerate(cases) if edge or not case.edge]
        allowed = ("dtype", "calls") if tag in ("value", "shape") else ()

        def alike(mistake: Mistake, k: int) -> bool:
            theirs = self.outcomes(mistake.answer, [cases[k]])[0]
            fault = difference(outcomes[k], theirs, within=CLOSER)
            return outcomes[k].error == theirs.error and (fault is None or fault[0] in allowed)

        # run each mistake only up to the first case that differs: feedback must be instant
        found = [mistake for mistake in self.mistakes if all(alike(mistake, k) for k in chosen)]
        found = [mistake for mistake in found if mistake.tag.startswith(OTHER)] or found
        return found[0] if len(found) == 1 else None

    def outcomes(self, answer: Callable[..., Any], cases: Sequence[Case]) -> list[Outcome]:
        """The outcomes of an answer of ours."""
        return outcomes_of(answer, cases, self.way)

    def advice(self, cases: Sequence[Case], outcomes: Sequence[Outcome], edge: bool, tag: str) -> str:
        """Advice for an unknown mistake. Facts concern plain cases, so they do not help if those are right."""
        if edge:
            known = "The ordinary inputs are right: what is special about this one?"
        else:
            known = "" if tag == "error" else self.holds(cases, outcomes)
        if any(outcome.changed for outcome in outcomes):
            return f"{CHANGED.capitalize()}. {known}".strip()
        return known

    def holds(self, cases: Sequence[Case], outcomes: Sequence[Outcome]) -> str:
        """Which facts hold for every result on the plain cases, and which do not."""
        plain = [(c, o) for c, o in zip(cases, outcomes, strict=True) if not c.edge and not o.error]
        if not self.facts or not plain:
            return ""
        kept = {fact: [fact_holds(test, case, outcome) for case, outcome in plain] for fact, test in self.facts}
        decided = {fact: all(found) for fact, found in kept.items() if None not in found}
        if not decided:
            return ""
        yes = " and that ".join(fact for fact in decided if decided[fact])
        no = " and that ".join(fact for fact in decided if not decided[fact])
        if not yes:
            return f"It should be true that {no}."
        return f"It is true that {yes}." + (f" It should also be true that {no}." if no else "")


@dataclass(frozen=True)
class Template:
    """An exercise with one value left open, and the variants that fill it.

    Args:
        exercise: its texts may contain the parameter's name in braces.
        parameter: name of a keyword argument that the right answer takes, and cases, facts and mistakes may take.
        variants: the first is the argument's default, and that of the book and of every class-wide sheet.
    """

    exercise: Exercise
    parameter: str
    variants: Sequence[Variant]

    def fill(self, variant: Variant) -> Exercise:
        """The exercise with this value, in its texts and in its functions."""

        def words(text: str) -> str:
            return text.format(**{self.parameter: variant.label})

        def own(function: Callable[..., Any]) -> Callable[..., Any]:
            defaults = getattr(function, "__kwdefaults__", None) or {}
            if defaults.get(self.parameter, variant.value) == variant.value:
                return function
            return partial(function, **{self.parameter: variant.value})

        return replace(
            self.exercise,
            reference=own(self.exercise.reference),
            cases=own(self.exercise.cases),
            facts=[(words(fact), own(test)) for fact, test in self.exercise.facts],
            mistakes=[replace(m, says=words(m.says), answer=own(m.answer)) for m in self.exercise.mistakes],
            template=self,
        )

    def choose(self, chosen: Variant) -> Exercise:
        """The exercise of a student whose sheet asks for this variant."""
        others = []
        for one in self.variants:
            if one is not chosen:
                says = f"this is the answer for {one.label}; yours asks for {chosen.label}."
                others.append(Mistake(one.tag, says, self.fill(one).reference))
        own = self.fill(chosen)
        return replace(own, mistakes=[*others, *own.mistakes], chosen=chosen)


#: tag, change, sentence, and an optional source. The change is one "old -> new", several, or a wrong answer.
Row = tuple[str, str | tuple[str, ...] | Callable[..., Any], str] | tuple[str, Any, str, str]


def exercise(
    *, mistakes: Sequence[Row], parameter: str = "", variants: Sequence[tuple[Any, ...]] = (), **settings: Any
) -> Callable[[Callable[..., Any]], Exercise]:
    """A decorator that makes an `Exercise` from its right answer, and names it after that function.

    Args:
        mistakes: one row each: ``("ddof1", "x.var(-1, -> x.var(-1, ddof=1,", "your variance is unbiased.")``,
            optionally with a source; https://github.com/ can be left out.
        parameter: what the variants differ in; see `Template`.
        variants: one row each, the first for the default: ``("percent", 100, "a fraction -> percent")``; see `Variant`.
        settings: the other arguments of an `Exercise`.
    """

    def make(reference: Callable[..., Any]) -> Exercise:
        named = [mistake(reference, *row) for row in mistakes]
        new = Exercise(name=reference.__name__, reference=reference, mistakes=named, **settings)
        values = [Variant(*row) for row in variants]
        return Template(new, parameter, values).fill(values[0]) if values else new

    return make


def mistake(reference: Callable[..., Any], tag: str, change: Any, says: str, source: str = "") -> Mistake:
    """A mistake from its row."""
    if not callable(change):
        try:
            change = Edited(reference, *([change] if isinstance(change, str) else change))
        except ValueError as error:
            raise ValueError(f"the mistake {tag!r} of {reference.__name__}: {error}") from None
    if source and not source.startswith("https://"):
        source = f"https://github.com/{source}"
    return Mistake(tag, says, change, source)


def totals(exercises: Sequence[Exercise]) -> str:
    """The totals of a sheet: "8 exercises, 95 minutes, 16 points"."""
    minutes, points = sum(ex.minutes for ex in exercises), sum(ex.level for ex in exercises)
    return f"{len(exercises)} exercises, {minutes} minutes, {points} points"


SEEN: dict[str, Result] = {}  # the last result of each check of this session


def progress() -> None:
    """Print the exercises that were checked in this session, and which are right."""
    for result in SEEN.values():
        print(f"{result.mark} {result.exercise}" + ("" if result else f" ({result.tag})"))
    print(f"{sum(map(bool, SEEN.values()))} of {len(SEEN)} exercises that you have checked are right.")


def missing_library(way: str) -> str:
    """The name of a library that this way of calling needs but that cannot be imported; otherwise empty."""
    for module, name in NEEDS.get(way, {}).items():
        try:
            importlib.import_module(module)
        except Exception:  # a half-installed library fails in many ways
            return name
    return ""


def is_unwritten(outcome: Outcome) -> bool:
    """Whether the function has no body yet."""
    # a PyTorch module without a forward raises the same error
    if outcome.error:
        written = outcome.about in UNSUPPORTED or '"forward"' in outcome.message
        return outcome.error == "NotImplementedError" and not written
    return outcome.value is None or outcome.value is ...


def fact_holds(test: Callable[..., bool | None], case: Case, outcome: Outcome) -> bool | None:
    """Whether a fact holds for a result, which may have any shape or type; None if it does not apply."""
    try:
        found = test(outcome.value, *convert(case.args, tensors=False))  # a copy: calls are counted
        return None if found is None else bool(found)
    except Exception:
        return False


def difference(
    got: Outcome, wanted: Outcome, names: str = "", within: Mapping[str, tuple[float, float]] | None = None
) -> tuple[str, str] | None:
    """(tag, sentence with its numbers) of the first difference between two outcomes; None if they agree.

    Args:
        got: of an answer.
        wanted: of the right one.
        names: what the message of an error has to name.
        within: as `TOLERANCE`, if not that.
    """
    if got.error or wanted.error:
        if wanted.error and wanted.error in (got.error, *got.kinds):
            return None if names in got.message else ("message", f"{SENTENCES['message']}: {names!r}")
        if not got.error:
            seen = f"it returns {short(got.value)}, but should raise {wanted.error}"
            return "no_error", f"{SENTENCES['no_error']}: {seen}"
        if got.about in UNSUPPORTED:
            return "error", UNSUPPORTED[got.about]
        where = f" in line {got.line} of your cell" if got.line else ""
        said = got.message.split("\n")[0]
        return "error", f"it raises {got.error}{where}" + (f": {said}" if said else "")
    for tag, numbers in differences(got.value, wanted.value, WHOLE, within or TOLERANCE):
        return tag, f"{SENTENCES[tag]}: {numbers}"
    if got.changed and not wanted.changed:
        return "in_place", SENTENCES["in_place"]
    if got.calls != wanted.calls:
        return "calls", f"{SENTENCES['calls']}: {got.calls} times instead of {wanted.calls}"
    return None


def size_of(value: Any, depth: int = 3) -> int:
    """How many numbers or letters a result has; a list in a list in a list counts as large."""
    if isinstance(value, dict | list | tuple):
        parts = list(value.values()) if isinstance(value, dict) else value
        return len(parts) + sum(size_of(part, depth - 1) for part in parts) if depth else SMALL + 1
    if isinstance(value, np.ndarray):
        return int(value.size)
    return len(value) if isinstance(value, str) else 1


def differences(
    got: Any, wanted: Any, name: str, within: Mapping[str, tuple[float, float]]
) -> Iterator[tuple[str, str]]:
    """The differences between two values, as (tag, numbers)."""
    if isinstance(wanted, dict):
        if not isinstance(got, dict) or set(got) != set(wanted):
            keys = sorted(got) if isinstance(got, dict) else type(got).__name__
            yield "keys", f"{name} has keys {keys}, but should have {sorted(wanted)}"
            return
        for key in wanted:
            yield from differences(got[key], wanted[key], key, within)
    elif isinstance(wanted, tuple | list):
        if not isinstance(got, tuple | list) or len(got) != len(wanted):
            if isinstance(got, tuple | list):
                tag = "count" if name == WHOLE else "list_length"
                yield tag, f"{name} has {len(got)} values, but should have {len(wanted)}"
            else:
                kind = f"a {type(wanted).__name__} of {len(wanted)} values"
                yield "type", f"{name} is {short(got)}, but should be {kind}"
            return
        for k, (one, other) in enumerate(zip(got, wanted, strict=True)):
            yield from differences(one, other, entry(name, k), within)
    elif isinstance(wanted, str | bool) or wanted is None:
        if type(got) is not type(wanted) and not (isinstance(wanted, bool) and is_truth(got)):
            yield "type", f"{name} is {short(got)}, but should be {short(wanted)}"
        elif got != wanted:
            yield "value", f"{name} is {short(got)}, but should be {short(wanted)}"
    else:
        yield from array_differences(got, wanted, name, within)


def array_differences(
    got: Any, wanted: Any, name: str, within: Mapping[str, tuple[float, float]]
) -> Iterator[tuple[str, str]]:
    """The differences between numbers: first the shape, then the values, then the dtype."""
    expected = np.asarray(wanted)
    try:
        found = np.asarray(got if only_numbers(got) else None)
    except Exception:  # rows of different lengths, or an object without an array
        found = np.asarray(None)
    if found.dtype.kind not in "fiub":
        yield "type", f"{name} is {short(got)}, but should be numbers of shape {expected.shape}"
        return
    if found.shape != expected.shape:
        yield "shape", f"{name} has shape {found.shape}, but should have {expected.shape}"
        return
    rtol, atol = within.get(str(expected.dtype), within["float64"])
    if expected.dtype.kind in "iub":
        rtol = atol = 0
    elif sizes := np.abs(expected[np.isfinite(expected)]).astype(float).tolist():
        atol *= min(max(sizes) or 1, 1)
    same = np.isclose(found.astype(float), expected.astype(float), rtol, atol, equal_nan=True)
    if not same.all():
        with np.errstate(all="ignore"):  # for inf - inf
            off = np.where(same, -1, np.nan_to_num(np.abs(found.astype(float) - expected), nan=np.inf))
        at = tuple(int(k) for k in np.unravel_index(off.argmax(), off.shape))
        place = entry(name, *at) if at else name
        seen = f"{place} is {short(found[at])}, but should be {short(expected[at])}"
        if found.dtype.kind == expected.dtype.kind == "f" and found.dtype.itemsize < expected.dtype.itemsize:
            seen += f" (and the dtype is {found.dtype}, but should be {expected.dtype})"  # a possible reason
        yield "value", seen
    elif isinstance(wanted, np.ndarray) and wanted.ndim and found.dtype != wanted.dtype:
        yield "dtype", f"{name} has dtype {found.dtype}, but should have {wanted.dtype}"


def entry(name: str, *at: int) -> str:
    """How messages call an entry: of "the result", as in code, "result[0, 7]"."""
    return f"{name.removeprefix('the ')}[{', '.join(map(str, at))}]"


def only_numbers(value: Any) -> bool:
    """Whether there are no strings among the values: NumPy pads every entry to the length of the longest."""
    return all(map(only_numbers, value)) if isinstance(value, list | tuple) else not isinstance(value, str | bytes)


def is_truth(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == bool and value.ndim == 0


def short(value: Any) -> str:
    """A value as a short text."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of shape {value.shape}"
    if isinstance(value, np.generic | np.ndarray):
        value = value.item()
    return f"{value:.5g}" if isinstance(value, float) else repr(value)[:60]
