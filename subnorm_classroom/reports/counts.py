"""What a class has understood, and what not: counts of its answers, mistakes and lost points.

A mark set by hand counts as decided: full points are right, whatever the grader found. A hand-in without a notebook to
grade counts in no exercise.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from subnorm_classroom.errors import Refusal
from subnorm_classroom.grading.behaviour import Trace, alike
from subnorm_classroom.grading.verdict import OURS, SAYS, UNKNOWN
from subnorm_classroom.reports.beliefs import Belief
from subnorm_classroom.reports.gradebook import Gradebook
from subnorm_classroom.reports.records import Record, is_late, points
from subnorm_lab.checks import SETS
from subnorm_lab.checks.exercise import OTHER, Exercise

BY_HAND = "by_hand"
SENTENCES = SAYS | {
    "cell_error": "the cell that defines it raises an error, so there is no function",
    "variant": "the answer to another student's variant",
    BY_HAND: "points taken off by hand, from an answer that the checks find right",
}
SAME_WORDS = 2 / 3  # of two sentences on the same mistake in two sheets


@dataclass
class Answers:
    """The answers to one exercise that show the same, other than right ones.

    Args:
        kind: "named", "unknown" or "none".
        tag: the diagnosis.
        says: a sentence on what they do.
        who: the numbers of their hand-ins in the sheet.
        lost: their lost points.
        example: the file of one of them, which the page does not show.
    """

    kind: str
    tag: str
    says: str
    who: set[int] = field(default_factory=set)
    lost: float = 0
    example: str = ""
    does: tuple[int, Sequence[Trace]] = (0, ())  # of the first one: the seed of its inputs, and its traces

    @property
    def students(self) -> int:
        return len(self.who)


@dataclass
class Question:
    """One exercise, with all answers to it."""

    exercise: Exercise
    right: int = 0
    by_hand: int = 0
    lost: float = 0
    unjudged: int = 0  # by the grader's own fault; they count nowhere else
    answers: list[Answers] = field(default_factory=list)

    @property
    def many(self) -> int:
        """How many answers were judged."""
        return self.right + sum(answers.students for answers in self.answers)

    def of(self, kind: str) -> list[Answers]:
        """The answers of a kind, the most frequent first."""
        found = [answers for answers in self.answers if answers.kind == kind]
        return sorted(found, key=lambda answers: (-answers.students, answers.tag, answers.says))


@dataclass
class Sheet:
    """One sheet, with everything that a class handed in."""

    name: str
    versions: dict[str, Any] = field(default_factory=dict)
    records: list[tuple[Record, int]] = field(default_factory=list)  # with the seed of their inputs
    books: dict[Path, tuple[Gradebook, set[int]]] = field(default_factory=dict)  # gradebooks, and the rows handed in
    strangers: int = 0  # hand-ins that match no row of theirs

    @property
    def absent(self) -> int | None:
        """How many students of the gradebooks did not hand in; None without a gradebook."""
        left = [len(set(book.students()) - rows) for book, rows in self.books.values()]
        return sum(left) if left else None

    @property
    def problems(self) -> Counter[str]:
        """How many hand-ins had no notebook to grade, by the reason."""
        return Counter(record["problem"] for record, _ in self.records if record["problem"])

    @property
    def judged(self) -> int:
        """How many hand-ins the counts are of."""
        return sum(any(counts(record, r) for r in record["results"]) for record, _ in self.records)

    @property
    def late(self) -> int:
        return sum(is_late(record) for record, _ in self.records)


@dataclass
class Topic:
    """Something to teach: a belief, a named mistake behind which the teacher's page has none, or no result."""

    belief: Belief | None
    tag: str
    sheet: str
    kind: str = "named"
    said: Counter[tuple[str, str]] = field(default_factory=Counter)  # (exercise, sentence): how many answers
    chapters: set[str] = field(default_factory=set)  # of the exercises: "03-layer-normalization"
    students: dict[str, set[int]] = field(default_factory=dict)  # by sheet
    lost: float = 0

    @property
    def many(self) -> int:
        return sum(map(len, self.students.values()))


def questions_of(sheet: Sheet) -> list[Question]:
    """The exercises of a sheet, in its order."""
    known = {ex.name: ex for ex in SETS[sheet.name]}
    found: dict[str, Question] = {}
    for k, (record, seed) in enumerate(sheet.records):
        for r in record["results"]:
            if r["exercise"] not in known:
                raise Refusal(f"{sheet.name} has no exercise {r['exercise']} in this version; grade it again")
            question = found.setdefault(r["exercise"], Question(known[r["exercise"]]))
            if counts(record, r):
                count(question, r, seed, record, k)
    return sorted(found.values(), key=lambda question: question.exercise.number)


def counts(record: Record, result: Record) -> bool:
    """Whether a result is somebody's answer, or a teacher has found some of a hand-in right and decided it by hand."""
    return not record["problem"] or ("by_hand" in result and points(record)[0] > 0)


