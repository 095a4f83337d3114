"""The chapters to which a sheet links. In a zip they lie beside it, in a folder of their own."""

import re
from pathlib import Path

from subnorm_classroom.sheets.plain import relinked
from subnorm_classroom.sheets.student_sheet import as_notebook, read_notebook

FOLDER = "chapters"
IN_THE_COURSE = re.compile(r"\]\(\.\./\.\./([\w.-]+\.ipynb)")  # as a sheet in notebooks/exercises/student links to one


def beside_chapters(sheet: str) -> bytes:
    """A sheet that links to the chapters beside it."""
    return IN_THE_COURSE.sub(rf"]({FOLDER}/\1", sheet).encode()


def chapters_of(root: Path, sheet: str) -> dict[str, bytes]:
    """The chapters to which a sheet links, by their paths beside it.

    A link from one of them to another stays. One to a page that does not lie beside the sheet becomes its words.
    """
    names = sorted(set(IN_THE_COURSE.findall(sheet)))
    files = {}
    for name in names:
        book = read_notebook(root / "notebooks" / name)
        for cell in book["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = relinked(cell["source"], lambda page: page if page in names else "")
        files[f"{FOLDER}/{name}"] = as_notebook(book).encode()
    return files
