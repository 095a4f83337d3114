"""The feedback to a student, as Markdown and as an HTML page."""

import html
from collections.abc import Iterator

from subnorm_classroom.grading.verdict import SAYS
from subnorm_classroom.reports.document import document
from subnorm_classroom.reports.records import Record, points
from subnorm_classroom.text import as_html, as_markdown

BY_HAND = "Set by hand"
MARKS = {"right": "✓", "open": "○", "wrong": "✗"}
Paragraph = tuple[str, str, str]

STYLE = """\
:root { color-scheme: light dark; --line: #ccc; --good: #1a6b2b; --open: #595959; --wrong: #a3260f; }
@media (prefers-color-scheme: dark) { :root { --line: #555; --good: #7fd494; --open: #b5b5b5; --wrong: #ff9d88; } }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 42rem; margin: 0 auto; padding: 1rem; }
main { overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.05rem; margin: 0; }
section { border-top: 1px solid var(--line); padding: .75rem 0; }
p { margin: .4rem 0 0; }
.total { font-size: 1.15rem; margin-bottom: 1rem; }
.right b { color: var(--good); }
.open b { color: var(--open); }
.wrong b { color: var(--wrong); }
code { font-size: .95em; }
"""

BODY = """\
<h1><bdi>{student}</bdi>: {set_name}</h1>
<p class="total">{total}</p>
{sections}"""


def paragraphs(record: Record) -> Iterator[tuple[Record | None, list[Paragraph]]]:
    """(result, paragraphs) of the feedback to each exercise; a missing notebook comes first, with None for a result.

    A paragraph is (before, sentence, after). The sentence is Markdown of ours; the other two are plain text, which a
    student or teacher may have chosen.
    """
    problem = record.get("problem")  # the same for every exercise
    if problem:
        yield None, [("", f"`{problem}`: {SAYS[problem]}.", ""), ("Handed in: ", "", record.get("file") or "nothing")]
    for r in record["results"]:
        texts = [("", f"Your variant: `{r['variant']}`.", "")] if "variant" in r else []
        texts += [(f"{BY_HAND}: ", "", r["by_hand"])] if "by_hand" in r else []
        if not problem:
            named = "" if r["diagnosis"] in ("right", "not_done") else f"`{r['diagnosis']}`: "
            texts.append(("", named + r["says"], ""))
        if texts:
            yield r, texts


def total(record: Record) -> str:
    """The points; a teacher may still set those of a hand-in that the grader cannot grade."""
    if record.get("problem") and not any("by_hand" in result for result in record["results"]):
        return "No points yet: the grader cannot grade this hand-in."
    given, most = points(record)
    return f"{given:g} of {most:g} points."


def heading(result: Record) -> str:
    return f"{result['exercise']}: {result['points']:g} of {result['max_points']:g}"


def markdown(set_name: str, record: Record) -> str:
    """The feedback to a student, in Markdown."""
    parts = [f"# {as_markdown(record['student'])}: {set_name}", total(record)]
    for result, texts in paragraphs(record):
        parts += [f"## {MARKS[section_class(result)]} {heading(result)}"] if result else []
        parts += [f"{as_markdown(before)}{sentence}{as_markdown(after)}" for before, sentence, after in texts]
    return "\n\n".join(parts) + "\n"


def page(set_name: str, record: Record) -> str:
    """The feedback to a student, as an HTML page."""
    sections = []
    for result, texts in paragraphs(record):
        kind = section_class(result)
        lines = [f"<h2><b>{MARKS[kind]}</b> {html.escape(heading(result))}</h2>"] if result else []
        lines += [f"<p>{before}{as_html(says)}<bdi>{html.escape(after)}</bdi></p>" for before, says, after in texts]
        sections.append("\n".join([f'<section class="{kind}">', *lines, "</section>"]))
    student, set_name = html.escape(record["student"]), html.escape(set_name)
    body = BODY.format(student=student, set_name=set_name, total=total(record), sections="\n".join(sections))
    return document(f"{student}: {set_name}", STYLE, body)


def section_class(result: Record | None) -> str:
    """Whether a section is marked as right, open or wrong; by its points, which a teacher may have set."""
    if result is None:
        return "problem"
    if result["points"] == result["max_points"]:
        return "right"
    return "open" if result["points"] or result["diagnosis"] == "not_done" else "wrong"
