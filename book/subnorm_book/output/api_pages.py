"""The API pages: the same wherever they are built, with the code of every function and class.

- Autodoc imports the package, and `autodoc_mock_imports` in _config.yml replaces its large dependencies, whether they
  are installed or not. So the pages are the same everywhere.
- A docstring names a chapter by its number, "chapter 04" or "deep dive 03a"; the page turns that into a link.
- The code comes last, folded, without the docstrings that the page already shows.
"""

import ast
import inspect
import re
import textwrap

from docutils import nodes
from sphinx.ext.autodoc.mock import _MockObject
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

log = logging.getLogger(__name__)

CHAPTER = re.compile(r"\b([Cc]hapter|[Dd]eep dive)\s+(\d\d[a-z]?)\b")


class folded_code(nodes.container):
    """The code of a function or a class; only HTML folds it."""


class FoldedCode(SphinxDirective):
    has_content = True

    def run(self):
        code = "\n".join(self.content)
        return [folded_code("", nodes.literal_block(code, code, language="python"))]


def complete(app, what, name, obj, options, lines):
    """Add links and code to the docstring of a function, class or module, after Napoleon has converted it."""
    text = CHAPTER.sub(lambda found: link(app.env, name, *found.groups()), "\n".join(lines))
    if what in ("function", "class"):
        code = without_docstrings(obj, options.get("members"))
        text += "\n\n.. folded-code::\n\n" + textwrap.indent(code, "   ")
    lines[:] = text.split("\n")


def link(env, name, kind, number):
    pages = [page for page in env.found_docs if page.startswith(f"notebooks/{number}-")]
    if len(pages) != 1:
        log.warning("%s: there is no %s %s", name, kind, number, type="api")
        return f"{kind} {number}"
    return f":doc:`{kind} {number} </{pages[0]}>`"


def without_docstrings(obj, members):
    """The code of `obj` without its docstring and those of the methods that autodoc shows by its option `members`."""
    code = textwrap.dedent(inspect.getsource(obj)).rstrip().split("\n")
    top = ast.parse("\n".join(code)).body[0]
    methods = [node for node in top.body if isinstance(node, ast.FunctionDef)]
    for node in reversed([top, *(node for node in methods if shown(node.name, members))]):
        if ast.get_docstring(node) is not None and len(node.body) > 1:
            docstring = node.body[0]
            end = docstring.end_lineno
            end += not code[end].strip()
            del code[docstring.lineno - 1 : end]
    return "\n".join(code)


def shown(method, members):
    return method in members if isinstance(members, list) else members is not None and not method.startswith("_")


def visit(translator, node):
    translator.body.append('<details class="code"><summary>Code</summary>\n')


def depart(translator, node):
    translator.body.append("</details>\n")


def setup(app):
    # Sphinx's mock objects support neither `Tensor | None` nor a subclass with its own signature.
    _MockObject.__or__ = _MockObject.__ror__ = lambda self, other: self
    _MockObject.__mro_entries__ = lambda self, bases: ()
    app.add_directive("folded-code", FoldedCode)
    app.add_node(folded_code, html=(visit, depart))
    app.connect("autodoc-process-docstring", complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
