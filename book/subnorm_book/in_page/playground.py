"""An editor that runs whatever the reader writes, with starters to begin from.

    ```{playground}
    ```

takes each file of `book/playground`: its docstring is a title and a question, the rest is the code: at most 25 lines,
which print the answer; `tests/book/test_playground.py` repeats it with other seeds. `{listing-here}` below the
listing of the page {doc}`story` is a button that puts an editor in its place. `_static/playground.js` does the rest.
"""

import ast
import json
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from subnorm_book.html_nodes import add_html_only, add_script
from subnorm_book.in_page import editor, packs, story_page

STARTERS = Path("book", "playground")
MODEL = "stories.tar.gz"
#: The listing finds its files from the place of its own file, as in the repository.
AT = f'import sys\n__file__ = f"{{sys.path[-1]}}/{story_page.LISTING.as_posix()}"\n'

HEAD = '<div class="playground" data-playground="{settings}">\n'
CHOICE = '<button type="button" data-starter="{name}" aria-pressed="false">{title}</button>\n'
OPENER = '<div class="try-it"><button type="button" data-opens aria-expanded="false">Change it here</button></div>\n'
QUESTION = '<p data-question aria-live="polite">{question}</p>\n'
BUTTONS = '<button type="button" data-download>Download</button><button type="button" data-link>Link</button>'
UNKEPT = editor.UNKEPT.format("download it before you leave the page")


class playground(nodes.Element):
    """An editor with starters."""


def starters(root):
    """The starters: {name: {"title", "question", "code"}}, in order."""
    return {path.stem.partition("-")[2]: starter(path) for path in sorted(Path(root, STARTERS).glob("*.py"))}


def starter(path):
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    title, question = ast.get_docstring(tree).split("\n\n")
    code = "\n".join(text.split("\n")[tree.body[0].end_lineno :]).strip() + "\n"
    return {"title": title, "question": " ".join(question.split()), "code": code}


class Playground(SphinxDirective):
    def run(self):
        depends(self.env, [*Path(self.env.srcdir, STARTERS).glob("*.py"), Path(self.env.srcdir, STARTERS)])
        return [playground(starters=starters(self.env.srcdir), packs=["subnorm.tar.gz"], more=[MODEL], setup="")]


class ListingHere(SphinxDirective):
    def run(self):
        path = Path(self.env.srcdir, story_page.LISTING)
        depends(self.env, [path])
        listing = {"story": {"title": "", "question": "", "code": path.read_text("utf-8")}}
        return [playground(starters=listing, packs=["subnorm.tar.gz", MODEL], more=[], setup=AT)]


def depends(env, files):
    packed = [path for pack in packs.PACKS for path in packs.pack_files(env.srcdir, pack).values()]
    for path in [*files, Path(env.srcdir, packs.STATIC, "parts.json"), *packed]:
        env.note_dependency(str(path))


def visit(translator, node):
    root, found = translator.builder.srcdir, node["starters"]
    about = packs.python_settings(root, list(node["packs"]), node["setup"])
    about["more"] = {pack: packs.describe_part(packs.make_pack(root, pack)) for pack in node["more"]}
    first = next(iter(found.values()))
    settings = escape(json.dumps({"python": about, "starters": found}))
    head = HEAD.format(settings=settings)
    translator.body.append(head if len(found) > 1 else OPENER + head.replace("<div ", "<div hidden ", 1))
    if len(found) > 1:
        choices = "".join(CHOICE.format(name=name, title=escape(one["title"])) for name, one in found.items())
        translator.body.append(f'<div class="starters" role="group" aria-label="Starters">\n{choices}</div>\n')
        translator.body.append(QUESTION.format(question=escape(first["question"])))
    cost = editor.COST.format(packs.megabytes(about))
    slots = {"cost": cost, "last": BUTTONS, "before": UNKEPT}
    if len(found) > 1:  # the listing of a story is in the page already
        slots["preview"] = editor.preview(first["code"])
    translator.body.append(editor.editor_html("Your code", first["code"], **slots))
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    app.add_directive("playground", Playground)
    app.add_directive("listing-here", ListingHere)
    add_html_only(app, playground, visit)
    for name in ("in-page.js", "playground.js"):
        add_script(app, name, lambda doctree: any(doctree.findall(playground)))
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
