"""Fold what proves: a cell tagged `checked`. Only those who read with code see it, and the claims that it checks.

A sentence that announces it, "A proof checks both answers.", a paragraph of its own above the cell, is for them, too.
What is folded shows the functions that it calls.
"""

import re

from docutils import nodes
from subnorm_book.evidence import chapter_code

ANNOUNCED = re.compile(r"A proof checks [^.]*\.")


def fold(app, doctree):
    code = chapter_code.of_page(app.env)
    for cell in doctree.findall(nodes.container):
        tags = cell["cell_metadata"].get("tags", []) if cell.get("nb_element") == "cell_code" else []
        if "checked" in tags:
            cell["hide_mode"] = "all"
            cell["prompt_show"] = cell["prompt_hide"] = "checked ✓"
            above = cell.parent[max(cell.parent.index(cell) - 1, 0)]
            if isinstance(above, nodes.paragraph) and ANNOUNCED.fullmatch(above.astext()):
                above["classes"].append("of-proof")
        if {"checked", "hide-input"}.intersection(tags):
            for block in cell[0].findall(nodes.literal_block):
                block.rawsource = code.shown(block.astext())
                block[:] = [nodes.Text(block.rawsource)]


def is_folded(cell):
    return cell.get("hide_mode") in ("all", "input")


def setup(app):
    app.connect("doctree-read", fold)
    return {"env_version": 3, "parallel_read_safe": True, "parallel_write_safe": True}
