"""The pairs of similar hand-ins as an HTML page that needs nothing else: side by side, what they share is marked."""

import html
import unicodedata
from collections.abc import Mapping, Sequence

from subnorm_classroom.reports.page import document
from subnorm_classroom.reports.results import counted
from subnorm_classroom.reports.similarity import (
    GRAM,
    LEAST,
    WINDOW,
    HandIn,
    Pair,
    figures,
    still_unusual,
    tokens_of,
    winnowed,
)

SHOWN = 50  # pairs side by side

STYLE = """\
:root { color-scheme: light dark; --line: #ccc; --mark: #ffe08a; }
@media (prefers-color-scheme: dark) { :root { --line: #555; --mark: #6b5200; } }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 80rem; margin: 0 auto; padding: 1rem; }
main { overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.1rem; border-top: 1px solid var(--line); margin: 2rem 0 0; padding-top: 1rem; }
h3, h4 { font-size: 1rem; margin: .5rem 0 0; }
h4 { font-weight: normal; }
.text { max-width: 42rem; }
.wide { overflow-x: auto; overflow-wrap: normal; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .6rem; text-align: left; }
td + td + td { text-align: right; }
.both { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 0 1.5rem; }
.both > div { min-width: 0; }
pre { font-size: .85rem; line-height: 1.4; border: 1px solid var(--line); margin: .3rem 0 0; padding: .5rem; }
pre { overflow-x: auto; overflow-wrap: normal; }
mark { background: var(--mark); color: inherit; }
a { color: inherit; }
details { margin: 0 0 1rem; }
"""

BODY = """\
<h1>{set_name}: hand-ins that share unusual code</h1>
<div class="text">
<p><strong>These pairs share unusual code. It’s for you to read, not a verdict.</strong></p>
<p>{count} hand-ins were compared. The marked passages occur in both of a pair, and not in the sheet, its solution, its
named mistakes or the course’s other code. Other names, comments, layout and places make no difference. A passage has
at least {gram} tokens; every one of {sure} or more is found.</p>
<p>A pair’s score adds up the shared pieces: 1 for a piece that nobody else has, less for one that others have too, and
0 if more than {most} hand-ins have it. A pair is listed from a score of {least}.</p>
<p>The list cannot tell who wrote the code, whether the two were allowed to work together, or whether both used the
same page or assistant. A copy that was rewritten is not here, and neither is a copy of the published solution. Right
answers of a few lines are alike by nature: {short} of the hand-ins have too little code of their own ever to be
listed.</p>
{left_out}</div>
{pairs}"""


def page(set_name: str, hand_ins: Sequence[HandIn], pairs: Sequence[Pair], left_out: Mapping[str, str]) -> str:
    """The page of a class.

    Args:
        set_name: "ex02".
        hand_ins: all that were compared.
        pairs: those to read, the highest score first.
        left_out: the problem of each student whose notebook was not compared.
    """
    names = ", ".join(f"{name(student)} ({problem})" for student, problem in left_out.items())
    set_name = html.escape(set_name)
    body = BODY.format(
        set_name=set_name, count=len(hand_ins), gram=GRAM, sure=GRAM + WINDOW - 1, least=LEAST,
        most=still_unusual(len(hand_ins)), short=sum(len(hand_in.own) < LEAST for hand_in in hand_ins),
        left_out=f"<details><summary>Not compared: {len(left_out)}</summary>{names}</details>\n" if names else "",
        pairs=listed(pairs) if pairs else "<p>No pair reaches that score.</p>",
    )  # fmt: skip
    return document(f"{set_name}: hand-ins that share unusual code", STYLE, body)


def listed(pairs: Sequence[Pair]) -> str:
    """The table of all pairs, and the first of them side by side."""
    rows = []
    for k, pair in enumerate(pairs, 1):
        both = [name(pair.first.student), name(pair.second.student)]
        link = [f'<a href="#pair-{k}">{both[0]}</a>' if k <= SHOWN else both[0], both[1]]
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in [*link, *figures(pair)]) + "</tr>")
    titles = ["First", "Second", "Score", "Pieces shared", "Of first", "Of second"]
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    table = f'<div class="wide" tabindex="0" role="region" aria-label="All pairs">\n<table>\n<tr>{head}</tr>\n'
    table += "\n".join(rows) + "\n</table>\n</div>"
    sections = [side_by_side(k, pair) for k, pair in enumerate(pairs[:SHOWN], 1)]
    more = [f"<p>Only in the table: {counted(len(pairs) - SHOWN, 'more pair')}.</p>"] if len(pairs) > SHOWN else []
    return "\n".join([table, *sections, *more])


def side_by_side(number: int, pair: Pair) -> str:
    title = f'<h2 id="pair-{number}">{number}. {name(pair.first.student)} and {name(pair.second.student)}</h2>'
    halves = [half(hand_in, set(pair.shared)) for hand_in in (pair.first, pair.second)]
    return f'{title}\n<div class="both">\n{halves[0]}\n{halves[1]}\n</div>'


def half(hand_in: HandIn, shared: set[int]) -> str:
    """The cells of a hand-in that have a shared fingerprint."""
    parts = [f"<h3>{name(hand_in.student)}</h3>"]
    for cell in hand_in.cells:
        marked = {k + offset for k, value in winnowed(cell.source) if value in shared for offset in range(GRAM)}
        if marked:
            label = f'role="region" aria-label="{html.escape(hand_in.student)}, cell {cell.number}"'
            parts.append(f'<h4>Cell {cell.number}</h4>\n<pre tabindex="0" {label}>{code(cell.source, marked)}</pre>')
    return "<div>\n" + "\n".join(parts) + "\n</div>"


def code(source: str, marked: set[int]) -> str:
    """A cell with the tokens of these numbers marked; neighbours share a mark."""
    tokens, parts, at = tokens_of(source), [], 0
    for k in sorted(marked):
        if k - 1 not in marked:
            parts.append(visible(source[at : tokens[k].start]))
            at = tokens[k].start
        if k + 1 not in marked:
            parts.append(f"<mark>{visible(source[at : tokens[k].end])}</mark>")
            at = tokens[k].end
    return "".join([*parts, visible(source[at:])])


def visible(text: str) -> str:
    """Text for HTML, without characters that hide or reverse what follows."""
    hidden = ("Cc", "Cf", "Cs")
    kept = (c if c in "\n\t" or unicodedata.category(c) not in hidden else "\N{REPLACEMENT CHARACTER}" for c in text)
    return html.escape("".join(kept))


def name(student: str) -> str:
    return f"<bdi>{html.escape(student)}</bdi>"
