"""Begin a chapter, an exercise or a placement: `python3 course.py new KIND NAME`.

    new chapter 10-my-chapter     a notebook, and its line in _toc.yml; a draft until you remove its word "Draft"
    new exercise ex01/my_answer   a file in subnorm_lab/checks, and four cells in the sheet
    new placement MyPlacement     a class in placements.py, its formula in the tests, its line on the API page

Replace every TODO. The build names the drafts; the tests of finished chapters begin when a chapter is no draft. A sheet
is released, and its tests pass, once none of its cells has a TODO.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from subnorm_lab import _files
from subnorm_lab.checks import SETS
from tools import checkout, refresh

CHAPTER = [
    ("markdown", "# {title}\n\n{draft} TODO: one sentence of why.\n\n## TODO\n\nWhat the cell below shows."),
    ("code", "from subnorm import numpy as sn\n\nsn.rms_norm([[3.0, 4.0]])"),
]
EXERCISE = """\
from subnorm_lab.checks.shared import drawn, exercise, of_shapes


def inputs(rng, shape):
    return (rng.normal(0, 1, shape),)


@exercise(
    number={number}, level=1, minutes=5, chapter="{chapter}",
    objective="TODO: what the student will be able to do",
    cases=drawn(inputs, *of_shapes((3, 4), (2, 5, 8))),
    mistakes=[
        ("todo", "2 * -> 3 *", "TODO: x is multiplied by 3; the definition says by 2."),
    ],
)
def {name}(x):
    return 2 * x
"""
PLACEMENT = '''\
class {name}(Placement):
    """TODO: what it does: ``x = x + F(norm(x))``.

    Source: TODO.
    """

    def step(self, state: Tensor, branch: Branch, k: int) -> Tensor:
        return state + branch(self.norms[k](state))


'''
FORMULA = '    "{key}": steps(lambda p, x, f, k: x + f(ln(x, p.norms[k]))),\n'


def begin_chapter(name: str) -> list[Path]:
    """A draft of a chapter or deep dive, at the end of the chapters."""
    require(r"\d\d[a-z]?-[a-z0-9-]+", name, "10-my-chapter")
    number, *words = name.split("-")
    title = " ".join(words).capitalize()
    path = unused(checkout.ROOT / "notebooks" / f"{name}.ipynb")
    cells: list[dict] = []
    for k, (kind, text) in enumerate(CHAPTER):
        source = text.format(title=title, draft=checkout.DRAFT)
        cell = {"cell_type": kind, "id": f"cell-{k}", "metadata": {}, "source": source.splitlines(keepends=True)}
        cells.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(book, indent=1) + "\n", "utf-8")
    refresh.refresh(path)
    toc = checkout.ROOT / "_toc.yml"
    line = f"      - file: notebooks/{name}\n        title: {number} {title}\n"
    insert(toc, "  - caption: Exercises\n", line)
    return [path, toc]


def begin_exercise(name: str) -> list[Path]:
    """The last exercise of a sheet, with its cells, in which you write the task."""
    require(r"ex\d\d/[a-z][a-z0-9_]*", name, "ex01/my_answer")
    sheet, _, name = name.partition("/")
    if sheet not in SETS:
        sys.exit(f"There is no sheet {sheet}; the sheets are {', '.join(SETS)}.")
    path = unused(checkout.ROOT / "subnorm_lab" / "checks" / sheet / f"{name}.py")
    last = SETS[sheet][-1]
    path.write_text(EXERCISE.format(number=last.number + 1, chapter=last.chapter, name=name), "utf-8")
    (notebook,) = (checkout.ROOT / "notebooks" / "exercises").glob(f"{sheet}-*.ipynb")
    subprocess.run([sys.executable, "-m", "subnorm_classroom", "draft", sheet], cwd=checkout.ROOT, check=True)
    print(f"Then: python3 course.py refresh {notebook.relative_to(checkout.ROOT)}")
    print(f"      .venv/bin/python -m subnorm_classroom release {sheet}")
    return [path, notebook]


def begin_placement(name: str) -> list[Path]:
    """A placement that is Pre-LN until you change its class and its formula."""
    require(r"[A-Z][A-Za-z0-9]*", name, "MyPlacement")
    key = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    code = checkout.ROOT / "subnorm" / "torch" / "placements.py"
    if re.search(rf"^class {name}\b", code.read_text("utf-8"), re.MULTILINE):
        sys.exit(f"{code.name} has a class {name}: choose another name.")
    tests = checkout.ROOT / "tests" / "package" / "test_placements.py"
    page = checkout.ROOT / "book" / "api" / "torch.md"
    insert(code, "class DynamicTanh(", PLACEMENT.format(name=name))
    insert(code, '    "scale_norm": partial(', f'    "{key}": {name},\n')
    insert(tests, '    "scale_norm": ', FORMULA.format(key=key))
    insert(page, "```\n\n## In the place of a norm\n", f".. autoclass:: {name}\n")
    return [code, tests, page]


def require(form: str, name: str, example: str) -> None:
    """Stop unless the name has the form."""
    if not re.fullmatch(form, name):
        sys.exit(f"{name!r} is no name for this; one is {example}.")


def unused(path: Path) -> Path:
    """The path; stop if it exists."""
    if path.exists():
        sys.exit(f"{path.relative_to(checkout.ROOT)} exists: choose another name.")
    return path


def insert(path: Path, before: str, text: str) -> None:
    """Insert a text before the one place in a file that begins with `before`."""
    old = path.read_text("utf-8")
    if old.count(before) != 1:
        sys.exit(f"{path.name} has {old.count(before)} places {before!r}; tools/new.py needs one")
    _files.write(path, old.replace(before, text + before))


BEGIN = {"chapter": begin_chapter, "exercise": begin_exercise, "placement": begin_placement}


def main() -> None:
    """Begin what the command line names."""
    parser = argparse.ArgumentParser(prog="course.py new", description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=BEGIN)
    parser.add_argument("name")
    args = parser.parse_args()
    for path in BEGIN[args.kind](args.name):
        print(path.relative_to(checkout.ROOT))


if __name__ == "__main__":
    main()
