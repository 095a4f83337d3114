"""Work on a sheet of exercises in its page: an editor under each task, and Python with NumPy that runs it.

The sheet's students' notebook gives each editor its first text, and gets what the reader wrote when they download it.
An exercise that needs another library says so, and has no editor. `_static/in-page.js` does the rest.
"""

import json
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from subnorm_book import BEFORE_SPHINX
from subnorm_book.html_nodes import add_html_only, add_script, writes
from subnorm_book.in_page import packs
from subnorm_book.in_page.editor import COST, UNKEPT, editor_html, preview

from subnorm_lab import checks
from subnorm_lab.checks.collect import NEEDS
from subnorm_lab.checks.exercise import totals


class in_page_head(nodes.Element):
    """Above the exercises: what the page can do, and its notebook."""


class sheet_notes(nodes.General, nodes.Element):
    """The notes above the exercises of a sheet, folded, so that the first task is on the first screen."""


class workbench(nodes.Element):
    """The editor of an exercise, its buttons and its results."""


class together(nodes.Element):
    """The editor of a cell that needs all answers."""


class checked(nodes.Element):
    """What `checks.progress()` prints, and the notebook to hand in."""


def add_workbenches(app, doctree):
    """Put a workbench above the answer of each exercise of a sheet, and above the cells that need all answers."""
    book = Path(app.env.srcdir, f"{app.env.docname}.ipynb")
    student = book.parent / "student" / book.name
    answers = [cell for cell in doctree.findall(nodes.container) if "tag_answer" in cell.get("classes", ())]
    if not answers or not student.exists():
        return
    stubs = {cell["id"]: "".join(cell["source"]) for cell in json.loads(student.read_text("utf-8"))["cells"]}
    exercises = checks.SETS[book.stem.partition("-")[0]]
    wanted = [name for name in packs.PACKS if name == "subnorm.tar.gz" or any(ex.speaks for ex in exercises)]
    for exercise, answer in zip(exercises, answers, strict=True):
        cell = answer["cell_metadata"]["nbgrader"]["grade_id"]
        libraries = " and ".join(NEEDS.get(exercise.way, {}).values())
        if libraries:
            bench = elsewhere(libraries, book.name)
        else:
            bench = workbench(cell=cell, name=exercise.name, stub=stubs[cell])
        section = answer.parent
        section["exercise"] = exercise.name
        above = section[section.index(answer) - 1]
        section.insert(section.index(above if is_hint(above) else answer), bench)
    for cell in list(doctree.findall(nodes.container)):
        code = cell_code(cell)
        if code == "checks.progress()":
            replaced(cell, checked("", notebook_link(book.name, DOWNLOAD)))
        elif code.startswith("checks.story("):
            replaced(cell, together(stub=code, packs=wanted))
    names = [ex.name for ex in exercises if ex.way not in NEEDS]
    link = notebook_link(book.name, DOWNLOAD)
    variants = {ex.name: [k, *(one.label for one in ex.variants)] for k, ex in enumerate(exercises) if ex.variants}
    about = {"packs": wanted, "setup": stubs["setup"], "exercises": names}
    about |= {"variants": variants, "count": len(exercises)}  # of each exercise: its place, and the labels
    head = in_page_head("", link, settings=about, totals=totals(exercises))
    first = answers[0].parent
    title, gist, *others = first.parent[: first.parent.index(first)]
    first.parent[: first.parent.index(first)] = [title, gist, head, sheet_notes("", *others)]
    packed_files = [path for pack in wanted for path in packs.pack_files(app.env.srcdir, pack).values()]
    for path in [student, Path(app.env.srcdir, packs.STATIC, "parts.json"), *packed_files]:
        app.env.note_dependency(str(path))


def is_hint(node):
    return isinstance(node, nodes.admonition) and "dropdown" in node["classes"]


def cell_code(cell):
    """The code of a cell of a notebook; "" for any other container."""
    code = next(cell.findall(nodes.literal_block), None) if "cell" in cell.get("classes", ()) else None
    return code.astext().strip() if code else ""


def replaced(cell, node):
    """Put a node in the place of a cell, which a page without a script shows."""
    cell["classes"].append("tag_check")
    cell.parent.insert(cell.parent.index(cell), node)


