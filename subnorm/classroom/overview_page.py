"""The page of the class overview: it loads nothing, reads well on a phone and in the dark, and prints on two sides.

It contains no text that a student chose.
"""

import html
from collections.abc import Iterator, Sequence

from subnorm.classroom.beliefs import anchor
from subnorm.classroom.overview import Answers, Question, Sheet, Topic
from subnorm.classroom.page import code

TOPICS = 3
PRINTED = {"named": 5, "unknown": 2, "none": 2}  # rows of each kind that are printed; a screen shows all
FEW = 5  # students

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>
:root {{
  color-scheme: light dark; --line: #ccc; --quiet: #595959; --link: #00569c; --back: #e6e6e6;
  --right: #0072b2; --named: #c04f00; --unknown: #9b4a86; --none: #757575;
}}
@media (prefers-color-scheme: dark) {{
  :root {{
    --line: #555; --quiet: #b5b5b5; --link: #8ec8ff; --back: #3a3a3a;
    --right: #56b4e9; --named: #e69f00; --unknown: #d98cbd; --none: #a0a0a0;
  }}
}}
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 52rem; margin: 0 auto; padding: 1rem; }}
main {{ overflow-wrap: anywhere; }}
h1 {{ font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; }}
h2 {{ font-size: 1.25rem; margin: 2rem 0 .5rem; }}
h3 {{ font-size: 1.05rem; margin: 1.25rem 0 .25rem; }}
p {{ margin: .3rem 0; }}
a {{ color: var(--link); }}
ol {{ padding-left: 1.4rem; }}
ol li {{ margin-bottom: .8rem; }}
.quiet {{ color: var(--quiet); font-size: .95em; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ border-top: 1px solid var(--line); padding: .3rem .4rem .3rem 0; text-align: left; vertical-align: top; }}
th {{ font-weight: normal; }}
thead th {{ color: var(--quiet); font-size: .9em; border: 0; }}
td, thead th + th {{ text-align: right; white-space: nowrap; overflow-wrap: normal; }}
svg {{ display: block; width: 100%; height: .7rem; background: var(--back); }}
tbody th svg, li svg {{ margin: .2rem 0 .1rem; }}
.right {{ fill: var(--right); color: var(--right); }}
.named {{ fill: var(--named); color: var(--named); }}
.unknown {{ fill: var(--unknown); color: var(--unknown); }}
.none {{ fill: var(--none); color: var(--none); }}
.key span::before {{ content: "■ "; }}
.rest {{ display: none; }}
code {{ font-size: .92em; }}
@media print {{
  @page {{ size: A4; margin: 11mm; }}
  :root {{ color-scheme: light; }}
  body {{ font-size: 8.2pt; line-height: 1.28; max-width: none; padding: 0; }}
  h1 {{ font-size: 13pt; }}
  h2 {{ font-size: 10.5pt; margin: .7rem 0 .2rem; break-after: avoid; }}
  h3 {{ font-size: 9pt; margin: .5rem 0 .1rem; break-after: avoid; }}
  ol li {{ margin-bottom: .3rem; }}
  th, td {{ padding: .1rem .3rem .1rem 0; }}
  svg, .key span::before {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
  svg {{ height: .45rem; }}
  a {{ color: inherit; }}
  .more {{ display: none; }}
  .rest {{ display: table-row; }}
  .exercises {{ columns: 2; column-gap: 7mm; }}
  .exercises section, li, tr {{ break-inside: avoid; }}
}}
</style>
</head>
<body>
<main>
{parts}
</main>
</body>
</html>
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
        sheets: in order.
        questions: the exercises of each sheet.
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
        "exercise unless you marked them. Unknown wrong answers are one group if their results agree on all inputs of "
        "the check.</p>"
    )
    return PAGE.format(title=title, parts="\n".join(parts))


