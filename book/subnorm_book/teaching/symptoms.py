"""The page of symptoms: entries folded below their messages, and a filter that takes a pasted message.

    {.second-reading .symptom .nan}
    ### LayerNorm returns NaN in half precision

`{symptoms}` is the filter. An entry is a second reading (second_reading.py) with its own words on the fold; the third
class is its kind. searching.js puts the entry of a pasted message first.
"""

from sphinx.util.docutils import SphinxDirective
from subnorm_book.teaching.row_filter import row_filter

KINDS = {
    "error": "an error",
    "warning": "a warning",
    "nan": "NaN or inf",
    "wrong": "wrong numbers",
    "stuck": "no learning",
    "apart": "a checkpoint or library",
    "sharded": "sharding or export",
}


class Symptoms(SphinxDirective):
    def run(self):
        return [row_filter("section.symptom", "entries", KINDS, nearest=True)]


def setup(app):
    app.add_directive("symptoms", Symptoms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
