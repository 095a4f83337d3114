"""Replace the still pictures that notebooks store by live figures.

`subnorm_lab.live` stores a picture of the first state, and the table of all states in the output's metadata. The page
gets the figure that `live.js` draws from the table, complete without a script. All pages share the script and style
from the package, because the same cell is live in JupyterLab.

A phrase can set a figure of its page to a state: {set}`at gain 1 <token: blocks=24; gain=1, He>` names the figure, and
the controls that change with the values that the reader sees. `live.js` makes it a button; without a script it is text.

A missing figure or state is a warning in every build, and the page is read again when the notebook changes.
"""

import json
import re
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import ReferenceRole
from subnorm_book import BEFORE_SPHINX
from subnorm_book.html_nodes import add_script

from subnorm_lab import live

log = logging.getLogger(__name__)


def stored_figures(path):
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
        lost = put_figures(doctree, list(stored_figures(path).values()))
    except ValueError as error:
        lost = [str(error)]
    for fault in lost:
        log.warning("%s", fault, location=app.env.docname, type="live")
        app.env.note_reread()


def put_figures(doctree, tables):
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


class setting(nodes.inline):
    """A phrase that sets a figure; other builders know the base class, and show its text."""


class Set(ReferenceRole):
    def run(self):
        node = setting("", self.title, target=self.target)
        self.set_source_info(node)
        return [node], []


def check_settings(app, doctree):
    """Look up the figure and the positions that each phrase names."""
    data = re.compile('<script type="application/json">(.*?)</script></figure>', re.DOTALL)
    tables = [json.loads(table) for raw in doctree.findall(nodes.raw) for table in data.findall(raw.astext())]
    figures = {table["name"]: table for table in tables}
    for node in list(doctree.findall(setting)):
        name, _, values = node["target"].partition(":")
        try:
            if name not in figures:
                raise ValueError(f"the page has no {name!r}; it has {', '.join(sorted(figures)) or 'none'}")
            node["state"] = state(figures[name]["controls"], values)
            node["figure"] = f"live-{name}"
        except ValueError as error:
            log.warning("set %r: %s", node["target"], error, location=node, type="live")
            app.env.note_reread()
            node.replace_self(nodes.Text(node.astext()))


def state(controls, values):
    """{control: position} from "blocks=24; gain=1, He"."""
    known = {control["name"]: control for control in controls}
    found = {}
    for part in values.split(";"):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or name not in known:
            raise ValueError(f"{part.strip()!r} is not of the form control=value with a control of {sorted(known)}")
        found[name] = position(known[name], value)
    return found


def position(control, value):
    if "values" in control:
        if value not in control["values"]:
            raise ValueError(f"{control['name']} has no {value!r}; it has {', '.join(control['values'])}")
        return control["values"].index(value)
    low, high, _ = control["range"]
    try:
        at = float(value)
    except ValueError:
        at = float("nan")
    if not low <= at <= high:
        raise ValueError(f"{control['name']} goes from {low:g} to {high:g}, not to {value!r}")
    return at


def visit_setting(translator, node):
    place = escape(json.dumps(node["state"]))
    translator.body.append(f'<span class="live-set" data-figure="{node["figure"]}" data-to="{place}">')


def depart_setting(translator, node):
    translator.body.append("</span>")


def has_figure(doctree):
    return any("data-live=" in raw.astext() for raw in doctree.findall(nodes.raw))


def setup(app):
    app.add_role("set", Set())
    app.add_node(setting, html=(visit_setting, depart_setting))
    app.connect("doctree-read", enliven, priority=BEFORE_SPHINX)
    app.connect("doctree-read", check_settings, priority=BEFORE_SPHINX)
    files = [str(live.SCRIPT), str(live.STYLE)]
    app.connect("builder-inited", lambda app: app.config.html_static_path.extend(files))
    app.add_css_file(live.STYLE.name)
    add_script(app, live.SCRIPT.name, has_figure, priority=500)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
