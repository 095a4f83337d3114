"""The page of the class overview: it loads nothing, reads well on a phone and in the dark, and prints on two sides.

It contains no text that a student chose.
"""

import html
import re
from collections.abc import Iterator, Sequence

from subnorm_classroom.reports.beliefs import anchor
from subnorm_classroom.reports.counts import Answers, Question, Sheet, Topic
from subnorm_classroom.reports.document import document
from subnorm_classroom.text import as_html, counted

TOPICS = 3
PRINTED = {"named": 3, "unknown": 1, "none": 1}  # rows of each kind that are printed; a screen shows all
FEW = 5  # students
WORDS = {"right": "right", "named": "with a named mistake", "unknown": "wrong in another way", "none": "without result"}
REST = {"named": "more named mistakes", "unknown": "more kinds of unknown answers", "none": "more reasons"}

STYLE = """\
:root {
  color-scheme: light dark;
  --page: #fff; --ink: #1c1c1c; --quiet: #595959; --link: #00569c; --line: #ccc; --back: #e6e6e6;
  --right: #0072b2; --named: #c04f00; --unknown: #9b4a86; --none: #757575;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --page: #161616; --ink: #ededed; --quiet: #b5b5b5; --link: #8ec8ff; --line: #555; --back: #3a3a3a;
    --right: #56b4e9; --named: #e69f00; --unknown: #d98cbd; --none: #a0a0a0;
  }
}
html { background: var(--page); color: var(--ink); }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 52rem; margin: 0 auto; padding: 1rem; }
main { overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1.05rem; margin: 1.25rem 0 .25rem; }
p { margin: .3rem 0; }
a { color: var(--link); }
ol { padding-left: 1.4rem; }
ol li { margin-bottom: .8rem; }
.quiet { color: var(--quiet); font-size: .95em; }
table { border-collapse: collapse; width: 100%; }
th, td { border-top: 1px solid var(--line); padding: .3rem .4rem .3rem 0; text-align: left; vertical-align: top; }
th { font-weight: normal; }
thead th { color: var(--quiet); font-size: .9em; border: 0; }
td, thead th + th { text-align: right; overflow-wrap: normal; white-space: nowrap; }
td span { white-space: nowrap; }
.wide { overflow-x: auto; }
.wide th { min-width: 9rem; }
@media (max-width: 40rem) { td, thead th + th { white-space: normal; } }
svg { display: block; width: 100%; height: .7rem; background: var(--back); }
tbody th svg, li svg { margin: .2rem 0 .1rem; }
.right { fill: var(--right); color: var(--right); }
.named { fill: var(--named); color: var(--named); }
.unknown { fill: var(--unknown); color: var(--unknown); }
.none { fill: var(--none); color: var(--none); }
.key span { margin-right: .8rem; white-space: nowrap; }
.key span::before { content: "■ "; }
.rest { display: none; }
code { font-size: .92em; }
@media print {
  @page { size: A4; margin: 11mm; }
  body { font-size: 8pt; line-height: 1.25; max-width: none; padding: 0; }
  h1 { font-size: 13pt; }
  h2 { font-size: 10.5pt; margin: .7rem 0 .2rem; break-after: avoid; }
  h3 { font-size: 9pt; margin: .5rem 0 .1rem; break-after: avoid; }
  ol li { margin-bottom: .3rem; }
  th, td { padding: .1rem .3rem .1rem 0; }
  svg, .key span::before { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  svg { height: .45rem; }
  a { color: inherit; }
  .more { display: none; }
  .rest { display: table-row; }
  .exercises { columns: 2; column-gap: 7mm; }
  .exercises svg { display: none; }
  li, tr { break-inside: avoid; }
}
"""


def page(
    sheets: Sequence[Sheet],
    questions: dict[str, list[Question]],
    topics: Sequence[Topic],
    returning: Sequence[Topic],
    base: str,
) -> str:
    """The page, in HTML.

    Args:
        sheets: the sheets, in order.
        questions: the exercises of each sheet, by its name.
        topics: what to teach, the most important first.
        returning: beliefs in more than one sheet.
        base: what to write before the path of a page of the book; empty for no links.
    """
    title = f"Class overview: {', '.join(questions)}"
    parts = [f"<h1>{title}</h1>", *(handed_in(sheet, questions[sheet.name]) for sheet in sheets)]
    parts += teach(sheets, questions, topics, base)
    parts += come_back(sheets, returning, base) if len(sheets) > 1 else []
    for sheet in sheets:
        parts += [f"<h2>The exercises of {sheet.name}</h2>", shares(questions[sheet.name])]
        parts += ['<div class="exercises">', *map(exercise, questions[sheet.name]), "</div>"]
    parts.append(
        '<p class="quiet">Marks set by hand count as you set them. Hand-ins without a notebook to grade count in no '
        "exercise unless you gave them points. Unknown wrong answers are one group if their results agree on all "
        "inputs of the check.</p>"
    )
    return document(title, STYLE, "\n".join(parts))


