"""Give a phone a drawing of a figure of its own, with the panels below one another; and paper, unless it is tall.

`subnorm_lab.figures` stores it in the metadata of the output. A `<picture>` names both files, and the browser loads one
of them. A narrow drawing that no page shows is a warning in every build.
"""

import hashlib
import json
import posixpath
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from subnorm_book import BEFORE_SPHINX
from subnorm_book.html_nodes import OTHERS, skip, writes
from subnorm_book.output.slim import image_size

from subnorm_lab import figures

log = logging.getLogger(__name__)

NARROW = "(max-width: 40rem)"  # as in subnorm.css
TALL = 1.38  # times as high as wide; paper has room for such panels in a row


class picture(nodes.General, nodes.Element):
    """An image, and before it the one that a phone gets."""


class narrow(nodes.image):
    """What a phone gets. Sphinx copies its file as that of any image."""


def narrow_drawings(path):
    """The narrow drawings of a notebook, {alt text: SVG}."""
    outputs = [output for cell in json.loads(path.read_text("utf-8"))["cells"] for output in cell.get("outputs", [])]
    return {"".join(output["data"]["text/plain"]): svg for output in outputs if (svg := figures.narrow(output))}


def add(app, doctree):
    path = Path(app.env.doc2path(app.env.docname))
    if path.suffix != ".ipynb":
        return
    drawings = narrow_drawings(path)
    for bundle in doctree.findall(nodes.container):
        if bundle.get("nb_element") != "mime_bundle":
            continue
        kinds = {child.get("mime_type"): child for child in bundle}
        alt = kinds["text/plain"].astext() if "text/plain" in kinds else None
        if alt in drawings:
            (image,) = kinds["image/svg+xml"].findall(nodes.image)
            add_narrow(app.env, image, drawings.pop(alt))
    for alt in drawings:
        log.warning("no picture on the page is this one: %s", alt, location=app.env.docname, type="narrow")
        app.env.note_reread()


def add_narrow(env, image, svg):
    """Write the narrow drawing beside the image, and name both."""
    name = f"{hashlib.sha256(svg.encode()).hexdigest()}.svg"
    folder = Path(env.relfn2path(image["uri"], env.docname)[1]).parent
    (folder / name).write_text(svg, "utf-8")
    both = picture("", narrow("", uri=posixpath.join(posixpath.dirname(image["uri"]), name)))
    image.replace_self(both)
    both += image


def visit(translator, node):
    builder = translator.builder
    width, height = image_size(Path(builder.srcdir, node["uri"]))
    address = posixpath.join(builder.imgpath, builder.images[node["uri"]])
    tall, plot = height > TALL * width, width == figures.PHONE_COLUMN
    media = f"{'screen and' if tall else 'print,'} {NARROW}"
    names = " ".join(["tall"] * tall + ["plot"] * plot)
    name = f' class="{names}"' if names else ""
    translator.body.append(f'<source media="{media}" srcset="{address}" width="{width}" height="{height}"{name}>')
    raise nodes.SkipNode


def setup(app):
    nothing = dict.fromkeys(OTHERS, (writes(""), writes("")))
    app.add_node(picture, html=(writes("<picture>"), writes("</picture>")), **nothing)
    app.add_node(narrow, html=(visit, None), **dict.fromkeys(OTHERS, (skip, None)))
    app.connect("doctree-read", add, priority=BEFORE_SPHINX)
    return {"env_version": 2, "parallel_read_safe": True, "parallel_write_safe": True}
