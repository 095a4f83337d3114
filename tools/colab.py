"""Copies of the notebooks for Google Colab: `python3 -m tools.colab FOLDER`. Standard library only.

Colab opens a notebook from a branch of a repository on GitHub, and nothing beside it. So each copy begins with a cell
that installs the package, of the commit that the copy is made from, and links to the pages of the book on GitHub. Colab
gives headings no names: a link to a section names its cell. `.ci/colab` publishes the copies as the branch `colab`, to
which the pages of the book link (book/subnorm_book/output/repository_links.py).
"""

import json
import re
import subprocess
import sys
import tomllib
from functools import cache, partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Of what the notebooks import, Colab lacks the package and what draws the still picture of a live figure. To install
# `subnorm[figures]` would replace IPython 7, on which Colab's own kernel rests.
DRAWING = ("mini-racer", "resvg-py")
BOOK = re.compile(r"\]\((?:\.\./)+(book/[^()\s]+)\)")
SECTION = re.compile(r"\]\(((?!https?:)[^()\s#]*)#([^()\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CELL = """\
# Google Colab has all that this notebook needs, except the course's own package and two that draw its live figures.
%pip install --quiet --no-deps "subnorm @ git+{address}@{commit}" {drawing}"""


def notebooks_to_copy(root: Path) -> list[Path]:
    """The chapters, and the sheets as students get them."""
    return sorted([*root.glob("notebooks/*.ipynb"), *root.glob("notebooks/exercises/student/*.ipynb")])


def version(name: str) -> str:
    """The pinned version of a library."""
    pins = dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE))
    return str({pin.replace("_", "-"): number for pin, number in pins.items()}[name])


@cache
def sections(path: Path) -> dict[str, str]:
    """The id of the cell with each heading of a notebook, by the name that JupyterLab gives the heading."""
    found = {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            for title in HEADING.findall("".join(cell["source"])):
                found[re.sub(r"<!--.*?-->|[`*]", "", title).strip().replace(" ", "-")] = cell["id"]
    return found


def to_cell(path: Path, link: re.Match[str]) -> str:
    """A link to a section, as Colab follows it; unchanged if there is no such section."""
    page = path.parent / link[1] if link[1] else path
    cell = sections(page.resolve()).get(link[2]) if page.suffix == ".ipynb" else None
    return f"]({link[1]}#scrollTo={cell})" if cell else link[0]


def copy(path: Path, address: str, commit: str) -> str:
    """A notebook that begins with the cell of the installation, its proofs folded: in Colab, by a title."""
    notebook = json.loads(path.read_text("utf-8"))
    for cell in notebook["cells"]:
        cell["metadata"]["id"] = cell["id"]  # by which Colab finds a cell
        if cell["cell_type"] == "markdown":
            text = SECTION.sub(partial(to_cell, path), "".join(cell["source"]))
            text = BOOK.sub(rf"]({address}/blob/{commit}/\1)", text)
            cell["source"] = text.splitlines(keepends=True)
        if cell["metadata"].get("jupyter", {}).get("source_hidden"):
            cell["metadata"]["cellView"] = "form"
            cell["source"] = ["# @title Proof\n", *cell["source"]]
    drawing = " ".join(f"{name}=={version(name)}" for name in DRAWING)
    source = CELL.format(address=address, commit=commit, drawing=drawing).splitlines(keepends=True)
    first: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "id": "colab",
        "metadata": {},
        "outputs": [],
        "source": source,
    }
    notebook["cells"].insert(0, first)
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def main(root: Path, folder: Path) -> bool:
    """Write the copies to `folder`, with their paths in the repository; False if the repository has no address."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    address = project.get("urls", {}).get("Repository")
    if not address:
        return False
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, check=True, capture_output=True, text=True).stdout
    for path in notebooks_to_copy(root):
        new = folder / path.relative_to(root)
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(copy(path, address, commit.strip()), "utf-8", newline="\n")
    return True


if __name__ == "__main__":
    if not main(ROOT, Path(sys.argv[1])):
        print("No copies for Colab: pyproject.toml does not give the address of the repository.")
