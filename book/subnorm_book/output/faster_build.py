"""Makes the build fast and changes no page.

- All cores read and write pages. `jupyter-book` has no option for it; Sphinx asks the application.
- A page is a tree of very many objects that live as long as the build. Without garbage collection a build
  from nothing takes two seconds less, and 600 MB instead of 450.
- pybtex looks through all installed packages for each citation that it formats, 2 s in all. The plugin that formats
  them is registered, where it looks first.
"""

import gc
import os

from pybtex.plugin import find_plugin, register_plugin

#: They do not say whether they bear it. The one numbers sections when all pages are read, the other makes LaTeX only.
SILENT = ("sphinx_multitoc_numbering", "sphinx_jupyterbook_latex")


def declare(app):
    for name in SILENT if app.builder.format == "html" else ():
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True


def setup(app):
    app.parallel = (os.cpu_count() or 1) + 1  # one resolves links, the others write
    app.connect("builder-inited", declare)
    gc.disable()
    register_plugin("pybtex.backends", "plaintext", find_plugin("pybtex.backends", "plaintext"), force=True)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
