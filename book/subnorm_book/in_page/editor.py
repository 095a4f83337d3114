"""The HTML of an editor in a page, with its buttons and results; `_static/in-page.js` gives it life."""

from html import escape

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

BENCH = """\
<div class="workbench"{attributes}>
{before}<div class="highlight">{preview}<textarea aria-label="{label}" rows="{rows}" wrap="off" spellcheck="false"
autocapitalize="off" autocomplete="off" autocorrect="off">
{code}</textarea></div>
<div class="buttons"><button type="button" data-run>Run{cost}</button>{buttons}\
<button type="button" data-stop disabled>Stop</button>\
<button type="button" data-reset disabled>Reset</button>{last}</div>
<p class="loading"><progress data-progress hidden aria-label="Loading Python"></progress> <span></span></p>
<p data-state role="status"></p>
<div data-output tabindex="0" role="group" aria-label="Output"></div>
{more}</div>
"""
#: The page shows it once the browser has refused to keep what the reader types.
UNKEPT = "<p data-unkept>This browser does not keep your code: {}.</p>\n"
COST = " <span data-cost>loads {:.1f} MB</span>"  # what a run loads first; the script keeps it true


def editor_html(label, code="", **slots):
    """The HTML of an editor with its buttons and results, and what else goes into the slots of `BENCH`."""
    filled = dict.fromkeys(["attributes", "before", "preview", "cost", "buttons", "last", "more"], "") | slots
    return BENCH.format(label=escape(label), code=escape(code), rows=max(code.count("\n") + 1, 3), **filled)


def preview(code):
    """The code in colours, with numbered lines: the field shows it until its editor comes."""
    lines = highlight(code, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)).rstrip("\n").split("\n")
    indents = [len(line) - len(line.lstrip()) for line in code.rstrip("\n").split("\n")]
    shown = "".join(f'<div style="--in:{n}">{line or "<br>"}</div>' for n, line in zip(indents, lines, strict=True))
    return f'<div class="preview" aria-hidden="true">{shown}</div>'
