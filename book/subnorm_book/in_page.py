"""Work on a sheet of exercises in its page: an editor under each task, and Python with NumPy that runs it.

The sheet's students' notebook gives each editor its first text, and gets what the reader wrote when they download it.
An exercise that needs another library says so, and has no editor. `_static/in-page.js` does the rest.

Python itself is stored in `_static/python` (tools/in_page/vendor.py). The package comes from the source tree: every
build packs what the checks import.
"""

import gzip
import hashlib
import io
import json
import tarfile
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

from subnorm_book.html_nodes import add_html_only, writes
from subnorm_lab import checks
from subnorm_lab.checks.collect import NEEDS

STATIC = Path("book", "_static", "python")
SESSION = tuple(Path("book", "subnorm_book", name) for name in ("page_session.py", "page_cells.py", "cell_needs.py"))

#: Packs of files of the package, each for the pages that need it: the checks, the model that speaks, and what cells of
#: the chapters import beside.
PACKS = {
    "subnorm.tar.gz": (
        "subnorm/__init__.py",
        "subnorm/_rules.py",
        "subnorm/numpy/*.py",
        "subnorm_lab/__init__.py",
        "subnorm_lab/checks/**/*.py",
    ),
    "stories.tar.gz": (
        "subnorm_lab/stories/__init__.py",
        "subnorm_lab/stories/files.py",
        "subnorm_lab/stories/data/*.bin",
        "subnorm_lab/stories/data/stories.txt",
        "subnorm_lab/stories/data/LICENSE-tinyllamas",
    ),
    "chapters.tar.gz": (
        "subnorm_lab/report.py",
        "subnorm_lab/museum/*.py",
        "subnorm_lab/experiments/__init__.py",
        "subnorm_lab/experiments/block_backward.py",
        "subnorm_lab/experiments/conventions.py",
        "subnorm_lab/experiments/invariances.py",
        "subnorm_lab/experiments/jacobian.py",
        "subnorm_lab/experiments/parameters.py",
        "subnorm_lab/experiments/precision.py",
        "subnorm_lab/experiments/rank_collapse.py",
    ),
}


class in_page_head(nodes.Element):
    """Above the exercises: what the page can do, and its notebook."""


class workbench(nodes.Element):
    """The editor of an exercise, its buttons and its results."""


class together(nodes.Element):
    """The editor of a cell that needs all answers."""


class checked(nodes.Element):
    """What `checks.progress()` prints, and the notebook to hand in."""


class Workbenches(SphinxTransform):
    """Put a workbench above the answer of each exercise of a sheet, and above the cells that need all answers."""

    default_priority = 800  # before Sphinx collects the files to download

    def apply(self):
        book = Path(self.env.srcdir, f"{self.env.docname}.ipynb")
        student = book.parent / "student" / book.name
        answers = [cell for cell in self.document.findall(nodes.container) if "tag_answer" in cell.get("classes", ())]
        if not answers or not student.exists():
            return
        stubs = {cell["id"]: "".join(cell["source"]) for cell in json.loads(student.read_text("utf-8"))["cells"]}
        exercises = checks.SETS[book.stem.partition("-")[0]]
        packs = [name for name in PACKS if name == "subnorm.tar.gz" or any(ex.speaks for ex in exercises)]
        for exercise, answer in zip(exercises, answers, strict=True):
            cell = answer["cell_metadata"]["nbgrader"]["grade_id"]
            libraries = " and ".join(NEEDS.get(exercise.way, {}).values())
            if libraries:
                bench = elsewhere(libraries, book.name)
            else:
                bench = workbench(cell=cell, name=exercise.name, stub=stubs[cell])
            section = answer.parent
            section["exercise"] = exercise.name
            section.insert(section.index(answer), bench)
        for cell in list(self.document.findall(nodes.container)):
            code = cell_code(cell)
            if code == "checks.progress()":
                replaced(cell, checked("", notebook(book.name, DOWNLOAD)))
            elif code.startswith("checks.story("):
                replaced(cell, together(stub=code, packs=packs))
        names = [ex.name for ex in exercises if ex.way not in NEEDS]
        link = notebook(book.name, DOWNLOAD)
        variants = {ex.name: [k, *(one.label for one in ex.variants)] for k, ex in enumerate(exercises) if ex.variants}
        about = {"packs": packs, "setup": stubs["setup"], "exercises": names}
        about |= {"variants": variants, "count": len(exercises)}  # of each exercise: its place, and the labels
        head = in_page_head("", link, settings=about)
        first = answers[0].parent
        first.parent.insert(first.parent.index(first), head)
        packed_files = [path for pack in packs for path in members(self.env.srcdir, pack).values()]
        for path in [student, Path(self.env.srcdir, STATIC, "parts.json"), *packed_files]:
            self.env.note_dependency(str(path))


def cell_code(cell):
    """The code of a cell of a notebook; "" for any other container."""
    code = next(cell.findall(nodes.literal_block), None) if "cell" in cell.get("classes", ()) else None
    return code.astext().strip() if code else ""


def replaced(cell, node):
    """Put a node in the place of a cell, which a page without a script shows."""
    cell["classes"].append("tag_check")
    cell.parent.insert(cell.parent.index(cell), node)


def notebook(name, text):
    """A link to the students' notebook of this sheet."""
    return addnodes.download_reference("", text, reftarget=f"student/{name}", refdoc="")


def elsewhere(libraries, name):
    text = f"This exercise needs {libraries}, which does not run in a page. Write it in "
    return nodes.paragraph("", text, notebook(name, "the notebook"), nodes.Text("."), classes=["elsewhere"])


