"""What makes the build fast and changes no page.

- All cores read and write pages. `jupyter-book` has no option for it; Sphinx asks the application.
- A page is a tree of very many objects that live as long as the build. Looking for rubbish among them after every
  700 new ones, as Python does, takes longer than what it finds is worth.
- pybtex looks through all that is installed for each citation that it formats. Here it remembers what it found.
"""

import functools
import gc
import os

import pybtex.plugin

#: They do not say whether they bear it. The one numbers sections when all pages are read, the other makes LaTeX only.
SILENT = ("sphinx_multitoc_numbering", "sphinx_jupyterbook_latex")


def declare(app):
    for name in SILENT if app.builder.format == "html" else ():
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True


def setup(app):
    app.parallel = (os.cpu_count() or 1) + 1  # one resolves links, the others write
    app.connect("builder-inited", declare)
    gc.set_threshold(100_000, 20, 20)
    pybtex.plugin._load_entry_point = functools.cache(pybtex.plugin._load_entry_point)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
