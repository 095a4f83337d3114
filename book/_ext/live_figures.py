"""Brings the script and the style of the live figures into the book, once for all pages.

They belong to the package (`subnorm/live.js`, `subnorm/live.css`), because the same cell is live in JupyterLab.
"""

from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "subnorm"
FILES = [str(PACKAGE / name) for name in ("live.js", "live.css")]


def setup(app):
    # Sphinx takes a single file too; the folder would bring the whole package
    app.connect("builder-inited", lambda app: app.config.html_static_path.extend(FILES))
    app.add_css_file("live.css")
    app.add_js_file("live.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
