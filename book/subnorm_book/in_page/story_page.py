"""The page of `book/story.py`: the listing with a link to each line, and a zip of it and the files that it reads.

The directive `{story}` shows the listing. {line}`def rms_norm` is the number of the one line of the listing that
contains these words, with a link to it; if none does, or several, every build warns. The zip is beside the page and has
its name.
"""

import re
import zipfile
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

LISTING = Path("book", "story.py")
DATA = Path("subnorm_lab", "stories", "data")
FILES = [LISTING, DATA / "stories260K.bin", DATA / "tok512.bin", DATA / "LICENSE-tinyllamas"]

log = logging.getLogger(__name__)


class listing(nodes.literal_block):
    """The listing; in HTML each line's number is a target."""


class Story(SphinxDirective):
    def run(self):
        for file in FILES:
            self.env.note_dependency(str(Path(self.env.srcdir, file)))
        code = Path(self.env.srcdir, LISTING).read_text("utf-8")
        return [listing(code, code, language="python", linenos=True, classes=["story"])]


class Line(SphinxRole):
    def run(self):
        path = Path(self.env.srcdir, LISTING)
        self.env.note_dependency(str(path))
        found = [k for k, line in enumerate(path.read_text("utf-8").split("\n"), 1) if self.text in line]
        if len(found) != 1:
            fault = f"{len(found)} lines of {LISTING.name} contain these words; there must be one"
            log.warning("line %r: %s", self.text, fault, location=self.get_location(), type="story")
            self.env.note_reread()
            return [nodes.problematic(self.rawtext, self.rawtext)], []
        return [nodes.reference(self.rawtext, f"line {found[0]}", refuri=f"#line-{found[0]}", internal=True)], []


def visit(translator, node):
    try:
        translator.visit_literal_block(node)
    except nodes.SkipNode:
        numbered = r'<span class="linenos" id="line-\2">\1\2</span>'
        translator.body[-1] = re.sub(r'<span class="linenos">( *)(\d+)</span>', numbered, translator.body[-1])
        raise


def pack(app, pagename, templatename, context, doctree):
    """The zip is the same in every build: its files have no dates."""
    if not (doctree and any(doctree.findall(listing))):
        return
    with zipfile.ZipFile(Path(app.outdir, f"{pagename}.zip"), "w") as archive:
        for file in FILES:
            name = zipfile.ZipInfo(f"story/{file.name}")
            archive.writestr(name, Path(app.srcdir, file).read_bytes(), zipfile.ZIP_DEFLATED)


def setup(app):
    app.add_directive("story", Story)
    app.add_role("line", Line())
    app.add_node(listing, html=(visit, None))
    app.connect("html-page-context", pack)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