def handed_in(sheet: Sheet, questions: Sequence[Question]) -> str:
    """Who handed in, in numbers."""
    many, problems = len(sheet.records), sheet.problems
    says = [f"{sheet.name}: {number(many, 'hand-in')}"]
    if problems:
        reasons = ", ".join(f"{tag} {k}" for tag, k in sorted(problems.items()))
        says.append(f"{problems.total()} without a notebook to grade ({reasons})")
    if sheet.late:
        says.append(f"{sheet.late} late")
    if by_hand := sum(question.by_hand for question in questions):
        says.append(f"{number(by_hand, 'mark')} set by hand")
    if sheet.absent is not None:
        says.append(f"{number(sheet.absent, 'student')} of the gradebook did not hand in")
    if sheet.strangers:
        says.append(
            f"{number(sheet.strangers, 'hand-in')} matched no row of it, so up to {sheet.strangers} fewer are missing"
        )
    if unjudged := sum(question.unjudged for question in questions):
        says.append(f"{number(unjudged, 'answer')} could not be judged by the grader: repair it, and grade again")
    text = "; ".join(says) + "."
    if sheet.judged < FEW:
        text += f" With {number(sheet.judged, 'notebook')}, a percentage here is a matter of single students."
    return f"<p>{text}</p>"


def teach(
    sheets: Sequence[Sheet], questions: dict[str, list[Question]], topics: Sequence[Topic], base: str
) -> Iterator[str]:
    """What to teach tomorrow."""
    lost = sum(question.lost for found in questions.values() for question in found)
    yield "<h2>Teach this tomorrow</h2>"
    if not topics:
        yield "<p>No named mistake cost a point.</p>"
        return
    yield "<ol>"
    for topic in topics[:TOPICS]:
        who = ", ".join(f"{part(many, judged)} students{where}" for many, judged, where in of_each(topic, sheets))
        yield "<li>"
        yield f"<strong>{name(topic)}</strong>"
        yield bar([(topic.lost, "named")], lost)
        yield f"<p>{who}; {part(topic.lost, lost)} lost points.</p>"
        for (ex, says), _ in topic.said.most_common(2):
            yield f"<p><code>{ex}</code>: {code(says)}</p>"
        yield f"<p>{links(topic, base)}</p>"
        yield "</li>"
    yield "</ol>"
    named = sum(topic.lost for topic in topics)
    yield (
        f'<p class="quiet">Named mistakes cost {g(named)} of {g(lost)} lost points. A mistake suggests a belief; it '
        "does not prove it. Ask before you explain.</p>"
    )


def of_each(topic: Topic, sheets: Sequence[Sheet]) -> Iterator[tuple[int, int, str]]:
    """(students, all students, where) of a topic in each sheet that has it."""
    for sheet in sheets:
        if sheet.name in topic.students:
            yield len(topic.students[sheet.name]), sheet.judged, f" in {sheet.name}" if len(sheets) > 1 else ""


def name(topic: Topic) -> str:
    return code(topic.belief.text) if topic.belief else f"<code>{topic.tag}</code>"


def links(topic: Topic, base: str) -> str:
    """Where to read about a belief; about another mistake, the chapters of its exercises."""
    one = topic.belief
    if not one:
        return "The teacher's page has no belief for this mistake."
    kind, number = one.page.split("/")[-2:][0], one.page.split("/")[-1].split("-")[0]
    where = f"{'sheet' if kind == 'exercises' else 'chapter'} {number}, “{one.section}”"
    entry = f"teacher's page, {one.sheet}"
    return f"{link(base, one.page, one.section, where)} · {link(base, 'book/teaching', one.text, entry)}"


def link(base: str, path: str, title: str, text: str) -> str:
    text = html.escape(text)
    return f'<a href="{html.escape(base)}{path}.html#{anchor(title)}">{text}</a>' if base else text


