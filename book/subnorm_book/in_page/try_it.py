"""A button *Try it* at every code cell of a chapter that runs with NumPy alone: it becomes an editor, and runs.

`cell_needs.py` says which cells these are. For each page the build writes `_static/try/<page>.json` with the code of
the notebook and the outputs to compare with; it loads at the first click, as all of Python does (`_static/try-it.js`).

After a cell run the hidden cells that show what it computed, such as a table.
"""

import hashlib
import json
import re
from itertools import accumulate
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from subnorm_book import BEFORE_SPHINX, html_nodes
from subnorm_book.in_page import editor, packs
from subnorm_book.in_page.cell_needs import Modules, Needs, statements

log = logging.getLogger(__name__)

FOLDER = Path("_static", "try")
SCRIPT = Path("book", "_static", "in-page.js")


class try_it(nodes.Element):
    """The button of a cell; in the last one of a page, the editor that all of them open."""


def add_buttons(app, doctree):
    """Put the buttons on the page of a notebook that is no sheet of exercises."""
    path = Path(app.env.srcdir, f"{app.env.docname}.ipynb")
    if path.parent.name != "notebooks" or not path.exists():
        return
    cells = json.loads(path.read_text("utf-8"))["cells"]
    found = page(cells, app.env.srcdir)
    if not found["tries"]:
        return
    buttons = []
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") == "cell_code" and cells[cell["cell_index"]]["id"] in found["tries"]:
            buttons.append(try_it(cell=cells[cell["cell_index"]]["id"]))
            cell[0].append(buttons[-1])
    buttons[-1]["page"] = path.stem
    app.env.note_dependency(str(Path(app.env.srcdir, SCRIPT)))
    doctree["try_it"] = found
    for file in imported(cells, Modules(app.env.srcdir)):  # each may begin to need more than NumPy
        app.env.note_dependency(str(file))


def page(cells, root):
    """What the page of a notebook with these cells has to know; "tries" has the cells with a button."""
    sections = list(accumulate(cell["cell_type"] == "markdown" and "\n#" in f"\n{source(cell)}" for cell in cells))
    code = [(cell, section) for cell, section in zip(cells, sections, strict=False) if cell["cell_type"] == "code"]
    cells = [cell for cell, _ in code]
    modules = Modules(root)
    raising = [k for k, cell in enumerate(cells) if raises(cell)]
    needs = Needs(map(source, cells), modules.alone, raising)
    before = {k: needs.before(k) for k in range(len(cells)) if "checked" not in tags(cells[k])}
    before = {k: numbers for k, numbers in before.items() if numbers is not None}
    drawn = [set(needs.before(k, strict=False)) for k, cell in enumerate(cells) if draws(cell)]
    tries = {}
    for k in before:
        then = [j for j in shown_by(k, cells, needs, before) if code[j][1] == code[k][1]]
        said = [text_of(cells[j]) for j in (k, *then)]
        if "hide-input" in tags(cells[k]) and not any(text for text, _ in said):
            continue  # its result is in a figure
        tries[cells[k]["id"]] = {
            "then": [cells[j]["id"] for j in then],
            "said": "\n".join(filter(None, (text for text, _ in said))),
            "warns": any(warns for _, warns in said),
            "drawn": any(numbers.intersection(needs.of_cell[k]) for numbers in drawn),
        }
    run = {n for k, numbers in before.items() if cells[k]["id"] in tries for n in (*numbers, *needs.of_cell[k])}
    imports = {module for n in run for module in needs.all[n].imports}
    wanted = packs_of({name for module in imports for name in modules.needs(module)}, modules)
    return {"packs": wanted, "cells": [[cell["id"], source(cell), raises(cell)] for cell in cells], "tries": tries}


def imported(cells, modules):
    """The files of the package that the cells of a notebook import."""
    sources = [source(cell) for cell in cells if cell["cell_type"] == "code"]
    names = {module for own in statements(sources) for module in own.imports}
    return {modules.path(reached) for name in names for reached in modules.needs(name)}


