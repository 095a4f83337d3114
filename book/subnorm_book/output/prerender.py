"""Typeset math during the build, so that pages need neither a typesetting script nor a network.

KaTeX 0.19.1 (one file and its licence in `katex/`) runs in V8 from the mini-racer wheel; Node is not needed.
A formula that KaTeX rejects is a warning with its page and line, in every build until it is fixed.
The macros are in the table `katex_macros` in `_config.yml`.
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
from subnorm_book import BEFORE_SPHINX

log = logging.getLogger(__name__)
CLASSES = "math notranslate nohighlight"
SHORT = 24  # characters of TeX; so short a formula fits in a line with the punctuation that follows it
GLUE = "<!--glue-->"  # behind a short formula; slim.py moves the punctuation before it
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


def tex_of(node):
    """The TeX of a node, in KaTeX's format."""
    tex = node.astext().strip()
    if node.get("nowrap"):  # a bare \begin{align}, which Sphinx numbers, so KaTeX must not
        return re.sub(r"\\(begin|end)\{(align|gather|equation|alignat)\}", r"\\\1{\2*}", tex)
    if r"\\" in tex and not tex.startswith(r"\begin"):
        return rf"\begin{{split}}{tex}\end{{split}}"
    return tex


def render(node, config):
    """Visible HTML, and MathML for screen readers."""
    display = isinstance(node, nodes.math_block)
    options = {
        "displayMode": display,
        "macros": {"\\" + name: tex for name, tex in config.katex_macros.items()},
        "output": "htmlAndMathml",
        "strict": "error",
    }
    return typeset(tex_of(node), json.dumps(options))


def prepare(app, doctree):
    """Typeset a page while Sphinx reads it, and store the HTML in its tree.

    Only a page that is read again can warn again. And the writing processes are forked from one where V8 runs, so V8
    would hang in them.
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
        formula = f'<span class="{CLASSES}">{html}</span>'
        short = len(node.astext()) <= SHORT
        translator.body.append(f'<span class="glued">{formula}</span>{GLUE}' if short else formula)
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
    app.connect("doctree-read", prepare, priority=BEFORE_SPHINX)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
