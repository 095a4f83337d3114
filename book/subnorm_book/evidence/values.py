"""Quote in prose a number that a notebook measured, so that no result is ever typed by hand.

A cell calls `subnorm_lab.report.say("slope", ...)`, which stores the rounded text with its output; {val}`02:slope` puts
that text on any page, from the one notebook whose file name starts with `02-`. An unknown name, notebook or output is
a warning in every build, and a page is read again when a notebook that it quotes changes. {given}`0.5` marks a number
that was chosen, not measured.
"""

import json
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

from subnorm_lab import report

log = logging.getLogger(__name__)


def said(notebook):
    """All numbers {name: text} in a notebook's stored outputs; ValueError for a repeated name or an edited text."""
    found = {}
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            for name, text in report.said(output).items():
                shown = "".join(output["data"]["text/plain"])
                if name in found:
                    raise ValueError(f"{name!r} is said twice; give each number its own name")
                if shown != f"{name} = {text}":
                    raise ValueError(f"{name!r} was stored as {text!r} but shows {shown!r}; run the notebook again")
                found[name] = text
    return found


def quoted_notebook(env, number):
    """The notebook that a page quotes by its number; the page is read again when that notebook changes."""
    paths = sorted(Path(env.srcdir, "notebooks").glob(f"{number}-*.ipynb"))
    if len(paths) != 1:
        raise ValueError(f"{len(paths)} notebooks are named notebooks/{number}-*.ipynb; there must be one")
    env.note_dependency(str(paths[0]))
    return paths[0]


class Val(SphinxRole):
    def run(self):
        number, _, name = self.text.partition(":")
        try:
            text = self.look_up(number, name)
        except ValueError as error:
            log.warning("val %r: %s", self.text, error, location=self.get_location(), type="measured")
            self.env.note_reread()
            return [nodes.problematic(self.rawtext, self.rawtext)], []
        if text.startswith("-"):  # Python's hyphen; a hyphen is too short for a minus sign, and a line may end after it
            text = "\N{MINUS SIGN}" + text[1:]
        return [nodes.inline(self.rawtext, text, classes=["measured"])], []

    def look_up(self, number, name):
        path = quoted_notebook(self.env, number)
        numbers = said(json.loads(path.read_text("utf-8")))
        if name not in numbers:
            raise ValueError(f"{path.name} says no {name!r}; it says {', '.join(sorted(numbers)) or 'nothing'}")
        return numbers[name]


def mark_lines(app, doctree):
    """Give the output lines of quoted numbers their own class; warn if a notebook uses a name twice."""
    path = Path(app.env.doc2path(app.env.docname))
    if path.suffix != ".ipynb":
        return
    try:
        lines = {f"{name} = {text}" for name, text in said(json.loads(path.read_text("utf-8"))).items()}
    except ValueError as error:
        log.warning("%s", error, location=app.env.docname, type="measured")
        app.env.note_reread()
        return
    for block in doctree.findall(nodes.literal_block):
        if block.astext().strip() in lines:
            block["classes"].append("said")


def setup(app):
    app.connect("doctree-read", mark_lines)
    app.add_role("val", Val())
    app.add_generic_role("given", nodes.inline)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
