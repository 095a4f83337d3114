"""Turn the source notebook of a set into a student's sheet: the same bytes on every run.

The lines between the two markers become ``raise NotImplementedError``; cells tagged solution-only and all outputs are
removed. A source that breaks rules is rejected, with a list of its faults.
"""

import ast
import copy
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import subnorm
from subnorm_classroom.errors import Refusal
from subnorm_classroom.sheets import packing
from subnorm_classroom.sheets.plain import plain, title_of
from subnorm_lab import checks
from subnorm_lab.checks.exercise import Exercise

ROOT = Path(subnorm.__file__).resolve().parents[1]
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
STUB = "raise NotImplementedError  # your code here"
TRIVIAL = 20  # characters: a shorter line reveals nothing, and occurs in many cells

Notebook = dict[str, Any]
Cell = dict[str, Any]


class SheetError(Refusal, ValueError):
    """The faults of a source notebook, one per line."""


def relative_path(path: Path) -> str:
    """A path relative to the root of the checkout, if it is inside."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


def source_of(name: str) -> Path:
    """The one source notebook of a set."""
    folder = ROOT / "notebooks" / "exercises"
    found = sorted(folder.glob(f"{name}-*.ipynb"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise SheetError(f"a set must have one notebook {folder}/{name}-….ipynb; found {names}")
    return found[0]


def read_notebook(path: Path) -> Notebook:
    """Read a notebook, with each cell's source as one string."""
    try:
        book = json.loads(path.read_text("utf-8"))
        for cell in book["cells"]:
            cell["source"] = "".join(cell["source"])
    except (ValueError, KeyError, TypeError) as error:
        raise SheetError(f"{path.name} is not a notebook: {type(error).__name__}: {error}") from error
    return dict(book)


