"""Typesets math while the book is built: the pages then need no typesetting script and no network.

KaTeX 0.19.1 (one file and its licence in `katex/`) runs in V8, which the mini-racer wheel brings; Node is not needed.
A formula that KaTeX refuses is a warning with its page and line, in every build until it is fixed.
The macros are the table `katex_macros` in `_config.yml`.
"""

import functools
import json
import re
from html import escape
from pathlib import Path

from docutils import nodes
from py_mini_racer import MiniRacer
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

log = logging.getLogger(__name__)
CLASSES = "math notranslate nohighlight"
TYPESET = """
function typeset(tex, options) {
  try { return JSON.stringify([katex.renderToString(tex, JSON.parse(options)), null]) }
  catch (error) { return JSON.stringify([null, error.message]) }
}"""


@functools.cache
def engine():
    js = MiniRacer()
    js.eval((Path(__file__).parent / "katex" / "katex.min.js").read_text("utf-8"))
    js.eval(TYPESET)
    return js


@functools.cache
def typeset(tex, options):
    html, error = json.loads(engine().call("typeset", tex, options))
    if error:
        raise ValueError(error)
    return html


def source(node):
    """The TeX of a node, as KaTeX wants it."""
    tex = node.astext().strip()
    if node.get("nowrap"):  # a bare \begin{align}: Sphinx numbers it, so KaTeX must not
        return re.sub(r"\\(begin|end)\{(align|gather|equation|alignat)\}", r"\\\1{\2*}", tex)
    if r"\\" in tex and not tex.startswith(r"\begin"):
        return rf"\begin{{split}}{tex}\end{{split}}"
    return tex


def render(node, config):
    """HTML for the eye and MathML for screen readers."""
    display = isinstance(node, nodes.math_block)
    options = {
        "displayMode": display,
        "macros": {"\\" + name: tex for name, tex in config.katex_macros.items()},
        "output": "htmlAndMathml",
        "strict": "error",
    }
    return typeset(source(node), json.dumps(options))


def prepare(app, doctree):
    """Typeset while a page is read, and leave the HTML in its tree.

    Only a page that is read again can warn again; and a process that was forked from one where V8 runs, as those that
    write pages are, waits for V8 for ever.
    """
    for node in doctree.findall(lambda n: isinstance(n, (nodes.math, nodes.math_block))):
        try:
            node["html"] = render(node, app.config)
        except ValueError as error:
            node["html"] = f'<code class="bad-math">{escape(node.astext())}</code>'
            log.warning("math: %s", error, location=node, type="prerender")
            app.env.note_reread()


def visit(translator, node):
    html = node["html"]
    if isinstance(node, nodes.math):
        translator.body.append(f'<span class="{CLASSES}">{html}</span>')
    else:
        translator.body.append(translator.starttag(node, "div", CLASS=CLASSES))
        if node["number"]:
            translator.body.append(f'<span class="eqno">({get_node_equation_number(translator, node)})')
            translator.add_permalink_ref(node, "Link to this equation")
            translator.body.append("</span>")
        translator.body.append(f'<div class="eqn">{html}</div></div>\n')
    raise nodes.SkipNode


def setup(app):
    app.add_config_value("katex_macros", {}, "env")
    app.add_html_math_renderer("prerender", (visit, None), (visit, None))
    app.connect("doctree-read", prepare, priority=100)  # before Sphinx takes titles and contents from the page
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
