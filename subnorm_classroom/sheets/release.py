"""The command ``release``: the student's sheet of a set, and the zip that holds it."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from subnorm_classroom.arguments import set_name
from subnorm_classroom.errors import Refusal
from subnorm_classroom.sheets import class_sheets, packing
from subnorm_classroom.sheets.chapters import beside_chapters, chapters_of
from subnorm_classroom.sheets.student_sheet import (
    ROOT,
    SheetError,
    as_notebook,
    for_nbgrader,
    read_notebook,
    relative_path,
    source_of,
    student,
)
from subnorm_lab import _files, checks

HELP = "write the student notebook of a set, and dist/SET.zip"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sets", nargs="*", type=set_name, metavar="set", help="ex01, ex02, …; without any, all sets")
    parser.add_argument("--check", action="store_true", help="write nothing; list stale student notebooks")
    parser.add_argument("--nbgrader", type=Path, metavar="FOLDER", help="also write a course for nbgrader there")
    parser.add_argument("--variants", type=Path, metavar="CLASSLIST", help="a sheet of its own for each student")


def run_command(options: argparse.Namespace) -> int:
    if not options.variants:
        return release(options.sets or list(checks.SETS), options.check, options.nbgrader)
    if len(options.sets) != 1 or options.check or options.nbgrader:
        raise Refusal("--variants needs the name of one set, and goes with neither --check nor --nbgrader")
    return class_sheets.hand_out(options.sets[0], options.variants)


def release(names: Sequence[str], check: bool = False, nbgrader: Path | None = None) -> int:
    """Write the student notebooks and zips of some sets; return 1 if a source has faults or a sheet is stale."""
    status = 0
    for name in names:
        try:
            path = source_of(name)
            source = read_notebook(path)
            sheet = student(source, name)
        except SheetError as error:
            print(f"{name}: {error}", file=sys.stderr)
            status = 1
            continue
        target = path.parent / "student" / path.name
        text = as_notebook(sheet)
        if check:
            if not target.is_file() or target.read_bytes() != text.encode():
                command = f"python -m subnorm_classroom release {name}"
                print(f"{name}: {relative_path(target)} is out of date; run: {command}", file=sys.stderr)
                status = 1
            continue
        target.parent.mkdir(exist_ok=True)
        _files.write(target, text)
        sheet = {path.name: beside_chapters(text), **chapters_of(ROOT, text)}
        made = [target, packing.write_zip(ROOT, name, path.name, sheet, checks.SETS[name])]
        if nbgrader:
            made += packing.write_nbgrader(nbgrader, name, path.name, as_notebook(for_nbgrader(source, name)))
        print(f"{name}: written to {', '.join(map(relative_path, made))}")
    return status
