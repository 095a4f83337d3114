"""Fold what a first reading leaves out: a section whose heading has the class `second-reading`.

    {.second-reading}
    ## Where the law breaks

The heading stays; what is below it is folded behind the minutes that it takes, or, with the class `symptom`, too,
behind "Cause and fix". subnorm.js opens it for a link to it, or into it.
"""

from docutils import nodes
from subnorm_book.teaching import reading_time

CLASS = "second-reading"


class second_reading(nodes.General, nodes.Element):
    """The folded part of a section."""


def fold(app, doctree, docname):
    """When the page is written: what collects a page's sections must see them first."""
    for section in list(doctree.findall(nodes.section)):
        if CLASS in section["classes"]:
            title, *rest = section.children
            section.children = [title]
            label = f"Second reading, {reading_time.minutes(*rest)} min"
            section += second_reading("", *rest, label="Cause and fix" if "symptom" in section["classes"] else label)


def visit(self, node):
    self.body.append(f"<details><summary>{node['label']}</summary>\n")


def depart(self, node):
    self.body.append("</details>\n")


def setup(app):
    app.add_node(second_reading, html=(visit, depart))
    app.connect("doctree-resolved", fold)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
