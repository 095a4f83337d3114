"""Leave the answers of a class as Python files, for a program that looks for copies; the page on grading says which."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from subnorm_classroom.files import write, writes_to
from subnorm_classroom.grading.cells import BrokenNotebook, Cell, cells_of, defines
from subnorm_classroom.grading.sandbox import COURSE
from subnorm_classroom.grading.submissions import Submission
from subnorm_lab.checks.exercise import Exercise


def leave(
    out: Path, set_name: str, exercises: Sequence[Exercise], submissions: Sequence[Submission], names: dict[str, str]
) -> None:
    """Write `out`/answers/EXERCISE/STUDENT/answer.py, the cells that define an answer, and `out`/answers/given.

    Args:
        out: the folder of the grades.
        set_name: "ex02".
        exercises: the exercises of the set.
        submissions: the submissions to write. One without a notebook that can be read leaves no file.
        names: {student: a name for a file}, of the whole class. The files of others are removed.

    compare50 and JPlag take each folder in EXERCISE for a student.
    """
    wanted = {out / "answers" / "given" / f"{set_name}.py": "\n\n".join(known_answers(set_name, exercises))}
    for submission in submissions:
        _, data, problem = submission.notebook(set_name)
        cells: list[Cell] = []
        if not problem:
            with contextlib.suppress(BrokenNotebook):
                cells = cells_of(data, set_name, [ex.name for ex in exercises])
        for ex in exercises:
            if found := [cell.source for cell in cells if defines(ex.name, cell)]:
                wanted[out / "answers" / ex.name / names[submission.student] / "answer.py"] = "\n\n".join(found)
    stay = set(names.values()) - {names[submission.student] for submission in submissions}
    for ex in exercises:
        for path in sorted((out / "answers" / ex.name).glob("*/answer.py")):
            if path not in wanted and path.parent.name not in stay:
                with writes_to(path):
                    path.unlink()
                    with contextlib.suppress(OSError):  # of what somebody else put there
                        path.parent.rmdir()
    for path, text in wanted.items():
        write(path, f"{text}\n".encode(errors="replace"))  # JSON can hold half a character


def known_answers(set_name: str, exercises: Sequence[Exercise]) -> list[str]:
    """What every student has or can look up: the cells of the sheet and its solutions, and the named mistakes."""
    texts = [mistake.answer for ex in exercises for mistake in ex.mistakes]
    found = [text for one in texts if (text := getattr(one, "text", ""))]
    for folder in ("exercises/student", "exercises"):
        for path in sorted((COURSE / "notebooks" / folder).glob(f"{set_name}-*.ipynb")):
            found += [cell.source for cell in cells_of(path.read_bytes(), set_name, [])]
    return found
