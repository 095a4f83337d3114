"""Typesets math while the book is built: the pages then need no typesetting script and no network.

KaTeX 0.19.1 (one file and its licence in `katex/`) runs in V8, which the mini-racer wheel brings; Node is not needed.
A formula that KaTeX refuses is a warning with its page and line, in every build until it is mended.
The macros are the table `katex_macros` in `_config.yml`.
"""

import functools
import json
import re
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


def check(app, doctree):
    """Warn while a page is read, not while it is written: only a page that is read again can warn again."""
    for node in doctree.findall(lambda n: isinstance(n, (nodes.math, nodes.math_block))):
        try:
            render(node, app.config)
        except ValueError as error:
            log.warning("math: %s", error, location=node, type="prerender")
            app.env.note_reread()


def visit(translator, node):
    try:
        html = render(node, translator.config)
    except ValueError:  # `check` has said so
        html = f'<code class="bad-math">{translator.encode(node.astext())}</code>'
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
    app.connect("doctree-read", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
