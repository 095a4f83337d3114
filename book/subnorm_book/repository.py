"""Add links from every page to the repository, and to a new issue about the page.

The repository's address is only in pyproject.toml, under [project.urls]. Without it the pages have no such links.
"""

import tomllib
from pathlib import Path


def add_links(app, config):
    project = tomllib.loads(Path(app.srcdir, "pyproject.toml").read_text("utf-8"))["project"]
    if address := project.get("urls", {}).get("Repository"):
        config.html_theme_options.update(
            repository_url=address, repository_branch="main", use_repository_button=True, use_issues_button=True
        )


def setup(app):
    app.connect("config-inited", add_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