def packs_of(names, modules):
    """The packs with these modules of the package."""
    packed = {pack: set(packs.pack_files(modules.root, pack)) for pack in packs.PACKS}
    found = {"subnorm.tar.gz"}
    for name in names:
        path = modules.path(name).relative_to(modules.root).as_posix()
        own = [pack for pack in packed if path in packed[pack]]
        if not own:
            log.warning("%s runs in the pages: add it to PACKS in packs.py", path)
        if len(own) == 1:  # a module in two packs comes with its neighbours
            found.update(own)
    return sorted(found)


def shown_by(k, cells, needs, before):
    """The hidden cells that show what cell `k` computed, up to the next one that the page shows."""
    for j in range(k + 1, len(cells)):
        if "checked" in tags(cells[j]):
            continue
        if "hide-input" not in tags(cells[j]):
            return
        if set(before.get(j, ())).intersection(needs.of_cell[k]) and text_of(cells[j])[0]:
            yield j


def source(cell):
    return "".join(cell["source"])


def tags(cell):
    return cell["metadata"].get("tags", [])


def raises(cell):
    return any(output["output_type"] == "error" for output in cell["outputs"])


def draws(cell):
    """Whether a cell draws a figure. No page draws it again: that would take Matplotlib."""
    return any(kind.startswith("image/") for output in cell["outputs"] for kind in output.get("data", ()))


def text_of(cell):
    """What a cell printed, of an error the last line; and whether there was a warning, which no page has."""
    found = []
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            found.append("".join(output["text"]))
        elif output["output_type"] == "error":
            found.append(f"{output['ename']}: {output['evalue']}\n")
        else:
            found.append("".join(output["data"].get("text/plain", "")) + "\n")
    text, warnings = re.subn(r"^\w+Warning: .*\n", "", "".join(found), flags=re.MULTILINE)
    return text.rstrip(), bool(warnings)


# HTML

BUTTON = (
    '<div class="try-it"><button type="button" data-try="{cell}">Try it</button> <span role="status"></span></div>\n'
)
EDITOR = '<template data-try-page="{page}" data-script="in-page.js?{version}">{bench}</template>\n'
CLOSE = '<button type="button" data-close>Close</button>'
UNKEPT = editor.UNKEPT.format("copy it before you close the editor or leave the page")
STORED = '<div data-stored tabindex="0" role="group" aria-label="Output in the book"></div>\n'


def visit(translator, node):
    translator.body.append(BUTTON.format(cell=node["cell"]))
    if "page" in node:
        bench = editor.editor_html("Code of this cell", before=UNKEPT, last=CLOSE, more=STORED)
        version = hashlib.sha256(Path(translator.builder.srcdir, SCRIPT).read_bytes()).hexdigest()[:12]
        translator.body.append(EDITOR.format(page=node["page"], version=version, bench=bench))
    raise nodes.SkipNode


def write_page(app, pagename, templatename, context, doctree):
    """The file of a page, which may be written when others are not."""
    if doctree is not None and "try_it" in doctree:
        write(app, Path(pagename).name, doctree["try_it"])


def write_settings(app, error):
    """The file of all pages, which changes with the package."""
    if not error and app.builder.format == "html":
        write(app, "settings", packs.python_settings(app.srcdir, packs.PACKS))


def write(app, name, content):
    path = Path(app.outdir, FOLDER, f"{name}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")), "utf-8")


def setup(app):
    app.connect("doctree-read", add_buttons, priority=BEFORE_SPHINX)
    html_nodes.add_html_only(app, try_it, visit)
    html_nodes.add_script(app, "try-it.js", lambda doctree: any(doctree.findall(try_it)))
    app.connect("html-page-context", write_page)
    app.connect("build-finished", write_settings)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
