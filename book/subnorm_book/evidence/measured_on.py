"""The machine, commit and versions of a stored measurement, folded below the figure that shows it.

A cell that draws a record prints them in two lines for each machine (`subnorm.provenance`). Where it prints nothing
else, the page shows the machine and the day, and the rest on demand. Above a table they stay its head.
"""

import re
from html import escape

from docutils import nodes

#: Two lines: "AMD EPYC, one thread, 2026-11-26, commit aae9a30, load 0.3", and Python with its libraries.
MACHINE = r"([^\n]+, \d{4}-\d\d-\d\d), commit [^\n]+\npython [^\n]+"
ALONE = re.compile(rf"\s*{MACHINE}(?:\s+{MACHINE})*\s*")
FOLD = '<details class="measured-on"><summary>Measured on {}</summary>'


def fold(app, doctree):
    for block in list(doctree.findall(nodes.literal_block)):
        if not ALONE.fullmatch(block.astext()):
            continue
        machines = "; ".join(re.findall(MACHINE, block.astext()))
        place, at = block.parent, block.parent.index(block)
        place.insert(at, nodes.raw("", FOLD.format(escape(machines)), format="html"))
        place.insert(at + 2, nodes.raw("", "</details>", format="html"))


def setup(app):
    app.connect("doctree-read", fold)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
