"""The command ``draft``: cells for new exercises in the source notebook of a set."""

import argparse

from subnorm_classroom.arguments import set_name
from subnorm_classroom.sheets.student_sheet import (
    BEGIN,
    END,
    Cell,
    SheetError,
    as_notebook,
    check_line,
    for_grading,
    level_line,
    read_notebook,
    relative_path,
    source_of,
)
from subnorm_lab import _files, checks
from subnorm_lab.checks.edited import text_of
from subnorm_lab.checks.exercise import Exercise

HELP = "put cells for new exercises into the source notebook of a set"
FOLDED = "<details><summary>{}</summary>\n\nTODO\n\n</details>"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", type=set_name, help="ex01, ex02, …")


def run_command(options: argparse.Namespace) -> int:
    return draft(options.set)


def draft(name: str) -> int:
    """Put four cells into the source notebook of a set for each exercise that has none; return 0.

    Raises:
        SheetError: the notebook cannot be read_notebook, or the cells of another exercise have that number.
    """
    path = source_of(name)
    source = read_notebook(path)
    cells = source["cells"]
    for k, exercise in enumerate(checks.SETS[name], 1):
        of_set = {cell["source"].strip(): cell.get("id", "") for cell in cells}
        known = of_set.get(check_line(exercise))
        if known is None and f"{name}-{k}-task" not in of_set.values():
            last = (f"{name}-{k - 1}-", "setup")
            before = [at for at, cell in enumerate(cells) if cell.get("id", "").startswith(last)]
            cells[before[-1] + 1 : before[-1] + 1] = drafted(name, k, exercise)
            print(f"{name}: four cells for {exercise.name} in {relative_path(path)}; write what is marked TODO")
        elif known != f"{name}-{k}-check":
            raise SheetError(f"{exercise.name} is number {k}, but its cells are not; number the cells anew first")
    _files.write(path, as_notebook(source))
    return 0


def drafted(name: str, k: int, exercise: Exercise) -> list[Cell]:
    """The four cells of an exercise, with the text of its right answer and a TODO for each text that is missing."""
    first, *lines = text_of(exercise.reference).rstrip().split("\n")
    answer = [first, '    """TODO: what it returns."""', f"    {BEGIN}", *lines, f"    {END}"]
    texts = {
        "task": f"## {k} · TODO\n\n{level_line(exercise)}\n\nTODO\n\n" + FOLDED.format("Hint"),
        "answer": "\n".join(answer),
        "check": check_line(exercise),
        "solution": FOLDED.format("Solution"),
    }
    tagged = {"task": [], "answer": ["answer", "hide-input"], "check": ["check"], "solution": ["solution-only"]}
    cells = []
    for part, text in texts.items():
        cell: Cell = {"id": f"{name}-{k}-{part}", "cell_type": "markdown", "source": text, "metadata": {}}
        if tagged[part]:
            cell["metadata"]["tags"] = tagged[part]
        if part in ("answer", "check"):
            cell.update(cell_type="code", execution_count=None, outputs=[])
            cell["metadata"]["nbgrader"] = for_grading(part, cell["id"], exercise)
        cells.append(cell)
    return cells
