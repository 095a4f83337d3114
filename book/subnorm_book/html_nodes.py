"""How our own nodes become HTML, and nothing in other builders."""

import re

from docutils import nodes
from sphinx import addnodes

from subnorm_book import AFTER_SUBNORM_JS

OTHERS = ("latex", "text", "man", "texinfo")


def writes(text):
    """A visitor that writes a text."""
    return lambda translator, node: translator.body.append(text)


def add_html_only(app, node, visit):
    """Register a node that only HTML shows; `visit` writes all of it, and raises SkipNode."""
    app.add_node(node, html=(visit, None), **dict.fromkeys(OTHERS, (skip, None)))


def add_script(app, name, wanted, priority=AFTER_SUBNORM_JS):
    """Load a script, by default after the others, on the pages for whose document `wanted` is true."""

    def add(app, pagename, templatename, context, doctree):
        if doctree and wanted(doctree):
            app.add_js_file(name, loading_method="defer", priority=priority)

    app.connect("html-page-context", add)


def skip(translator, node):
    raise nodes.SkipNode


def without_citations(node):
    """Its text without citations, which are keys until they are resolved."""
    copy = node.deepcopy()
    for link in list(copy.findall(addnodes.pending_xref)):
        if link["refdomain"] == "cite":
            link.parent.remove(link)
    return re.sub(r"\s+([.,;:])", r"\1", " ".join(copy.astext().split()))
