"""Puts live figures where a notebook stored their still pictures.

`subnorm.live` stores a picture of the first state, and in the output's metadata the table behind all states. The page
gets the figure that `live.js` draws from it, complete without a script; script and style come once for all pages, from
the package, because the same cell is live in JupyterLab.

Any page can show the figure too, under the name that its notebook gave it:

    ```{live} 01:token
    ```

A figure that is not there is a warning in every build, and the page is read again when the notebook has changed.
"""

import json
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from subnorm import live
from subnorm_book import measured

log = logging.getLogger(__name__)


def stored(path):
    """All live figures of a notebook, {name: table as JSON}, in their order."""
    found = {}
    for cell in json.loads(Path(path).read_text("utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            if table := live.stored(output):
                name = json.loads(table)["name"]
                if name in found:
                    raise ValueError(f"two live figures are named {name!r}; give each its own name")
                found[name] = table
    return found


def figure(table):
    return nodes.raw("", live.markup(table), format="html")


def enliven(app, doctree):
    path = Path(app.env.doc2path(app.env.docname))
    if path.suffix != ".ipynb":
        return
    try:
        lost = put(doctree, list(stored(path).values()))
    except ValueError as error:
        lost = [str(error)]
    for fault in lost:
        log.warning("%s", fault, location=app.env.docname, type="live")
        app.env.note_reread()


def put(doctree, tables):
    """Put each figure in the place of its picture, which has the same alt text; what is wrong with those left over."""
    for bundle in list(doctree.findall(nodes.container)):
        if bundle.get("nb_element") == "mime_bundle":
            alt = "".join(child.astext() for child in bundle if child.get("mime_type") == "text/plain")
            table = next((table for table in tables if json.loads(table)["alt"] == alt), None)
            if table:
                tables.remove(table)
                bundle.replace_self(figure(table))
    return [
        f"the live figure {json.loads(table)['name']!r} is stored, but the page does not show it" for table in tables
    ]


class Live(SphinxDirective):
    required_arguments = 1

    def run(self):
        number, _, name = self.arguments[0].partition(":")
        try:
            path = measured.notebook(self.env, number)
            figures = stored(path)
            if name not in figures:
                raise ValueError(f"{path.name} has no {name!r}; it has {', '.join(sorted(figures)) or 'none'}")
        except ValueError as error:
            log.warning("live %r: %s", self.arguments[0], error, location=self.get_location(), type="live")
            self.env.note_reread()
            return []
        return [figure(figures[name])]


def setup(app):
    app.add_directive("live", Live)
    app.connect("doctree-read", enliven, priority=400)  # before Sphinx collects the pictures
    files = [str(live.SCRIPT), str(live.STYLE)]
    app.connect("builder-inited", lambda app: app.config.html_static_path.extend(files))
    app.add_css_file(live.STYLE.name)
    app.add_js_file(live.SCRIPT.name, loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