def handed_in(sheet: Sheet, questions: Sequence[Question]) -> str:
    """Who handed in, in numbers."""
    many, problems = len(sheet.records), sheet.problems
    says = [f"{sheet.name}: {counted(many, 'hand-in')}"]
    if problems:
        reasons = ", ".join(f"{tag} {k}" for tag, k in sorted(problems.items()))
        says.append(f"{problems.total()} without a notebook to grade ({reasons})")
    if sheet.late:
        says.append(f"{sheet.late} late")
    if by_hand := sum(question.by_hand for question in questions):
        says.append(f"{counted(by_hand, 'mark')} set by hand")
    if sheet.absent is not None:
        says.append(f"{counted(sheet.absent, 'student')} of the gradebook did not hand in")
    if sheet.strangers:
        says.append(
            f"{counted(sheet.strangers, 'hand-in')} matched no row of it, so up to {sheet.strangers} fewer are missing"
        )
    if unjudged := sum(question.unjudged for question in questions):
        says.append(f"{counted(unjudged, 'answer')} could not be judged by the grader: repair it, and grade again")
    text = "; ".join(says) + "."
    if sheet.judged < FEW:
        text += f" With {counted(sheet.judged, 'notebook')}, a percentage here is a matter of single students."
    return f"<p>{text}</p>"


def teach(
    sheets: Sequence[Sheet], questions: dict[str, list[Question]], topics: Sequence[Topic], base: str
) -> Iterator[str]:
    """What to teach tomorrow."""
    lost = sum(question.lost for found in questions.values() for question in found)
    yield "<h2>Teach this tomorrow</h2>"
    if shared := [topic for topic in topics if topic.many > 1]:
        yield from ("<ol>", *(headline(topic, sheets, lost, base) for topic in shared[:TOPICS]), "</ol>")
    else:
        yield f"<p>{'Nothing cost more than one student a point' if lost else 'No answer lost a point'}.</p>"
    named = sum(topic.lost for topic in topics if topic.kind == "named")
    yield (
        f'<p class="quiet">Named mistakes cost {g(named)} of {g(lost)} lost points. A mistake suggests a belief; it '
        "does not prove it. Ask before you explain.</p>"
    )


def headline(topic: Topic, sheets: Sequence[Sheet], lost: float, base: str) -> str:
    """What to teach first, second and third."""
    who = ", ".join(
        f"{of(many, all_)} students{where} {percent(many, all_)}" for many, all_, where in of_each(topic, sheets)
    )
    cost = f"{who}; {of(topic.lost, lost)} lost points {percent(topic.lost, lost)}."
    head = f"<strong>{heading_of(topic)}</strong>{bar([(topic.lost, topic.kind)], lost)}"
    return f"<li>{head}<p>{cost}</p>{''.join(where_it_shows(topic))}<p>{links(topic, base)}</p></li>"


def where_it_shows(topic: Topic) -> Iterator[str]:
    """Where it shows: two mistakes with their sentences; or the exercises, where all have the same."""
    if topic.kind == "named":
        for (ex, says), _ in topic.said.most_common(2):
            yield f"<p><code>{ex}</code>: {as_html(says)}</p>"
        return
    (_, says), _ = topic.said.most_common(1)[0]
    says = "" if topic.tag == "not_done" else f"{as_html(says)} "  # the headline says it
    where = ", ".join(f"<code>{ex}</code> {many}" for (ex, _), many in topic.said.most_common())
    yield f"<p>{says}Students, by exercise: {where}.</p>"


def of_each(topic: Topic, sheets: Sequence[Sheet]) -> Iterator[tuple[int, int, str]]:
    """(students, all students, where) of a topic in each sheet that has it."""
    for sheet in sheets:
        if sheet.name in topic.students:
            yield len(topic.students[sheet.name]), sheet.judged, f" in {sheet.name}" if len(sheets) > 1 else ""


def heading_of(topic: Topic) -> str:
    if topic.tag == "not_done":
        return "Not done"
    return as_html(re.sub(r'"([^"]*)"', r"“\1”", topic.belief.text)) if topic.belief else f"<code>{topic.tag}</code>"


def links(topic: Topic, base: str) -> str:
    """Where to read: for a belief its section and its entry on the teacher's page; for a mistake its chapters."""
    if topic.belief is None:
        found = [link(base, f"notebooks/{chapter}", "", chapter_of(chapter)) for chapter in sorted(topic.chapters)]
        return ", ".join(found) + (" · no belief on the teacher's page" if topic.kind == "named" else "")
    page, section = topic.belief.page, topic.belief.section
    where = link(base, page, section, f"{chapter_of(page.removeprefix('notebooks/'))}, “{section}”")
    return f"{where} · {link(base, 'book/teaching', topic.belief.text, f'teacher’s page, {topic.belief.sheet}')}"


