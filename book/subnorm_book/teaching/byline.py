"""Who wrote the book, how long it takes, and where its repository is: the directive `{byline}`.

The authors are those of CITATION.cff. The minutes are those that the chapters and deep dives say themselves. The
repository's address is only in pyproject.toml (repository_links.py); without one the line has no link.
"""

from pathlib import Path

import yaml
from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from subnorm_book.output import repository_links
from subnorm_book.teaching import chapter_links

CITATION = "CITATION.cff"


class byline(nodes.General, nodes.Element):
    """The place of the line, which needs the minutes of all pages."""


class Byline(SphinxDirective):
    def run(self):
        for file in (CITATION, "pyproject.toml"):
            self.env.note_dependency(str(Path(self.env.srcdir, file)))
        return [byline()]


def fill(app, doctree, docname):
    for place in list(doctree.findall(byline)):
        authors = yaml.safe_load(Path(app.srcdir, CITATION).read_text("utf-8"))["authors"]
        names = ", ".join(author["name"].replace("The ", "the ", 1) for author in authors)  # within a sentence
        line = f"By {names}. {takes(app.env)}"
        paragraph = nodes.paragraph("", line, classes=["byline"])
        if address := repository_links.address_of(app.srcdir):
            paragraph += [nodes.Text(" "), nodes.reference("", "The repository", refuri=address), nodes.Text(".")]
        place.replace_self(paragraph)


def takes(env):
    """How long the chapters take, and the whole: with second readings, primers and deep dives."""
    chapters = every = 0
    for doc, (_, letter) in chapter_links.numbered_pages(env).items():
        opening = env.openings[doc]
        chapters += 0 if letter else opening["minutes"]
        every += opening["minutes"] + opening["second"]
    return f"The chapters take {hours(chapters)} to read; with second readings and deep dives, {hours(every)}."


def hours(minutes):
    """To a quarter of an hour, because nobody reads at just the speed that reading_time.py counts with."""
    quarters = round(minutes / 15)
    return f"{quarters // 4 or ''}{['', '¼', '½', '¾'][quarters % 4]} hour{'s' * (quarters > 4)}"


def pages_to_write(app, env):
    """The pages with the line, if a page takes another time."""
    before, env.taken = getattr(env, "taken", None), env.openings.copy()
    return [env.config.root_doc] if before != env.taken else []


def setup(app):
    app.add_directive("byline", Byline)
    app.add_node(byline)
    app.connect("env-updated", pages_to_write)
    app.connect("doctree-resolved", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
