"""Give every picture an alt text.

A figure's alt text is the `text/plain` of its output, which `nbval` compares too; MyST-NB itself would use the file
name. A picture without a usable text is a warning, in every build until it has one; so is one with another's text.
"""

from docutils import nodes
from sphinx.util import logging

log = logging.getLogger(__name__)


def usable(text):
    """Whether a text is a sentence, and neither matplotlib's `<Figure size ...>` nor a file name."""
    return not text.startswith("<") and len(text.split()) >= 4


def add_alt_texts(app, doctree):
    seen = set()
    for bundle in doctree.findall(nodes.container):
        images = list(bundle.findall(nodes.image)) if bundle.get("nb_element") == "mime_bundle" else []
        if not images:
            continue
        text = " ".join(child.astext() for child in bundle if child.get("mime_type") == "text/plain")
        for image in images:
            image["alt"] = " ".join(text.split())
        if text in seen:
            log.warning("two pictures have one alt text: %s", text, location=bundle, type="alt")
            app.env.note_reread()
        seen.add(text)
    for image in doctree.findall(nodes.image):
        if not usable(image.get("alt", "")):
            log.warning(
                "picture %s needs an alt text that describes it in at least four words; it has %r",
                image["uri"],
                image.get("alt", ""),
                location=image,
                type="alt",
            )
            app.env.note_reread()


def setup(app):
    app.connect("doctree-read", add_alt_texts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