def notebook_link(name, text):
    """A link to the students' notebook of this sheet."""
    return addnodes.download_reference("", text, reftarget=f"student/{name}", refdoc="")


def elsewhere(libraries, name):
    text = f"This exercise needs {libraries}, which does not run in a page. Write it in "
    return nodes.paragraph("", text, notebook_link(name, "the notebook"), nodes.Text("."), classes=["elsewhere"])


# HTML

HEAD = """\
<div class="in-page-head" data-in-page="{settings}">
<p>{totals}. <span class="here"><strong>You can work on this page:</strong> the first <em>Run</em> or <em>Check</em>
loads Python ({size:.1f} MB, once).</span>
"""
OWN = '<p data-own hidden><span role="status"></span> <button type="button">Use this page\'s tasks</button></p>\n'
NOTES = """\
<details class="sheet-notes">
<summary>Before you begin: what to read, rules for all exercises, keys, handing in</summary>
<p>The editors run NumPy {numpy}. Ctrl+Enter runs, Shift+Enter checks, and Tab leaves the editor. Your code stays in
this browser, and the notebook to hand in is made from it.</p>
"""
ASKS = "<p data-asks></p>\n"  # what the student's own sheet asks for
CHECK = '<button type="button" data-check>Check</button>'
VERDICT = '<div data-verdict role="status"></div>\n'
DOWNLOAD = "Download this sheet as a notebook"
NOTE = ' <span data-note role="status"></span>'  # why there was no download
NOTHING_CHECKED = "0 of 0 exercises that you have checked are right."  # as the script says it: nothing moves


def visit_head(translator, node):
    about = packs.python_settings(translator.builder.srcdir, **node["settings"])
    filled = {
        "settings": escape(json.dumps(about)),
        "totals": node["totals"],
        "size": packs.megabytes(about),
    }
    translator.body.append(HEAD.format(**filled))


def depart_head(translator, node):
    unkept = UNKEPT.format("download the notebook before you leave the page")
    translator.body.append(f"{NOTE}</p>\n{unkept}{OWN}</div>\n")


def visit_notes(translator, node):
    numpy = packs.python_settings(translator.builder.srcdir, ["subnorm.tar.gz"])["versions"]["numpy"]
    translator.body.append(NOTES.format(numpy=numpy))


def visit_bench(translator, node):
    about = {"attributes": f' data-cell="{node["cell"]}"', "before": ASKS, "buttons": CHECK, "more": VERDICT}
    about["preview"] = preview(node["stub"])
    translator.body.append(editor_html(f"Your {node['name']}", node["stub"], **about))
    raise nodes.SkipNode


def visit_together(translator, node):
    about = packs.python_settings(translator.builder.srcdir, node["packs"])
    slots = {"cost": COST.format(packs.megabytes(about)), "preview": preview(node["stub"])}
    translator.body.append(editor_html("The whole model", node["stub"], **slots))
    raise nodes.SkipNode


def visit_checked(translator, node):
    translator.body.append(f'<div class="checked-here" data-checked role="status">{NOTHING_CHECKED}</div>\n')
    translator.body.append('<p class="hand-in">')


def visit_section(translator, node):
    translator.section_level += 1
    name = {"data-exercise": node["exercise"]} if "exercise" in node else {}
    translator.body.append(translator.starttag(node, "section", **name))


def depart_section(translator, node):
    translator.section_level -= 1
    translator.body.append("</section>\n")


def setup(app):
    app.add_node(nodes.section, override=True, html=(visit_section, depart_section))
    app.add_node(in_page_head, html=(visit_head, depart_head))
    app.add_node(sheet_notes, html=(visit_notes, writes("</details>\n")))
    app.add_node(checked, html=(visit_checked, writes(f"{NOTE}</p>\n")))
    app.connect("doctree-read", add_workbenches, priority=BEFORE_SPHINX)
    add_html_only(app, workbench, visit_bench)
    add_html_only(app, together, visit_together)
    add_script(app, "in-page.js", lambda doctree: any(doctree.findall(in_page_head)))
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
