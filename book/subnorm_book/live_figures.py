"""Replace the still pictures that notebooks store by live figures.

`subnorm.live` stores a picture of the first state, and the table of all states in the output's metadata. The page
gets the figure that `live.js` draws from the table, complete without a script. All pages share the script and style
from the package, because the same cell is live in JupyterLab.

Any page can show the figure too, by the name that its notebook gave it:

    ```{live} 01:token
    ```

A missing figure is a warning in every build, and the page is read again when the notebook changes.
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
    """All live figures of a notebook, {name: table as JSON}, in order."""
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
    """Replace each picture by the figure with the same alt text; return a fault for each figure left over."""
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
