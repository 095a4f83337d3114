"""The lines below a chapter's first picture: what it needs, and, folded, what the reader will be able to do.

It is made of the admonition "This chapter", "This deep dive" or "This primer" at the top of a notebook. The minutes
are counted (reading_time.py); chapter_links.py shows them above the title. Of the boxes beside it one opens all that
waits for a prediction (predict.js), and one unfolds all code of the page (subnorm.js); both choices are remembered.
The last line explains the mark of a claim.
"""

from docutils import nodes
from subnorm_book import page_data
from subnorm_book.evidence import claims
from subnorm_book.teaching import reading_time
from subnorm_book.teaching.predict import prediction

BOXES = ("This chapter", "This deep dive", "This primer")
SWITCH = '<label title="%s"><input type="checkbox" id="%s"> %s</label>'
MARK = '<p class="marks">A ✓ after a sentence says how we know it: point at it, or tap it.</p>'


class objectives(nodes.General, nodes.Element):
    """What the reader will be able to do, folded."""


def open_page(app, doctree):
    for box in list(doctree.findall(nodes.admonition)):
        if box[0].astext() in BOXES:
            promise, goals, needs, *more = box[1:]
            takes = reading_time.minutes(doctree)
            app.env.openings[app.env.docname] = {
                "minutes": takes,
                "second": sum(section.get("minutes", 0) for section in doctree.findall(nodes.section)),
                "line": box.parent[1].astext(),
            }
            fold = objectives("", goals, *more, label=promise.astext())
            waits = any(doctree.findall(prediction))
            switches = [
                *([("Opens all that waits for an answer", "just-read", "Skip all predictions")] if waits else []),
                ("Shows the code and the proofs, but not the code that draws", "with-code", "Read with code"),
            ]
            # Classes, not the order of elements: a rule that waits for the rest of the page would move what is shown.
            box.parent["classes"].append("code-optional")
            before = box.parent[1 : box.parent.index(box)]
            if any("cell" in node["classes"] for node in before):
                for node in before:
                    node["classes"].append("first-screen")
            html = "\n".join(SWITCH % switch for switch in switches)
            html += MARK if any(doctree.findall(claims.claim)) else ""
            box.replace_self(nodes.container("", needs, fold, nodes.raw("", html, format="html"), classes=["opening"]))


def visit(self, node):
    self.body.append(f"<details><summary>{node['label']} …</summary>")


def depart(self, node):
    self.body.append("</details>")


def setup(app):
    app.add_node(objectives, html=(visit, depart))
    page_data.by_page(app, "openings")
    app.connect("doctree-read", open_page)
    return {"env_version": 9, "parallel_read_safe": True, "parallel_write_safe": True}
