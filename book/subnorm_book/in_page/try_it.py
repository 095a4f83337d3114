"""A button *Try it* at every code cell of a chapter with the tag `try-it`: it becomes an editor, and runs.

A page has Python with NumPy, and of our packages the modules in packs.py. A run begins with no names. It first runs
the earlier cells with a button that the page shows, and all earlier cells tagged `try-it-first`; it passes over their
statements that need another library, also those of the functions of the chapter that they call. So tag a cell
`try-it-first` if a later cell with a button uses what it imports, draws or computes, and the page hides it. Tag no slow
cell so: every run below it waits for it.

A run goes on through the hidden cells with a button that follow, such as the table that shows what the cell computed.
A cell that then prints nothing needs a call that does, as the entry `try-it` of its metadata: the editor adds it.

For each page the build writes `_static/try/<page>.json` with the code of the cells and the outputs to compare with; it
loads at the first click, as all of Python does (`_static/try-it.js`).
"""

import ast
import hashlib
import json
import re
from itertools import accumulate
from pathlib import Path

from docutils import nodes
from subnorm_book import BEFORE_SPHINX, html_nodes
from subnorm_book.evidence.chapter_code import ChapterCode
from subnorm_book.in_page import editor, packs

TAG, FIRST = "try-it", "try-it-first"
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
    found = page_facts(cells, app.env.srcdir)
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


def page_facts(cells, root):
    """What the page of a notebook with these cells has to know; "tries" has the cells with a button."""
    sections = list(accumulate(cell["cell_type"] == "markdown" and "\n#" in f"\n{source(cell)}" for cell in cells))
    code = [(cell, section) for cell, section in zip(cells, sections, strict=True) if cell["cell_type"] == "code"]
    tries = {}
    for k, (cell, section) in enumerate(code):
        if TAG in tags(cell):
            then = list(following(code[k + 1 :], section))
            said = [text_of(shown) for shown in (cell, *then)]
            tries[cell["id"]] = {
                "then": [shown["id"] for shown in then],
                "said": "\n".join(filter(None, (text for text, _ in said))),
                "warns": any(warns for _, warns in said),
                "drawn": any(draws(later) for later, _ in code[k:]),
                "call": cell["metadata"].get(TAG, ""),
            }
    run = [cell for cell, _ in code if {TAG, FIRST} & set(tags(cell))]
    behind = ChapterCode(cells, root)
    sources = [behind.in_place(source(cell)) for cell in run]
    stored = [
        [cell["id"], text, raises(cell), is_shown(cell) or FIRST in tags(cell)]
        for cell, text in zip(run, sources, strict=True)
    ]
    return {"packs": packs_of(sources, root), "cells": stored, "tries": tries}


def following(code, section):
    """The hidden cells with a button, up to the next cell that the page shows and no further than the section."""
    for cell, its_section in code:
        if its_section != section or is_shown(cell):
            return
        if TAG in tags(cell):
            yield cell


def packs_of(sources, root):
    """The packs with the modules that these cells import."""
    imports = [node for text in sources for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    modules = {f"{node.module}.{alias.name}" for node in imports for alias in node.names}
    modules |= {node.module for node in imports}
    files = {f"{name.replace('.', '/')}{end}" for name in modules for end in (".py", "/__init__.py")}
    return [pack for pack in packs.PACKS if pack == "subnorm.tar.gz" or files & packs.pack_files(root, pack).keys()]


def source(cell):
    return "".join(cell["source"])


def tags(cell):
    return cell["metadata"].get("tags", [])


def is_shown(cell):
    return not {"hide-input", "checked"} & set(tags(cell))


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
        write_json(app, Path(pagename).name, doctree["try_it"])


def write_settings(app, error):
    """The file of all pages, which changes with the package."""
    if not error and app.builder.format == "html":
        write_json(app, "settings", packs.python_settings(app.srcdir, packs.PACKS))


def write_json(app, name, content):
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
