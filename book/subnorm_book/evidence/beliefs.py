"""Anchors for what students believe, on the teacher's page: the class overview links to them.

The overview computes the same anchor from the same page (`subnorm_classroom.reports.beliefs`).
"""

from docutils import nodes

from subnorm_classroom.reports.beliefs import anchor

PAGE = "book/teaching"


def add_anchors(app, doctree):
    if app.env.docname == PAGE:
        for term in doctree.findall(nodes.term):
            belief = next((part.astext() for part in term.findall(nodes.strong)), "")
            if belief.startswith(('"', "“")):
                term["ids"].append(anchor(belief))


def setup(app):
    app.connect("doctree-read", add_anchors)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