def as_notebook(book: Notebook) -> str:
    """The text of a notebook, in Jupyter's own format."""
    book = copy.deepcopy(book)
    for cell in book["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)
    return json.dumps(book, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def tags(cell: Cell) -> list[str]:
    return list(cell["metadata"].get("tags", []))


def student(source: Notebook, name: str, own: Sequence[Exercise] = ()) -> Notebook:
    """The sheet of a student.

    Args:
        source: the source notebook.
        name: the set.
        own: exercises for which the sheet asks for a variant of the student's own.

    Raises:
        SheetError: the source breaks a rule.
    """
    exercises = checks.SETS[name]
    if wrong := list(faults(source, name, exercises)):
        raise SheetError("\n  ".join(["the source notebook cannot be released:", *wrong]))
    source = copy.deepcopy(source)
    for exercise in own:
        ask_for_variant(source, name, exercise)
    wrong, cells = [], []
    for cell in source["cells"]:
        if "solution-only" in tags(cell):
            continue
        made: Cell = {
            "cell_type": cell["cell_type"],
            "id": cell["id"],
            "metadata": trimmed(cell),
            "source": cell["source"],
        }
        try:
            if cell["cell_type"] == "markdown":
                made["source"] = plain(cell["source"])
            else:
                made.update(execution_count=None, outputs=[])
                made["source"] = emptied(cell["source"])[0] if "answer" in tags(cell) else cell["source"]
                ast.parse(without_magics(made["source"]))
        except (ValueError, SyntaxError) as error:
            wrong.append(f"{cell['id']}: {error}")
        cells.append(made)
    cells[0]["source"] += f"\n\n{packing.needs(exercises)}"
    sheet: Notebook = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    wrong += [] if wrong else left(source, sheet)
    if wrong:
        raise SheetError("\n  ".join(["the source notebook cannot be released:", *wrong]))
    return sheet


def ask_for_variant(source: Notebook, name: str, exercise: Exercise) -> None:
    """Let the cells of an exercise ask for its chosen variant.

    Raises:
        SheetError: a piece to change does not occur exactly once in the task and the answer.
    """
    cells = {cell["id"]: cell for cell in source["cells"]}
    task, answer, check = (cells[f"{name}-{exercise.number}-{part}"] for part in ("task", "answer", "check"))
    if not exercise.chosen:
        return
    for piece in exercise.chosen.changes:
        old, _, new = (text.strip() for text in piece.partition("->"))
        if not old or task["source"].count(old) + answer["source"].count(old) != 1:
            where = f"{task['id']} and {answer['id']}"
            raise SheetError(f"{exercise.name}, {exercise.chosen.label}: {old!r} must occur once in {where}")
        for cell in (task, answer):
            cell["source"] = cell["source"].replace(old, new)
    check["source"] = check_line(exercise)


def trimmed(cell: Cell) -> dict[str, Any]:
    """The metadata of a cell without the entries for the book."""
    kept = [tag for tag in tags(cell) if tag in ("setup", "answer", "check")]
    nbgrader = cell["metadata"].get("nbgrader")
    return ({"tags": kept} if kept else {}) | ({"nbgrader": nbgrader} if nbgrader else {})


def for_nbgrader(source: Notebook, name: str) -> Notebook:
    """The source for nbgrader, which clears the solutions itself, and hands out no other notebook."""
    book = copy.deepcopy(source)
    book["cells"] = [cell for cell in book["cells"] if "solution-only" not in tags(cell)]
    for cell in book["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = plain(cell["source"], chapters=False)
        else:
            cell.update(execution_count=None, outputs=[])
    book["cells"][0]["source"] += f"\n\n{packing.needs(checks.SETS[name])}"
    return book


def emptied(code: str) -> tuple[str, list[str]]:
    """An answer cell with a stub in place of its solution, and the lines of the solution."""
    lines = code.split("\n")
    marks = [(k, line.strip()) for k, line in enumerate(lines) if re.search("(BEGIN|END) SOLUTION", line, re.I)]
    if [mark for _, mark in marks] != [BEGIN, END]:
        found = ", ".join(mark for _, mark in marks) or "none"
        raise SheetError(f"an answer cell must have one line {BEGIN} and after it one line {END}; found {found}")
    (first, _), (last, _) = marks
    if last == first + 1:
        raise SheetError("there is nothing between the markers: put the solution there")
    indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
    if not lines[last].startswith(indent + END):
        raise SheetError("the two markers have different indents")
    return "\n".join([*lines[:first], indent + STUB, *lines[last + 1 :]]), lines[first + 1 : last]


def without_magics(code: str) -> str:
    return re.sub(r"^(\s*)[%!].*$", r"\1pass", code, flags=re.MULTILINE)


def faults(source: Notebook, name: str, exercises: Sequence[Exercise]) -> Iterator[str]:
    """Each rule that the source breaks."""
    ids = [cell.get("id", "") for cell in source["cells"]]
    for found, count in Counter(ids).items():
        if count > 1 or not found:
            yield f"each cell must have its own id; {found!r} occurs {count} times"
    cells = {cell.get("id", ""): cell for cell in source["cells"]}
    setup = cells.get("setup")
    if not setup or "setup" not in tags(setup) or "from subnorm_lab import checks" not in setup["source"]:
        yield "there must be one cell with id setup, tagged setup, that contains: from subnorm_lab import checks"
    expected = [f"{name}-{k}-{part}" for k in range(1, len(exercises) + 1) for part in PARTS]
    for wanted in expected:
        if wanted not in cells:
            yield f"{wanted}: there is no such cell, but exercise {wanted.split('-')[1]} of the set needs it"
    if [found for found in ids if found in expected] != expected and set(expected) <= set(ids):
        yield f"the cells of the exercises must be in this order: {', '.join(expected)}"
    for cell in source["cells"]:
        if {"answer", "check"} & set(tags(cell)) and cell.get("id") not in expected:
            yield f"{cell.get('id')}: it is tagged as an answer or a check, but the set has no such exercise"
        if "TODO" in cell["source"]:
            yield f"{cell.get('id')}: something is still TODO"
        if "answer" not in tags(cell) and re.search("(BEGIN|END) SOLUTION", cell["source"], re.I):
            yield f"{cell.get('id')}: a solution must be in an answer cell"
    for k, exercise in enumerate(exercises, 1):
        for part, rule in PARTS.items():
            if (wanted := f"{name}-{k}-{part}") in cells:
                yield from (f"{wanted}: {fault}" for fault in rule(cells[wanted], wanted, k, exercise))
        for one in exercise.variants if {f"{name}-{k}-{part}" for part in PARTS} <= set(ids) else ():
            try:
                ask_for_variant(copy.deepcopy(source), name, exercise.variant(one.label))
            except SheetError as error:
                yield str(error)


def level_line(exercise: Exercise) -> str:
    """What a task says of its exercise."""
    chapter = f"[{title_of(ROOT / 'notebooks' / f'{exercise.chapter}.ipynb')}](../{exercise.chapter}.ipynb)"
    return f"Level {exercise.level} · {exercise.minutes} minutes · goes with {chapter}: {exercise.objective}."


def check_line(exercise: Exercise) -> str:
    own = f', variant="{exercise.chosen.label}"' if exercise.chosen else ""
    return f"checks.{exercise.name}({exercise.name}{own})"


def for_grading(part: str, name: str, exercise: Exercise) -> dict[str, Any]:
    """The metadata for nbgrader of an answer or a check."""
    graded = part == "check"
    points = {"points": exercise.level} if graded else {}
    both = {"schema_version": 3, "task": False, "grade_id": name}
    return {**both, "solution": not graded, "grade": graded, "locked": graded, **points}


def task_faults(cell: Cell, name: str, k: int, exercise: Exercise) -> Iterator[str]:
    if not cell["source"].startswith(f"## {k} · "):
        yield f"it must begin with its heading: ## {k} · …"
    if (line := level_line(exercise)) not in cell["source"].split("\n"):
        yield f"this line is missing: {line}"
    if "<details><summary>Hint</summary>\n" not in cell["source"]:
        yield "the hint is missing: <details><summary>Hint</summary>, its lines, </details>"


def answer_faults(cell: Cell, name: str, k: int, exercise: Exercise) -> Iterator[str]:
    yield from wrong_metadata(cell, "answer", name, exercise)
    try:
        emptied(cell["source"])
        body = ast.parse(without_magics(cell["source"])).body
    except (ValueError, SyntaxError) as error:
        yield str(error)
        return
    made = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    if exercise.name not in made:
        yield f"it must define {exercise.name}; it defines {', '.join(made) or 'nothing'}"


def check_faults(cell: Cell, name: str, k: int, exercise: Exercise) -> Iterator[str]:
    yield from wrong_metadata(cell, "check", name, exercise)
    if cell["source"].strip() != (line := check_line(exercise)):
        yield f"it must contain only {line}; it contains {cell['source'].strip()!r}"


def solution_faults(cell: Cell, name: str, k: int, exercise: Exercise) -> Iterator[str]:
    if cell["cell_type"] != "markdown" or "solution-only" not in tags(cell):
        yield "it must be a Markdown cell, tagged solution-only"
    if "<details><summary>Solution</summary>\n" not in cell["source"]:
        yield "the solution must be folded: <details><summary>Solution</summary>, its lines, </details>"


PARTS = {"task": task_faults, "answer": answer_faults, "check": check_faults, "solution": solution_faults}


def wrong_metadata(cell: Cell, tag: str, name: str, exercise: Exercise) -> Iterator[str]:
    if cell["cell_type"] != "code" or tag not in tags(cell):
        yield f"it must be a code cell, tagged {tag}"
    wanted = for_grading(tag, name, exercise)
    if cell["metadata"].get("nbgrader") != wanted:
        yield f"its metadata for nbgrader must be {json.dumps(wanted, sort_keys=True)}"


def left(source: Notebook, sheet: Notebook) -> list[str]:
    """The cells of the sheet that still contain a line of a solution."""
    solved = [emptied(cell["source"])[1] for cell in source["cells"] if "answer" in tags(cell)]
    telling = {line.strip() for lines in solved for line in lines if not trivial(line.strip())}
    return [
        f"{cell['id']}: the sheet contains a line of a solution: {line.strip()}"
        for cell in sheet["cells"]
        for line in cell["source"].split("\n")
        if line.strip() in telling
    ]


def trivial(line: str) -> bool:
    """Whether a line may occur in both a solution and the sheet."""
    return len(line) < TRIVIAL or line.startswith(("#", "import ", "from "))
