"""Write the list of the hand-ins that share unusual code, as a page and as a table."""

import sys
from pathlib import Path

from subnorm_classroom.grading.cells import BrokenNotebook, cells_of
from subnorm_classroom.grading.submissions import NoSubmissions, read_all
from subnorm_classroom.reports.results import Refused, as_cell, as_lines, write
from subnorm_classroom.reports.similar_page import page
from subnorm_classroom.reports.similarity import LONGEST, HandIn, figures, pairs, published, winnowed
from subnorm_lab.checks import SETS


def similar(set_name: str, source: Path, out: Path) -> int:
    """Write `out`/similar.html and `out`/similar.csv; return 0 when done, 1 if refused (see standard error).

    Args:
        set_name: "ex02".
        source: folder or zip from a learning platform.
        out: folder for the two files, such as that of the grades.
    """
    try:
        if source.is_dir() and out.resolve().is_relative_to(source.resolve()):
            raise Refused(f"the list must not be inside the submissions; choose a folder other than {out}")
        hand_ins, left_out = read(set_name, source, published())
        found = pairs(hand_ins)
        rows = [[as_cell(p.first.student), as_cell(p.second.student), *figures(p)] for p in found]
        write(out / "similar.csv", as_lines([["first", "second", "score", "shared", "first_own", "second_own"], *rows]))
        write(out / "similar.html", page(set_name, hand_ins, found, left_out))
    except (Refused, NoSubmissions) as error:
        print(f"similar: {error}", file=sys.stderr)
        return 1
    print(f"{len(hand_ins)} hand-ins of {set_name} compared; {len(found)} pairs to read: {out / 'similar.html'}")
    if left_out:
        print(f"  {len(left_out)} not compared: {', '.join(left_out)[:500]}")
    return 0


def read(set_name: str, source: Path, known: frozenset[int]) -> tuple[list[HandIn], dict[str, str]]:
    """The hand-ins of a class, and the problem of each student whose notebook cannot be read.

    Args:
        set_name: "ex02".
        source: folder or zip from a learning platform.
        known: fingerprints that are no evidence.
    """
    hand_ins, left_out = [], {}
    for submission in read_all(source):
        try:
            _, data, problem = submission.notebook(set_name)
            if problem:
                raise BrokenNotebook(problem)
            cells = cells_of(data, set_name, [ex.name for ex in SETS[set_name]])
            if sum(len(cell.source) for cell in cells) > LONGEST:
                raise BrokenNotebook("too_much_code")
        except BrokenNotebook as error:
            left_out[submission.student] = str(error)
        else:
            prints = {value for cell in cells for _, value in winnowed(cell.source)}
            hand_ins.append(HandIn(submission.student, cells, frozenset(prints - known)))
    return hand_ins, left_out