def come_back(sheets: Sequence[Sheet], topics: Sequence[Topic], base: str) -> Iterator[str]:
    """Beliefs in more than one sheet."""
    yield "<h2>Beliefs that return</h2>"
    if not topics:
        yield "<p>No belief or named mistake occurs in two of these sheets.</p>"
        return
    heads = "".join(f'<th scope="col">{sheet.name}</th>' for sheet in sheets)
    yield f'<div class="wide"><table><thead><tr><th scope="col">Belief or mistake</th>{heads}</tr></thead><tbody>'
    for topic in topics:
        (_, says), _ = topic.said.most_common(1)[0]
        text = links(topic, base) if topic.belief else code(says)
        cells = ""
        for sheet in sheets:
            many = len(topic.students.get(sheet.name, ()))
            cells += f"<td>{part(many, sheet.judged)}{bar([(many, 'named')], sheet.judged)}</td>"
        yield f'<tr><th scope="row">{name(topic)}<br><span class="quiet">{text}</span></th>{cells}</tr>'
    yield "</tbody></table></div>"


def shares(questions: Sequence[Question]) -> str:
    """The shares of right answers, as a picture in a table."""
    rows = []
    for question in questions:
        counts = [("right", question.right)]
        counts += [(kind, sum(one.students for one in question.of(kind))) for kind in PRINTED]
        cells = "".join(f"<td>{many}</td>" for _, many in counts[1:])
        picture = bar([(many, kind) for kind, many in counts], question.many)
        right = f"<td>{part(question.right, question.many)}</td>"
        rows.append(f'<tr><th scope="row"><code>{question.exercise.name}</code>{picture}</th>{right}{cells}</tr>')
    words = {"right": "right", "named": "named mistake", "unknown": "other wrong answer", "none": "no result"}
    heads = "".join(
        f'<th scope="col" class="key"><span class="{kind}">{word}</span></th>' for kind, word in words.items()
    )
    return f'<table><thead><tr><th scope="col">Exercise</th>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def exercise(question: Question) -> str:
    """One exercise: everything that was not right, the most frequent first."""
    head = f"<h3><code>{question.exercise.name}</code>: {part(question.right, question.many)} right</h3>"
    if not question.answers:
        return f"<section>{head}</section>"
    rows: list[str] = []
    for kind, most in PRINTED.items():
        found = question.of(kind)
        rows += [row(one, question.many, "more" if k >= most else "") for k, one in enumerate(found)]
        if rest := found[most:]:
            many = sum(one.students for one in rest)
            what = {"named": "other named mistake", "unknown": "other kind of wrong answer", "none": "other reason"}[
                kind
            ]
            rows.append(f'<tr class="rest"><th scope="row">{number(len(rest), what)}</th><td>{many}</td><td></td></tr>')
    heads = "".join(f'<th scope="col">{text}</th>' for text in ("What the answers do", "Students", "Points lost"))
    return f"<section>{head}<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></section>"


def row(one: Answers, many: int, look: str) -> str:
    label = "" if one.kind == "named" else "unknown: " if one.kind == "unknown" else ""
    picture = bar([(one.students, one.kind)], many)
    return (
        f'<tr class="{look}"><th scope="row">{label}{code(one.says)} <code>{one.tag}</code>{picture}</th>'
        f"<td>{part(one.students, many)}</td><td>{g(one.lost)}</td></tr>"
    )


def bar(parts: Sequence[tuple[float, str]], whole: float) -> str:
    """A bar whose numbers are in the text beside it."""
    rects, at = "", 0.0
    for many, kind in parts:
        rects += f'<rect class="{kind}" x="{g(at)}" width="{g(many)}" height="1"/>' if many else ""
        at += many
    return f'<svg viewBox="0 0 {g(whole or 1)} 1" preserveAspectRatio="none" aria-hidden="true">{rects}</svg>'


def part(many: float, whole: float) -> str:
    return f"{g(many)} of {g(whole)} ({many / whole:.0%})" if whole else "0 of 0"


def number(many: int, noun: str) -> str:
    return f"{many} {noun}{'' if many == 1 else 's'}"


def g(value: float) -> str:
    return f"{round(value, 2):g}"
