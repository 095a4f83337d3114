"""A filter of a long list or table: its script shows the rows that contain all words and are of the chosen kind.

With `nearest` it compares a pasted message with those that the rows quote (symptoms.js), and opens a single one.
"""

from docutils import nodes
from subnorm_book.html_nodes import add_script

MARK = 'class="row-filter"'


def row_filter(rows, things, kinds, nearest=False):
    """The filter of the rows that a selector names; each kind is a class of rows, and its word.

    The style sheet hides it where no script runs.
    """
    choices = "".join(
        f'<label><input type="radio" name="row-kind" value="{kind}"{"" if kind else " checked"}> {word}</label> '
        for kind, word in {"": "all", **kinds}.items()
    )
    return nodes.raw(
        "",
        f'<div {MARK} data-rows="{rows}" data-things="{things}"{" data-nearest" * nearest} role="search">'
        f'<label>Find <input type="search" id="row-words"></label> {choices}<span role="status"></span></div>',
        format="html",
    )


def has_filter(doctree):
    return any(MARK in raw.astext() for raw in doctree.findall(nodes.raw))


def has_nearest(doctree):
    return any("data-nearest" in raw.astext() for raw in doctree.findall(nodes.raw))


def setup(app):
    add_script(app, "symptoms.js", has_nearest)
    add_script(app, "row-filter.js", has_filter)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
