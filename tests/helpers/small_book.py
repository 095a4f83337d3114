"""A Sphinx book of a few pages in a temporary folder, for testing the book's own extensions."""

import io
import json

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace
from subnorm_book import PARTS

from tools import checkout

#: These need the files of the whole repository.
WHOLE = {"in_page.packs", "in_page.playground", "in_page.try_it", "output.api_pages", "output.repository_links"}
EXTENSIONS = ["myst_nb", "sphinxcontrib.bibtex", *(f"subnorm_book.{part}" for part in PARTS if part not in WHOLE)]


def copy_settings(folder):
    """The course's own settings, for a book in `folder` so small that some rules of slim.py find nothing to do."""
    text = (checkout.ROOT / "_config.yml").read_text("utf-8")
    few = text.replace("  config:\n", "  config:\n    suppress_warnings: [slim]\n")
    (folder / "_config.yml").write_text(few, "utf-8")
    (folder / "pyproject.toml").write_bytes((checkout.ROOT / "pyproject.toml").read_bytes())


def build(folder, builder="html"):
    """All warnings of a build; a second call is an incremental build."""
    warnings = io.StringIO()
    settings = {
        "extensions": EXTENSIONS,
        "bibtex_bibfiles": [path.name for path in folder.glob("*.bib")],
        "root_doc": "index",
        "html_theme": "basic",
        "html_math_renderer": "prerender",
        "katex_macros": {"LN": r"\operatorname{LN}"},
        "myst_enable_extensions": ["amsmath", "attrs_block", "colon_fence", "deflist", "dollarmath"],
        "nb_execution_mode": "off",
        "exclude_patterns": ["_build", "**/student"],
    }
    out = folder / "_build" / builder
    with docutils_namespace():
        Sphinx(folder, None, out, out / "tree", builder, settings, status=None, warning=warnings).build()
    return warnings.getvalue()


def page(folder, text):
    (folder / "index.md").write_text(f"# Title\n\n{text}\n", "utf-8")


def html(folder, name="index"):
    return (folder / "_build" / "html" / f"{name}.html").read_text("utf-8")


def notebook(folder, *cells, name="03-norms"):
    """A notebook of these cells, with the title Norms."""
    heading = {"cell_type": "markdown", "id": "b", "metadata": {}, "source": ["# Norms"]}
    book = {
        "cells": [heading, *({**cell, "id": f"{cell['id']}{k}"} for k, cell in enumerate(cells))],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "p"}, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path = folder / "notebooks" / f"{name}.ipynb"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(book), "utf-8")


def module(folder, text):
    """Write the module of the notebook's chapter; the cell that imports it."""
    path = folder / "subnorm_lab" / "chapters" / "norms.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'"""Figures and proofs."""\n\nfrom subnorm_lab import figures, warmup\n\n\n{text}\n', "utf-8")
    return code(source="from subnorm_lab.chapters import norms as chapter")


def markdown(text):
    return {"cell_type": "markdown", "id": "m", "metadata": {}, "source": [text]}


def code(*outputs, source="f()", tags=()):
    metadata = {"tags": list(tags)} if tags else {}
    return {
        "cell_type": "code",
        "id": "a",
        "execution_count": 1,
        "metadata": metadata,
        "outputs": list(outputs),
        "source": [source],
    }
