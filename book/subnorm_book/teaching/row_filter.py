"""A filter of a long list or table: its script shows the rows that contain all words and are of the chosen kind.

It knows the spellings and forms of a word that the search knows (search-terms.js).

With `nearest` it compares a pasted message with those that the rows quote (symptoms.js), and opens a single one. A page
of questions has it by its directive, which names the sections and counts them in a word:

    ```{row-filter} questions
    :rows: "#questions-people-ask > section > section"
    ```

On a phone each of its answers is folded under its question (second_reading.py, subnorm.css).
"""

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective
from subnorm_book import page_data
from subnorm_book.html_nodes import add_script

MARK = 'class="row-filter"'


def row_filter(rows, things, kinds=(), nearest=False, menus=()):
    """The filter of the rows that a selector names; each kind is a class of rows, and its word.

    A menu has such classes, their words, and other names by which the field finds the rows.

    The style sheet hides it where no script runs.
    """
    choices = "".join(
        f'<label><input type="radio" name="row-kind" value="{kind}"{"" if kind else " checked"}> {word}</label> '
        for kind, word in ({"": "all", **kinds} if kinds else {}).items()
    ) + "".join(
        f'<label>{name} <select><option value="">any</option>'
        + "".join(f'<option value="{kind}" data-names="{names}">{word}</option>' for kind, word, names in menus[name])
        + "</select></label> "
        for name in menus
    )
    return nodes.raw(
        "",
        f'<div {MARK} data-rows="{rows}" data-things="{things}"{" data-nearest" * nearest} role="search">'
        f'<label>Find <input type="search" id="row-words"></label> {choices}<span role="status"></span></div>',
        format="html",
    )


class RowFilter(SphinxDirective):
    required_arguments = 1
    option_spec: ClassVar = {"rows": directives.unchanged_required}

    def run(self):
        self.env.question_pages[self.env.docname] = self.options["rows"]
        return [row_filter(self.options["rows"], self.arguments[0])]


def has_filter(doctree):
    return any(MARK in raw.astext() for raw in doctree.findall(nodes.raw))


def has_nearest(doctree):
    return any("data-nearest" in raw.astext() for raw in doctree.findall(nodes.raw))


def setup(app):
    page_data.by_page(app, "question_pages")
    app.add_directive("row-filter", RowFilter)
    add_script(app, "symptoms.js", has_nearest)
    add_script(app, "search-terms.js", has_filter)
    add_script(app, "row-filter.js", has_filter)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
