"""The search of the book: `searching.js` says which page explains a term, and quotes prose.

Sphinx puts the script between its own search and the index, by the option for a scorer.
"""

from pathlib import Path

#: Else the words of the search before are marked on the page of this one: Sphinx's scripts run early here (slim.py).
FORGET = 'try { localStorage.removeItem("sphinx_highlight_terms"); } catch { /* a browser may refuse to store */ }'


def forget(app, pagename, templatename, context, doctree):
    if pagename == "search":
        app.add_js_file(None, body=FORGET)


def setup(app):
    app.config.html_search_scorer = str(Path(__file__).with_suffix(".js"))
    app.connect("html-page-context", forget)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
