"""The book's search: `search.js` puts the page that explains a term first, and quotes prose.

Sphinx's option for a scorer loads the script between its own search and the index. The index has no bare numbers,
because Sphinx's search drops them from a query, not the ticks of plots, which run together with the labels, and not the
names of tests, figures and proofs, nor private names.

`sections.js` lists the sections of the chapters, deep dives, sheets and pages with their first sentences. It is a
script, so that a page opened as a file can load it. `search-box.js` looks it up while the reader types, in the order of
`search-rank.js`.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.search.en import SearchEnglish
from subnorm_book import AFTER_SUBNORM_JS, page_data
from subnorm_book.evidence.claims import SENTENCE_END
from subnorm_book.html_nodes import without_citations

#: Sphinx's scripts run early here (slim.py), and would highlight the words of the previous search.
FORGET = 'try { localStorage.removeItem("sphinx_highlight_terms"); } catch { /* a browser may refuse to store */ }'


def forget(app, pagename, templatename, context, doctree):
    if pagename == "search":
        app.add_js_file(None, body=FORGET)
        for name in ("search-terms.js", "search-box.js"):
            app.add_js_file(name, loading_method="defer", priority=AFTER_SUBNORM_JS)


#: How the names of tests, of the chapters' figures and proofs, and private names begin
FUNCTIONS = ("_", "test_", "draw_", "prove_", "prepare_", "check_", "tabulate_", "show_")


class English(SearchEnglish):
    """Sphinx's English, without such names, numbers, and what begins with one but for names such as 07a and 124M."""

    def word_filter(self, word):
        if word.startswith(FUNCTIONS) or (word[:1].isdigit() and not re.fullmatch(r"\d{1,3}[a-z]", word)):
            return False
        if re.search(r"[^\W\d]\d{4}", word):  # the key of a source, or the labels of a figure
            return False
        return super().word_filter(word)


def once(app, doctree, docname):
    """Find what the page of experiments describes by its name alone; an entry of the index would weigh twice."""
    if docname == "book/api/experiments":
        for entry in list(doctree.findall(addnodes.index)):
            entry.parent.remove(entry)


#: Pages whose sections nobody looks up by their words: the API is found by its names.
UNLISTED = re.compile(r"book/(api/.*|changelog|claims|references)")
SHORT, FIRST_WORDS = 25, 160  # characters


def collect(app, doctree):
    """The sections of a page, and the terms that it defines, as [anchor, title, first sentences], and 1 if nested."""
    rows = []
    for node in doctree.findall(lambda n: isinstance(n, nodes.section | nodes.definition_list_item)):
        if isinstance(node, nodes.section):
            own = node.children[1:]
            top = node.parent is doctree
        elif isinstance(node.parent.parent, addnodes.glossary):
            own, top = node[-1].children, False
        else:
            continue
        title = node[0]
        anchor = "" if top else (title["ids"] or node["ids"])[0]
        row = [anchor, without_citations(title), next((text for p in own if (text := first_words(p))), "")]
        rows.append([*row, 1] if isinstance(node, nodes.section) and depth(node) > 1 else row)
    app.env.sections[app.env.docname] = [] if UNLISTED.fullmatch(app.env.docname) else rows


def depth(node):
    """How many sections a node is in."""
    return 0 if node.parent is None else isinstance(node.parent, nodes.section) + depth(node.parent)


def first_words(node):
    """The first whole sentences of a paragraph; none of a few words, nor of one with a formula or its number.

    The text of a formula is TeX, and that of its number is a label, as long as other pages are unread.
    """
    if not isinstance(node, nodes.paragraph) or next(node.findall(formula_or_number), None):
        return ""
    text = without_citations(node)
    if len(text) < SHORT:
        return ""
    ends = [end.end() for end in SENTENCE_END.finditer(text) if end.end() <= FIRST_WORDS]
    if len(text) <= FIRST_WORDS or not ends:
        return text[:FIRST_WORDS].rpartition(" ")[0] + " …" if len(text) > FIRST_WORDS else text
    return text[: ends[-1]].strip()


def formula_or_number(node):
    return isinstance(node, nodes.math) or (isinstance(node, addnodes.pending_xref) and node.get("reftype") == "eq")


def write_sections(app, error):
    if error or app.builder.format != "html":
        return
    env = app.env
    found = [[doc, env.titles[doc].astext(), rows] for doc, rows in env.sections.items() if rows]
    functions = {}
    for name, entry in env.domains["py"].objects.items():
        if entry.objtype in ("function", "class"):
            functions.setdefault(entry.docname, []).append([entry.node_id, name.rpartition(".")[2], ""])
    found += [[doc, env.titles[doc].astext(), rows] for doc, rows in sorted(functions.items())]
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    Path(app.outdir, "_static", "sections.js").write_text(f"const SECTIONS = {text};\n", "utf-8")


def setup(app):
    page_data.by_page(app, "sections")
    app.connect("doctree-read", collect)
    app.connect("build-finished", write_sections)
    app.add_search_language(English)
    app.config.html_search_scorer = str(Path(__file__).with_suffix(".js"))
    app.connect("html-page-context", forget)
    app.connect("doctree-resolved", once)
    return {"env_version": 9, "parallel_read_safe": True, "parallel_write_safe": True}  # an old index has more
