"""A student's feedback as an HTML page, and the frame that all pages of the grader share."""

import html
import re

from subnorm_classroom.reports.results import Record, feedback_parts, heading, points

# A document that needs nothing else: no script, no request, readable on a phone.
DOCUMENT = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""

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
.right h2::before { content: "✓ "; color: var(--good); }
.open h2::before { content: "○ "; color: var(--open); }
.wrong h2::before { content: "✗ "; color: var(--wrong); }
code { font-size: .95em; }
"""

BODY = """\
<h1><bdi>{student}</bdi>: {set_name}</h1>
<p class="total">{total:g} of {most:g} points.</p>
{sections}"""


def document(title: str, style: str, body: str) -> str:
    """A page of the grader; the title and the body are HTML."""
    return DOCUMENT.format(title=title, style=style, body=body)


def page(set_name: str, record: Record) -> str:
    """The feedback to a student, as a page."""
    total, most = points(record)
    sections = []
    for result, texts in feedback_parts(record):
        lines = [f"<h2>{html.escape(heading(result))}</h2>"] if result else []
        lines += [f"<p>{before}{code(says)}<bdi>{html.escape(after)}</bdi></p>" for before, says, after in texts]
        sections.append("\n".join([f'<section class="{look(result)}">', *lines, "</section>"]))
    student, set_name = html.escape(record["student"]), html.escape(set_name)
    body = BODY.format(student=student, set_name=set_name, total=total, most=most, sections="\n".join(sections))
    return document(f"{student}: {set_name}", STYLE, body)


def look(result: Record | None) -> str:
    """Whether a section is marked as right, open or wrong; by its points, which a teacher may have set."""
    if result is None:
        return "problem"
    if result["points"] == result["max_points"]:
        return "right"
    return "open" if result["points"] or result["diagnosis"] == "not_done" else "wrong"


def code(says: str) -> str:
    """Markdown of ours as HTML; it has no other marks than those of code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(says))
