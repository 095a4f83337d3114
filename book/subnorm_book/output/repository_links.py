"""Add links from every page to the repository, and to a new issue about the page; from a notebook's page to machines
that run it. Without an address of the repository the pages have no such links; it is only in pyproject.toml, under
[project.urls].
"""

import tomllib
from functools import partial
from pathlib import Path

from docutils import nodes

GITHUB = "https://github.com/"
# Colab opens one file and nothing beside it: on this branch the notebooks bring the package along (tools/colab.py).
COLAB = "https://colab.research.google.com/github/{repository}/blob/colab/{notebook}"
BINDER = "https://mybinder.org/v2/gh/{repository}/main?urlpath=lab/tree/{notebook}"


def address_of(srcdir):
    """The repository's address, or None."""
    project = tomllib.loads(Path(srcdir, "pyproject.toml").read_text("utf-8"))["project"]
    return project.get("urls", {}).get("Repository")


def add_links(app, config):
    if address := address_of(app.srcdir):
        config.html_theme_options.update(
            repository_url=address, repository_branch="main", use_repository_button=True, use_issues_button=True
        )
        if address.startswith(GITHUB):
            repository = address.removeprefix(GITHUB).removesuffix("/").removesuffix(".git")
            app.connect("doctree-read", partial(add_machines, repository))


def notebook_of(page):
    """The file that a reader of a page runs: of a sheet, the one that students get."""
    return page.replace("exercises/", "exercises/student/") + ".ipynb"


def add_machines(repository, app, doctree):
    """Below the title of a notebook, say where it runs without an installation."""
    if not app.env.docname.startswith("notebooks/"):
        return
    where = {"repository": repository, "notebook": notebook_of(app.env.docname)}
    line = nodes.paragraph("", "Run it on ")
    line += [nodes.reference("", "Google Colab", refuri=COLAB.format(**where)), nodes.Text(" or ")]
    line += [nodes.reference("", "Binder", refuri=BINDER.format(**where)), nodes.Text(".")]
    openings = [box for box in doctree.findall(nodes.container) if "opening" in box["classes"]]
    if openings:
        openings[0].insert(1, line)
    else:
        title = next(doctree.findall(nodes.title))
        title.parent.insert(title.parent.index(title) + 1, nodes.container("", line, classes=["opening"]))


def setup(app):
    app.connect("config-inited", add_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
