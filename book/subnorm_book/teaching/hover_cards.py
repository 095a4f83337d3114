"""Give each link to a glossary term its definition as title; hover-cards.js shows titles of links as cards.

A source is described at the first link to it on a page; the ledger cites one some dozen times.
"""

import re

from docutils import nodes
from sphinx import addnodes
from subnorm_book import page_data
from subnorm_book.html_nodes import add_script, without_citations


def collect(app, doctree):
    """Remember {anchor: definition} of a glossary. A title cannot show a formula."""
    app.env.definitions[app.env.docname] = {
        anchor: without_citations(item[-1])
        for glossary in doctree.findall(addnodes.glossary)
        for item in glossary.findall(nodes.definition_list_item)
        if not item.next_node(nodes.math)
        for term in item.findall(nodes.term)
        for anchor in term["ids"]
    }


def without_address(source):
    """The text of a source without the address that its DOI or its number at arXiv gives, too."""
    return re.sub(r"(arXiv:.*) URL: https://arxiv\S+$", r"\1", re.sub(r"URL: \S+, (?=doi:)", "", source))


def explain(app, doctree, docname):
    known = {anchor: text for page in app.env.definitions.values() for anchor, text in page.items()}
    described = set()
    for link in doctree.findall(nodes.reference):
        anchor = link.get("refuri", "").partition("#")[2]
        if link.get("internal") and anchor in known:
            link["reftitle"] = known[anchor]
        elif link.get("internal") and link.get("refuri") in described:
            link.attributes.pop("reftitle", None)
        elif "reftitle" in link:
            link["reftitle"] = without_address(link["reftitle"])
            described.add(link.get("refuri"))


def pages_to_write(app, env):
    """All, if a definition has changed."""
    before, env.defined = getattr(env, "defined", None), dict(env.definitions)
    return list(env.all_docs) if before != env.defined else []


def setup(app):
    page_data.by_page(app, "definitions")
    app.connect("doctree-read", collect)
    app.connect("env-updated", pages_to_write)
    app.connect("doctree-resolved", explain)
    add_script(app, "hover-cards.js", lambda doctree: True)  # on pages with text, and not on the search page
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
