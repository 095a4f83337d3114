"""The book's search: `searching.js` puts the page that explains a term first, and quotes prose.

Sphinx's option for a scorer loads the script between its own search and the index. The index has no bare numbers,
because Sphinx's search drops them from a query, not the ticks of plots, which run together with the labels, and not the
names of tests, figures and proofs, nor private names.
"""

import re
from pathlib import Path

from sphinx import addnodes
from sphinx.search.en import SearchEnglish

#: Sphinx's scripts run early here (slim.py), and would highlight the words of the previous search.
FORGET = 'try { localStorage.removeItem("sphinx_highlight_terms"); } catch { /* a browser may refuse to store */ }'


def forget(app, pagename, templatename, context, doctree):
    if pagename == "search":
        app.add_js_file(None, body=FORGET)


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


def setup(app):
    app.add_search_language(English)
    app.config.html_search_scorer = str(Path(__file__).with_suffix(".js"))
    app.connect("html-page-context", forget)
    app.connect("doctree-resolved", once)
    return {"env_version": 6, "parallel_read_safe": True, "parallel_write_safe": True}  # an old index has more
