"""Fold what proves: a cell tagged `checked` becomes one quiet line that names the claims which it checks.

What is folded shows the functions that it calls, too.
"""

from docutils import nodes
from subnorm_book.evidence import chapter_code
from subnorm_book.evidence.claims import TAG


def fold(app, doctree):
    code = chapter_code.of_page(app.env)
    for cell in doctree.findall(nodes.container):
        tags = cell["cell_metadata"].get("tags", []) if cell.get("nb_element") == "cell_code" else []
        if "checked" in tags:
            cell["hide_mode"] = "all"
            cell["prompt_show"] = cell["prompt_hide"] = label([t.removeprefix(TAG) for t in tags if t.startswith(TAG)])
        if {"checked", "hide-input"}.intersection(tags):
            for block in cell[0].findall(nodes.literal_block):
                block.rawsource = code.shown(block.astext())
                block[:] = [nodes.Text(block.rawsource)]


def label(claims):
    """Such as: checked ✓ 03-biased, and 2 more."""
    more = f", and {len(claims) - 1} more" if len(claims) > 1 else ""
    return " ".join(["checked ✓", *claims[:1]]) + more


def is_folded(cell):
    return cell.get("hide_mode") in ("all", "input")


def setup(app):
    app.connect("doctree-read", fold)
    return {"env_version": 2, "parallel_read_safe": True, "parallel_write_safe": True}