def members(root, pack):
    """The files of a pack: {name in the pack: path}."""
    root = Path(root)
    found = [path for pattern in PACKS[pack] for path in sorted(root.glob(pattern))]
    more = {path.relative_to("book").as_posix(): root / path for path in SESSION} if pack == "subnorm.tar.gz" else {}
    return {path.relative_to(root).as_posix(): path for path in found} | more


def packed(root, pack):
    """A pack: the same bytes in every build."""
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, path in members(root, pack).items():
            entry, content = tarfile.TarInfo(name), path.read_bytes()
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(result.getvalue(), 9, mtime=0)


def described(content):
    """The size and the hash of a part."""
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def settings(root, packs, setup="", exercises=(), **more):
    """What the page's script has to know."""
    folder = Path(root, STATIC)
    stored = json.loads((folder / "parts.json").read_text("utf-8"))
    scripts = {name: stored["files"][name]["sha256"] for name in ("pyodide.js", "pyodide.asm.js", "editor.js")}
    worker = (folder.parent / "in-page-worker.js").read_text("utf-8")
    parts = {name: about for name, about in stored["files"].items() if name not in scripts}
    script = (folder / "pyodide.asm.js").read_bytes()
    parts["pyodide.asm.js"] = {"bytes": len(gzip.compress(script))}  # as servers send it
    parts |= {pack: described(packed(root, pack)) for pack in packs}
    return {
        "versions": stored["versions"],
        "version": hashlib.sha256(repr((scripts, worker)).encode()).hexdigest()[:12],
        "editor": scripts["editor.js"][:12],
        "parts": parts,
        "packs": ["numpy.tar.gz", *packs],
        "setup": setup,
        "exercises": exercises,
        **more,
    }


def megabytes(about):
    """What the first run loads."""
    return sum(part["bytes"] for part in about["parts"].values()) / 1e6


# HTML

HEAD = """\
<div class="in-page-head" data-in-page="{settings}">
<p><strong>You can work on this page.</strong> The first <em>Run</em> or <em>Check</em> loads Python with NumPy
{numpy} ({size:.1f} MB, once). Your code stays in this browser, and the notebook to hand in is made from it.
Ctrl+Enter runs, Shift+Enter checks, and Tab leaves the editor.</p>
{unkept}<p data-own hidden><span role="status"></span> <button type="button">Use this page's tasks</button></p>
<p>"""
BENCH = """\
<div class="workbench"{attributes}>
{before}<div class="highlight"><textarea aria-label="{label}" rows="{rows}" wrap="off" spellcheck="false"
autocapitalize="off" autocomplete="off" autocorrect="off">
{code}</textarea></div>
<div class="buttons"><button type="button" data-run>Run{cost}</button>{buttons}\
<button type="button" data-stop disabled>Stop</button>\
<button type="button" data-reset disabled>Reset</button>{last}</div>
<p class="loading"><progress data-progress hidden aria-label="Loading Python"></progress> <span></span></p>
<p data-state role="status"></p>
<div data-output tabindex="0" role="group" aria-label="Output"></div>
{more}</div>
"""
#: The page shows it once the browser has refused to keep what the reader types.
UNKEPT = "<p data-unkept>This browser does not keep your code: {}.</p>\n"
ASKS = "<p data-asks></p>\n"  # what the student's own sheet asks for
CHECK = '<button type="button" data-check>Check</button>'
VERDICT = '<div data-verdict role="status"></div>\n'
DOWNLOAD = "Download this sheet as a notebook"
NOTE = ' <span data-note role="status"></span>'  # why there was no download
NOTHING_CHECKED = "0 of 0 exercises that you have checked are right."  # as the script says it: nothing moves
COST = " <span data-cost>loads {:.1f} MB</span>"  # what a run loads first; the script keeps it true


def editor(label, code="", **slots):
    """The HTML of an editor with its buttons and results, and what else goes into the slots of `BENCH`."""
    filled = dict.fromkeys(["attributes", "before", "cost", "buttons", "last", "more"], "") | slots
    return BENCH.format(label=escape(label), code=escape(code), rows=max(code.count("\n") + 1, 3), **filled)


def visit_head(translator, node):
    about = settings(translator.builder.srcdir, **node["settings"])
    filled = {"settings": escape(json.dumps(about)), "numpy": about["versions"]["numpy"], "size": megabytes(about)}
    filled["unkept"] = UNKEPT.format("download the notebook before you leave the page")
    translator.body.append(HEAD.format(**filled))


def visit_bench(translator, node):
    about = {"attributes": f' data-cell="{node["cell"]}"', "before": ASKS, "buttons": CHECK, "more": VERDICT}
    translator.body.append(editor(f"Your {node['name']}", node["stub"], **about))
    raise nodes.SkipNode


def visit_together(translator, node):
    about = settings(translator.builder.srcdir, node["packs"])
    translator.body.append(editor("The whole model", node["stub"], cost=COST.format(megabytes(about))))
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


def add_script(app, pagename, templatename, context, doctree):
    if doctree and any(doctree.findall(in_page_head)):
        app.add_js_file("in-page.js", loading_method="defer", priority=900)  # after subnorm.js


def write_packs(app, error):
    folder = Path(app.outdir, "_static", "python")
    if not error and app.builder.format == "html" and folder.exists():
        for pack in PACKS:
            (folder / pack).write_bytes(packed(app.srcdir, pack))


def setup(app):
    app.add_transform(Workbenches)
    app.add_node(nodes.section, override=True, html=(visit_section, depart_section))
    app.add_node(in_page_head, html=(visit_head, writes(f"{NOTE}</p>\n</div>\n")))
    app.add_node(checked, html=(visit_checked, writes(f"{NOTE}</p>\n")))
    add_html_only(app, workbench, visit_bench)
    add_html_only(app, together, visit_together)
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write_packs)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