def chapter_of(stem: str) -> str:
    """The short name of a chapter or a sheet: "chapter 03"."""
    folder, _, name = stem.rpartition("/")
    return f"{'sheet' if folder else 'chapter'} {name.split('-')[0]}"


def link(base: str, path: str, title: str, text: str) -> str:
    text, at = html.escape(text), f"#{anchor(title)}" if title else ""
    return f'<a href="{html.escape(base)}{path}.html{at}">{text}</a>' if base else text


def come_back(sheets: Sequence[Sheet], topics: Sequence[Topic], base: str) -> Iterator[str]:
    """Beliefs in more than one sheet."""
    yield "<h2>Beliefs that return</h2>"
    if not topics:
        yield "<p>No belief or named mistake occurs in two of these sheets.</p>"
        return
    heads = "".join(f'<th scope="col">{sheet.name}</th>' for sheet in sheets)
    yield '<div class="wide" role="region" aria-label="Beliefs that return" tabindex="0">'
    yield f'<table><thead><tr><th scope="col">Belief or mistake</th>{heads}</tr></thead><tbody>'
    for topic in topics:
        (_, says), _ = topic.said.most_common(1)[0]
        text = links(topic, base) if topic.belief else f"{as_html(says)} {links(topic, base)}"
        cells = ""
        for sheet in sheets:
            many = len(topic.students.get(sheet.name, ()))
            cells += f"<td>{part(many, sheet.judged)}{bar([(many, 'named')], sheet.judged)}</td>"
        yield f'<tr><th scope="row">{heading_of(topic)}<br><span class="quiet">{text}</span></th>{cells}</tr>'
    yield "</tbody></table></div>"


def shares(questions: Sequence[Question]) -> str:
    """The shares of right answers, as pictures in a table."""
    rows = ""
    for question in questions:
        counts = {"right": question.right} | {kind: sum(a.students for a in question.of(kind)) for kind in PRINTED}
        picture = bar([(many, kind) for kind, many in counts.items()], question.many)
        others = ", ".join(f"{many} {WORDS[kind]}" for kind, many in counts.items() if many and kind != "right")
        head = f'<code>{question.exercise.name}</code> <span class="quiet">{others}</span>{picture}'
        rows += f'<tr><th scope="row">{head}</th><td>{part(question.right, question.many)}</td></tr>'
    key = " ".join(f'<span class="{kind}">{word}</span>' for kind, word in WORDS.items())
    heads = '<tr><th scope="col">Exercise</th><th scope="col">Right</th></tr>'
    return f'<p class="key">{key}</p><table><thead>{heads}</thead><tbody>{rows}</tbody></table>'


def exercise(question: Question) -> str:
    """One exercise: everything that was not right, the most frequent first."""
    head = f"<h3><code>{question.exercise.name}</code>: {part(question.right, question.many)} right</h3>"
    if not question.answers:
        return f"<section>{head}</section>"
    rows: list[str] = []
    for kind, most in PRINTED.items():
        found = question.of(kind)
        rows += [row(one, question.many, k, k > most) for k, one in enumerate(found, 1)]
        if rest := found[most:]:
            cells = f"<td>{sum(one.students for one in rest)}</td><td>{g(sum(one.lost for one in rest))}</td>"
            rows.append(f'<tr class="rest"><th scope="row">{REST[kind]}: {len(rest)}</th>{cells}</tr>')
    heads = "".join(f'<th scope="col">{text}</th>' for text in ("What the answers do", "Students", "Points lost"))
    return f"<section>{head}<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></section>"


def row(one: Answers, many: int, k: int, more: bool) -> str:
    label = f"Unknown {k}: " if one.kind == "unknown" else ""
    head = f"{label}{as_html(one.says)} <code>{one.tag}</code>{bar([(one.students, one.kind)], many)}"
    look = ' class="more"' if more else ""
    return f'<tr{look}><th scope="row">{head}</th><td>{part(one.students, many)}</td><td>{g(one.lost)}</td></tr>'


def bar(parts: Sequence[tuple[float, str]], whole: float) -> str:
    """A bar whose numbers are in the text beside it."""
    rects, at = "", 0.0
    for many, kind in parts:
        rects += f'<rect class="{kind}" x="{g(at)}" width="{g(many)}" height="1"/>' if many else ""
        at += many
    return f'<svg viewBox="0 0 {g(whole or 1)} 1" preserveAspectRatio="none" aria-hidden="true">{rects}</svg>'


def part(many: float, whole: float) -> str:
    return f"{of(many, whole)} {percent(many, whole)}"


def of(many: float, whole: float) -> str:
    return f"<span>{g(many)} of {g(whole)}</span>"


def percent(many: float, whole: float) -> str:
    return f"<span>({many / whole:.0%})</span>".replace("%", "\N{NO-BREAK SPACE}%") if whole else ""


def g(value: float) -> str:
    return f"{round(value, 2):g}"
