"""Repeat an equation of a chapter on the page of key equations, so that no formula is written twice.

    ```{key-equation} eq-layer-norm
    ```

shows the formula, with a link to its derivation. An unknown label is a warning in every build.
"""

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from subnorm_book import BEFORE_LINKS, page_data

log = logging.getLogger(__name__)


class key_equation(nodes.General, nodes.Element):
    """A placeholder for a repeated equation."""


class KeyEquation(SphinxDirective):
    required_arguments = 1

    def run(self):
        node = key_equation(label=self.arguments[0])
        self.set_source_info(node)
        return [node]


def collect(app, doctree):
    env = app.env
    env.equations[env.docname] = {
        node["label"]: {"text": node.astext(), "html": node["html"]}
        for node in doctree.findall(nodes.math_block)
        if node.get("label")
    }
    env.key_equations[env.docname] = [(node["label"], node.line) for node in doctree.findall(key_equation)]


def check(app, env):
    known = {label for equations in env.equations.values() for label in equations}
    for doc, wanted in env.key_equations.items():
        for label, line in wanted:
            if label not in known:
                log.warning("no page has an equation %s", label, location=(doc, line), type="equation")
    # write these pages in every build, because their formulas come from other pages
    return [doc for doc, wanted in env.key_equations.items() if wanted]


class Fill(SphinxPostTransform):
    default_priority = BEFORE_LINKS

    def run(self):
        for node in list(self.document.findall(key_equation)):
            node.replace_self(list(self.shown(node["label"])))

    def shown(self, label):
        for doc, equations in self.env.equations.items():
            if label in equations:
                yield nodes.math_block("", **equations[label], label=None, number=None, nowrap=False)
                number = addnodes.pending_xref("", nodes.inline(), refdomain="math", reftype="eq", reftarget=label)
                to = self.app.builder.get_relative_uri(self.env.docname, doc)
                page = nodes.reference("", self.env.titles[doc].astext(), internal=True, refuri=to)
                yield nodes.paragraph("", "", number, nodes.Text(" in "), page, classes=["place"])


def setup(app):
    app.add_node(key_equation)
    app.add_directive("key-equation", KeyEquation)
    app.add_post_transform(Fill)
    page_data.by_page(app, "equations", "key_equations")
    app.connect("doctree-read", collect)
    app.connect("env-updated", check)
    return {"env_version": 2, "parallel_read_safe": True, "parallel_write_safe": True}