def count(question: Question, r: Record, seed: int, record: Record, k: int) -> None:
    """Add one result to an exercise."""
    question.by_hand += "by_hand" in r
    if r["points"] == r["max_points"]:
        question.right += 1
        return
    if r["diagnosis"] in OURS and "by_hand" not in r:
        question.unjudged += 1
        return
    one = described(question.exercise, r, seed, record)
    same = next((answers for answers in question.answers if together(answers, one)), None)
    if same is None:
        question.answers.append(one)
        same = one
    same.who.add(k)
    same.lost += r["max_points"] - r["points"]
    question.lost += r["max_points"] - r["points"]


def described(exercise: Exercise, r: Record, seed: int, record: Record) -> Answers:
    """A wrong answer in words of ours: nothing in them comes from a student."""
    tag = str(r["diagnosis"])
    named = {mistake.tag: mistake.says for mistake in exercise.mistakes}
    if tag in named:
        return Answers("named", tag, named[tag])
    if tag.startswith(OTHER):
        return Answers("none", "variant", f"{SENTENCES['variant']}.")
    if tag == "right" or tag in OURS:
        return Answers("none", BY_HAND, f"{SENTENCES[BY_HAND]}.")
    if tag in UNKNOWN:
        does = r.get("does", ())
        return Answers("unknown", tag, unsigned(tag, r["says"]), example=record.get("file", ""), does=(seed, does))
    if tag in SENTENCES:
        return Answers("none", tag, f"{SENTENCES[tag]}.")
    raise Refusal(f"{exercise.name} has no mistake {tag!r} in this version of the course; grade its sheet again")


def unsigned(tag: str, says: str) -> str:
    """The grader's sentence on a wrong answer, without what differs between answers that do the same.

    The sentence on an error may name a module that the student's cells import; all of that is cut off.
    """
    says = re.sub(r" Partial credit: \d+% of the inputs are right\.$", "", says)
    raises = re.match(r"(on .+?, it raises [\w ]+?)(?: in line \d+ of its cell)?[.:]", says) if tag == "error" else None
    return f"{raises[1]}." if raises else says


def together(group: Answers, one: Answers) -> bool:
    """Whether an answer belongs to a group: the same mistake, or as far as the cases tell the same results."""
    if (group.tag, group.says) != (one.tag, one.says):
        return False
    (seed, does), (other, results) = group.does, one.does
    return seed == other and len(does) == len(results) and all(map(alike, does, results))


Questions = dict[str, list[Question]]  # the exercises of each sheet, by its name


def groups(questions: Questions, *kinds: str) -> Iterator[tuple[str, Exercise, Answers]]:
    """(sheet, exercise, answers) of all groups of wrong answers of some kinds."""
    for sheet, found in questions.items():
        for question in found:
            for kind in kinds:
                yield from ((sheet, question.exercise, answers) for answers in question.of(kind))


def topics(questions: Questions, known: Sequence[Belief]) -> list[Topic]:
    """What to teach, by lost points. Each mistake counts once: for the belief of its own sheet, or else of another.

    What has no result, as what is not done, is one topic for each reason.
    """
    found: dict[tuple[str, str], Topic] = {}
    for sheet, exercise, answers in groups(questions, "named", "none"):
        tag = answers.tag
        if answers.kind == "named":
            own = [one for one in known if (exercise.name, tag) in one.catches]
            behind = next(iter(own or [one for one in known if one.behind(sheet, exercise.name, tag)]), None)
            key = (behind.sheet, behind.text) if behind else (sheet, tag)
            note(found.setdefault(key, Topic(behind, tag, sheet)), sheet, exercise, answers)
        elif tag != BY_HAND:
            note(found.setdefault(("", tag), Topic(None, tag, "", "none")), sheet, exercise, answers)
    return sorted(found.values(), key=lambda topic: (-topic.lost, -topic.many, topic.sheet, topic.tag))


def returning(questions: Questions, known: Sequence[Belief]) -> list[Topic]:
    """Beliefs behind mistakes in more than one sheet, and other mistakes of one name and nearly the same words."""
    by_belief = [Topic(one, "", one.sheet) for one in known]
    others: list[Topic] = []
    for sheet, exercise, answers in groups(questions, "named"):
        tag = answers.tag
        behind = [topic for topic in by_belief if topic.belief and topic.belief.behind(sheet, exercise.name, tag)]
        if not behind:
            same = (one for one in others if one.tag == tag and any(same_words(s, answers.says) for _, s in one.said))
            behind = list(same)[:1]
            if not behind:
                others.append(Topic(None, tag, sheet))
                behind = others[-1:]
        for topic in behind:
            note(topic, sheet, exercise, answers)
    found = [topic for topic in by_belief + others if len(topic.students) > 1]
    return sorted(found, key=lambda topic: (-topic.many, topic.sheet, topic.tag))


def note(topic: Topic, sheet: str, exercise: Exercise, answers: Answers) -> None:
    topic.students[sheet] = topic.students.get(sheet, set()) | answers.who
    topic.said[exercise.name, answers.says] += answers.students
    topic.chapters.add(exercise.chapter)
    topic.lost += answers.lost


def same_words(one: str, other: str) -> bool:
    """Whether two sentences share most of their words."""
    first, second = (set(re.findall(r"\w+", text.lower())) for text in (one, other))
    return len(first & second) > SAME_WORDS * min(len(first), len(second))
